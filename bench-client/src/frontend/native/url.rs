//! The URL of the server to load.
//!
//! ```text
//! redis://[user:password@]host[:port][/database]                 port 6379, database 0
//! aerospike://[user:password@]host[:port][/namespace[/set]]      port 3000, namespace test, no set
//! ```
//!
//! `rediss://` and `aerospikes://` are the same over TLS; the port of the latter is 4333.
//!
//! User and password may hold percent escapes. A host is a name, an IPv4 address or an IPv6 address in
//! brackets.

use std::fmt;
use std::str::FromStr;

use url::Url;

/// A server as typed.
#[derive(Clone, PartialEq, Eq)]
pub struct TargetUrl {
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// User, if one is given.
    pub user: Option<String>,
    /// Password, if one is given.
    pub password: Option<String>,
    /// Whether the scheme asks for TLS.
    pub tls: bool,
    /// What the path says, by protocol.
    pub place: Place,
}

/// Protocol, and where in the server the data lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A RESP server.
    Redis {
        /// Number for `SELECT`.
        database: u32,
    },
    /// An Aerospike cluster.
    Aerospike {
        /// Namespace.
        namespace: String,
        /// Set; empty for none.
        set: String,
    },
}

impl Place {
    /// Scheme of the URL, without TLS.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        match self {
            Self::Redis { .. } => "redis",
            Self::Aerospike { .. } => "aerospike",
        }
    }
}

impl FromStr for TargetUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| format!("{error}; expected {FORMS}"))?;
        let default_port = match url.scheme() {
            "redis" | "rediss" => 6379,
            "aerospike" => 3000,
            "aerospikes" => 4333,
            other => return Err(format!("expected {FORMS}, found the scheme {other:?}")),
        };
        let is_aerospike = url.scheme().starts_with("aerospike");
        if url.query().is_some() || url.fragment().is_some() {
            return Err("expected no ? or # part".to_owned());
        }
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| format!("expected a host, as in {FORMS}"))?;
        let user = unescape(url.username())?;
        let password = url.password().map(unescape).transpose()?;
        if password.is_none() && !user.is_empty() {
            return Err("expected a password after the user, as in user:password@host".to_owned());
        }
        let path = url.path();
        let path = unescape(path.strip_prefix('/').unwrap_or(path))?;
        Ok(Self {
            host: unescape(host.trim_matches(['[', ']']))?,
            port: url.port().unwrap_or(default_port),
            user: Some(user).filter(|user| !user.is_empty()),
            password,
            tls: matches!(url.scheme(), "rediss" | "aerospikes"),
            place: if is_aerospike {
                aerospike_place(&path)?
            } else {
                redis_place(&path)?
            },
        })
    }
}

fn redis_place(path: &str) -> Result<Place, String> {
    let database = if path.is_empty() {
        0
    } else {
        path.parse()
            .map_err(|_| format!("expected the number of a database, found {path:?}"))?
    };
    Ok(Place::Redis { database })
}

fn aerospike_place(path: &str) -> Result<Place, String> {
    let (namespace, set) = path.split_once('/').unwrap_or((path, ""));
    let namespace = if namespace.is_empty() {
        "test"
    } else {
        namespace
    };
    if set.contains('/') {
        return Err(format!("expected namespace/set, found {path:?}"));
    }
    // The server's own bounds.
    for (what, name, most) in [("namespace", namespace, 31), ("set", set, 63)] {
        if name.len() > most {
            return Err(format!(
                "expected a {what} of at most {most} bytes, found {name:?}"
            ));
        }
    }
    Ok(Place::Aerospike {
        namespace: namespace.to_owned(),
        set: set.to_owned(),
    })
}

/// Resolves percent escapes.
fn unescape(text: &str) -> Result<String, String> {
    let wrong = || format!("expected two hexadecimal digits after % in {text:?}");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || {
            let digit = rest.next().and_then(|byte| char::from(byte).to_digit(16));
            digit.and_then(|digit| u8::try_from(digit).ok())
        };
        let (high, low) = (digit().ok_or_else(wrong)?, digit().ok_or_else(wrong)?);
        bytes.push(high * 16 + low);
    }
    String::from_utf8(bytes).map_err(|_| format!("expected UTF-8, found {text:?}"))
}

