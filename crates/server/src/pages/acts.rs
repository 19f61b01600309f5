//! Doing what a form asks for by the same functions that answer the API: they check who may do what.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::fields::Fields;
use super::filter::LetterFilter;
use super::problem::Problem;
use crate::error::ApiError;
use crate::routes::letters::filter::Filter;

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

/// Which letters a form is about, as the API would be told: those that were ticked, or all that the filter finds. The API takes both in
/// one field; a filter that makes no sense is told here, by its own name.
pub fn letters(fields: &Fields) -> Result<Value, Problem> {
    let ids: Vec<&str> = fields.all("id").collect();
    if !ids.is_empty() {
        return Ok(json!({ "ids": ids }));
    }
    let filter = Value::Object(LetterFilter::of(fields).to_json());
    asked::<Filter>(filter.clone())?;
    Ok(filter)
}
