//! Sinks against services that are as strict as the real ones: what is too long or lacks something is refused, who comes too often is
//! sent away for a while, and some answers never arrive. Nothing is lost by any of it, and nothing that was taken is told again.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use redrive::alerts::Watching;
use redrive::alerts::sinks::{Sink, SinkDefinition};
use redrive::clock::TestClock;
use redrive::config::{Config, Setting};
use redrive::{FailureReport, Job, Pipeline, Reason, Redrive, json};
use redrive_core::alerts::RuleBook;
use redrive_store::conformance::decorators::{Decorated, Layer, Rows};
use redrive_store::contract::SinkView;
use redrive_store::sqlite::SqliteStore;
use serde_json::Value;

use self::in_memory::{over, redrive};
use self::strict::{Answer, Service, pagerduty, slack};

use crate::support::in_memory;
use crate::support::strict;

const SHOPS: [&str; 3] = ["one", "two", "three"];

/// Markup, mentions and entities, and far more of them than any message may have.
fn hostile() -> String {
    "<!channel> <https://evil.example|x> *b* & \u{1b}[2J\u{202e}é🦀 ".repeat(400)
}

/// Fails of every input with what it says.
fn pipeline(name: &str) -> Pipeline {
    let run = |job: Job| async move {
        let message = job.input["message"].as_str().unwrap_or_default().to_owned();
        let report = FailureReport::new(Reason::RejectedInput, message);
        if job.input["good"] == true { Ok(json!({})) } else { Err::<Value, _>(report) }
    };
    Pipeline::new(name, run).expect("a pipeline")
}

async fn work(redrive: &Redrive, good: bool, message: &str) {
    for name in SHOPS {
        let inputs = (0..20).map(|n| json!({"n": n, "good": good, "message": message}));
        redrive.enqueue(&pipeline(name), inputs).await.expect("accepted");
        redrive.drain(pipeline(name)).await.expect("drained");
    }
}

fn watching(service: &Service, definition: fn(String) -> SinkDefinition, timeout: Duration) -> Watching {
    let mut rules = RuleBook::default();
    (rules.all.jump, rules.all.disk) = (None, None);
    let dashboard = "https://redrive.example".parse().ok();
    Watching::new(rules, vec![Sink::new("s", definition(service.url()), timeout).linking_to(dashboard)])
}

const LONG: Duration = Duration::from_secs(60);

fn as_slack(url: String) -> SinkDefinition {
    SinkDefinition::Slack { url, headers: Vec::new() }
}

fn as_pagerduty(url: String) -> SinkDefinition {
    SinkDefinition::PagerDuty { url, routing_key: "0123456789abcdef0123456789abcdef".into(), headers: Vec::new() }
}

fn as_webhook(url: String) -> SinkDefinition {
    SinkDefinition::Webhook { url, headers: Vec::new() }
}

async fn sink(redrive: &Redrive) -> SinkView {
    redrive.store().list_sinks().await.expect("listed").remove(0)
}

/// An incident from its beginning to its end, of each of three pipelines, with two alerts each.
async fn whole_incident(redrive: &Redrive, clock: &TestClock, watching: &Watching) {
    work(redrive, false, &hostile()).await;
    redrive.check_alerts(watching).await.expect("checked");
    clock.advance(Duration::from_secs(3 * 3_600));
    work(redrive, true, "").await;
    redrive.check_alerts(watching).await.expect("checked");
    redrive.check_alerts(watching).await.expect("checked");
}

#[tokio::test]
async fn slack_takes_every_notice_whatever_strangers_wrote() {
    let service = Service::start(slack);
    let (redrive, clock) = redrive();
    let watching = watching(&service, as_slack, LONG);
    whole_incident(&redrive, &clock, &watching).await;
    redrive.test_sinks(&watching, &[]).await.expect("tested");
    assert_eq!(
        (service.refused(), service.taken().len()),
        (Vec::new(), 13),
        "six fired, six were over, one was a test"
    );
    assert_eq!(sink(&redrive).await.failures, 0);
}

