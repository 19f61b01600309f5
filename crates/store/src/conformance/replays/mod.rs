//! What must hold of replays.

mod cancelling;
mod driver;
mod processed;
mod script;
mod steps;

use std::time::Duration;

use redrive_core::dead::Gate;
use redrive_core::failures::Reason;
use redrive_core::ids::{JobId, ReplayId};
use redrive_core::jobs::{Input, LeasedJob, NewJob};
use redrive_core::payloads::{Payload, PayloadHash, PayloadPlace};
use redrive_core::policy::Policy;
use redrive_core::replays::{
    Advance, Automatic, Exclusion, LetterState, NextReplay, Pacing, ReplayChange, ReplayMode, ReplayState, SavedPayload,
};
use redrive_core::settlements::{Destination, Ending, Outcome, decide};
use redrive_core::time::Timestamp;
use serde_json::{Value, json};

use super::causes::causes;
use super::script::{
    Shared, ada, assert_sound, at, attach, brought, bury, dead, enqueue, fatal, job, lease_all, lease_of, lease_one,
    lease_past_breakers, ledger, listen, pipeline, plain, settle, settle_as, timeout, within, worker,
};
use crate::contract::{
    AskOutlook, CancelJobs, ClaimAutoReplay, CountTraffic, DeadFilter, DiscardDead, FindLetters, Lane, LeaseJobs,
    ListActivity, ListRefailed, ListReplayLetters, ListReplays, RegisterPayload, ReplayLetter, ReplayView, Selection,
    SetReplay, StartJobs, TrafficBy,
};

pub use self::cancelling::*;
pub(super) use self::driver::*;
pub use self::processed::*;
pub(super) use self::script::*;
pub use self::steps::*;

/// A plan says what would go and what not, and changes nothing.
pub async fn a_plan_changes_nothing(store: Shared) {
    bury_some(&store, 3).await;
    bury_as(&store, 10, Gate::Never, "shop.example").await;
    let mut changes = listen(&store).await;
    let planned = plan_of(&store, plan(all())).await;
    assert_eq!((planned.matched, planned.included), (4, 3));
    assert_eq!(planned.excluded.get(&Exclusion::GateNever), Some(&1));
    assert_eq!(planned.pipelines.get(&pipeline()), Some(&3));
    let forced = plan_of(&store, Asked { force: true, ..plan(all()) }).await;
    assert_eq!(forced.included, 4);
    let saved = plan_of(&store, Asked { mode: ReplayMode::Saved, ..plan(all()) }).await;
    assert_eq!((saved.included, saved.excluded.get(&Exclusion::PayloadGone)), (0, Some(&3)));
    assert!(changes.pending().expect("listened").is_none());
}

/// A letter goes back with its id, its history and its replay number, and is recovered when it succeeds.
pub async fn a_letter_recovers(store: Shared) {
    let ids = bury_some(&store, 1).await;
    start(&store, 1, at_once()).await;
    assert_eq!(ledger(&store).await.dead, 1, "nothing happens before it is sent");
    assert!(matches!(advance(&store, 1, at(101)).await, Advance::Send { letters: 1, .. }));
    let sent = ledger(&store).await;
    assert_eq!((sent.dead, sent.queued, sent.replaying), (0, 1, 1));
    assert!(lease_all(&store, 10, at(102)).await.jobs.is_empty(), "it is not in the queue");
    let leased = lease(&store, 1, at(102)).await.remove(0);
    assert_eq!((leased.lease.job, leased.tally.replays), (ids[0], 1));
    assert_eq!(oldest(&store, 1).await, Some((ids[0], at(101))), "since it was sent");
    assert_eq!((leased.tally.attempts, leased.tally.attempts_before), (1, 1));
    assert_sound(&store).await;
    settle(&store, &leased, Outcome::Done, at(103)).await;
    assert_eq!(advance(&store, 1, at(104)).await, Advance::Finish);
    let done = get(&store, 1).await;
    assert_eq!((done.state, done.progress.recovered, done.finished_at), (ReplayState::Done, 1, Some(at(104))));
    assert_eq!(letters(&store, 1).await[0].state, LetterState::Recovered);
    let ledger = ledger(&store).await;
    assert_eq!((ledger.done, ledger.recovered, ledger.replaying), (1, 1, 0));
    let cause = &causes(&store, at(110)).await[0];
    assert_eq!((cause.dead, cause.recovered), (0, 1));
    assert_eq!(store.recovered_causes(done.id).await.expect("listed"), std::slice::from_ref(&cause.id));
    assert_sound(&store).await;
}

