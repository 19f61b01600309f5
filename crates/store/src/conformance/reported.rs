//! What must hold of letters that programs report as their jobs fail.

use redrive_core::causes::CauseRules;
use redrive_core::counts::Event;
use redrive_core::dead::DeadLetter;
use redrive_core::dead::import::{Arrival, FAILURES_MAX, Way};
use redrive_core::failures::Reason;
use redrive_core::ids::JobId;
use redrive_core::settlements::Outcome;
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;
use serde_json::json;

use super::script::{Shared, ada, assert_sound, at, attach, dead, enqueue, job, lease_one, ledger, settle};
use crate::contract::{
    BroughtLetter, CountEvents, CountTraffic, DeadFilter, DiscardDead, ImportDead, ListTracked, Span, TrafficBy,
};

/// A letter as a program reports it.
pub fn reported(n: u128, key: &str, secs: i64) -> BroughtLetter {
    let (id, time) = (JobId::new(at(0), n), at(secs));
    let failure = json!({"at": time, "attempt": 1, "replay": 0, "reason": "timeout", "message": format!("at {secs}")});
    let letter: DeadLetter = serde_json::from_value(json!({
        "id": id, "pipeline": super::script::pipeline(), "key": key, "input": {"key": key}, "target": "a.example",
        "reason": "timeout", "message": format!("at {secs}"), "attempts": 1, "crashes": 0, "replays": 0, "gate": "auto",
        "accepted_at": time, "died_at": time, "failures": [failure],
    }))
    .expect("a letter");
    let recognised = BroughtLetter::recognised(letter, &CauseRules::default()).expect("it has a failure");
    BroughtLetter { way: Way::Reported, tracked: vec![("sitekey".to_owned(), "6Lc".to_owned())], ..recognised }
}

async fn report(store: &Shared, letters: Vec<BroughtLetter>, now: Timestamp) -> Vec<Arrival> {
    store.import_dead(ImportDead { letters: letters.into(), by: ada(), now }).await.expect("reported")
}

fn id(n: u128) -> JobId {
    JobId::new(at(0), n)
}

async fn counted(store: &Shared, event: Event) -> i64 {
    let params = CountEvents::since(at(0), Span::Minute);
    let counts = store.counts(params).await.expect("counted");
    counts.iter().filter(|count| count.event == event).map(|count| count.count).sum()
}

/// A letter is new once; another of its key is a failure more, also when it comes late; each is counted once, however often it comes.
pub async fn each_report_is_counted_once(store: Shared) {
    assert_eq!(report(&store, vec![reported(1, "k", 10)], at(20)).await, [Arrival::New]);
    assert_eq!(report(&store, vec![reported(1, "k", 10)], at(21)).await, [Arrival::Known(id(1))]);
    let two = || vec![reported(2, "k", 15), reported(3, "k", 5)];
    assert_eq!(report(&store, two(), at(22)).await, [Arrival::FailedAgain(id(1)), Arrival::FailedBesides(id(1))]);
    assert_eq!(report(&store, two(), at(23)).await, [Arrival::Known(id(1)), Arrival::Known(id(1))]);
    let letters = dead(&store, DeadFilter::default()).await;
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].died_at, letters[0].message.as_str()), (at(15), "at 15"), "its last failure is the latest");
    assert_eq!(letters[0].failures.as_ref().map(Vec::len), Some(3));
    assert_eq!((counted(&store, Event::Buried).await, counted(&store, Event::Imported).await), (1, 0));
    assert_eq!((counted(&store, Event::Refailed).await, counted(&store, Event::Retried).await), (1, 1));
    let traffic = CountTraffic { pipeline: None, since: at(0), by: TrafficBy::Target };
    let traffic = store.traffic(traffic).await.expect("counted");
    assert_eq!((traffic.len(), traffic[0].count, traffic[0].ended), (1, 3, 1));
    assert_eq!((traffic[0].value.as_str(), traffic[0].reason), ("a.example", Some(Reason::Timeout)));
    let tracked = ListTracked { pipeline: None, field: "sitekey".to_owned(), limit: 9 };
    let tracked = store.tracked(tracked).await.expect("counted");
    assert_eq!((tracked.len(), tracked[0].ok, tracked[0].failed), (1, 0, 1));
    assert_sound(&store).await;
}

