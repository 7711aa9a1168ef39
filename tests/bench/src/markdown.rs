//! Tables that a page of the documentation takes as they are.

use std::fmt::Write as _;

/// A table: one line of heads, and rows of as many cells.
#[must_use]
pub fn table<const COLUMNS: usize>(heads: [&str; COLUMNS], rows: &[[String; COLUMNS]]) -> String {
    let mut table = line(heads.iter().copied());
    table += &line(heads.iter().map(|_| "---"));
    for row in rows {
        table += &line(row.iter().map(String::as_str));
    }
    table
}

fn line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let mut line = String::from("|");
    for cell in cells {
        // Writing to a string cannot fail.
        let _ = write!(line, " {cell} |");
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_heads_a_rule_and_rows() {
        let rows = [["a".to_owned(), "1".to_owned()]];
        assert_eq!(table(["what", "µs"], &rows), "| what | µs |\n| --- | --- |\n| a | 1 |\n");
    }
}