/// A letter that fails again is the same letter, with one more attempt.
pub async fn a_letter_that_fails_again_is_the_same_letter(store: Shared) {
    let ids = bury_some(&store, 2).await;
    start(&store, 1, at_once()).await;
    advance(&store, 1, at(101)).await;
    let leased = lease(&store, 1, at(102)).await;
    for (leased, outcome) in leased
        .iter()
        .zip([fatal(Reason::RejectedInput, "another matter"), fatal(Reason::HandlerError, "task 55501234 was lost")])
    {
        let ending = Ending { at: at(103), duration: None, worker: None, chance: 0.0 };
        let mut decision = decide(&Policy::default(), leased, outcome, ending);
        decision.destination = Destination::bury(Gate::Review, None);
        settle_as(&store, leased, decision, at(103)).await;
    }
    let left = dead(&store, DeadFilter::default()).await;
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|letter| ids.contains(&letter.id) && letter.replays == 1));
    let progress = get(&store, 1).await.progress;
    assert_eq!((progress.failed, progress.same_cause, progress.running), (2, 1, 0));
    let after: Vec<_> = letters(&store, 1).await.into_iter().map(|l| (l.state, l.cause == l.cause_after)).collect();
    assert_eq!(after, [(LetterState::Failed, false), (LetterState::Failed, true)]);
    assert_refailed(&store, 1, &[ids[0]], &[ids[1]]).await;
    assert_sound(&store).await;
}

/// A retry of a replayed letter stays with its replay.
pub async fn a_retry_stays_with_its_replay(store: Shared) {
    bury_some(&store, 1).await;
    start(&store, 1, at_once()).await;
    advance(&store, 1, at(101)).await;
    let leased = lease(&store, 1, at(102)).await.remove(0);
    settle(&store, &leased, timeout(), at(103)).await;
    assert_sound(&store).await;
    assert!(lease_all(&store, 10, at(200)).await.jobs.is_empty());
    let again = lease(&store, 1, at(200)).await;
    assert_eq!(again.len(), 1);
    settle(&store, &again[0], Outcome::Done, at(201)).await;
    assert_eq!(get(&store, 1).await.progress.recovered, 1);
    assert_sound(&store).await;
}

/// Of two replays one gets a letter.
pub async fn a_letter_is_claimed_once(store: Shared) {
    bury_some(&store, 3).await;
    assert_eq!(start(&store, 1, at_once()).await.included, 3);
    let second = start(&store, 2, at_once()).await;
    assert_eq!((second.included, second.excluded.get(&Exclusion::BeingReplayed)), (0, Some(&3)));
    assert!(store.get_replay(replay_id(2)).await.expect("read").is_none(), "a replay of nothing is none");
    advance(&store, 1, at(101)).await;
    bury(&store, job(9, plain()), Reason::HandlerError, "task 1 was lost", at(105)).await;
    let later = Asked { now: at(110), ..plan(all()) };
    assert_eq!(start_as(&store, 3, later, at_once(), Input::new()).await.included, 1);
    assert_eq!(store.joined_since(replay_id(1)).await.expect("counted"), 1, "it died after the choice was made");
    let of = async |letter| store.replays_of(letter, 5).await.expect("listed");
    let (first, last) = (letters(&store, 1).await[0].id, letters(&store, 3).await[0].id);
    assert_eq!(of(first).await.iter().map(|replay| replay.id).collect::<Vec<_>>(), [replay_id(1)]);
    assert_eq!(of(last).await.iter().map(|replay| replay.id).collect::<Vec<_>>(), [replay_id(3)]);
    assert!(store.replays_of(first, 0).await.expect("listed").is_empty());
    assert_sound(&store).await;
}

