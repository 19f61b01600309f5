//! Tables: columns that line up, the last one cut to fit the terminal. Every cell may be of unknown origin.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use redrive_core::time::Timestamp;

use super::foreign::{COLUMNS_MAX, cut, width_of};
use super::paint::{HEADING, paint};
use super::print::out;

/// Room that the last column of a titled table needs; with less it gets a line of its own.
const TITLE_WIDTH_MIN: usize = 50;

/// Prints rows under headings. Columns whose heading begins with `>` are aligned to the right.
pub fn print(headings: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let rows = lines(rows);
    let columns = Columns::of(headings, &rows);
    columns.print_headings()?;
    rows.iter().try_for_each(|row| columns.print_row(row))
}

/// The rows with each cell on one line.
fn lines(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.iter().map(|cell| cut(cell, COLUMNS_MAX)).collect()).collect()
}

/// The same, but where the last column has too little room, each row has it on a line of its own.
pub fn print_titled(headings: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let last = headings.len() - 1;
    let rows = lines(rows);
    if Columns::of(headings, &rows).room.is_none_or(|room| room >= TITLE_WIDTH_MIN) {
        return print(headings, &rows);
    }
    let columns = Columns::of(&headings[..last], &rows);
    columns.print_headings()?;
    for row in &rows {
        columns.print_row(&row[..last])?;
        out!("    {}", cut(&row[last], width().map_or(COLUMNS_MAX, |width| width.saturating_sub(4))))?;
    }
    Ok(())
}

/// How wide the columns are.
struct Columns<'a> {
    headings: &'a [&'a str],
    widths: Vec<usize>,
    /// What is left for the last column.
    room: Option<usize>,
}

impl<'a> Columns<'a> {
    fn of(headings: &'a [&'a str], rows: &[Vec<String>]) -> Self {
        let widest = |column: usize| {
            let cells = rows.iter().map(|row| width_of(&row[column]));
            cells.chain([width_of(title(headings[column]))]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..headings.len()).map(widest).collect();
        let last = headings.len() - 1;
        let room = width().map(|total| total.saturating_sub(widths[..last].iter().sum::<usize>() + 2 * last));
        Self { headings, widths, room }
    }

    fn print_headings(&self) -> io::Result<()> {
        let titles: Vec<String> = self.headings.iter().map(|heading| title(heading).to_owned()).collect();
        out!("{}", paint(HEADING, self.line(&titles)))
    }

    fn print_row(&self, row: &[String]) -> io::Result<()> {
        out!("{}", self.line(row))
    }

    fn line(&self, row: &[String]) -> String {
        let cells: Vec<String> = row.iter().enumerate().map(|(column, cell)| self.pad(column, cell)).collect();
        cells.join("  ").trim_end().to_owned()
    }

    fn pad(&self, column: usize, text: &str) -> String {
        let space = " ".repeat(self.widths[column].saturating_sub(width_of(text)));
        match self.headings[column].starts_with('>') {
            true => format!("{space}{text}"),
            false if column == self.headings.len() - 1 => cut(text, self.room.unwrap_or(COLUMNS_MAX).max(2)),
            false => format!("{text}{space}"),
        }
    }
}

fn title(heading: &str) -> &str {
    heading.trim_start_matches('>')
}

/// The width of the terminal, if there is one.
fn width() -> Option<usize> {
    columns(std::io::stdout())
}

/// The columns of a terminal, if it is one.
fn columns(stream: impl AsFd + IsTerminal) -> Option<usize> {
    let size = stream.is_terminal().then(|| rustix::termios::tcgetwinsize(&stream).ok())??;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// The width of lines that go to a file or a pipe.
const PIPED_WIDTH: usize = 110;

/// How wide lines may be.
pub fn line_width() -> usize {
    width().unwrap_or(PIPED_WIDTH)
}

/// How wide lines on standard error may be.
pub fn line_width_of_stderr() -> usize {
    columns(std::io::stderr()).unwrap_or(PIPED_WIDTH)
}

/// An instant to the second, in UTC.
pub fn second(at: Timestamp) -> String {
    let text = at.to_string();
    text.get(..19).unwrap_or(&text).replace('T', " ")
}
