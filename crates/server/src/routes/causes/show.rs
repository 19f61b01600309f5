//! `GET /causes/{id}`

use axum::Json;
use axum::extract::State;
use redrive::contract::CauseDetail;
use redrive_core::causes::CauseId;
use serde::Serialize;

use crate::access::Caller;
use crate::app::App;
use crate::asked::Named;
use crate::error::ApiError;

/// A cause, and the version of what people said about it.
#[derive(Debug, Serialize)]
pub struct Shown {
    #[serde(flatten)]
    detail: CauseDetail,
    /// To be sent along with a change: if others changed it meanwhile, it is refused.
    version: u64,
}

impl Shown {
    /// The cause.
    pub const fn id(&self) -> &CauseId {
        &self.detail.cause.id
    }

    /// The version of what people said about it.
    pub const fn version(&self) -> u64 {
        self.version
    }
}

pub async fn run(State(app): State<App>, caller: Caller, Named(id): Named<CauseId>) -> Result<Json<Shown>, ApiError> {
    let shown = look(&app, id).await?;
    caller.check(&shown.detail.cause.pipeline)?;
    Ok(Json(shown))
}

/// A cause as it is. The version is read first: what others say in between makes it an older one.
pub async fn look(app: &App, id: CauseId) -> Result<Shown, ApiError> {
    let version = app.redrive().cause_version(&id).await?;
    let detail = app.redrive().store().get_cause(id, app.redrive().now()).await?;
    Ok(Shown { detail, version })
}
