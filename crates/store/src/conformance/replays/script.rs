//! The steps that the cases about replays are made of.

use super::*;

pub(in crate::conformance) fn replay_id(n: u128) -> ReplayId {
    ReplayId::new(at(0), n)
}

pub(in crate::conformance) fn all() -> Selection {
    Selection { filter: DeadFilter { pipeline: Some(pipeline()), ..DeadFilter::default() }, ids: Vec::new() }
}

pub(in crate::conformance) fn plan(selection: Selection) -> Asked {
    Asked {
        selection,
        mode: ReplayMode::Suited,
        force: false,
        automatic: None,
        tried: None,
        supplied: Vec::new(),
        by_name: false,
        now: at(100),
        host: "here".into(),
    }
}

pub(in crate::conformance) fn at_once() -> Pacing {
    Pacing { ramp: Vec::new(), ..Pacing::default() }
}

pub(in crate::conformance) async fn get(store: &Shared, n: u128) -> ReplayView {
    store.get_replay(replay_id(n)).await.expect("read").expect("there")
}

pub(in crate::conformance) async fn letters(store: &Shared, n: u128) -> Vec<ReplayLetter> {
    let params = ListReplayLetters { id: replay_id(n), state: None, limit: 1_000, cursor: None };
    store.list_replay_letters(params).await.expect("listed").items
}

/// Checks which letters failed for another cause than before, and which for the same.
pub(in crate::conformance) async fn assert_refailed(store: &Shared, n: u128, other: &[JobId], same: &[JobId]) {
    for (same_cause, expected) in [(false, other), (true, same)] {
        let params = ListRefailed { id: replay_id(n), same_cause, limit: 10, cursor: None };
        let found = store.list_refailed(params).await.expect("listed").items;
        assert_eq!(found.iter().map(|letter| letter.id).collect::<Vec<_>>(), expected, "same cause: {same_cause}");
    }
    let causes = store.other_causes(replay_id(n), 10).await.expect("counted");
    assert_eq!(causes.iter().map(|(_, letters)| letters).sum::<u64>(), other.len() as u64, "{causes:?}");
    assert_eq!(oldest(store, n).await, None, "none is under way");
}

/// The letter that has been under way for the longest time, and since when.
pub(in crate::conformance) async fn oldest(store: &Shared, n: u128) -> Option<(JobId, Timestamp)> {
    store.oldest_running(replay_id(n)).await.expect("read").map(|letter| (letter.id, letter.since))
}

pub(in crate::conformance) async fn lease(store: &Shared, n: u128, now: Timestamp) -> Vec<LeasedJob> {
    lease_some(store, n, 1_000, now).await
}

pub(in crate::conformance) async fn lease_some(store: &Shared, n: u128, limit: u32, now: Timestamp) -> Vec<LeasedJob> {
    let lane = Lane::Replay(replay_id(n));
    lease_past_breakers(store, LeaseJobs { with_tried: false, ..lease_of(lane, limit, now) }).await.jobs
}

/// Replays all dead letters and leases one of them.
pub(in crate::conformance) async fn replay_one(store: &Shared) -> LeasedJob {
    replay_nth(store, 1).await
}

/// The same once more, a while later.
pub(in crate::conformance) async fn replay_nth(store: &Shared, n: u32) -> LeasedJob {
    let (replay, now) = (u128::from(n), at(i64::from(n) * 100));
    let asked = Asked { now, ..plan(all()) };
    start_as(store, replay, asked, at_once(), Input::new()).await;
    advance(store, replay, now + Duration::from_secs(1)).await;
    lease(store, replay, now + Duration::from_secs(2)).await.remove(0)
}

pub(in crate::conformance) async fn bury_some(store: &Shared, letters: u128) -> Vec<JobId> {
    attach(store, 1).await;
    let mut ids = Vec::new();
    for n in 1..=letters {
        let input = json!({"url": format!("https://shop.example/{n}"), "n": n.to_string()});
        ids.push(bury(store, job(n, input), Reason::HandlerError, "task 71823460 was lost", at(n as i64)).await);
    }
    ids
}

/// Buries a job with a gate of its own.
pub(in crate::conformance) async fn bury_as(store: &Shared, n: u128, gate: Gate, target: &str) -> JobId {
    enqueue(store, vec![job(n, json!({"url": format!("https://{target}/")}))]).await;
    let leased = lease_one(store, at(10)).await;
    let ending = Ending { at: at(10), duration: None, worker: None, chance: 0.0 };
    let mut decision = decide(&Policy::default(), &leased, timeout(), ending);
    decision.destination = Destination::bury(gate, None);
    settle_as(store, &leased, decision, at(10)).await;
    leased.lease.job
}

/// Registers a payload of three bytes.
pub(in crate::conformance) async fn register(store: &Shared, hash: PayloadHash) {
    let place = PayloadPlace { store: None, hash, salt: 0 };
    let registered = RegisterPayload {
        place,
        size_bytes: 3,
        stored_bytes: 2,
        spooled_on: None,
        instead_of: None,
        wanted_by: None,
        now: at(1),
    };
    store.register_payload(registered).await.expect("registered");
}

/// Buries a job with a payload that is registered.
pub(in crate::conformance) async fn bury_with_payload(store: &Shared, n: u128) -> (JobId, Payload) {
    let hash = PayloadHash::from_bytes([u8::try_from(n).unwrap_or(0); 32]);
    register(store, hash).await;
    enqueue(store, vec![job(n, json!({"url": "https://shop.example/"}))]).await;
    let leased = lease_one(store, at(10)).await;
    let ending = Ending { at: at(10), duration: None, worker: None, chance: 0.0 };
    let mut decision = decide(&Policy::default(), &leased, fatal(Reason::SchemaValidation, "no price"), ending);
    let payload = Payload::bare(hash, 3);
    decision.keep(Some(payload.clone()));
    settle_as(store, &leased, decision, at(10)).await;
    (leased.lease.job, payload)
}