#[tokio::test]
async fn pagerduty_takes_every_notice_and_each_incident_is_opened_and_resolved() {
    let service = Service::start(pagerduty);
    let (redrive, clock) = redrive();
    let watching = watching(&service, as_pagerduty, LONG);
    whole_incident(&redrive, &clock, &watching).await;
    redrive.test_sinks(&watching, &[]).await.expect("tested");
    assert_eq!(service.refused(), Vec::<String>::new());
    let mut incidents = BTreeMap::<String, Vec<String>>::new();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    for event in service.taken() {
        incidents.entry(text(&event["dedup_key"])).or_default().push(text(&event["event_action"]));
    }
    let whole = incidents.values().filter(|actions| **actions == ["trigger", "resolve"]).count();
    assert_eq!((incidents.len(), whole), (7, 6), "and a test, which nobody resolves: {incidents:?}");
}

/// It is left alone for as long as it asks, also by who comes later, and is then told everything.
#[tokio::test]
async fn a_service_that_is_asked_too_often_is_left_alone_for_as_long_as_it_says() {
    let service = Service::start(slack);
    let (redrive, clock) = redrive();
    let watching = watching(&service, as_slack, LONG);
    service.answer([Answer::Take, Answer::Status(429, "Retry-After: 30\r\n")]);
    work(&redrive, false, "no price").await;
    redrive.check_alerts(&watching).await.expect("checked");
    assert_eq!((service.taken().len(), service.asked()), (1, 2), "it is not asked again at once");
    let seen = sink(&redrive).await;
    assert_eq!((seen.waiting, seen.error.as_deref()), (5, Some("it answered with HTTP 429: no")));
    clock.advance(Duration::from_secs(29));
    redrive.check_alerts(&watching).await.expect("checked");
    assert_eq!(service.asked(), 2);
    clock.advance(Duration::from_secs(1));
    redrive.check_alerts(&watching).await.expect("checked");
    assert_eq!((service.taken().len(), sink(&redrive).await.waiting), (6, 0));
    // A day is too long for an alert: after an hour it is tried again.
    service.answer([Answer::Status(503, "Retry-After: 86400\r\n")]);
    clock.advance(Duration::from_secs(3 * 3_600));
    work(&redrive, true, "").await;
    redrive.check_alerts(&watching).await.expect("checked");
    clock.advance(Duration::from_secs(3_600));
    redrive.check_alerts(&watching).await.expect("checked");
    assert_eq!((service.taken().len(), sink(&redrive).await.waiting), (12, 0));
}

/// What it says is cut after 120 characters, in the middle of a secret.
#[tokio::test]
async fn secrets_that_a_service_repeats_are_masked_in_what_is_kept_of_its_answer() {
    const SAID: &str = "no such token fr0m-a-file-of-secrets in wr1tten-after-bearer; allowed for this team are others, and \
                        among them: fr0m-a-file-of-secrets";
    assert!(SAID.find(": fr0m").is_some_and(|at| (98..118).contains(&at)), "it is cut in the middle");
    let service = Service::start(|_| Err(SAID.to_owned()));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "fr0m-a-file-of-secrets\n").expect("written");
    let text = format!(
        "[alerts.sink.s]\nkind = \"webhook\"\nurl = \"{}\"\nheaders = {{ X-Team = \"team ${{file:{}}}\", \
         Authorization = \"Bearer wr1tten-after-bearer\" }}\n",
        service.url(),
        file.display()
    );
    let config = Config::parse(&text, &folder.path().join("redrive.toml")).expect("valid");
    let watching = Setting::of(config, Some("memory:")).expect("valid").watching();
    let (redrive, _) = redrive();
    let tested = redrive.test_sinks(&watching, &[]).await.expect("tested");
    let error = tested[0].error.clone().expect("it was refused");
    assert!(error.contains("no such token *** in ***; allowed"), "{error}");
    assert!(!error.contains("fr0m") && !error.contains("wr1tten"), "{error}");
}

