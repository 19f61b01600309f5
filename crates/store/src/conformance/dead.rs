//! What must hold of dead letters.

use redrive_core::causes::CauseRules;
use redrive_core::dead::import::Arrival;
use redrive_core::dead::{DeadLetter, LetterSort};
use redrive_core::failures::{FailureReport, Miss, Reason};
use redrive_core::ids::JobId;
use redrive_core::jobs::{Input, LeasedJob, NewJob, Origin, progress_of_task};
use redrive_core::payloads::{PayloadHash, PayloadPlace};
use redrive_core::policy::Policy;
use redrive_core::replays::{Exclusion, ReplayChange, ReplayMode};
use redrive_core::settlements::{Ending, Outcome, Settlement, decide};
use redrive_core::state::JobState;
use serde_json::json;

use super::replays::{Asked, advance, all, at_once, change, lease, plan, plan_of, replay_one, start_as};
use super::script::{
    Shared, ada, assert_sound, at, attach, brought, bury, dead, enqueue, fatal, gone, job, lease_all, lease_one,
    ledger, listen, pipeline, plain, settle, settle_all, within,
};
use crate::contract::{
    DeadFilter, DiscardDead, ExpireDead, JobFilter, ListDead, ListJobs, NoteProgress, PAGE_BYTES_MAX, RegisterPayload,
    SearchDead, SearchedDead, Selection, Settled,
};

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
    let cause = dead(&store, all()).await[0].cause.clone();
    for (patterns, found) in [(&["none-*", "suite"][..], 5), (&["su*"], 5), (&["*"], 5), (&["SUITE", "suit", "s_*"], 0)]
    {
        let own = || DeadFilter { within: within(patterns), ..all() };
        assert_eq!(count(own()).await, found, "{patterns:?}");
        assert_eq!(count(DeadFilter { reason: Some(Reason::Tls), ..own() }).await, found / 5, "{patterns:?}");
        assert_eq!(count(DeadFilter { cause: cause.clone(), ..own() }).await > 0, found > 0, "{patterns:?}");
        let filter = DeadFilter { text: Some("failure".into()), ..own() };
        let params = SearchDead { filter, sort: LetterSort::Newest, limit: 1, look_at: 9, cursor: None };
        let searched = store.search_dead(params).await.expect("searched");
        assert_eq!((searched.letters.is_empty(), searched.next.is_none()), (found == 0, found == 0), "{patterns:?}");
        let params = ListDead::newest(own(), 1);
        assert_eq!(store.list_dead(params).await.expect("listed").next.is_some(), found > 0, "{patterns:?}");
    }
}

