//! Tables: columns that line up and fit the terminal. Every cell may be of unknown origin. This is the one place that fits
//! columns to a width: no line of a table is ever wider than the terminal.
//!
//! A heading says how its column is treated: `>` aligns it to the right, `~` lets it be shortened, `?` lets it be left out
//! where there is no room. Where there is less still, columns that may be shortened are left out, too, but for the first and the last of
//! the table. `=` says that people type what the cells name: what is cut or left out of it has a line below its row. In a file or a pipe nothing is shortened or left out, and each row is one line.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use unicode_width::UnicodeWidthChar;

use super::foreign::{COLUMNS_MAX, cut, width_of};
use super::paint::{HEADING, paint};
use super::print::out;

/// Room that the last column of a titled table needs, if it is not shorter anyway; with less it gets a line of its own.
const TITLE_WIDTH_MIN: usize = 50;

/// How far columns are shortened before any is left out, and after.
const SHORT: usize = 16;
const SHORTEST: usize = 8;

/// What stands before a title on a line of its own.
const INDENT: &str = "    ";

/// Prints rows under headings; the last column is cut where it must be.
pub fn print(headings: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    print_lines(&Table::new(headings, rows).lines(width(), Titling::None))
}

/// The same, but where the last column has too little room, each row has it on a line of its own.
pub fn print_titled(headings: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    print_lines(&Table::new(headings, rows).lines(width(), Titling::Cut))
}

/// The same, but nothing of the last column is cut: it goes on in further lines.
pub fn print_folded(headings: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    print_lines(&Table::new(headings, rows).lines(width(), Titling::Folded))
}

/// What becomes of the last column where it has no room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Titling {
    /// It is cut.
    None,
    /// It has a line of its own, and is cut there.
    Cut,
    /// It has lines of its own, as many as it needs.
    Folded,
}

fn print_lines(lines: &[String]) -> io::Result<()> {
    for (n, line) in lines.iter().enumerate() {
        match n {
            0 => out!("{}", paint(HEADING, line))?,
            _ => out!("{line}")?,
        }
    }
    Ok(())
}

/// A column: where its cells are, and how wide it is.
#[derive(Clone, Debug)]
struct Column {
    at: usize,
    title: String,
    right: bool,
    flexible: bool,
    optional: bool,
    /// Set if people type what its cells name.
    is_typed: bool,
    /// Set if it is an end of the table, which is never left out.
    is_end: bool,
    width: usize,
}

/// Rows of which each cell is one line.
struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(headings: &[&str], rows: &[Vec<String>]) -> Self {
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| cut(cell, COLUMNS_MAX)).collect()).collect();
        let column = |(at, heading): (usize, &&str)| {
            let title = heading.trim_start_matches(['>', '~', '?', '=']);
            let marks = &heading[..heading.len() - title.len()];
            let widest = rows.iter().map(|row| width_of(&row[at])).max().unwrap_or(0);
            Column {
                at,
                title: title.to_owned(),
                right: marks.contains('>'),
                flexible: marks.contains('~'),
                optional: marks.contains('?'),
                is_typed: marks.contains('='),
                is_end: at == 0 || at + 1 == headings.len(),
                width: widest.max(width_of(title)),
            }
        };
        let columns = headings.iter().enumerate().map(column).collect();
        Self { columns, rows }
    }

    /// The heading and the rows, none wider than there is room.
    fn lines(&self, width: Option<usize>, titling: Titling) -> Vec<String> {
        let Some(width) = width else { return self.written(&self.columns, None, usize::MAX, false) };
        let Some((last, others)) = self.columns.split_last() else { return Vec::new() };
        let room = width.saturating_sub(total(others) + GAP);
        let (is_titled, folds) = (titling != Titling::None, titling == Titling::Folded);
        if is_titled && room < if folds { last.width } else { last.width.min(TITLE_WIDTH_MIN) } {
            return self.written(&fitted(others.to_vec(), width), Some(last), width, folds);
        }
        let mut columns = self.columns.clone();
        if let Some(last) = columns.last_mut() {
            (last.flexible, last.optional) = (last.flexible || !last.right, last.optional && last.right);
            last.width = if is_titled { last.width.min(room) } else { last.width };
        }
        self.written(&fitted(columns, width), None, width, folds)
    }

    fn written(&self, columns: &[Column], title: Option<&Column>, width: usize, folds: bool) -> Vec<String> {
        let headings: Vec<_> = columns.iter().map(|column| (column, column.title.as_str())).collect();
        let mut lines = vec![line(&headings, width)];
        for row in &self.rows {
            let cells: Vec<_> = columns.iter().map(|column| (column, row[column.at].as_str())).collect();
            lines.push(line(&cells, width));
            for name in self.cut_names(columns, title, row, width) {
                lines.extend(broken(&name, width).iter().map(|piece| cut(piece, width)));
            }
            if let Some(title) = title.filter(|title| !row[title.at].is_empty()) {
                let room = width.saturating_sub(width_of(INDENT));
                match folds {
                    true => {
                        let folded = folded(&format!("{INDENT}{}", row[title.at]), INDENT, width);
                        lines.extend(folded.iter().map(|line| cut(line, width)));
                    }
                    false => lines.push(cut(&format!("{INDENT}{}", cut(&row[title.at], room)), width)),
                }
            }
        }
        lines
    }

    /// Returns what people type and a row does not show whole, each behind the title of its column.
    fn cut_names(&self, shown: &[Column], title: Option<&Column>, row: &[String], width: usize) -> Vec<String> {
        let mut whole: Vec<usize> = title.iter().map(|title| title.at).collect();
        let (is_cut, mut begins) = (total(shown) > width, 0);
        for column in shown {
            let room = if is_cut { width.saturating_sub(begins + 1) } else { column.width };
            if width_of(&row[column.at]) <= column.width.min(room) {
                whole.push(column.at);
            }
            begins += column.width + GAP;
        }
        let names = self.columns.iter().filter(|column| column.is_typed && !whole.contains(&column.at));
        let names = names.filter(|column| !matches!(row[column.at].as_str(), "" | "-"));
        names.map(|column| format!("{INDENT}{} {}", column.title, row[column.at])).collect()
    }
}

