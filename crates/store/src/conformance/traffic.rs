//! What must hold of the counts for analysis.

use redrive_core::failures::Reason;
use redrive_core::jobs::LeasedJob;
use redrive_core::policy::Policy;
use redrive_core::settlements::{Ending, Outcome, decide};
use redrive_core::time::Timestamp;
use redrive_core::traffic::{Coverage, Facts};
use serde_json::json;

use super::replays::{replay_nth, replay_one};
use super::script::{
    Shared, ada, assert_sound, at, attach, brought, bury, dead, enqueue, fatal, job, lease_one, pipeline, settle,
    settle_as, timeout,
};
use crate::contract::{
    CountDead, CountEvents, CountTraffic, DeadBy, DeadFilter, DiscardDead, ForgetHistory, ListTracked, Span, TrafficBy,
};

async fn end(store: &Shared, n: u128, outcome: Outcome, facts: Facts) {
    enqueue(store, vec![job(n, json!({"url": "https://shop.example/", "sitekey": "k1"}))]).await;
    let leased = lease_one(store, at(5)).await;
    let ending = Ending { at: at(5), duration: None, worker: None, chance: 0.0 };
    let mut decision = decide(&Policy::default(), &leased, outcome, ending);
    decision.facts = facts;
    settle_as(store, &leased, decision, at(5)).await;
}

/// Every attempt is counted with its target and its proxy, whether it failed or not.
pub async fn every_rate_has_its_denominator(store: Shared) {
    attach(&store, 1).await;
    let by = |proxy: &str| Facts { proxy: Some(proxy.into()), ..Facts::default() };
    end(&store, 1, Outcome::Done, by("p1")).await;
    end(&store, 2, Outcome::Done, by("p1")).await;
    end(&store, 3, fatal(Reason::Blocked, "no"), Facts::default()).await;
    let count = async |by| {
        let params = CountTraffic { pipeline: Some(pipeline()), since: at(0), by };
        let counts = store.traffic(params).await.expect("counted");
        counts.into_iter().map(|count| (count.value, count.reason, count.count)).collect::<Vec<_>>()
    };
    let both = |value: &str| vec![(value.to_owned(), None, 2), (value.to_owned(), Some(Reason::Blocked), 1)];
    assert_eq!(count(TrafficBy::Target).await, both("shop.example"));
    assert_eq!(count(TrafficBy::Proxy).await, both("p1"));
    assert_eq!(count(TrafficBy::Hour).await, both(&format!("{:02}", at(5).hour() % 24)));
    let later = CountTraffic { pipeline: None, since: at(7_200), by: TrafficBy::Target };
    assert!(store.traffic(later).await.expect("counted").is_empty());
}

/// Fields of records are counted by version of the rules, and input fields that are kept count of by value.
pub async fn fields_are_counted(store: Shared) {
    attach(&store, 1).await;
    let facts = |found| Facts {
        coverage: Some(Coverage {
            version: "v1".into(),
            fields: vec![("title".into(), true), ("price".into(), found)],
        }),
        tracked: vec![("sitekey".into(), "k1".into())],
        ..Facts::default()
    };
    end(&store, 1, Outcome::Done, facts(true)).await;
    end(&store, 2, Outcome::Done, facts(false)).await;
    end(&store, 3, fatal(Reason::SchemaValidation, "no"), facts(false)).await;
    let mut coverage = store.coverage(None, at(0)).await.expect("counted");
    coverage.sort_by(|a, b| a.field.cmp(&b.field));
    let seen: Vec<_> = coverage.iter().map(|c| (c.field.as_str(), c.version.as_str(), c.found, c.missing)).collect();
    assert_eq!(seen, [("price", "v1", 1, 2), ("title", "v1", 3, 0)]);
    let params = ListTracked { pipeline: Some(pipeline()), field: "sitekey".into(), limit: 10 };
    let tracked = store.tracked(params).await.expect("counted");
    assert_eq!((tracked[0].value.as_str(), tracked[0].ok, tracked[0].failed), ("k1", 2, 1));
}

