//! What must hold of tries.

use redrive_core::definitions::DefinitionVersion;
use redrive_core::ids::TryId;
use redrive_core::jobs::Input;
use redrive_core::replays::{Exclusion, ReplayMode, TriedWith};
use redrive_core::settlements::Outcome;
use serde_json::json;

use super::replays::{Asked, advance, all, at_once, bury_some, lease, plan, plan_of, start_as};
use super::script::{Shared, ada, assert_sound, at, dead, ledger, pipeline, settle, timeout};
use crate::contract::{DeadFilter, ListTried, OpenTry, TriedLetter};

fn try_id(n: u128) -> TryId {
    TryId::new(at(0), n)
}

async fn open(store: &Shared, n: u128, secs: i64) {
    let tried_with = TriedWith::from([(pipeline(), Some(DefinitionVersion::new("v1")))]);
    let params = OpenTry { id: try_id(n), by: ada(), selection: all(), edits: Input::new(), tried_with, now: at(secs) };
    store.open_try(params).await.expect("opened");
}

/// A try keeps what letters came to, and changes nothing else: no letter, no ledger, no breaker.
pub async fn a_try_changes_nothing_but_itself(store: Shared) {
    let ids = bury_some(&store, 3).await;
    let before = (dead(&store, DeadFilter::default()).await, ledger(&store).await);
    open(&store, 1, 100).await;
    let verdict = |n: usize, recovered: bool| TriedLetter {
        id: ids[n],
        attempts: 1,
        recovered,
        key: (!recovered).then(|| "1-abc".to_owned()),
        message: (!recovered).then(|| "no price".to_owned()),
    };
    store.note_tried(try_id(1), vec![verdict(0, true), verdict(1, false)]).await.expect("noted");
    store.note_tried(try_id(1), vec![verdict(2, true)]).await.expect("noted");
    store.end_try(try_id(1), json!({"tried": 3}), at(101)).await.expect("ended");
    let kept = store.list_tries(10).await.expect("listed").remove(0);
    assert_eq!((kept.id, kept.actor.as_str(), kept.finished_at), (try_id(1), "ada", Some(at(101))));
    assert_eq!((kept.selection, kept.outcome), (all(), json!({"tried": 3})));
    assert_eq!(kept.tried_with[&pipeline()], Some(DefinitionVersion::new("v1")));
    let page = async |cursor| {
        let params = ListTried { id: try_id(1), limit: 2, cursor };
        store.list_tried(params).await.expect("listed")
    };
    let first = page(None).await;
    let rest = page(first.next.clone()).await;
    assert_eq!([first.items, rest.items].concat(), [verdict(0, true), verdict(1, false), verdict(2, true)]);
    assert_eq!(rest.next, None);
    assert_eq!((dead(&store, DeadFilter::default()).await, ledger(&store).await), before);
    assert!(store.list_breakers().await.expect("listed").is_empty());
    assert_sound(&store).await;
}

/// A replay can be bound to what a try recovered. A letter that was tried in earnest since is no longer what was tried.
pub async fn what_a_try_recovered_can_be_chosen(store: Shared) {
    let ids = bury_some(&store, 3).await;
    open(&store, 1, 100).await;
    let verdict = |n: usize| TriedLetter { id: ids[n], attempts: 1, recovered: n < 2, key: None, message: None };
    store.note_tried(try_id(1), (0..3).map(verdict).collect()).await.expect("noted");
    let bound = || Asked { mode: ReplayMode::Suited, tried: Some(try_id(1)), ..plan(all()) };
    let planned = plan_of(&store, bound()).await;
    assert_eq!((planned.included, planned.excluded.get(&Exclusion::NotRecovered)), (2, Some(&1)));
    let unknown = Asked { tried: Some(try_id(9)), ..bound() };
    assert_eq!(plan_of(&store, unknown).await.included, 0, "there is no such try");
    assert_eq!(start_as(&store, 1, bound(), at_once(), Input::new()).await.included, 2);
    advance(&store, 1, at(101)).await;
    let leased = lease(&store, 1, at(102)).await;
    settle(&store, &leased[0], Outcome::Done, at(103)).await;
    let (mut now, mut again) = (at(103), leased[1].clone());
    // Until it is dead again, with more attempts than when it was tried.
    loop {
        settle(&store, &again, timeout(), now).await;
        now = now + std::time::Duration::from_secs(900);
        match lease(&store, 1, now).await.pop() {
            Some(next) => again = next,
            None => break,
        }
    }
    let planned = plan_of(&store, Asked { now, force: true, ..bound() }).await;
    assert_eq!((planned.matched, planned.included), (2, 0), "it was tried in earnest since");
    assert_sound(&store).await;
}

/// Tries are forgotten with their letters, a bounded number at once.
pub async fn old_tries_are_forgotten_in_steps(store: Shared) {
    let ids = bury_some(&store, 5).await;
    for (n, secs) in [(1, 100), (2, 200)] {
        open(&store, n, secs).await;
        let letters =
            ids.iter().map(|id| TriedLetter { id: *id, attempts: 1, recovered: true, key: None, message: None });
        store.note_tried(try_id(n), letters.collect()).await.expect("noted");
    }
    let mut steps = 1;
    while store.forget_tries(at(150), 2).await.expect("forgotten") {
        steps += 1;
    }
    assert_eq!(steps, 3, "five letters, two at once");
    let left = store.list_tries(10).await.expect("listed");
    assert_eq!(left.iter().map(|kept| kept.id).collect::<Vec<_>>(), [try_id(2)]);
    let params = ListTried { id: try_id(2), limit: 10, cursor: None };
    assert_eq!(store.list_tried(params).await.expect("listed").items.len(), 5);
    store.note_tried(try_id(1), Vec::new()).await.expect("it is gone, and nothing comes of it");
}