/// A page ends by bytes as well as by rows, and the next one goes on behind it.
pub async fn pages_end_by_bytes(store: Shared) {
    attach(&store, 1).await;
    let text = "x".repeat(PAGE_BYTES_MAX as usize / 5 * 2);
    for n in 1..=5 {
        bury(&store, job(n, json!({"n": n, "text": text})), Reason::Blocked, "no", at(n as i64)).await;
    }
    for with_failures in [false, true] {
        let (mut cursor, mut pages) = (None, Vec::new());
        loop {
            let list = ListDead { cursor, with_failures, ..ListDead::newest(DeadFilter::default(), 100) };
            let page = store.list_dead(list).await.expect("listed");
            pages.push(page.items.iter().map(|letter| letter.input["n"].clone()).collect::<Vec<_>>());
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(json!(pages), json!([[5, 4], [3, 2], [1]]), "{with_failures}");
    }
    let jobs = ListJobs { filter: JobFilter::default(), limit: 100, cursor: None };
    let first = store.list_jobs(jobs.clone()).await.expect("listed");
    let second = store.list_jobs(ListJobs { cursor: first.next.clone(), ..jobs }).await.expect("listed");
    assert_eq!((first.items.len(), second.items.len(), second.next.is_some()), (2, 2, true));
    assert!(first.items.iter().all(|job| !second.items.contains(job)));
    let filter = DeadFilter { text: Some("xx".into()), ..DeadFilter::default() };
    let search = SearchDead { filter, sort: LetterSort::Newest, limit: 100, look_at: 100, cursor: None };
    let first = store.search_dead(search.clone()).await.expect("searched");
    assert_eq!((first.letters.len(), first.looked_at), (3, 3), "the one that does not fit is the last");
    let rest = store.search_dead(SearchDead { cursor: first.next, ..search }).await.expect("searched");
    assert_eq!((rest.letters.len(), rest.next), (2, None));
}

/// Pages follow each other without gap or repetition, while new letters arrive.
pub async fn lists_page_by_cursor(store: Shared) {
    bury_five(&store).await;
    let page = |cursor| ListDead { cursor, ..ListDead::newest(DeadFilter::default(), 2) };
    let first = store.list_dead(page(None)).await.expect("listed");
    bury(&store, job(9, plain()), Reason::Dns, "newer", at(9)).await;
    let second = store.list_dead(page(first.next.clone())).await.expect("listed");
    let third = store.list_dead(page(second.next.clone())).await.expect("listed");
    let ids: Vec<JobId> =
        [&first, &second, &third].iter().flat_map(|p| p.items.iter().map(|letter| letter.id)).collect();
    assert_eq!(ids, (1..=5).rev().map(|n| job(n, plain()).id).collect::<Vec<_>>());
    assert_eq!(third.next, None);
    assert!(store.list_dead(page(Some("x".into()))).await.is_err());
    // The other way round, those that came meanwhile are at the end.
    let (mut oldest, mut cursor) = (Vec::new(), None);
    loop {
        let found = store.list_dead(ListDead { sort: LetterSort::Oldest, ..page(cursor) }).await.expect("listed");
        oldest.extend(found.items.iter().map(|letter| letter.id));
        cursor = found.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(oldest, [1, 2, 3, 4, 5, 9].map(|n| job(n, plain()).id));
    let other_way = ListDead { sort: LetterSort::Oldest, ..page(first.next.clone()) };
    assert!(store.list_dead(other_way).await.is_err(), "a place in one order is none in the other");
}

/// A search looks at no more letters than it is told to, none twice, and goes on where it stopped.
pub async fn a_search_stops_and_goes_on(store: Shared) {
    bury_five(&store).await;
    let search = async |filter: DeadFilter, (limit, look_at): (u32, u32), cursor: Option<String>| {
        let sort = LetterSort::Newest;
        store.search_dead(SearchDead { filter, sort, limit, look_at, cursor }).await.expect("searched")
    };
    let text = |text: &str| DeadFilter { text: Some(text.into()), ..DeadFilter::default() };
    let told = |found: &SearchedDead| {
        let letters: Vec<_> = found.letters.iter().map(|letter| letter.message.clone()).collect();
        (letters, found.looked_at, found.next.is_some())
    };
    let first = search(text("failure 2"), (9, 2), None).await;
    assert_eq!(told(&first), (vec![], 2, true), "those who died last");
    bury(&store, job(9, plain()), Reason::Dns, "newer", at(9)).await;
    let second = search(text("failure 2"), (9, 2), first.next).await;
    assert_eq!((second.letters.len(), second.looked_at), (1, 2));
    let third = search(text("failure 2"), (9, 2), second.next).await;
    assert_eq!(told(&third), (vec![], 1, false), "all were looked at");
    let found = search(text("FAILURE"), (2, 100), None).await;
    assert_eq!((found.letters.len(), found.looked_at, found.next.is_some()), (2, 3, true), "as many as are wanted");
    let rest = search(text("failure"), (9, 100), found.next).await;
    assert_eq!((rest.letters.len(), rest.looked_at, rest.next), (3, 3, None));
    let one = DeadFilter { reason: Some(Reason::Blocked), ..text("failure") };
    assert_eq!(search(one.clone(), (9, 100), None).await.looked_at, 3, "others are not looked at");
    let both = search(DeadFilter { target: Some("host0".into()), ..one }, (9, 100), None).await;
    assert_eq!((both.letters.len(), both.looked_at), (0, 2), "those of the target are, for their reason");
    let cause = dead(&store, DeadFilter::default()).await.into_iter().find_map(|letter| letter.cause).expect("a cause");
    let of_cause = DeadFilter { cause: Some(cause), pipeline: Some(pipeline()), ..DeadFilter::default() };
    let found = search(of_cause.clone(), (9, 100), None).await.letters;
    let ids = |letters: Vec<DeadLetter>| letters.into_iter().map(|letter| letter.id).collect::<Vec<_>>();
    assert_eq!(ids(found), ids(dead(&store, of_cause).await), "as they are listed");
    let none = DeadFilter { pipeline: "none".parse().ok(), ..text("x") };
    assert_eq!(told(&search(none, (9, 9), None).await), (vec![], 0, false));
    let wrong =
        SearchDead { filter: text("x"), sort: LetterSort::Newest, limit: 1, look_at: 1, cursor: Some("x".into()) };
    assert!(store.search_dead(wrong.clone()).await.is_err());
    let oldest = SearchDead { filter: text("failure"), sort: LetterSort::Oldest, look_at: 2, cursor: None, ..wrong };
    let found = store.search_dead(oldest.clone()).await.expect("searched");
    assert_eq!(told(&found), (vec!["failure 1 of 100%".to_owned()], 1, true));
    let rest = SearchDead { limit: 9, look_at: 9, cursor: found.next, ..oldest };
    let rest = store.search_dead(rest).await.expect("searched").letters;
    assert_eq!(rest.iter().map(|letter| letter.id).collect::<Vec<_>>(), [2, 3, 4, 5].map(|n| job(n, plain()).id));
}

/// A discarded letter leaves a record of who, when and why.
pub async fn discards_with_a_record(store: Shared) {
    bury_five(&store).await;
    let ids = vec![job(1, plain()).id, job(77, plain()).id];
    let params = DiscardDead { ids, by: ada(), why: "page is gone".into(), now: at(50) };
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

/// A job that a rule discards leaves a record of why, and is no letter.
pub async fn discards_by_rule_with_a_record(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain())]).await;
    let leased = lease_one(&store, at(0)).await;
    assert_eq!(settle(&store, &leased, gone(), at(9)).await, Settled::Applied);
    let detail = store.get_job(leased.lease.job).await.expect("looked up").expect("there");
    let record = detail.discard.expect("a record");
    assert_eq!((record.actor.as_str(), record.at, record.was), ("rule", at(9), JobState::Leased));
    assert!(record.why.contains("not_found: page is gone"), "{}", record.why);
    assert_eq!((detail.job.state, detail.job.attempts, detail.failures.len()), (JobState::Discarded, 1, 1));
    let ledger = ledger(&store).await;
    assert_eq!((ledger.dead, ledger.discarded), (0, 1));
    assert_sound(&store).await;
}

