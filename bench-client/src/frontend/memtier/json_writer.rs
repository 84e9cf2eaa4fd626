//! JSON in memtier's shape: tabs, and the commas at the beginning of lines.
//!
//! ```text
//! {
//!     "configuration":{
//!         "server": "127.0.0.1"
//!         ,"port": 7001
//!         }
//!     }
//! ```
//!
//! Whatever is written, the result is valid: strings are escaped, a key that an object has already
//! gets a number behind it, numbers that are none become `null`, and what is open is closed.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::Value;

/// Writes one document.
#[derive(Debug)]
pub struct JsonWriter {
    text: String,
    open: Vec<Open>,
}

/// An object or a list that is not yet closed.
#[derive(Debug)]
struct Open {
    list: bool,
    /// Keys of an object.
    keys: HashSet<String>,
    empty: bool,
}

impl Open {
    fn new(list: bool) -> Self {
        Self {
            list,
            keys: HashSet::new(),
            empty: true,
        }
    }
}

impl Default for JsonWriter {
    fn default() -> Self {
        Self {
            text: "{".to_owned(),
            open: vec![Open::new(false)],
        }
    }
}

impl JsonWriter {
    /// Opens an object under a key.
    pub fn object(&mut self, key: &str) {
        self.key(key);
        self.text.push('{');
        self.open.push(Open::new(false));
    }

    /// Opens a list under a key.
    pub fn list(&mut self, key: &str) {
        self.key(key);
        self.text.push('[');
        self.open.push(Open::new(true));
    }

    /// Opens an object as the next element of a list.
    pub fn element(&mut self) {
        self.separate();
        self.text.push('{');
        self.open.push(Open::new(false));
    }

    /// Closes what was opened last.
    pub fn close(&mut self) {
        let Some(open) = self.open.pop() else { return };
        self.text.push('\n');
        // The closing bracket stands under the keys.
        for _ in 0..=self.open.len() {
            self.text.push('\t');
        }
        self.text.push(if open.list { ']' } else { '}' });
    }

    /// A string, a whole number, a switch or nothing.
    pub fn value(&mut self, key: &str, value: impl Into<Value>) {
        self.key(key);
        let value: Value = value.into();
        let _ = write!(self.text, " {value}");
    }

    /// A number with this many digits behind the point.
    pub fn number(&mut self, key: &str, value: f64, digits: usize) {
        self.key(key);
        if value.is_finite() {
            let _ = write!(self.text, " {value:.digits$}");
        } else {
            self.text.push_str(" null");
        }
    }

    /// A list of whole numbers in one line.
    pub fn numbers(&mut self, key: &str, values: &[u32]) {
        self.value(key, values.to_vec());
    }

    /// Closes what is open and gives the document.
    #[must_use]
    pub fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.text.push('\n');
        self.text
    }

    fn key(&mut self, key: &str) {
        self.separate();
        let key = match self.open.last_mut() {
            Some(open) => unused(&mut open.keys, key),
            None => key.to_owned(),
        };
        let _ = write!(self.text, "{}:", Value::String(key));
    }

    fn separate(&mut self) {
        self.text.push('\n');
        for _ in 0..self.open.len() {
            self.text.push('\t');
        }
        if let Some(open) = self.open.last_mut() {
            if !open.empty {
                self.text.push(',');
            }
            open.empty = false;
        }
    }
}

/// The key, or with the first number behind it that makes it a new one: `Sets`, `Sets (2)`.
fn unused(keys: &mut HashSet<String>, key: &str) -> String {
    let mut name = key.to_owned();
    let mut number = 1;
    while !keys.insert(name.clone()) {
        number += 1;
        name = format!("{key} ({number})");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shape_is_that_of_the_original() {
        let mut json = JsonWriter::default();
        json.object("configuration");
        json.value("server", "127.0.0.1");
        json.value("port", 7001);
        json.number("key_stddev", 0.0, 6);
        json.close();
        json.list("SET");
        json.element();
        json.number("<=msec", 0.0234, 3);
        json.close();
        json.element();
        json.number("percent", 100.0, 3);
        let expected = "{\n\t\"configuration\":{\n\t\t\"server\": \"127.0.0.1\"\n\t\t,\"port\": 7001\
                        \n\t\t,\"key_stddev\": 0.000000\n\t\t}\n\t,\"SET\":[\n\t\t{\
                        \n\t\t\t\"<=msec\": 0.023\n\t\t\t}\n\t\t,{\n\t\t\t\"percent\": 100.000\
                        \n\t\t\t}\n\t\t]\n\t}\n";
        assert_eq!(json.finish(), expected);
    }

    #[test]
    fn any_string_any_number_and_any_key_stay_valid() {
        let mut json = JsonWriter::default();
        json.value("pre\"fix\u{1}", "a\"b\\c\n\u{0}é");
        json.number("n", f64::NAN, 2);
        json.object("Sets");
        json.close();
        json.object("Sets");
        json.value("unix socket", None::<String>);
        let value: Value = serde_json::from_str(&json.finish()).unwrap();
        assert_eq!(value["pre\"fix\u{1}"], "a\"b\\c\n\u{0}é");
        assert!(value["n"].is_null());
        assert!(value["Sets (2)"]["unix socket"].is_null());
        assert_eq!(value.as_object().unwrap().len(), 4);
    }
}
