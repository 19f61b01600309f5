//! Finding secrets in any text by the names they go under: parameters of an address, `name=value`, `name: value`, what
//! follows `Bearer`, and the user and password of an address.
//!
//! What stands behind a secret is kept: it is part of what a failure is recognised by.

use super::{MASK, Secrets};

/// The text without what goes under a secret name.
pub(super) fn mask(secrets: &Secrets, text: &str) -> String {
    mask_credentials(&mask_pairs(secrets, &mask_parameters(secrets, text)))
}

/// Masks `name=value` where the name is secret and stands where a parameter does: after `?`, `&` or `;`.
fn mask_parameters(secrets: &Secrets, text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['?', '&', ';']) {
        masked.push_str(&rest[..=at]);
        rest = &rest[at + 1..];
        let end = rest.find(|c: char| c == '?' || ends_value(c)).unwrap_or(rest.len());
        if let Some((name, value)) = rest[..end].split_once('=')
            && secrets.is_secret_name(name)
            && let value @ 1.. = without_punctuation(value)
        {
            masked.push_str(name);
            masked.push('=');
            masked.push_str(MASK);
            rest = &rest[name.len() + 1 + value..];
        }
    }
    masked.push_str(rest);
    masked
}

/// Names that people also use for what is no secret: `key=price`, `unexpected token: }`. What they stand before must look like
/// a secret.
const COMMON_NAMES: &[&str] = &["key", "token", "auth", "sid", "sig", "session", "signature", "cookie", "secret"];

/// Values of common names that are shorter than this are words.
const COMMON_BYTES_MIN: usize = 12;

/// How much of a value is looked at to see whether it is a secret, in bytes: a text may be full of names, and each of them
/// would be a reason to read on to its end.
const LOOKED_AT_BYTES: usize = 256;

/// Masks `name=value` and `name: value` in any text where the name is a secret's, and what follows `Bearer`.
fn mask_pairs(secrets: &Secrets, text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['=', ':', ' ']) {
        let (before, sign) = (&rest[..at], rest.as_bytes()[at]);
        masked.push_str(&rest[..=at]);
        rest = &rest[at + 1..];
        let name = match sign {
            b' ' => last_name(before).filter(|name| name.eq_ignore_ascii_case("bearer")),
            // With blanks before it the name was passed already: it is the end of what was written.
            _ if before.trim().is_empty() => last_name(masked[..masked.len() - 1].trim_end()),
            _ => last_name(before),
        };
        let Some(name) = name.filter(|name| sign == b' ' || secrets.is_secret_name(name)).map(str::to_owned) else {
            continue;
        };
        let is_header =
            sign == b':' && ["authorization", "cookie"].iter().any(|end| name.to_ascii_lowercase().ends_with(end));
        let beginning = beginning(rest);
        if looks_secret(&name, &beginning[value_in(beginning, !is_header)], is_header) {
            let value = value_in(rest, !is_header);
            masked.push_str(&rest[..value.start]);
            masked.push_str(MASK);
            rest = &rest[value.end..];
        }
    }
    masked.push_str(rest);
    masked
}

/// The name at the end of a text, in quotes or not.
fn last_name(text: &str) -> Option<&str> {
    let text = text.trim_end_matches(['"', '\'', '\\']);
    let name = text.rsplit(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c))).next()?;
    (!name.is_empty()).then_some(name)
}

/// Whether a value can be a secret of that name.
fn looks_secret(name: &str, value: &str, is_header: bool) -> bool {
    let value = value.trim();
    let common = COMMON_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name));
    match (value.is_empty(), common) {
        (true, _) => false,
        (_, true) if is_header => value.contains('='),
        (_, true) => value.len() >= COMMON_BYTES_MIN && value.bytes().any(|b| b.is_ascii_digit()),
        (_, false) => true,
    }
}

/// As much of a text as says whether its value is a secret, with the blanks before it.
fn beginning(text: &str) -> &str {
    let start = text.len() - text.trim_start_matches(BEFORE_VALUE).len();
    let end = (start + LOOKED_AT_BYTES).min(text.len());
    let end = (start..=end).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(start);
    &text[..end]
}

/// What may stand between a name and its value.
const BEFORE_VALUE: [char; 2] = [' ', '\\'];

/// Where a value stands: between brackets or quotes, or up to what cannot be part of it.
fn value_in(text: &str, one_word: bool) -> std::ops::Range<usize> {
    let start = text.len() - text.trim_start_matches(BEFORE_VALUE).len();
    let value = &text[start..];
    if value.starts_with(['[', '{', '(']) {
        return start..start + bracketed(value);
    }
    if let Some(quote) = value.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let end = value[1..].find(quote).unwrap_or(value.len() - 1);
        return start + 1..start + 1 + value[1..=end].trim_end_matches('\\').len();
    }
    if !one_word {
        return start..start + value.find(|c: char| "\"'<>)}]\r\n".contains(c)).unwrap_or(value.len());
    }
    start..start + without_punctuation(&value[..value.find(ends_value).unwrap_or(value.len())])
}

