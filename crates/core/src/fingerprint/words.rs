//! Words: whether one varies, by its shape alone.

use super::numbers;
use super::vocabulary::{SPELLED_WITH_DIGITS, TAGS, TOP_LEVELS, has};

/// What a word looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// It means something.
    Plain,
    /// It varies as a whole.
    Varies(&'static str),
    /// Only its digits vary: `core.129`.
    Numbered,
}

#[derive(Default)]
struct Counts {
    digits: usize,
    digit_runs: usize,
    upper: usize,
    lower: usize,
    dots: usize,
    slashes: usize,
    backslashes: usize,
    joints: usize,
    not_hex: usize,
    /// Runs of one kind, where a capital belongs to the small letters after it.
    segments: usize,
}

impl Counts {
    fn of(word: &str) -> Self {
        let mut counts = Self::default();
        let mut previous = 0u8;
        for byte in word.bytes() {
            match byte {
                b'0'..=b'9' => {
                    counts.digits += 1;
                    let starts = !previous.is_ascii_digit();
                    counts.digit_runs += usize::from(starts);
                    counts.segments += usize::from(starts);
                }
                b'A'..=b'Z' => {
                    counts.upper += 1;
                    counts.not_hex += usize::from(byte > b'F');
                    counts.segments += usize::from(!previous.is_ascii_uppercase());
                }
                b'a'..=b'z' => {
                    counts.lower += 1;
                    counts.not_hex += usize::from(byte > b'f');
                    counts.segments += usize::from(!previous.is_ascii_alphabetic());
                }
                b'.' => counts.dots += 1,
                b'/' => counts.slashes += 1,
                b'\\' => counts.backslashes += 1,
                b'-' | b'_' => counts.joints += 1,
                _ => counts.not_hex += 1,
            }
            previous = byte;
        }
        counts
    }

    fn letters(&self) -> usize {
        self.upper + self.lower
    }

    /// Kinds change so often that nobody wrote it: `aiiAm_izbLg`, `B0E9CB7A77`.
    fn look_random(&self) -> bool {
        let signs = self.digits + self.letters();
        let mixed = (self.upper > 0 && self.lower > 0) || self.digits > 0;
        signs >= 8 && mixed && self.segments > 2 && signs < 3 * self.segments
    }
}

/// What a word looks like. Words hold no white space, quotes or brackets.
pub(super) fn shape(word: &str) -> Shape {
    let counts = Counts::of(word);
    if counts.digits == 0
        && counts.dots + counts.slashes + counts.backslashes == 0
        && counts.upper < 2
        && counts.not_hex > 0
    {
        return Shape::Plain;
    }
    if counts.digits > 0 && counts.letters() == 0 {
        return Shape::Varies(number_kind(word, &counts));
    }
    if let Some(shape) = path(word, &counts).or_else(|| host(word, &counts)) {
        return shape;
    }
    if counts.digits > 0 && is_selector(word) {
        return Shape::Plain;
    }
    if counts.digits == 0 {
        let hash = counts.not_hex == 0 && counts.dots == 0 && counts.letters() >= 8;
        return if hash || counts.look_random() { Shape::Varies("id") } else { Shape::Plain };
    }
    with_digits(word, &counts)
}

fn with_digits(word: &str, counts: &Counts) -> Shape {
    if word.starts_with("0x") || word.starts_with("0X") {
        return Shape::Varies("address");
    }
    if numbers::is_quantity(word) {
        return Shape::Varies("quantity");
    }
    let hex = counts.not_hex == 0 && counts.dots == 0;
    if hex && counts.digits > 1 && counts.digits + counts.letters() >= 5 {
        return Shape::Varies(if counts.joints == 4 { "uuid" } else { "hash" });
    }
    if is_spelled_with_digits(word) || (counts.lower == 0 && word.contains("ERR")) {
        return Shape::Plain;
    }
    let tangled = counts.digit_runs >= 2 && counts.joints + counts.dots == 0;
    if counts.digit_runs >= 3 || tangled || counts.joints > 0 || counts.look_random() {
        return Shape::Varies("id");
    }
    Shape::Numbered
}

fn number_kind(word: &str, counts: &Counts) -> &'static str {
    match counts.dots {
        3 if counts.digits + 3 == word.len() => "ip",
        _ if word.contains(':') => "time",
        _ if counts.joints == 2 && counts.digits == 8 => "date",
        _ => "number",
    }
}

