//! The types of fields, and the way from a text or a JSON value to each.
//!
//! Blank and null are absent in every type; what is there and does not fit is wrong, never dropped or guessed at.

use serde_json::{Number, Value};

use super::miss::{Lack, MissKind};
use super::number::{self, Mark, Unread};
use super::text::RAISED;

/// What a field becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text.
    Text,
    /// Any number, with the digits that are written.
    Number(Mark),
    /// A number without a fraction.
    Integer(Mark),
    /// `true`, `yes`, `on`, `1` or the contrary, in any case.
    Boolean,
    /// A text that holds JSON.
    Json,
    /// The markup inside of an element.
    Html,
}

impl Kind {
    /// The names that a rule may use.
    pub(super) const NAMES: [&'static str; 6] = ["string", "number", "integer", "boolean", "json", "html"];

    /// The type of that name.
    pub(super) fn named(name: &str, mark: Mark) -> Option<Self> {
        Some(match name {
            "string" => Self::Text,
            "number" => Self::Number(mark),
            "integer" => Self::Integer(mark),
            "boolean" => Self::Boolean,
            "json" => Self::Json,
            "html" => Self::Html,
            _ => return None,
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Number(_) => "number",
            Self::Integer(_) => "integer",
            Self::Boolean => "boolean",
            Self::Json => "json",
            Self::Html => "html",
        }
    }

    /// The value of a text.
    pub(super) fn of_text(self, text: String) -> Result<Value, Lack> {
        if text.trim().is_empty() {
            return Err(Lack::Absent(MissKind::Empty));
        }
        let value = match self {
            Self::Text => return Ok(Value::String(text.replace(RAISED, " "))),
            Self::Html => return Ok(Value::String(text)),
            Self::Number(mark) => return self.quantity(number::number(&text, mark), &text),
            Self::Integer(mark) => return self.quantity(number::integer(&text, mark), &text),
            Self::Boolean => boolean(&text).map(Value::Bool),
            Self::Json => serde_json::from_str(&text).ok(),
        };
        match value {
            Some(Value::Null) => Err(Lack::Absent(MissKind::Empty)),
            Some(value) => Ok(value),
            None => Err(self.wrong(&text)),
        }
    }

    /// A JSON value as this type: what has it already stays, a text is read.
    pub(super) fn of_json(self, value: &Value) -> Result<Value, Lack> {
        match (self, value) {
            (_, Value::Null) => Err(Lack::Absent(MissKind::Empty)),
            (_, Value::String(text)) => self.of_text(text.clone()),
            (Self::Json, other) => Ok(other.clone()),
            (Self::Text, Value::Number(_) | Value::Bool(_)) => Ok(Value::String(value.to_string())),
            (Self::Number(_), Value::Number(_)) | (Self::Boolean, Value::Bool(_)) => Ok(value.clone()),
            (Self::Integer(_), Value::Number(found)) => {
                // Its mark is a point, whatever those in texts are. `1e3` is left to the schema's `integer`.
                let whole = number::integer(&found.to_string(), Mark::Point);
                self.quantity(whole, &found.to_string())
            }
            (_, other) => Err(self.wrong(&other.to_string())),
        }
    }

    fn quantity(self, read: Result<Number, Unread>, text: &str) -> Result<Value, Lack> {
        read.map(Value::Number).map_err(|unread| match unread {
            Unread::NotOne => self.wrong(text),
            Unread::Ambiguous(readings) => Lack::Unclear(MissKind::ambiguous(text, readings)),
        })
    }

    fn wrong(self, found: &str) -> Lack {
        Lack::Wrong(MissKind::wrong(self.name(), &found.replace(RAISED, " ")))
    }
}

fn boolean(text: &str) -> Option<bool> {
    let is_one_of = |words: &[&str]| words.iter().any(|word| text.trim().eq_ignore_ascii_case(word));
    if is_one_of(&["true", "yes", "on", "1"]) {
        return Some(true);
    }
    is_one_of(&["false", "no", "off", "0"]).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NUMBER: Kind = Kind::Number(Mark::Unstated);
    const INTEGER: Kind = Kind::Integer(Mark::Unstated);

    fn text(kind: Kind, text: &str) -> Option<Value> {
        kind.of_text(text.to_owned()).ok()
    }

    fn exact(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn texts_become_what_is_asked_for() {
        assert_eq!(text(Kind::Text, "a b"), Some(json!("a b")));
        assert_eq!(text(NUMBER, "€ 1,234.50"), Some(exact("1234.50")));
        assert_eq!(text(INTEGER, "(1 204)"), Some(json!(1204)));
        assert_eq!(text(Kind::Boolean, " Yes "), Some(json!(true)));
        assert_eq!(text(Kind::Boolean, "OFF"), Some(json!(false)));
        assert_eq!(text(Kind::Boolean, "maybe"), None);
        assert_eq!(text(Kind::Json, r#"{"a": [1]}"#), Some(json!({"a": [1]})));
        assert_eq!(text(Kind::Json, "{"), None);
    }

    #[test]
    fn blank_and_null_are_absent_not_wrong() {
        for kind in [Kind::Text, NUMBER, INTEGER, Kind::Boolean, Kind::Json] {
            for blank in ["", " \u{a0}\n"] {
                assert!(matches!(kind.of_text(blank.into()), Err(Lack::Absent(MissKind::Empty))), "{kind:?}");
            }
            assert!(matches!(kind.of_json(&Value::Null), Err(Lack::Absent(MissKind::Empty))), "{kind:?}");
        }
        assert!(matches!(Kind::Json.of_text("null".into()), Err(Lack::Absent(MissKind::Empty))));
    }

    #[test]
    fn json_keeps_its_types_and_reads_texts() {
        let of = |kind: Kind, value: &str| kind.of_json(&exact(value)).ok();
        assert_eq!(of(NUMBER, "12.50"), Some(exact("12.50")));
        assert_eq!(of(NUMBER, "\"12,50\""), Some(exact("12.50")));
        assert_eq!(of(NUMBER, "true"), None);
        assert_eq!(of(INTEGER, "12.0"), Some(json!(12)));
        assert_eq!(of(INTEGER, "-9007199254740993"), Some(exact("-9007199254740993")));
        assert_eq!(of(NUMBER, "1.299"), Some(exact("1.299")), "a number of JSON is no text");
        assert_eq!(of(INTEGER, "1.234"), None, "in JSON a point is a decimal mark");
        assert_eq!(of(Kind::Text, "12.50"), Some(json!("12.50")));
        assert_eq!(of(Kind::Text, "[1]"), None);
        assert_eq!(of(Kind::Boolean, "false"), Some(json!(false)));
        assert_eq!(of(Kind::Boolean, "0"), None);
        assert_eq!(of(Kind::Json, "{\"a\": 1}"), Some(json!({"a": 1})));
        assert_eq!(of(Kind::Json, r#""{\"a\": 1}""#), Some(json!({"a": 1})));
    }
}
