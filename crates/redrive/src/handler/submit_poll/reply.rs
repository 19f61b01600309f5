//! Reading a provider's answer: is it ready, pending, or a code?

use serde_json::Value;

use crate::handler::http::fetch::Answer;

/// A place in an answer and the values it may have.
#[derive(Clone, Debug)]
pub struct Condition {
    /// A JSON pointer.
    pub pointer: String,
    /// Values that fit; numbers and texts that look alike are alike.
    pub equals: Vec<Value>,
}

impl Condition {
    fn holds(&self, answer: &Value) -> bool {
        let found = answer.pointer(&self.pointer);
        found.is_some_and(|found| self.equals.iter().any(|value| plain(value) == plain(found)))
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// How an answer is read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// When it has the value.
    pub ready: Condition,
    /// Where the value is.
    pub value: String,
    /// When it is not ready yet.
    pub pending: Option<Condition>,
    /// Where the code is, if it is neither.
    pub code: String,
    /// Where the code is explained.
    pub message: Option<String>,
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    Value(Value),
    Pending,
    Code {
        code: String,
        message: Option<String>,
    },
    /// Its status alone says that it is no answer.
    Status,
    /// It is no JSON: an error page, or cut short. The provider is at fault, and may be well again the next time.
    Unreadable(String),
    /// It is JSON of another shape than the configuration says: one of the two is wrong, and stays so.
    Unexpected(String),
}

impl Reading {
    pub(super) fn read(&self, answer: &Answer) -> Said {
        let text = answer.text();
        match serde_json::from_str(text.trim()) {
            Ok(value) => self.read_json(&value, answer.status.is_success()),
            Err(_) if !answer.status.is_success() => Said::Status,
            // Some providers answer errors as bare text, whatever was asked for.
            Err(_) if is_code(text.trim()) => Said::Code { code: text.trim().to_owned(), message: None },
            Err(error) => Said::Unreadable(format!("the answer is not JSON: {error}")),
        }
    }

    fn read_json(&self, value: &Value, success: bool) -> Said {
        let text = |pointer: &String| value.pointer(pointer).filter(|found| !found.is_null()).map(plain);
        if success && self.ready.holds(value) {
            return match value.pointer(&self.value) {
                Some(found) if !found.is_null() => Said::Value(found.clone()),
                _ => Said::Unexpected(format!("the answer has nothing at {}", self.value)),
            };
        }
        if self.pending.as_ref().is_some_and(|pending| pending.holds(value)) {
            return Said::Pending;
        }
        match text(&self.code) {
            Some(code) => Said::Code { code, message: self.message.as_ref().and_then(text) },
            None if !success => Said::Status,
            None => {
                Said::Unexpected(format!("the answer is neither ready nor pending and has no code at {}", self.code))
            }
        }
    }
}

fn is_code(text: &str) -> bool {
    (3..=64).contains(&text.len()) && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}