/// What is reported late died when it did: it is counted in that minute and in that hour.
pub async fn late_reports_are_counted_when_they_died(store: Shared) {
    let now = at(3 * 3_600);
    assert_eq!(report(&store, vec![reported(1, "k", 10)], now).await, [Arrival::New]);
    let later = vec![reported(2, "k", 90), reported(3, "k", 20)];
    assert_eq!(report(&store, later, now).await, [Arrival::FailedAgain(id(1)), Arrival::FailedBesides(id(1))]);
    let ahead = vec![reported(4, "ahead", 4 * 3_600)];
    assert_eq!(report(&store, ahead, now).await, [Arrival::New]);
    let counts = store.counts(CountEvents::since(at(0), Span::Minute)).await.expect("counted");
    let counted: Vec<_> = counts.iter().map(|count| (count.at.minute(), count.event, count.count)).collect();
    let late = [(now, Event::BuriedLate), (now, Event::RefailedLate)];
    let expected = [(at(10), Event::Buried), (at(20), Event::Retried), (at(90), Event::Refailed), (now, Event::Buried)];
    let expected: Vec<_> = expected.into_iter().chain(late).map(|(at, event)| (at.minute(), event, 1)).collect();
    assert_eq!(counted, expected);
    assert_sound(&store).await;
}

/// A job that waits or runs here keeps going; one that came to its end leaves its key to the new letter.
pub async fn a_report_meets_jobs_in_every_state(store: Shared) {
    attach(&store, 1).await;
    let new = |n: u128| job(n, json!({"key": format!("k{n}")}));
    enqueue(&store, vec![new(1)]).await;
    let leased = lease_one(&store, at(1)).await;
    enqueue(&store, vec![new(2)]).await;
    for n in [1, 2] {
        let arrived = report(&store, vec![reported(10 + n, &format!("k{n}"), 5)], at(5)).await;
        assert_eq!(arrived, [Arrival::FailedBesides(id(n))]);
        assert_eq!(store.get_job(id(n)).await.expect("looked up").expect("there").failures.len(), 1);
    }
    settle(&store, &leased, Outcome::Done, at(6)).await;
    assert_eq!(report(&store, vec![reported(21, "k1", 7)], at(7)).await, [Arrival::New]);
    let discard = DiscardDead { ids: vec![id(21)], by: ada(), why: "gone".into(), now: at(8) };
    store.discard_dead(discard).await.expect("discarded");
    assert_eq!(report(&store, vec![reported(31, "k1", 9)], at(9)).await, [Arrival::New]);
    assert_eq!(report(&store, vec![reported(21, "k1", 7)], at(10)).await, [Arrival::Known(id(21))]);
    assert_eq!(report(&store, vec![reported(41, "k1", 11)], at(11)).await, [Arrival::FailedAgain(id(31))]);
    for (n, expected) in [(1, JobState::Done), (2, JobState::Queued), (21, JobState::Discarded), (31, JobState::Dead)] {
        assert_eq!(store.get_job(id(n)).await.expect("looked up").expect("there").job.state, expected, "{n}");
    }
    let ledger = ledger(&store).await;
    assert_eq!((ledger.accepted, ledger.done, ledger.dead, ledger.discarded), (4, 1, 1, 1));
    assert_sound(&store).await;
}

/// Of what is reported again and again the first failure and the last ones are kept.
pub async fn a_history_has_an_end(store: Shared) {
    let all = FAILURES_MAX + 20;
    let letters = (1..=all).map(|n| reported(n.into(), "k", n.into())).collect();
    report(&store, letters, at(1_000)).await;
    let letter = dead(&store, DeadFilter::default()).await.remove(0);
    let messages: Vec<_> = letter.failures.iter().flatten().map(|failure| failure.message.clone()).collect();
    assert_eq!(messages.len(), FAILURES_MAX as usize);
    assert_eq!((messages[0].as_str(), messages[1].as_str()), ("at 1", "at 22"));
    assert_eq!(messages.last(), Some(&format!("at {all}")));
    assert_sound(&store).await;
}
