//! Text of unknown origin (codes, targets, titles) made harmless: one line, of limited width, nothing in it that moves
//! a cursor, changes a colour or turns the direction of writing. Escaping for HTML is not done here: `maud` does it.

use crate::output::print::is_invisible;
use unicode_width::UnicodeWidthChar;

/// More characters than this per column are refused: accents can be piled up without taking any width.
const CHARS_PER_COLUMN: usize = 4;

/// The text in one line of at most `width` columns, shortened with `…`.
pub fn cut(text: &str, width: usize) -> String {
    let line = one_line(text, width);
    if width_of(&line) <= width && line.chars().count() <= width * CHARS_PER_COLUMN {
        return line;
    }
    let mut short = String::new();
    let mut left = width.saturating_sub(1);
    for c in line.chars().take(width * CHARS_PER_COLUMN) {
        match left.checked_sub(c.width().unwrap_or(0)) {
            Some(rest) => left = rest,
            None => break,
        }
        short.push(c);
    }
    short.extend((width > 0).then_some('…'));
    short
}

/// The text cut to `width` columns and filled up with spaces to exactly that.
pub fn fit(text: &str, width: usize) -> String {
    let mut text = cut(text, width);
    text.push_str(&" ".repeat(width.saturating_sub(width_of(&text))));
    text
}

/// How many columns a line takes.
pub fn width_of(line: &str) -> usize {
    line.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// The beginning of the text, long enough to see whether it is too long. What is dangerous is shown instead of obeyed.
fn one_line(text: &str, width: usize) -> String {
    let mut line = String::new();
    for c in text.chars().take(width * CHARS_PER_COLUMN + 1) {
        match c {
            c if c.is_whitespace() => line.push(' '),
            c if c.is_control() || is_invisible(c) => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_obeyed() {
        assert_eq!(cut("a\u{1b}[2Jb\r\nc\t\u{7}", 40), "a\\u{1b}[2Jb  c \\u{7}");
        assert_eq!(cut("user\u{202e}gpj.exe", 40), "user\\u{202e}gpj.exe");
        assert_eq!(cut("zażółć 🦀", 40), "zażółć 🦀");
    }

    #[test]
    fn it_fits() {
        let pile = "e".to_owned() + &"\u{301}".repeat(10_000);
        for text in
            ["", "short", "a name that is a good deal too long", "価格が見つかりません", &pile, "\u{1b}\u{1b}\u{1b}"]
        {
            for width in 0..30 {
                assert!(width_of(&cut(text, width)) <= width, "{text:?} in {width}");
                assert_eq!(width_of(&fit(text, width)), width, "{text:?} in {width}");
            }
            assert!(cut(text, 10).chars().count() <= 41);
        }
        assert_eq!(cut("price-tag", 6), "price…");
        assert_eq!(cut("価格が", 4), "価…");
    }
}
