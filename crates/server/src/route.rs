//! What a route is: where it is found, who may ask, what it takes and gives. The router and the OpenAPI document are made of the same
//! list of these.

use std::borrow::Cow;

use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use redrive_core::tokens::Role;
use serde_json::{Map, Value, json};
use utoipa::openapi::path::ParameterIn;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::page;

/// A route under `/api/v1`.
pub struct Route {
    /// How it is asked.
    pub method: Method,
    /// Where: names in braces are parameters.
    pub path: &'static str,
    /// The least role that may ask.
    pub role: Role,
    /// What it does, in a line.
    pub summary: Cow<'static, str>,
    /// Its parameters, as the document has them.
    pub params: Vec<Value>,
    /// Its body, as the document has it.
    pub body: Option<Value>,
    /// Its answer, as the document has it.
    pub answer: Value,
    /// What kind of bytes its answer is; none if it has no body.
    pub content: Option<&'static str>,
    /// The status of its answer.
    pub status: u16,
    /// Another status that its answer may have.
    pub other_status: Option<u16>,
    /// Whether its answer may be kept, to be given again to who sends the same key.
    pub is_kept: bool,
    /// Schemas that these refer to, by name.
    pub schemas: Map<String, Value>,
    pub(crate) run: MethodRouter<App>,
}

impl Route {
    /// Something that is read.
    pub fn get<H: Handler<T, App>, T: 'static>(path: &'static str, run: H, summary: &'static str) -> Self {
        Self::new(Method::GET, MethodFilter::GET, path, run, summary)
    }

    /// Something that is done.
    pub fn post<H: Handler<T, App>, T: 'static>(path: &'static str, run: H, summary: &'static str) -> Self {
        Self { role: Role::Operator, ..Self::new(Method::POST, MethodFilter::POST, path, run, summary) }
    }

    /// Something that is brought.
    pub fn put<H: Handler<T, App>, T: 'static>(path: &'static str, run: H, summary: &'static str) -> Self {
        Self { role: Role::Worker, ..Self::new(Method::PUT, MethodFilter::PUT, path, run, summary) }
    }

    /// Something that is asked after.
    pub fn head<H: Handler<T, App>, T: 'static>(path: &'static str, run: H, summary: &'static str) -> Self {
        Self { role: Role::Worker, ..Self::new(Method::HEAD, MethodFilter::HEAD, path, run, summary) }
    }

    /// Something that is taken away.
    pub fn delete<H: Handler<T, App>, T: 'static>(path: &'static str, run: H, summary: &'static str) -> Self {
        Self { role: Role::Admin, ..Self::new(Method::DELETE, MethodFilter::DELETE, path, run, summary) }
    }

    fn new<H: Handler<T, App>, T: 'static>(
        method: Method,
        filter: MethodFilter,
        path: &'static str,
        run: H,
        summary: &'static str,
    ) -> Self {
        let method_creates = method == Method::POST;
        Self {
            method,
            path,
            role: Role::Viewer,
            summary: summary.into(),
            params: named_in(path),
            body: None,
            answer: json!({"type": "object"}),
            content: Some("application/json"),
            status: 200,
            other_status: None,
            is_kept: method_creates,
            schemas: Map::new(),
            run: on(filter, run),
        }
    }

    /// The same for at least this role.
    pub fn needs(self, role: Role) -> Self {
        Self { role, ..self }
    }

    /// The same with what may stand after the question mark.
    pub fn query<T: IntoParams>(mut self) -> Self {
        let params = T::into_params(|| Some(ParameterIn::Query));
        self.params.extend(params.iter().filter_map(|param| serde_json::to_value(param).ok()));
        self
    }

    /// The same with a JSON body.
    pub fn takes<T: ToSchema>(mut self) -> Self {
        self.body = Some(self.schema_of::<T>());
        self
    }

    /// The same with a JSON body of which the schema is written down.
    pub fn takes_schema(self, schema: Value) -> Self {
        Self { body: Some(schema), ..self }
    }

    /// The same with an answer.
    pub fn gives<T: ToSchema>(mut self) -> Self {
        self.answer = self.schema_of::<T>();
        self
    }

    /// The same with an answer of which the schema is written down.
    pub fn gives_schema(self, schema: Value) -> Self {
        Self { answer: schema, ..self }
    }

    /// The same of which only a page is wanted.
    pub fn paged(mut self) -> Self {
        self.params.extend([page::limit_param(), page::cursor_param()]);
        self
    }

    /// The same with an answer whose schema is made of the types below the API, by its name there.
    pub fn gives_named(self, name: &'static str) -> Self {
        Self { answer: named(name), ..self }
    }

    /// The same whose answer is no JSON.
    pub fn gives_bytes(self, content: &'static str) -> Self {
        Self { answer: json!({"type": "string"}), content: Some(content), ..self }
    }

    /// The same whose answer has no body.
    pub fn gives_nothing(self) -> Self {
        Self { content: None, ..self }
    }

    /// The same that may answer with this status as well.
    pub fn or_status(self, status: u16) -> Self {
        Self { other_status: Some(status), ..self }
    }

    /// The same with a page of things for an answer.
    pub fn lists(self, name: &'static str) -> Self {
        self.paged().lists_all(name)
    }

    /// The same with all there is for an answer.
    pub fn lists_all(mut self, name: &'static str) -> Self {
        let items = json!({"type": "array", "items": named(name)});
        let next = json!({"type": "string", "description": "`cursor` of the next request; not there on the last page"});
        let properties = json!({"items": items, "next": next});
        self.answer =
            json!({"type": "object", "required": ["items"], "properties": properties, "additionalProperties": false});
        self
    }

    /// The same that answers with another status than 200.
    pub fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// The same whose answer is never kept: there is a secret in it, or it is no longer true a moment later.
    pub fn answered_anew(self) -> Self {
        Self { is_kept: false, ..self }
    }

    fn schema_of<T: ToSchema>(&mut self) -> Value {
        let mut needed = Vec::new();
        T::schemas(&mut needed);
        let value = |schema| serde_json::to_value(schema).unwrap_or_default();
        self.schemas.extend(needed.into_iter().map(|(name, schema)| (name, value(schema))));
        let name = T::name().into_owned();
        self.schemas.insert(name.clone(), value(T::schema()));
        json!({"$ref": format!("#/components/schemas/{name}")})
    }
}

fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// The parameters that a path has.
fn named_in(path: &str) -> Vec<Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})).collect()
}
