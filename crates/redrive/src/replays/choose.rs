//! From what a caller asks for to what a replay does: what to work from and what it is called.

use std::collections::BTreeMap;

use redrive_core::jobs::Input;
use redrive_core::replays::{ReplayMode, Wish};
use redrive_store::contract::{CountDead, DeadBy, Selection};

use super::error::ReplayError;
use crate::engine::Redrive;
use crate::error::Error;
use crate::pipeline::Pipeline;

/// Letters that were named whose targets are looked at.
const NAMED_MAX: usize = 100;

/// What is wanted of a replay of letters of these pipelines: what is asked for, if that can be, or else what suits each letter.
/// Pipelines whose handlers can work from saved payloads, also if inputs were changed since, are known by it, and the fields that
/// changes supply.
pub fn wish(
    pipelines: &[Pipeline],
    wanted: Option<ReplayMode>,
    force: bool,
    edits: &Input,
) -> Result<Wish, ReplayError> {
    let edited = !edits.is_empty();
    if wanted == Some(ReplayMode::Saved) {
        can_use_saved(pipelines, edited)?;
    }
    let able = pipelines.iter().filter(|pipeline| pipeline.works_from_saved(edited));
    let able = able.map(|pipeline| pipeline.name.clone()).collect();
    let supplied = edits.keys().cloned().collect();
    Ok(Wish { force, able, supplied, ..Wish::of(wanted.unwrap_or(ReplayMode::Suited)) })
}

/// Refuses pipelines that cannot work from saved payloads.
pub fn can_use_saved(pipelines: &[Pipeline], edited: bool) -> Result<(), ReplayError> {
    match pipelines.iter().find(|pipeline| !pipeline.works_from_saved(edited)) {
        None => Ok(()),
        Some(unable) => {
            Err(ReplayError::SavedUnusable { pipeline: unable.name.clone(), edited: unable.works_from_saved(false) })
        }
    }
}

/// What a replay is called if nobody gave it a name.
pub fn describe(selection: &Selection) -> String {
    let filter = &selection.filter;
    let by_id = match selection.ids.len() {
        0 => None,
        1 => Some("1 letter by id".to_owned()),
        letters => Some(format!("{letters} letters by id")),
    };
    let parts = [
        filter.cause.as_ref().map(|cause| format!("cause {cause}")),
        filter.pipeline.as_ref().map(ToString::to_string),
        filter.round.as_ref().map(|round| format!("round {round}")),
        filter.reason.map(|reason| reason.to_string()),
        filter.code.clone(),
        filter.target.clone(),
        filter.proxy.as_ref().map(|proxy| format!("proxy {proxy}")),
        filter.text.as_ref().map(|text| format!("{text:?}")),
        filter.gate.map(|gate| format!("gate {gate}")),
        by_id,
    ];
    let said: Vec<String> = parts.into_iter().flatten().collect();
    if said.is_empty() { "by time".to_owned() } else { said.join(", ") }
}

impl Redrive {
    /// The targets of letters, most first, with how many letters each has: at most so many of them. Of letters that were named one by
    /// one, the first are looked at.
    pub async fn targets_of(&self, selection: &Selection, limit: u32) -> Result<Vec<(Option<String>, u64)>, Error> {
        if selection.ids.is_empty() {
            let count = CountDead { filter: selection.filter.clone(), by: DeadBy::Target, limit };
            let counted = self.store.count_dead(count).await?;
            return Ok(counted.into_iter().map(|row| (row.value, row.count.unsigned_abs())).collect());
        }
        let mut targets = BTreeMap::<Option<String>, u64>::new();
        for id in selection.ids.iter().take(NAMED_MAX) {
            if let Some(letter) = self.store.get_dead(*id).await? {
                *targets.entry(letter.target).or_default() += 1;
            }
        }
        let mut targets: Vec<_> = targets.into_iter().collect();
        targets.sort_by_key(|(_, letters)| std::cmp::Reverse(*letters));
        targets.truncate(limit as usize);
        Ok(targets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_core::failures::Reason;
    use redrive_core::ids::JobId;
    use redrive_core::time::Timestamp;
    use redrive_store::contract::DeadFilter;

    #[test]
    fn a_replay_without_a_name_is_called_by_what_was_chosen() {
        let named = |filter, ids| describe(&Selection { filter, ids });
        let filter =
            DeadFilter { reason: Some(Reason::Timeout), target: Some("shop.example".into()), ..DeadFilter::default() };
        assert_eq!(named(filter, Vec::new()), "timeout, shop.example");
        let id = JobId::new(Timestamp::from_millis(0), 1);
        assert_eq!(named(DeadFilter::default(), vec![id]), "1 letter by id");
        assert_eq!(named(DeadFilter::default(), vec![id, id]), "2 letters by id");
        let since = DeadFilter { since: Some(Timestamp::from_millis(0)), ..DeadFilter::default() };
        assert_eq!(named(since, Vec::new()), "by time");
    }
}
