//! Results: when one is none.

use serde_json::Value;

/// Whether a result says nothing: null, or text, a list or an object with nothing in it.
pub fn is_empty(result: &Value) -> bool {
    match result {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_is_told_from_something() {
        for nothing in [json!(null), json!(""), json!(" \n"), json!([]), json!({})] {
            assert!(is_empty(&nothing), "{nothing}");
        }
        for something in [json!(0), json!(false), json!("x"), json!([null]), json!({"a": null})] {
            assert!(!is_empty(&something), "{something}");
        }
    }
}
