//! A short hand for the cases about causes: changing them as the engine does.

use redrive_core::actors::{Actor, Via};
use redrive_core::causes::changes::{Circumstances, change as decide_change};
use redrive_core::causes::rules::own_key;
use redrive_core::causes::{
    CauseChange, CauseEdit, CauseId, CauseRules, CauseSort, ID_DIGITS, Likeness, SplitBy, Unchangeable,
};
use redrive_core::dead::Gate;
use redrive_core::failures::Reason;
use redrive_core::jobs::NewJob;
use redrive_core::policy::Policy;
use redrive_core::settlements::{Destination, Ending, Settlement, decide};
use redrive_core::time::Timestamp;

use crate::conformance::script::{Shared, at, enqueue, fatal, lease_one, settle_all};
use crate::contract::{
    CauseChanged, CauseDetail, CauseView, ChangeCause, FindCause, ListCauses, ResolveLetters, ResolvedLetter, Settled,
    Unresolved,
};

/// All causes.
pub(in crate::conformance) async fn causes(store: &Shared, now: Timestamp) -> Vec<CauseView> {
    sorted(store, CauseSort::Dead, now).await
}

/// The same in an order.
pub(super) async fn sorted(store: &Shared, sort: CauseSort, now: Timestamp) -> Vec<CauseView> {
    let params = ListCauses { sort, ..ListCauses::all(1_000, now) };
    store.list_causes(params).await.expect("listed")
}

pub(super) async fn detail(store: &Shared, id: &CauseId) -> CauseDetail {
    store.get_cause(id.clone(), at(100)).await.expect("there")
}

/// Changes a cause as the engine does, and brings its letters to where they belong, two at a time.
pub(in crate::conformance) async fn change(store: &Shared, id: &CauseId, wanted: CauseChange) -> CauseId {
    try_change(store, id, &wanted).await.expect("changed")
}

pub(super) async fn try_change(store: &Shared, id: &CauseId, wanted: &CauseChange) -> Result<CauseId, Unchangeable> {
    for digits in ID_DIGITS.. {
        let (edit, about) = decided(store, id, wanted, digits).await?;
        match store.change_cause(by_ada(edit)).await.expect("answered") {
            CauseChanged::Applied => {
                while resolve_some(store, 2).await {}
                return Ok(about);
            }
            CauseChanged::NameTaken => {}
            CauseChanged::Stale => panic!("nobody else is here"),
        }
    }
    unreachable!("there is always a longer name")
}

pub(super) fn by_ada(edit: CauseEdit) -> ChangeCause {
    ChangeCause { edit, by: Actor::new("ada", Via::Api), now: at(50) }
}

/// What a change would write.
pub(super) async fn decided(
    store: &Shared,
    id: &CauseId,
    wanted: &CauseChange,
    digits: usize,
) -> Result<(CauseEdit, CauseId), Unchangeable> {
    let find = |id: &CauseId, like: Option<Likeness>| store.cause_facts(FindCause { id: id.clone(), like });
    let like = match wanted {
        CauseChange::Split(SplitBy::Like(like)) => Some(like.clone()),
        _ => None,
    };
    let rules = store.cause_rules().await.expect("read");
    let cause = find(id, like).await.expect("there");
    let into = match wanted {
        CauseChange::MergeInto(into) => Some(find(into, None).await.expect("there")),
        _ => None,
    };
    decide_change(wanted, Circumstances { cause: &cause, into: into.as_ref(), rules: &rules, digits, now: at(50) })
}

/// Brings some letters to where they belong; says whether there were any to look at.
pub(super) async fn resolve_some(store: &Shared, limit: u32) -> bool {
    let Some(found) = store.unresolved_letters(limit).await.expect("listed") else { return false };
    let rules = store.cause_rules().await.expect("read");
    assert!(store.resolve_letters(resolved(found, &rules)).await.expect("answered"), "nobody else is here");
    true
}

pub(super) fn resolved(found: Unresolved, rules: &CauseRules) -> ResolveLetters {
    let Unresolved { key, was, next, letters } = found;
    let letters = letters.into_iter().map(|letter| {
        let into = rules.resolve(own_key(&key), letter.target.as_deref(), &letter.message);
        ResolvedLetter { id: letter.id, into: (into != key).then(|| into.to_owned()) }
    });
    ResolveLetters { letters: letters.collect(), key, was, next, rules: rules.version }
}

pub(super) fn target(name: &str) -> CauseChange {
    CauseChange::Split(SplitBy::Like(Likeness::Target(name.to_owned())))
}

pub(super) fn text(part: &str) -> CauseChange {
    CauseChange::Split(SplitBy::Like(Likeness::Text(part.to_owned())))
}

/// Buries a job whose print was made by given rules.
pub(super) async fn bury_by(store: &Shared, new: NewJob, message: &str, rules: &CauseRules) {
    enqueue(store, vec![new]).await;
    let leased = lease_one(store, at(60)).await;
    let ending = Ending { at: at(60), duration: None, worker: None, chance: 0.0 };
    let mut decision = decide(&Policy::default(), &leased, fatal(Reason::HandlerError, message), ending);
    decision.destination = Destination::bury(Gate::Review, None);
    let settlements = vec![Settlement::new(&leased, decision, rules)];
    assert_eq!(settle_all(store, settlements, at(60)).await, [Settled::Applied]);
}