/// Errors, redirects, hanging, connections that break before anything was read: everything arrives in the end, once, in its order.
#[tokio::test]
async fn a_service_that_is_down_in_every_way_loses_nothing_and_is_told_nothing_twice() {
    let service = Service::start(|_| Ok(()));
    let (redrive, clock) = redrive();
    let ways = [
        Answer::Status(500, ""),
        Answer::Status(302, "Location: http://127.0.0.1:1/elsewhere\r\n"),
        Answer::Status(404, ""),
        Answer::Break,
        Answer::Status(429, "Retry-After: soon\r\n"),
        Answer::Status(400, ""),
    ];
    service.answer(ways.clone());
    let watching = watching(&service, as_webhook, LONG);
    work(&redrive, false, "no price").await;
    redrive.check_alerts(&watching).await.expect("checked");
    for _ in 0..ways.len() {
        clock.advance(Duration::from_secs(301));
        redrive.tell_sinks(&watching).await.expect("told");
    }
    clock.advance(Duration::from_secs(3 * 3_600));
    work(&redrive, true, "").await;
    redrive.check_alerts(&watching).await.expect("checked");
    let told: Vec<_> = service.taken().iter().map(|told| (told["key"].clone(), told["number"].clone())).collect();
    let different: BTreeSet<_> = told.iter().map(|told| format!("{told:?}")).collect();
    assert_eq!((told.len(), different.len()), (12, 12), "{told:?}");
    for (key, _) in &told {
        let numbers: Vec<_> = told.iter().filter(|(of, _)| of == key).map(|(_, number)| number).collect();
        assert_eq!(numbers, [&json!(1), &json!(2)], "of {key}");
    }
}

/// Whether what was not answered in time arrived cannot be known: it is told again, and who gets it twice sees that.
#[tokio::test]
async fn what_was_taken_without_an_answer_in_time_is_told_again_under_the_same_key() {
    let service = Service::start(|_| Ok(()));
    let (redrive, clock) = redrive();
    service.answer([Answer::TakeAndHang]);
    let impatient = watching(&service, as_webhook, Duration::from_secs(3));
    work(&redrive, false, "no price").await;
    redrive.check_alerts(&impatient).await.expect("checked");
    let seen = sink(&redrive).await;
    assert_eq!((seen.waiting, seen.error.as_deref()), (6, Some("it took longer than 3s")));
    clock.advance(Duration::from_secs(10));
    redrive.tell_sinks(&watching(&service, as_webhook, LONG)).await.expect("told");
    let taken = service.taken();
    let again: Vec<_> = taken.iter().filter(|told| told["dedup_key"] == taken[0]["dedup_key"]).collect();
    assert_eq!((taken.len(), again.len(), again[0] == again[1]), (7, 2, true));
}

/// Fails to write that a notice was told, so many times.
struct Unwritten(AtomicU32);

impl Layer for Unwritten {
    async fn around<T, F, R>(&self, verb: &'static str, call: F) -> redrive_store::error::Result<T>
    where
        T: Rows + Send,
        F: Fn() -> R + Send + Sync,
        R: Future<Output = redrive_store::error::Result<T>> + Send,
    {
        let take = |left: u32| left.checked_sub(1);
        if verb == "settle_notice" && self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok() {
            return Err(redrive_store::StoreError::DiskFull { place: "the store".into() });
        }
        call().await
    }
}

#[tokio::test]
async fn a_store_that_is_busy_for_a_moment_does_not_make_a_notice_arrive_twice() {
    let service = Service::start(|_| Ok(()));
    let store = Arc::new(SqliteStore::in_memory().expect("opened"));
    let (redrive, clock) = over(Decorated::around(store, &Arc::new(Unwritten(AtomicU32::new(2)))));
    let watching = watching(&service, as_webhook, LONG);
    work(&redrive, false, "no price").await;
    redrive.check_alerts(&watching).await.expect("checked");
    clock.advance(Duration::from_secs(600));
    redrive.tell_sinks(&watching).await.expect("told");
    assert_eq!(service.taken().len(), 6);
}
