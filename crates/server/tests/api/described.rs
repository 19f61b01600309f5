//! Answers held against the document: every answer that any test of the API gets is one that the document describes.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use redrive::handler::http::validate::Validator;
use redrive_server::{all_routes, openapi};
use serde_json::{Value, json};

use crate::running::{Answer, Running};

/// Validators that were made, by operation and status.
static MADE: OnceLock<Mutex<HashMap<String, Option<&'static Validator>>>> = OnceLock::new();

/// Asserts that an answer to a request, such as `GET /jobs?limit=1`, is as the document says.
pub fn assert_described(request: &str, answer: &Answer) {
    let Some((method, path)) = request.split_once(' ') else { return };
    let path = path.split('?').next().unwrap_or_default();
    let is_json = answer.header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
    let (Some(route), true, true) = (route_of(method, path), is_json, method != "HEAD") else { return };
    let named = format!("{method} {route} {}", answer.status);
    let validator = *MADE
        .get_or_init(Mutex::default)
        .lock()
        .expect("unpoisoned")
        .entry(named.clone())
        .or_insert_with(|| validator(method, &route, answer.status).map(|made| &*Box::leak(Box::new(made))));
    let validator = validator.unwrap_or_else(|| panic!("{named} is not in the document: {answer:?}"));
    let found = answer.json();
    let wrong = validator.validate(&found).err();
    assert!(wrong.is_none(), "{named} is not as the document says: {wrong:?}\n{found}");
}

/// The route that a path is of, the most particular one first.
fn route_of(method: &str, path: &str) -> Option<String> {
    let fits = |route: &&str| {
        let (asked, known) = (path.split('/'), route.split('/'));
        asked.clone().count() == known.clone().count() && asked.zip(known).all(|(a, k)| a == k || k.starts_with('{'))
    };
    let routes = all_routes();
    let mut fitting: Vec<_> = routes.iter().filter(|route| route.method == method).map(|route| route.path).collect();
    fitting.retain(|route| fits(route));
    fitting.into_iter().min_by_key(|route| route.matches('{').count()).map(str::to_owned)
}

fn validator(method: &str, route: &str, status: u16) -> Option<Validator> {
    let document = openapi::document();
    let operation = &document["paths"][format!("/api/v1{route}")][method.to_ascii_lowercase()];
    let class = format!("{}XX", status / 100);
    let answers = &operation["responses"];
    let answer = answers.get(status.to_string()).or_else(|| answers.get(&class))?;
    let schema = answer["content"]["application/json"]["schema"].clone();
    let whole = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "components": document["components"],
        "allOf": [schema],
    });
    Some(Validator::compile(&whole).unwrap_or_else(|error| panic!("{method} {route}: {error}")))
}

#[test]
fn the_shapes_of_answers_are_those_of_the_types() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/schemas");
    let checked = std::process::Command::new("python3").args([script, "--check"]).output().expect("python3 runs");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn every_answer_has_a_shape_of_its_own() {
    let anything = json!({"type": "object"});
    let shapeless = |operation: &Value| {
        let answers = operation["responses"].as_object().expect("answers").values();
        answers.filter(|answer| answer["content"]["application/json"]["schema"] == anything).count() > 0
    };
    let paths = openapi::document()["paths"].as_object().expect("paths");
    let found = paths.iter().flat_map(|(path, at)| at.as_object().expect("methods").iter().map(move |one| (path, one)));
    let vague: Vec<_> =
        found.filter(|(_, (_, operation))| shapeless(operation)).map(|(path, (m, _))| (m, path)).collect();
    assert!(vague.is_empty(), "{vague:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_described_is_noticed() {
    let server = Running::start().await;
    let mut answer = server.get("/jobs").await;
    answer.body = json!({ "items": [{ "id": 7 }] }).to_string().into_bytes();
    let noticed = std::panic::catch_unwind(|| assert_described("GET /jobs", &answer));
    assert!(noticed.is_err());
}
