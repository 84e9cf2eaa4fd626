//! Errors of RESP servers that may pass, so that a request is worth sending again.
//!
//! What the command itself, the data or the account is at fault for does not pass: the same bytes
//! get the same answer. Everything else may (`LOADING`, `BUSY`, `TRYAGAIN`, `OOM`, `CLUSTERDOWN`).
//! A redirection does not pass either: the same server gives it again, and a cluster's driver
//! follows it. Source: the errors of redis-server 7.0 and what memtier_benchmark 2.4 says it does.

use crate::settings::RetryOn;

/// Tells errors that may pass from others, and keeps the words of the last one.
#[derive(Debug)]
pub(super) struct Passing {
    only: Vec<String>,
    last: String,
}

impl Passing {
    pub(super) fn new(on: &RetryOn) -> Self {
        Self {
            only: on.prefixes.clone(),
            last: String::new(),
        }
    }

    /// Takes note of an error, without the mark that makes it one.
    pub(super) fn note(&mut self, text: String) {
        self.last = text;
    }

    /// The words of the last error.
    pub(super) fn words(&self) -> &str {
        &self.last
    }

    /// Whether the last error may pass.
    pub(super) fn may_pass(&self) -> bool {
        let begins = |prefix: &str| self.last.starts_with(prefix);
        !LASTING.iter().copied().any(begins)
            && (self.only.is_empty() || self.only.iter().any(|prefix| begins(prefix)))
    }
}

const LASTING: [&str; 11] = [
    "WRONGTYPE",
    "WRONGPASS",
    "NOAUTH",
    "NOPERM",
    "NOSCRIPT",
    "NOREPLICAS",
    "ERR unknown",
    "ERR wrong number of arguments",
    "ERR syntax error",
    "MOVED ",
    "ASK ",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(only: &[&str], text: &str) -> bool {
        let prefixes = only.iter().map(|prefix| (*prefix).to_owned()).collect();
        let mut passing = Passing::new(&RetryOn { prefixes });
        passing.note(text.to_owned());
        assert_eq!(passing.words(), text);
        passing.may_pass()
    }

    #[test]
    fn what_the_request_is_at_fault_for_never_passes() {
        for text in [
            "WRONGTYPE Operation against a key holding the wrong kind of value",
            "NOAUTH Authentication required.",
            "ERR unknown command 'x', with args beginning with: ",
            "ERR wrong number of arguments for 'get' command",
            "ERR syntax error",
            "MOVED 1 127.0.0.1:7000",
        ] {
            assert!(!passes(&[], text), "{text}");
            assert!(!passes(&["ERR", "WRONGTYPE", "NOAUTH"], text), "{text}");
        }
        for text in [
            "LOADING Redis is loading the dataset in memory",
            "ERR busy just now",
        ] {
            assert!(passes(&[], text), "{text}");
        }
    }

    #[test]
    fn a_list_of_prefixes_leaves_out_all_other_errors() {
        assert!(passes(&["BUSY", "LOAD"], "LOADING Redis is loading"));
        assert!(!passes(&["BUSY", "LOAD"], "TRYAGAIN Multiple keys request"));
    }
}
