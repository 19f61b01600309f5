//! Splits a request into path, query and body, and puts it together again.
//!
//! The names in braces are taken from the path. The other fields are the query of a GET or the JSON body of a POST. JSON is nested as
//! the Rust type is. Text (path, query, form) is flat: a field of a nested struct is written by its own name.

use std::fmt;

use redrive_core::paths::of_path;
use schemars::generate::SchemaSettings;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::map::Entry;
use serde_json::{Map, Value};

use crate::operation::{Method, Operation, Route};

/// Fields of a request, nested as in JSON.
pub type Fields = Map<String, Value>;

/// JSON object of a body. A field that is written twice is refused: readers differ in which of them they believe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object(pub Fields);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;

        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut fields = Fields::new();
                while let Some(name) = map.next_key::<String>()? {
                    if fields.contains_key(&name) {
                        return Err(A::Error::custom(format!("duplicate field `{name}`")));
                    }
                    fields.insert(name, map.next_value()?);
                }
                Ok(Object(fields))
            }
        }

        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// A request that cannot be read, or whose fields contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RequestError {
    /// Path of the wrong field, for example `until` or `page.limit`.
    pub field: Option<String>,
    /// Message for people.
    pub message: String,
}

impl RequestError {
    /// Returns the error of a field.
    pub fn at(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: Some(field.into()), message: message.into() }
    }

    /// Names the field as text has it: `limit`, not `page.limit`.
    pub fn flat(self) -> Self {
        let field = self.field.map(|path| path.rsplit('.').next().unwrap_or_default().to_owned());
        Self { field, ..self }
    }
}

/// Parts of an HTTP request.
#[derive(Debug, PartialEq, Eq)]
pub struct Parts {
    /// Segments of the path, not yet escaped.
    pub path: Vec<String>,
    /// Pairs of the query.
    pub query: Vec<(String, String)>,
    /// The body of a POST.
    pub body: Option<Value>,
}

/// Returns the name in the braces of a path segment.
pub fn path_field(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

/// Returns the fields of a request.
pub fn fields(request: &impl Operation) -> Fields {
    let Ok(Value::Object(fields)) = serde_json::to_value(request) else {
        unreachable!("a request is a struct of plain values")
    };
    fields
}

/// Splits a request. Fields without a value are left out.
pub fn split(route: &Route, mut fields: Fields) -> Parts {
    fields.retain(|_, value| !value.is_null());
    let mut path = Vec::new();
    for segment in route.path.split('/').filter(|segment| !segment.is_empty()) {
        path.push(match path_field(segment) {
            Some(name) => fields.remove(name).map(to_text).unwrap_or_default(),
            None => segment.to_owned(),
        });
    }
    match route.method {
        Method::Get => Parts { path, query: flatten(fields), body: None },
        Method::Post => Parts { path, query: Vec::new(), body: Some(Value::Object(fields)) },
    }
}

fn flatten(fields: Fields) -> Vec<(String, String)> {
    let pairs = fields.into_iter().flat_map(|(name, value)| match value {
        Value::Null => Vec::new(),
        Value::Object(nested) => flatten(nested),
        Value::Array(values) if values.is_empty() => Vec::new(),
        Value::Array(values) => vec![(name, values.into_iter().map(to_text).collect::<Vec<_>>().join(","))],
        value => vec![(name, to_text(value))],
    });
    pairs.collect()
}

fn to_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Returns the schema of a request, without references.
pub fn schema<O: Operation>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<O>().to_value()
}

/// Returns the schema of a response, and those that it refers to by name.
pub fn response_schema<O: Operation>() -> (Value, Fields) {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    let schema = generator.subschema_for::<O::Response>().to_value();
    (schema, generator.take_definitions(true))
}

/// Field of a request as text has it.
pub struct TextField<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its schema.
    pub schema: &'a Value,
    /// Set if it must be there.
    pub is_required: bool,
}

