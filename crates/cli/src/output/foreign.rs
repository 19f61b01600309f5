//! Text of unknown origin made harmless, for all that people see: on one line or several as on the pages of the server, and on a
//! terminal, where only our own colours are left to be obeyed. Whatever is printed goes through [`screen`] last, so that nothing gets
//! out where it was forgotten.

use std::borrow::Cow;

use redrive_core::hidden::is_hidden;
pub use redrive_server::look::foreign::{cut, fit, harmless, quoted, width_of};

/// The longest text in a list that is not cut to a terminal, in columns.
pub const COLUMNS_MAX: usize = 500;

/// The longest code that sets a colour, in bytes.
const COLOUR_BYTES_MAX: usize = 16;

/// Text on its way to a terminal: only our own colours, ends of lines and tabs are left to be obeyed.
pub fn screen(text: &str) -> Cow<'_, str> {
    let passes = |c: char| matches!(c, '\n' | '\t') || !is_hidden(c);
    if text.chars().all(passes) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = if c == '\u{1b}' { colour_code(rest) } else { None };
        let (piece, length) = colour.map_or((&rest[..c.len_utf8()], c.len_utf8()), |code| (code, code.len()));
        match colour.is_some() || passes(c) {
            true => safe.push_str(piece),
            false => safe.extend(c.escape_unicode()),
        }
        rest = &rest[length..];
    }
    Cow::Owned(safe)
}

/// The code at the beginning of the text, if it is one of those by which we and the log set colours. Neither hides text.
fn colour_code(text: &str) -> Option<&str> {
    let end = text.bytes().take(COLOUR_BYTES_MAX).position(|byte| byte == b'm')?;
    let numbers = text[..end].strip_prefix("\u{1b}[")?;
    let harmless =
        |number: &str| matches!(number, "" | "0" | "1" | "2" | "3" | "31" | "32" | "33" | "34" | "35" | "36");
    numbers.split(';').all(harmless).then_some(&text[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of them was once a reason to read the rest of the text.
    #[test]
    fn many_escapes_are_looked_at_once() {
        let text = "\u{1b}[é".repeat(200_000);
        assert_eq!(screen(&text).matches("\\u{1b}[é").count(), 200_000);
    }

    #[test]
    fn only_colours_pass_the_screen() {
        let ours = crate::output::paint::paint(crate::output::paint::BAD, "died");
        assert_eq!(screen(&ours), ours);
        assert_eq!(screen("plain\n\ttext"), "plain\n\ttext");
        for hostile in [
            "\u{1b}[2J",
            "\u{1b}[8mhid",
            "\u{1b}]0;title\u{7}",
            "\u{9b}2J",
            "\r",
            "\u{1b}",
            "\u{202e}",
            "\u{1b}[m\u{1b}[1;8m",
        ] {
            let shown = screen(hostile);
            let left = shown.replace("\u{1b}[m", "");
            assert!(!left.contains(is_hidden), "{hostile:?} became {shown:?}");
        }
    }
}
