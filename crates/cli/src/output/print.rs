//! Printing to standard output, with colours only where they are seen. A full disk is an error like any other, and a
//! reader that went away is one that ends the program quietly.

use std::fmt;
use std::io::{self, Write};

/// Prints a line: `out!("{n} jobs")?`.
macro_rules! out {
    ($($text:tt)*) => { $crate::output::print::line(format_args!($($text)*)) };
}
pub(crate) use out;

/// Prints a line.
pub fn line(text: fmt::Arguments<'_>) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_fmt(text)?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}

/// Text of unknown origin, made safe for a terminal: what would move the cursor or change a colour is shown instead of
/// obeyed. Ends of lines and tabs stay.
pub fn harmless(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => safe.push(c),
            '\r' => {}
            c if c.is_control() || is_invisible(c) => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
    }
    safe
}

/// Whether a character shows nothing but changes what is shown around it: direction marks, zero-width ones, tags.
pub fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_codes_are_shown_not_obeyed() {
        assert_eq!(harmless("a\u{1b}[2Jb\n\tc\r\n"), "a\\u{1b}[2Jb\n\tc\n");
        assert_eq!(harmless("zażółć 🦀"), "zażółć 🦀");
        assert_eq!(harmless("a\u{202e}b"), "a\\u{202e}b");
    }
}