/// Returns the fields of a request as text has them: flat.
pub fn text_fields(schema: &Value) -> Vec<TextField<'_>> {
    let is_required =
        |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name));
    let properties = schema["properties"].as_object().into_iter().flatten();
    let flat = properties.flat_map(|(name, schema)| match schema.get("properties") {
        Some(_) => text_fields(schema),
        None => vec![TextField { name, schema, is_required: is_required(name) }],
    });
    flat.collect()
}

/// Adds fields that came as text. The schema says where a name belongs and whether it is a number, a boolean or a list.
///
/// An empty text is an absent field, as in a form. A name that comes several times has all of its values, with commas between them.
/// An unknown name is kept, so that decoding reports it.
pub fn add_text(fields: &mut Fields, schema: &Value, pairs: impl IntoIterator<Item = (String, String)>) {
    for (name, text) in pairs.into_iter().filter(|(_, text)| !text.is_empty()) {
        let has = |schema: &Value| schema["properties"].get(&name).is_some();
        let nested = schema["properties"].as_object().into_iter().flatten().find(|(_, schema)| has(schema));
        let (fields, schema) = match nested.filter(|_| !has(schema)) {
            Some((parent, schema)) => {
                (fields.entry(parent).or_insert_with(|| Fields::new().into()).as_object_mut(), schema)
            }
            None => (Some(&mut *fields), schema),
        };
        let Some(fields) = fields else { continue };
        let kind = &schema["properties"][&name]["type"];
        match (fields.entry(name), is(kind, "array")) {
            (Entry::Vacant(entry), true) => {
                entry.insert(list(&text).collect());
            }
            (Entry::Vacant(entry), false) => {
                entry.insert(from_text(kind, text));
            }
            (Entry::Occupied(mut entry), true) => {
                if let Some(known) = entry.get_mut().as_array_mut() {
                    known.extend(list(&text));
                }
            }
            (Entry::Occupied(mut entry), false) => match entry.get_mut() {
                Value::String(known) => known.extend([",", &text]),
                known => *known = format!("{},{text}", to_text(known.take())).into(),
            },
        }
    }
}

/// Adds the fields of a path. A name of dots alone is written with a tilde there.
pub fn add_path<'a>(fields: &mut Fields, schema: &Value, path: impl IntoIterator<Item = (&'a str, &'a str)>) {
    add_text(fields, schema, path.into_iter().map(|(name, text)| (name.to_owned(), of_path(text).to_owned())));
}

fn list(text: &str) -> impl Iterator<Item = Value> {
    text.split(',').filter(|item| !item.is_empty()).map(Value::from)
}

fn is(kind: &Value, name: &str) -> bool {
    kind == name || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == name))
}

fn from_text(kind: &Value, text: String) -> Value {
    match text.as_str() {
        "true" | "on" | "1" if is(kind, "boolean") => true.into(),
        "false" | "0" if is(kind, "boolean") => false.into(),
        _ if is(kind, "integer") || is(kind, "number") => text.parse().map_or(Value::String(text), Value::Number),
        _ => text.into(),
    }
}

/// Reports a missing field by its name. Serde would report only its parent.
pub fn check_required(schema: &Value, fields: &Fields) -> Result<(), RequestError> {
    let mut required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing = required.find(|name| fields.get(*name).is_none_or(Value::is_null));
    missing.map_or(Ok(()), |name| Err(RequestError::at(name, format!("{name} is missing"))))
}

/// Decodes a request. An error names the field by its serde path.
///
/// This reads a `Value`, not text: with `arbitrary_precision`, a fraction inside a flattened part cannot be read from text.
pub fn decode<O: Operation>(fields: Fields) -> Result<O, RequestError> {
    serde_path_to_error::deserialize(Value::Object(fields)).map_err(|error| {
        let field = error.path().iter().next().is_some().then(|| error.path().to_string());
        RequestError { field, message: error.into_inner().to_string() }
    })
}