/// A job is counted by its tracked fields once, when it first comes to its end: not again when a replay of it fails or recovers,
/// whatever the replay changed, and not at all if it died elsewhere.
pub async fn a_job_is_tracked_once(store: Shared, other: Shared) {
    attach(&store, 1).await;
    let facts = |value: &str| Facts { tracked: vec![("sitekey".into(), value.into())], ..Facts::default() };
    end(&store, 1, fatal(Reason::Blocked, "no"), facts("old")).await;
    let counts = async |store: &Shared| {
        let params = ListTracked { pipeline: Some(pipeline()), field: "sitekey".into(), limit: 10 };
        let counts = store.tracked(params).await.expect("counted").into_iter();
        counts.map(|c| (c.value, c.ok, c.failed)).collect::<Vec<_>>()
    };
    let exported = dead(&store, DeadFilter::default()).await;
    let settle_with = async |store: &Shared, leased: &LeasedJob, outcome, facts: Facts, now| {
        let ending = Ending { at: now, duration: None, worker: None, chance: 0.0 };
        let mut decision = decide(&Policy::default(), leased, outcome, ending);
        decision.facts = facts;
        settle_as(store, leased, decision, now).await;
    };
    let died = [("old".to_owned(), 0, 1)];
    assert_eq!(counts(&store).await, died);
    let leased = replay_one(&store).await;
    settle_with(&store, &leased, fatal(Reason::Blocked, "no"), facts("new"), at(103)).await;
    assert_eq!(counts(&store).await, died, "it died once");
    let leased = replay_nth(&store, 2).await;
    settle_with(&store, &leased, Outcome::Done, facts("newer"), at(203)).await;
    assert_eq!(counts(&store).await, died, "it died, and was recovered");
    assert_sound(&store).await;

    attach(&other, 1).await;
    other.import_dead(brought(exported, at(50))).await.expect("imported");
    let leased = replay_one(&other).await;
    settle_with(&other, &leased, Outcome::Done, facts("old"), at(103)).await;
    assert_eq!(counts(&other).await, [], "it died elsewhere");
    assert_sound(&other).await;
}

/// What was counted is kept for a while, not for ever.
pub async fn history_is_forgotten(store: Shared) {
    attach(&store, 1).await;
    end(&store, 1, Outcome::Done, Facts { tracked: vec![("a".into(), "b".into())], ..Facts::default() }).await;
    let count = async || {
        let params = CountTraffic { pipeline: None, since: at(0), by: TrafficBy::Target };
        store.traffic(params).await.expect("counted").len()
    };
    let forget = async |before, day: i64| {
        let params = ForgetHistory { pipeline: pipeline(), before, limit: 1, led: None, now: at(9_000 + day * 86_400) };
        while store.forget_counts(params.clone()).await.expect("forgotten") {}
    };
    let tracked = async || {
        let params = ListTracked { pipeline: None, field: "a".into(), limit: 9 };
        store.tracked(params).await.expect("listed").len()
    };
    forget(at(5), 0).await;
    assert_eq!((count().await, tracked().await), (1, 1), "it is not old enough");
    forget(at(7_200), 0).await;
    assert_eq!(count().await, 1, "it was looked at on that day");
    forget(at(7_200), 1).await;
    assert_eq!((count().await, tracked().await), (0, 0));
    let hours = CountEvents::since(at(0), Span::Hour);
    assert!(store.counts(hours).await.expect("read").is_empty());
}

/// Of the attempts, those are told by which a job came to its end, each job once: not what goes on, and nothing of a replay.
pub async fn a_job_is_counted_once_by_target(store: Shared) {
    attach(&store, 1).await;
    end(&store, 1, Outcome::Done, Facts::default()).await;
    end(&store, 2, fatal(Reason::Blocked, "no"), Facts::default()).await;
    let again = replay_one(&store).await;
    settle(&store, &again, fatal(Reason::Blocked, "no"), at(103)).await;
    let again = replay_nth(&store, 2).await;
    settle(&store, &again, Outcome::Done, at(203)).await;
    enqueue(&store, vec![job(3, json!({"url": "https://shop.example/"}))]).await;
    let slow = lease_one(&store, at(210)).await;
    settle(&store, &slow, timeout(), at(211)).await;
    for by in [TrafficBy::Target, TrafficBy::Hour] {
        let params = CountTraffic { pipeline: None, since: at(0), by };
        let counts = store.traffic(params).await.expect("counted");
        let told: Vec<_> = counts.iter().map(|count| (count.reason, count.count, count.ended)).collect();
        let expected = [(None, 2, 1), (Some(Reason::Blocked), 2, 1), (Some(Reason::Timeout), 1, 0)];
        assert_eq!(told, expected, "three attempts of one job, one end");
    }
}