impl fmt::Display for TargetUrl {
    /// The URL without user and password, as reports show it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secure = if self.tls { "s" } else { "" };
        write!(f, "{}{secure}://", self.place.scheme())?;
        if self.host.contains(':') {
            write!(f, "[{}]", self.host)?;
        } else {
            f.write_str(&self.host)?;
        }
        write!(f, ":{}", self.port)?;
        match &self.place {
            Place::Redis { database } => write!(f, "/{database}"),
            Place::Aerospike { namespace, set } if set.is_empty() => write!(f, "/{namespace}"),
            Place::Aerospike { namespace, set } => write!(f, "/{namespace}/{set}"),
        }
    }
}

impl fmt::Debug for TargetUrl {
    /// Never shows the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TargetUrl({self})")
    }
}

const FORMS: &str =
    "redis://[user:password@]host:port/db or aerospike://[user:password@]host:port/namespace/set";

#[cfg(test)]
mod tests {
    use super::*;

    fn redis(host: &str, port: u16, database: u32) -> TargetUrl {
        TargetUrl {
            host: host.to_owned(),
            port,
            user: None,
            password: None,
            tls: false,
            place: Place::Redis { database },
        }
    }

    #[test]
    fn redis_urls_are_taken_apart() {
        let table = [
            ("redis://localhost", redis("localhost", 6379, 0)),
            ("redis://10.0.0.1:7000/3", redis("10.0.0.1", 7000, 3)),
            ("redis://[::1]:7000/", redis("::1", 7000, 0)),
            (
                "rediss://h/1",
                TargetUrl {
                    tls: true,
                    ..redis("h", 6379, 1)
                },
            ),
            (
                "redis://joe:s%3Acret%40@h:1/2",
                TargetUrl {
                    user: Some("joe".into()),
                    password: Some("s:cret@".into()),
                    ..redis("h", 1, 2)
                },
            ),
            (
                "redis://:pw@h",
                TargetUrl {
                    password: Some("pw".into()),
                    ..redis("h", 6379, 0)
                },
            ),
        ];
        for (text, expected) in table {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn aerospike_urls_are_taken_apart() {
        let table = [
            ("aerospike://h", "h", 3000, "test", ""),
            ("aerospike://h:3100/bar", "h", 3100, "bar", ""),
            ("aerospike://h/bar/people", "h", 3000, "bar", "people"),
            ("aerospikes://h", "h", 4333, "test", ""),
        ];
        for (text, host, port, namespace, set) in table {
            let url: TargetUrl = text.parse().unwrap();
            assert_eq!((url.host.as_str(), url.port), (host, port), "{text}");
            let place = Place::Aerospike {
                namespace: namespace.into(),
                set: set.into(),
            };
            assert_eq!(url.place, place, "{text}");
            assert_eq!((url.user, url.password), (None, None));
            assert_eq!(url.tls, text.starts_with("aerospikes"));
        }
        let url: TargetUrl = "aerospike://joe:p%40w@h/bar".parse().unwrap();
        assert_eq!(url.user.as_deref(), Some("joe"));
        assert_eq!(url.password.as_deref(), Some("p@w"));
        assert_eq!(url.to_string(), "aerospike://h:3000/bar");
    }

    #[test]
    fn other_urls_are_refused() {
        for text in [
            "localhost:6379",
            "http://h",
            "redis://",
            "redis:///0",
            "redis://h/x",
            "redis://h/-1",
            "redis://h/0?x=1",
            "redis://joe@h",
            "redis://h:70000",
            "redis://a:%zz@h",
            "aerospike://h/a/b/c",
            "aerospike://h/a-namespace-of-thirty-two-bytes-x",
        ] {
            assert!(text.parse::<TargetUrl>().is_err(), "{text}");
        }
    }

    #[test]
    fn shown_url_has_no_password() {
        let url: TargetUrl = "redis://joe:secret@[::1]/4".parse().unwrap();
        assert_eq!(url.to_string(), "redis://[::1]:6379/4");
        assert!(!format!("{url:?}").contains("secret"));
        let url: TargetUrl = "aerospike://h/ns/set".parse().unwrap();
        assert_eq!(url.to_string(), "aerospike://h:3000/ns/set");
        for text in ["rediss://h:6379/0", "aerospikes://h:4333/test"] {
            assert_eq!(text.parse::<TargetUrl>().unwrap().to_string(), text);
        }
    }
}
