//! TLS of the server's ports: what is wanted, and the certificate it is done with.
//!
//! TLS is a transport: a session behind it sees the same bytes as one behind a plain port (see
//! `shell/secure.rs`). This module knows ports, certificates and files, and nothing of connections.
//!
//! ```text
//!  redis-port, aerospike-port, port       plain, unless TLS is required
//!  redis-tls-port, aerospike-tls-port     TLS
//!  tls-required                           no plain port; a protocol without a TLS port of its own
//!                                         speaks TLS on its usual one
//! ```
//!
//! The certificate comes from files, from a folder in which one is made and kept
//! (`tls-self-signed`), or is made in memory for the run.

mod certificate;
mod error;
mod folder;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

pub(crate) use certificate::Material;
pub use error::TlsError;

use crate::config::{ConfigError, ServerConfig};

/// What a server is told about TLS. The default is a server without.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// Port for RESP over TLS; 0 picks a free one, `None` opens none.
    pub redis_port: Option<u16>,
    /// Port for the Aerospike protocol over TLS; 0 picks a free one, `None` opens none.
    pub aerospike_port: Option<u16>,
    /// Whether no plain port is opened. The usual ports speak TLS then, where a protocol has no TLS
    /// port of its own.
    pub required: bool,
    /// Where the server's certificate comes from.
    pub certificate: CertificateSource,
    /// A file with the authorities that sign the certificates of clients; without it no client is
    /// asked for one.
    pub client_ca: Option<PathBuf>,
    /// Whether clients must have a certificate where they are asked for one.
    pub client_auth: ClientAuth,
}

/// Where a server's certificate comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CertificateSource {
    /// It is made for the run, with an authority of its own; see
    /// [`MockServer::ca_pem`](crate::MockServer::ca_pem).
    #[default]
    InMemory,
    /// Files in PEM form.
    Files {
        /// The certificate, and the intermediate ones behind it.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
    /// A folder: `ca.pem`, `cert.pem` and `key.pem` in it are used, or made where they are missing
    /// or no longer valid.
    SelfSigned(PathBuf),
}

/// Whether clients must have a certificate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// A certificate is verified where the client has one.
    #[default]
    Optional,
    /// Clients without a certificate are refused.
    Required,
}

impl TlsConfig {
    /// The plain port and the TLS port of a protocol for which `plain` and `secure` were asked.
    #[must_use]
    pub fn ports(&self, plain: Option<u16>, secure: Option<u16>) -> (Option<u16>, Option<u16>) {
        if self.required {
            (None, secure.or(plain))
        } else {
            (plain, secure)
        }
    }

    /// Checks what the types alone do not.
    ///
    /// # Errors
    /// Tells the setting that makes no sense without another.
    pub(crate) fn check(&self, config: &ServerConfig) -> Result<(), ConfigError> {
        let refuse = |what, found: &dyn fmt::Display, expected| {
            Err(ConfigError {
                what,
                found: found.to_string(),
                expected,
            })
        };
        if self.client_auth == ClientAuth::Required && self.client_ca.is_none() {
            return refuse(
                "tls-client-auth",
                &self.client_auth,
                "tls-client-ca beside it: the authorities that sign the certificates of clients",
            );
        }
        if !config.speaks_tls() && (self.is_described()) {
            return refuse(
                "the TLS port",
                &"off",
                "redis-tls-port, aerospike-tls-port or tls-required, since TLS is described",
            );
        }
        Ok(())
    }

    /// Whether anything is said that has a use with TLS only.
    fn is_described(&self) -> bool {
        self.certificate != CertificateSource::InMemory || self.client_ca.is_some()
    }
}

impl ServerConfig {
    /// Whether any port speaks TLS.
    #[must_use]
    pub fn speaks_tls(&self) -> bool {
        let tls = &self.tls;
        let usual = [self.redis_port, self.aerospike_port, self.shared_port];
        tls.redis_port.is_some()
            || tls.aerospike_port.is_some()
            || tls.required && usual.iter().any(Option::is_some)
    }
}

impl fmt::Display for ClientAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Optional => "optional",
            Self::Required => "required",
        })
    }
}

impl FromStr for ClientAuth {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "optional" => Ok(Self::Optional),
            "required" => Ok(Self::Required),
            _ => Err(ConfigError {
                what: "tls-client-auth",
                found: text.to_owned(),
                expected: "optional or required",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_tls_takes_the_usual_port_unless_it_has_its_own() {
        let ports = |required, plain, secure| {
            let tls = TlsConfig {
                required,
                ..TlsConfig::default()
            };
            tls.ports(plain, secure)
        };
        assert_eq!(ports(false, Some(1), None), (Some(1), None));
        assert_eq!(ports(false, Some(1), Some(2)), (Some(1), Some(2)));
        assert_eq!(ports(true, Some(1), None), (None, Some(1)));
        assert_eq!(ports(true, Some(1), Some(2)), (None, Some(2)));
        assert_eq!(ports(true, None, None), (None, None));
    }

    #[test]
    fn settings_that_have_no_use_are_refused() {
        type Change = fn(&mut ServerConfig);
        let cases: [(Change, &str); 3] = [
            (
                |c| c.tls.client_auth = ClientAuth::Required,
                "tls-client-auth is 'required'; expected tls-client-ca beside it: the authorities \
                 that sign the certificates of clients",
            ),
            (
                |c| c.tls.client_ca = Some("ca.pem".into()),
                "the TLS port is 'off'; expected redis-tls-port, aerospike-tls-port or \
                 tls-required, since TLS is described",
            ),
            (
                |c| {
                    c.tls.certificate = CertificateSource::SelfSigned("here".into());
                    (c.redis_port, c.aerospike_port) = (None, None);
                    c.tls.required = true;
                },
                "the TLS port is 'off'; expected redis-tls-port, aerospike-tls-port or \
                 tls-required, since TLS is described",
            ),
        ];
        for (change, message) in cases {
            let mut config = ServerConfig::default();
            change(&mut config);
            assert_eq!(config.check().unwrap_err().to_string(), message);
        }
        let mut config = ServerConfig::default();
        config.tls.required = true;
        config.tls.client_ca = Some("ca.pem".into());
        config.tls.client_auth = ClientAuth::Required;
        assert_eq!(config.check(), Ok(()));
    }

    #[test]
    fn the_words_for_client_certificates_are_read_and_printed() {
        for text in ["optional", "required"] {
            assert_eq!(text.parse::<ClientAuth>().unwrap().to_string(), text);
        }
        let error = "yes".parse::<ClientAuth>().unwrap_err().to_string();
        assert_eq!(
            error,
            "tls-client-auth is 'yes'; expected optional or required"
        );
    }
}
