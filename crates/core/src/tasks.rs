//! Tasks: who one is.
//!
//! A task is known by its own `key`; else by fields that were named; else by its content and by which of several equal ones
//! it is. Never by the file it came in: a line that is added, removed or repaired changes nothing for the others, and equal
//! tasks of two files are one.

use std::fmt::Write;

use data_encoding::BASE32_NOPAD;
use serde_json::Value;

use crate::jobs::{Input, check_key, field};

/// Who a task is, before it is known how many equal ones came before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// It has a key: a second task with the same one is the same task.
    Keyed(String),
    /// It is known by its content: a second task with the same content is another one.
    Content(ContentHash),
}

/// The content of a task, in short: keys sorted at every depth, numbers by their text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash([u8; 16]);

impl ContentHash {
    /// Of a task.
    pub fn of(input: &Input) -> Self {
        let mut text = String::new();
        write_object(input, &mut text);
        Self::of_text(&text)
    }

    fn of_text(text: &str) -> Self {
        let mut short = [0; 16];
        short.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
        Self(short)
    }

    /// The hash itself.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The key of the n-th task with this content, counted from 1.
    pub fn key(&self, nth: u32) -> String {
        match nth {
            0 | 1 => format!("c:{}", self.text()),
            nth => format!("c:{}#{nth}", self.text()),
        }
    }

    fn text(&self) -> String {
        BASE32_NOPAD.encode(&self.0).to_ascii_lowercase()
    }
}

/// Who a task is. `fields` are those that tasks without a key of their own are known by; without any, it is the content. What
/// is wrong with a task that cannot be known is said in a few words.
pub fn identify(input: &Input, fields: &[String]) -> Result<Identity, String> {
    if let Some(key) = own_key(input)? {
        return Ok(Identity::Keyed(key));
    }
    if fields.is_empty() {
        return Ok(Identity::Content(ContentHash::of(input)));
    }
    let value = |name: &String| match field(input, name) {
        None | Some(Value::Null) => Err(format!("it has no {name}, by which tasks are to be known")),
        Some(Value::String(text)) if text.is_empty() => {
            Err(format!("its {name}, by which tasks are to be known, is empty"))
        }
        Some(value) => Ok(value),
    };
    let values = fields.iter().map(value).collect::<Result<Vec<_>, _>>()?;
    let key = match values.as_slice() {
        [Value::String(text)] => text.clone(),
        [one] => canonical(one),
        several => {
            let texts: Vec<String> = several.iter().map(|value| canonical(value)).collect();
            format!("[{}]", texts.join(","))
        }
    };
    Ok(Identity::Keyed(match check_key(&key) {
        Err(_) => format!("k:{}", ContentHash::of_text(&key).text()),
        Ok(()) => key,
    }))
}

/// The key that a task says it has.
fn own_key(input: &Input) -> Result<Option<String>, String> {
    match input.get("key") {
        Some(Value::String(key)) if !key.is_empty() => match check_key(key) {
            Ok(()) => Ok(Some(key.clone())),
            Err(unfit) => Err(format!("its key {unfit}")),
        },
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        None | Some(Value::String(_) | Value::Null) => Ok(None),
        Some(other) => Err(format!("its key must be a string or a number, not {}", kind(other))),
    }
}

/// Whether a task says itself by what it is known, so that it was always known by that.
pub fn brings_key(input: &Input) -> bool {
    matches!(own_key(input), Ok(Some(_)))
}

/// How many tasks of a file may have run before tasks were known by their content, of tasks of which it is told, in their order,
/// whether they are known. A file grows at its end: what is new behind all that is known was added. What is new before it, or where
/// nothing is known, may be old.
pub fn may_be_old(are_known: &[bool]) -> usize {
    let old_part = are_known.iter().rposition(|is_known| *is_known).unwrap_or(are_known.len());
    are_known[..old_part].iter().filter(|is_known| !**is_known).count()
}

