//! Tokens: who may ask for what.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use redrive::tokens::NewToken;
use redrive_core::ids::TokenName;
use redrive_core::tokens::{PipelinePattern, Role, Token};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, Named, future};
use crate::error::ApiError;
use crate::page::{List, Listed, Nothing};
use crate::route::Route;
use crate::shapes;

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/tokens", list, "List tokens, without their secrets").needs(Role::Admin).lists("Token"),
        Route::post("/tokens", create, "Make a token; its secret is told once, in the answer")
            .needs(Role::Admin)
            .takes::<Asked>()
            .gives_named("MadeToken")
            .with_status(201)
            .answered_anew(),
        Route::delete("/tokens/{name}", revoke, "Revoke a token").gives::<Revoked>(),
    ]
}

/// A token that is to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateToken)]
pub struct Asked {
    /// What it is called.
    #[schema(value_type = shapes::Name)]
    name: TokenName,
    /// What it may do: `viewer`, `worker`, `operator` or `admin`.
    #[schema(value_type = shapes::RoleName)]
    role: Role,
    /// The pipelines that it is for, by name or by the beginning of names, as in `shop-*`; all if left out.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pipelines: Vec<PipelinePattern>,
    /// Whether it may read payloads: yes if left out.
    payloads: Option<bool>,
    /// When it is no longer good: `90d` (from now), a day or a time; never if left out.
    expires: Option<String>,
}

/// A token that was made.
#[derive(Debug, Serialize)]
pub struct Made {
    /// The token.
    #[serde(flatten)]
    token: Token,
    /// What who uses it sends. It is not kept, and cannot be told again.
    secret: String,
}

/// A token that was revoked.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RevokedToken)]
pub struct Revoked {
    /// What it is called.
    #[schema(value_type = shapes::Name)]
    revoked: TokenName,
}

async fn list(State(app): State<App>, caller: Caller, list: List<Nothing>) -> Result<Json<Listed<Token>>, ApiError> {
    check_all(&caller)?;
    Ok(Json(list.cut(app.redrive().list_tokens().await?)?))
}

async fn create(
    State(app): State<App>,
    caller: Caller,
    Body(asked): Body<Asked>,
) -> Result<(StatusCode, Json<Made>), ApiError> {
    check_all(&caller)?;
    let new = NewToken {
        expires_at: future("expires", asked.expires.as_deref(), app.redrive().now())?,
        name: asked.name,
        role: asked.role,
        pipelines: asked.pipelines,
        payloads: asked.payloads.unwrap_or(true),
    };
    let made = app.redrive().create_token(&new, &caller.actor()).await?;
    app.forget_tokens();
    Ok((StatusCode::CREATED, Json(Made { token: made.token, secret: made.secret })))
}

async fn revoke(
    State(app): State<App>,
    caller: Caller,
    Named(name): Named<TokenName>,
) -> Result<Json<Revoked>, ApiError> {
    check_all(&caller)?;
    app.redrive().revoke_token(&name, &caller.actor()).await?;
    app.forget_tokens();
    Ok(Json(Revoked { revoked: name }))
}

/// Who is let near some pipelines only could make a token for others.
fn check_all(caller: &Caller) -> Result<(), ApiError> {
    match caller.covers_all() {
        true => Ok(()),
        false => Err(ApiError::forbidden("role_required", "tokens are for who may do everything in all pipelines")),
    }
}
