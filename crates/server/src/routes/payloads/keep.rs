//! `POST /payloads/verify` and `POST /payloads/gc`: whether payloads are whole, and removing what nothing refers to.

use axum::Json;
use axum::extract::State;
use redrive::config::units;
use redrive::payloads::{Cleared, GRACE, Verified, clear};
use redrive::vault::Vault;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::list::find;
use crate::access::Caller;
use crate::app::App;
use crate::asked::Body;
use crate::error::ApiError;

/// The most payloads that are named at once, and broken ones that are told of.
const NAMED_MAX: usize = 1_000;

/// Which payloads.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = VerifyPayloads)]
pub struct Asked {
    /// By number or id of their jobs, or by hash: at most 1,000; all if left out.
    #[serde(default)]
    #[schema(max_items = 1_000)]
    ids: Vec<String>,
}

/// How many are whole.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// How many are what.
    #[serde(flatten)]
    verified: Verified,
    /// What is wrong with the first 1,000 that are not whole.
    wrong: Vec<String>,
}

pub async fn verify(
    State(app): State<App>,
    caller: Caller,
    Body(asked): Body<Asked>,
) -> Result<Json<Answer>, ApiError> {
    if asked.ids.len() > NAMED_MAX {
        let why = format!("{} payloads at once: at most {NAMED_MAX}", asked.ids.len());
        return Err(ApiError::too_large(why).at("ids"));
    }
    if asked.ids.is_empty() {
        caller.check_all(None)?;
    }
    for id in &asked.ids {
        find(&app, &caller, id).await?;
    }
    let mut wrong = Vec::new();
    let broken = |error: &redrive::vault::VaultError| {
        if wrong.len() < NAMED_MAX {
            wrong.push(error.to_string());
        }
    };
    let verified = app.redrive().verify_payloads(vault(&app)?, &asked.ids, broken).await?;
    Ok(Json(Answer { verified, wrong }))
}

/// What is removed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ClearPayloads)]
pub struct Clear {
    /// Only what nothing has referred to for so long: `1h` if left out.
    grace: Option<String>,
    /// Also what a copied store inherited: there is no other store that needs it.
    #[serde(default)]
    adopt: bool,
}

pub async fn gc(State(app): State<App>, caller: Caller, Body(asked): Body<Clear>) -> Result<Json<Cleared>, ApiError> {
    caller.check_all(None)?;
    let grace = asked.grace.as_deref().map(units::duration).transpose();
    let grace = grace.map_err(|why| ApiError::invalid("grace", why))?.unwrap_or(GRACE);
    Ok(Json(clear(vault(&app)?, grace, asked.adopt, &caller.actor()).await?))
}

fn vault(app: &App) -> Result<&Vault, ApiError> {
    app.vault().ok_or_else(|| ApiError::missing("this store has no vault"))
}
