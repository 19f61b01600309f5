//! Doing what a form asks for by the same functions that answer the API: they check who may do what.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::fields::Fields;
use super::filter::LetterFilter;
use super::problem::Problem;
use crate::error::ApiError;

/// What a request to the API would have said.
pub fn asked<T: DeserializeOwned>(value: Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(value).map_err(|error: serde_path_to_error::Error<serde_json::Error>| {
        let field = error.path().to_string();
        ApiError::invalid(field, error.into_inner().to_string()).into()
    })
}

/// A request with those of these fields that were filled in.
pub fn filled(fields: &Fields, names: &[&str]) -> Map<String, Value> {
    names.iter().filter_map(|name| Some(((*name).to_owned(), Value::from(fields.one(name)?)))).collect()
}

/// Which letters a form is about, as the API would be told: those that were ticked, or all that the filter finds.
pub fn letters(fields: &Fields) -> Value {
    let ids: Vec<&str> = fields.all("id").collect();
    match ids.is_empty() {
        true => Value::Object(LetterFilter::of(fields).to_json()),
        false => json!({ "ids": ids }),
    }
}