/// Retention takes the oldest first, and records it.
pub async fn expires_the_oldest(store: Shared) {
    bury_five(&store).await;
    let expire = |limit| ExpireDead { pipeline: pipeline(), before: at(4), limit, led: None, now: at(60) };
    assert_eq!(store.expire_dead(expire(2)).await.expect("expired"), 2);
    assert_eq!(store.expire_dead(expire(9)).await.expect("expired"), 1);
    assert_eq!(store.expire_dead(expire(9)).await.expect("expired"), 0);
    let detail = store.get_job(job(3, plain()).id).await.expect("looked up").expect("there");
    assert_eq!(detail.discard.expect("a record").actor, "retention");
    assert_eq!(ledger(&store).await.dead, 2);
    assert_sound(&store).await;
}

/// A letter comes out of another store as it went in, but for its number, which is one of that store.
pub async fn export_and_import_lose_nothing(store: Shared, other: Shared) {
    bury_five(&store).await;
    enqueue(&store, vec![NewJob { round: "r".parse().ok(), origin: origin(), ..job(6, plain()) }]).await;
    let miss =
        Miss { field: "price".into(), rule: ".price".into(), code: "SelectorNotFound".into(), ..Miss::default() };
    let report = FailureReport { misses: vec![miss; 2], ..FailureReport::new(Reason::SchemaValidation, "no price") };
    settle(&store, &lease_one(&store, at(6)).await, Outcome::Failed(report), at(6)).await;
    let letters = dead(&store, DeadFilter::default()).await;
    let text: Vec<String> = letters.iter().map(|l| serde_json::to_string(l).expect("a letter is JSON")).collect();
    let read = text.iter().map(|line| serde_json::from_str(line).expect("JSON is a letter")).collect();
    let new = other.import_dead(brought(read, at(70))).await.expect("imported");
    assert_eq!(new, vec![Arrival::New; 6]);
    let expire = ExpireDead { pipeline: pipeline(), before: at(70), limit: 9, led: None, now: at(71) };
    assert_eq!(other.expire_dead(expire).await.expect("expired"), 0, "they are kept from now on, however old they are");
    let unnumbered = |letter: DeadLetter| DeadLetter { number: None, ..letter };
    let (here, there) = (letters.into_iter().map(unnumbered), dead(&other, DeadFilter::default()).await);
    assert_eq!(there.into_iter().map(unnumbered).collect::<Vec<_>>(), here.collect::<Vec<_>>());
    assert_sound(&other).await;
}

