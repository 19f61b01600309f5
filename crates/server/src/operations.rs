//! Operations over HTTP: reads a request of any type, has the engine run it, and writes the response.

use std::sync::Arc;

use axum::extract::{FromRequest, RawPathParams, Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use redrive::api::wire::{self, Fields};
use redrive::api::{Method, Operation, RequestError};
use redrive::{Entry, Redrive, Run};
use serde_json::{Map, Value, json};

use crate::access::Caller;
use crate::app::App;
use crate::asked::Body;
use crate::error::ApiError;
use crate::route::Route;

impl Route {
    /// Returns the route of an operation.
    pub fn from_operation(entry: &'static Entry) -> Self {
        let (schema, (response, schemas)) = (Arc::new((entry.schema)()), (entry.response)());
        let described = schema["description"].as_str().unwrap_or_default();
        let summary = described.split("\n\n").next().unwrap_or_default().trim_end_matches('.').replace('\n', " ");
        let (params, body) = (params(entry, &schema), body(entry, &schema));
        // One type of handler for all operations.
        let run = move |State(app): State<App>, caller: Caller, path: RawPathParams, request: Request| {
            answer(app, (entry, Arc::clone(&schema)), caller, (path, request))
        };
        let route = match entry.route.method {
            Method::Get => Self::get(entry.route.path, run, ""),
            Method::Post => Self::post(entry.route.path, run, ""),
        };
        Self { role: entry.route.role, summary: summary.into(), params, body, answer: response, schemas, ..route }
    }
}

/// Names in the path of an operation.
fn path_names(entry: &Entry) -> Vec<&'static str> {
    entry.route.path.split('/').filter_map(wire::path_field).collect()
}

/// Parameters of the path and the query, as the document has them.
fn params(entry: &Entry, schema: &Value) -> Vec<Value> {
    let names = path_names(entry);
    let mut params = Vec::new();
    for field in wire::text_fields(schema) {
        let is_path = names.contains(&field.name);
        if is_path || entry.route.method == Method::Get {
            let (place, mut schema) = (if is_path { "path" } else { "query" }, field.schema.clone());
            let described = schema.as_object_mut().and_then(|schema| schema.remove("description"));
            // Text is never null.
            if let Some(kinds) = schema["type"].as_array_mut() {
                kinds.retain(|kind| kind != "null");
            }
            let mut param = json!({ "name": field.name, "in": place, "required": field.is_required, "schema": schema });
            if let Some(described) = described {
                param["description"] = described;
            }
            params.push(param);
        }
    }
    params
}

/// The JSON body of a POST, as the document has it: the request without the fields of the path.
fn body(entry: &Entry, schema: &Value) -> Option<Value> {
    let (names, mut schema) = (path_names(entry), schema.clone());
    let mut example: Value = serde_json::from_str(entry.example).unwrap_or_default();
    let without = |object: &mut Value| {
        if let Some(fields) = object.as_object_mut() {
            fields.retain(|name, _| !names.contains(&name.as_str()));
        }
    };
    without(&mut schema["properties"]);
    without(&mut example);
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| !names.iter().any(|path| name == path));
    }
    schema["examples"] = json!([example]);
    (entry.route.method == Method::Post).then_some(schema)
}

/// Reads a request, has it run, and writes the response.
async fn answer(
    app: App,
    (entry, schema): (&'static Entry, Arc<Value>),
    caller: Caller,
    (path, request): (RawPathParams, Request),
) -> Result<Response, ApiError> {
    let fields = read(&app, entry, &schema, (path, request)).await?;
    let ran = match wire::check_required(&schema, &fields) {
        Ok(()) => (entry.run)(app.redrive(), fields, &caller.to_api()).await,
        Err(error) => Err(error.into()),
    };
    let body = ran.map_err(|error| match error {
        // A query is flat.
        redrive::Error::Request(error) if entry.route.method == Method::Get => error.flat().into(),
        error => error,
    })?;
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// Reads the fields of a request: of its path, and of its query or its body.
async fn read(
    app: &App,
    entry: &Entry,
    schema: &Value,
    (path, request): (RawPathParams, Request),
) -> Result<Fields, ApiError> {
    let mut fields = Map::new();
    if entry.route.method == Method::Get {
        let query = request.uri().query().unwrap_or_default().as_bytes();
        wire::add_text(&mut fields, schema, form_urlencoded::parse(query).into_owned());
    } else {
        fields = Body::<wire::Object>::from_request(request, app).await?.0.0;
        // Clients of before send the fields of all verbs, those that they do not need as null.
        fields.retain(|_, value| !value.is_null());
    }
    wire::add_path(&mut fields, schema, &path);
    Ok(fields)
}

/// Runs the operation that a form of a page asks for. Fields of the form that the operation does not have are left out.
pub async fn run_form<'a, O: Operation>(
    app: &App,
    caller: &Caller,
    form: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<O::Response, ApiError>
where
    Redrive: Run<O>,
{
    let (mut fields, schema) = (Fields::new(), wire::schema::<O>());
    let known: Vec<_> = wire::text_fields(&schema).into_iter().map(|field| field.name).collect();
    let own = form.into_iter().filter(|(name, _)| known.contains(name));
    wire::add_text(&mut fields, &schema, own.map(|(name, text)| (name.to_owned(), text.trim().to_owned())));
    let request = wire::check_required(&schema, &fields).and_then(|()| wire::decode::<O>(fields));
    let request = request.map_err(|error| redrive::Error::from(RequestError::flat(error)))?;
    Ok(app.redrive().ask(request, &caller.to_api()).await?)
}
