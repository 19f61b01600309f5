//! What must hold of payloads.

use redrive_core::causes::CauseRules;
use redrive_core::failures::Reason;
use redrive_core::ids::JobId;
use redrive_core::jobs::LeasedJob;
use redrive_core::payloads::{Payload, PayloadHash, PayloadPlace, PayloadReads, Response, Unreadable, UnreadableWhy};
use redrive_core::policy::Policy;
use redrive_core::replays::{Exclusion, ReplayMode, SavedPayload};
use redrive_core::settlements::{Ending, Outcome, Settlement, decide};
use serde_json::json;

use super::replays::{Asked, plan, plan_of};
use super::script::{
    Shared, ada, assert_sound, at, attach, enqueue, fatal, job, lease_all, lease_one, pipeline, plain, settle,
    settle_as, timeout, worker,
};
use crate::contract::{
    CountPayloadReads, DeadFilter, DiscardDead, FindLetters, ListPayloads, RegisterPayload, Registered, Selection,
    SettleJobs, Settled, SweepPayloads, TouchPayload,
};

fn hash(n: u8) -> PayloadHash {
    PayloadHash::from_bytes([n; 32])
}

fn payload(n: u8) -> Payload {
    let response = Response { status: Some(200), ..Response::default() };
    Payload { hash: hash(n), size_bytes: 100, truncated: false, total_bytes: None, lost: None, response }
}

/// The place of payload `n` that somebody with this salt wrote to.
async fn place(store: &Shared, n: u8, salt: u32) -> PayloadPlace {
    let own = store.store_ids().await.expect("ids").own;
    PayloadPlace { store: Some(own), hash: hash(n), salt }
}

async fn register(store: &Shared, n: u8, salt: u32) -> Registered {
    let place = place(store, n, salt).await;
    let params = RegisterPayload {
        place,
        size_bytes: 100,
        stored_bytes: 40,
        spooled_on: None,
        instead_of: None,
        wanted_by: None,
        now: at(0),
    };
    store.register_payload(params).await.expect("registered")
}

async fn touch(store: &Shared, n: u8, wanted_by: Option<JobId>, secs: i64) -> Option<PayloadPlace> {
    let touched = store.touch_payload(TouchPayload { hash: hash(n), wanted_by, now: at(secs) }).await;
    touched.expect("touched").map(|at| at.place)
}

/// Sweeps; says which payloads went.
async fn sweep(store: &Shared, secs: i64) -> Vec<PayloadHash> {
    let swept = store
        .sweep_payloads(SweepPayloads { before: at(secs), limit: 100, by: ada(), now: at(0) })
        .await
        .expect("swept");
    swept.into_iter().map(|place| place.hash).collect()
}

/// Settles a leased job as failed, with a payload.
async fn fail_with(store: &Shared, outcome: Outcome, n: u8, secs: i64) -> JobId {
    let leased = lease_one(store, at(secs)).await;
    let ending = Ending { at: at(secs), duration: None, worker: None, chance: 0.0 };
    let mut decision = decide(&Policy::default(), &leased, outcome, ending);
    decision.keep(Some(payload(n)));
    settle_as(store, &leased, decision, at(secs)).await;
    leased.lease.job
}

/// Of two who bring the same payload, one place counts.
pub async fn the_first_place_counts(store: Shared) {
    assert_eq!(touch(&store, 1, None, 0).await, None);
    let (first, second) = (place(&store, 1, 1).await, place(&store, 1, 2).await);
    assert_eq!(register(&store, 1, 1).await, Registered::At(first));
    assert_eq!(register(&store, 1, 2).await, Registered::At(first));
    assert_eq!(touch(&store, 1, None, 0).await, Some(first));
    let at = store.place_of_payload(hash(1)).await.expect("asked").expect("registered");
    assert_eq!((at.place, at.spooled_on), (first, None));
    assert_eq!(store.place_of_payload(hash(2)).await.expect("asked"), None);
    let known = store.known_places(vec![first, second]).await.expect("asked");
    assert_eq!(known, [true, false]);
}

