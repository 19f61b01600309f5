//! Tables: columns that line up, the last one cut to fit the terminal.

use std::io::{self, IsTerminal};

use super::paint::{HEADING, paint};
use super::print::out;

/// Prints rows under headings. Columns whose heading begins with `>` are aligned to the right.
pub fn print(headings: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let columns = headings.len();
    let titles: Vec<&str> = headings.iter().map(|heading| heading.trim_start_matches('>')).collect();
    let widest = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([titles[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let left =
        width().map(|total| total.saturating_sub(widths[..columns - 1].iter().sum::<usize>() + 2 * (columns - 1)));
    let pad = |column: usize, text: &str| {
        let space = " ".repeat(widths[column].saturating_sub(text.chars().count()));
        match headings[column].starts_with('>') {
            true => format!("{space}{text}"),
            false if column == columns - 1 => cut(text, left),
            false => format!("{text}{space}"),
        }
    };
    let heading: Vec<String> = titles.iter().enumerate().map(|(column, title)| pad(column, title)).collect();
    out!("{}", paint(HEADING, heading.join("  ").trim_end()))?;
    for row in rows {
        let cells: Vec<String> = row.iter().enumerate().map(|(column, cell)| pad(column, cell)).collect();
        out!("{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

/// The width of the terminal, if there is one.
pub fn width() -> Option<usize> {
    let stdout = std::io::stdout();
    let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok())??;
    Some(usize::from(size.ws_col))
}

/// The text in one line, cut to so many characters.
pub fn cut(text: &str, width: Option<usize>) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match width {
        Some(width) if line.chars().count() > width && width > 1 => line.chars().take(width - 1).chain(['…']).collect(),
        _ => line,
    }
}
