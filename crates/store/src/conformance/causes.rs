//! What must hold of causes.

use std::time::Duration;

use redrive_core::causes::{CauseId, CauseState, Mute};
use redrive_core::failures::Reason;
use redrive_core::time::Timestamp;
use serde_json::json;

use super::script::{Shared, assert_sound, at, attach, brought, bury, dead, job, ledger, plain};
use crate::contract::{CauseChange, CauseDetail, CauseView, ChangeCause, DeadFilter, DiscardDead, ListCauses, SplitBy};
use crate::sqlite::SqliteStore;

/// All causes.
pub(super) async fn causes(store: &Shared, now: Timestamp) -> Vec<CauseView> {
    let params = ListCauses {
        ids: Vec::new(),
        pipeline: None,
        states: Vec::new(),
        owner: None,
        with_empty: true,
        limit: 1_000,
        now,
    };
    store.list_causes(params).await.expect("listed")
}

async fn detail(store: &Shared, id: &CauseId) -> CauseDetail {
    store.get_cause(id.clone(), at(100)).await.expect("there")
}

async fn change(store: &Shared, id: &CauseId, change: CauseChange) -> CauseId {
    let params = ChangeCause { id: id.clone(), change, actor: "ada".into(), now: at(50) };
    store.change_cause(params).await.expect("changed")
}

/// Three letters of one cause on two hosts, and one of another.
async fn bury_four(store: &Shared) {
    attach(store, 1).await;
    for n in 1..=3 {
        let input = json!({"url": format!("https://host{}.example/{n}", n % 2)});
        let message = format!("task {}00{n} was lost", n + 4);
        bury(store, job(n, input), Reason::HandlerError, &message, at(n as i64)).await;
    }
    bury(store, job(4, plain()), Reason::RejectedInput, "the site key is wrong", at(4)).await;
}

/// Letters with one root cause are one cause, counted as they die.
pub async fn letters_are_grouped_as_they_die(store: Shared) {
    bury_four(&store).await;
    let listed = causes(&store, at(100)).await;
    assert_eq!(listed.len(), 2, "{listed:?}");
    let most = &listed[0];
    assert_eq!((most.dead, most.total, most.reason), (3, 3, Reason::HandlerError));
    assert_eq!((most.first_seen, most.last_seen), (at(1), at(3)));
    assert_eq!((most.targets_count, most.targets[0].as_str()), (2, "host1.example"));
    assert_eq!(most.trend.0.iter().sum::<i64>(), 3);
    assert_eq!(most.state, CauseState::New);
    let letters = dead(&store, DeadFilter { cause: Some(most.id.clone()), ..DeadFilter::default() }).await;
    assert_eq!(letters.len(), 3);
    assert!(letters.iter().all(|letter| letter.cause.as_ref() == Some(&most.id)));
    let detail = detail(&store, &most.id).await;
    assert_eq!((detail.keys.len(), detail.samples.len()), (1, 3));
    assert!(detail.keys[0].parts.iter().any(|part| part.value.contains("was lost")), "{:?}", detail.keys);
    let short: CauseId = most.id.as_str()[..5].parse().expect("an id");
    assert_eq!(store.get_cause(short, at(100)).await.expect("found").cause.id, most.id);
    assert!(store.get_cause("0123456789".parse().expect("an id"), at(100)).await.is_err());
    assert_sound(&store).await;
}

/// What is discarded is no longer dead of its cause.
pub async fn discarding_is_counted(store: Shared) {
    bury_four(&store).await;
    let params = DiscardDead { ids: vec![job(1, plain()).id], actor: "ada".into(), why: "x".into(), now: at(9) };
    store.discard_dead(params).await.expect("discarded");
    let cause = &causes(&store, at(100)).await[0];
    assert_eq!((cause.dead, cause.total, cause.discarded), (2, 3, 1));
    assert_sound(&store).await;
}

/// What is imported is recognised like what dies here.
pub async fn imported_letters_have_causes(store: Shared) {
    bury_four(&store).await;
    let letters = dead(&store, DeadFilter::default()).await;
    let other: Shared = std::sync::Arc::new(SqliteStore::in_memory().expect("opened"));
    other.import_dead(brought(letters, at(70))).await.expect("imported");
    let (here, there) = (causes(&store, at(100)).await, causes(&other, at(100)).await);
    assert_eq!(here, there);
    assert_sound(&other).await;
}

