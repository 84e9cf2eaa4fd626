//! The address of `--uri`.
//!
//! ```text
//! redis[s]://[[user:]password@]host[:port][/database]
//! ```
//!
//! `rediss` turns TLS on. A text before `@` without a colon is a password, as with the original.
//! Percent escapes are resolved and an IPv6 address stands in brackets; the original can do
//! neither, takes the first `@` as the end of the login, and dies of a URI without a host.

use std::fmt;

use super::credentials::Credentials;
use super::{Name, UsageError};

/// A URI taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    /// Whether the scheme asks for TLS.
    pub tls: bool,
    /// Login.
    pub credentials: Option<Credentials>,
    /// Name or address, without brackets.
    pub host: String,
    /// Port, if one is given.
    pub port: Option<u16>,
    /// Database, if one is given.
    pub database: Option<u32>,
}

impl Uri {
    /// Takes a URI apart.
    ///
    /// # Errors
    /// Another scheme, no host, a port outside of 1 to 65535, a database that is no number, a
    /// broken percent escape, or a part behind `?` or `#`.
    pub fn parse(text: &str) -> Result<Self, UsageError> {
        let wrong = |expected: &str| {
            UsageError::new(
                Name::Uri.spelled(),
                expected,
                // What stands before the @ may be a password.
                format_args!("{:?}", without_login(text)),
            )
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong(FORM))?;
        let tls = match scheme {
            "redis" => false,
            "rediss" => true,
            _ => return Err(wrong("the scheme redis or rediss")),
        };
        if rest.contains(['?', '#']) {
            return Err(wrong("no part behind ? or #"));
        }
        // The last @: a password may hold one, a host may not.
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (login, place),
            None => ("", rest),
        };
        let credentials = match login.split_once(':') {
            Some((user, password)) => Some((user, password)),
            None if login.is_empty() => None,
            None => Some(("", login)),
        };
        let credentials = credentials
            .map(|(user, password)| {
                Some(Credentials {
                    user: Some(unescape(user)?).filter(|user| !user.is_empty()),
                    password: unescape(password)?,
                })
            })
            .map(|read| read.ok_or_else(|| wrong("two hexadecimal digits after each %")))
            .transpose()?;
        let (address, path) = place.split_once('/').unwrap_or((place, ""));
        let (host, port) = host_and_port(address)
            .ok_or_else(|| wrong("a host, and a port from 1 to 65535 if there is one"))?;
        let database = match path {
            "" => None,
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(
                digits
                    .parse()
                    .map_err(|_| wrong("the number of a database"))?,
            ),
            _ => return Err(wrong("the number of a database behind the /")),
        };
        Ok(Self {
            tls,
            credentials,
            host: unescape(host).ok_or_else(|| wrong("two hexadecimal digits after each %"))?,
            port,
            database,
        })
    }
}

impl fmt::Display for Uri {
    /// The URI as reports show it: without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.tls { "rediss://" } else { "redis://" })?;
        match self.credentials.as_ref().map(|login| &login.user) {
            Some(Some(user)) => write!(f, "{user}:***@")?,
            Some(None) => f.write_str("***@")?,
            None => {}
        }
        if self.host.contains(':') {
            write!(f, "[{}]", self.host)?;
        } else {
            f.write_str(&self.host)?;
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        if let Some(database) = self.database {
            write!(f, "/{database}")?;
        }
        Ok(())
    }
}

/// Host and port of `host`, `host:port`, `[address]` or `[address]:port`.
pub(super) fn host_and_port(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(inside) => inside.split_once(']')?,
        None => match text.find(':') {
            Some(colon) => text.split_at(colon),
            None => (text, ""),
        },
    };
    let port = match rest.strip_prefix(':') {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().ok().filter(|port| *port > 0)?)
        }
        None if rest.is_empty() => None,
        _ => return None,
    };
    (!host.is_empty()).then_some((host, port))
}

/// Resolves percent escapes; `None` where they are broken or no UTF-8.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()
}

fn without_login(text: &str) -> String {
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, place))) => format!("{scheme}://…@{place}"),
        (None, Some((_, place))) => format!("…@{place}"),
        _ => text.to_owned(),
    }
}

const FORM: &str = "redis://[[user:]password@]host[:port][/db] or rediss://…";

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(host: &str, port: Option<u16>, database: Option<u32>) -> Uri {
        Uri {
            tls: false,
            credentials: None,
            host: host.into(),
            port,
            database,
        }
    }

    #[test]
    fn uris_are_taken_apart() {
        let login = |user: &str, password: &str| {
            Some(Credentials {
                user: Some(user.to_owned()).filter(|user| !user.is_empty()),
                password: password.to_owned(),
            })
        };
        let table = [
            ("redis://h", plain("h", None, None)),
            ("redis://h:7000/3", plain("h", Some(7000), Some(3))),
            ("redis://h/", plain("h", None, None)),
            ("redis://[::1]:7000", plain("::1", Some(7000), None)),
            (
                "redis://[fe80::1%25eth0]",
                plain("fe80::1%eth0", None, None),
            ),
            (
                "rediss://bob:s%3Acret%40@h:1/2",
                Uri {
                    tls: true,
                    credentials: login("bob", "s:cret@"),
                    ..plain("h", Some(1), Some(2))
                },
            ),
            (
                "redis://secret@h",
                Uri {
                    credentials: login("", "secret"),
                    ..plain("h", None, None)
                },
            ),
            (
                "redis://:pw@h",
                Uri {
                    credentials: login("", "pw"),
                    ..plain("h", None, None)
                },
            ),
            (
                "redis://bob:p@ss@h",
                Uri {
                    credentials: login("bob", "p@ss"),
                    ..plain("h", None, None)
                },
            ),
        ];
        for (text, expected) in table {
            assert_eq!(Uri::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn shown_uris_have_no_password() {
        for (text, shown) in [
            ("redis://h:1/2", "redis://h:1/2"),
            ("rediss://bob:se@cret@h/0", "rediss://bob:***@h/0"),
            ("redis://secret@[::1]:7", "redis://***@[::1]:7"),
        ] {
            let uri = Uri::parse(text).unwrap();
            assert_eq!(uri.to_string(), shown);
            assert!(!format!("{uri:?}").contains("cret"), "{uri:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for text in [
            "",
            "not-a-uri",
            "invalid://localhost:6379",
            "redis://",
            "redis:///0",
            "redis://:7000",
            "redis://h:99999",
            "redis://h:0",
            "redis://h:x",
            "redis://h:",
            "redis://h/invalid",
            "redis://h/-1",
            "redis://h/4294967296",
            "redis://h/0?x=1",
            "redis://[::1",
            "redis://[::1]x",
            "redis://bob:secret%zz@h",
            "redis://bob:secret@h:x",
        ] {
            let error = Uri::parse(text).unwrap_err().to_string();
            assert!(error.starts_with("--uri: expected "), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
