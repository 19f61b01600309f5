//! What must hold of alerts and their notices.

use std::time::Duration;

use redrive_core::alerts::{Alert, AlertCare, AlertKey, CareChange, Condition, Finding, Notice, due_notice};
use redrive_core::causes::{CauseChange, CauseId};
use redrive_core::definitions::{Definition, DefinitionVersion};
use redrive_core::failures::Reason;
use redrive_core::time::Timestamp;

use super::causes::change as change_cause;
use super::script::{Shared, ada, at, attach, beat, brought, bury, dead, enqueue, job, listen, pipeline, plain};
use crate::contract::{
    AlertChange, AlertView, AttachWorker, CareForAlert, Changes, DeadFilter, ForgetAlerts, ListActivity, PostNotices,
    SettleNotice, TakeNotice, TakenNotice, Told, Topic, Watch,
};

fn alert(part: &str, since: i64, tellings: u32) -> Alert {
    let (summary, look) = (format!("{part} is ill"), "redrive status".to_owned());
    Alert {
        key: AlertKey::new(Condition::Breaker, Some(&pipeline()), Some(part)),
        condition: Condition::Breaker,
        pipeline: Some(pipeline()),
        since: at(since),
        seen_at: at(since),
        seen_by: Default::default(),
        tellings,
        woken: None,
        told_level: 1.0,
        finding: Finding { level: 1.0, surely: 1.0, summary, look, numbers: Default::default() },
        baseline: None,
        over_at: None,
        why_over: None,
    }
}

fn notice(alert: &Alert, told: Option<u32>) -> Notice {
    due_notice(alert, told).expect("something to tell")
}

async fn change(store: &Shared, was: Option<u64>, alert: &Alert) -> bool {
    store.change_alerts(vec![AlertChange { was, alert: alert.clone(), care: None }]).await.expect("changed")[0]
}

async fn post(store: &Shared, sink: &str, notice: Notice, now: i64) -> u64 {
    let notices = vec![(sink.to_owned(), notice)];
    store.post_notices(PostNotices { notices, now: at(now) }).await.expect("posted")
}

async fn take(store: &Shared, sink: &str, now: i64) -> Option<TakenNotice> {
    let (until, believed_until) = (at(now + 30), at(now + 900));
    store.take_notice(TakeNotice { sink: sink.into(), until, believed_until, now: at(now) }).await.expect("asked")
}

async fn settle(store: &Shared, taken: &TakenNotice, outcome: Told, now: i64) -> bool {
    let params = SettleNotice { id: taken.id, tries: taken.tries, outcome, now: at(now) };
    store.settle_notice(params).await.expect("settled")
}

fn failed(next_try: i64, give_up: bool) -> Told {
    Told::No { error: "HTTP 500".into(), next_try: at(next_try), give_up }
}

async fn listed(store: &Shared) -> Vec<AlertView> {
    store.list_alerts().await.expect("listed")
}

/// Of two who judged the same alert one is heard.
pub async fn an_alert_is_changed_on_what_it_was(store: Shared) {
    let first = alert("far", 1, 1);
    assert!(change(&store, None, &first).await);
    assert!(!change(&store, None, &alert("far", 2, 1)).await, "somebody was faster");
    let grown = alert("far", 1, 2);
    assert!(change(&store, Some(1), &grown).await);
    assert!(!change(&store, Some(1), &alert("far", 1, 9)).await, "it is another by now");
    assert!(!change(&store, Some(1), &alert("never", 1, 1)).await);
    let kept = listed(&store).await;
    assert_eq!(kept.iter().map(|view| (&view.alert, view.version)).collect::<Vec<_>>(), [(&grown, 2)]);
}

