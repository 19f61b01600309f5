//! The OpenAPI document, made of the routes that there are.

use std::sync::OnceLock;

use axum::http::Method;
use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

use crate::error::{Envelope, Told};
use crate::once;
use crate::route::Route;
use crate::router::{BASE, all};

/// The document.
pub fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(make)
}

/// What the document itself is: what OpenAPI says, in short.
pub fn schema() -> Value {
    let object = || json!({"type": "object"});
    json!({
        "type": "object",
        "required": ["openapi", "info", "paths", "components"],
        "properties": {"openapi": {"const": "3.1.0"}, "info": object(), "paths": object(), "components": object()},
    })
}

/// What answers are, by name: made of the types below the API by `scripts/schemas`.
fn answers() -> Map<String, Value> {
    serde_json::from_str(include_str!("schemas.json")).unwrap_or_default()
}

fn make() -> Value {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    let value = |schema| serde_json::to_value(schema).unwrap_or_default();
    schemas.insert(Envelope::name().into_owned(), value(Envelope::schema()));
    schemas.insert(Told::name().into_owned(), value(Told::schema()));
    schemas.extend(answers());
    for route in all() {
        let at = paths.entry(format!("{BASE}{}", route.path)).or_insert_with(|| json!({}));
        if let Value::Object(at) = at {
            at.insert(route.method.as_str().to_ascii_lowercase(), operation(&route));
        }
        schemas.extend(route.schemas);
    }
    schemas["LeasedJobs"]["properties"]["leases"]["items"] = json!({"$ref": "#/components/schemas/LeasedJob"});
    paths.sort_keys();
    schemas.sort_keys();
    let security = json!({"token": {"type": "http", "scheme": "bearer"}});
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Redrive",
            "version": "1",
            "description": "A dead-letter queue that people operate. Every answer means that it is on disk.",
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": security},
        "security": [{"token": []}],
    })
}

fn operation(route: &Route) -> Value {
    let mut params = route.params.clone();
    if route.is_kept {
        params.push(json!({
            "name": once::KEY.as_str(),
            "in": "header",
            "required": false,
            "schema": {"type": "string", "minLength": 1, "maxLength": 255},
            "description": "The same key with the same request within 24 hours is answered as the first time.",
        }));
    }
    let noun = route.path.trim_start_matches('/').split('/').next().unwrap_or_default();
    let envelope = json!({"$ref": format!("#/components/schemas/{}", Envelope::name())});
    let wrong = |what: &str| json!({"description": what, "content": {"application/json": {"schema": envelope}}});
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "description": format!("Needs a token with at least the role {}.", route.role),
        "tags": [noun],
        "parameters": params,
        "responses": {
            "4XX": wrong("It was not done, and why."),
            "5XX": wrong("It could not be done for now."),
        },
    });
    let mut done = json!({"description": "Done."});
    if let Some(content) = route.content {
        done["content"] = json!({content: {"schema": route.answer}});
    }
    for status in [Some(route.status), route.other_status].into_iter().flatten() {
        operation["responses"][status.to_string()] = done.clone();
    }
    // What is followed is never the same.
    if route.method == Method::GET && route.content != Some("text/event-stream") {
        operation["responses"]["304"] = json!({"description": "It is what the `If-None-Match` of the request names."});
    }
    if let Some(body) = &route.body {
        operation["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": body}}});
    }
    operation
}

fn operation_id(route: &Route) -> String {
    let words = route.path.split(['/', '.']).filter(|part| !part.is_empty());
    let words = words.map(|part| part.trim_matches(['{', '}']).to_owned());
    std::iter::once(route.method.as_str().to_ascii_lowercase()).chain(words).collect::<Vec<_>>().join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_has_an_operation_of_its_own_and_every_reference_leads_somewhere() {
        let document = document();
        let paths = document["paths"].as_object().expect("paths");
        let operations: Vec<_> = paths.values().flat_map(|at| at.as_object().expect("methods").values()).collect();
        assert_eq!(operations.len(), all().len());
        let mut ids: Vec<_> = operations.iter().map(|operation| operation["operationId"].to_string()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), operations.len());
        let text = document.to_string();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().expect("a name");
            assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
        }
    }
}
