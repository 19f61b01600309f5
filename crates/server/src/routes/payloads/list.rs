//! `GET /payloads` and `GET /payloads/{id}`

use axum::Json;
use axum::extract::State;
use redrive::contract::{ListPayloads, PayloadView};
use redrive_core::ids::JobRef;
use redrive_core::payloads::Payload;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::asked::Named;
use crate::error::ApiError;
use crate::page::{List, Listed};

/// Which payloads.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Only those whose hash begins with these hexadecimal digits.
    prefix: Option<String>,
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    List { asked, limit, cursor }: List<Asked>,
) -> Result<Json<Listed<PayloadView>>, ApiError> {
    caller.check_payloads()?;
    only_all(&caller)?;
    if asked.prefix.as_ref().is_some_and(|prefix| !prefix.chars().all(|c| c.is_ascii_hexdigit())) {
        return Err(ApiError::invalid("prefix", "expected hexadecimal digits"));
    }
    let params = ListPayloads { prefix: asked.prefix, limit, cursor };
    let page = app.redrive().store().list_payloads(params).await?;
    Ok(Json(Listed::of(page)))
}

pub async fn show(State(app): State<App>, caller: Caller, Named(id): Named<String>) -> Result<Json<Payload>, ApiError> {
    Ok(Json(find(&app, &caller, &id).await?))
}

/// The payload that is meant, if who asks may see it: who is let near some pipelines only names a job of theirs.
pub async fn find(app: &App, caller: &Caller, id: &str) -> Result<Payload, ApiError> {
    caller.check_payloads()?;
    if !caller.covers_all() {
        let named = id.parse::<JobRef>().map_err(|_| hash_refused())?;
        let job = app.redrive().find_job(&named).await?;
        caller.check(&app.redrive().job(job).await?.job.pipeline)?;
        return Ok(app.redrive().find_payload(&job.to_string()).await?);
    }
    Ok(app.redrive().find_payload(id).await?)
}

fn only_all(caller: &Caller) -> Result<(), ApiError> {
    if caller.covers_all() { Ok(()) } else { Err(hash_refused()) }
}

fn hash_refused() -> ApiError {
    let why = "this token is for some pipelines only: name a job of theirs instead of a hash";
    ApiError::forbidden("pipeline_required", why).at("id")
}