/// Each thing is told to each sink once, and of one alert in order.
pub async fn a_notice_is_posted_once_and_taken_in_order(store: Shared) {
    let fired = alert("far", 1, 1);
    change(&store, None, &fired).await;
    assert_eq!(post(&store, "a", notice(&fired, None), 1).await, 1);
    assert_eq!(post(&store, "a", notice(&fired, None), 2).await, 0, "it is there already");
    assert_eq!(post(&store, "b", notice(&fired, None), 1).await, 1);
    let posted = listed(&store).await[0].posted.clone();
    let posted: Vec<_> = posted.into_iter().map(|(sink, posted)| (sink, posted.number)).collect();
    assert_eq!(posted, [("a".to_owned(), 1), ("b".to_owned(), 1)]);
    let over = Alert { over_at: Some(at(3)), why_over: Some("better".into()), ..fired.clone() };
    post(&store, "a", notice(&over, Some(1)), 3).await;
    let other = alert("near", 4, 1);
    post(&store, "a", notice(&other, None), 4).await;

    let first = take(&store, "a", 5).await.expect("waits");
    assert_eq!((first.notice.clone(), first.tries, first.posted_at), (notice(&fired, None), 1, at(1)));
    assert_eq!(take(&store, "a", 5).await.expect("waits").notice, notice(&other, None), "it is about something else");
    assert_eq!(take(&store, "a", 5).await, None, "what comes later about the first waits for it");
    assert!(settle(&store, &first, Told::Yes, 6).await);
    assert!(!settle(&store, &first, Told::Yes, 6).await, "once");
    assert_eq!(take(&store, "a", 7).await.expect("waits").notice, notice(&over, Some(1)));
    assert_eq!(take(&store, "c", 7).await, None);
}

/// Who took a notice and was killed is waited for only so long, and is not heard after that.
pub async fn a_notice_whose_taker_is_gone_is_taken_again(store: Shared) {
    let fired = alert("far", 1, 1);
    post(&store, "a", notice(&fired, None), 1).await;
    let first = take(&store, "a", 10).await.expect("waits");
    assert_eq!(take(&store, "a", 39).await, None);
    let second = take(&store, "a", 40).await.expect("waits");
    assert_eq!((second.id, second.tries), (first.id, 2));
    assert!(!settle(&store, &first, failed(99, false), 41).await, "it has been taken since");
    assert!(settle(&store, &second, Told::Yes, 41).await);
    assert_eq!(take(&store, "a", 100).await, None);
    let ahead = alert("near", 1, 1);
    post(&store, "a", notice(&ahead, None), 1).await;
    take(&store, "a", 1_000_000).await.expect("a clock that is days ahead takes it");
    assert!(take(&store, "a", 50).await.is_some(), "it holds nobody up");
}

/// A sink that fails is left alone for a while, is seen to fail, and is well once it was told something.
pub async fn a_failing_sink_is_left_alone_and_seen(store: Shared) {
    for (part, now) in [("far", 1), ("near", 2)] {
        post(&store, "a", notice(&alert(part, now, 1), None), now).await;
    }
    let first = take(&store, "a", 10).await.expect("waits");
    assert!(settle(&store, &first, failed(20, false), 11).await);
    assert_eq!(take(&store, "a", 19).await, None, "it is left alone");
    let next = take(&store, "a", 20).await.expect("waits");
    assert_eq!((next.failures, next.notice.key != first.notice.key), (1, true), "the others have their turn");
    settle(&store, &next, failed(30, true), 21).await;
    let sinks = store.list_sinks().await.expect("listed");
    let fares = (sinks[0].failing_since, sinks[0].failures, sinks[0].waiting, sinks[0].given_up, sinks[0].next_try);
    assert_eq!(fares, (Some(at(11)), 2, 1, 1, Some(at(30))));
    assert_eq!(sinks[0].error.as_deref(), Some("HTTP 500"));
    let again = take(&store, "a", 30).await.expect("waits");
    assert_eq!((again.id, again.tries), (first.id, 2));
    settle(&store, &again, Told::Yes, 31).await;
    let sinks = store.list_sinks().await.expect("listed");
    let fares = (sinks[0].failing_since, sinks[0].failures, &sinks[0].error, sinks[0].told_at, sinks[0].given_up);
    assert_eq!(fares, (None, 0, &None, Some(at(31)), 1));
}

