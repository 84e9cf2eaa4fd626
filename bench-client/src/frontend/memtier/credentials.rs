//! Login as `-a` takes it.
//!
//! ```text
//! PASSWORD           AUTH password
//! USER:PASSWORD      AUTH user password; the first colon parts them
//! :PASSWORD          AUTH password, for a password that has a colon itself
//! ```

use std::fmt;

/// User and password; shown without the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// User; `None` logs in with the password alone.
    pub user: Option<String>,
    /// Password.
    pub password: String,
}

impl Credentials {
    /// Takes the text of `-a` apart. Every text has a meaning; the empty one is no login.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        Some(match text.split_once(':') {
            None => Self::password(text),
            Some(("", password)) => Self::password(password),
            Some((user, password)) => Self {
                user: Some(user.to_owned()),
                password: password.to_owned(),
            },
        })
    }

    fn password(password: &str) -> Self {
        Self {
            user: None,
            password: password.to_owned(),
        }
    }

    /// The text of `-a` that means this.
    #[must_use]
    pub fn as_text(&self) -> String {
        match &self.user {
            Some(user) => format!("{user}:{}", self.password),
            None if self.password.contains(':') => format!(":{}", self.password),
            None => self.password.clone(),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.user {
            Some(user) => write!(f, "Credentials({user}:***)"),
            None => f.write_str("Credentials(***)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_are_told_apart() {
        let table: [(&str, Option<&str>, &str); 5] = [
            ("secret", None, "secret"),
            ("bob:secret", Some("bob"), "secret"),
            ("bob:se:cret", Some("bob"), "se:cret"),
            (":se:cret", None, "se:cret"),
            ("bob:", Some("bob"), ""),
        ];
        for (text, user, password) in table {
            let credentials = Credentials::parse(text).unwrap();
            assert_eq!(credentials.user.as_deref(), user, "{text}");
            assert_eq!(credentials.password, password, "{text}");
            assert_eq!(credentials.as_text(), text);
            assert!(!format!("{credentials:?}").contains("cret"), "{text}");
        }
        assert_eq!(Credentials::parse(""), None);
    }
}