/// The ramp goes on only while letters recover.
pub async fn a_ramp_stops_by_itself(store: Shared) {
    bury_some(&store, 10).await;
    start(&store, 1, Pacing { ramp: vec![1, 3], ..Pacing::default() }).await;
    assert!(matches!(advance(&store, 1, at(101)).await, Advance::Send { letters: 1, .. }));
    assert_eq!(advance(&store, 1, at(101)).await, Advance::Wait(None));
    let first = lease(&store, 1, at(102)).await;
    settle(&store, &first[0], Outcome::Done, at(103)).await;
    assert!(matches!(advance(&store, 1, at(104)).await, Advance::Send { letters: 3, .. }));
    for leased in lease(&store, 1, at(105)).await {
        settle(&store, &leased, fatal(Reason::RejectedInput, "no"), at(106)).await;
    }
    assert!(matches!(advance(&store, 1, at(107)).await, Advance::Pause(_)));
    let paused = get(&store, 1).await;
    assert_eq!((paused.state, paused.progress.pending), (ReplayState::Paused, 6));
    assert!(paused.why.expect("a reason").contains("3 of 3"));
    assert_eq!(advance(&store, 1, at(108)).await, Advance::Wait(None), "it stays where it is");
    assert!(change(&store, 1, ReplayChange::Resume).await);
    assert!(matches!(advance(&store, 1, at(109)).await, Advance::Send { letters: 3, .. }), "the same step again");
    assert_sound(&store).await;
}

/// Nothing that was sent is worked on while a replay is paused.
pub async fn a_paused_replay_rests(store: Shared) {
    bury_some(&store, 2).await;
    start(&store, 1, at_once()).await;
    advance(&store, 1, at(101)).await;
    assert!(change(&store, 1, ReplayChange::Pause).await);
    assert!(!change(&store, 1, ReplayChange::Pause).await, "it is paused already");
    assert!(lease(&store, 1, at(102)).await.is_empty());
    assert!(change(&store, 1, ReplayChange::Resume).await);
    assert_eq!(lease(&store, 1, at(102)).await.len(), 2);
}

/// A replay goes at another rate from when somebody says so, whatever it is at.
pub async fn a_replay_goes_at_another_rate(store: Shared) {
    bury_some(&store, 4).await;
    let slow = Pacing { per_second: Some(0.1), ..at_once() };
    start(&store, 1, slow).await;
    advance(&store, 1, at(101)).await;
    assert!(matches!(advance(&store, 1, at(102)).await, Advance::Wait(Some(_))), "one in ten seconds");
    let replay = get(&store, 1).await;
    let fast = Pacing { per_second: Some(1_000.0), ..replay.pacing.clone() };
    let next = NextReplay::of(replay.state, None, &replay.progress).paced(fast.clone());
    let params = SetReplay { next, ..setting(&replay, replay.state, at(102)) };
    assert!(store.set_replay(params.clone()).await.expect("set"));
    assert!(!store.set_replay(params).await.expect("asked"), "it is another by now");
    assert_eq!(get(&store, 1).await.pacing, fast);
    assert!(matches!(advance(&store, 1, at(102)).await, Advance::Send { letters: 3, .. }));
    let noted = store.list_activity(ListActivity { limit: 1, ..ListActivity::default() }).await.expect("listed").items;
    assert_eq!((noted[0].verb.as_str(), &noted[0].detail["per_second"]), ("rate", &json!(1_000.0)));
    assert_sound(&store).await;
}

/// A letter that is discarded before its turn, or cancelled after it was sent, is accounted for.
pub async fn what_is_given_up_meanwhile_is_gone(store: Shared) {
    let ids = bury_some(&store, 3).await;
    start(&store, 1, at_once()).await;
    let discard = DiscardDead { ids: vec![ids[0]], by: ada(), why: "x".into(), now: at(100) };
    store.discard_dead(discard).await.expect("discarded");
    advance(&store, 1, at(101)).await;
    let cancel = CancelJobs { ids: vec![ids[1]], by: ada(), why: "x".into(), now: at(102) };
    assert_eq!(store.cancel_jobs(cancel).await.expect("cancelled").len(), 1);
    assert_sound(&store).await;
    let leased = lease(&store, 1, at(103)).await;
    assert_eq!(leased.len(), 1);
    settle(&store, &leased[0], Outcome::Done, at(104)).await;
    assert_eq!(advance(&store, 1, at(105)).await, Advance::Finish);
    let progress = get(&store, 1).await.progress;
    assert_eq!((progress.recovered, progress.gone, progress.running), (1, 2, 0));
    assert_sound(&store).await;
}