fn origin() -> Option<Origin> {
    serde_json::from_value(json!({"kind": "celery", "group": "mails", "task": "0a1b"})).ok()
}

/// What is known, in whatever state, is not taken in again.
pub async fn importing_twice_adds_nothing(store: Shared) {
    bury_five(&store).await;
    let letters = dead(&store, DeadFilter::default()).await;
    let import = brought(letters.clone(), at(70));
    let mut changes = listen(&store).await;
    let known: Vec<_> = letters.iter().map(|letter| Arrival::Known(letter.id)).collect();
    assert_eq!(store.import_dead(import.clone()).await.expect("imported"), known);
    assert!(changes.pending().expect("listened").is_none(), "nothing was written");
    let ids = vec![letters[0].id];
    let discard = DiscardDead { ids, by: ada(), why: "gone".into(), now: at(71) };
    store.discard_dead(discard).await.expect("discarded");
    let again = store.import_dead(import).await.expect("imported");
    assert_eq!(again, known, "one was given up here");
    assert_sound(&store).await;
}

/// A key that is there already never becomes a second letter: a letter that is dead here, and died again later elsewhere, has
/// one failure more; in any other state, or if it is older, what arrives is passed over.
pub async fn a_known_key_is_not_taken_in_again(store: Shared) {
    attach(&store, 1).await;
    let input = |n: u32| json!({"key": format!("k{n}"), "url": "https://h/"});
    let here = bury(&store, job(1, input(1)), Reason::Blocked, "first", at(1)).await;
    enqueue(&store, vec![job(2, input(2))]).await;
    let whole = dead(&store, DeadFilter::default()).await.remove(0);
    let arrive = |n: u128, key: u32, secs: i64| {
        let mut letter = DeadLetter { id: job(n, plain()).id, key: Some(format!("k{key}")), ..whole.clone() };
        letter.died_at = at(secs);
        let failure = letter.failures.as_mut().and_then(|failures| failures.last_mut()).expect("a failure");
        (failure.at, failure.reason, failure.message) = (at(secs), Reason::Tls, format!("at {secs}"));
        (letter.reason, letter.message) = (Reason::Tls, format!("at {secs}"));
        letter
    };
    let letters = vec![arrive(11, 1, 0), arrive(12, 1, 50), arrive(13, 2, 50), arrive(14, 3, 40), arrive(15, 3, 45)];
    let import = brought(letters, at(70));
    let third = job(14, plain()).id;
    let arrived = store.import_dead(import.clone()).await.expect("imported");
    let taken = |id, state| Arrival::KeyTaken { id, state };
    assert_eq!(
        arrived,
        [
            taken(here, JobState::Dead),
            Arrival::FailedAgain(here),
            taken(job(2, plain()).id, JobState::Queued),
            Arrival::New,
            Arrival::FailedAgain(third),
        ]
    );
    let letters = dead(&store, DeadFilter::default()).await;
    assert_eq!(letters.len(), 2);
    let grown = letters.iter().find(|letter| letter.id == here).expect("there");
    assert_eq!((grown.reason, grown.message.as_str(), grown.died_at), (Reason::Tls, "at 50", at(50)));
    assert_eq!((grown.attempts, grown.failures.as_ref().map(Vec::len)), (2, Some(2)));
    assert_sound(&store).await;
    let before = dead(&store, DeadFilter::default()).await;
    let again = store.import_dead(import).await.expect("imported");
    assert!(again.iter().all(|arrival| matches!(arrival, Arrival::Known(_) | Arrival::KeyTaken { .. })), "{again:?}");
    assert_eq!(dead(&store, DeadFilter::default()).await, before, "the same letters again change nothing");
    assert_sound(&store).await;
}

