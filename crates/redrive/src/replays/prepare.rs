//! Choosing the letters of a replay that is being prepared: found page by page, decided by core, claimed in steps that nobody waits
//! long for. Where it is stands in the replay's row, so that whoever drives it goes on there.

use std::collections::{BTreeMap, BTreeSet};

use redrive_core::actors::Actor;
use redrive_core::ids::PipelineName;
use redrive_core::replays::{CHOSEN_AT_ONCE_MAX, Exclusion, NextReplay, ReplayState, Source, treat};
use redrive_core::time::Timestamp;
use redrive_store::contract::{ClaimLetters, FindLetters, FoundLetter, ReplayView, Selection, SetReplay};
use redrive_store::{Result as StoreResult, Store, StoreError};

use redrive_store::host;

/// Letters that are read at once; they are claimed in smaller steps.
const READ_AT_ONCE: u32 = 10_000;

/// A choice under way.
struct Choice<'a> {
    store: &'a dyn Store,
    replay: &'a ReplayView,
    version: u64,
    chosen: u64,
    excluded: BTreeMap<Exclusion, u64>,
    pipelines: BTreeSet<PipelineName>,
}

/// Chooses the next letters; once there are no more, the replay runs, or is dropped if it has none. If another driver was
/// faster, nothing happens.
pub(super) async fn choose(store: &dyn Store, replay: &ReplayView, now: Timestamp) -> StoreResult<()> {
    let mut choice = Choice {
        store,
        replay,
        version: replay.version,
        chosen: replay.progress.total,
        excluded: replay.excluded.clone(),
        pipelines: replay.pipelines.clone(),
    };
    let Found { letters, named_to, more } = choice.find().await?;
    for step in letters.chunks(CHOSEN_AT_ONCE_MAX as usize) {
        let cursor = named_to.clone().or_else(|| step.last().map(|found| found.cursor.clone()));
        if !choice.claim(step, cursor).await? {
            return Ok(());
        }
    }
    if !more || choice.room() == 0 {
        return choice.finish(now).await;
    }
    if letters.is_empty() {
        // None of these ids is a dead letter: the next ones may be.
        choice.claim(&[], named_to).await?;
    }
    Ok(())
}

/// Letters that were found.
struct Found {
    letters: Vec<FoundLetter>,
    /// Where the ids after theirs begin, if they were named. Whoever goes on after a kill begins there: letters that are claimed are
    /// not looked at again.
    named_to: Option<String>,
    /// Whether there may be others.
    more: bool,
}

impl Choice<'_> {
    fn room(&self) -> u64 {
        self.replay.wish.room(self.chosen)
    }

    async fn find(&self) -> StoreResult<Found> {
        let ids = &self.replay.selection.ids;
        let params = |selection, cursor, limit| FindLetters {
            selection,
            opened: Some(self.replay.id),
            tried: self.replay.wish.tried,
            host: host().to_owned(),
            whole: false,
            limit,
            cursor,
        };
        if ids.is_empty() {
            let filter = self.replay.selection.clone();
            let page = self.store.find_letters(params(filter, self.replay.cursor.clone(), READ_AT_ONCE)).await?;
            return Ok(Found { letters: page.items, named_to: None, more: page.next.is_some() });
        }
        let from = match &self.replay.cursor {
            Some(cursor) => cursor.parse().map_err(|_| StoreError::InvalidCursor(cursor.clone()))?,
            None => 0,
        };
        let to = ids.len().min(from + CHOSEN_AT_ONCE_MAX as usize);
        let some = Selection { ids: ids[from.min(to)..to].to_vec(), ..Selection::default() };
        if some.ids.is_empty() {
            return Ok(Found { letters: Vec::new(), named_to: None, more: false });
        }
        let found = self.store.find_letters(params(some, None, CHOSEN_AT_ONCE_MAX)).await?;
        Ok(Found { letters: found.items, named_to: Some(to.to_string()), more: to < ids.len() })
    }

    /// Claims those that may go; says whether the replay was still as it had been.
    async fn claim(&mut self, found: &[FoundLetter], cursor: Option<String>) -> StoreResult<bool> {
        let room = usize::try_from(self.room()).unwrap_or(usize::MAX);
        let mut letters = Vec::new();
        for found in found {
            match treat(&found.facts, &self.replay.wish) {
                Ok(_) if letters.len() >= room => break,
                Ok(source) => {
                    self.pipelines.insert(found.facts.pipeline.clone());
                    letters.push((found.id, source == Source::Saved));
                }
                Err(exclusion) => *self.excluded.entry(exclusion).or_default() += 1,
            }
        }
        let params = ClaimLetters {
            id: self.replay.id,
            was: self.version,
            letters,
            pipelines: self.pipelines.clone(),
            excluded: self.excluded.clone(),
            cursor,
        };
        let Some(claimed) = self.store.claim_letters(params).await? else { return Ok(false) };
        self.version = claimed.version;
        self.chosen += claimed.claimed;
        if claimed.refused > 0 {
            *self.excluded.entry(Exclusion::BeingReplayed).or_default() += claimed.refused;
        }
        Ok(true)
    }

    async fn finish(self, now: Timestamp) -> StoreResult<()> {
        let (id, was) = (self.replay.id, self.version);
        if self.chosen == 0 {
            return self.store.drop_replay(id, was, now).await.map(drop);
        }
        let next = NextReplay::of(ReplayState::Running, None, &self.replay.progress);
        let excluded = Some(self.excluded);
        let set = SetReplay { id, was, next, excluded, by: Actor::redrive(), now };
        self.store.set_replay(set).await.map(drop)
    }
}