/// Fields are changed before a letter goes; the input as it was accepted is kept.
pub async fn an_edited_letter_keeps_its_original(store: Shared) {
    bury_some(&store, 1).await;
    let Value::Object(edits) = json!({"url": "https://new.example/1"}) else { panic!("an object") };
    start_as(&store, 1, plan(all()), at_once(), edits).await;
    advance(&store, 1, at(101)).await;
    let leased = lease(&store, 1, at(102)).await.remove(0);
    assert_eq!(leased.input["url"], "https://new.example/1");
    assert_eq!(leased.target.as_deref(), Some("new.example"));
    settle(&store, &leased, fatal(Reason::RejectedInput, "no"), at(103)).await;
    let letter = dead(&store, DeadFilter::default()).await.remove(0);
    assert_eq!(letter.input["url"], "https://new.example/1");
    assert_eq!(letter.original.expect("kept")["url"], "https://shop.example/1");
}

/// A letter that lacks fields of its input goes when they are supplied, and not before; what was changed over the network is marked so.
pub async fn a_letter_goes_when_what_it_lacks_is_supplied(store: Shared) {
    attach(&store, 1).await;
    let lost = json!({"kind": "api", "over_network": true, "lost_input": ["token", "/headers/cookie"]});
    for (n, origin) in [(1, lost), (2, json!({"kind": "api", "lost_input": 7})), (3, json!({"kind": "api"}))] {
        let origin = serde_json::from_value(origin).ok();
        enqueue(&store, vec![NewJob { origin, ..job(n, json!({"url": "https://shop.example/1"})) }]).await;
        let leased = lease_one(&store, at(10)).await;
        assert_eq!((leased.is_from_network(), leased.edited), (true, false));
        let ending = Ending { at: at(10), duration: None, worker: None, chance: 0.0 };
        let mut decision = decide(&Policy::default(), &leased, fatal(Reason::RejectedInput, "no"), ending);
        decision.destination = Destination::bury(Gate::Never, None);
        settle_as(&store, &leased, decision, at(10)).await;
    }
    let supplying =
        |fields: &[&str]| Asked { supplied: fields.iter().map(|f| (*f).to_owned()).collect(), ..plan(all()) };
    for fields in [&[][..], &["token"], &["url"]] {
        assert_eq!(plan_of(&store, supplying(fields)).await.included, 0, "{fields:?}");
    }
    let forced = plan_of(&store, Asked { force: true, ..plan(all()) }).await;
    assert_eq!((forced.included, forced.excluded.get(&Exclusion::GateNever)), (2, Some(&1)), "not with masks in it");
    let whole = supplying(&["token", "headers"]);
    let planned = plan_of(&store, whole.clone()).await;
    assert_eq!((planned.included, planned.excluded.get(&Exclusion::GateNever)), (1, Some(&2)));
    let Value::Object(edits) = json!({"token": "t", "headers": {}}) else { panic!("an object") };
    assert_eq!(start_as(&store, 1, whole.clone(), at_once(), edits).await.included, 1);
    advance(&store, 1, at(101)).await;
    let leased = lease(&store, 1, at(102)).await.remove(0);
    assert!(leased.edited && leased.is_from_network() && leased.input["token"] == "t");
    let ending = Ending { at: at(103), duration: None, worker: None, chance: 0.0 };
    let mut decision = decide(&Policy::default(), &leased, fatal(Reason::RejectedInput, "no"), ending);
    decision.destination = Destination::bury(Gate::Never, None);
    settle_as(&store, &leased, decision, at(103)).await;
    assert_eq!(plan_of(&store, whole).await.included, 0, "it lacks nothing any more: it may not go for another reason");
    assert_sound(&store).await;
}

