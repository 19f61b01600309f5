//! Numbers as people write them on pages: `1,234.50`, `€ 12.99`, `12,99 €`, `1 234,50 kr`, `-5 %`, `(12)`.
//!
//! There must be exactly one number; words, units and currencies around it are ignored. With both marks, the last one
//! is the decimal mark; a mark that comes more than once groups digits; `,-` stands for no cents. One mark before
//! exactly three digits (`1.299`, `1,299`) is both a thousand and a fraction somewhere, and a wrong guess is wrong by a
//! factor of 1000: it is refused unless `decimal` in the rule settles it. What could mean something else (`1.5k`,
//! `12-15`, `v2`, `< 5`) is refused too: a failure can be mended, a wrong record not.

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
    /// Not stated: it is known where only one reading is possible.
    Unstated,
    Point,
    Comma,
}

/// Why a text is not read as a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// There is none, more than one, or something that changes its meaning.
    NotOne,
    /// There is one, but it has two readings.
    Ambiguous(Readings),
}

/// What an ambiguous number may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readings {
    /// With `decimal = "."`.
    pub point: String,
    /// With `decimal = ","`.
    pub comma: String,
}

/// Reads the one number in a text, with the digits that are written.
pub(super) fn number(text: &str, mark: Mark) -> Result<Number, Unread> {
    let Parts { sign, whole, fraction } = parts(text, mark)?;
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}").parse().map_err(|_| Unread::NotOne)
}

/// Reads the one integer in a text; a fraction may only be zeros.
pub(super) fn integer(text: &str, mark: Mark) -> Result<Number, Unread> {
    let Parts { sign, whole, fraction } = parts(text, mark)?;
    let sign = if whole == "0" { "" } else { sign };
    let is_whole = fraction.bytes().all(|digit| digit == b'0');
    let number = is_whole.then(|| format!("{sign}{whole}").parse().ok()).flatten();
    number.ok_or(Unread::NotOne)
}

/// A number, taken apart.
struct Parts {
    sign: &'static str,
    /// Without leading zeros.
    whole: String,
    fraction: String,
}

fn parts(text: &str, mark: Mark) -> Result<Parts, Unread> {
    let written = Written::find(text).ok_or(Unread::NotOne)?;
    if mark == Mark::Unstated
        && let Some(readings) = written.readings()
    {
        return Err(Unread::Ambiguous(readings));
    }
    let (whole, fraction) = written.split(mark).ok_or(Unread::NotOne)?;
    Ok(Parts { sign: written.sign, whole, fraction })
}

/// The one number of a text as it is written.
struct Written<'a> {
    sign: &'static str,
    /// From the first digit to the last, with the marks between them.
    digits: &'a str,
    /// Whether `,-` or `.-` follows: it has no fraction, so every mark groups.
    has_dash: bool,
}

impl<'a> Written<'a> {
    fn find(text: &'a str) -> Option<Self> {
        let is_digit = |c: char| c.is_ascii_digit();
        let (mut start, end) = (text.find(is_digit)?, text.rfind(is_digit)? + 1);
        if is_bare_fraction(&text[..start])? {
            start -= 1;
        }
        let (suffix, has_dash) = after_dash(&text[end..])?;
        let (prefix, digits) = (&text[..start], &text[start..end]);
        let is_clear = stands_alone(prefix, suffix) && is_harmless(prefix) && is_harmless(suffix);
        let sign = if is_negative(prefix)? { "-" } else { "" };
        is_clear.then_some(Self { sign, digits, has_dash })
    }

    /// The two readings of one mark before exactly three digits. A group of thousands has one to three digits before it
    /// and no leading zero, so that `0.125` and `1234.567` have only one.
    fn readings(&self) -> Option<Readings> {
        let (whole, group) = self.digits.split_once(['.', ',']).filter(|_| !self.has_dash)?;
        let is_plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_thousands = group.len() == 3 && (1..=3).contains(&whole.len()) && !whole.starts_with('0');
        if !is_thousands || !is_plain(whole) || !is_plain(group) {
            return None;
        }
        let (grouped, fractional) = (format!("{}{whole}{group}", self.sign), format!("{}{whole}.{group}", self.sign));
        let is_point = self.digits.as_bytes()[whole.len()] == b'.';
        let (point, comma) = if is_point { (fractional, grouped) } else { (grouped, fractional) };
        Some(Readings { point, comma })
    }