/// Whether a key was made of the content of a task.
fn is_by_content(key: &str) -> bool {
    key.starts_with("c:")
}

/// Whether nobody gave a task its key: it was made of its content, of a long value, or of its file and line.
pub fn is_made_up(key: &str) -> bool {
    let is_by_line = |(file, line): (&str, &str)| {
        file.len() == FILE_DIGITS
            && file.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            && line.bytes().all(|byte| byte.is_ascii_digit())
    };
    is_by_content(key) || key.starts_with("k:") || key.split_once(':').is_some_and(is_by_line)
}

/// The key by which a task was known before tasks were known by their content: the hash of its whole file, and its line.
pub fn key_by_line(file: &str, line: u64) -> String {
    format!("{file}:{line}")
}

/// Digits of the hash of a file in [`key_by_line`].
pub const FILE_DIGITS: usize = 24;

/// What a JSON value is, in words.
pub const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A value as text that is the same for equal values: JSON without white space, the keys of objects sorted.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

fn write_value(value: &Value, text: &mut String) {
    match value {
        Value::Object(object) => write_object(object, text),
        Value::Array(items) => {
            text.push('[');
            for (n, item) in items.iter().enumerate() {
                text.push_str(if n == 0 { "" } else { "," });
                write_value(item, text);
            }
            text.push(']');
        }
        Value::String(string) => write_string(string, text),
        // A number is its text: 1 and 1.0 are two.
        other => write!(text, "{other}").expect("a string takes any text"),
    }
}

fn write_object(object: &Input, text: &mut String) {
    let mut fields: Vec<_> = object.iter().collect();
    fields.sort_unstable_by_key(|(name, _)| *name);
    text.push('{');
    for (n, (name, value)) in fields.into_iter().enumerate() {
        text.push_str(if n == 0 { "" } else { "," });
        write_string(name, text);
        text.push(':');
        write_value(value, text);
    }
    text.push('}');
}

