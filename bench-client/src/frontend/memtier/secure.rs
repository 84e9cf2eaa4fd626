//! From `--tls` and its options to the TLS of the engine: files are read, names are checked.

use std::fs;
use std::path::Path;

use super::options::TlsVersion;
use super::plan::{Endpoint, Plan, Tls};
use super::{Name, UsageError};
use crate::settings::{Identity, TlsSettings, TlsVersions, Trust, server_name};

impl Plan {
    /// How connections are secured; `None` where they are not.
    ///
    /// # Errors
    /// A file that cannot be read or is not in PEM form, or a name that can be no name of a server.
    pub fn tls_settings(&self) -> Result<Option<TlsSettings>, UsageError> {
        let (Some(tls), Endpoint::Tcp { host, .. }) = (&self.tls, &self.endpoint) else {
            return Ok(None);
        };
        let (option, name) = match &tls.sni {
            Some(name) => (Name::Sni, name),
            None => (Name::Server, host),
        };
        let wrong = |error| UsageError::new(option.spelled(), "a name or an address", error);
        Ok(Some(TlsSettings {
            server_name: server_name(name).map_err(wrong)?,
            trust: trust(tls)?,
            identity: identity(tls)?,
            versions: versions(tls),
        }))
    }
}

fn versions(tls: &Tls) -> TlsVersions {
    let has = |version| tls.versions.contains(&version);
    match (has(TlsVersion::V1_2), has(TlsVersion::V1_3)) {
        (true, false) => TlsVersions::V1_2,
        (false, true) => TlsVersions::V1_3,
        _ => TlsVersions::Both,
    }
}

fn trust(tls: &Tls) -> Result<Trust, UsageError> {
    match &tls.cacert {
        // As with the original, the authorities are then not looked at.
        _ if tls.skip_verify => Ok(Trust::Anything),
        None => Ok(Trust::System),
        Some(path) => Trust::from_pem(&read(Name::Cacert, path)?)
            .map_err(|error| not_pem(Name::Cacert, path, &error)),
    }
}

fn identity(tls: &Tls) -> Result<Option<Identity>, UsageError> {
    let certificate = match (&tls.cert, &tls.key) {
        (None, None) => return Ok(None),
        (Some(certificate), _) => certificate,
        (None, Some(_)) => {
            let expected = "the key's certificate in --cert";
            return Err(UsageError::new(Name::Key.spelled(), expected, "no --cert"));
        }
    };
    let key = tls.key.as_ref().unwrap_or(certificate);
    Identity::from_pem(&read(Name::Cert, certificate)?, &read(Name::Key, key)?)
        .map(Some)
        .map_err(|error| not_pem(Name::Cert, certificate, &error))
}

fn read(name: Name, path: &Path) -> Result<Vec<u8>, UsageError> {
    fs::read(path).map_err(|error| {
        let found = format!("{}: {error}", path.display());
        UsageError::new(name.spelled(), "a file that can be read", found)
    })
}

fn not_pem(name: Name, path: &Path, error: &dyn std::fmt::Display) -> UsageError {
    let found = format!("{}: {error}", path.display());
    UsageError::new(name.spelled(), "a file in PEM form", found)
}

#[cfg(test)]
mod tests {
    use super::super::resolve::tests::plan;
    use super::*;

    fn settings(words: &[&str]) -> Result<Option<TlsSettings>, String> {
        plan(words)
            .tls_settings()
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_host_is_the_name_unless_another_is_given() {
        assert!(settings(&["-s", "db"]).unwrap().is_none());
        let name = |words: &[&str]| {
            let settings = settings(words).unwrap().unwrap();
            settings.server_name.to_str().into_owned()
        };
        assert_eq!(name(&["-s", "db", "--tls"]), "db");
        assert_eq!(name(&["-u", "rediss://db"]), "db");
        assert_eq!(name(&["-s", "::1", "--tls"]), "::1");
        assert_eq!(name(&["-s", "db", "--tls", "--sni", "node"]), "node");
        assert!(
            settings(&["-s", "a b", "--tls"])
                .unwrap_err()
                .starts_with("--server")
        );
    }

    #[test]
    fn versions_are_those_that_are_listed() {
        let versions = |words: &[&str]| {
            let words = [&["--tls"], words].concat();
            settings(&words).unwrap().unwrap().versions
        };
        assert_eq!(versions(&[]), TlsVersions::Both);
        for (list, expected) in [
            ("TLSv1.2", TlsVersions::V1_2),
            ("tlsv1.3", TlsVersions::V1_3),
            ("TLSv1.3,TLSv1.2", TlsVersions::Both),
        ] {
            assert_eq!(versions(&["--tls-protocols", list]), expected, "{list}");
        }
    }

    #[test]
    fn trust_is_in_the_system_in_a_file_or_in_everybody() {
        let trust = |words: &[&str]| {
            let words = [&["--tls"], words].concat();
            settings(&words).map(|settings| settings.unwrap().trust)
        };
        assert!(matches!(trust(&[]), Ok(Trust::System)));
        let all = ["--tls-skip-verify", "--cacert", "/nonexistent"];
        assert!(matches!(trust(&all), Ok(Trust::Anything)));
        let error = trust(&["--cacert", "/nonexistent/ca.pem"]).unwrap_err();
        assert!(
            error.starts_with("--cacert: expected a file that can be read"),
            "{error}"
        );
        let error = trust(&["--key", "/nonexistent/key.pem"]).unwrap_err();
        assert!(error.contains("the key's certificate in --cert"), "{error}");
        let error = trust(&["--cert", "/dev/null"]).unwrap_err();
        assert!(
            error.starts_with("--cert: expected a file in PEM form"),
            "{error}"
        );
    }
}
