//! What stands in quotes: a name that means something, words to read on, or a value.

use super::numbers;
use super::template::{Template, Token};
use super::vocabulary::{FINDERS, MISSING, NAMED_AFTER, NAMED_BEFORE, TELLING_KEYS, TYPES, VALUED_AFTER, has};
use super::words::is_numbered_name;

/// What to do with the text between two quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quoted {
    /// It is a name: keep it as it is.
    Keep,
    /// It is a name or says something: read it like the rest of the message.
    Read,
    /// It is a value.
    Mask,
}

/// Decides about `text` in quotes, between what was read before it and what comes after it.
pub(super) fn decide(text: &str, before: &Template<'_>, after: &str) -> Quoted {
    let valued = matches!(before.last(), Some(Token::Sign("=" | ":")));
    if TYPES.contains(&text) || is_format(text) || (!valued && (is_code(text) || is_punctuation(text))) {
        return Quoted::Keep;
    }
    let is_key = || before.bracket() == Some("{") && after.trim_start().starts_with(':');
    if is_request(text) || is_status(text) || is_key() {
        return Quoted::Read;
    }
    match before.last() {
        None if after.trim().is_empty() => Quoted::Read,
        Some(Token::Sign(":")) if after.trim().is_empty() && names_what_is_missing(before) && is_identifier(text) => {
            Quoted::Read
        }
        Some(Token::Sign(":"))
            if after.trim().is_empty() && names_what_is_missing(before) && is_numbered_name(text) =>
        {
            Quoted::Keep
        }
        Some(Token::Sign("=" | ":")) => value(text, before),
        Some(Token::Sign("(")) => argument(text, before),
        Some(Token::Sign("[")) => Quoted::Read,
        Some(Token::Sign(",")) if before.bracket() == Some("[") => Quoted::Mask,
        Some(Token::Sign(",")) if before.bracket() == Some("(") => Quoted::Read,
        Some(Token::Word(word)) if has(VALUED_AFTER, word) => Quoted::Mask,
        Some(Token::Word(word)) if has(NAMED_AFTER, word) && is_numbered_name(text) => Quoted::Keep,
        Some(Token::Word(word)) if has(NAMED_AFTER, word) || word == "b" => Quoted::Read,
        _ => by_itself(text, after),
    }
}

/// `KeyError: 'price'` says which key, and nothing else.
fn names_what_is_missing(before: &Template<'_>) -> bool {
    before.name().is_some_and(|name| MISSING.iter().any(|part| name.contains(part)))
}

/// `'reason': 'Bad Gateway'` says something, `float: '12,5'` and `name="x"` do not; codes do wherever they stand in an
/// object.
fn value(text: &str, before: &Template<'_>) -> Quoted {
    let in_object = before.bracket() == Some("{");
    let assigned = before.last() == Some(Token::Sign("="));
    let telling = before.name().is_some_and(|key| TELLING_KEYS.contains(&key));
    let says = (in_object && is_code(text)) || ((in_object || assigned) && telling);
    if says || before.in_options() { Quoted::Read } else { Quoted::Mask }
}

/// `locator('.price')` names what is looked for; `OSError('Tunnel failed')` says something.
fn argument(text: &str, before: &Template<'_>) -> Quoted {
    let Some(Token::Word(function)) = before.back(2) else { return Quoted::Read };
    let looks_for = FINDERS.iter().any(|name| function.contains(name));
    if looks_for && text.len() <= 200 { Quoted::Keep } else { Quoted::Read }
}

/// A name as programs use them is one, unless something is said about it that is only said about values.
fn by_itself(text: &str, after: &str) -> Quoted {
    let next = after.trim_start();
    if NAMED_BEFORE.iter().any(|word| next.starts_with(word)) {
        return if is_numbered_name(text) { Quoted::Keep } else { Quoted::Read };
    }
    let is_value = ["is not ", "does not match", "is too "].iter().any(|said| next.starts_with(said));
    if is_value || !is_identifier(text) { Quoted::Mask } else { Quoted::Read }
}

/// `ERROR_ZERO_BALANCE`, `ECONNRESET`
fn is_code(text: &str) -> bool {
    text.len() >= 4 && text.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
}

fn is_punctuation(text: &str) -> bool {
    !text.bytes().any(|b| b.is_ascii_alphanumeric() || b >= 0x80)
}

/// `GET /path HTTP/1.1`
pub(super) fn is_request(text: &str) -> bool {
    let method = text.split(' ').next().unwrap_or(text);
    matches!(method, "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS" | "CONNECT")
        && text.contains(" HTTP/")
}

/// `403 Forbidden`
fn is_status(text: &str) -> bool {
    text.split_once(' ').is_some_and(|(status, words)| {
        numbers::is_failed_status(status) && words.starts_with(|c: char| c.is_ascii_uppercase())
    })
}

/// `%d.%m.%Y`; in a URL a `%` comes before two digits.
fn is_format(text: &str) -> bool {
    let mut directives = text.split('%').skip(1).peekable();
    let is_directive = |text: &str| {
        let mut bytes = text.bytes();
        bytes.next().is_some_and(|b| b.is_ascii_alphabetic()) && bytes.next().is_none_or(|b| !b.is_ascii_alphanumeric())
    };
    text.len() <= 60 && directives.peek().is_some() && directives.all(is_directive)
}

/// A single letter is rather a value.
fn is_identifier(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphabetic() || matches!(b, b'_' | b'-' | b'.' | b'$' | b'(' | b')');
    text.len() > 1 && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use crate::fingerprint::message;

    #[test]
    fn names_are_kept_and_values_masked() {
        let table = [
            ("'seller'", "'seller'"),
            ("product 'shoe' not found", "product <*> not found"),
            ("column 'price' not found", "column 'price' not found"),
            ("KeyError: 'price'", "KeyError: 'price'"),
            ("KeyError: '71823460'", "KeyError: <*>"),
            ("KeyError: 'price2'", "KeyError: 'price2'"),
            ("KeyError: 'B0E9CX7A77'", "KeyError: <*>"),
            ("properties of undefined (reading 'col2')", "properties of undefined (reading 'col2')"),
            ("selector 'h1.title' failed", "selector 'h1.title' failed"),
            ("ValueError: 'abc'", "ValueError: <*>"),
            ("no attribute 'text'", "no attribute 'text'"),
            ("'latin-1' codec", "'latin-1' codec"),
            ("Entity 'hellip' not defined", "Entity <*> not defined"),
            ("no float: '12,5'", "no float: <*>"),
            ("tag=\"View Lock\"", "tag=<*>"),
            ("does not match format '%d.%m.%Y'", "does not match format '%d.%m.%Y'"),
            ("query 'caf%C3%A9' failed", "query <*> failed"),
            ("locator('.a .b') is hidden", "locator('.a .b') is hidden"),
            ("OSError('Tunnel failed: 407 Proxy')", "OSError('Tunnel failed: 407 Proxy')"),
            ("['wget', '-q', 'x y'] failed", "['wget', <*>] failed"),
            (
                "{'status': 502, 'reason': b'Bad Gateway', 'title': 'x'}",
                "{'status': 502, 'reason': b'Bad Gateway', 'title': <*>}",
            ),
            ("{\"request\":\"ERROR_ZERO_BALANCE\"}", "{\"request\":\"ERROR_ZERO_BALANCE\"}"),
            ("Expecting ',' delimiter", "Expecting ',' delimiter"),
            ("in //a[text()='O'Neal Glove']", "in //a[text=<*>]"),
        ];
        for (text, template) in table {
            assert_eq!(message::read(text).0, template);
        }
    }
}
