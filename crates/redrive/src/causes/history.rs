//! What happened beside a cause: other rules of its pipeline, replays of its letters, resolutions.

use std::collections::BTreeSet;
use std::time::Duration;

use redrive_core::causes::{CauseId, is_resolution};
use redrive_core::definitions::DefinitionVersion;
use redrive_core::ids::ReplayId;
use redrive_core::time::Timestamp;
use redrive_store::contract::{CauseDetail, ListReplays, ReplayView};

use crate::engine::Redrive;
use crate::error::Error;

/// Replays that are looked through for those of a cause.
const REPLAYS_MAX: u32 = 200;

/// Rules that a worker began with so long before a cause was first seen may have led to it.
const LEADS_TO: Duration = Duration::from_secs(7 * 86_400);

/// Replays of a letter that are looked at.
const REPLAYS_OF_ONE: u32 = 20;

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
    /// What happened beside a cause oldest first; of replays the newest 200 are looked at.
    pub async fn cause_marks(&self, detail: &CauseDetail) -> Result<Vec<CauseMark>, Error> {
        let cause = &detail.cause;
        let versions = self.store.list_definitions(Some(cause.pipeline.clone())).await?;
        let rules = versions.into_iter().map(|seen| (seen.first_seen, Happened::Rules(seen.version)));
        let params = ListReplays::newest(REPLAYS_MAX);
        let replays = self.store.list_replays(params).await?.items;
        // The beginning of an id is enough to name a cause.
        let is_of = |named: &CauseId| cause.id.as_str().starts_with(named.as_str());
        let by_filter = |replay: &ReplayView| replay.selection.filter.cause.as_ref().is_some_and(is_of);
        let shown = self.replays_of_samples(detail).await?;
        let by_letter = |replay: &ReplayView| shown.contains(&replay.id);
        let replays = replays.into_iter().filter(|replay| by_filter(replay) || by_letter(replay));
        let replays = replays.map(|replay| (replay.created_at, Happened::Replay(Box::new(replay))));
        let resolved = detail.notes.iter().filter(|note| is_resolution(&note.text));
        let resolved = resolved.map(|note| (note.at, Happened::Resolved));
        let mut marks: Vec<_> = rules.chain(replays).chain(resolved).map(|(at, what)| CauseMark { at, what }).collect();
        // Rules that were there long before it explain nothing.
        marks.retain(|mark| mark.at >= cause.first_seen - LEADS_TO || !matches!(mark.what, Happened::Rules(_)));
        marks.sort_by_key(|mark| mark.at);
        Ok(marks)
    }

    /// The replays that had one of the newest letters of a cause: those that were chosen one by one are known by no filter.
    async fn replays_of_samples(&self, detail: &CauseDetail) -> Result<BTreeSet<ReplayId>, Error> {
        let mut found = BTreeSet::new();
        for letter in &detail.samples {
            found.extend(self.store.replays_of(letter.id, REPLAYS_OF_ONE).await?.into_iter().map(|replay| replay.id));
        }
        Ok(found)
    }
}
