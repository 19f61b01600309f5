//! What a worker that lives elsewhere runs, where it says so: its own version of a pipeline, which need not be the one of the server's
//! configuration. Replays are pinned to it, and its jobs are recorded as tried with it.

use redrive::Pipeline;
use redrive_core::definitions::DefinitionVersion;
use redrive_core::ids::PipelineName;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::shapes;

/// The longest version, in bytes.
const VERSION_BYTES_MAX: usize = 64;

/// What a worker runs for a pipeline.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WorkerRuns)]
pub struct Runs {
    /// The pipeline.
    #[schema(value_type = shapes::Name)]
    pipeline: PipelineName,
    /// The version that it has of it: a single word.
    #[schema(value_type = Option<String>, max_length = 64, pattern = "^[!-~]{1,64}$")]
    definition: Option<DefinitionVersion>,
    /// Whether it works from saved payloads.
    #[serde(default)]
    saved: bool,
    /// Set if its jobs wait without end for a target that stays away, instead of for `hold_max`.
    #[serde(default)]
    waits_forever: bool,
}

/// Refuses versions that are none.
pub fn check(runs: &[Runs]) -> Result<(), ApiError> {
    let is_word = |version: &str| {
        (1..=VERSION_BYTES_MAX).contains(&version.len()) && version.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let wrong = |run: &Runs| run.definition.as_ref().is_some_and(|version| !is_word(version.as_str()));
    match runs.iter().position(wrong) {
        None => Ok(()),
        Some(at) => Err(ApiError::invalid(
            format!("runs[{at}].definition"),
            format!("a version is a single word of at most {VERSION_BYTES_MAX} visible characters"),
        )),
    }
}

/// A pipeline as a worker runs it; where it says nothing, as it is known here.
pub fn pipeline(app: &App, runs: &[Runs], name: &PipelineName) -> Result<Pipeline, ApiError> {
    let known = app.pipeline(name)?;
    Ok(match runs.iter().find(|run| run.pipeline == *name) {
        Some(run) => {
            let known = known.run_elsewhere(run.definition.clone(), run.saved);
            if run.waits_forever { known.waiting_forever() } else { known }
        }
        None => known,
    })
}

/// Pipelines as a worker runs them.
pub fn pipelines<'a>(
    app: &App,
    runs: &[Runs],
    names: impl IntoIterator<Item = &'a PipelineName>,
) -> Result<Vec<Pipeline>, ApiError> {
    names.into_iter().map(|name| pipeline(app, runs, name)).collect()
}