/// Numbers as large as they can be neither stop a replay nor break the ledger.
pub async fn counts_of_an_imported_letter_saturate(store: Shared, other: Shared) {
    attach(&store, 1).await;
    bury(&store, job(1, plain()), Reason::Blocked, "no", at(1)).await;
    let whole = dead(&store, DeadFilter::default()).await.remove(0);
    attach(&other, 1).await;
    let most = u32::MAX;
    let letter = DeadLetter { attempts: most, crashes: most, replays: most, ..whole };
    other.import_dead(brought(vec![letter], at(50))).await.expect("imported");
    let leased = replay_one(&other).await;
    assert_eq!((leased.tally.replays, leased.attempt()), (most, most));
    assert!(leased.tally.tried());
    assert_sound(&other).await;
    settle(&other, &leased, Outcome::Done, at(103)).await;
    assert_sound(&other).await;
}

/// A payload whose bytes did not come along is not counted as one that can be worked from, and says that it is missing.
pub async fn a_payload_that_did_not_come_along_is_missing(store: Shared, other: Shared) {
    attach(&store, 1).await;
    bury(&store, job(1, plain()), Reason::SchemaValidation, "no price", at(1)).await;
    let whole = dead(&store, DeadFilter::default()).await.remove(0);
    let (here, gone) = (PayloadHash::from_bytes([1; 32]), PayloadHash::from_bytes([2; 32]));
    let register = RegisterPayload {
        place: PayloadPlace { store: None, hash: here, salt: 0 },
        size_bytes: 3,
        stored_bytes: 3,
        spooled_on: None,
        instead_of: None,
        wanted_by: None,
        now: at(2),
    };
    other.register_payload(register).await.expect("registered");
    let with = |n: u128, payload| DeadLetter { id: job(n, plain()).id, payload: Some(payload), ..whole.clone() };
    let letters = vec![with(1, here), with(2, gone)];
    other.import_dead(brought(letters, at(50))).await.expect("imported");
    let missing: Vec<_> =
        dead(&other, DeadFilter::default()).await.iter().map(|l| (l.payload, l.payload_missing)).collect();
    assert_eq!(missing, [(Some(gone), true), (Some(here), false)]);
    let plan = |mode| Asked {
        selection: Selection {
            filter: DeadFilter { pipeline: Some(pipeline()), ..DeadFilter::default() },
            ids: Vec::new(),
        },
        mode,
        force: false,
        automatic: None,
        tried: None,
        supplied: Vec::new(),
        now: at(100),
        host: "here".into(),
    };
    assert_eq!(plan_of(&other, plan(ReplayMode::Suited)).await.saved, 1);
    let saved = plan_of(&other, plan(ReplayMode::Saved)).await;
    assert_eq!((saved.included, saved.excluded.get(&Exclusion::PayloadGone)), (1, Some(&1)));
    assert_sound(&other).await;
}

/// Enqueues a job, leaves a task at a provider, and buries it.
async fn bury_with_task(store: &Shared, task: &str) {
    enqueue(store, vec![job(1, plain())]).await;
    let leased = lease_one(store, at(1)).await;
    let noted = NoteProgress { lease: leased.lease, progress: Some(progress_of_task(task)) };
    assert!(store.note_progress(noted).await.expect("noted"));
    settle(store, &leased, fatal(Reason::SchemaValidation, "odd"), at(2)).await;
}

