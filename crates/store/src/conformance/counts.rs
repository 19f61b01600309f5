//! What must hold of events counted over time.

use redrive_core::counts::Event;
use redrive_core::failures::Reason;
use redrive_core::settlements::Outcome;
use redrive_core::time::Timestamp;

use super::replays::{replay_nth, replay_one};
use super::script::{
    Shared, ada, assert_sound, at, attach, brought, bury, dead, enqueue, fatal, job, lease_all, pipeline, plain, settle,
};
use crate::contract::{CountEvents, DeadFilter, DiscardDead, FoldCounts, ForgetHistory, Span};

async fn counted(store: &Shared, by: Span, since: Timestamp) -> Vec<(i64, Event, Option<Reason>, i64)> {
    let counts = store.counts(CountEvents::since(since, by)).await.expect("counted");
    let bucket = |time: Timestamp| if by == Span::Hour { time.hour() } else { time.minute() };
    counts.into_iter().map(|count| (bucket(count.at), count.event, count.reason, count.count)).collect()
}

async fn sum(store: &Shared, event: Event) -> i64 {
    let counts = store.counts(CountEvents::since(at(0), Span::Hour)).await.expect("counted");
    counts.iter().filter(|count| count.event == event).map(|count| count.count).sum()
}

/// What happened is counted in its minute and in its hour.
pub async fn minutes_and_hours_are_counted(store: Shared) {
    attach(&store, 1).await;
    bury(&store, job(1, plain()), Reason::Blocked, "no", at(0)).await;
    bury(&store, job(2, plain()), Reason::Blocked, "no", at(90)).await;
    bury(&store, job(3, plain()), Reason::Tls, "no", at(7_200)).await;
    let buried = async |by| {
        let counts = counted(&store, by, at(0)).await.into_iter();
        counts.filter(|(_, event, ..)| *event == Event::Buried).map(|(at, _, why, n)| (at, why, n)).collect::<Vec<_>>()
    };
    let (blocked, tls) = (Some(Reason::Blocked), Some(Reason::Tls));
    assert_eq!(buried(Span::Hour).await, [(at(0).hour(), blocked, 2), (at(7_200).hour(), tls, 1)]);
    let minutes = [(at(0).minute(), blocked, 1), (at(90).minute(), blocked, 1), (at(7_200).minute(), tls, 1)];
    assert_eq!(buried(Span::Minute).await, minutes);
    let asked = async |params: CountEvents| {
        let counts = store.counts(params).await.expect("counted").into_iter();
        counts.filter(|count| count.event == Event::Buried).map(|count| count.count).sum::<i64>()
    };
    for (by, end, before) in [(Span::Hour, 7_200, 2), (Span::Minute, 90, 1)] {
        let all = CountEvents::since(at(0), by);
        assert_eq!(asked(CountEvents { until: Some(at(end)), ..all.clone() }).await, before, "{by:?}");
        assert_eq!(asked(all.clone().of(pipeline())).await, 3, "{by:?}");
        assert_eq!(asked(all.of("other".parse().expect("a name"))).await, 0, "{by:?}");
    }
    let later = counted(&store, Span::Hour, at(7_200)).await;
    assert!(later.iter().all(|(_, _, reason, _)| *reason != blocked), "{later:?}");
}

