//! The folder of `--tls-self-signed`: a certificate that is made once and kept.
//!
//! ```text
//!  ca.pem     the authority, for clients to trust; its first line says who made it
//!  cert.pem   the server's certificate
//!  key.pem    its private key, for the owner's eyes only (mode 0600)
//! ```
//!
//! What is there is used as long as it is valid for another day and for all names of the server.
//! Otherwise it is replaced if its first line says that it was made here; files of somebody else are
//! never overwritten.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{ServerName, UnixTime};

use super::TlsError;
use super::certificate::{DAY_S, Made, Pair, authorities, provider};

/// The certificate in `folder` and its authority, made if need be.
pub(super) fn keep(
    folder: &Path,
    names: &[String],
    unix_s: u64,
) -> Result<(Pair, String), TlsError> {
    let [ca, certificate, key] = FILES.map(|name| folder.join(name));
    match look(folder, names, unix_s) {
        Ok(found) => return Ok(found),
        Err(_) if is_ours(&ca) => {}
        Err(reason) => {
            if let Some(path) = [&ca, &certificate, &key].into_iter().find(|p| p.exists()) {
                return Err(TlsError::Foreign {
                    path: path.clone(),
                    reason,
                });
            }
        }
    }
    let made = Made::new(names, unix_s)?;
    fs::create_dir_all(folder).map_err(|source| TlsError::Write {
        path: folder.to_owned(),
        source,
    })?;
    let ca_pem = format!("{MARK}\n{}", made.ca_pem);
    // The authority comes last: without it the others are replaced at the next start.
    write(&key, &made.key_pem, 0o600)?;
    write(&certificate, &made.certificate_pem, 0o644)?;
    write(&ca, &ca_pem, 0o644)?;
    Ok((made.pair()?, ca_pem))
}

/// What is in the folder, if it serves; else why it does not.
fn look(folder: &Path, names: &[String], unix_s: u64) -> Result<(Pair, String), String> {
    let text = |error: &dyn ToString| error.to_string();
    let [ca, certificate, key] = FILES.map(|name| folder.join(name));
    let ca_pem = fs::read_to_string(&ca).map_err(|error| text(&error))?;
    let roots = authorities(&ca).map_err(|error| text(&error))?;
    let pair = Pair::read(&certificate, &key).map_err(|error| text(&error))?;
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .map_err(|error| text(&error))?;
    let (first, rest) = pair.chain.split_first().ok_or("it is empty")?;
    let tomorrow = UnixTime::since_unix_epoch(Duration::from_secs(unix_s.saturating_add(DAY_S)));
    for name in names {
        let name = ServerName::try_from(name.as_str()).map_err(|error| text(&error))?;
        verifier
            .verify_server_cert(first, rest, &name, &[], tomorrow)
            .map_err(|error| text(&error))?;
    }
    Ok((pair, ca_pem))
}

fn is_ours(ca: &Path) -> bool {
    fs::read_to_string(ca).is_ok_and(|text| text.starts_with(MARK))
}

/// Writes a file beside and renames it, so that nobody reads a half.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), TlsError> {
    let mut beside = path.to_owned().into_os_string();
    beside.push(format!(".{}", std::process::id()));
    let whole = || -> io::Result<()> {
        // Left over from a process of the same number, if it is there at all.
        let _ = fs::remove_file(&beside);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&beside)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&beside, path)
    };
    whole().map_err(|source| TlsError::Write {
        path: path.to_owned(),
        source,
    })
}

const FILES: [&str; 3] = ["ca.pem", "cert.pem", "key.pem"];

/// First line of an authority that was made here; readers of PEM pass over it.
const MARK: &str =
    "# Made by kvlab serve --tls-self-signed, and replaced by it when no longer valid.";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;

    /// A folder of this test's own, removed in the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("kvlab-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }

        fn keep(&self, names: &[&str], unix_s: u64) -> Result<String, TlsError> {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            keep(&self.0, &names, unix_s).map(|(_, ca_pem)| ca_pem)
        }

        fn files(&self) -> [String; 3] {
            FILES.map(|name| fs::read_to_string(self.0.join(name)).unwrap())
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const START: u64 = 1_900_000_000;

    #[test]
    fn a_valid_certificate_stays_and_an_old_or_narrow_one_is_replaced() {
        let folder = Folder::new("keep");
        let first = folder.keep(&["localhost", "127.0.0.1"], START).unwrap();
        let files = folder.files();
        assert_eq!(files[0], first);
        let mode = fs::metadata(folder.0.join("key.pem")).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);
        // For as long as a day is left of its year.
        let almost = START + 363 * DAY_S;
        assert_eq!(
            folder.keep(&["localhost", "127.0.0.1"], almost).unwrap(),
            first
        );
        assert_eq!(folder.files(), files);
        let renewed = folder.keep(&["localhost"], START + 365 * DAY_S).unwrap();
        assert_ne!(renewed, first);
        // A name that it is not made for.
        let wider = folder.keep(&["10.0.0.1"], START + 365 * DAY_S).unwrap();
        assert_ne!(wider, renewed);
        assert_eq!(folder.files()[0], wider);
        // Half of it is gone.
        fs::remove_file(folder.0.join("key.pem")).unwrap();
        assert_ne!(
            folder.keep(&["10.0.0.1"], START + 365 * DAY_S).unwrap(),
            wider
        );
    }

    #[test]
    fn files_of_somebody_else_are_not_overwritten() {
        let folder = Folder::new("foreign");
        fs::create_dir_all(&folder.0).unwrap();
        fs::write(folder.0.join("key.pem"), "precious").unwrap();
        let error = folder.keep(&["localhost"], START).unwrap_err().to_string();
        assert!(
            error.contains("key.pem was not made by --tls-self-signed"),
            "{error}"
        );
        assert_eq!(
            fs::read_to_string(folder.0.join("key.pem")).unwrap(),
            "precious"
        );
        assert!(!folder.0.join("ca.pem").exists());
    }
}