/// A task that was paid for is known for as long as its letter is: through replays that were cancelled, export and import.
pub async fn a_task_stays_with_its_letter(store: Shared) {
    bury_with_task(&store, "t1").await;
    let task = async || dead(&store, DeadFilter::default()).await.remove(0).task_id;
    assert_eq!(task().await.as_deref(), Some("t1"));
    let again = Asked { mode: ReplayMode::Refetch, ..plan(all()) };
    for (n, plan, noted) in [(1, plan(all()), Some(progress_of_task("t1"))), (2, again, None)] {
        start_as(&store, n, plan, at_once(), Input::new()).await;
        advance(&store, n, at(101)).await;
        let leased = lease(&store, n, at(102)).await.remove(0);
        assert_eq!(leased.progress, noted, "replay {n}");
        settle(&store, &leased, Outcome::Returned, at(103)).await;
        assert!(change(&store, n, ReplayChange::Cancel).await);
        assert_eq!(task().await.as_deref(), Some("t1"), "nothing was submitted meanwhile");
    }
    let edits = Input::from_iter([("url".to_owned(), json!("https://example.com/other"))]);
    start_as(&store, 3, plan(all()), at_once(), edits).await;
    advance(&store, 3, at(104)).await;
    let leased = lease(&store, 3, at(105)).await.remove(0);
    assert_eq!(leased.progress, None, "it is the task of another input");
    settle(&store, &leased, fatal(Reason::SchemaValidation, "odd"), at(106)).await;
    assert_eq!(task().await, None);
    assert_sound(&store).await;
}

/// What a hostile page says, at any length and with any character, is kept with its letter and found, and stops nobody else.
pub async fn hostile_texts_stop_nobody(store: Shared) {
    attach(&store, 1).await;
    // Of which nothing can be made shorter.
    let noise = |seed: u64| {
        let mut chance = seed | 1;
        let next = std::iter::repeat_with(move || {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            char::from(b'!' + (chance % 90) as u8)
        });
        next.take(9_000).collect::<String>()
    };
    let hostile = job(1, json!({"key": "a\0b", "target": noise(3) + "\0", "\0": "\0\u{FFFF}\\u0000"}));
    enqueue(&store, vec![hostile.clone(), job(2, json!({"key": "k2"}))]).await;
    let leased = lease_all(&store, 9, at(1)).await.jobs;
    assert_eq!(leased.len(), 2);
    let held = leased.iter().find(|job| job.lease.job == hostile.id).expect("leased");
    assert_eq!(held.input, hostile.input);
    let progress = Some(json!({"page": "\0", "noise": noise(4)}));
    assert!(store.note_progress(NoteProgress { lease: held.lease, progress }).await.expect("noted"));
    let report = FailureReport {
        proxy: Some(noise(5)),
        error_type: Some("\0".into()),
        stack: Some(noise(6) + "\0"),
        stderr: Some("\0".into()),
        ..FailureReport::new(Reason::SchemaValidation, noise(7) + "\0").with_code(noise(8) + "\0")
    };
    let decided = |job: &LeasedJob, outcome| {
        let ending = Ending { at: at(2), duration: None, worker: None, chance: 0.0 };
        Settlement::new(job, decide(&Policy::default(), job, outcome, ending), &CauseRules::default())
    };
    let other = leased.iter().find(|job| job.lease.job != hostile.id).expect("leased");
    let settlements = vec![decided(held, Outcome::Failed(report)), decided(other, Outcome::Done)];
    assert_eq!(settle_all(&store, settlements, at(2)).await, [Settled::Applied, Settled::Applied]);
    let letters = dead(&store, DeadFilter::default()).await;
    assert_eq!((letters.len(), &letters[0].input), (1, &hostile.input));
    let (target, code, proxy) = (letters[0].target.clone(), letters[0].code.clone(), letters[0].proxy.clone());
    assert!(target.is_some() && code.is_some() && proxy.is_some());
    for filter in [
        DeadFilter { target, ..DeadFilter::default() },
        DeadFilter { code, ..DeadFilter::default() },
        DeadFilter { proxy, ..DeadFilter::default() },
    ] {
        assert_eq!(dead(&store, filter.clone()).await.len(), 1, "{filter:?}");
    }
    assert_sound(&store).await;
}
