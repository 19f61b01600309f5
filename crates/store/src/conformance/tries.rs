//! What must hold of tries.

use redrive_core::definitions::DefinitionVersion;
use redrive_core::ids::{JobId, LeaseToken, TryId};
use redrive_core::jobs::Input;
use redrive_core::replays::{Exclusion, ReplayMode, TriedDetails, TriedWith};
use redrive_core::settlements::Outcome;
use serde_json::json;

use super::replays::{Asked, advance, all, at_once, bury_some, lease, plan, plan_of, start_as};
use super::script::{Shared, ada, assert_sound, at, dead, ledger, pipeline, settle, timeout};
use crate::contract::{
    DeadFilter, LeaseTried, LetterToTry, ListTried, OpenInTry, OpenTry, SettleTried, TriedLease, TriedLetter,
};

fn try_id(n: u128) -> TryId {
    TryId::new(at(0), n)
}

async fn open(store: &Shared, n: u128, secs: i64) {
    let tried_with = TriedWith::from([(pipeline(), Some(DefinitionVersion::new("v1")))]);
    let (id, outcome, edits) = (try_id(n), json!({"of": 3}), Input::new());
    let params = OpenTry { id, by: ada(), selection: all(), edits, tried_with, outcome, now: at(secs) };
    store.open_try(params).await.expect("opened");
}

fn came_to(id: JobId, recovered: bool) -> TriedLetter {
    TriedLetter { id, attempts: 1, recovered, key: None, message: None, details: TriedDetails::default() }
}

fn token(n: u128) -> LeaseToken {
    LeaseToken::new(at(0), n)
}

fn leasing(n: u128, limit: u32, secs: i64) -> LeaseTried {
    LeaseTried {
        id: try_id(1),
        pipelines: vec![pipeline()],
        group: None,
        token: token(n),
        limit,
        until: at(secs + 60),
        now: at(secs),
    }
}

fn settling(n: u128, job: JobId, verdict: Option<TriedLetter>) -> SettleTried {
    SettleTried { lease: TriedLease { id: try_id(1), job, token: token(n) }, verdict }
}

/// Makes a try of letters that are to be leased, the first two of one group, the others of another.
async fn open_to_lease(store: &Shared, many: u128) -> Vec<JobId> {
    let mut ids = bury_some(store, many).await;
    ids.sort();
    open(store, 1, 100).await;
    let group = |n: usize| Some(if n < 2 { "books" } else { "toys" }.to_owned());
    let letters = ids.iter().enumerate();
    let letters: Vec<_> =
        letters.map(|(n, id)| LetterToTry { id: *id, attempts: 1, pipeline: pipeline(), group: group(n) }).collect();
    for _ in 0..2 {
        store.add_to_try(try_id(1), letters.clone()).await.expect("added");
    }
    ids
}

/// Letters of a try are leased, each to one at a time, and go to another when the lease runs out; nothing else changes.
pub async fn letters_to_try_are_leased_to_one_at_a_time(store: Shared) {
    let before = ledger(&store).await;
    let ids = open_to_lease(&store, 4).await;
    let buried = (dead(&store, DeadFilter::default()).await, ledger(&store).await);
    assert_ne!(buried.1, before);
    let lease = async |params: LeaseTried| {
        let mut leased = store.lease_tried(params).await.expect("leased");
        leased.sort();
        leased
    };
    let toys = LeaseTried { group: Some("toys".into()), ..leasing(1, 9, 100) };
    assert_eq!(lease(toys.clone()).await, ids[2..]);
    assert_eq!(lease(toys).await, ids[2..], "the same token has what it has");
    assert_eq!(lease(LeaseTried { pipelines: vec!["other".parse().expect("a name")], ..leasing(2, 9, 100) }).await, []);
    assert_eq!(lease(leasing(3, 9, 100)).await, ids[..2]);
    assert_eq!(lease(leasing(4, 9, 159)).await, []);
    let hold = |n: u128, id: JobId| TriedLease { id: try_id(1), job: id, token: token(n) };
    let extended = store.extend_tried(vec![hold(1, ids[2]), hold(9, ids[3])], at(500)).await.expect("extended");
    assert_eq!(extended, [true, false]);
    assert_eq!(lease(leasing(5, 9, 160)).await, [ids[0], ids[1], ids[3]], "what ran out goes to another");
    let late = store.settle_tried(vec![settling(3, ids[0], Some(came_to(ids[0], true)))]).await.expect("settled");
    assert_eq!(late, [false], "whoever lost it is not heard");
    assert_eq!((dead(&store, DeadFilter::default()).await, ledger(&store).await), buried);
    assert_sound(&store).await;
}