fn write_string(string: &str, text: &mut String) {
    text.push_str(&serde_json::to_string(string).expect("a string is JSON"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use serde_json::json;

    fn object(value: Value) -> Input {
        let Value::Object(input) = value else { panic!("an object") };
        input
    }

    fn key(value: Value, fields: &[&str]) -> Result<String, String> {
        let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
        identify(&object(value), &fields).map(|identity| match identity {
            Identity::Keyed(key) => key,
            Identity::Content(hash) => hash.key(1),
        })
    }

    #[test]
    fn the_own_key_comes_first_then_named_fields_then_the_content() {
        assert_eq!(key(json!({"key": "a", "sku": "s"}), &["sku"]).as_deref(), Ok("a"));
        assert_eq!(key(json!({"key": 7}), &[]).as_deref(), Ok("7"));
        assert_eq!(key(json!({"key": "", "sku": "s"}), &["sku"]).as_deref(), Ok("s"));
        assert_eq!(key(json!({"sku": 12.50}), &["sku"]).as_deref(), Ok("12.5"));
        assert_eq!(key(json!({"a": {"b": "x"}, "c": 1}), &["a.b", "c"]).as_deref(), Ok("[\"x\",1]"));
        assert_eq!(key(json!({"a": {"z": 1, "b": 2}}), &["a"]).as_deref(), Ok("{\"b\":2,\"z\":1}"));
        let content = key(json!({"key": null, "n": 1}), &[]).expect("known");
        assert!(content.starts_with("c:") && content.len() == 28, "{content}");
    }

    #[test]
    fn who_cannot_be_known_is_told() {
        for (input, fields, why) in [
            (json!({"n": 1}), &["sku"][..], "it has no sku"),
            (json!({"sku": null}), &["sku"], "it has no sku"),
            (json!({"sku": ""}), &["sku"], "is empty"),
            (json!({"key": {}}), &[], "not an object"),
            (json!({"key": "x".repeat(513)}), &[], "longer than 512"),
        ] {
            let said = key(input, fields).expect_err("it cannot be known");
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn a_long_value_of_a_named_field_is_known_by_its_hash() {
        let url = format!("https://shop.example/{}", "x".repeat(600));
        let long = key(json!({"url": url}), &["url"]).expect("known");
        assert!(long.starts_with("k:") && long.len() == 28, "{long}");
        assert_ne!(long, key(json!({"url": format!("{url}y")}), &["url"]).expect("known"));
    }

    #[test]
    fn numbers_are_their_text_and_strings_what_they_say() {
        let of = |text: &str| ContentHash::of(&object(serde_json::from_str(text).expect("JSON")));
        assert_eq!(of(r#"{"a": "é", "b": [1, 2]}"#), of(r#"{ "b":[1,2],"a":"\u00e9" }"#));
        for (one, other) in [
            (r#"{"n":1}"#, r#"{"n":1.0}"#),
            (r#"{"n":1}"#, r#"{"n":"1"}"#),
            (r#"{"n":12345678901234567890123}"#, r#"{"n":12345678901234567890124}"#),
            (r#"{"n":[1,2]}"#, r#"{"n":[2,1]}"#),
            (r#"{"n":null}"#, "{}"),
            (r#"{"a":{"b":1}}"#, r#"{"a":{},"b":1}"#),
        ] {
            assert_ne!(of(one), of(other), "{one} {other}");
        }
    }

    #[test]
    fn a_key_that_nobody_gave_is_told_from_one_that_somebody_did() {
        for made_up in ["c:6lo26gvdqqriqn2o7gugsou3um#2", "k:6lo26gvdqqriqn2o7gugsou3um", "0123456789abcdef01234567:12"]
        {
            assert!(is_made_up(made_up), "{made_up}");
        }
        for given in ["product-7", "7", "a:b", "0123456789abcdef0123456z:12", "[1,\"c:x\"]"] {
            assert!(!is_made_up(given), "{given}");
        }
    }

    #[test]
    fn what_is_new_at_the_end_of_a_file_was_added_and_what_is_new_before_may_be_old() {
        let (known, new) = (true, false);
        assert_eq!(may_be_old(&[]), 0);
        assert_eq!(may_be_old(&[known, known, new, new]), 0);
        assert_eq!(may_be_old(&[new, known, known, known, new]), 1, "however many are known");
        assert_eq!(may_be_old(&[new, new]), 2);
        let brings = |value: Value| brings_key(value.as_object().expect("an object"));
        assert!(brings(json!({"key": 7})) && !brings(json!({"key": ""})) && !brings(json!({"sku": 7})));
    }

    #[test]
    fn equal_ones_are_told_apart_by_their_number() {
        let hash = ContentHash::of(&Input::new());
        let keys: std::collections::BTreeSet<_> = (1..=50).map(|nth| hash.key(nth)).collect();
        assert_eq!(keys.len(), 50);
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(Value::from),
                btree_map(".{0,4}", inner, 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    /// The same value with the fields of every object in another order.
    fn turned(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                Value::Object(fields.iter().rev().map(|(name, value)| (name.clone(), turned(value))).collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(turned).collect()),
            other => other.clone(),
        }
    }

    proptest! {
        #[test]
        fn the_order_of_fields_does_not_matter(value in values()) {
            let text = canonical(&value);
            prop_assert_eq!(&text, &canonical(&turned(&value)));
            prop_assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value, "nothing is lost");
        }

        #[test]
        fn equal_text_means_equal_values(one in values(), other in values()) {
            prop_assert_eq!(canonical(&one) == canonical(&other), one == other);
        }

        #[test]
        fn several_fields_are_never_mistaken_for_others(a in ".{0,5}", b in ".{0,5}", c in ".{0,5}", d in ".{0,5}") {
            let of = |x: &str, y: &str| key(json!({"x": x, "y": y}), &["x", "y"]);
            if let (Ok(one), Ok(other)) = (of(&a, &b), of(&c, &d)) {
                prop_assert_eq!(one == other, (a, b) == (c, d));
            }
        }
    }
}