/// What fires is kept, with what was told of it; what was over long ago goes.
pub async fn what_was_over_long_ago_is_forgotten(store: Shared) {
    let firing = alert("far", 1, 1);
    let over = |part: &str, at_secs| Alert { over_at: Some(at(at_secs)), ..alert(part, 1, 1) };
    for alert in [&firing, &over("a", 5), &over("b", 6), &over("later", 50)] {
        change(&store, None, alert).await;
        post(&store, "s", notice(&Alert { over_at: None, ..alert.clone() }, None), 1).await;
    }
    let before = at(10);
    assert!(store.forget_alerts(ForgetAlerts { before, limit: 1 }).await.expect("forgotten"), "there are more");
    while store.forget_alerts(ForgetAlerts { before, limit: 1 }).await.expect("forgotten") {}
    let kept: Vec<_> = listed(&store).await.into_iter().map(|view| (view.alert.finding.summary, view.posted)).collect();
    let kept: Vec<_> = kept.iter().map(|(what, told)| (what.as_str(), told["s"].number, told.len())).collect();
    assert_eq!(kept, [("far is ill", 1, 1), ("later is ill", 1, 1)]);
    assert_eq!(store.list_sinks().await.expect("listed")[0].waiting, 2);
}

/// Who looks at alerts hears that one fires, that somebody said something about it, and that somebody was told.
pub async fn who_looks_at_alerts_hears_of_them(store: Shared) {
    let alert = alert("shop", 0, 1);
    let mut changes = listen(&store).await;
    let heard = async |changes: &mut Changes| {
        let change = tokio::time::timeout(Duration::from_secs(60), changes.next()).await;
        change.expect("a hint in time").expect("a hint").topics().collect::<Vec<_>>()
    };
    assert!(change(&store, None, &alert).await);
    assert_eq!(heard(&mut changes).await, [Topic::Alerts]);
    assert!(store.care_for_alert(caring(&alert, 0, CareChange::Acknowledge, 1)).await.expect("cared for"));
    assert_eq!(heard(&mut changes).await, [Topic::Alerts]);
    assert_eq!(post(&store, "chat", notice(&alert, None), 1).await, 1);
    assert_eq!(heard(&mut changes).await, [Topic::Alerts]);
    let taken = take(&store, "chat", 2).await.expect("taken");
    assert!(settle(&store, &taken, Told::Yes, 3).await);
    assert_eq!(heard(&mut changes).await, [Topic::Alerts]);
}

fn caring(alert: &Alert, was: u64, change: CareChange, now: i64) -> CareForAlert {
    let care = AlertCare::default().changed(&change, alert, &ada(), at(now)).expect("possible");
    CareForAlert {
        key: alert.key.clone(),
        pipeline: alert.pipeline.clone(),
        was,
        care,
        change,
        by: ada(),
        now: at(now),
    }
}

/// What people say about an alert is written on what they saw, with a record.
pub async fn what_is_said_about_an_alert_is_kept(store: Shared) {
    let fired = alert("far", 1, 1);
    change(&store, None, &fired).await;
    let acknowledge = caring(&fired, 0, CareChange::Acknowledge, 2);
    assert!(store.care_for_alert(acknowledge.clone()).await.expect("said"));
    assert!(!store.care_for_alert(acknowledge.clone()).await.expect("asked"), "somebody was faster");
    let assign = caring(&fired, 1, CareChange::Assign(Some("bob".into())), 3);
    assert!(store.care_for_alert(assign.clone()).await.expect("said"));
    assert!(!store.care_for_alert(assign.clone()).await.expect("asked"), "it is another by now");
    let view = listed(&store).await.remove(0);
    assert_eq!((&view.care, view.care_version), (&assign.care, 2));
    assert!(change(&store, Some(1), &alert("far", 1, 2)).await);
    assert_eq!(listed(&store).await[0].care, assign.care, "it is no matter of who judges");
    let over = Alert { over_at: Some(at(5)), ..fired };
    assert!(change(&store, Some(2), &over).await);
    while store.forget_alerts(ForgetAlerts { before: at(10), limit: 5 }).await.expect("forgotten") {}
    assert!(change(&store, None, &alert("far", 20, 1)).await);
    assert_eq!(listed(&store).await[0].care_version, 0, "forgotten with its alert");
    let page = ListActivity { limit: 9, ..ListActivity::default() };
    let noted = store.list_activity(page).await.expect("listed").items;
    let noted: Vec<_> = noted.iter().map(|entry| (entry.verb.as_str(), entry.object.as_str())).collect();
    let object = format!("alert {}", acknowledge.key.as_str());
    assert_eq!(noted, [("assign", object.as_str()), ("acknowledge", object.as_str())]);
}

