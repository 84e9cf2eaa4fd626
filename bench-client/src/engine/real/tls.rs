//! TLS between a worker and its sockets.
//!
//! ```text
//!  socket --read--> ciphertext --rustls--> plaintext --> worker      one moment per read of the socket
//!  worker --plaintext--> rustls --> ciphertext --write--> socket     what it does not take is kept
//! ```
//!
//! Each read of the socket is decrypted whole: the ciphertext lands in the rear of the buffer that
//! is to be filled and the plaintext in its front, so that nothing a worker could have stays
//! inside, and readiness of the socket says all, as it does without TLS.
//!
//! Every handshake is a full one: sessions are not resumed, so that the first connection and a
//! reconnect cost the same, as they do with most clients.

use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct,
    Error, InconsistentKeys, InvalidMessage, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};

use crate::engine::worker::Arrival;
use crate::engine::{RunError, TlsFault};
use crate::settings::{Identity, TlsSettings, TlsVersions, Trust};

/// What all connections of a run are secured with.
#[derive(Clone, Debug)]
pub(super) struct Securing {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    has_identity: bool,
}

/// The TLS of one connection.
#[derive(Debug)]
pub(super) struct Secure {
    connection: ClientConnection,
    has_identity: bool,
    /// Anything was read.
    begun: bool,
    /// The server has ended its side.
    ended: bool,
    /// What came together with the end of the handshake.
    early: Option<(Vec<u8>, Arrival)>,
}

impl Securing {
    /// Loads what is trusted. Fails where the system trusts nobody, or the client's key does not
    /// belong to its certificate.
    pub(super) fn prepare(settings: &TlsSettings) -> Result<Self, RunError> {
        let unusable = |error: &dyn ToString| RunError::NoTls(error.to_string());
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(versions(settings.versions))
            .map_err(|error| unusable(&error))?;
        let verifier: Arc<dyn ServerCertVerifier> = match &settings.trust {
            Trust::Anything => Arc::new(AnyCertificate(provider())),
            Trust::System => webpki(rustls_native_certs::load_native_certs().certs)?,
            Trust::Authorities(authorities) => webpki(authorities.clone())?,
        };
        // The name is "dangerous" because of verifiers that verify nothing; ours does that only on
        // request.
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &settings.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                builder.with_client_cert_resolver(Arc::new(presented(identity).map_err(
                    |error| unusable(&format_args!("the client's certificate: {error}")),
                )?))
            }
        };
        config.resumption = Resumption::disabled();
        Ok(Self {
            config: Arc::new(config),
            name: settings.server_name.clone(),
            has_identity: settings.identity.is_some(),
        })
    }

    /// The TLS of a new connection to the server, or to a node that is called `name`.
    pub(super) fn begin(&self, name: Option<ServerName<'static>>) -> io::Result<Secure> {
        let name = name.unwrap_or_else(|| self.name.clone());
        let connection = ClientConnection::new(Arc::clone(&self.config), name);
        Ok(Secure {
            connection: connection.map_err(io::Error::other)?,
            has_identity: self.has_identity,
            begun: false,
            ended: false,
            early: None,
        })
    }
}

