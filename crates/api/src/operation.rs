//! The `Operation` trait, and what routes, scopes and callers are.

use redrive_core::actors::Actor;
use redrive_core::ids::PipelineName;
use redrive_core::tokens::{PipelinePattern, Role};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A request that Redrive answers, locally or over HTTP.
///
/// The doc comment of the type is its summary in the OpenAPI document and in the CLI's help. The doc comment of a field is its
/// description in both.
pub trait Operation: Serialize + DeserializeOwned + JsonSchema + Send + 'static {
    /// Carries all that the CLI prints, so that one command is one request.
    type Response: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    /// Method, path and least role.
    const ROUTE: Route;
    /// A request in JSON. The OpenAPI document shows it, and the access tests send it.
    const EXAMPLE: &'static str;
    /// Returns the pipelines that the request touches. The engine checks them before it runs the request.
    fn scope(&self) -> Scope<'_>;
}

/// Pipelines that a request touches.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// One pipeline. `None` means all, and is refused if the caller covers only some.
    Pipeline(Option<&'a PipelineName>),
    /// A list of one pipeline or of all. The response has only rows that the caller covers.
    List(Option<&'a PipelineName>),
}

/// Method, path and least role of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// Path below `/api/v1`. A name in braces is a field of the request.
    pub path: &'static str,
    /// The least role that may send it.
    pub role: Role,
}

impl Route {
    /// Reads. Fields travel in the query.
    pub const fn get(path: &'static str, role: Role) -> Self {
        Self { method: Method::Get, path, role }
    }

    /// Changes something. Fields travel in the body.
    pub const fn post(path: &'static str, role: Role) -> Self {
        Self { method: Method::Post, path, role }
    }
}

/// HTTP method of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET.
    Get,
    /// POST.
    Post,
}

/// Sender of a request.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Name and way for the activity log.
    pub actor: Actor,
    /// Role of the token.
    pub role: Role,
    /// Pipelines that the token covers. Empty means all.
    pub pipelines: Vec<PipelinePattern>,
    /// Set if the caller may read payloads.
    pub payloads: bool,
    /// Set if the request came over the network.
    pub is_remote: bool,
}

impl Caller {
    /// Returns the caller for a process that opened the store itself: it may do everything.
    pub const fn local(actor: Actor) -> Self {
        Self { actor, role: Role::Admin, pipelines: Vec::new(), payloads: true, is_remote: false }
    }

    /// Returns true if the caller covers a pipeline.
    pub fn covers(&self, pipeline: &PipelineName) -> bool {
        self.covers_all() || self.pipelines.iter().any(|pattern| pattern.covers(pipeline))
    }

    /// Returns true if the caller covers all pipelines.
    pub const fn covers_all(&self) -> bool {
        self.pipelines.is_empty()
    }
}
