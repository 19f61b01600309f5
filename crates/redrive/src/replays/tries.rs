//! Tries that were kept: the newest of a selection, and whether a replay may rely on it.

use std::collections::BTreeSet;

use redrive_core::jobs::Input;
use redrive_core::replays::{TRY_KEPT, TriedWith, TryOutdated, outdated};
use redrive_core::time::Timestamp;
use redrive_store::contract::{DeadFilter, Selection, TryView};

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
        Ok(newest_try(self.list_tries().await?, of))
    }

    /// The newest try of a selection, whether it has ended or not.
    pub async fn newest_of(&self, selection: &Selection, edits: &Input) -> Result<Option<TryView>, Error> {
        let fits = |kept: &TryView| covers(&kept.selection, selection) && kept.edits == *edits;
        Ok(self.list_tries().await?.into_iter().find(fits))
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

/// The newest of these tries that ended: of a selection, with those fields of the inputs changed, or of any.
pub fn newest_try(kept: Vec<TryView>, of: Option<(&Selection, &Input)>) -> Option<TryView> {
    let fits = |kept: &TryView| {
        let asked = of.is_none_or(|(selection, edits)| covers(&kept.selection, selection) && kept.edits == *edits);
        kept.finished_at.is_some() && asked
    };
    kept.into_iter().find(fits)
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