/// What no row knows can be condemned, and is then never registered; what is registered cannot be condemned.
pub async fn what_is_condemned_is_not_registered(store: Shared) {
    register(&store, 1, 1).await;
    let (known, unknown) = (place(&store, 1, 1).await, place(&store, 2, 1).await);
    assert_eq!(store.condemn_places(vec![known, unknown], at(0)).await.expect("condemned"), [unknown]);
    assert_eq!(store.condemn_places(vec![unknown], at(1)).await.expect("condemned"), [unknown], "twice is once");
    assert_eq!(register(&store, 2, 1).await, Registered::Condemned);
    assert_eq!(store.place_of_payload(hash(2)).await.expect("asked"), None);
    assert_eq!(register(&store, 2, 2).await, Registered::At(place(&store, 2, 2).await));
}

/// What is referred to is never swept; what was touched lately is spared.
pub async fn only_what_nobody_wants_is_swept(store: Shared) {
    attach(&store, 1).await;
    for n in 1..=3 {
        register(&store, n, 0).await;
    }
    enqueue(&store, vec![job(1, plain())]).await;
    let dead = fail_with(&store, fatal(Reason::SchemaValidation, "no price"), 1, 1).await;
    touch(&store, 2, None, 500).await;
    assert_eq!(sweep(&store, 100).await, [hash(3)]);
    assert_eq!(sweep(&store, 100).await, []);
    let discard = DiscardDead { ids: vec![dead], by: ada(), why: "w".into(), now: at(600) };
    store.discard_dead(discard).await.expect("discarded");
    let mut rest = sweep(&store, 1_000).await;
    rest.sort();
    assert_eq!(rest, [hash(1), hash(2)], "it expires with its letter, not before");
    assert_sound(&store).await;
}

/// What the attempt of a leased job wants is not swept, however short the grace.
pub async fn what_a_leased_job_wants_is_not_swept(store: Shared) {
    attach(&store, 1).await;
    register(&store, 1, 0).await;
    enqueue(&store, vec![job(1, plain())]).await;
    let leased = lease_one(&store, at(1)).await;
    touch(&store, 1, Some(leased.lease.job), 1).await;
    assert_eq!(sweep(&store, 1_000).await, []);
    settle(&store, &leased, Outcome::Returned, at(2)).await;
    assert_eq!(sweep(&store, 1_000).await, [hash(1)]);
}

/// A settlement whose payload is not registered is refused, alone, and its lease still holds.
pub async fn a_settlement_without_its_payload_is_refused(store: Shared) {
    attach(&store, 1).await;
    register(&store, 1, 0).await;
    enqueue(&store, vec![job(1, plain()), job(2, json!({"n": 2}))]).await;
    let leased = lease_all(&store, 2, at(1)).await.jobs;
    let decision = |leased: &LeasedJob, n: u8| {
        let ending = Ending { at: at(1), duration: None, worker: None, chance: 0.0 };
        let mut decision = decide(&Policy::default(), leased, fatal(Reason::SchemaValidation, "no price"), ending);
        decision.keep(Some(payload(n)));
        decision
    };
    let rules = CauseRules::default();
    let settlements = leased.iter().zip([9, 1]).map(|(job, n)| Settlement::new(job, decision(job, n), &rules));
    let params = SettleJobs {
        settlements: settlements.collect(),
        worker: worker(1),
        breakers: Vec::new(),
        keep_late: true,
        now: at(1),
    };
    assert_eq!(store.settle(params).await.expect("settled").settled, [Settled::PayloadGone, Settled::Applied]);
    assert_sound(&store).await;
    let id = leased[0].lease.job;
    assert!(store.get_job(id).await.expect("asked").expect("there").failures.is_empty(), "nothing was written");
    let mut lost = decision(&leased[0], 9);
    lost.lose_payload("collected too soon");
    assert_eq!(settle_as(&store, &leased[0], lost, at(2)).await, Settled::Applied);
    let letter = store.get_dead(id).await.expect("asked").expect("dead");
    let told = letter.failures.expect("failures").remove(0).payload.expect("told").lost;
    assert_eq!((letter.payload, told.as_deref()), (None, Some("collected too soon")));
    let selection = Selection { filter: DeadFilter::default(), ids: vec![id] };
    let plan = Asked {
        selection,
        mode: ReplayMode::Saved,
        force: false,
        automatic: None,
        tried: None,
        supplied: Vec::new(),
        by_name: false,
        now: at(3),
        host: "here".into(),
    };
    let planned = plan_of(&store, plan).await;
    assert_eq!(planned.excluded.get(&Exclusion::PayloadLost), Some(&1), "{planned:?}");
    assert_sound(&store).await;
}