    /// The whole part, without leading zeros, and the fraction.
    fn split(&self, mark: Mark) -> Option<(String, String)> {
        let (whole, fraction) = match self.decimal_mark(mark) {
            Some(mark) => self.digits.split_once(mark).filter(|(_, fraction)| !fraction.contains(mark))?,
            None => (self.digits, ""),
        };
        let whole = ungroup(whole)?;
        let is_plain = fraction.bytes().all(|byte| byte.is_ascii_digit()) && whole.len() + fraction.len() <= DIGITS_MAX;
        let fits = is_plain && (fraction.is_empty() || !self.has_dash);
        let trimmed = whole.trim_start_matches('0');
        fits.then(|| (if trimmed.is_empty() { "0".into() } else { trimmed.into() }, fraction.to_owned()))
    }

    /// Which mark, if any, divides whole and fraction.
    fn decimal_mark(&self, mark: Mark) -> Option<char> {
        let digits = self.digits;
        match mark {
            Mark::Point => return digits.contains('.').then_some('.'),
            Mark::Comma => return digits.contains(',').then_some(','),
            Mark::Unstated if self.has_dash => return None,
            Mark::Unstated => {}
        }
        let at = digits.rfind(['.', ','])?;
        let (last, other) = if digits[at..].starts_with('.') { ('.', ',') } else { (',', '.') };
        let groups = !digits.contains(other) && digits[..at].contains(last);
        (!groups).then_some(last)
    }
}

/// Whether the mark before the digits begins a fraction, as in `.99` and `-.5`; in `Rs.500` the point ends a word. `None` if
/// it may be either, as in `₹.500`, or something else, as in `Only...5`.
fn is_bare_fraction(prefix: &str) -> Option<bool> {
    let Some(before) = prefix.strip_suffix(['.', ',']) else { return Some(false) };
    match before.chars().next_back() {
        None => Some(true),
        Some(c) if c.is_whitespace() || is_dash(c) || matches!(c, '+' | '(' | '[' | '{') => Some(true),
        Some(c) if c.is_alphabetic() => Some(false),
        Some(_) => None,
    }
}

/// Whether a character is one of those that people write for a minus: hyphens, dashes and the minus itself.
fn is_dash(c: char) -> bool {
    matches!(c, '-' | '\u{2010}'..='\u{2015}' | '−' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}')
}

/// Whether a minus stands before the number; `None` if it may be a dash, as in `SKU-5`, `from – 5` or `— 5`.
fn is_negative(prefix: &str) -> Option<bool> {
    match prefix.char_indices().find(|(_, c)| is_dash(*c)) {
        None => Some(false),
        // Longer ones stand before what somebody says, not before a quantity.
        Some((_, '—' | '―' | '\u{fe58}')) => None,
        Some((at, _)) if prefix[..at].contains(char::is_alphabetic) => None,
        Some(_) => Some(true),
    }
}

/// What follows a number, and whether the dash that stands for no cents in `12,-` was taken off it; any other dash may
/// be a minus or a range.
fn after_dash(suffix: &str) -> Option<(&str, bool)> {
    if let Some(rest) = suffix.strip_prefix(['.', ',']) {
        let undashed = rest.trim_start_matches(is_dash);
        return Some((undashed, undashed.len() < rest.len()));
    }
    (!suffix.trim_start().starts_with(is_dash)).then_some((suffix, false))
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
    let minuses = affix.matches(is_dash).count();
    !affix.contains(changes) && minuses <= 1
}

/// Joins groups of digits: one kind of mark, three digits each (two in the middle as in India, with commas).
fn ungroup(whole: &str) -> Option<String> {
    let is_mark =
        |c: char| matches!(c, '.' | ',' | '\'' | '’' | '_') || (c.is_whitespace() && c != super::text::RAISED);
    let Some(mark) = whole.chars().find(|c| is_mark(*c)) else {
        return whole.bytes().all(|byte| byte.is_ascii_digit()).then(|| whole.to_owned());
    };
    let groups: Vec<&str> = whole.split(mark).collect();
    if whole.starts_with('0') {
        return None;
    }
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
mod tests;
