//! `GET /whoami`

use axum::Json;
use redrive_core::time::Timestamp;
use redrive_core::tokens::{PipelinePattern, Role};
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::Caller;
use crate::shapes;

/// Who asks.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WhoAmI)]
pub struct Answer {
    /// What they are called in the record.
    name: String,
    /// What they may do: everything while the store has never had a token.
    #[schema(value_type = shapes::RoleName)]
    role: Role,
    /// The pipelines that they may see; none means all.
    #[schema(value_type = Vec<String>)]
    pipelines: Vec<PipelinePattern>,
    /// Whether they may read payloads.
    payloads: bool,
    /// When their token is no longer good, if ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    expires_at: Option<Timestamp>,
    /// Which version of redrive the server is.
    version: &'static str,
}

pub async fn run(caller: Caller) -> Json<Answer> {
    let token = caller.token();
    Json(Answer {
        name: caller.name().to_owned(),
        role: caller.role(),
        pipelines: token.map(|token| token.pipelines.clone()).unwrap_or_default(),
        payloads: token.is_none_or(|token| token.payloads),
        expires_at: token.and_then(|token| token.expires_at),
        version: env!("CARGO_PKG_VERSION"),
    })
}
