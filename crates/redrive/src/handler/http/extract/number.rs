//! Numbers as people write them on pages: `1,234.50`, `€ 12.99`, `12,99 €`, `1 234,50 kr`, `-5 %`, `(12)`.
//!
//! There must be exactly one number; words, units and currencies around it are ignored. With both marks, the last one
//! is the decimal mark; a mark that comes more than once groups digits. One comma before exactly three digits groups
//! (`1,234`), one point is a decimal mark (`1.234`), except in an integer; `decimal` in the rule settles it where pages
//! differ. What could mean something else (`1.5k`, `12-15`, `v2`, `< 5`) is refused: a failure can be mended, a wrong
//! record not.

use serde_json::Number;

/// Longer runs of digits are no quantities.
const DIGITS_MAX: usize = 40;

/// Words after a number that multiply it.
const MAGNITUDES: [&str; 16] = [
    "k", "m", "b", "t", "bn", "tn", "mn", "mln", "mio", "mrd", "tsd", "thousand", "million", "billion", "lakh", "crore",
];

/// The decimal mark of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Guessed,
    Point,
    Comma,
}

/// Reads the one number in a text, with the digits that are written; `None` if there is not exactly one.
pub(super) fn number(text: &str, mark: Mark) -> Option<Number> {
    let (negative, (whole, fraction)) = parts(text, mark, false)?;
    let sign = if negative { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}").parse().ok()
}

/// Reads the one integer in a text; a fraction may only be zeros.
pub(super) fn integer(text: &str, mark: Mark) -> Option<Number> {
    let (negative, (whole, fraction)) = parts(text, mark, true)?;
    let sign = if negative && whole != "0" { "-" } else { "" };
    fraction.bytes().all(|digit| digit == b'0').then(|| format!("{sign}{whole}").parse().ok())?
}

fn parts(text: &str, mark: Mark, is_integer: bool) -> Option<(bool, (String, String))> {
    let is_digit = |c: char| c.is_ascii_digit();
    let (mut start, end) = (text.find(is_digit)?, text.rfind(is_digit)? + 1);
    // A bare fraction such as `.99`; in `Rs.500` the point ends a word.
    let mut before = text[..start].chars().rev();
    if matches!(before.next(), Some('.' | ',')) && !before.next().is_some_and(char::is_alphabetic) {
        start -= 1;
    }
    let (prefix, digits, suffix) = (&text[..start], &text[start..end], after_dash(&text[end..])?);
    let is_clear = stands_alone(prefix, suffix) && is_harmless(prefix) && is_harmless(suffix);
    let parts = (sign(prefix)?, split(digits, mark, is_integer)?);
    is_clear.then_some(parts)
}

/// Whether a minus stands before the number; `None` if it may be a dash, as in `SKU-5` or `from - 5`.
fn sign(prefix: &str) -> Option<bool> {
    match prefix.find(['-', '−']) {
        None => Some(false),
        Some(at) if prefix[..at].contains(char::is_alphabetic) => None,
        Some(_) => Some(true),
    }
}

/// What follows a number, without the dash that stands for no cents in `12,-`; any other dash may be a minus or a
/// range.
fn after_dash(suffix: &str) -> Option<&str> {
    let is_dash = |c: char| matches!(c, '-' | '−' | '–' | '—');
    if suffix.starts_with(['.', ',']) {
        return Some(suffix[1..].trim_start_matches(is_dash));
    }
    (!suffix.trim_start().starts_with(is_dash)).then_some(suffix)
}

/// Whether no letter sticks to the digits that may be part of a name or multiply them.
fn stands_alone(prefix: &str, suffix: &str) -> bool {
    let is_letter = |c: &char| c.is_alphabetic() || matches!(c, '²' | '³');
    let before = prefix.chars().rev().take_while(is_letter).count();
    let after = suffix.chars().take_while(is_letter).count();
    let word: String = suffix.trim_start().chars().take_while(is_letter).collect::<String>().to_lowercase();
    let is_magnitude =
        MAGNITUDES.iter().any(|magnitude| word == *magnitude || word.strip_suffix('s') == Some(magnitude));
    before != 1 && after != 1 && !is_magnitude
}

/// Whether what stands around a number leaves it as it is.
fn is_harmless(affix: &str) -> bool {
    let changes =
        |c: char| matches!(c, '<' | '>' | '≤' | '≥' | '^' | '=') || (c.is_numeric() && !matches!(c, '²' | '³'));
    let minuses = affix.matches(['-', '−']).count();
    !affix.contains(changes) && minuses <= 1
}

/// Splits digits with marks into the whole part, without leading zeros, and the fraction.
fn split(digits: &str, mark: Mark, is_integer: bool) -> Option<(String, String)> {
    let (whole, fraction) = match decimal_mark(digits, mark, is_integer) {
        Some(mark) => digits.split_once(mark).filter(|(_, fraction)| !fraction.contains(mark))?,
        None => (digits, ""),
    };
    let whole = ungroup(whole)?;
    let is_plain = fraction.bytes().all(|byte| byte.is_ascii_digit()) && whole.len() + fraction.len() <= DIGITS_MAX;
    let trimmed = whole.trim_start_matches('0');
    is_plain.then(|| (if trimmed.is_empty() { "0".into() } else { trimmed.into() }, fraction.to_owned()))
}

