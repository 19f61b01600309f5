//! `GET /causes`

use axum::Json;
use axum::extract::State;
use redrive::causes::CausesAsked;
use redrive::contract::CauseView;
use redrive_core::causes::{CauseSort, CauseState};
use redrive_core::ids::PipelineName;
use redrive_core::retrying::RetryingView;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Flag, Several};
use crate::error::ApiError;
use crate::page::{List, Listed};
use crate::shapes;

/// Which causes.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Only of this pipeline.
    #[param(value_type = Option<shapes::Name>)]
    pipeline: Option<PipelineName>,
    /// Only in these states, with commas between them.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    state: Several<CauseState>,
    /// Only of this owner.
    owner: Option<String>,
    /// Also causes that no letter is dead of any more.
    #[serde(default)]
    #[param(value_type = Option<bool>)]
    all: Flag,
    /// Which come first: `dead` (those with the most dead letters; if left out), `last` (of which somebody died last) or `first` (that
    /// were first seen last).
    #[serde(default)]
    #[param(value_type = Option<String>)]
    sort: CauseSort,
}

/// A page of causes.
#[derive(Debug, Serialize)]
pub struct Shown {
    /// The causes.
    items: Vec<CauseView>,
    /// Where the next page begins: `cursor` of the next request. Not there on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// Last failures of tasks that wait for another attempt, of pipelines with a target on hold. Only on the first page.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retrying: Vec<RetryingView>,
}

pub async fn run(State(app): State<App>, caller: Caller, list: List<Asked>) -> Result<Json<Shown>, ApiError> {
    let asked = &list.asked;
    caller.check_each(&asked.pipeline)?;
    let wanted = CausesAsked {
        pipeline: asked.pipeline.clone(),
        states: asked.state.0.clone(),
        owner: asked.owner.clone(),
        all: asked.all.0,
        sort: asked.sort,
        limit: list.reach()?,
    };
    let (causes, _) = app.redrive().list_causes_of(|name| caller.covers(name), wanted, false).await?;
    let Listed { items, next } = list.cut(causes)?;
    let is_meant = |name: &PipelineName| caller.covers(name) && asked.pipeline.as_ref().is_none_or(|only| only == name);
    let retrying = match &list.cursor {
        None => app.redrive().retrying(is_meant).await?,
        Some(_) => Vec::new(),
    };
    Ok(Json(Shown { items, next, retrying }))
}