/// By itself only what may go goes: gate `auto`, not too often, breaker closed; and one process has the turn.
pub async fn by_itself_only_what_may_go_goes(store: Shared) {
    attach(&store, 1).await;
    bury_as(&store, 1, Gate::Auto, "good.example").await;
    bury_as(&store, 2, Gate::Review, "good.example").await;
    let hold = {
        enqueue(&store, vec![job(3, json!({"url": "https://bad.example/"}))]).await;
        let leased = lease_one(&store, at(10)).await;
        let ending = Ending { at: at(10), duration: None, worker: None, chance: 0.0 };
        let mut decision = decide(&Policy::default(), &leased, timeout(), ending);
        decision.destination = Destination::bury(Gate::Auto, None);
        decision.signal = redrive_core::breakers::Signal::Hold(Duration::from_secs(600));
        settle_as(&store, &leased, decision, at(10)).await
    };
    assert_eq!(hold, crate::contract::Settled::Applied);
    let automatic = || Asked { automatic: Some(Automatic { times_max: 1, letters_max: 10 }), ..plan(all()) };
    let planned = plan_of(&store, automatic()).await;
    assert_eq!(planned.excluded.get(&Exclusion::GateReview), Some(&1));
    assert_eq!(planned.excluded.get(&Exclusion::BreakerOpen), Some(&1));
    let first = start_as(&store, 1, automatic(), at_once(), Input::new()).await;
    assert_eq!(first.included, 1);
    advance(&store, 1, at(101)).await;
    let leased = lease(&store, 1, at(102)).await.remove(0);
    assert!(leased.automatic, "who decides about it must know");
    let ending = Ending { at: at(103), duration: None, worker: None, chance: 0.0 };
    let mut decision = decide(&Policy::default(), &leased, timeout(), ending);
    decision.destination = Destination::bury(Gate::Auto, None);
    settle_as(&store, &leased, decision, at(103)).await;
    let again = Asked { now: at(200), ..automatic() };
    let planned = plan_of(&store, again.clone()).await;
    assert_eq!(planned.excluded.get(&Exclusion::ReplayedEnough), Some(&1));
    assert_eq!(start_as(&store, 2, again, at_once(), Input::new()).await.included, 0);
    assert!(store.get_replay(replay_id(2)).await.expect("read").is_none());

    let claim =
        |now| ClaimAutoReplay { pipeline: pipeline(), turn: String::new(), every: Duration::from_secs(60), now };
    assert!(store.claim_auto_replay(claim(at(100))).await.expect("claimed"));
    assert!(!store.claim_auto_replay(claim(at(130))).await.expect("asked"));
    assert!(store.claim_auto_replay(claim(at(161))).await.expect("claimed"));
}

/// Letters that a replay sent wait for their target's breaker, and those that need no target do not.
pub async fn replayed_letters_respect_breakers(store: Shared) {
    attach(&store, 1).await;
    let id = bury_as(&store, 1, Gate::Auto, "bad.example").await;
    enqueue(&store, vec![job(2, json!({"url": "https://bad.example/2"}))]).await;
    let leased = lease_one(&store, at(20)).await;
    let ending = Ending { at: at(20), duration: None, worker: None, chance: 0.0 };
    let mut decision = decide(&Policy::default(), &leased, timeout(), ending);
    decision.signal = redrive_core::breakers::Signal::Hold(Duration::from_secs(600));
    settle_as(&store, &leased, decision, at(20)).await;
    start_as(&store, 1, plan(Selection { ids: vec![id], ..Selection::default() }), at_once(), Input::new()).await;
    advance(&store, 1, at(101)).await;
    assert!(lease(&store, 1, at(102)).await.is_empty(), "the breaker is open");
    lease_all(&store, 9, at(102)).await;
    let held = store.list_breakers().await.expect("listed").remove(0);
    assert_eq!((held.held, held.held_of_replays), (2, 1), "one of them waits in the queue");
    assert_sound(&store).await;
    assert_eq!(lease(&store, 1, at(2_000)).await.len(), 1, "it is let through as a probe");
    assert_sound(&store).await;
}

/// A letter that is replayed from its saved payload gets it with its lease, keeps it when it fails again without a word
/// about it, and moves neither its target's breaker nor its traffic.
pub async fn a_saved_payload_stays_with_its_letter(store: Shared) {
    attach(&store, 1).await;
    let (id, payload) = bury_with_payload(&store, 1).await;
    let traffic = async || {
        let params = CountTraffic { pipeline: None, since: at(0), by: TrafficBy::Target };
        store.traffic(params).await.expect("counted").iter().map(|count| count.count).sum::<i64>()
    };
    let before = traffic().await;
    let saved = Asked { mode: ReplayMode::Saved, ..plan(all()) };
    assert_eq!(start_as(&store, 1, saved, at_once(), Input::new()).await.included, 1);
    advance(&store, 1, at(101)).await;
    let leased = lease(&store, 1, at(102)).await.remove(0);
    assert_eq!(leased.saved.as_ref(), Some(&payload));
    settle(&store, &leased, fatal(Reason::Blocked, "still no price"), at(103)).await;
    let letter = dead(&store, DeadFilter::default()).await.remove(0);
    assert_eq!((letter.id, letter.payload), (id, Some(payload.hash)));
    assert!(store.list_breakers().await.expect("listed").is_empty());
    assert_eq!(traffic().await, before, "nobody was asked");
    assert_sound(&store).await;
}

