//! Options of TLS.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::{TargetUrl, UsageError};
use crate::settings::{Identity, TlsSettings, TlsVersions, Trust, server_name};

/// Whether and how connections are secured.
#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
#[command(next_help_heading = "TLS")]
pub struct TlsArgs {
    /// Connect with TLS, as with rediss:// and aerospikes:// URLs
    #[arg(long)]
    pub tls: bool,

    /// Authorities that are trusted to sign the server's certificate, in PEM form [default: those of
    /// the system]
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,

    /// Certificate of the client, for servers that ask for one, in PEM form
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// Private key of the client's certificate, in PEM form
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,

    /// Name that the server's certificate has to be for, and that the server is told (SNI)
    /// [default: the host of the URL]
    #[arg(long, value_name = "NAME", visible_alias = "tls-sni")]
    pub tls_server_name: Option<String>,

    /// Accept any certificate for any name: whoever answers is taken for the server
    #[arg(long)]
    pub tls_skip_verify: bool,
}

impl TlsArgs {
    /// The settings that the options describe; `None` for a plain connection.
    pub(super) fn settings(&self, url: &TargetUrl) -> Result<Option<TlsSettings>, UsageError> {
        if !(self.tls || url.tls) {
            return match self.first_given() {
                None => Ok(None),
                Some(option) => Err(UsageError::new(
                    option,
                    "--tls, or a rediss:// or aerospikes:// URL, beside it",
                    format_args!("{}://", url.place.scheme()),
                )),
            };
        }
        let name = self.tls_server_name.as_ref().unwrap_or(&url.host);
        let wrong = |error| UsageError::new("--tls-server-name", "a name or an address", error);
        Ok(Some(TlsSettings {
            versions: TlsVersions::Both,
            server_name: server_name(name).map_err(wrong)?,
            trust: self.trust()?,
            identity: self.identity()?,
        }))
    }

    fn trust(&self) -> Result<Trust, UsageError> {
        match &self.tls_ca {
            Some(_) if self.tls_skip_verify => Err(UsageError::new(
                "--tls-ca",
                "no --tls-skip-verify beside it, which trusts everybody",
                "both",
            )),
            None if self.tls_skip_verify => Ok(Trust::Anything),
            None => Ok(Trust::System),
            Some(path) => {
                Trust::from_pem(&read("--tls-ca", path)?).map_err(|e| not_pem("--tls-ca", path, &e))
            }
        }
    }

    fn identity(&self) -> Result<Option<Identity>, UsageError> {
        let (certificate, key) = match (&self.tls_cert, &self.tls_key) {
            (None, None) => return Ok(None),
            (Some(certificate), Some(key)) => (certificate, key),
            (Some(_), None) => {
                let expected = "the certificate's key in --tls-key";
                return Err(UsageError::new("--tls-cert", expected, "no --tls-key"));
            }
            (None, Some(_)) => {
                let expected = "the key's certificate in --tls-cert";
                return Err(UsageError::new("--tls-key", expected, "no --tls-cert"));
            }
        };
        let (option, other) = ("--tls-cert", "--tls-key");
        Identity::from_pem(&read(option, certificate)?, &read(other, key)?)
            .map(Some)
            .map_err(|error| not_pem("--tls-cert, --tls-key", certificate, &error))
    }

    fn first_given(&self) -> Option<&'static str> {
        [
            (self.tls_ca.is_some(), "--tls-ca"),
            (self.tls_cert.is_some(), "--tls-cert"),
            (self.tls_key.is_some(), "--tls-key"),
            (self.tls_server_name.is_some(), "--tls-server-name"),
            (self.tls_skip_verify, "--tls-skip-verify"),
        ]
        .into_iter()
        .find_map(|(given, option)| given.then_some(option))
    }
}

fn read(option: &'static str, path: &Path) -> Result<Vec<u8>, UsageError> {
    fs::read(path).map_err(|error| {
        let found = format!("{}: {error}", path.display());
        UsageError::new(option, "a file that can be read", found)
    })
}

fn not_pem(option: &'static str, path: &Path, error: &dyn std::fmt::Display) -> UsageError {
    let found = format!("{}: {error}", path.display());
    UsageError::new(option, "a file in PEM form", found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str, args: TlsArgs) -> Result<Option<TlsSettings>, String> {
        let url = url.parse().unwrap();
        args.settings(&url).map_err(|error| error.to_string())
    }

    #[test]
    fn urls_and_the_option_ask_for_tls() {
        let plain = settings("redis://localhost", TlsArgs::default()).unwrap();
        assert!(plain.is_none());
        for url in ["rediss://db", "aerospikes://db"] {
            let tls = settings(url, TlsArgs::default()).unwrap().unwrap();
            assert_eq!(tls.server_name.to_str(), "db");
            assert!(matches!(tls.trust, Trust::System));
        }
        let args = TlsArgs {
            tls: true,
            tls_skip_verify: true,
            tls_server_name: Some("node".to_owned()),
            ..TlsArgs::default()
        };
        let tls = settings("redis://[::1]", args).unwrap().unwrap();
        assert_eq!(tls.server_name.to_str(), "node");
        assert!(matches!(tls.trust, Trust::Anything));
        let address = settings("rediss://[::1]", TlsArgs::default()).unwrap();
        assert_eq!(address.unwrap().server_name.to_str(), "::1");
    }

    #[test]
    fn options_that_make_no_sense_are_named() {
        let given = |change: fn(&mut TlsArgs)| {
            let mut args = TlsArgs::default();
            change(&mut args);
            args
        };
        let cases = [
            (
                "redis://h",
                given(|a| a.tls_skip_verify = true),
                "--tls-skip-verify: expected --tls, or a rediss:// or aerospikes:// URL, beside it, \
                 found redis://",
            ),
            (
                "rediss://h",
                given(|a| a.tls_cert = Some("c".into())),
                "--tls-cert: expected the certificate's key in --tls-key, found no --tls-key",
            ),
            (
                "rediss://h",
                given(|a| a.tls_key = Some("k".into())),
                "--tls-key: expected the key's certificate in --tls-cert, found no --tls-cert",
            ),
            (
                "rediss://h",
                given(|a| (a.tls_ca, a.tls_skip_verify) = (Some("c".into()), true)),
                "--tls-ca: expected no --tls-skip-verify beside it, which trusts everybody, found \
                 both",
            ),
            (
                "rediss://h",
                given(|a| a.tls_ca = Some("/nonexistent/ca.pem".into())),
                "--tls-ca: expected a file that can be read, found /nonexistent/ca.pem: No such file \
                 or directory (os error 2)",
            ),
            (
                "rediss://h",
                given(|a| a.tls_ca = Some("/dev/null".into())),
                "--tls-ca: expected a file in PEM form, found /dev/null: no certificate in PEM form",
            ),
        ];
        for (url, args, message) in cases {
            assert_eq!(settings(url, args).unwrap_err(), message);
        }
    }
}
