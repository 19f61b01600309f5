//! A record against its JSON Schema.
//!
//! The crate behind it changes often, so nothing of it shows outside of this file. A schema is data from a user: it may
//! refer to itself, and never makes the process open a file or a connection. A `format` is checked, not only noted.

#[cfg(feature = "json-schema")]
use redrive_core::failures::MISSES_MAX;
use redrive_core::failures::Miss;
use serde_json::Value;

/// The longest message that is kept: the parser quotes the offending value, which may be a whole record.
#[cfg(feature = "json-schema")]
const MESSAGE_CHARS_MAX: usize = 300;

/// A schema, ready for use from any thread.
#[cfg(feature = "json-schema")]
#[derive(Clone, Debug)]
pub struct Validator(jsonschema::Validator);

/// Stands in for a schema in a build without JSON Schema. It has no values.
#[cfg(not(feature = "json-schema"))]
#[derive(Clone, Debug)]
pub enum Validator {}

#[cfg(not(feature = "json-schema"))]
impl Validator {
    /// Refuses the schema.
    pub fn compile(_: &Value) -> Result<Self, BadSchema> {
        Err(BadSchema::Unsupported)
    }

    /// Never called: there is no schema.
    pub fn validate(&self, _: &Value) -> Result<(), Violation> {
        match *self {}
    }

    /// Never called: there is no schema.
    pub fn violations(&self, _: &Value) -> Vec<Violation> {
        match *self {}
    }
}

#[cfg(feature = "json-schema")]
impl Validator {
    /// Reads a schema of any draft; without `$schema` it is draft 2020-12.
    pub fn compile(schema: &Value) -> Result<Self, BadSchema> {
        let options = jsonschema::options().offline().should_validate_formats(true);
        let bad = |error: jsonschema::ValidationError<'_>| BadSchema::Invalid {
            path: error.instance_path().to_string(),
            message: shorten(error.to_string()),
        };
        options.build(schema).map(Self).map_err(bad)
    }

    /// Checks a record and gives the first thing that is wrong with it.
    pub fn validate(&self, record: &Value) -> Result<(), Violation> {
        self.0.validate(record).map_err(|error| Violation::of(&error))
    }

    /// All that is wrong with a record, up to the most that is kept of a failure.
    pub fn violations(&self, record: &Value) -> Vec<Violation> {
        self.0.iter_errors(record).take(MISSES_MAX).map(|error| Violation::of(&error)).collect()
    }
}

/// What is wrong with a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSchema {
    /// It is not a JSON Schema.
    #[error("not a JSON Schema{}: {message}", if .path.is_empty() { String::new() } else { format!(" at {path}") })]
    Invalid {
        /// JSON pointer to the faulty part of the schema; empty for the whole schema.
        path: String,
        /// Explanation by the parser, shortened.
        message: String,
    },
    /// This build does not know JSON Schema.
    #[error("this build has no JSON Schema; rebuild with --features json-schema")]
    Unsupported,
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("SchemaViolation: {keyword} at {}: {message}", if .path.is_empty() { "/" } else { path })]
pub struct Violation {
    /// The schema's keyword that refuses it, such as `minimum`.
    pub keyword: String,
    /// Where, as a JSON pointer into the record with its list indices; for `required`, where the missing value belongs.
    pub path: String,
    /// What.
    pub message: String,
}

impl Violation {
    /// A stable name to group failures by.
    pub const fn code(&self) -> &'static str {
        "SchemaViolation"
    }

    /// What is kept of it beside the message.
    pub fn kept(&self) -> Miss {
        Miss {
            field: self.path.clone(),
            rule: self.keyword.clone(),
            code: self.code().to_owned(),
            why: Some(self.message.clone()),
            found: None,
        }
    }

    #[cfg(feature = "json-schema")]
    fn of(error: &jsonschema::ValidationError<'_>) -> Self {
        let mut path = error.instance_path().to_string();
        if let jsonschema::error::ValidationErrorKind::Required { property: Value::String(name) } = error.kind() {
            path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
        }
        Self { keyword: error.kind().keyword().to_owned(), path, message: shorten(error.to_string()) }
    }
}

#[cfg(feature = "json-schema")]
fn shorten(message: String) -> String {
    match message.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}

#[cfg(all(test, feature = "json-schema"))]
mod tests {
    use super::*;
    use serde_json::json;