/// Letters are found oldest first, page by page, each with what is known of it, and whole if they are asked for so.
pub async fn letters_are_found_with_what_is_known_of_them(store: Shared) {
    attach(&store, 1).await;
    let (id, _) = bury_with_payload(&store, 1).await;
    let other = bury(&store, job(5, plain()), Reason::Timeout, "no page", at(11)).await;
    let find = async |cursor, whole| {
        let (selection, host) = (all(), "here".to_owned());
        let params = FindLetters { selection, opened: None, tried: None, host, whole, limit: 1, cursor };
        let page = store.find_letters(params).await.expect("found");
        (page.items.into_iter().next().expect("a letter"), page.next)
    };
    let (first, next) = find(None, false).await;
    assert_eq!((first.id, first.facts.reason, first.facts.payload), (id, Reason::SchemaValidation, SavedPayload::Kept));
    assert!(first.letter.is_none() && !first.facts.claimed && !first.facts.shut);
    assert_eq!(next.as_ref(), Some(&first.cursor));
    let (second, end) = find(next, true).await;
    assert_eq!((second.id, second.facts.payload, end), (other, SavedPayload::Gone, None));
    assert_eq!(second.letter.and_then(|letter| letter.failures).map(|failures| failures.len()), Some(1));
    start(&store, 1, at_once()).await;
    assert!(find(None, false).await.0.facts.claimed);
}

/// A letter that never came to a verdict elsewhere can be replayed here, and the ledger adds up.
pub async fn an_untried_letter_can_be_replayed(store: Shared, other: Shared) {
    bury_some(&store, 1).await;
    let mut letter = dead(&store, DeadFilter::default()).await.remove(0);
    attach(&other, 1).await;
    letter.attempts = 0;
    other.import_dead(brought(vec![letter], at(50))).await.expect("imported");
    start(&other, 1, at_once()).await;
    advance(&other, 1, at(101)).await;
    assert_sound(&other).await;
    let leased = lease(&other, 1, at(102)).await.remove(0);
    settle(&other, &leased, Outcome::Done, at(103)).await;
    assert_sound(&other).await;
}

/// Replays are listed newest first, and the open ones by themselves.
pub async fn replays_are_listed(store: Shared) {
    let ids = bury_some(&store, 3).await;
    for (n, id) in ids.iter().enumerate() {
        let chosen = Selection { ids: vec![*id], ..Selection::default() };
        start_as(&store, n as u128 + 1, plan(chosen), at_once(), Input::new()).await;
    }
    change(&store, 2, ReplayChange::Cancel).await;
    let list = async |open_only, limit, cursor| {
        let page =
            store.list_replays(ListReplays { open_only, limit, cursor, within: Vec::new() }).await.expect("listed");
        (page.items.into_iter().map(|replay| replay.name).collect::<Vec<_>>(), page.next)
    };
    let (first, next) = list(false, 2, None).await;
    assert_eq!(first, ["replay 3", "replay 2"]);
    assert_eq!(list(false, 2, next).await, (vec!["replay 1".to_owned()], None));
    assert_eq!(list(true, 10, None).await.0, ["replay 3", "replay 1"]);
    for (patterns, open) in [(&["suite"][..], 2), (&["none", "su*"], 2), (&["none", "SUITE"], 0)] {
        let own = ListReplays { open_only: true, limit: 1, cursor: None, within: within(patterns) };
        let page = store.list_replays(own).await.expect("listed");
        assert_eq!((page.items.len(), page.next.is_some()), (open.min(1), open > 1), "{patterns:?}");
    }
    let outlook = async |replays_max| {
        let params = AskOutlook { worker: worker(1), pipelines: vec![pipeline()], replays_max };
        let open = store.outlook(params).await.expect("asked").replays;
        open.into_iter().map(|replay| replay.name).collect::<Vec<_>>()
    };
    assert_eq!(outlook(10).await, ["replay 3", "replay 1"]);
    assert_eq!((outlook(1).await, outlook(0).await), (vec!["replay 3".to_owned()], Vec::new()));
    assert!(get(&store, 1).await.pipelines.contains(&pipeline()));
}
