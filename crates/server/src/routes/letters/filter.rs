//! Which dead letters, where that is said in a body: for giving up and for replaying.

use redrive::contract::{DeadFilter, Selection};
use redrive_core::causes::CauseId;
use redrive_core::dead::Gate;
use redrive_core::failures::Reason;
use redrive_core::ids::{JobRef, PipelineName, RoundName};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Text, instant};
use crate::error::ApiError;

/// The most letters that are named at once.
const IDS_MAX: usize = 10_000;

/// Which letters: by id, or by filters. Nothing in particular is refused: that would be all of them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Letters {
    /// Which, by number, id or the end of an id.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    ids: Vec<Text<JobRef>>,
    /// Only of this pipeline.
    #[schema(value_type = Option<String>)]
    pipeline: Option<PipelineName>,
    /// Only of this round.
    #[schema(value_type = Option<String>)]
    round: Option<RoundName>,
    /// Only those that died for this reason.
    #[schema(value_type = Option<String>)]
    reason: Option<Reason>,
    /// Only with this code.
    code: Option<String>,
    /// Only of this target.
    target: Option<String>,
    /// Only of this cause.
    #[schema(value_type = Option<String>)]
    cause: Option<CauseId>,
    /// Only through this proxy, by its label.
    proxy: Option<String>,
    /// Only with this gate.
    #[schema(value_type = Option<String>)]
    gate: Option<Gate>,
    /// Only those that died since: `2h` (ago), a day or a time.
    since: Option<String>,
    /// Only those that died before.
    until: Option<String>,
    /// Only those with this text in their key, message or input.
    text: Option<String>,
}

impl Letters {
    /// The choice, as far as who chooses may. Relative times become absolute here, and numbers ids.
    pub async fn selection(self, app: &App, caller: &Caller) -> Result<Selection, ApiError> {
        if self.ids.len() > IDS_MAX {
            return Err(ApiError::too_large(format!("{} letters at once: at most {IDS_MAX}", self.ids.len())).at("ids"));
        }
        let (redrive, now) = (app.redrive(), app.redrive().now());
        let named: Vec<_> = self.ids.into_iter().map(|id| id.0).collect();
        let ids = redrive.find_jobs(&named).await?;
        match ids.is_empty() {
            true => caller.check_all(self.pipeline.as_ref())?,
            false if caller.covers_all() => {}
            false => {
                for id in &ids {
                    caller.check(&redrive.job(*id).await?.job.pipeline)?;
                }
            }
        }
        let filter = DeadFilter {
            since: instant("since", self.since.as_deref(), now)?,
            until: instant("until", self.until.as_deref(), now)?,
            pipeline: self.pipeline,
            round: self.round,
            reason: self.reason,
            code: self.code,
            target: self.target,
            cause: self.cause,
            proxy: self.proxy,
            gate: self.gate,
            text: self.text,
        };
        Ok(Selection { filter, ids })
    }
}
