//! What must hold of payloads.

use redrive_core::failures::Reason;
use redrive_core::payloads::{Payload, PayloadHash, Response};
use redrive_core::policy::Policy;
use redrive_core::settlements::{Ending, Outcome, decide};
use serde_json::json;

use super::script::{
    Shared, assert_sound, at, attach, enqueue, fatal, job, lease_one, plain, settle, settle_as, timeout,
};
use crate::contract::{DiscardDead, ListPayloads, RegisterPayload, SweepPayloads};

fn hash(n: u8) -> PayloadHash {
    PayloadHash::from_bytes([n; 32])
}

fn payload(n: u8) -> Payload {
    let response = Response { status: Some(200), ..Response::default() };
    Payload { hash: hash(n), size_bytes: 100, truncated: false, total_bytes: None, response }
}

async fn register(store: &Shared, n: u8, place: &str) -> String {
    let params = RegisterPayload { hash: hash(n), place: place.into(), size_bytes: 100, stored_bytes: 40, now: at(0) };
    store.register_payload(params).await.expect("registered")
}

async fn sweep(store: &Shared, secs: i64) -> Vec<String> {
    store.sweep_payloads(SweepPayloads { before: at(secs), limit: 100 }).await.expect("swept")
}

/// Settles a leased job as failed, with a payload.
async fn fail_with(store: &Shared, outcome: Outcome, n: u8, secs: i64) -> redrive_core::ids::JobId {
    let leased = lease_one(store, at(secs)).await;
    let ending = Ending { at: at(secs), duration: None, worker: None, chance: 0.0 };
    let mut decision = decide(&Policy::default(), &leased, outcome, ending);
    decision.keep(Some(payload(n)));
    settle_as(store, &leased, decision, at(secs)).await;
    leased.lease.job
}

/// Of two who bring the same payload, one place counts.
pub async fn the_first_place_counts(store: Shared) {
    assert_eq!(store.touch_payload(hash(1), at(0)).await.expect("asked"), None);
    assert_eq!(register(&store, 1, "a").await, "a");
    assert_eq!(register(&store, 1, "b").await, "a");
    assert_eq!(store.touch_payload(hash(1), at(0)).await.expect("asked").as_deref(), Some("a"));
    assert_eq!(store.place_of_payload(hash(1)).await.expect("asked").as_deref(), Some("a"));
    assert_eq!(store.place_of_payload(hash(2)).await.expect("asked"), None);
    let known = store.known_places(vec!["a".into(), "b".into()]).await.expect("asked");
    assert_eq!(known, [true, false]);
}

/// What is referred to is never swept; what was touched lately is spared.
pub async fn only_what_nobody_wants_is_swept(store: Shared) {
    attach(&store, 1).await;
    for n in 1..=3 {
        register(&store, n, &format!("place-{n}")).await;
    }
    enqueue(&store, vec![job(1, plain())]).await;
    let dead = fail_with(&store, fatal(Reason::SchemaValidation, "no price"), 1, 1).await;
    store.touch_payload(hash(2), at(500)).await.expect("touched");
    assert_eq!(sweep(&store, 100).await, ["place-3"]);
    assert_eq!(sweep(&store, 100).await, Vec::<String>::new());
    let discard = DiscardDead { ids: vec![dead], actor: "a".into(), why: "w".into(), now: at(600) };
    store.discard_dead(discard).await.expect("discarded");
    let mut rest = sweep(&store, 1_000).await;
    rest.sort();
    assert_eq!(rest, ["place-1", "place-2"], "it expires with its letter, not before");
    assert_sound(&store).await;
}

/// A dead letter says where its payload is; a job that is done in the end keeps none, unless asked.
pub async fn letters_point_at_their_payload(store: Shared) {
    attach(&store, 1).await;
    register(&store, 1, "one").await;
    register(&store, 2, "two").await;
    enqueue(&store, vec![job(1, plain())]).await;
    let id = fail_with(&store, timeout(), 1, 0).await;
    assert_eq!(store.payloads_of(id).await.expect("asked"), [payload(1)]);
    fail_with(&store, fatal(Reason::SchemaValidation, "no price"), 2, 1).await;
    let letter = store.get_dead(id).await.expect("asked").expect("dead");
    assert_eq!(letter.payload, Some(hash(2)));
    let kept: Vec<_> = letter.failures.expect("failures").into_iter().map(|failure| failure.payload).collect();
    assert_eq!(kept, [Some(payload(1)), Some(payload(2))]);
    assert_eq!(store.payloads_of(id).await.expect("asked").len(), 2);

    enqueue(&store, vec![job(2, json!({"n": 2}))]).await;
    let second = fail_with(&store, timeout(), 1, 2).await;
    let again = lease_one(&store, at(9)).await;
    settle(&store, &again, Outcome::Done, at(9)).await;
    assert_eq!(store.payloads_of(second).await.expect("asked"), []);
    enqueue(&store, vec![job(3, json!({"n": 3}))]).await;
    let third = fail_with(&store, Outcome::Done, 1, 10).await;
    assert_eq!(store.payloads_of(third).await.expect("asked"), [payload(1)]);
}

/// Lists go by hash, and by the beginning of one.
pub async fn payloads_are_listed(store: Shared) {
    for n in [0x1a, 0x1b, 0x2c] {
        register(&store, n, &format!("place-{n}")).await;
    }
    let list = async |prefix: Option<&str>, limit, cursor| {
        let params = ListPayloads { prefix: prefix.map(str::to_owned), limit, cursor };
        store.list_payloads(params).await.expect("listed")
    };
    assert_eq!(list(None, 10, None).await.items.len(), 3);
    assert_eq!(list(Some("1"), 10, None).await.items.len(), 2);
    assert_eq!(list(Some("1b1"), 10, None).await.items[0].place, "place-27");
    assert_eq!(list(Some("ff"), 10, None).await.items.len(), 0);
    let first = list(None, 2, None).await;
    assert_eq!(list(None, 2, first.next).await.items[0].place, "place-44");
}
