//! What is wrong with a server's TLS, in words that say what to look at.

/// Why TLS with a server did not come about. None of these goes away by itself, so they end a run
/// that has not had a reply yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsFault {
    /// The certificate is signed by an authority that is not trusted.
    #[error("the server's certificate is signed by an authority that is not trusted")]
    Untrusted,
    /// The certificate is for other names.
    #[error("the server's certificate is for {presented}, not for {wanted}")]
    OtherName {
        /// The name it was looked at for.
        wanted: String,
        /// The names it has.
        presented: String,
    },
    /// The certificate's time is over.
    #[error("the server's certificate has expired")]
    Expired,
    /// The certificate's time has not come.
    #[error("the server's certificate is not valid yet")]
    NotYetValid,
    /// The certificate is of no use for another reason.
    #[error("the server's certificate cannot be accepted: {0}")]
    Certificate(String),
    /// What the server sent is not TLS.
    #[error("the server does not speak TLS on this port")]
    NoTls,
    /// The server ended the connection in the middle of the handshake.
    #[error(
        "the server closed the connection during the TLS handshake; it may speak no TLS on this port"
    )]
    Closed,
    /// The server wants to know who the client is.
    #[error("the server requires a certificate of the client")]
    CertificateRequired,
    /// The server does not accept who the client is.
    #[error("the server refused the client's certificate: {0}")]
    CertificateRefused(String),
    /// Anything else, in the words of TLS.
    #[error("TLS failed: {0}")]
    Other(String),
}
