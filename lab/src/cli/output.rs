//! Where results go: a text for people, and a JSON document for programs where one is asked for.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context as _;

/// Writes the text to `out` and the document to `file`. When the file is `-`, the document goes to
/// `out` and the text to `err`.
///
/// # Errors
/// When something cannot be written; a reader that has seen enough is no failure.
pub(super) fn write(
    text: &str,
    json: impl FnOnce() -> serde_json::Result<String>,
    file: Option<&Path>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<()> {
    let to_stdout = file.is_some_and(|file| file.as_os_str() == "-");
    // A text that cannot be written keeps the document from nothing.
    let document = file.map(|file| {
        let document = json().context("cannot render the result as JSON")?;
        if to_stdout {
            return Ok(unless_closed(out.write_all(document.as_bytes()))?);
        }
        fs::write(file, document).with_context(|| format!("cannot write {}", file.display()))
    });
    let for_people: &mut dyn Write = if to_stdout { err } else { out };
    let shown = unless_closed(for_people.write_all(text.as_bytes()));
    document.unwrap_or(Ok(()))?;
    Ok(shown?)
}

/// A reader that has seen enough is no failure.
pub(super) fn unless_closed(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