/// What a leased letter came to is noted once, whoever says it twice; what was given back is leased again.
pub async fn what_leased_letters_came_to_is_noted_once(store: Shared) {
    let ids = open_to_lease(&store, 3).await;
    store.lease_tried(leasing(1, 9, 100)).await.expect("leased");
    let failed = TriedLetter {
        key: Some("1-abc".into()),
        message: Some("no price".into()),
        details: TriedDetails { follow: 3, enqueue: vec![json!({"page": 2})], ..TriedDetails::default() },
        ..came_to(ids[1], false)
    };
    let settled = || {
        vec![
            settling(1, ids[0], Some(came_to(ids[0], true))),
            settling(1, ids[1], Some(failed.clone())),
            settling(1, ids[2], None),
        ]
    };
    assert_eq!(store.settle_tried(settled()).await.expect("settled"), [true, true, true]);
    let again = vec![settled().remove(0), settling(1, ids[0], Some(came_to(ids[0], false)))];
    assert_eq!(store.settle_tried(again).await.expect("settled"), [true, false], "an answer may have been lost");
    let kept = store.get_try(try_id(1)).await.expect("read").expect("a try");
    assert_eq!(store.list_tries(9).await.expect("listed").first(), Some(&kept));
    assert_eq!(store.get_try(try_id(2)).await.expect("read"), None);
    let noted = store.list_tried(ListTried { id: try_id(1), limit: 9, cursor: None }).await.expect("listed").items;
    assert_eq!(noted, [came_to(ids[0], true), failed]);
    let counts = store.count_tried(try_id(1)).await.expect("counted");
    let of = |n: usize| {
        (counts[n].group.as_deref(), counts[n].waiting, counts[n].leased, counts[n].tried, counts[n].recovered)
    };
    assert_eq!((of(0), of(1)), ((Some("books"), 0, 0, 2, 1), (Some("toys"), 1, 0, 0, 0)));
    let open = async |group: Option<&str>, name: Option<&str>| {
        let pipelines = name.map(|name| name.parse().expect("a name")).into_iter().collect();
        let params = OpenInTry { id: try_id(1), pipelines, group: group.map(str::to_owned), limit: 9 };
        store.open_in_try(params).await.expect("counted")
    };
    assert_eq!((open(None, None).await, open(Some("toys"), None).await, open(Some("books"), None).await), (1, 1, 0));
    assert_eq!((open(None, Some(pipeline().as_str())).await, open(None, Some("other")).await), (1, 0));
    assert_eq!(store.lease_tried(leasing(2, 9, 101)).await.expect("leased"), [ids[2]]);
    store.end_try(try_id(1), json!({}), at(102)).await.expect("ended");
    assert_eq!(store.lease_tried(leasing(3, 9, 500)).await.expect("leased"), [], "it is over");
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
        details: TriedDetails::default(),
    };
    let noted = store.note_tried(try_id(1), vec![verdict(0, true), verdict(1, false)]).await.expect("noted");
    assert!(noted, "it goes on");
    let counts = store.count_tried(try_id(1)).await.expect("counted");
    assert_eq!(counts.iter().map(|count| (count.tried, count.recovered)).collect::<Vec<_>>(), [(2, 1)]);
    let under_way = store.list_tries(10).await.expect("listed").remove(0);
    assert_eq!(
        (under_way.finished_at, under_way.outcome),
        (None, json!({"of": 3})),
        "what is known from the beginning"
    );
    assert!(store.note_try(try_id(1), json!({"of": 4})).await.expect("noted"), "it goes on");
    assert_eq!(store.get_try(try_id(1)).await.expect("read").expect("there").outcome, json!({"of": 4}));
    store.note_tried(try_id(1), vec![verdict(2, true)]).await.expect("noted");
    store.end_try(try_id(1), json!({"tried": 3}), at(101)).await.expect("ended");
    let kept = store.list_tries(10).await.expect("listed").remove(0);
    assert_eq!((kept.id, kept.actor.as_str(), kept.finished_at), (try_id(1), "ada", Some(at(101))));
    assert_eq!((kept.selection, kept.outcome), (all(), json!({"tried": 3})));
    assert_eq!(kept.tried_with[&pipeline()], Some(DefinitionVersion::new("v1")));
    let late = store.note_tried(try_id(1), vec![verdict(0, false)]).await.expect("answered");
    assert!(!store.note_try(try_id(1), json!({"of": 5})).await.expect("answered"), "nor does it change");
    assert!(!late, "it has ended: what comes late is not kept");
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

/// A try may end before all of its letters have a verdict: whoever still has one of them has lost it, and what was noted stays.
pub async fn a_try_that_ends_early_is_over(store: Shared) {
    let ids = open_to_lease(&store, 4).await;
    store.lease_tried(leasing(1, 2, 100)).await.expect("leased");
    let done = settling(1, ids[0], Some(came_to(ids[0], true)));
    assert_eq!(store.settle_tried(vec![done.clone()]).await.expect("settled"), [true]);
    store.end_try(try_id(1), json!({"cancelled": true}), at(101)).await.expect("ended");
    store.end_try(try_id(1), json!({}), at(102)).await.expect("it has ended, and stays as it is");
    let held = TriedLease { id: try_id(1), job: ids[1], token: token(1) };
    assert_eq!(store.extend_tried(vec![held], at(500)).await.expect("extended"), [false]);
    let late = vec![settling(1, ids[1], Some(came_to(ids[1], true))), settling(1, ids[1], None), done];
    assert_eq!(store.settle_tried(late).await.expect("settled"), [false, false, true]);
    assert_eq!(store.lease_tried(leasing(2, 9, 300)).await.expect("leased"), []);
    let listed_late = LetterToTry { id: ids[3], attempts: 1, pipeline: pipeline(), group: None };
    store.add_to_try(try_id(1), vec![listed_late]).await.expect("it has ended, and gets no more letters");
    let counts = store.count_tried(try_id(1)).await.expect("counted");
    assert_eq!(counts.iter().map(|count| (count.waiting, count.leased, count.tried)).collect::<Vec<_>>(), [(0, 0, 1)]);
    let kept = store.list_tries(1).await.expect("listed").remove(0);
    assert_eq!((kept.finished_at, kept.outcome), (Some(at(101)), json!({"cancelled": true})));
    assert_sound(&store).await;
}

/// A replay can be bound to what a try recovered. A letter that was tried in earnest since is no longer what was tried.
pub async fn what_a_try_recovered_can_be_chosen(store: Shared) {
    let ids = bury_some(&store, 3).await;
    open(&store, 1, 100).await;
    let verdict = |n: usize| came_to(ids[n], n < 2);
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
        let letters = ids.iter().map(|id| came_to(*id, true)).collect();
        store.note_tried(try_id(n), letters).await.expect("noted");
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
