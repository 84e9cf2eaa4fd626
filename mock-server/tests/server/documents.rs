//! What the documents show is what the server takes.

use std::fs;
use std::path::Path;
use std::process::Command;

use kvlab_mock_server::cli::Settings;
use kvlab_mock_server::latency::{Cut, Freeze, Queue, Rule, Shape};
use kvlab_mock_server::limit::Throttle;

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(name);
    fs::read_to_string(path).unwrap()
}

/// The contents of the fenced blocks of this language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let inside = |block: &str| block.split("```").next().unwrap().to_owned();
    text.split(&fence).skip(1).map(inside).collect()
}

#[test]
fn documented_rules_freezes_and_cuts_are_read() {
    let text = document("latency.md");
    let rules = blocks(&text, "rules").concat();
    assert!(rules.lines().count() > 20);
    for line in rules.lines() {
        // What is documented is the form that is printed.
        assert_eq!(line.parse::<Rule>().unwrap().to_string(), line);
    }
    let freezes = blocks(&text, "freezes").concat();
    assert_eq!(freezes.lines().count(), 5);
    for line in freezes.lines() {
        assert_eq!(line.parse::<Freeze>().unwrap().to_string(), line);
    }
    let queues = blocks(&text, "queues").concat();
    assert_eq!(queues.lines().count(), 2);
    for line in queues.lines() {
        assert_eq!(line.parse::<Queue>().unwrap().to_string(), line);
    }
    let shapes = blocks(&text, "shapes").concat();
    assert_eq!(shapes.lines().count(), 6);
    for line in shapes.lines() {
        assert_eq!(line.parse::<Shape>().unwrap().to_string(), line);
    }
    let cuts = blocks(&text, "cuts").concat();
    assert_eq!(cuts.lines().count(), 4);
    for line in cuts.lines() {
        assert_eq!(line.parse::<Cut>().unwrap().to_string(), line);
    }
}

#[test]
fn documented_throttles_are_read() {
    let throttles = blocks(&document("limits.md"), "throttles").concat();
    assert_eq!(throttles.lines().count(), 7);
    for line in throttles.lines() {
        assert_eq!(line.parse::<Throttle>().unwrap().to_string(), line);
    }
}

#[test]
fn the_documented_file_has_every_key() {
    let [file] = &blocks(&document("mock-server.md"), "toml")[..] else {
        panic!("one file");
    };
    let settings = Settings::from_toml(file).unwrap();
    assert_eq!(settings.to_toml(), file.as_str());
    settings.resolve().unwrap();
}

#[test]
fn every_option_is_documented_with_its_default() {
    let text = document("mock-server.md");
    let help = Command::new(env!("CARGO_BIN_EXE_kvlab-server"))
        .arg("--help")
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let mut count = 0;
    let mut option = "";
    for line in help.lines().map(str::trim) {
        let mut words = line.split_whitespace();
        if line.starts_with('-')
            && let Some(found) = words.find(|word| word.starts_with("--"))
        {
            option = found;
            count += 1;
            let known = ["--help", "--version"].contains(&option);
            assert!(known || text.contains(&format!("| `{option}")), "{option}");
        }
        if let Some((_, default)) = line.split_once("[default: ") {
            let default = default.trim_end_matches(']');
            let row = text
                .lines()
                .find(|row| row.starts_with(&format!("| `{option}")))
                .unwrap();
            assert!(
                row.contains(&format!("| {default} |")),
                "{option}: {default}"
            );
        }
    }
    assert!(count > 15, "{help}");
}