/// Of an alert that is snoozed nobody is told that it fires, not even by who does not know of that; that it is over is told.
pub async fn nobody_is_told_of_what_is_snoozed(store: Shared) {
    let fired = alert("far", 1, 1);
    change(&store, None, &fired).await;
    for sink in ["a", "d"] {
        post(&store, sink, notice(&fired, None), 2).await;
    }
    let snooze = CareChange::Snooze { until: at(100), why: None };
    assert!(store.care_for_alert(caring(&fired, 0, snooze, 3)).await.expect("snoozed"));
    assert_eq!(take(&store, "a", 4).await, None, "though it was posted before");
    let grown = alert("far", 1, 2);
    assert_eq!(post(&store, "b", notice(&grown, None), 5).await, 0);
    let near = alert("near", 5, 1);
    assert_eq!(post(&store, "b", notice(&near, None), 5).await, 1, "of another it is told");
    assert!(take(&store, "b", 6).await.is_some());
    let over = Alert { over_at: Some(at(6)), why_over: Some("better".into()), ..fired.clone() };
    assert_eq!(post(&store, "c", notice(&over, Some(1)), 6).await, 1);
    assert!(take(&store, "c", 7).await.is_some(), "that it is over is told");
    assert_eq!(post(&store, "d", notice(&over, Some(1)), 6).await, 1);
    let told = take(&store, "d", 7).await.expect("that it is over does not wait for what is snoozed");
    assert_eq!(told.notice, notice(&over, Some(1)));
    assert!(settle(&store, &told, Told::Yes, 8).await);
    assert_eq!(take(&store, "d", 100).await, None, "nobody is told that it fires after it was over");
    assert!(take(&store, "a", 100).await.is_some(), "its time is over");
    assert_eq!(post(&store, "b", notice(&grown, None), 100).await, 1);
    assert!(change(&store, Some(1), &grown).await);
    let woken = AlertChange { was: Some(2), alert: fired.clone(), care: Some((9, AlertCare::default())) };
    let heard = store.change_alerts(vec![woken.clone()]).await.expect("asked");
    assert_eq!(
        (heard, listed(&store).await[0].alert.tellings),
        (vec![false], 2),
        "it was judged on what others changed"
    );
    let heard = store.change_alerts(vec![AlertChange { care: Some((1, AlertCare::default())), ..woken }]).await;
    assert_eq!(heard.expect("written"), [true]);
    let view = listed(&store).await.remove(0);
    assert_eq!((view.alert.tellings, view.care.is_empty(), view.care_version), (1, true, 2));
}

