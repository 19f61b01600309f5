//! `GET /jobs`

use axum::Json;
use axum::extract::State;
use redrive::contract::{JobFilter, ListJobs};
use redrive_core::failures::Reason;
use redrive_core::ids::PipelineName;
use redrive_core::jobs::JobView;
use redrive_core::state::JobState;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Several, instant};
use crate::error::ApiError;
use crate::page::{List, Listed};
use crate::shapes;

/// Which jobs.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Only of this pipeline.
    #[param(value_type = Option<shapes::Name>)]
    pipeline: Option<PipelineName>,
    /// Only in these states, with commas between them.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    state: Several<JobState>,
    /// Only those that failed last for this reason.
    #[param(value_type = Option<String>)]
    reason: Option<Reason>,
    /// Only those that failed last with this code.
    code: Option<String>,
    /// Only of this target.
    target: Option<String>,
    /// Only accepted since: `2h` (ago), a day or a time.
    since: Option<String>,
    /// Only accepted before: `2h` (ago), a day or a time.
    until: Option<String>,
    /// Only those with this text in their key, target or input.
    text: Option<String>,
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    List { asked, limit, cursor }: List<Asked>,
) -> Result<Json<Listed<JobView>>, ApiError> {
    caller.check_each(&asked.pipeline)?;
    let now = app.redrive().now();
    let filter = JobFilter {
        since: instant("since", asked.since.as_deref(), now)?,
        until: instant("until", asked.until.as_deref(), now)?,
        pipeline: asked.pipeline,
        within: caller.within(),
        states: asked.state.0,
        reason: asked.reason,
        code: asked.code,
        target: asked.target,
        text: asked.text,
    };
    let params = ListJobs { filter, limit, cursor };
    let listed = tokio::time::timeout(app.options().patience.jobs, app.redrive().store().list_jobs(params)).await;
    let page =
        listed.map_err(|_| ApiError::too_large("this search takes too long: name a pipeline, states or a time"))??;
    Ok(Json(Listed::of(page)))
}
