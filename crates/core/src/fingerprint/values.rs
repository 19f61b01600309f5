//! Plain words that stand where a value stands, so that they vary although they look like any other word.

use super::template::{Template, Token};
use super::vocabulary::{KINDS, WRONG, has};

/// Whether the word that comes next is a value: `name=audioserver`, `for user cyrus`, `referer: None`.
pub(super) fn is_value(word: &str, before: &Template<'_>) -> bool {
    match (before.back(2), before.back(1)) {
        (Some(Token::Word(key)), Some(Token::Sign("="))) => names_one(key) || is_dotted(word) || is_nothing(word),
        (_, Some(Token::Sign("="))) => is_dotted(word) || is_nothing(word),
        (_, Some(Token::Sign(":"))) => is_nothing(word),
        (Some(Token::Word(kind)), Some(Token::Word("user"))) => {
            matches!(kind, "for" | "of" | "by" | "invalid" | "Invalid" | "illegal" | "unknown")
        }
        // `ERROR: [youtube] EuuewYpipRC: Sign in`
        (Some(Token::Word(_)), Some(Token::Sign("]"))) => {
            before.back(5) == Some(Token::Word("ERROR")) && is_mixed(word)
        }
        _ => false,
    }
}

/// Python tells one character that it cannot encode, but only the place of several; the cause is the same.
pub(super) fn is_plural_of_value(word: &str, before: &Template<'_>) -> bool {
    matches!(word, "characters" | "bytes") && matches!(before.last(), Some(Token::Word("encode" | "decode")))
}

/// Whether the colon just read comes before a value: `Unknown string format:`, `tag mismatch:`, `could not parse
/// date:`.
pub(super) fn announces_value(before: &Template<'_>) -> bool {
    let Some(Token::Word(kind)) = before.back(2) else { return false };
    let mut clause = (3..9).map_while(|places| match before.back(places) {
        Some(Token::Word(word)) => Some(word),
        _ => None,
    });
    kind == "mismatch" || (has(KINDS, kind) && clause.any(|word| has(WRONG, word)))
}

/// Whether the address that comes next is where somebody came from, which makes the word before `from` a name:
/// `Failed password for root from 10.0.0.1`.
pub(super) fn follows_a_name(before: &Template<'_>) -> bool {
    before.back(1) == Some(Token::Word("from")) && before.back(3) == Some(Token::Word("for"))
}

fn names_one(key: &str) -> bool {
    let name = key.ends_with("name") || key.ends_with("Name");
    name || matches!(key, "tag" | "pkg" | "host" | "title" | "path" | "file" | "value")
}

fn is_dotted(word: &str) -> bool {
    word.bytes().filter(|b| *b == b'.').count() >= 2
}

fn is_nothing(word: &str) -> bool {
    matches!(word, "null" | "None" | "nil" | "undefined")
}

fn is_mixed(word: &str) -> bool {
    word.bytes().any(|b| b.is_ascii_lowercase()) && word.bytes().skip(1).any(|b| b.is_ascii_uppercase())
}