/// A job comes to its end once: what fails again in a replay, what recovers and what is brought from elsewhere is counted apart.
pub async fn a_job_dies_once(store: Shared) {
    attach(&store, 1).await;
    bury(&store, job(1, plain()), Reason::Blocked, "no", at(0)).await;
    let exported = dead(&store, DeadFilter::default()).await;
    settle(&store, &replay_one(&store).await, fatal(Reason::Blocked, "no"), at(103)).await;
    let ends = async || {
        (sum(&store, Event::Done).await - sum(&store, Event::Recovered).await, sum(&store, Event::Buried).await)
    };
    assert_eq!((ends().await, sum(&store, Event::Refailed).await), ((0, 1), 1));
    settle(&store, &replay_nth(&store, 2).await, Outcome::Done, at(203)).await;
    assert_eq!((ends().await, sum(&store, Event::Recovered).await), ((0, 1), 1));
    enqueue(&store, vec![job(2, plain())]).await;
    for leased in lease_all(&store, 9, at(300)).await.jobs {
        settle(&store, &leased, Outcome::Done, at(301)).await;
    }
    assert_eq!(ends().await, (1, 1), "two jobs were accepted, and two came to their end");
    let mut foreign = exported[0].clone();
    foreign.id = job(9, plain()).id;
    let mut again = foreign.clone();
    store.import_dead(brought(vec![foreign], at(310))).await.expect("imported");
    assert_eq!((ends().await, sum(&store, Event::Imported).await), ((1, 1), 1));
    again.died_at = at(320);
    again.failures.iter_mut().flatten().for_each(|failure| failure.at = at(320));
    store.import_dead(brought(vec![again], at(330))).await.expect("imported");
    assert_eq!((ends().await, sum(&store, Event::Refailed).await), ((1, 1), 2));
    assert_eq!(sum(&store, Event::Accepted).await, 2, "what is brought from elsewhere was accepted there");
    assert_sound(&store).await;
}

/// Folding minutes into hours, piece by piece, changes no sum at any moment, and newer minutes stay.
pub async fn folding_changes_no_sum(store: Shared) {
    attach(&store, 1).await;
    for n in 0..5 {
        bury(&store, job(1 + n, plain()), Reason::Blocked, "no", at(n as i64 * 60)).await;
    }
    let ids = vec![job(1, plain()).id];
    let late = at(9 * 3_600);
    let discard = DiscardDead { ids, by: ada(), why: "old".into(), now: late };
    store.discard_dead(discard).await.expect("discarded");
    let hours = counted(&store, Span::Hour, at(0)).await;
    let minutes = counted(&store, Span::Minute, at(0)).await.len();
    let mut pieces = 0;
    while store.fold_counts(FoldCounts { before: late, limit: 2, led: None }).await.expect("folded") {
        pieces += 1;
        assert_eq!(counted(&store, Span::Hour, at(0)).await, hours, "after piece {pieces}");
    }
    assert!(pieces >= minutes / 2 - 1, "{minutes} rows in pieces of two");
    assert_eq!(counted(&store, Span::Hour, at(0)).await, hours);
    let left = counted(&store, Span::Minute, at(0)).await;
    assert_eq!(left, [(late.minute(), Event::Discarded, Some(Reason::Blocked), 1)]);
    assert!(
        !store.fold_counts(FoldCounts { before: late, limit: 2, led: None }).await.expect("folded"),
        "nothing is left"
    );
    assert_eq!(counted(&store, Span::Hour, at(0)).await, hours, "folding twice changes nothing");
}

/// What has ever happened is known however much of it is forgotten: a total never becomes less.
pub async fn totals_only_grow(store: Shared) {
    const DAY: i64 = 86_400;
    attach(&store, 1).await;
    let buried = async || {
        let totals = store.event_totals().await.expect("read").into_iter();
        totals.filter(|total| total.event == Event::Buried).map(|total| (total.reason, total.count)).collect::<Vec<_>>()
    };
    bury(&store, job(1, plain()), Reason::Blocked, "no", at(0)).await;
    bury(&store, job(2, plain()), Reason::Blocked, "no", at(3_600)).await;
    let both = [(Some(Reason::Blocked), 2)];
    assert_eq!(buried().await, both);
    for _ in 0..2 {
        while store.fold_counts(FoldCounts { before: at(DAY), limit: 1, led: None }).await.expect("folded") {
            assert_eq!(buried().await, both, "in the middle");
        }
    }
    assert_eq!(buried().await, both);
    let forget = ForgetHistory { pipeline: pipeline(), before: at(DAY), limit: 9, led: None, now: at(100 * DAY) };
    while store.forget_counts(forget.clone()).await.expect("forgotten") {}
    assert!(counted(&store, Span::Hour, at(0)).await.is_empty());
    assert_eq!(buried().await, both, "forgotten, and counted");
    bury(&store, job(3, plain()), Reason::Blocked, "no", at(100 * DAY)).await;
    assert_eq!(buried().await, [(Some(Reason::Blocked), 3)]);
}