/// What became of the last notice is seen, for each sink.
pub async fn what_became_of_a_notice_is_seen(store: Shared) {
    let fired = alert("far", 1, 1);
    change(&store, None, &fired).await;
    for sink in ["a", "b"] {
        post(&store, sink, notice(&fired, None), 2).await;
    }
    let taken = take(&store, "a", 3).await.expect("waits");
    settle(&store, &taken, failed(4, false), 3).await;
    let told = async |sink: &str| {
        let posted = listed(&store).await.remove(0).posted.remove(sink).expect("posted");
        (posted.number, posted.tries, posted.ended_at, posted.error)
    };
    assert_eq!(told("a").await, (1, 1, None, Some("HTTP 500".to_owned())));
    assert_eq!(told("b").await, (1, 0, None, None));
    let taken = take(&store, "a", 5).await.expect("waits");
    settle(&store, &taken, Told::Yes, 6).await;
    assert_eq!(told("a").await, (1, 2, Some(at(6)), None));
    let taken = take(&store, "b", 5).await.expect("waits");
    settle(&store, &taken, failed(9, true), 7).await;
    assert_eq!(told("b").await, (1, 1, Some(at(7)), Some("HTTP 500".to_owned())), "given up");
    post(&store, "a", notice(&alert("far", 1, 2), Some(1)), 8).await;
    assert_eq!(told("a").await, (2, 0, None, None), "the last one counts");
}

/// What is due, and which letters will soon be too old, is read for what alerts are judged by.
pub async fn what_is_watched_is_told(store: Shared) {
    attach(&store, 1).await;
    let kept = |id: u128, message: &'static str| (job(id, plain()), message);
    for (n, (new, message)) in [kept(1, "one"), kept(2, "one"), kept(3, "two")].into_iter().enumerate() {
        bury(&store, new, Reason::SchemaValidation, message, at(n as i64)).await;
    }
    let watch = async |before: Timestamp, limit| {
        let expiring = vec![(pipeline(), before), ("unknown".parse().expect("a name"), before)];
        store.watch(Watch { expiring, limit, now: at(100) }).await.expect("read")
    };
    let watched = watch(at(0) + Duration::from_millis(1), 9).await;
    assert!(watched.due_since.is_empty(), "nothing is queued");
    assert!(watched.defined.is_empty(), "no worker had rules of it");
    let letters = |watched: &crate::contract::Watched| {
        watched.expiring.values().map(|found| (found.letters, found.more, found.oldest)).collect::<Vec<_>>()
    };
    assert_eq!(letters(&watched), [(1, false, at(0))]);
    assert_eq!(letters(&watch(at(50), 9).await), [(3, false, at(0))]);
    assert_eq!(letters(&watch(at(50), 2).await), [(2, true, at(0))]);
    let one: Vec<CauseId> = dead(&store, DeadFilter::default())
        .await
        .into_iter()
        .filter(|letter| letter.message == "one")
        .filter_map(|letter| letter.cause)
        .collect();
    change_cause(&store, &one[0], CauseChange::Resolve(None)).await;
    assert_eq!(letters(&watch(at(70), 9).await), [(1, false, at(2))], "of the cause that is not resolved");
    assert_eq!(letters(&watch(at(70), 2).await), [(1, false, at(2))], "though more than are looked at are resolved");
    let mut foreign = dead(&store, DeadFilter::default()).await;
    foreign.retain(|letter| letter.message == "two");
    foreign[0].id = job(9, plain()).id;
    store.import_dead(brought(foreign, at(80))).await.expect("imported");
    assert_eq!(letters(&watch(at(70), 9).await), [(1, false, at(2))], "what is imported is kept from then on");
    assert_eq!(letters(&watch(at(90), 9).await), [(2, false, at(2))]);
    enqueue(&store, vec![job(4, plain())]).await;
    assert_eq!(watch(at(0), 9).await.due_since.into_iter().collect::<Vec<_>>(), [(pipeline(), at(0))]);
    let rules = Definition { text: "rules".to_owned(), ..Definition::of_version(DefinitionVersion::new("aa")) };
    let definitions = vec![(pipeline(), rules)];
    let attach = AttachWorker { beat: beat(2, Vec::new(), at(90)), definitions, uptime: None };
    store.attach_worker(attach).await.expect("attached");
    assert_eq!(watch(at(0), 9).await.defined, [pipeline()].into());
}