/// What people say about a cause is kept, with who and when.
pub async fn people_have_their_say(store: Shared) {
    bury_four(&store).await;
    let id = causes(&store, at(100)).await[0].id.clone();
    change(&store, &id, CauseChange::Assign(Some("bob".into()))).await;
    change(&store, &id, CauseChange::Note("looking at it".into())).await;
    change(&store, &id, CauseChange::Mute(Mute { until: Some(at(200)), per_hour: None })).await;
    let seen = detail(&store, &id).await;
    assert_eq!((seen.cause.owner.as_deref(), seen.cause.state), (Some("bob"), CauseState::Muted));
    let notes: Vec<_> = seen.notes.iter().map(|note| (note.actor.as_str(), note.text.as_str(), note.at)).collect();
    assert_eq!(notes[..2], [("ada", "assigned to bob", at(50)), ("ada", "looking at it", at(50))]);
    let later = store.get_cause(id.clone(), at(300)).await.expect("there");
    assert_eq!(later.cause.state, CauseState::New, "a mute ends");
    let of_bob = ListCauses {
        ids: Vec::new(),
        pipeline: None,
        states: vec![CauseState::Muted],
        owner: Some("bob".into()),
        with_empty: false,
        limit: 10,
        now: at(100),
    };
    assert_eq!(store.list_causes(of_bob).await.expect("listed").len(), 1);
}

/// A cause that was resolved and comes back is regressed.
pub async fn what_comes_back_is_regressed(store: Shared) {
    bury_four(&store).await;
    let id = causes(&store, at(100)).await[0].id.clone();
    change(&store, &id, CauseChange::Resolve(Some("fixed".into()))).await;
    assert_eq!(detail(&store, &id).await.cause.state, CauseState::Resolved);
    bury(&store, job(9, plain()), Reason::HandlerError, "task 9009 was lost", at(60)).await;
    assert_eq!(detail(&store, &id).await.cause.state, CauseState::Regressed);
    change(&store, &id, CauseChange::Resolve(None)).await;
    assert_eq!(detail(&store, &id).await.cause.state, CauseState::Resolved);
    change(&store, &id, CauseChange::Reopen).await;
    assert_eq!(detail(&store, &id).await.cause.state, CauseState::New);
}

/// Two causes that a person calls one stay one for what is still to come, until the person takes it back.
pub async fn a_merge_holds_for_the_future(store: Shared) {
    bury_four(&store).await;
    let listed = causes(&store, at(100)).await;
    let (most, other) = (&listed[0].id, &listed[1].id);
    change(&store, other, CauseChange::Note("before".into())).await;
    assert_eq!(&change(&store, other, CauseChange::MergeInto(most.clone())).await, most);
    bury(&store, job(9, plain()), Reason::RejectedInput, "the site key is wrong", at(60)).await;
    let merged = causes(&store, at(100)).await;
    assert_eq!((merged.len(), merged[0].dead), (1, 5));
    let seen = detail(&store, most).await;
    assert_eq!(seen.keys.len(), 2);
    assert!(seen.notes.iter().any(|note| note.text == "before"), "notes come along");
    assert_eq!(dead(&store, DeadFilter { cause: Some(most.clone()), ..DeadFilter::default() }).await.len(), 5);
    let itself = ChangeCause {
        id: most.clone(),
        change: CauseChange::MergeInto(most.clone()),
        actor: "ada".into(),
        now: at(61),
    };
    assert!(store.change_cause(itself).await.is_err());

    let key = seen.keys.iter().find(|key| key.sample.contains("site key")).expect("a key").key.clone();
    let split = change(&store, most, CauseChange::Split(SplitBy::Key(key))).await;
    bury(&store, job(10, plain()), Reason::RejectedInput, "the site key is wrong", at(62)).await;
    assert_eq!(detail(&store, &split).await.cause.dead, 3);
    assert_eq!(detail(&store, most).await.cause.dead, 3);
    assert_eq!(ledger(&store).await.dead, 6);
    assert_sound(&store).await;
}

