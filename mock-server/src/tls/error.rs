//! Why a server cannot speak TLS.

use std::io;
use std::path::PathBuf;

/// Why a server cannot speak TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or holds no PEM of the kind that is wanted.
    #[error("cannot read {what} from {}: {reason}", path.display())]
    Read {
        /// What was wanted.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it cannot be had.
        reason: String,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The private key is not the one of the certificate.
    #[error("the key in {} is not the one of the certificate in {}", key.display(), certificate.display())]
    OtherKey {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        certificate: PathBuf,
    },
    /// A folder for self-signed certificates holds files of somebody else, which are not replaced.
    #[error(
        "{} was not made by --tls-self-signed and is not a certificate that serves here ({reason}): \
         remove it, name another folder, or use it with --tls-cert and --tls-key", path.display()
    )]
    Foreign {
        /// The file that is in the way.
        path: PathBuf,
        /// Why it does not serve.
        reason: String,
    },
    /// A certificate could not be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// The certificate, the key or the client authorities are of no use for TLS.
    #[error("cannot speak TLS: {0}")]
    Unusable(String),
}
