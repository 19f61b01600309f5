//! What happened beside a cause: other rules of its pipeline, replays of its letters, resolutions.

use redrive_core::causes::{CauseId, is_resolution};
use redrive_core::definitions::DefinitionVersion;
use redrive_core::time::Timestamp;
use redrive_store::contract::{CauseDetail, ListReplays, ReplayView};

use crate::engine::Redrive;
use crate::error::Error;

/// Replays that are looked through for those of a cause.
const REPLAYS_MAX: u32 = 200;

/// Something that may explain why tasks died of a cause, or no longer do.
#[derive(Clone, Debug)]
pub struct CauseMark {
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: Happened,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Happened {
    /// A worker first had this version of its pipeline.
    Rules(DefinitionVersion),
    /// Its letters were replayed.
    Replay(Box<ReplayView>),
    /// It was said to be resolved, or was because all of its letters recovered.
    Resolved,
}

impl Redrive {
    /// What happened beside a cause since a time, oldest first.
    pub async fn cause_marks(&self, detail: &CauseDetail, since: Timestamp) -> Result<Vec<CauseMark>, Error> {
        let cause = &detail.cause;
        let versions = self.store.list_definitions(Some(cause.pipeline.clone())).await?;
        let rules = versions.into_iter().map(|seen| (seen.first_seen, Happened::Rules(seen.version)));
        let params = ListReplays { open_only: false, limit: REPLAYS_MAX, cursor: None };
        let replays = self.store.list_replays(params).await?.items;
        // The beginning of an id is enough to name a cause.
        let is_of = |named: &CauseId| cause.id.as_str().starts_with(named.as_str());
        let replays = replays.into_iter().filter(|replay| replay.selection.filter.cause.as_ref().is_some_and(is_of));
        let replays = replays.map(|replay| (replay.created_at, Happened::Replay(Box::new(replay))));
        let resolved = detail.notes.iter().filter(|note| is_resolution(&note.text));
        let resolved = resolved.map(|note| (note.at, Happened::Resolved));
        let mut marks: Vec<_> = rules.chain(replays).chain(resolved).map(|(at, what)| CauseMark { at, what }).collect();
        marks.retain(|mark| mark.at >= since);
        marks.sort_by_key(|mark| mark.at);
        Ok(marks)
    }
}