/// The columns between two columns.
const GAP: usize = 2;

fn total(columns: &[Column]) -> usize {
    columns.iter().map(|column| column.width).sum::<usize>() + GAP * columns.len().saturating_sub(1)
}

/// Columns shortened, and left out, until they fit.
fn fitted(mut columns: Vec<Column>, width: usize) -> Vec<Column> {
    shorten(&mut columns, width, SHORT);
    while total(&columns) > width
        && let Some(optional) = columns.iter().position(|column| column.optional)
    {
        columns.remove(optional);
    }
    shorten(&mut columns, width, SHORTEST);
    while total(&columns) > width
        && let Some(least) = columns.iter().rposition(|column| column.flexible && !column.is_end)
    {
        columns.remove(least);
    }
    columns
}

/// Takes from the widest column that may be shortened, again and again.
fn shorten(columns: &mut [Column], width: usize, least: usize) {
    for _ in width..total(columns) {
        let may = |column: &&mut Column| column.flexible && column.width > least.max(width_of(&column.title));
        let Some(widest) = columns.iter_mut().filter(may).max_by_key(|column| column.width) else { return };
        widest.width -= 1;
    }
}

fn line(cells: &[(&Column, &str)], width: usize) -> String {
    let last = cells.len().saturating_sub(1);
    let padded = cells.iter().enumerate().map(|(n, (column, text))| {
        let text = cut(text, column.width);
        let space = " ".repeat(column.width.saturating_sub(width_of(&text)));
        match column.right {
            true => format!("{space}{text}"),
            false if n == last => text,
            false => format!("{text}{space}"),
        }
    });
    let line = padded.collect::<Vec<_>>().join("  ");
    let line = line.trim_end();
    if width_of(line) > width { cut(line, width) } else { line.to_owned() }
}

/// The width of the terminal, if there is one.
fn width() -> Option<usize> {
    columns(std::io::stdout())
}

/// The columns of a terminal, if it is one.
fn columns(stream: impl AsFd + IsTerminal) -> Option<usize> {
    size(&stream).map(|(columns, _)| columns)
}

/// The columns and rows of a terminal, if it is one that knows them.
pub fn size(stream: &(impl AsFd + IsTerminal)) -> Option<(usize, usize)> {
    let size = stream.is_terminal().then(|| rustix::termios::tcgetwinsize(stream).ok())??;
    let size = (usize::from(size.ws_col), usize::from(size.ws_row));
    Some(size).filter(|(columns, rows)| *columns > 0 && *rows > 0)
}

/// The width of the terminal that lines go to; nothing if they go to a file or a pipe.
pub fn terminal_width() -> Option<usize> {
    width()
}

