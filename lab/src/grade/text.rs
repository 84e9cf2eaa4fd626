//! The tables as text for a terminal and as Markdown for a document.

use std::fmt::Write;

use comfy_table::CellAlignment;
use comfy_table::presets::UTF8_BORDERS_ONLY;

use super::tables::{self, Table};
use super::{Graded, Sheet, Tool};
use crate::noise::Machine;
use crate::verdict::Verdict;

/// Everything of a grading of several tools.
#[derive(Clone, Debug)]
pub struct Grading {
    /// The command it was asked for with.
    pub command: String,
    /// The machine.
    pub machine: Machine,
    /// The tools that were found.
    pub tools: Vec<Tool>,
    /// The scenarios.
    pub sheets: Vec<Sheet>,
}

/// How tables are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For a terminal.
    Text,
    /// For a document.
    Markdown,
}

/// The whole grading.
#[must_use]
pub fn render(grading: &Grading, form: Form) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_grading(grading, form, &mut out);
    out
}

fn write_grading(grading: &Grading, form: Form, out: &mut String) -> std::fmt::Result {
    let machine = &grading.machine;
    let tools: Vec<String> = grading
        .tools
        .iter()
        .map(|tool| format!("{} ({})", tool.name, tool.version))
        .collect();
    match form {
        Form::Markdown => writeln!(out, "`{}`\n", grading.command)?,
        Form::Text => writeln!(out, "command: {}", grading.command)?,
    }
    writeln!(
        out,
        "{} cores, kernel {}, clock {}, load {}. Tools: {}.",
        machine.cores,
        machine.kernel,
        machine.clock_source,
        machine.load,
        tools.join(", ")
    )?;
    for sheet in &grading.sheets {
        match form {
            Form::Markdown => writeln!(
                out,
                "\n**{}**: {} ({}).\n",
                sheet.name, sheet.about, sheet.server
            )?,
            Form::Text => writeln!(out, "\n{}: {} ({})", sheet.name, sheet.about, sheet.server)?,
        }
        out.push_str(&draw(&tables::of_sheet(sheet), form));
        if form == Form::Markdown {
            out.push('\n');
        }
        for graded in &sheet.rows {
            let mark = if form == Form::Markdown { "* " } else { "  " };
            writeln!(out, "{mark}{}: {}", graded.tool, graded.sentence)?;
        }
    }
    if grading.sheets.len() > 1 {
        match form {
            Form::Markdown => {
                writeln!(out, "\n**All scenarios**: the figure that each is about.\n")?
            }
            Form::Text => writeln!(out, "\nall scenarios: the figure that each is about")?,
        }
        out.push_str(&draw(&tables::of_all(&grading.sheets), form));
    }
    Ok(())
}

/// One tool in one scenario: its verdict table, all findings that do not hold, and the sentence.
#[must_use]
pub fn render_tool(grading: &Grading) -> String {
    let mut out = String::new();
    let _ = write_tool(grading, &mut out);
    out
}

fn write_tool(grading: &Grading, out: &mut String) -> std::fmt::Result {
    for sheet in &grading.sheets {
        writeln!(
            out,
            "scenario {}: {} ({})",
            sheet.name, sheet.about, sheet.server
        )?;
        for graded in &sheet.rows {
            let version = grading.tools.iter().find(|tool| tool.name == graded.tool);
            writeln!(
                out,
                "tool: {} ({})",
                graded.tool,
                version.map_or("unknown", |tool| &tool.version)
            )?;
            if !graded.command.is_empty() {
                writeln!(out, "command: {}", graded.command)?;
            }
            write_load(graded, out)?;
            if !graded.scores.is_empty() {
                out.push_str(&draw(&tables::of_tool(graded), Form::Text));
            }
            for finding in &graded.findings {
                if finding.verdict != Verdict::Pass {
                    writeln!(
                        out,
                        "  {}: {}: {}",
                        finding.verdict, finding.name, finding.text
                    )?;
                }
            }
            writeln!(out, "  {}", graded.sentence)?;
            let verdict = graded
                .verdict
                .map_or("not run".to_owned(), |one| one.to_string());
            writeln!(out, "\nverdict: {verdict}")?;
        }
    }
    Ok(())
}

fn write_load(graded: &Graded, out: &mut String) -> std::fmt::Result {
    let Some(facts) = &graded.facts else {
        return Ok(());
    };
    write!(
        out,
        "load: {} requests over {} connections",
        facts.seen.read,
        facts.seen.connections.len()
    )?;
    if let Some(rate) = facts.seen.rate() {
        write!(out, ", {rate:.0} a second")?;
    }
    if let Some(floor) = &graded.floor {
        write!(out, "; floor of the tool {} us", floor.median_ns / 1_000)?;
    }
    writeln!(out)
}

fn draw(table: &Table, form: Form) -> String {
    match form {
        Form::Text => draw_text(table),
        Form::Markdown => draw_markdown(table),
    }
}

fn draw_text(table: &Table) -> String {
    let mut drawn = comfy_table::Table::new();
    drawn.load_style(UTF8_BORDERS_ONLY);
    drawn.set_header(&table.head);
    for row in &table.rows {
        drawn.add_row(row);
    }
    for column in drawn.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = drawn.to_string();
    text.push('\n');
    text
}

fn draw_markdown(table: &Table) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = line(&table.head);
    text.push_str("|---");
    for _ in table.head.iter().skip(1) {
        text.push_str("|---:");
    }
    text.push_str("|\n");
    for row in &table.rows {
        text.push_str(&line(row));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_becomes_text_and_markdown() {
        let table = Table {
            head: ["tool", "p50"].map(str::to_owned).to_vec(),
            rows: vec![["a|b", "-3.0 %"].map(str::to_owned).to_vec()],
        };
        let markdown = draw(&table, Form::Markdown);
        assert_eq!(markdown, "| tool | p50 |\n|---|---:|\n| a\\|b | -3.0 % |\n");
        let text = draw(&table, Form::Text);
        assert!(text.contains("a|b") && text.contains("-3.0 %"), "{text}");
    }
}