/// The client's certificate as it is shown to servers. Whether it is one they can read is for them to
/// say: certificates of version 1, which OpenSSL makes by default, are none for our verifier.
fn presented(identity: &Identity) -> Result<SingleCertAndKey, Error> {
    let key = provider()
        .key_provider
        .load_private_key(identity.key.clone_key())?;
    let certified = CertifiedKey::new(identity.chain.clone(), key);
    match certified.keys_match() {
        Err(error @ Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => Err(error),
        _ => Ok(SingleCertAndKey::from(certified)),
    }
}

fn versions(wanted: TlsVersions) -> &'static [&'static SupportedProtocolVersion] {
    static BOTH: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
    static OLDER: [&SupportedProtocolVersion; 1] = [&TLS12];
    static NEWER: [&SupportedProtocolVersion; 1] = [&TLS13];
    match wanted {
        TlsVersions::Both => &BOTH,
        TlsVersions::V1_2 => &OLDER,
        TlsVersions::V1_3 => &NEWER,
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn webpki(
    authorities: Vec<CertificateDer<'static>>,
) -> Result<Arc<WebPkiServerVerifier>, RunError> {
    let mut roots = RootCertStore::empty();
    // The system's store may hold certificates that are malformed; those are of no use to anybody.
    let (added, _) = roots.add_parsable_certificates(authorities);
    if added == 0 {
        let text =
            "nobody is trusted: the system has no authorities, or the given ones are malformed";
        return Err(RunError::NoTls(text.to_owned()));
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .map_err(|error| RunError::NoTls(error.to_string()))
}

impl Secure {
    /// Whether the handshake is not complete.
    pub(super) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Whether ciphertext waits for the socket to take it.
    pub(super) fn keeps_output(&self) -> bool {
        self.connection.wants_write()
    }

    /// Whether the server has ended its side, so that nothing comes any more.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Sends ciphertext as far as the socket takes it; false when it did not take all.
    pub(super) fn push(&mut self, socket: &mut impl Write) -> io::Result<bool> {
        while self.connection.wants_write() {
            match self.connection.write_tls(socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Encrypts and sends: the number of bytes taken, 0 when the socket has not taken what it was
    /// given before.
    pub(super) fn write(&mut self, socket: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
        if !self.push(socket)? {
            return Ok(0);
        }
        // Bounded by the buffer limit of the connection, 64 KiB.
        let taken = self.connection.writer().write(bytes)?;
        self.push(socket)?;
        Ok(taken)
    }

    /// Decrypts what a read of the socket brought, nothing at its end: the number of bytes that lie
    /// at the front of `plain` then.
    pub(super) fn decrypt(&mut self, mut cipher: &[u8], plain: &mut [u8]) -> io::Result<usize> {
        match cipher.first() {
            None if self.is_handshaking() => return Err(fault(TlsFault::Closed)),
            Some(first) if !self.begun && !TLS_RECORDS.contains(first) => {
                return Err(fault(TlsFault::NoTls));
            }
            _ => self.begun = true,
        }
        let mut len = 0;
        while !cipher.is_empty() {
            if self.connection.read_tls(&mut cipher)? == 0 {
                // Nothing counts behind the server's farewell.
                break;
            }
            let state = self.connection.process_new_packets();
            let state = state.map_err(|error| fault(self.explain(error)))?;
            self.ended |= state.peer_has_closed();
            let mut left = state.plaintext_bytes_to_read();
            while left > 0 {
                let room = plain.get_mut(len..).unwrap_or_default();
                let read = self.connection.reader().read(room)?;
                if read == 0 {
                    return Err(io::Error::other("a record is larger than TLS allows"));
                }
                len += read;
                left = left.saturating_sub(read);
            }
        }
        Ok(len)
    }

    /// Keeps what came with the end of the handshake.
    pub(super) fn keep_early(&mut self, bytes: &[u8], arrival: Arrival) {
        if !bytes.is_empty() {
            self.early = Some((bytes.to_vec(), arrival));
        }
    }

    /// Gives out what was kept.
    pub(super) fn take_early(&mut self, buffer: &mut [u8]) -> Option<(usize, Arrival)> {
        let (bytes, arrival) = self.early.take()?;
        // It was in a buffer of this size before.
        buffer.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        Some((bytes.len(), arrival))
    }

    /// Says farewell.
    pub(super) fn end(&mut self, socket: &mut impl Write) {
        self.connection.send_close_notify();
        // The server may have left already.
        let _ = self.push(socket);
    }

    fn explain(&self, error: Error) -> TlsFault {
        match error {
            Error::InvalidCertificate(error) => of_certificate(error),
            Error::InvalidMessage(
                InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
            ) if self.is_handshaking() => TlsFault::NoTls,
            Error::AlertReceived(AlertDescription::CertificateRequired) => {
                TlsFault::CertificateRequired
            }
            Error::AlertReceived(alert) if self.has_identity && is_about_certificates(alert) => {
                TlsFault::CertificateRefused(format!("{alert:?}"))
            }
            other => TlsFault::Other(other.to_string()),
        }
    }
}

fn of_certificate(error: CertificateError) -> TlsFault {
    match error {
        CertificateError::UnknownIssuer => TlsFault::Untrusted,
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFault::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            TlsFault::NotYetValid
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => TlsFault::OtherName {
            wanted: expected.to_str().into_owned(),
            presented: if presented.is_empty() {
                "no name".to_owned()
            } else {
                let names: Vec<_> = presented.iter().map(|name| bare(name)).collect();
                names.join(", ")
            },
        },
        other => TlsFault::Certificate(Error::InvalidCertificate(other).to_string()),
    }
}

/// A name of a certificate, out of the form in which the verifier tells it: `DnsName("a.b")` or
/// `IpAddress(10.0.0.1)`.
fn bare(name: &str) -> String {
    let inside = name.split_once('(').map_or(name, |(_, inside)| inside);
    let inside = inside.trim_end_matches(')').trim_matches('"');
    // Addresses are told in a form that nobody writes: 0::1.
    let address = inside.parse::<IpAddr>();
    address.map_or_else(|_| inside.to_owned(), |address| address.to_string())
}

fn is_about_certificates(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::DecryptError
    )
}

/// A fault as an error of the socket it is found on.
fn fault(fault: TlsFault) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, fault)
}

/// The fault in an error, if it is one.
pub(super) fn fault_in(error: &io::Error) -> Option<&TlsFault> {
    error.get_ref()?.downcast_ref()
}

/// Accepts every certificate. Signatures are checked all the same, so that the server has the key;
/// only where the verifier cannot read the certificate (version 1, as OpenSSL makes them by default)
/// there is nothing to check with.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        unless_unreadable(rustls::crypto::verify_tls12_signature(
            message, cert, dss, algorithms,
        ))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        unless_unreadable(rustls::crypto::verify_tls13_signature(
            message, cert, dss, algorithms,
        ))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Passes over certificates that the verifier cannot read.
fn unless_unreadable(
    checked: Result<HandshakeSignatureValid, Error>,
) -> Result<HandshakeSignatureValid, Error> {
    match checked {
        Err(Error::InvalidCertificate(CertificateError::Other(_))) => {
            Ok(HandshakeSignatureValid::assertion())
        }
        other => other,
    }
}

/// First bytes of what a TLS server may say first: a record of the handshake, or an alert.
const TLS_RECORDS: [u8; 2] = [0x16, 0x15];
/// Bytes of ciphertext that are read at once. The rest of the buffer has to hold that much and a
/// record of at most 18 KiB that was begun before.
pub(super) const CIPHERTEXT: usize = 22 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client says first.
    fn hello(versions: TlsVersions) -> Vec<u8> {
        let settings = TlsSettings {
            versions,
            ..TlsSettings::new("localhost").unwrap()
        };
        let settings = settings.trusting(Trust::Anything);
        let mut secure = Securing::prepare(&settings).unwrap().begin(None).unwrap();
        let mut sent = Vec::new();
        assert!(secure.push(&mut sent).unwrap());
        sent
    }

    #[test]
    fn only_the_wanted_versions_are_offered() {
        // Extension 43 of RFC 8446, 4.2.1: its length, that of the list, and the versions, where
        // 0x0303 is TLS 1.2 and 0x0304 is TLS 1.3.
        for (versions, extension) in [
            (TlsVersions::V1_2, &[0, 43, 0, 3, 2, 3, 3][..]),
            (TlsVersions::V1_3, &[0, 43, 0, 3, 2, 3, 4]),
            (TlsVersions::Both, &[0, 43, 0, 5, 4, 3, 4, 3, 3]),
        ] {
            let hello = hello(versions);
            let found = hello.windows(extension.len()).any(|part| part == extension);
            assert!(found, "{versions:?}: {hello:?}");
        }
    }

    #[test]
    fn names_of_certificates_are_told_as_people_write_them() {
        for (told, name) in [
            ("DnsName(\"localhost\")", "localhost"),
            ("IpAddress(127.0.0.1)", "127.0.0.1"),
            ("IpAddress(0::1)", "::1"),
            ("other", "other"),
        ] {
            assert_eq!(bare(told), name);
        }
    }
    const VERSION_1: &[u8] = include_bytes!("../../../tests/data/tls/version-1.pem");

    /// Everything one side has to say, to the other; what comes of it.
    fn pass<A, B>(
        from: &mut rustls::ConnectionCommon<A>,
        to: &mut rustls::ConnectionCommon<B>,
    ) -> Result<(), Error> {
        let mut bytes = Vec::new();
        while from.wants_write() {
            from.write_tls(&mut bytes).unwrap();
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            to.read_tls(&mut rest).unwrap();
            to.process_new_packets()?;
        }
        Ok(())
    }

    /// The test certificates of Redis itself are of this kind.
    #[test]
    fn certificates_of_version_1_are_shown_and_accepted_where_any_is() {
        let identity = Identity::from_pem(VERSION_1, VERSION_1).unwrap();
        let shown = Arc::new(presented(&identity).unwrap());
        for version in [&TLS12, &TLS13] {
            for (trust, accepted) in [
                (Trust::Anything, true),
                (Trust::Authorities(identity.chain.clone()), false),
            ] {
                let server = rustls::ServerConfig::builder_with_provider(provider())
                    .with_protocol_versions(&[version])
                    .unwrap()
                    .with_no_client_auth()
                    .with_cert_resolver(Arc::clone(&shown) as _);
                let mut server = rustls::ServerConnection::new(Arc::new(server)).unwrap();
                let settings = TlsSettings {
                    server_name: ServerName::try_from("localhost").unwrap(),
                    trust,
                    identity: Some(identity.clone()),
                    versions: TlsVersions::Both,
                };
                let Ok(securing) = Securing::prepare(&settings) else {
                    // One that cannot be read is no authority either.
                    assert!(!accepted);
                    continue;
                };
                let mut client = securing.begin(None).unwrap().connection;
                let mut done = Ok(());
                for _ in 0..3 {
                    done = done.and(pass(&mut client, &mut server));
                    done = done.and(pass(&mut server, &mut client));
                }
                assert_eq!(
                    done.is_ok() && !client.is_handshaking(),
                    accepted,
                    "{done:?}"
                );
            }
        }
    }
}