/// Part of a cause that a person calls something else stays so for what is still to come.
pub async fn a_split_holds_for_the_future(store: Shared) {
    bury_four(&store).await;
    let id = causes(&store, at(100)).await[0].id.clone();
    let split = change(&store, &id, CauseChange::Split(SplitBy::Target("host1.example".into()))).await;
    assert_ne!(split, id);
    let on = |host: &str| json!({"url": format!("https://{host}/x")});
    bury(&store, job(9, on("host1.example")), Reason::HandlerError, "task 9009 was lost", at(60)).await;
    bury(&store, job(10, on("host0.example")), Reason::HandlerError, "task 9010 was lost", at(61)).await;
    let (part, rest) = (detail(&store, &split).await, detail(&store, &id).await);
    assert_eq!((part.cause.dead, part.cause.targets), (3, vec!["host1.example".to_owned()]));
    assert_eq!((rest.cause.dead, rest.cause.targets), (2, vec!["host0.example".to_owned()]));
    assert_eq!(part.cause.trend.0.iter().sum::<i64>() + rest.cause.trend.0.iter().sum::<i64>(), 5);
    assert_eq!((part.cause.first_seen, part.cause.last_seen), (at(1), at(60)));
    let by_text = change(&store, &id, CauseChange::Split(SplitBy::Text("9010".into()))).await;
    assert_eq!(detail(&store, &by_text).await.cause.dead, 1);
    assert_sound(&store).await;
}

/// A part that was split off can be split again, and what is still to come finds its way through both.
pub async fn a_part_of_a_part_is_split_off(store: Shared) {
    bury_four(&store).await;
    let id = causes(&store, at(100)).await[0].id.clone();
    let part = change(&store, &id, CauseChange::Split(SplitBy::Target("host1.example".into()))).await;
    let deeper = change(&store, &part, CauseChange::Split(SplitBy::Text("7003".into()))).await;
    let input = json!({"url": "https://host1.example/x"});
    bury(&store, job(9, input), Reason::HandlerError, "task 7003 was lost", at(60)).await;
    assert_eq!(detail(&store, &deeper).await.cause.dead, 2);
    let nothing = ChangeCause {
        id,
        change: CauseChange::Split(SplitBy::Target("nobody.example".into())),
        actor: "ada".into(),
        now: at(61),
    };
    assert!(store.change_cause(nothing).await.is_err(), "an empty part is none");
    assert_eq!(causes(&store, at(100)).await.len(), 4);
    assert_sound(&store).await;
}

/// A cause that became part of another is found by its old id, and is itself again when the merge is taken back.
pub async fn a_merge_taken_back(store: Shared) {
    bury_four(&store).await;
    let listed = causes(&store, at(100)).await;
    let (most, other) = (&listed[0].id, &listed[1].id);
    change(&store, other, CauseChange::Note("mine".into())).await;
    change(&store, most, CauseChange::Resolve(None)).await;
    change(&store, other, CauseChange::MergeInto(most.clone())).await;
    let found = detail(&store, other).await;
    assert_eq!((&found.cause.id, found.cause.state), (most, CauseState::New), "what is not over does not become so");
    let key = found.keys.iter().find(|key| key.sample.contains("site key")).expect("a key").key.clone();
    let split = change(&store, most, CauseChange::Split(SplitBy::Key(key))).await;
    assert_eq!(&split, other, "it has its old name");
    let notes = detail(&store, other).await.notes;
    assert!(notes.iter().any(|note| note.text == "mine"), "and its notes: {notes:?}");
}

/// A letter that died before its cause was resolved does not bring it back, however late it comes.
pub async fn an_old_letter_regresses_nothing(store: Shared) {
    bury_four(&store).await;
    let id = causes(&store, at(100)).await[0].id.clone();
    let mut letters = dead(&store, DeadFilter { cause: Some(id.clone()), ..DeadFilter::default() }).await;
    change(&store, &id, CauseChange::Resolve(None)).await;
    let mut late = letters.remove(0);
    late.id = job(77, plain()).id;
    store.import_dead(brought(vec![late], at(70))).await.expect("imported");
    assert_eq!(detail(&store, &id).await.cause.state, CauseState::Resolved);
}

/// Asking which cause a failure would have writes nothing.
pub async fn what_is_recognised_is_not_written(store: Shared) {
    bury_four(&store).await;
    let cause = &causes(&store, at(100)).await[0];
    let key = detail(&store, &cause.id).await.keys[0].key.clone();
    let known = store.recognise(vec![key, "1-never-seen".to_owned()]).await.expect("answered");
    assert_eq!(known, [Some(cause.id.clone()), None]);
    assert_eq!(causes(&store, at(100)).await.len(), 2);
}

/// A cause far above its usual hour escalates.
pub async fn a_sudden_rise_escalates(store: Shared) {
    attach(&store, 1).await;
    let hour = 3_600;
    for n in 0..30_u128 {
        let time = if n < 5 { at(n as i64 * hour) } else { at(30 * hour) };
        bury(&store, job(n + 1, plain()), Reason::HandlerError, &format!("task {n} was lost"), time).await;
    }
    let now = at(30 * hour) + Duration::from_secs(60);
    assert_eq!(causes(&store, now).await[0].state, CauseState::Escalating);
}
