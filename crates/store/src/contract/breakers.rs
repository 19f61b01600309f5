//! Breakers: which targets' jobs wait, and until when. A store keeps them; what they are next is decided before.

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::breakers::{BreakerChange, BreakerRow, BreakerView, NextBreaker};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use serde_json::{Value, json};

use crate::error::Result;

/// The breakers of targets that gave trouble.
#[async_trait]
pub trait BreakerStore {
    /// Returns the breakers that are not closed, and the targets of which jobs are held still, by pipeline and target.
    async fn list_breakers(&self) -> Result<Vec<BreakerView>>;

    /// A page of a pipeline's breakers, by target: also of those that are closed, and of targets that were only spoken of.
    async fn breakers_of(&self, params: BreakersOf) -> Result<Vec<BreakerRow>>;

    /// Changes breakers, each if it is still of the version that its change was made from; answers with what is there then.
    async fn change_breakers(&self, changes: Vec<BreakerChange>) -> Result<Vec<BreakerRow>>;

    /// The breaker of a target, also one that is closed or not remembered.
    async fn get_breaker(&self, pipeline: PipelineName, target: String) -> Result<BreakerRow>;

    /// Writes a breaker that a person turned, with a record, if it is still of the version that the turn was made from; says
    /// whether it was.
    async fn turn_breaker(&self, params: TurnBreaker) -> Result<bool>;
}

/// Asks for a page of breakers.
#[derive(Clone, Debug)]
pub struct BreakersOf {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// Only those of targets after this one.
    pub after: Option<String>,
    /// At most so many.
    pub limit: u32,
}

/// A breaker that a person turned.
#[derive(Clone, Debug)]
pub struct TurnBreaker {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// The target.
    pub target: String,
    /// The breaker that is to be written.
    pub next: NextBreaker,
    /// What was done: `close`, `hold`, `probe`.
    pub verb: &'static str,
    /// Why, if that was said.
    pub why: Option<String>,
    /// Who did it.
    pub by: Actor,
    /// The time.
    pub now: Timestamp,
}

impl TurnBreaker {
    /// What the record says besides.
    pub(crate) fn detail(&self) -> Value {
        let mut detail = json!({ "pipelines": [self.pipeline], "why": self.why });
        if let Some(until) = self.next.breaker.as_ref().and_then(|next| next.held_by.as_ref()?.until) {
            detail["until"] = json!(until);
        }
        detail
    }
}