/// What is kept count of is what counting finds, whatever became of the letters.
pub async fn kept_counts_are_those_that_counting_finds(store: Shared) {
    attach(&store, 1).await;
    for n in 1..=6_u128 {
        let reason = if n % 2 == 0 { Reason::Tls } else { Reason::Blocked };
        let input = json!({"url": format!("https://h{}/", n % 3)});
        bury(&store, job(n, input), reason, "no", at(n as i64 * 3_600)).await;
    }
    bury(&store, job(7, json!({"n": 7})), Reason::Tls, "no", at(30_000)).await;
    let discard = DiscardDead { ids: vec![job(1, json!({})).id], by: ada(), why: "old".into(), now: at(30_001) };
    store.discard_dead(discard).await.expect("discarded");
    let count = async |filter: DeadFilter, by: DeadBy| {
        let params = CountDead { filter, by, limit: 10 };
        store.count_dead(params).await.expect("counted")
    };
    // A text that all have makes it count the letters themselves.
    let counted = |filter: &DeadFilter| DeadFilter { text: Some("no".into()), ..filter.clone() };
    let hour = |hours: i64| Some(Timestamp::from_millis((at(0).hour() + hours) * 3_600_000));
    let filters = [
        DeadFilter::default(),
        DeadFilter { pipeline: Some(pipeline()), ..DeadFilter::default() },
        DeadFilter { reason: Some(Reason::Tls), ..DeadFilter::default() },
        DeadFilter { since: hour(3), until: hour(5), ..DeadFilter::default() },
        DeadFilter { since: Some(at(10_000)), ..DeadFilter::default() },
    ];
    for filter in filters {
        for by in [DeadBy::Target, DeadBy::Hour] {
            let (kept, found) = (count(filter.clone(), by.clone()).await, count(counted(&filter), by.clone()).await);
            assert_eq!(kept, found, "{filter:?} {by:?}");
            assert!(!kept.is_empty(), "{filter:?} {by:?}");
        }
    }
    let sent = replay_one(&store).await;
    let none = DeadFilter { pipeline: Some(pipeline()), ..DeadFilter::default() };
    assert_eq!(count(none.clone(), DeadBy::Target).await, [], "all are on their way");
    settle(&store, &sent, fatal(Reason::Blocked, "no"), at(103)).await;
    assert_eq!(count(none, DeadBy::Target).await.len(), 1);
    assert_sound(&store).await;
}

/// Dead letters are counted by whatever they have in common.
pub async fn dead_letters_are_counted_by_anything(store: Shared) {
    attach(&store, 1).await;
    for (n, reason) in [Reason::Blocked, Reason::NotFound, Reason::Blocked].into_iter().enumerate() {
        let input = json!({"url": format!("https://h{}/", n % 2), "sitekey": "a", "deep": {"n": n}});
        bury(&store, job(n as u128 + 1, input), reason, "no", at(n as i64 * 3_600)).await;
    }
    let count = async |by| {
        let params = CountDead { filter: DeadFilter::default(), by, limit: 10 };
        let counts = store.count_dead(params).await.expect("counted");
        counts.into_iter().map(|c| (c.value.unwrap_or_default(), c.count)).collect::<Vec<_>>()
    };
    let pair = |value: &str, count: i64| (value.to_owned(), count);
    assert_eq!(count(DeadBy::Reason).await, [pair("blocked", 2), pair("not_found", 1)]);
    assert_eq!(count(DeadBy::Pipeline).await, [pair("suite", 3)]);
    assert_eq!(count(DeadBy::Target).await, [pair("h0", 2), pair("h1", 1)]);
    assert_eq!(count(DeadBy::Proxy).await, [pair("p1", 3)]);
    assert_eq!(count(DeadBy::Status).await, [pair("200", 3)]);
    assert_eq!(count(DeadBy::Code).await, [pair("", 3)]);
    assert_eq!(count(DeadBy::Cause).await.len(), 2);
    assert_eq!(count(DeadBy::Input("sitekey".into())).await, [pair("a", 3)]);
    assert_eq!(count(DeadBy::Input("deep.n".into())).await.len(), 3);
    assert_eq!(count(DeadBy::Hour).await.len(), 3);
    let oldest = store.oldest_dead().await.expect("read");
    assert_eq!(oldest, [(pipeline(), at(0))]);
}