/// Text of one line in several, none wider than there is room, broken between words; all but the first begin with an indent.
pub fn folded(text: &str, indent: &str, width: usize) -> Vec<String> {
    let begun = &text[..text.len() - text.trim_start().len()];
    let (mut lines, mut line) = (Vec::new(), begun.to_owned());
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && width_of(&line) + 1 + width_of(word) > width {
            lines.push(std::mem::replace(&mut line, indent.to_owned()));
            is_empty = true;
        }
        line.push_str(if is_empty { "" } else { " " });
        line.push_str(&cut(word, width.saturating_sub(width_of(&line)).max(1)));
        is_empty = false;
    }
    lines.push(line);
    lines
}

/// Lines in several where the terminal is narrower, each broken between words or, where a word is long, inside it: nothing is left
/// out. Each line begins with an indent. A file or a pipe gets them as they are.
pub fn wrapped(text: &str, indent: &str) -> String {
    let of_line = |line: &str| match terminal_width() {
        Some(width) => broken(&line.replace('\t', "    "), width.saturating_sub(width_of(indent))),
        None => vec![line.to_owned()],
    };
    let lines: Vec<_> = text.lines().flat_map(of_line).map(|line| format!("{indent}{line}")).collect();
    lines.join("\n")
}

/// The same beside a label that takes as much room as the indent of the following lines.
pub fn beside(text: &str, room: usize) -> String {
    let wrapped = wrapped(text, &" ".repeat(room));
    wrapped.get(room..).unwrap_or_default().to_owned()
}

/// A line in pieces, none wider than there is room. Those that follow keep the spaces that the line began with.
fn broken(line: &str, width: usize) -> Vec<String> {
    let begun = &line[..line.len() - line.trim_start().len()];
    let begun = if width_of(begun) * 2 > width { "" } else { begun };
    let room = width.saturating_sub(width_of(begun)).max(1);
    let (mut pieces, mut rest) = (Vec::new(), line.strip_prefix(begun).unwrap_or(line));
    while let Some(end) = too_far(rest, room) {
        let between = match rest[end..].starts_with(' ') {
            true => Some(end),
            false => rest[..end].rfind(' ').filter(|at| at * 2 > end),
        };
        let (piece, following) = rest.split_at(between.unwrap_or(end));
        pieces.push(format!("{begun}{}", piece.trim_end()));
        rest = if between.is_some() { following.trim_start_matches(' ') } else { following };
    }
    pieces.push(format!("{begun}{rest}"));
    pieces
}

/// Where the first character is that no longer fits, after one at least.
fn too_far(text: &str, room: usize) -> Option<usize> {
    let mut taken = 0;
    let ends = text.char_indices().map(|(at, c)| {
        taken += c.width().unwrap_or(0);
        (at, taken)
    });
    ends.skip(1).find(|(_, taken)| *taken > room).map(|(at, _)| at)
}

/// The width of lines that go to a file or a pipe.
const PIPED_WIDTH: usize = 110;

/// How wide lines may be.
pub fn line_width() -> usize {
    width().unwrap_or(PIPED_WIDTH)
}

/// How wide lines on standard error may be.
pub fn line_width_of_stderr() -> usize {
    terminal_width_of_stderr().unwrap_or(PIPED_WIDTH)
}