/// Which mark, if any, divides whole and fraction.
fn decimal_mark(digits: &str, mark: Mark, is_integer: bool) -> Option<char> {
    match mark {
        Mark::Point => return digits.contains('.').then_some('.'),
        Mark::Comma => return digits.contains(',').then_some(','),
        Mark::Guessed => {}
    }
    let at = digits.rfind(['.', ','])?;
    let (last, other) = if digits[at..].starts_with('.') { ('.', ',') } else { (',', '.') };
    if digits.contains(other) {
        return Some(last);
    }
    let (before, after) = (&digits[..at], &digits[at + 1..]);
    let is_group = after.len() == 3
        && (1..=3).contains(&before.len())
        && before.bytes().all(|byte| byte.is_ascii_digit())
        && !before.starts_with('0')
        && (last == ',' || is_integer);
    let groups = is_group || before.contains(last);
    (!groups).then_some(last)
}

/// Joins groups of digits: one kind of mark, three digits each (two in the middle as in India, with commas).
fn ungroup(whole: &str) -> Option<String> {
    let is_mark = |c: char| matches!(c, '.' | ',' | '\'' | '’' | '_') || c.is_whitespace();
    let Some(mark) = whole.chars().find(|c| is_mark(*c)) else {
        return whole.bytes().all(|byte| byte.is_ascii_digit()).then(|| whole.to_owned());
    };
    let groups: Vec<&str> = whole.split(mark).collect();
    let (last, middle) = (groups.len() - 1, if mark == ',' { 2..=3 } else { 3..=3 });
    let fits = |(index, group): (usize, &&str)| {
        let right = match index {
            0 => (1..=3).contains(&group.len()),
            _ if index == last => group.len() == 3,
            _ => middle.contains(&group.len()),
        };
        right && group.bytes().all(|byte| byte.is_ascii_digit())
    };
    groups.iter().enumerate().all(fits).then(|| groups.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        number(text, Mark::Guessed).map_or_else(|| "none".into(), |number| number.to_string())
    }

    fn whole(text: &str) -> String {
        integer(text, Mark::Guessed).map_or_else(|| "none".into(), |number| number.to_string())
    }

    #[test]
    fn plain_numbers_keep_their_digits() {
        let cases =
            [("12", "12"), ("12.50", "12.50"), ("-3.5", "-3.5"), ("007", "7"), ("0.125", "0.125"), (".99", "0.99")];
        for (text, expected) in cases {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn prices_of_many_countries() {
        let cases = [
            ("1,234.50", "1234.50"),
            ("€ 12.99", "12.99"),
            ("12,99 €", "12.99"),
            ("1.234,50 €", "1234.50"),
            ("1 234,50 kr", "1234.50"),
            ("1\u{202f}234\u{a0}€", "1234"),
            ("1’234.50", "1234.50"),
            ("CHF 1'234'567.-", "1234567"),
            ("₹ 1,23,456.00", "123456.00"),
            ("US$1,299", "1299"),
            ("EUR12.99", "12.99"),
            ("12.99EUR", "12.99"),
            ("Rs.500", "500"),
            ("Price: $ 12.99*", "12.99"),
            ("12,-", "12"),
            ("12,– €", "12"),
            ("2,50 €/kg", "2.50"),
            ("1.234.567", "1234567"),
            ("0,125", "0.125"),
            ("1234,567", "1234.567"),
            ("1.234", "1.234"),
            ("1,234", "1234"),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn signs_counts_and_shares() {
        let cases = [
            ("-20%", "-20"),
            ("− 5", "-5"),
            ("-€5.00", "-5.00"),
            ("€-5", "-5"),
            ("(1,204)", "1204"),
            ("100+ sold", "100"),
            ("12 m²", "12"),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn what_could_mean_something_else_is_refused() {
        let refused = [
            "",
            "Sold out",
            "12 - 15",
            "12–15",
            "4.5 out of 5",
            "2024-01-02",
            "10:30",
            "1/2",
            "1.5k",
            "1.5 K",
            "2 M",
            "3 million",
            "3 Millions",
            "v2",
            "A4",
            "SKU-123",
            "from - 5",
            "< 5",
            "10^3",
            "12,34,5",
            "1.2.3",
            "1 23",
            "5-",
            "5g",
            "٣",
            "½",
            "1½",
            "1,234,56",
            "1'234,567,8",
            "--5",
        ];
        for text in refused {
            assert_eq!(read(text), "none", "{text}");
        }
        assert_eq!(read(&"9".repeat(41)), "none");
    }

    #[test]
    fn integers() {
        let cases =
            [("1.234", "1234"), ("1,234", "1234"), ("12.00", "12"), ("12.5", "none"), ("(7)", "7"), ("-0", "0")];
        for (text, expected) in cases {
            assert_eq!(whole(text), expected, "{text}");
        }
    }

    #[test]
    fn a_stated_mark_settles_it() {
        let with = |text, mark| number(text, mark).map(|number| number.to_string());
        assert_eq!(with("1.234", Mark::Comma).as_deref(), Some("1234"));
        assert_eq!(with("1,234", Mark::Comma).as_deref(), Some("1.234"));
        assert_eq!(with("1,234", Mark::Point).as_deref(), Some("1234"));
        assert_eq!(with("12,99", Mark::Point), None);
        assert_eq!(with("1.2", Mark::Comma), None);
    }

    #[test]
    fn any_text_is_survived() {
        for text in ["é1é", "1é", "💰1💰", "١1", ".", "1.", "..1", ",1,", "1,.2", "'1", "1 ", "\u{a0}1\u{a0}"] {
            let _ = (number(text, Mark::Guessed), integer(text, Mark::Comma));
        }
    }
}