/// Whether a character ends a value of one word. What follows is not secret, and belongs to what a failure is
/// recognised by.
fn ends_value(c: char) -> bool {
    c.is_whitespace() || "\"'<>)}]&;,#".contains(c)
}

/// The length of a value without what ends the sentence or the quote that it stands in.
fn without_punctuation(value: &str) -> usize {
    value.trim_end_matches(['.', ':', '!', '…', '\\']).len()
}

/// The length of a list or an object, with its brackets; without its end, that of the line.
fn bracketed(text: &str) -> usize {
    let (mut depth, mut quote) = (0, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (_, '\n') => return at,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{' | '(') => depth += 1,
            (None, ']' | '}' | ')') => depth -= 1,
            (None, _) => {}
        }
        if depth == 0 {
            return at + c.len_utf8();
        }
    }
    text.len()
}

/// Masks the user and password of `scheme://user:password@host`.
fn mask_credentials(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        masked.push_str(&rest[..at + 3]);
        rest = &rest[at + 3..];
        let end = rest.find(|c: char| "/?#\"'<> ".contains(c) || c.is_whitespace()).unwrap_or(rest.len());
        if let Some(host) = rest[..end].rfind('@') {
            masked.push_str(MASK);
            rest = &rest[host..];
        }
    }
    masked.push_str(rest);
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_any_text_are_masked() {
        let secrets = Secrets::default();
        let table = [
            ("Authorization: Bearer eyJhbGciOi", "Authorization: ***"),
            ("sent Bearer eyJhbGciOi and failed", "sent Bearer *** and failed"),
            ("{'Cookie': 'sid=1; b=2', 'Accept': '*/*'}", "{'Cookie': '***', 'Accept': '*/*'}"),
            ("password=hunter2 for user bob", "password=*** for user bob"),
            ("api_key=AKIA777", "api_key=***"),
            ("unexpected token: '}' at 7", "unexpected token: '}' at 7"),
            ("the answer was 403: key price is missing", "the answer was 403: key price is missing"),
            ("a = b, c: d", "a = b, c: d"),
            ("key=price not found in record", "key=price not found in record"),
            ("expected token=EOF, got token=IDENT", "expected token=EOF, got token=IDENT"),
            ("cookie: none were set by the server", "cookie: none were set by the server"),
            ("password = 'SECRET'", "password = '***'"),
            ("X-Auth-Token: abc", "X-Auth-Token: ***"),
            ("{\"accessToken\": \"abc\", \"a\": 1}", "{\"accessToken\": \"***\", \"a\": 1}"),
            ("{\\\"password\\\": \\\"X\\\"}", "{\\\"password\\\": \\\"***\\\"}"),
            ("token=abcdef1234567890", "token=***"),
            ("{\"tokens\": [\"abc\", \"d]e\"], \"a\": [1]}", "{\"tokens\": ***, \"a\": [1]}"),
            ("passwords={'me': ['x', 'y']} and more", "passwords=*** and more"),
            ("unexpected token: [1, 2]", "unexpected token: [1, 2]"),
            ("GET https://h/in.php?key=abc123: 502", "GET https://h/in.php?key=***: 502"),
            ("failed (https://h/in.php?key=abc123), again", "failed (https://h/in.php?key=***), again"),
            ("[https://h/?a=1&api_key=abc]: refused.", "[https://h/?a=1&api_key=***]: refused."),
            ("{\\\"url\\\": \\\"https://h/?key=abc\\\"}", "{\\\"url\\\": \\\"https://h/?key=***\\\"}"),
            ("login failed: password=hunter2: wrong", "login failed: password=***: wrong"),
            ("api_key=abc,user=bob", "api_key=***,user=bob"),
        ];
        for (text, masked) in table {
            assert_eq!(secrets.mask(text), masked);
        }
    }
    /// Each name was once a reason to read the rest of the text: the text was read 20,000 times.
    #[test]
    fn a_long_text_full_of_names_is_read_once() {
        let secrets = Secrets::default();
        for piece in
            ["cookie:", "token:[", "token=", "token:{'", "cookie: ", "token: \\\"", "?token=", "sid://", "key: ("]
        {
            let text = piece.repeat((128 << 10) / piece.len());
            assert_eq!(secrets.mask(&text).len(), text.len(), "{piece}");
        }
    }

    #[test]
    fn a_long_secret_is_masked_to_its_end() {
        let secrets = Secrets::default();
        let long = "a1é-".repeat(10_000);
        for (before, after) in [
            ("token=", " x"),
            ("cookie: a=", "\nx"),
            ("tokens: ['", "'] x"),
            ("token: \"", "\" x"),
            ("password=", " x"),
        ] {
            let masked = secrets.mask(&format!("{before}{long}{after}"));
            assert!(!masked.contains("a1") && masked.ends_with('x'), "{before}: {} bytes", masked.len());
        }
        let far = format!("password:{}hunter2", " ".repeat(1_000));
        assert!(!secrets.mask(&far).contains("hunter2"));
    }
}
