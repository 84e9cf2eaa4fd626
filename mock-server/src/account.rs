//! A name and a password with which clients log in, on both protocols.
//!
//! ```text
//! NAME:PASSWORD        alice:s3:cret is the user alice with the password s3:cret
//! ```

use std::fmt;
use std::str::FromStr;

use crate::config::ConfigError;

/// A user whom the server knows from its start.
///
/// On RESP it may do everything, as `user NAME on >PASSWORD ~* &* +@all`; on Aerospike it may read
/// and write. [`Display`](fmt::Display) writes the password, `Debug` does not.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    name: String,
    password: String,
}

impl Account {
    /// More accounts are refused: a password of an Aerospike user takes some 50 ms to prepare.
    pub const MAX: usize = 64;
    /// Longest name in bytes, the bound of an Aerospike server.
    pub const NAME_MAX: usize = 63;
    /// Longest password in bytes, as in Redis.
    pub const PASSWORD_MAX: usize = 512;

    /// A user of this name and password.
    ///
    /// # Errors
    /// When one of them is empty or too long, when there is a colon, a blank or a control character in
    /// the name, or a NUL in the password.
    pub fn new(name: impl Into<String>, password: impl Into<String>) -> Result<Self, ConfigError> {
        let (name, password) = (name.into(), password.into());
        let allowed = |letter: char| {
            !letter.is_whitespace() && !letter.is_control() && !":;,".contains(letter)
        };
        if !(1..=Self::NAME_MAX).contains(&name.len()) || !name.chars().all(allowed) {
            return Err(ConfigError {
                what: "a user",
                found: name,
                expected: "a name of 1 to 63 bytes without blanks and : ; ,",
            });
        }
        if !(1..=Self::PASSWORD_MAX).contains(&password.len()) || password.contains('\0') {
            return Err(ConfigError {
                what: "the password of a user",
                found: format!("{} bytes long", password.len()),
                expected: "1 to 512 bytes without NUL",
            });
        }
        Ok(Self { name, password })
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The password, as the user types it.
    #[must_use]
    pub fn password(&self) -> &str {
        &self.password
    }
}

impl FromStr for Account {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text.split_once(':') {
            Some((name, password)) => Self::new(name, password),
            None => Err(ConfigError {
                what: "a user",
                found: text.to_owned(),
                expected: "NAME:PASSWORD",
            }),
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.password)
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_colon_ends_the_name() {
        let account: Account = "alice:s3:cret".parse().unwrap();
        assert_eq!((account.name(), account.password()), ("alice", "s3:cret"));
        assert_eq!(account.to_string(), "alice:s3:cret");
        assert!(!format!("{account:?}").contains("cret"));
    }

    #[test]
    fn what_is_no_account_is_refused_without_its_password() {
        let long = format!("u:{}", "x".repeat(513));
        for (text, message) in [
            ("alice", "a user is 'alice'; expected NAME:PASSWORD"),
            (
                ":secret",
                "a user is ''; expected a name of 1 to 63 bytes without blanks and : ; ,",
            ),
            (
                "a b:secret",
                "a user is 'a b'; expected a name of 1 to 63 bytes without blanks and : ; ,",
            ),
            (
                "alice:",
                "the password of a user is '0 bytes long'; expected 1 to 512 bytes without NUL",
            ),
            (
                &long,
                "the password of a user is '513 bytes long'; expected 1 to 512 bytes without NUL",
            ),
        ] {
            let error = text.parse::<Account>().unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