/// The width of the terminal that standard error goes to; nothing if that is a file or a pipe.
pub fn terminal_width_of_stderr() -> Option<usize> {
    columns(std::io::stderr())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADINGS: [&str; 7] = [">no.", "~pipeline", "?last day", "reason", ">tries", "~target", "message"];

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 7]| cells.map(str::to_owned).to_vec();
        vec![
            row(["7", "catalog", "▁▂▃▄▅▆▇█", "timeout", "4", "shop.example", "took too long"]),
            row([
                "1234",
                "a-pipeline-with-a-long-name-of-60-characters-at-the-very-least",
                "▁▂▃▄▅▆▇█",
                "schema_validation",
                "4+2",
                "www.a-very-long-host-name.of-a-shop.example",
                &"価格が見つかりません \u{1b}[2J\u{1b}]0;title\u{7} and much more of it ".repeat(9),
            ]),
        ]
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for titling in [Titling::None, Titling::Cut, Titling::Folded] {
            for width in 1..200 {
                for line in Table::new(&HEADINGS, &rows()).lines(Some(width), titling) {
                    assert!(width_of(&line) <= width, "{width}: {line:?}");
                    assert!(!line.contains(['\u{1b}', '\n', '\u{7}']), "{line:?}");
                }
            }
        }
    }

    /// What a person must type is there whole, however narrow the terminal is.
    #[test]
    fn names_that_people_type_are_never_cut() {
        let headings = HEADINGS.map(|heading| match heading {
            "~pipeline" => "~=pipeline",
            "~target" => "~=target",
            other => other,
        });
        for titling in [Titling::None, Titling::Cut, Titling::Folded] {
            for width in 1..200 {
                let lines = Table::new(&headings, &rows()).lines(Some(width), titling);
                assert!(lines.iter().all(|line| width_of(line) <= width), "{width}: {lines:#?}");
                let solid: String = lines.concat().split_whitespace().collect();
                let names = ["a-pipeline-with-a-long-name-of-60-characters-at-the-very-least", "shop.example"];
                let whole = names.iter().all(|name| solid.contains(name));
                assert!(whole || width < 8, "{width}: {lines:#?}");
            }
        }
        let lines = Table::new(&headings, &rows()[..1]).lines(Some(80), Titling::Cut);
        assert_eq!(lines.len(), 2, "what is not cut takes no line: {lines:#?}");
    }

    #[test]
    fn a_message_without_room_gets_a_line_of_its_own() {
        let lines = |width| Table::new(&HEADINGS, &rows()).lines(Some(width), Titling::Cut);
        for width in [80, 100, 120, 160] {
            let lines = lines(width);
            assert_eq!(lines.len(), 5, "{lines:#?}");
            assert!(lines[2].starts_with("    took too long"), "{lines:#?}");
            assert!(width_of(&lines[4]) > width - 2, "as much of it as there is room for: {lines:#?}");
            assert!(lines[3].contains("schema_validation") && lines[3].contains("4+2"), "{lines:#?}");
        }
        assert!(lines(160)[0].contains("last day") && !lines(60)[0].contains("last day"));
        let short = Table::new(&HEADINGS, &rows()[..1]).lines(Some(80), Titling::Cut);
        assert_eq!(short.len(), 2, "what fits stays on one line: {short:#?}");
    }

    #[test]
    fn text_is_folded_between_words() {
        let text = "alert: shop: 25.0 % of the tasks died";
        assert_eq!(folded(text, "  ", 20), ["alert: shop: 25.0 %", "  of the tasks died"]);
        assert_eq!(folded("    since then; look", "    ", 12), ["    since", "    then;", "    look"]);
        assert_eq!(folded(text, "  ", 80), [text]);
        for width in 4..60 {
            assert!(folded(text, "  ", width).iter().all(|line| width_of(line) <= width), "{width}");
        }
    }

    #[test]
    fn lines_are_broken_and_lose_nothing_but_spaces() {
        assert_eq!(broken("    price: not found", 14), ["    price: not", "    found"]);
        assert_eq!(broken("    price: notfound", 14), ["    price:", "    notfound"]);
        assert_eq!(broken("\"url\": \"https://shop.example/1\"", 16), ["\"url\": \"https://", "shop.example/1\""]);
        assert_eq!(broken("it fits", 7), ["it fits"]);
        let text = format!("  {} 価格が見つかりません {}", "word ".repeat(9), "x".repeat(50));
        for width in 2..120 {
            let pieces = broken(&text, width);
            assert!(pieces.iter().all(|piece| width_of(piece) <= width), "{width}: {pieces:?}");
            let solid = |text: &str| text.replace(' ', "");
            assert_eq!(solid(&pieces.concat()), solid(&text), "{width}");
        }
    }

    #[test]
    fn what_is_folded_is_whole_and_what_is_empty_takes_no_line() {
        let rows = ["the whole of a message that has many words", ""].map(|text| vec!["7".to_owned(), text.to_owned()]);
        let lines = Table::new(&[">no.", "message"], &rows).lines(Some(30), Titling::Folded);
        assert_eq!(lines, ["no.", "  7", "    the whole of a message", "    that has many words", "  7"]);
    }

    #[test]
    fn nothing_is_left_out_of_a_file() {
        let lines = Table::new(&HEADINGS, &rows()).lines(None, Titling::Cut);
        assert_eq!(lines.len(), 3);
        assert!(lines[2].contains("at-the-very-least") && lines[0].contains("last day"));
    }
}
