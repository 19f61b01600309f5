//! What must hold of dead letters.

use redrive_core::failures::Reason;
use redrive_core::ids::JobId;
use redrive_core::state::JobState;
use serde_json::json;

use super::script::{Shared, assert_sound, at, attach, bury, dead, enqueue, job, ledger, pipeline, plain};
use crate::contract::{DeadFilter, DiscardDead, ExpireDead, ImportDead, ListDead};
use crate::sqlite::SqliteStore;

async fn bury_five(store: &Shared) {
    attach(store, 1).await;
    for (n, reason) in
        [Reason::Blocked, Reason::NotFound, Reason::Blocked, Reason::Tls, Reason::Blocked].into_iter().enumerate()
    {
        let n = n as u128 + 1;
        let input = json!({"key": format!("k{n}"), "url": format!("https://host{}/", n % 2), "n": n});
        bury(store, job(n, input), reason, &format!("failure {n} of 100%"), at(n as i64)).await;
    }
}

/// Every filter finds what it should.
pub async fn lists_filter(store: Shared) {
    bury_five(&store).await;
    let count = async |filter| dead(&store, filter).await.len();
    let all = DeadFilter::default;
    assert_eq!(count(all()).await, 5);
    assert_eq!(count(DeadFilter { pipeline: Some(pipeline()), ..all() }).await, 5);
    assert_eq!(count(DeadFilter { pipeline: "none".parse().ok(), ..all() }).await, 0);
    assert_eq!(count(DeadFilter { reason: Some(Reason::Blocked), ..all() }).await, 3);
    assert_eq!(count(DeadFilter { target: Some("host0".into()), ..all() }).await, 2);
    assert_eq!(count(DeadFilter { code: Some("none".into()), ..all() }).await, 0);
    assert_eq!(count(DeadFilter { since: Some(at(2)), until: Some(at(4)), ..all() }).await, 2);
    assert_eq!(count(DeadFilter { text: Some("failure 3".into()), ..all() }).await, 1);
    assert_eq!(count(DeadFilter { text: Some("\"n\":4".into()), ..all() }).await, 1);
    assert_eq!(count(DeadFilter { text: Some("100%".into()), ..all() }).await, 5);
    assert_eq!(count(DeadFilter { reason: Some(Reason::Blocked), target: Some("host1".into()), ..all() }).await, 3);
}

/// Pages follow each other without gap or repetition, while new letters arrive.
pub async fn lists_page_by_cursor(store: Shared) {
    bury_five(&store).await;
    let page = |cursor| ListDead { filter: DeadFilter::default(), limit: 2, cursor, with_failures: false };
    let first = store.list_dead(page(None)).await.expect("listed");
    bury(&store, job(9, plain()), Reason::Dns, "newer", at(9)).await;
    let second = store.list_dead(page(first.next.clone())).await.expect("listed");
    let third = store.list_dead(page(second.next.clone())).await.expect("listed");
    let ids: Vec<JobId> =
        [&first, &second, &third].iter().flat_map(|p| p.items.iter().map(|letter| letter.id)).collect();
    assert_eq!(ids, (1..=5).rev().map(|n| job(n, plain()).id).collect::<Vec<_>>());
    assert_eq!(third.next, None);
    assert!(store.list_dead(page(Some("x".into()))).await.is_err());
}

/// A discarded letter leaves a record of who, when and why.
pub async fn discards_with_a_record(store: Shared) {
    bury_five(&store).await;
    let ids = vec![job(1, plain()).id, job(77, plain()).id];
    let params = DiscardDead { ids, actor: "ada".into(), why: "page is gone".into(), now: at(50) };
    assert_eq!(store.discard_dead(params.clone()).await.expect("discarded").len(), 1);
    assert_eq!(store.discard_dead(params).await.expect("discarded").len(), 0);
    let detail = store.get_job(job(1, plain()).id).await.expect("looked up").expect("there");
    assert_eq!(detail.job.state, JobState::Discarded);
    let record = detail.discard.expect("a record");
    assert_eq!((record.actor.as_str(), record.why.as_str(), record.at), ("ada", "page is gone", at(50)));
    assert_eq!((record.was, record.reason, record.died_at), (JobState::Dead, Some(Reason::Blocked), Some(at(1))));
    let ledger = ledger(&store).await;
    assert_eq!((ledger.dead, ledger.discarded), (4, 1));
    assert_sound(&store).await;
}

/// Retention takes the oldest first, and records it.
pub async fn expires_the_oldest(store: Shared) {
    bury_five(&store).await;
    let expire = |limit| ExpireDead { pipeline: pipeline(), before: at(4), limit, now: at(60) };
    assert_eq!(store.expire_dead(expire(2)).await.expect("expired"), 2);
    assert_eq!(store.expire_dead(expire(9)).await.expect("expired"), 1);
    assert_eq!(store.expire_dead(expire(9)).await.expect("expired"), 0);
    let detail = store.get_job(job(3, plain()).id).await.expect("looked up").expect("there");
    assert_eq!(detail.discard.expect("a record").actor, "retention");
    assert_eq!(ledger(&store).await.dead, 2);
    assert_sound(&store).await;
}

/// A letter comes out of another store as it went in.
pub async fn export_and_import_lose_nothing(store: Shared) {
    bury_five(&store).await;
    let letters = dead(&store, DeadFilter::default()).await;
    let text: Vec<String> = letters.iter().map(|l| serde_json::to_string(l).expect("a letter is JSON")).collect();
    let read = text.iter().map(|line| serde_json::from_str(line).expect("JSON is a letter")).collect();
    let other: Shared = std::sync::Arc::new(SqliteStore::in_memory().expect("opened"));
    let new = other.import_dead(ImportDead { letters: read, now: at(70) }).await.expect("imported");
    assert_eq!(new, 5);
    let expire = ExpireDead { pipeline: pipeline(), before: at(70), limit: 9, now: at(71) };
    assert_eq!(other.expire_dead(expire).await.expect("expired"), 0, "they are kept from now on, however old they are");
    assert_eq!(dead(&other, DeadFilter::default()).await, letters);
    assert_sound(&other).await;
}

/// What is known, in whatever state, is not taken in again; a key that is taken does not keep a letter out.
pub async fn importing_twice_adds_nothing(store: Shared) {
    bury_five(&store).await;
    let letters = dead(&store, DeadFilter::default()).await;
    let import = ImportDead { letters: letters.clone(), now: at(70) };
    assert_eq!(store.import_dead(import.clone()).await.expect("imported"), 0);
    let ids = vec![letters[0].id];
    let discard = DiscardDead { ids, actor: "ada".into(), why: "gone".into(), now: at(71) };
    store.discard_dead(discard).await.expect("discarded");
    assert_eq!(store.import_dead(import.clone()).await.expect("imported"), 0, "it was given up here");

    let other: Shared = std::sync::Arc::new(SqliteStore::in_memory().expect("opened"));
    enqueue(&other, vec![job(40, json!({"key": "k1"}))]).await;
    assert_eq!(other.import_dead(import.clone()).await.expect("imported"), 5);
    assert_eq!(other.import_dead(import).await.expect("imported"), 0);
    assert_eq!(ledger(&other).await.dead, 5);
    assert_sound(&other).await;
}
