//! The recorded vectors under `tests/data/resp`.

use serde::Deserialize;

/// Bytes kept in JSON as one character per byte.
pub(crate) fn bytes(text: &str) -> Vec<u8> {
    text.chars()
        .map(|c| u8::try_from(u32::from(c)).expect("one byte per character"))
        .collect()
}

/// One connection to a real server: what was sent, what came back, whether it was closed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestCase {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) requirepass: bool,
    request: String,
    #[serde(default)]
    pad: String,
    #[serde(default)]
    pad_count: usize,
    reply: String,
    pub(crate) closed: bool,
}

impl RequestCase {
    pub(crate) fn request(&self) -> Vec<u8> {
        let mut request = bytes(&self.request);
        request.extend(bytes(&self.pad).repeat(self.pad_count));
        request
    }

    pub(crate) fn reply(&self) -> Vec<u8> {
        bytes(&self.reply)
    }
}

/// All recorded connections.
pub(crate) fn request_cases() -> Vec<RequestCase> {
    #[derive(Deserialize)]
    struct File {
        cases: Vec<RequestCase>,
    }
    let file: File = serde_json::from_str(include_str!("../data/resp/requests.json")).unwrap();
    file.cases
}

/// The rows of a table file, under `key`.
pub(crate) fn rows<const N: usize>(file: &str, key: &str) -> Vec<[String; N]> {
    let mut file: serde_json::Value = serde_json::from_str(file).unwrap();
    let rows: Vec<Vec<String>> = serde_json::from_value(file[key].take()).unwrap();
    rows.into_iter()
        .map(|row| row.try_into().expect("row width"))
        .collect()
}
