//! TLS to the server: whom to trust, what the server is called, and who the client is.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

/// How connections are secured.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    /// The name, or address, that the server's certificate has to be for; a name is also what the
    /// server is told it is called (SNI). In a cluster it holds for the nodes that have no name of
    /// their own.
    pub server_name: ServerName<'static>,
    /// Whose certificates are accepted.
    pub trust: Trust,
    /// The client's own certificate, for servers that ask for one.
    pub identity: Option<Identity>,
    /// Which versions are offered.
    pub versions: TlsVersions,
}

/// Versions of TLS that are offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersions {
    /// TLS 1.2 and 1.3; the server takes the newer one if it has both.
    #[default]
    Both,
    /// TLS 1.2 alone.
    V1_2,
    /// TLS 1.3 alone.
    V1_3,
}

/// Whose certificates are accepted.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Those signed by the authorities that the operating system trusts.
    System,
    /// Those signed by these authorities.
    Authorities(Vec<CertificateDer<'static>>),
    /// All, for any name: whoever answers is taken for the server.
    Anything,
}

/// A certificate of the client, with its key.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate, and the intermediate ones behind it.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its private key.
    pub key: Arc<PrivateKeyDer<'static>>,
}

/// Text that is not what TLS needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TlsTextError(String);

impl TlsSettings {
    /// TLS to a server of this name or address, trusting what the system trusts.
    ///
    /// # Errors
    /// The name can be no name of a host.
    pub fn new(server_name: &str) -> Result<Self, TlsTextError> {
        Ok(Self {
            server_name: self::server_name(server_name)?,
            trust: Trust::System,
            identity: None,
            versions: TlsVersions::default(),
        })
    }

    /// The same settings with other trust.
    #[must_use]
    pub fn trusting(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }
}

impl Trust {
    /// The authorities of a PEM text.
    ///
    /// # Errors
    /// The text is no PEM, or holds no certificate.
    pub fn from_pem(text: &[u8]) -> Result<Self, TlsTextError> {
        certificates(text).map(Self::Authorities)
    }
}

impl Identity {
    /// A certificate and its key, both PEM.
    ///
    /// # Errors
    /// A text is no PEM, or holds no certificate or no private key.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, TlsTextError> {
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| TlsTextError(format!("no private key in PEM form: {error}")))?;
        Ok(Self {
            chain: certificates(certificate)?,
            key: Arc::new(key),
        })
    }
}

/// The name of a server as certificates have it.
///
/// # Errors
/// The text can be no name of a host.
pub fn server_name(text: &str) -> Result<ServerName<'static>, TlsTextError> {
    let name = ServerName::try_from(text.to_owned());
    name.map_err(|_| TlsTextError(format!("{text:?} can be no name of a server")))
}

fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsTextError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let all = all.map_err(|error| TlsTextError(format!("no certificate in PEM form: {error}")))?;
    if all.is_empty() {
        return Err(TlsTextError("no certificate in PEM form".to_owned()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_server_names() {
        for text in ["localhost", "db.example.org", "127.0.0.1", "::1"] {
            assert!(TlsSettings::new(text).is_ok(), "{text}");
        }
        for text in ["", "a b", "[::1]", "-", "a..b"] {
            let error = TlsSettings::new(text).unwrap_err().to_string();
            assert_eq!(error, format!("{text:?} can be no name of a server"));
        }
    }

    #[test]
    fn text_without_pem_is_refused() {
        let error = Trust::from_pem(b"nothing").unwrap_err().to_string();
        assert_eq!(error, "no certificate in PEM form");
        let error = Identity::from_pem(b"", b"").unwrap_err().to_string();
        assert!(error.starts_with("no private key in PEM form"), "{error}");
    }
}
