//! Operations on circuit breakers.

use redrive_core::breakers::BreakerView;
use redrive_core::ids::PipelineName;
use redrive_core::seen::Version;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::{Operation, Route, Scope};
use crate::page::{List, Page, Paging, Row};
use crate::types::{Deadline, Note, Target};

/// List the targets on hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct ListBreakers {
    /// Only of this pipeline.
    #[cfg_attr(feature = "cli", arg(long, short, value_name = "NAME"))]
    pub pipeline: Option<PipelineName>,
    /// Part of the list. The command prints all of it.
    #[serde(default)]
    #[cfg_attr(feature = "cli", arg(skip))]
    pub page: Paging,
}

impl Operation for ListBreakers {
    type Response = Page<BreakerDetail>;
    const ROUTE: Route = Route::get("/breakers", Role::Viewer);
    const EXAMPLE: &str = r#"{ "page": { "limit": 20 } }"#;

    fn scope(&self) -> Scope<'_> {
        Scope::List(self.pipeline.as_ref())
    }
}

impl List for ListBreakers {
    type Item = BreakerDetail;

    fn paging(&mut self) -> &mut Paging {
        &mut self.page
    }
}

/// Hold the jobs of a target, whatever the target does.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct HoldBreaker {
    /// The target: host of the jobs, or what their `target` says.
    pub target: Target,
    /// Only of this pipeline. Without it, of all pipelines.
    #[cfg_attr(feature = "cli", arg(long, short, value_name = "NAME"))]
    pub pipeline: Option<PipelineName>,
    /// End of the hold: 2h (from now), 2026-11-20 or 2026-11-20T08:00:00Z. Without it, until the breaker is closed.
    #[cfg_attr(feature = "cli", arg(long, value_name = "TIME"))]
    pub until: Option<Deadline>,
    /// Reason, shown in lists and in the activity log.
    #[cfg_attr(feature = "cli", arg(long, value_name = "TEXT"))]
    pub why: Option<Note>,
    /// `version` of the breaker of this pipeline as it was seen. If others changed it since, the request is refused.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub version: Option<Version>,
}

impl Operation for HoldBreaker {
    type Response = HeldBreakers;
    const ROUTE: Route = Route::post("/breakers/hold", Role::Operator);
    const EXAMPLE: &str =
        r#"{ "target": "shop.example", "pipeline": "shop", "until": "2h", "why": "they asked us to" }"#;

    fn scope(&self) -> Scope<'_> {
        Scope::Pipeline(self.pipeline.as_ref())
    }
}

/// Close the breaker of a target, so that its jobs go on now.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct CloseBreaker {
    /// The target, as `redrive breaker list` shows it.
    pub target: Target,
    /// Only of this pipeline. Without it, of all that wait for the target.
    #[cfg_attr(feature = "cli", arg(long, short, value_name = "NAME"))]
    pub pipeline: Option<PipelineName>,
    /// `version` of the breaker of this pipeline as it was seen. If others changed it since, the request is refused.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub version: Option<Version>,
}

impl Operation for CloseBreaker {
    type Response = TurnedBreakers;
    const ROUTE: Route = Route::post("/breakers/close", Role::Operator);
    const EXAMPLE: &str = r#"{ "target": "shop.example", "pipeline": "shop" }"#;

    fn scope(&self) -> Scope<'_> {
        Scope::Pipeline(self.pipeline.as_ref())
    }
}

/// Let one job of a target go now, to see whether the target is better.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct ProbeBreaker {
    /// The target, as `redrive breaker list` shows it.
    pub target: Target,
    /// Only of this pipeline. Without it, of all that wait for the target.
    #[cfg_attr(feature = "cli", arg(long, short, value_name = "NAME"))]
    pub pipeline: Option<PipelineName>,
    /// `version` of the breaker of this pipeline as it was seen. If others changed it since, the request is refused.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub version: Option<Version>,
}

impl Operation for ProbeBreaker {
    type Response = TurnedBreakers;
    const ROUTE: Route = Route::post("/breakers/probe", Role::Operator);
    const EXAMPLE: &str = r#"{ "target": "shop.example", "pipeline": "shop" }"#;

    fn scope(&self) -> Scope<'_> {
        Scope::Pipeline(self.pipeline.as_ref())
    }
}

/// A breaker, and the version of what people did to it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BreakerDetail {
    /// The breaker.
    #[serde(flatten)]
    pub view: BreakerView,
    /// Version to send along with a change, which is refused if others changed the breaker meanwhile.
    pub version: Version,
}

impl Row for BreakerDetail {
    fn pipeline(&self) -> &PipelineName {
        &self.view.pipeline
    }

    // No name of a pipeline has a character before the space, so positions ascend as pairs of pipeline and target do.
    fn position(&self) -> String {
        format!("{} {}", self.view.pipeline, self.view.target)
    }
}

/// Result of closing or probing the breakers of a target.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnedBreakers {
    /// The target as the store spells it.
    pub target: String,
    /// Pipelines whose breaker was changed.
    pub pipelines: Vec<PipelineName>,
    /// Pipelines among them that are paused, so that their jobs do not go on yet.
    pub paused: Vec<PipelineName>,
    /// Jobs of the target in these pipelines that waited.
    pub waiting: u64,
}

/// Result of holding a target.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HeldBreakers {
    /// The target as the store spells it.
    pub target: String,
    /// Pipelines in which it is held.
    pub pipelines: Vec<PipelineName>,
    /// Pipelines among them whose breaker was closed before.
    pub opened: Vec<PipelineName>,
    /// End of the hold. Absent if it lasts until the breaker is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// False if no job of the target is queued in these pipelines: the target may be misspelled.
    pub is_queued: bool,
}
