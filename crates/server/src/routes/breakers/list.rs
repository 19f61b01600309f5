//! `GET /breakers`

use axum::Json;
use axum::extract::State;
use redrive::breakers::hand_version;
use redrive_core::breakers::BreakerView;
use redrive_core::ids::PipelineName;
use redrive_core::seen::Version;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::error::ApiError;
use crate::page::{List, Listed};
use crate::shapes;

/// Which breakers.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Only of this pipeline.
    #[param(value_type = Option<shapes::Name>)]
    pipeline: Option<PipelineName>,
}

/// A breaker, and the version of what people did to it.
#[derive(Debug, Serialize)]
pub struct Shown {
    #[serde(flatten)]
    view: BreakerView,
    /// To be sent along with a change: if others changed it meanwhile, it is refused.
    version: Version,
}

pub async fn run(State(app): State<App>, caller: Caller, list: List<Asked>) -> Result<Json<Listed<Shown>>, ApiError> {
    caller.check_each(&list.asked.pipeline)?;
    let mut breakers = app.redrive().list_breakers(list.asked.pipeline.as_ref()).await?;
    breakers.retain(|view| caller.covers(&view.pipeline));
    let shown = |view: BreakerView| Shown { version: hand_version(Some(&view.breaker)), view };
    Ok(Json(list.cut(breakers.into_iter().map(shown).collect())?))
}