/// While a payload waits in the spool of another host, nobody here replays from it.
pub async fn a_payload_on_its_way_is_left_out(store: Shared) {
    attach(&store, 1).await;
    let place = place(&store, 1, 0).await;
    let params = RegisterPayload {
        place,
        size_bytes: 100,
        stored_bytes: 40,
        spooled_on: Some("there".into()),
        instead_of: None,
        wanted_by: None,
        now: at(0),
    };
    store.register_payload(params).await.expect("registered");
    enqueue(&store, vec![job(1, plain())]).await;
    let id = fail_with(&store, fatal(Reason::SchemaValidation, "no price"), 1, 1).await;
    let planned = async |host: &str| {
        let selection = Selection { filter: DeadFilter::default(), ids: vec![id] };
        let host = host.to_owned();
        let plan = Asked {
            selection,
            mode: ReplayMode::Saved,
            force: false,
            automatic: None,
            tried: None,
            supplied: Vec::new(),
            by_name: false,
            now: at(3),
            host,
        };
        plan_of(&store, plan).await
    };
    assert_eq!(planned("here").await.excluded.get(&Exclusion::PayloadOnItsWay), Some(&1));
    assert_eq!(planned("there").await.included, 1, "there it can be read");
    let listed = store.list_payloads(ListPayloads { prefix: None, limit: 1, cursor: None }).await.expect("listed");
    assert_eq!(listed.items[0].spooled_on.as_deref(), Some("there"));
    assert!(store.note_spooled(place, None).await.expect("noted"), "it has arrived");
    assert_eq!(planned("here").await.included, 1);
    assert!(!store.note_spooled(PayloadPlace { salt: 9, ..place }, None).await.expect("noted"), "nothing is there");
}

/// Plans, letters, causes and lists know what a read found of a payload until another read or an upload changes it.
pub async fn what_reads_find_of_a_payload_is_noted(store: Shared) {
    attach(&store, 1).await;
    let place = place(&store, 1, 0).await;
    for n in [1, 2] {
        register(&store, n, 0).await;
        enqueue(&store, vec![job(n.into(), json!({"n": n}))]).await;
        fail_with(&store, fatal(Reason::SchemaValidation, "no price"), n, 1).await;
    }
    let known = async || {
        let (mode, selection) = (ReplayMode::Saved, Selection::default());
        let asked = Asked { mode, ..plan(selection.clone()) };
        let plan = plan_of(&store, asked).await;
        let gone = plan.excluded.get(&Exclusion::PayloadGone).copied().unwrap_or_default();
        let (opened, tried, host, whole, limit, cursor) = (None, None, "here".into(), true, 10, None);
        let find = FindLetters { selection, opened, tried, host, whole, limit, cursor };
        let found = store.find_letters(find).await.expect("found").items;
        let letters: Vec<_> = found.iter().filter_map(|found| found.letter.as_ref()).collect();
        let saved = letters.iter().filter(|letter| letter.is_saved()).count();
        let kept = found.iter().filter(|found| found.facts.payload == SavedPayload::Kept).count();
        let letter = letters.iter().find(|letter| letter.payload == Some(hash(1))).expect("a letter");
        let placed = store.place_of_payload(hash(1)).await.expect("asked").expect("registered").unreadable;
        let listed = store.list_payloads(ListPayloads { prefix: None, limit: 1, cursor: None }).await.expect("listed");
        assert_eq!((placed, listed.items[0].unreadable), (letter.payload_unreadable, letter.payload_unreadable));
        let cause = letter.cause.clone().expect("a cause");
        let cause = store.get_cause(cause, at(2)).await.expect("asked").cause;
        let counts = [plan.included, saved as u64, kept as u64, cause.saved];
        assert!(counts.iter().all(|count| *count == 2 - gone), "{counts:?}, {gone} gone");
        letter.payload_unreadable
    };
    let note = async |place, unreadable| store.note_readable(place, unreadable).await.expect("noted");
    let [missing, damaged] = [UnreadableWhy::Missing, UnreadableWhy::Damaged]
        .map(|why| move |secs| Some(Unreadable { why, since: at(secs) }));
    assert_eq!(known().await, None);
    note(place, missing(5)).await;
    note(place, missing(9)).await;
    assert_eq!(known().await, missing(5), "since the first read that missed it");
    note(place, damaged(10)).await;
    assert_eq!(known().await, damaged(10));
    note(place, None).await;
    assert_eq!(known().await, None);
    note(PayloadPlace { salt: 9, ..place }, missing(11)).await;
    assert_eq!(known().await, None, "it lies at another place");
    note(place, missing(12)).await;
    let moved = PayloadPlace { salt: 1, ..place };
    let params = RegisterPayload {
        place: moved,
        size_bytes: 100,
        stored_bytes: 40,
        spooled_on: None,
        instead_of: Some(place),
        wanted_by: None,
        now: at(13),
    };
    assert_eq!(store.register_payload(params).await.expect("registered"), Registered::At(moved));
    assert_eq!(known().await, None, "its bytes were written again");
    assert_sound(&store).await;
}