fn path(word: &str, counts: &Counts) -> Option<Shape> {
    if counts.backslashes > 1 {
        return Some(Shape::Varies("path"));
    }
    if counts.slashes == 0 {
        return None;
    }
    if word.starts_with("HTTP/") {
        return Some(Shape::Numbered);
    }
    if is_xpath(word) {
        return Some(Shape::Plain);
    }
    let rooted = ["/", "./", "../", "~/"].iter().any(|root| word.len() > root.len() && word.starts_with(root));
    let long = counts.slashes > 1 || counts.digits > 0 || counts.dots > 0;
    (rooted || long).then_some(Shape::Varies("path"))
}

/// `//h3`, `.//td/@href`; a host without its scheme has a dot.
fn is_xpath(word: &str) -> bool {
    let rest = word.strip_prefix('.').unwrap_or(word);
    rest.strip_prefix("//").is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '*' || c == '@') && !rest.contains('.')
    })
}

fn host(word: &str, counts: &Counts) -> Option<Shape> {
    if counts.dots == 0 {
        return None;
    }
    let name = word.trim_end_matches('.');
    let (_, last) = name.rsplit_once('.')?;
    let known = TOP_LEVELS.contains(&last) || name.starts_with("www.");
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'*' | b'@' | b'+'));
    let kind = if name.contains('@') { "email" } else { "host" };
    (known && plain).then_some(Shape::Varies(kind))
}

/// `h1`, `h2.title`, `.col-3`, `#row2`: the digits of a selector of CSS were written by a person.
fn is_selector(word: &str) -> bool {
    let (tag, classes) = word.split_at(word.find(['.', '#']).unwrap_or(word.len()));
    if classes.is_empty() {
        return matches!(tag.as_bytes(), [b'h', b'1'..=b'6']);
    }
    (tag.is_empty() || has(TAGS, tag)) && classes.split(['.', '#']).skip(1).all(is_numbered_name)
}

/// `price2`, `address_line_2`: a name with few digits, and not one that a machine made.
pub(super) fn is_numbered_name(word: &str) -> bool {
    let counts = Counts::of(word);
    let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let is_hash = counts.not_hex == 0 && counts.digits > 1 && counts.digits + counts.letters() >= 5;
    is_name && counts.digits <= 2 && !is_hash && !counts.look_random()
}

fn is_spelled_with_digits(word: &str) -> bool {
    SPELLED_WITH_DIGITS.iter().any(|name| {
        let starts = word.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        starts && word.len() <= name.len() + 4
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_known_by_their_shape() {
        let table = [
            ("timeout", Shape::Plain),
            ("TCP/IP", Shape::Plain),
            ("application/json", Shape::Plain),
            ("java.net.SocketTimeoutException", Shape::Plain),
            ("isWiredHeadsetOn", Shape::Plain),
            ("ERR_HTTP2_PROTOCOL_ERROR", Shape::Plain),
            ("utf-8", Shape::Plain),
            ("//h3", Shape::Plain),
            ("h1", Shape::Plain),
            ("h1.title", Shape::Plain),
            (".col-3", Shape::Plain),
            ("div#row2", Shape::Plain),
            ("#4e341c8f", Shape::Varies("id")),
            ("12", Shape::Varies("number")),
            ("10.0.0.1", Shape::Varies("ip")),
            ("2024-05-06", Shape::Varies("date")),
            ("07:07:00", Shape::Varies("time")),
            ("0x7f2e0eba6810", Shape::Varies("address")),
            ("45s", Shape::Varies("quantity")),
            ("7f1c8e9a-8f0b-4f5e-9b63-0a7b8f1b2c3d", Shape::Varies("uuid")),
            ("4e341c8fe00b9300", Shape::Varies("hash")),
            ("ffffffff", Shape::Varies("id")),
            ("www.shop.example", Shape::Varies("host")),
            ("a.b@shop.com", Shape::Varies("email")),
            ("/var/data", Shape::Varies("path")),
            ("x\\y\\z.py", Shape::Varies("path")),
            ("B0E9CX7A77", Shape::Varies("id")),
            ("aiiAm_izbLg", Shape::Varies("id")),
            ("blk_-1608999687919862906", Shape::Varies("id")),
            ("core.2275", Shape::Numbered),
            ("ssh2", Shape::Numbered),
            ("HTTP/1.1", Shape::Numbered),
        ];
        for (word, expected) in table {
            assert_eq!(shape(word), expected, "{word}");
        }
    }
}
