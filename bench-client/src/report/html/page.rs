//! The page around the charts: head, style, script, and the parts that pages share.
//!
//! A page is one file. Its content security policy forbids every request and every script and style
//! but the two that it carries, which it names by their hash; it works without the script too.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// A whole page.
#[must_use]
pub fn page(title: &str, body: &Markup) -> String {
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        source(STYLE),
        source(SCRIPT)
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (body)
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    let mut text = page.into_string();
    text.push('\n');
    text
}

/// The source expression of an inline text in a content security policy.
fn source(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

/// How something came out, for the colour of its badge; the word is always there too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Good.
    Good,
    /// Neither.
    Doubtful,
    /// Bad.
    Bad,
    /// Not judged.
    Plain,
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Doubtful => "doubtful",
            Self::Bad => "bad",
            Self::Plain => "plain",
        }
    }
}

/// A word in a coloured frame.
#[must_use]
pub fn badge(tone: Tone, word: &str) -> Markup {
    html! { span.badge.(tone.class()) { (word) } }
}

/// A table: a caption for those who hear it, headings, and rows whose first cell is their heading.
#[must_use]
pub fn table(
    caption: &str,
    heads: impl IntoIterator<Item = impl AsRef<str>>,
    rows: impl IntoIterator<Item = Vec<Markup>>,
) -> Markup {
    html! {
        table {
            caption { (caption) }
            thead {
                tr {
                    @for head in heads {
                        th scope="col" { (head.as_ref()) }
                    }
                }
            }
            tbody {
                @for row in rows {
                    tr {
                        @for (place, cell) in row.iter().enumerate() {
                            @if place == 0 {
                                th scope="row" { (cell) }
                            } @else {
                                td { (cell) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Something wide in a box that scrolls by itself, also with the keyboard.
#[must_use]
pub fn scrolling(name: &str, inner: &Markup) -> Markup {
    html! { div.scrolling role="region" aria-label=(name) tabindex="0" { (inner) } }
}

/// Facts: terms and what they are.
#[must_use]
pub fn facts(facts: impl IntoIterator<Item = (impl AsRef<str>, Markup)>) -> Markup {
    terms("facts", facts)
}

/// The few facts that are looked for first, in large letters.
#[must_use]
pub fn tiles(facts: impl IntoIterator<Item = (impl AsRef<str>, Markup)>) -> Markup {
    terms("tiles", facts)
}

fn terms(class: &str, terms: impl IntoIterator<Item = (impl AsRef<str>, Markup)>) -> Markup {
    html! {
        dl.(class) {
            @for (term, fact) in terms {
                div {
                    dt { (term.as_ref()) }
                    dd { (fact) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_names_its_style_and_script_by_their_hash() {
        // The SHA-256 of nothing, as published with the algorithm.
        assert_eq!(
            source(""),
            "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
        );
        let text = page("a < b", &html! { p { "x" } });
        assert!(text.contains("<title>a &lt; b</title>"), "{text}");
        assert!(text.contains(&source(STYLE)) && text.contains(&source(SCRIPT)));
        for outside in ["http://", "https://", "@import", "url("] {
            let allowed = "http://www.w3.org/2000/svg";
            assert!(!text.replace(allowed, "").contains(outside), "{outside}");
        }
    }

    #[test]
    fn the_first_cell_of_a_row_is_its_heading() {
        let text = table("t", ["a", "b"], [vec![html! { "x" }, html! { "y" }]]).into_string();
        assert!(
            text.contains("<th scope=\"row\">x</th><td>y</td>"),
            "{text}"
        );
    }
}
