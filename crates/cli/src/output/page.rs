//! A page that is drawn anew where the one before it was, in one piece: nothing flickers, nothing of the one before is left, and no
//! page is longer than the terminal, so that none leaves a part of itself above.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use anstream::ColorChoice;

use super::foreign::width_of;
use super::table::size;

/// The lines of the page that is put together, if one is.
static PAGE: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Back to the first place of the terminal; the rest of the line, and of the terminal, is empty.
const HOME: &str = "\u{1b}[H";
const REST_OF_LINE: &str = "\u{1b}[K";
const REST: &str = "\u{1b}[J";

/// The terminal, emptied, for the first page.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// Puts together a page of all that is printed from now on.
pub fn begin() {
    *PAGE.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
}

/// Whether one is put together.
pub fn is_begun() -> bool {
    PAGE.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Adds lines to it.
pub fn add(text: &str) {
    if let Some(page) = PAGE.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        page.extend(text.split('\n').map(str::to_owned));
    }
}

/// Draws it.
pub fn draw(is_first: bool) -> io::Result<()> {
    let Some(lines) = PAGE.lock().unwrap_or_else(PoisonError::into_inner).take() else { return Ok(()) };
    let mut stdout = io::stdout().lock();
    let has_colours = anstream::AutoStream::choice(&stdout) != ColorChoice::Never;
    let (columns, rows) = size(&stdout).unwrap_or((usize::MAX, usize::MAX));
    let mut drawn = if is_first { CLEAR } else { HOME }.to_owned();
    for line in fitted(lines, columns, rows) {
        let line = if has_colours { line } else { plain(&line) };
        drawn += &format!("{line}{REST_OF_LINE}\n");
    }
    stdout.write_all((drawn + REST).as_bytes())?;
    stdout.flush()
}

fn plain(line: &str) -> String {
    anstream::adapter::strip_str(line).to_string()
}

/// As many lines as a terminal has room for, with one to spare for the cursor. Of a page that is longer it is said how much is missing.
fn fitted(mut lines: Vec<String>, columns: usize, rows: usize) -> Vec<String> {
    let taken = |line: &String| width_of(&plain(line)).div_ceil(columns.max(1)).max(1);
    let room = rows.saturating_sub(1).max(2);
    if lines.iter().map(taken).sum::<usize>() <= room {
        return lines;
    }
    let taken_so_far = lines.iter().scan(0, |sum, line| {
        *sum += taken(line);
        Some(*sum)
    });
    let shown = taken_so_far.take_while(|sum| *sum < room).count();
    let missing = lines.len() - shown;
    lines.truncate(shown);
    lines.push(format!("… and {missing} more lines: a larger window shows them"));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("line {n}")).collect()
    }

    #[test]
    fn a_page_is_never_longer_than_the_terminal() {
        assert_eq!(fitted(lines(9), 80, 10), lines(9));
        let cut = fitted(lines(10), 80, 10);
        assert_eq!(
            (cut.len(), cut[7].as_str(), cut[8].as_str()),
            (9, "line 7", "… and 2 more lines: a larger window shows them")
        );
        let wide = vec!["x".repeat(100), "y".to_owned(), "z".to_owned()];
        assert_eq!(fitted(wide.clone(), 40, 6), wide, "the first takes three lines");
        assert_eq!(fitted(wide, 40, 5).len(), 2);
    }

    #[test]
    fn colours_take_no_room() {
        let coloured = vec![crate::output::paint::paint(crate::output::paint::BAD, "x".repeat(40)); 3];
        assert_eq!(fitted(coloured.clone(), 40, 4), coloured);
    }
}
