//! What must hold of counts that programs bring.

use redrive_core::counts::Event;
use redrive_core::outcomes::OutcomeCount;
use redrive_core::time::Timestamp;
use serde_json::json;

use super::script::{Shared, at, ledger, pipeline};
use crate::contract::{CountEvents, CountOutcomes, CountTraffic, FoldCounts, ListTracked, Span, TrafficBy};

async fn count(store: &Shared, client: &str, seq: i64, secs: i64) -> bool {
    let counts: Vec<OutcomeCount> = serde_json::from_value(json!([
        {"pipeline": pipeline(), "target": "a.example", "proxy": "one", "hour": at(0), "done": 40, "failed": 2,
         "fields": {"price": {"found": 38, "missing": 2}}, "version": "v1", "tracked": {"sitekey": "6Lc"}},
        {"pipeline": pipeline(), "target": "a.example", "done": 10},
    ]))
    .expect("counts");
    let params = CountOutcomes { client: client.to_owned(), seq, counts, forget_before: at(secs - 100), now: at(secs) };
    store.count_outcomes(params).await.expect("answered")
}

/// What comes late is counted in the minute and the hour that it is of, whether those are folded or not.
pub async fn late_outcomes_are_counted_at_their_own_time(store: Shared) {
    let hour = at(0).as_millis() / 3_600_000 * 3_600_000;
    let time = |minutes: i64| Timestamp::from_millis(hour + minutes * 60_000);
    let send = async |seq, of: i64, now: i64| {
        let counts = json!([{"pipeline": pipeline(), "hour": time(of), "done": 40, "failed": 2}]);
        let counts = serde_json::from_value(counts).expect("counts");
        let params =
            CountOutcomes { client: "c".to_owned(), seq, counts, forget_before: time(now - 10_000), now: time(now) };
        assert!(store.count_outcomes(params).await.expect("answered"));
    };
    let done = async |by| {
        let events = store.counts(CountEvents::since(time(-600), by)).await.expect("counted").into_iter();
        let done = events.filter(|count| count.event == Event::Done);
        done.map(|count| (count.at, count.count)).collect::<Vec<_>>()
    };
    send(1, 0, 20).await;
    send(2, -120, 20).await;
    send(3, -65, 20).await;
    let minutes = [(time(-65), 40), (time(-61), 40), (time(20), 40)];
    assert_eq!(done(Span::Minute).await, minutes, "now, at the time it says, at the end of its hour");
    let hours = [(time(-120), 80), (time(0), 40)];
    assert_eq!(done(Span::Hour).await, hours);
    let fold = || FoldCounts { before: time(0), limit: 99, led: None };
    assert!(!store.fold_counts(fold()).await.expect("folded"));
    send(4, -120, 25).await;
    assert_eq!(done(Span::Hour).await, [(time(-120), 120), (time(0), 40)], "its hour was folded before");
    assert!(!store.fold_counts(fold()).await.expect("folded"));
    assert_eq!(done(Span::Hour).await, [(time(-120), 120), (time(0), 40)]);
    let totals = store.event_totals().await.expect("counted");
    let total = |event| totals.iter().find(|total| total.event == event).map(|total| total.count);
    assert_eq!((total(Event::Done), total(Event::DoneLate)), (Some(160), Some(120)), "all but what was of that hour");
}

/// Counts that come again are not counted again; they are in no ledger.
pub async fn outcomes_are_counted_once(store: Shared) {
    assert!(count(&store, "crawler", 1, 10).await);
    assert!(!count(&store, "crawler", 1, 20).await, "sent again");
    let params = CountEvents::since(at(0), Span::Minute);
    let events = store.counts(params).await.expect("counted");
    let counted = |event| events.iter().filter(|count| count.event == event).map(|count| count.count).sum::<i64>();
    assert_eq!((counted(Event::Done), counted(Event::Retried)), (50, 2));
    let by = |by| CountTraffic { pipeline: None, since: at(0), by };
    let targets = store.traffic(by(TrafficBy::Target)).await.expect("counted");
    let told: Vec<_> = targets.iter().map(|count| (count.reason.is_some(), count.count, count.ended)).collect();
    assert_eq!(told, [(false, 50, 50), (true, 2, 0)]);
    assert_eq!(store.traffic(by(TrafficBy::Proxy)).await.expect("counted")[0].count, 40);
    let fields = store.coverage(Some(pipeline()), at(0)).await.expect("counted");
    assert_eq!((fields[0].version.as_str(), fields[0].found, fields[0].missing), ("v1", 38, 2));
    let tracked = ListTracked { pipeline: None, field: "sitekey".to_owned(), limit: 9 };
    assert_eq!(store.tracked(tracked).await.expect("counted")[0].ok, 40);
    assert_eq!(ledger(&store).await.accepted, 0);
    assert!(count(&store, "crawler", 2, 30).await);
    assert!(count(&store, "another", 1, 200).await, "a number is of one client");
    assert!(count(&store, "crawler", 1, 201).await, "what came long ago is forgotten");
}
