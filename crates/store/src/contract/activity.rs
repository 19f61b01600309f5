//! Activity: what people did, in the order they did it. Rows are written with what they tell of, and never changed.

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::pages::Page;
use crate::error::Result;

/// What people did.
#[async_trait]
pub trait ActivityStore {
    /// A page of what was done, newest first. It is forgotten with history.
    async fn list_activity(&self, params: ListActivity) -> Result<Page<ActivityView>>;
}

/// Asks for a page of what was done.
#[derive(Clone, Debug, Default)]
pub struct ListActivity {
    /// Only what this person did.
    pub who: Option<String>,
    /// Only what concerned this pipeline.
    pub pipeline: Option<PipelineName>,
    /// Only what was done so: `discard`, `resolve`, …
    pub verb: Option<String>,
    /// Only what was done to things whose name has this text in it: `cause 240f`.
    pub object: Option<String>,
    /// Only from this time on.
    pub since: Option<Timestamp>,
    /// At most so many.
    pub limit: u32,
    /// Where to go on.
    pub cursor: Option<String>,
}

/// Something that was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivityView {
    /// When.
    pub at: Timestamp,
    /// By whom, and by which way.
    pub by: Actor,
    /// What: `cancel`, `discard`, `import`, …
    pub verb: String,
    /// To what: the noun, with an id where it is one thing.
    pub object: String,
    /// Numbers, why, and in `pipelines` the pipelines that it concerned.
    pub detail: Value,
}