    fn product() -> Validator {
        let schema = json!({
            "type": "object",
            "required": ["title", "price"],
            "additionalProperties": false,
            "properties": {
                "title": {"type": "string", "minLength": 3, "pattern": "^[^<]*$"},
                "price": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.01},
                "count": {"type": "integer"},
                "url": {"type": "string", "format": "uri"},
                "offers": {"type": "array", "items": {"$ref": "#/$defs/offer"}}
            },
            "$defs": {"offer": {"type": "object", "required": ["a/b"], "properties": {"price": {"type": "number"}}}}
        });
        Validator::compile(&schema).expect("a schema")
    }

    fn violation(record: Value) -> (String, String) {
        let violation = product().validate(&record).expect_err("a violation");
        (violation.keyword, violation.path)
    }

    fn exact(record: &str) -> Value {
        serde_json::from_str(record).expect("JSON")
    }

    #[test]
    fn good_records_pass() {
        let record = exact(r#"{"title": "A lamp", "price": 1234.50, "count": 12, "url": "https://a.example/x"}"#);
        assert_eq!(product().validate(&record), Ok(()));
        assert_eq!(product().validate(&json!({"title": "A lamp", "price": 1, "offers": [{"a/b": 1}]})), Ok(()));
    }

    #[test]
    fn violations_name_keyword_and_path() {
        let pair = |keyword: &str, path: &str| (keyword.to_owned(), path.to_owned());
        assert_eq!(violation(json!({"title": "A lamp"})), pair("required", "/price"));
        assert_eq!(violation(json!({"title": "A lamp", "price": "1"})), pair("type", "/price"));
        assert_eq!(violation(json!({"title": "A lamp", "price": 0})), pair("exclusiveMinimum", "/price"));
        assert_eq!(violation(exact(r#"{"title": "A lamp", "price": 1.005}"#)), pair("multipleOf", "/price"));
        assert_eq!(violation(exact(r#"{"title": "A lamp", "price": 1, "count": 1.5}"#)), pair("type", "/count"));
        assert_eq!(violation(json!({"title": "a", "price": 1})), pair("minLength", "/title"));
        assert_eq!(violation(json!({"title": "a <b>", "price": 1})), pair("pattern", "/title"));
        assert_eq!(violation(json!({"title": "A lamp", "price": 1, "url": "no"})), pair("format", "/url"));
        assert_eq!(violation(json!({"title": "A lamp", "price": 1, "x": 1})), pair("additionalProperties", ""));
        let offers = json!([{"a/b": 1}, {"a/b": 1, "price": "x"}]);
        assert_eq!(
            violation(json!({"title": "A lamp", "price": 1, "offers": offers})),
            pair("type", "/offers/1/price")
        );
        let offers = json!([{}]);
        assert_eq!(
            violation(json!({"title": "A lamp", "price": 1, "offers": offers})),
            pair("required", "/offers/0/a~1b")
        );
    }

    #[test]
    fn all_violations_are_told_within_bounds() {
        let wrong = product().violations(&json!({"title": "a", "price": 0, "count": "x"}));
        let mut told: Vec<_> = wrong.iter().map(Violation::kept).map(|miss| (miss.rule, miss.field)).collect();
        told.sort();
        let pair = |keyword: &str, path: &str| (keyword.to_owned(), path.to_owned());
        assert_eq!(told, [pair("exclusiveMinimum", "/price"), pair("minLength", "/title"), pair("type", "/count")]);
        let offers = vec![json!({}); 1_000];
        let wrong = product().violations(&json!({"title": "A lamp", "price": 1, "offers": offers}));
        assert_eq!(wrong.len(), MISSES_MAX);
    }

    #[test]
    fn messages_say_what_and_stay_short() {
        let error = product().validate(&json!({"title": "A lamp", "price": "x"})).expect_err("a violation");
        assert_eq!(error.to_string(), "SchemaViolation: type at /price: \"x\" is not of type \"number\"");
        let long = "é".repeat(10_000);
        let error = product().validate(&json!({"title": "A lamp", "price": long})).expect_err("a violation");
        assert!(error.message.chars().count() <= MESSAGE_CHARS_MAX + 1);
        let whole = product().validate(&json!([])).expect_err("a violation");
        assert!(whole.to_string().starts_with("SchemaViolation: type at /: "));
    }

    #[test]
    fn a_schema_that_is_none_is_refused() {
        let error = Validator::compile(&json!({"properties": {"a": {"type": "flot"}}})).expect_err("refused");
        assert!(error.to_string().starts_with("not a JSON Schema at /properties/a/type: "), "{error}");
        assert!(Validator::compile(&json!({"pattern": "("})).is_err());
        assert!(Validator::compile(&json!(3)).is_err());
    }

    #[test]
    fn a_schema_opens_neither_files_nor_connections() {
        let outside =
            ["file:///etc/hostname", "https://example.com/schema.json", "http://127.0.0.1:9/s.json", "other.json"];
        for reference in outside {
            let error = Validator::compile(&json!({"$ref": reference})).expect_err("refused");
            assert!(matches!(error, BadSchema::Invalid { ref message, .. } if !message.is_empty()), "{reference}");
        }
        assert!(Validator::compile(&json!({"$schema": "https://example.com/draft", "type": "object"})).is_err());
    }

    #[test]
    fn it_can_be_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Validator>();
    }
}

#[cfg(all(test, not(feature = "json-schema")))]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_json_schema_refuses_a_schema_and_says_how_to_rebuild() {
        let refused = Validator::compile(&serde_json::json!({"type": "object"})).expect_err("refused");
        assert_eq!(refused.to_string(), "this build has no JSON Schema; rebuild with --features json-schema");
    }
}
