//! What the documents say of the command line is true: every command line in them is legal, and
//! every option is documented.

use std::net::SocketAddr;
use std::path::Path;

use clap::{CommandFactory, Parser};
use kvlab_bench_client::frontend::memtier::table::TABLE;
use kvlab_bench_client::frontend::native::{Addresses, BenchArgs};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    bench: BenchArgs,
}

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The words of a shell line: blanks part, single quotes hold together, `>` ends it.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match (c, quoted) {
            ('\'', _) => quoted = !quoted,
            (' ', false) => words.push(String::new()),
            ('>', false) => break,
            _ => words.last_mut().expect("never empty").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn every_command_line_in_the_documents_is_legal() {
    let address: SocketAddr = ([127, 0, 0, 1], 1).into();
    for (name, least) in [("bench.md", 8), ("open-closed-loop.md", 2)] {
        let text = document(name);
        let lines: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("kvlab bench "))
            .collect();
        assert!(lines.len() >= least, "{name}: {} lines", lines.len());
        for line in lines {
            // What certifies is the lab, which adds this option to those of the load generator.
            let mut words = words(line);
            words.retain(|word| word != "--certify");
            words.insert(0, "bench".to_owned());
            if words.iter().any(|word| word == "--find-rate") {
                // The search sets the rate of each trial.
                words.push("--rate=1000".to_owned());
            }
            let line_parsed = Line::try_parse_from(words).unwrap_or_else(|e| panic!("{line}: {e}"));
            let settings = line_parsed.bench.settings(&Addresses::one(address));
            assert!(settings.is_ok(), "{line}: {settings:?}");
        }
    }
}

#[test]
fn every_option_is_documented() {
    let text = document("bench.md");
    for argument in Line::command().get_arguments() {
        let Some(long) = argument.get_long().filter(|long| *long != "help") else {
            continue;
        };
        assert!(
            text.contains(&format!("`--{long}")),
            "--{long} is missing in bench.md"
        );
    }
}

#[test]
fn every_option_of_memtier_is_documented() {
    let text = document("from-memtier.md");
    for row in TABLE {
        // An option is named in code, alone or with the name of its argument.
        let named = ["`", " ", "\\|"].iter().any(|end| {
            let code = format!("`{}{end}", row.spelled);
            text.contains(&code)
        });
        assert!(named, "{} is missing in from-memtier.md", row.spelled);
        if let Some(short) = row.short {
            assert!(
                text.contains(&format!("`-{short}`")),
                "-{short} is missing in from-memtier.md"
            );
        }
    }
}
