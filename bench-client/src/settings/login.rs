//! A user's login: the name, and the password as it goes over the wire.

use std::fmt;
use std::sync::{Arc, OnceLock};

use kvlab_protocol::aerospike::credential::{CREDENTIAL_LEN, credential};

/// A password. Its `Debug` form does not show it, and it has no `Display` form.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// The password, as the user types it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Password {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(***)")
    }
}

/// The login of an Aerospike user, in the internal mode.
///
/// The password is hashed once, however many threads and connections use it.
#[derive(Clone, Debug)]
pub struct AerospikeLogin(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    user: String,
    password: Password,
    credential: OnceLock<[u8; CREDENTIAL_LEN]>,
}

impl AerospikeLogin {
    /// The login of `user`.
    #[must_use]
    pub fn new(user: impl Into<String>, password: impl Into<Password>) -> Self {
        Self(Arc::new(Inner {
            user: user.into(),
            password: password.into(),
            credential: OnceLock::new(),
        }))
    }

    /// The user's name.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.0.user
    }

    /// The hashed password, as a login sends it. The first call takes some 50 ms.
    #[must_use]
    pub fn credential(&self) -> &[u8; CREDENTIAL_LEN] {
        let password = self.0.password.reveal().as_bytes();
        self.0.credential.get_or_init(|| credential(password))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_debug_form_shows_a_password() {
        let login = AerospikeLogin::new("alice", "secret");
        assert!(!format!("{:?} {login:?}", Password::from("secret")).contains("secret"));
        assert_eq!(login.user(), "alice");
    }
}
