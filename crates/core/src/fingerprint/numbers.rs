//! Numbers: which of them mean something, and which units belong to a quantity.

use super::vocabulary::{CODES, UNITS, has};

/// Whether a word is a unit.
pub(super) fn is_unit(word: &str) -> bool {
    (1..=12).contains(&word.len()) && has(UNITS, word)
}

/// The length of the unit that follows a number after one space, with that space. Single letters could be anything.
pub(super) fn following_unit(text: &str) -> usize {
    let Some(rest) = text.strip_prefix(' ') else { return 0 };
    let end = rest.bytes().take(13).position(|b| !b.is_ascii_alphabetic()).unwrap_or(rest.len().min(13));
    let unit = &rest[..end];
    let joined = rest.as_bytes().get(end).is_some_and(|b| matches!(b, b'_' | b'-' | b'=' | b'/') || *b >= 0x80);
    if joined || !(unit == "B" || (unit.len() > 1 && is_unit(unit))) { 0 } else { end + 1 }
}

/// `12.5s`, `60000ms`, `+1s0ms`, `64172MB`.
pub(super) fn is_quantity(word: &str) -> bool {
    let mut units = word.split(|c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | '~'));
    let starts_with_unit = word.starts_with(|c: char| c.is_ascii_alphabetic());
    word.len() <= 24 && !starts_with_unit && units.all(|unit| unit.is_empty() || is_unit(unit))
}

/// Whether a number or code means something after this word: `errno 104`, `status code 403`, `SQLSTATE 42P01`, `HRESULT
/// 0x80004005`.
pub(super) fn means_something(code: &str, word: &str) -> bool {
    if ["http", "response", "returned", "got", "received"].iter().any(|name| ends_with_name(word, name)) {
        return is_failed_status(code);
    }
    let known = CODES.iter().any(|name| ends_with_name(word, name));
    known && (is_short_number(code) || is_short_hex(code) || (has(&["sqlstate"], word) && code.len() == 5))
}

/// 0 and 2xx say that nothing is wrong, so they are no cause.
fn is_short_number(code: &str) -> bool {
    let digits = code.strip_prefix('-').unwrap_or(code);
    let success = digits == "0" || (digits.len() == 3 && digits.starts_with('2'));
    !success && (1..=6).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
}

fn is_short_hex(code: &str) -> bool {
    code.len() <= 10 && code.strip_prefix("0x").is_some_and(|hex| hex.bytes().any(|b| b != b'0'))
}

/// Whether this is an HTTP status that says that something failed.
pub(super) fn is_failed_status(number: &str) -> bool {
    number.len() == 3 && number.starts_with(['4', '5']) && number.bytes().all(|b| b.is_ascii_digit())
}

/// Whether an HTTP status stands before this: `403 Forbidden`, `too many 503 error responses`; alone or before `,` and
/// `:` only where it is the `first` thing said.
pub(super) fn is_status_before(next: &str, first: bool) -> bool {
    match next.as_bytes() {
        [b' ', capital, small, ..] if capital.is_ascii_uppercase() => small.is_ascii_lowercase(),
        [b' ', ..] => next.starts_with(" error") || next.starts_with(" response"),
        [] | [b',' | b':', ..] => first,
        _ => false,
    }
}

/// `exitCode`, `exit_code` and `code` end with the name `code`, `keycode` does not.
fn ends_with_name(word: &str, name: &str) -> bool {
    let Some(from) = word.len().checked_sub(name.len()) else { return false };
    let (start, end) = word.as_bytes().split_at(from);
    let apart = start.last().is_none_or(|b| !b.is_ascii_alphanumeric()) || end[0].is_ascii_uppercase();
    apart && end.eq_ignore_ascii_case(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_mean_something_after_their_name() {
        for (word, code) in [
            ("Errno", "-2"),
            ("WinError", "10054"),
            ("status", "403"),
            ("exit_code", "137"),
            ("HTTP", "502"),
            ("got", "502"),
            ("SQLSTATE", "42P01"),
            ("HRESULT", "0x80004005"),
            ("ConnectionResetError", "104"),
        ] {
            assert!(means_something(code, word), "{word} {code}");
        }
        for (word, code) in [
            ("status", "200"),
            ("code", "0"),
            ("keycode", "4"),
            ("HTTP", "1"),
            ("error", "1445144423"),
            ("size", "404"),
        ] {
            assert!(!means_something(code, word), "{word} {code}");
        }
    }

    #[test]
    fn units_belong_to_their_number() {
        assert_eq!(following_unit(" seconds to build"), 8);
        assert_eq!(following_unit(" KB)"), 3);
        assert_eq!(following_unit(" s"), 0);
        assert_eq!(following_unit(" min_size"), 0);
        for (word, quantity) in [("12.5s", true), ("+1s0ms", true), ("64172MB", true), ("41C", false), ("s3", false)] {
            assert_eq!(is_quantity(word), quantity, "{word}");
        }
    }
}
