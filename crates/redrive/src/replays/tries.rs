//! Tries that were kept: the newest of a selection, and whether a replay may rely on it.

use std::collections::BTreeSet;

use redrive_core::jobs::Input;
use redrive_core::replays::{TRY_KEPT, TriedWith, TryOutdated, outdated};
use redrive_core::time::Timestamp;
use redrive_store::contract::{DeadFilter, ListDead, Selection, TryView};

use super::error::ReplayError;
use crate::engine::Redrive;
use crate::error::Error;
use crate::pipeline::Pipeline;

/// Tries among which one is looked for.
const TRIES_MAX: u32 = 1_000;

/// Letters that go at once when a try is forgotten.
const FORGET_AT_ONCE: u32 = 1_000;

/// The versions of the definitions of pipelines.
pub(super) fn defined(pipelines: &[Pipeline]) -> TriedWith {
    pipelines.iter().map(|pipeline| (pipeline.name.clone(), pipeline.definition().cloned())).collect()
}

impl Redrive {
    /// The tries that are kept, newest first.
    pub async fn list_tries(&self) -> Result<Vec<TryView>, Error> {
        Ok(self.store.list_tries(TRIES_MAX).await?)
    }

    /// The newest try that ended: of a selection, with those fields of the inputs changed, or of any.
    pub async fn find_try(&self, of: Option<(&Selection, &Input)>) -> Result<Option<TryView>, Error> {
        let mut ended = self.list_tries().await?;
        ended.retain(|kept| kept.finished_at.is_some());
        self.newest_among(ended, of).await
    }

    /// The newest try of a selection, whether it has ended or not.
    pub async fn newest_of(&self, selection: &Selection, edits: &Input) -> Result<Option<TryView>, Error> {
        self.newest_among(self.list_tries().await?, Some((selection, edits))).await
    }

    async fn newest_among(
        &self,
        kept: Vec<TryView>,
        of: Option<(&Selection, &Input)>,
    ) -> Result<Option<TryView>, Error> {
        for (kept, others) in tries_of(kept, of) {
            let is_all = match others {
                Some(died) => self.store.list_dead(ListDead::newest(died, 1)).await?.items.is_empty(),
                None => true,
            };
            if is_all {
                return Ok(Some(kept));
            }
        }
        Ok(None)
    }

    /// The newest try of a selection, if a replay of what it recovered may rely on it: it is refused if there is none, if it
    /// is too old, or if one of these pipelines is defined otherwise by now.
    pub async fn find_recoverable(
        &self,
        selection: &Selection,
        edits: &Input,
        pipelines: &[Pipeline],
    ) -> Result<TryView, Error> {
        let kept = self.find_try(Some((selection, edits))).await?.ok_or(ReplayError::NoTry)?;
        match outdated_try(&kept, pipelines, self.now()) {
            None => Ok(kept),
            Some(TryOutdated::TooOld) => Err(ReplayError::TryTooOld(kept.created_at).into()),
            Some(TryOutdated::Redefined(pipeline)) => Err(ReplayError::TriedOtherwise(pipeline).into()),
        }
    }

    /// Forgets tries that are too old to be relied on.
    pub(crate) async fn forget_tries(&self) -> Result<(), Error> {
        while self.forget_some_tries().await? {}
        Ok(())
    }

    /// Forgets some of them; says whether there are more.
    pub(crate) async fn forget_some_tries(&self) -> Result<bool, Error> {
        Ok(self.store.forget_tries(self.now() - TRY_KEPT, FORGET_AT_ONCE).await?)
    }
}

/// Why a try says nothing of what these pipelines would make of its letters now, if it does not: its age, or one that is defined
/// otherwise.
pub fn outdated_try(kept: &TryView, pipelines: &[Pipeline], now: Timestamp) -> Option<TryOutdated> {
    outdated(kept.created_at, &kept.tried_with, &defined(pipelines), now)
}

/// Those of these tries that are of a selection, with those fields of the inputs changed, or of any. One of less time is, too, if none of the
/// letters that are named beside it is dead: they died since.
pub fn tries_of(
    kept: Vec<TryView>,
    of: Option<(&Selection, &Input)>,
) -> impl Iterator<Item = (TryView, Option<DeadFilter>)> {
    kept.into_iter().filter_map(move |kept| {
        let Some((wanted, edits)) = of else { return Some((kept, None)) };
        let tried = &kept.selection;
        let endless = DeadFilter { until: None, ..tried.filter.clone() };
        let endless = Selection { filter: endless, ids: tried.ids.clone() };
        if kept.edits != *edits || !covers(&endless, wanted) {
            return None;
        }
        let since = tried.filter.until.max(wanted.filter.since);
        let is_whole = covers(tried, wanted) || !wanted.ids.is_empty();
        let others = (!is_whole).then(|| DeadFilter { since, ..wanted.filter.clone() });
        Some((kept, others))
    })
}

/// Whether a try of one selection is a try of another: the same letters by id, or the same filters and no less time.
fn covers(tried: &Selection, wanted: &Selection) -> bool {
    let set = |selection: &Selection| selection.ids.iter().copied().collect::<BTreeSet<_>>();
    let timeless = |filter: &DeadFilter| DeadFilter { since: None, until: None, cause: None, ..filter.clone() };
    let (then, now) = (&tried.filter, &wanted.filter);
    let same_cause = match (&then.cause, &now.cause) {
        (None, None) => true,
        // The beginning of an id is enough to name a cause.
        (Some(a), Some(b)) => a.as_str().starts_with(b.as_str()) || b.as_str().starts_with(a.as_str()),
        _ => false,
    };
    let since = then.since.is_none_or(|since| now.since.is_some_and(|wanted| since <= wanted));
    let until = then.until.is_none_or(|until| now.until.is_some_and(|wanted| wanted <= until));
    set(tried) == set(wanted) && timeless(then) == timeless(now) && same_cause && since && until
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_core::ids::JobId;

    fn of(filter: DeadFilter) -> Selection {
        Selection { filter, ids: Vec::new() }
    }

    #[test]
    fn a_try_of_the_same_letters_counts_and_no_other() {
        let cause = |id: &str| of(DeadFilter { cause: id.parse().ok(), ..DeadFilter::default() });
        assert!(covers(&cause("3f9a1c2e"), &cause("3f9a")));
        assert!(!covers(&cause("3f9a1c2e"), &cause("beef")));
        let since = |secs: Option<i64>| {
            let since = secs.map(|secs| Timestamp::from_millis(secs * 1_000));
            of(DeadFilter { target: Some("shop".into()), since, ..DeadFilter::default() })
        };
        assert!(covers(&since(Some(10)), &since(Some(12))), "the last two hours, a while later");
        assert!(covers(&since(None), &since(Some(12))));
        assert!(!covers(&since(Some(10)), &since(Some(5))) && !covers(&since(Some(10)), &since(None)));
        assert!(!covers(&since(None), &cause("3f9a")));
        let ids = |ids: &[u128]| Selection {
            ids: ids.iter().map(|n| JobId::new(Timestamp::from_millis(0), *n)).collect(),
            ..Selection::default()
        };
        assert!(covers(&ids(&[1, 2]), &ids(&[2, 1])) && !covers(&ids(&[1, 2]), &ids(&[1])));
    }
}
