//! The syntax line of a command, taken apart for COMMAND DOCS.
//!
//! ```text
//! key                      an argument               LEN             a word
//! EX seconds               a word with its argument  [ ... ]         may be left out
//! a | b                    one of these              < ... >         these belong together
//! key ...                  once or more              [MATCH pattern] ...   any number of times
//! ```

use std::iter::Peekable;
use std::vec::IntoIter;

/// One argument of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// `key`, `string`, `integer`, `pure-token`, `oneof`, `block` and so on.
    pub kind: &'static str,
    /// The word in front of it, or the word that it is.
    pub token: Option<String>,
    /// Whether it may be left out.
    pub optional: bool,
    /// Whether it may be given several times.
    pub multiple: bool,
    /// Its parts, or the choices there are.
    pub arguments: Vec<Argument>,
}

/// The arguments that a syntax line describes.
#[must_use]
pub fn parse(syntax: &str) -> Vec<Argument> {
    let mut tokens = tokens(syntax).into_iter().peekable();
    sequence(&mut tokens)
}

type Tokens = Peekable<IntoIter<String>>;

fn tokens(syntax: &str) -> Vec<String> {
    let mut spaced = String::new();
    for character in syntax.chars() {
        if "[]<>|".contains(character) {
            spaced.extend([' ', character, ' ']);
        } else {
            spaced.push(character);
        }
    }
    spaced
        .replace("...", " ... ")
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

fn sequence(tokens: &mut Tokens) -> Vec<Argument> {
    let mut arguments: Vec<Argument> = Vec::new();
    while let Some(token) = tokens.next_if(|token| !["]", ">", "|"].contains(&token.as_str())) {
        match token.as_str() {
            "..." => {
                if let Some(last) = arguments.last_mut() {
                    last.multiple = true;
                }
            }
            "[" => {
                let mut argument = group(tokens);
                argument.optional = true;
                arguments.push(argument);
            }
            "<" => arguments.push(group(tokens)),
            word if is_word(word) => arguments.push(after_word(word, tokens)),
            name => arguments.push(plain(name)),
        }
    }
    arguments
}

/// What stands behind an opening bracket, up to the closing one.
fn group(tokens: &mut Tokens) -> Argument {
    let mut choices = vec![sequence(tokens)];
    while tokens.next_if(|token| token == "|").is_some() {
        choices.push(sequence(tokens));
    }
    // The closing bracket.
    tokens.next();
    let mut choices: Vec<Argument> = choices.into_iter().map(block).collect();
    if choices.len() == 1 {
        return choices.swap_remove(0);
    }
    Argument {
        name: joined(&choices),
        kind: "oneof",
        arguments: choices,
        ..Argument::default()
    }
}

/// A word, with the argument behind it if that belongs to it.
fn after_word(word: &str, tokens: &mut Tokens) -> Argument {
    let belongs = |token: &String| !"[]<>|".contains(token.as_str()) && !is_word(token);
    let mut argument = match tokens.next_if(|token| belongs(token) && token != "...") {
        Some(name) => plain(&name),
        None if tokens.next_if(|token| token == "<").is_some() => group(tokens),
        None => Argument {
            name: word.to_ascii_lowercase(),
            kind: "pure-token",
            ..Argument::default()
        },
    };
    argument.token = Some(word.to_owned());
    argument
}

fn block(mut arguments: Vec<Argument>) -> Argument {
    if arguments.len() == 1 {
        return arguments.swap_remove(0);
    }
    Argument {
        name: joined(&arguments),
        kind: "block",
        arguments,
        ..Argument::default()
    }
}

fn joined(arguments: &[Argument]) -> String {
    let names: Vec<_> = arguments.iter().map(|argument| &*argument.name).collect();
    names.join("_")
}

fn plain(name: &str) -> Argument {
    Argument {
        name: name.to_owned(),
        kind: kind(name),
        ..Argument::default()
    }
}

/// Words that are sent as they stand are written in capitals.
fn is_word(token: &str) -> bool {
    token.len() > 1
        && token
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte == b'-' || byte.is_ascii_digit())
        && token.bytes().any(|byte| byte.is_ascii_uppercase())
}

fn kind(name: &str) -> &'static str {
    match name {
        "key" | "key1" | "key2" | "newkey" | "source" | "destination" => "key",
        "pattern" => "pattern",
        "unix-time-seconds" | "unix-time-milliseconds" => "unix-time",
        "decrement" | "start" | "end" | "seconds" | "milliseconds" | "offset" | "index"
        | "index1" | "index2" | "count" | "cursor" | "timeout" | "client-id" | "numreplicas"
        | "numlocal" | "protover" | "destination-db" | "db" | "min-match-len" | "slot" | "port"
        | "start-slot" | "end-slot" | "config-epoch" | "cluster-bus-port" => "integer",
        _ => "string",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syntax_line_becomes_a_tree() {
        let arguments = parse("key value [NX | XX] [EX seconds | KEEPTTL]");
        let kinds: Vec<_> = arguments.iter().map(|argument| argument.kind).collect();
        assert_eq!(kinds, ["key", "string", "oneof", "oneof"]);
        assert!(arguments[2].optional && !arguments[0].optional);
        assert_eq!(arguments[2].arguments[1].token.as_deref(), Some("XX"));
        let expiry = &arguments[3].arguments;
        assert_eq!(
            (
                expiry[0].name.as_str(),
                expiry[0].kind,
                expiry[0].token.as_deref()
            ),
            ("seconds", "integer", Some("EX"))
        );
        assert_eq!(expiry[1].kind, "pure-token");
    }

    #[test]
    fn repetition_belongs_to_what_is_before_it() {
        let pairs = parse("<key value> ...");
        assert_eq!(pairs.len(), 1);
        assert!(pairs[0].multiple && pairs[0].kind == "block");
        assert_eq!(pairs[0].arguments.len(), 2);
        assert!(parse("key ...")[0].multiple);
        assert_eq!(
            parse("[protover [AUTH <username password>]]")[0].kind,
            "block"
        );
    }
}
