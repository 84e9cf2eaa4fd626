//! Certificates: read from files, or made with an authority of their own.

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::CertifiedKey;

use super::{CertificateSource, ClientAuth, TlsConfig, TlsError, folder};

/// What the TLS ports of a server are served with.
#[derive(Debug, Clone)]
pub(crate) struct Material {
    /// The settings of every connection.
    pub(crate) server: Arc<rustls::ServerConfig>,
    /// The authority that signed the server's certificate, in PEM form, where the server made it.
    pub(crate) ca_pem: Option<String>,
}

impl Material {
    /// Reads or makes the certificate for a server that listens on `bind`; `unix_s` is the present.
    pub(crate) fn prepare(tls: &TlsConfig, bind: IpAddr, unix_s: u64) -> Result<Self, TlsError> {
        let (pair, ca_pem) = match &tls.certificate {
            CertificateSource::Files { certificate, key } => (Pair::read(certificate, key)?, None),
            CertificateSource::InMemory => {
                let made = Made::new(&names(bind), unix_s)?;
                (made.pair()?, Some(made.ca_pem))
            }
            CertificateSource::SelfSigned(folder) => {
                let (pair, ca_pem) = folder::keep(folder, &names(bind), unix_s)?;
                (pair, Some(ca_pem))
            }
        };
        let unusable = |error: &dyn ToString| TlsError::Unusable(error.to_string());
        let builder = rustls::ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?;
        let builder = match &tls.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let roots = Arc::new(authorities(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
                let verifier = match tls.client_auth {
                    ClientAuth::Optional => verifier.allow_unauthenticated(),
                    ClientAuth::Required => verifier,
                };
                builder
                    .with_client_cert_verifier(verifier.build().map_err(|error| unusable(&error))?)
            }
        };
        let server = builder
            .with_single_cert(pair.chain, pair.key)
            .map_err(|error| unusable(&error))?;
        Ok(Self {
            server: Arc::new(server),
            ca_pem,
        })
    }
}

/// A certificate with the ones behind it, and its key.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl Pair {
    /// Reads both files, and looks whether they belong together.
    pub(super) fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let pair = Self {
            chain: certificates("a certificate", certificate)?,
            key: PrivateKeyDer::from_pem_slice(&read("a private key", key)?)
                .map_err(|error| no_pem("a private key", key, &error))?,
        };
        let certified =
            CertifiedKey::from_der(pair.chain.clone(), pair.key.clone_key(), &provider());
        match certified {
            Ok(_) => Ok(pair),
            Err(rustls::Error::InconsistentKeys(_)) => Err(TlsError::OtherKey {
                key: key.to_owned(),
                certificate: certificate.to_owned(),
            }),
            Err(error) => Err(TlsError::Unusable(error.to_string())),
        }
    }
}

/// A certificate that was made, with its authority; all in PEM form. The key of the authority is
/// kept nowhere, so nothing else can ever be signed by it.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) ca_pem: String,
    pub(super) certificate_pem: String,
    pub(super) key_pem: String,
}

impl Made {
    /// A certificate for `names`, good for a year.
    pub(super) fn new(names: &[String], unix_s: u64) -> Result<Self, TlsError> {
        let ca_key = KeyPair::generate()?;
        let mut ca = valid_params(Vec::new(), unix_s)?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        // A name of its own: a client that trusts an earlier authority is told of an unknown one,
        // and not of a signature that is wrong.
        let number = ca.key_identifier(&ca_key);
        let number: String = number.iter().take(4).map(|b| format!("{b:02x}")).collect();
        ca.distinguished_name
            .push(DnType::CommonName, format!("kvlab test authority {number}"));
        let ca = CertifiedIssuer::self_signed(ca, ca_key)?;

        let key = KeyPair::generate()?;
        let mut server = valid_params(names.to_vec(), unix_s)?;
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.use_authority_key_identifier_extension = true;
        server
            .distinguished_name
            .push(DnType::CommonName, "kvlab mock server");
        let certificate = server.signed_by(&key, &ca)?;
        Ok(Self {
            ca_pem: ca.pem(),
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        })
    }

    pub(super) fn pair(&self) -> Result<Pair, TlsError> {
        let unusable = |error: rustls::pki_types::pem::Error| TlsError::Unusable(error.to_string());
        let certificate = CertificateDer::from_pem_slice(self.certificate_pem.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes());
        Ok(Pair {
            chain: vec![certificate.map_err(unusable)?],
            key: key.map_err(unusable)?,
        })
    }
}

/// Parameters of a certificate that is valid from a day ago, because clocks differ, for a year.
fn valid_params(names: Vec<String>, unix_s: u64) -> Result<CertificateParams, TlsError> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + Duration::from_secs(unix_s.saturating_sub(DAY_S));
    params.not_after = epoch + Duration::from_secs(unix_s.saturating_add(365 * DAY_S));
    Ok(params)
}

/// What clients on the same machine, and those that know the address, call the server.
fn names(bind: IpAddr) -> Vec<String> {
    let mut names = vec![
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
    ];
    let address = bind.to_string();
    if !bind.is_unspecified() && !names.contains(&address) {
        names.push(address);
    }
    names
}

/// The cryptography in use; named everywhere, because a program may hold several.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The authorities in a file.
pub(super) fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("an authority", path)? {
        roots
            .add(certificate)
            .map_err(|error| no_pem("an authority", path, &error))?;
    }
    Ok(roots)
}

/// The certificates in a file, at least one.
pub(super) fn certificates(
    what: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(what, path)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let all = all.map_err(|error| no_pem(what, path, &error))?;
    if all.is_empty() {
        return Err(no_pem(what, path, &"it holds no certificate in PEM form"));
    }
    Ok(all)
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|error| no_pem(what, path, &error))
}

fn no_pem(what: &'static str, path: &Path, reason: &dyn ToString) -> TlsError {
    TlsError::Read {
        what,
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

pub(super) const DAY_S: u64 = 86_400;
