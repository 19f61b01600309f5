//! Values of a broken file in messages about it. They help whoever mends it, unless they are secret: a message goes to terminals,
//! logs and tickets.

use redrive_core::secrets::Secrets;

/// What stands where a value was.
const HIDDEN: &str = "…";

/// Longer values are not shown: they say no more than their line does.
const SHOWN_CHARS_MAX: usize = 40;

/// Keys under which secrets are written, beside those whose names say so.
const PLACES: &[&str] =
    &["alerts", "body", "command", "env", "form", "headers", "json", "proxies", "query", "store", "url", "vault"];

/// How messages about a value begin that do not say which it is.
const OF_VALUES: &[&str] = &["unknown variant ", "invalid type: ", "invalid value: ", "invalid length "];

/// A message about a mistake with the key that it is about, and without the values that may be secret; `before` is the text of the file
/// up to the end of the mistake's line.
pub(super) fn harmless(message: &str, before: &str) -> String {
    let key = key_at_end(before).filter(|_| OF_VALUES.iter().any(|start| message.starts_with(start)));
    let told = without_secrets(message, before);
    key.map_or_else(|| told.clone(), |key| format!("{key}: {told}"))
}

fn without_secrets(message: &str, before: &str) -> String {
    let secrets = Secrets::default();
    let names = names_at_end(before);
    if names.iter().any(|name| PLACES.contains(&name.as_str()) || secrets.is_secret_name(name)) {
        return unquoted(message);
    }
    let looks_secret = |value: &str| {
        let words = [value.to_owned()];
        value.chars().count() > SHOWN_CHARS_MAX || secrets.mask_words(&words) != words || secrets.mask(value) != value
    };
    hide(message, looks_secret)
}

/// A message without any value: what stands in quotes, and wrong words and numbers. Names of keys stand between backquotes.
pub(super) fn unquoted(message: &str) -> String {
    hide(message, |_| true)
}

/// The key of the statement that the end of a text is within.
fn key_at_end(text: &str) -> Option<&str> {
    let first = text.lines().rev().map(str::trim_start).find(|line| begins(line))?;
    first.split('=').next().map(str::trim).filter(|key| is_key(key))
}

/// Whether a line begins a table or a statement.
fn begins(line: &str) -> bool {
    line.starts_with('[') || line.split('=').next().is_some_and(|key| is_key(key) && key.len() < line.len())
}

/// The names that the end of a text is under: those of its table, and of the statement that it is within.
fn names_at_end(text: &str) -> Vec<String> {
    let lines = || text.lines().rev().map(str::trim_start);
    let header = lines().find(|line| line.starts_with('[')).unwrap_or_default();
    // A list may go over many lines: the first of them has the key.
    let after = lines().take_while(|line| !begins(line)).count();
    let statement = lines().take(after + 1);
    let words = |line: &str| {
        line.split(|c: char| !(c.is_alphanumeric() || "-_".contains(c))).map(str::to_lowercase).collect::<Vec<_>>()
    };
    statement.chain([header]).flat_map(words).filter(|word| !word.is_empty()).collect()
}

/// Whether a text may be a key. What ends inside of quotes is a part of a value.
fn is_key(text: &str) -> bool {
    let text = text.trim();
    let closed = |quote: char| text.matches(quote).count().is_multiple_of(2);
    !text.is_empty() && closed('"') && closed('\'') && text.chars().all(|c| c.is_alphanumeric() || "-_.\"'".contains(c))
}

/// A message without those of its values that are to be hidden.
fn hide(message: &str, is_hidden: impl Fn(&str) -> bool) -> String {
    let (mut kept, mut rest) = (String::with_capacity(message.len()), message);
    // Wrong words, and values that are no text, stand between backquotes, as names of keys do elsewhere.
    let mut ticks = OF_VALUES.iter().any(|start| message.starts_with(start) || message.contains(&format!(": {start}")));
    while let Some(at) = rest.find(['"', '`']) {
        let quote = rest[at..].chars().next().unwrap_or_default();
        let (before, inside) = (&rest[..at + 1], &rest[at + 1..]);
        let end = end_of(inside, quote);
        let value = &inside[..end];
        let is_value = quote == '"' || std::mem::take(&mut ticks);
        kept.push_str(before);
        kept.push_str(if is_value && is_hidden(value) { HIDDEN } else { value });
        rest = &inside[end..];
        if let Some(after) = rest.strip_prefix(quote) {
            kept.push(quote);
            rest = after;
        }
    }
    kept + rest
}

/// Where a quoted text ends. A quote inside of it has a backslash before it.
fn end_of(inside: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, character) in inside.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if quote == '"' => is_escaped = true,
            character if character == quote => return at,
            _ => {}
        }
    }
    inside.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_hidden_whatever_is_in_them() {
        assert_eq!(unquoted("string \"a\\\"b\" and \"c\", expected `d`"), "string \"…\" and \"…\", expected `d`");
        assert_eq!(unquoted("invalid type: integer `5`, expected `e`"), "invalid type: integer `…`, expected `e`");
        assert_eq!(unquoted("key: invalid type: integer `5`"), "key: invalid type: integer `…`");
        assert_eq!(unquoted("unknown field `a`, expected `b`"), "unknown field `a`, expected `b`");
        assert_eq!(unquoted("unknown variant `a`, expected `b`"), "unknown variant `…`, expected `b`");
        assert_eq!(unquoted("an end \"that is missing"), "an end \"…");
    }

    #[test]
    fn what_helps_is_shown() {
        assert_eq!(harmless("\"soon\" is no time", "[pipeline.a]\ntimeout = \"soon\""), "\"soon\" is no time");
        let key = "\"9f8e7d6c5b4a39281706f5e4\" is no time";
        assert_eq!(harmless(key, "[pipeline.a]\ntimeout = \"9f8e7d6c5b4a39281706f5e4\""), "\"…\" is no time");
        let listed = "[pipeline.a]\ncommand = [\n  \"curl\",\n  \"a=b\", 5,";
        assert_eq!(
            harmless("invalid type: integer `5`, expected a string", listed),
            "command: invalid type: integer `…`, expected a string"
        );
    }
}
