//! How the demo speaks to a person.

use std::time::Instant;

use anstream::{eprintln, println};
use anstyle::{AnsiColor, Style};

use crate::kubectl::Answer;

pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const WARN: Style = AnsiColor::Yellow.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default();

pub(super) fn heading(text: &str) {
    println!("\n{BOLD}{text}{BOLD:#}");
}

pub(super) fn step(text: &str, start: Instant) {
    println!("  {GOOD}✓{GOOD:#} {text} {DIM}({:.1} s){DIM:#}", start.elapsed().as_secs_f64());
}

pub(super) fn command(words: &[&str]) {
    println!("\n  {BOLD}$ kubectl {}{BOLD:#}", words.join(" "));
}

pub(super) fn indent(text: &str) {
    for line in text.lines() {
        println!("  {DIM}{line}{DIM:#}");
    }
}

/// What kubectl printed, warnings in yellow and errors in red.
pub(super) fn speak(answer: &Answer) {
    for line in answer.stderr.lines() {
        let style = if line.starts_with("Warning:") { WARN } else { BAD };
        // One reason a line: kubectl prints them all in one.
        for part in line.replace("this pod: ", "this pod:\n    ").replace("; spec.", ";\n    spec.").lines() {
            eprintln!("  {style}{part}{style:#}");
        }
    }
    for line in answer.stdout.lines() {
        println!("  {line}");
    }
}