/// Reads are counted over all hosts and since the first of them, beside the payloads that cannot be read now.
pub async fn reads_of_payloads_are_counted(store: Shared) {
    let read = async || store.payload_reads().await.expect("read");
    assert_eq!(read().await, PayloadReads::default());
    for (host, found, missing, secs) in [("here", 3, 1, 5), ("there", 2, 0, 4), ("here", 1, 1, 9)] {
        let params = CountPayloadReads { host: host.to_owned(), found, missing, now: at(secs) };
        store.count_payload_reads(params).await.expect("counted");
    }
    register(&store, 1, 0).await;
    let unreadable = Some(Unreadable { why: UnreadableWhy::Missing, since: at(5) });
    store.note_readable(place(&store, 1, 0).await, unreadable).await.expect("noted");
    let reads = read().await;
    assert_eq!((reads.found, reads.missing, reads.since, reads.unreadable), (6, 2, Some(at(4)), 1));
}

/// A dead letter says where its payload is; a job that is done in the end keeps none, unless asked.
pub async fn letters_point_at_their_payload(store: Shared) {
    attach(&store, 1).await;
    register(&store, 1, 0).await;
    register(&store, 2, 0).await;
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
    let jobs = async |n, limit| store.jobs_with_payload(hash(n), limit).await.expect("asked");
    assert_eq!(jobs(1, 9).await, [third, id], "the newest comes first");
    assert_eq!((jobs(1, 1).await, jobs(2, 9).await, jobs(3, 9).await), (vec![third], vec![id], vec![]));
    let pipelines = async |n| store.pipelines_with_payload(hash(n)).await.expect("asked");
    assert_eq!(
        (pipelines(1).await, pipelines(2).await, pipelines(3).await),
        (vec![pipeline()], vec![pipeline()], vec![])
    );
}

/// Lists go by hash, and by the beginning of one.
pub async fn payloads_are_listed(store: Shared) {
    for n in [0x1a, 0x1b, 0x2c] {
        register(&store, n, 0).await;
    }
    let list = async |prefix: Option<&str>, limit, cursor| {
        let params = ListPayloads { prefix: prefix.map(str::to_owned), limit, cursor };
        store.list_payloads(params).await.expect("listed")
    };
    assert_eq!(list(None, 10, None).await.items.len(), 3);
    assert_eq!(list(Some("1"), 10, None).await.items.len(), 2);
    assert_eq!(list(Some("1b1"), 10, None).await.items[0].hash, hash(27));
    assert_eq!(list(Some("ff"), 10, None).await.items.len(), 0);
    let first = list(None, 2, None).await;
    assert_eq!(list(None, 2, first.next).await.items[0].hash, hash(44));
}
