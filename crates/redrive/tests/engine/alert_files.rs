//! Alerts of a store that several files know: who judges what, what is not judged at all, and what is not forgotten meanwhile.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;
use std::time::Duration;

use redrive::alerts::Watching;
use redrive::alerts::sinks::{Sink, SinkDefinition};
use redrive::clock::Clock;
use redrive::config::{Config, Setting};
use redrive::dead::{Reported, Reporting};
use redrive::{FailureReport, Job, Pipeline, Reason, Redrive, json};
use redrive_core::actors::{Actor, Via};
use redrive_core::alerts::{Alert, CareChange, Condition, RuleBook};
use redrive_core::definitions::DefinitionVersion;
use redrive_core::jobs::InputLimits;
use redrive_core::policy::Policy;
use serde_json::Value;

use self::in_memory::{at_start, redrive};

use crate::support::in_memory;

/// Dies of every input, with the code that it says.
fn pipeline(name: &str) -> Pipeline {
    let run = |job: Job| async move {
        let code = job.input["code"].as_str().unwrap_or_default().to_owned();
        Err::<Value, _>(FailureReport::new(Reason::RejectedInput, format!("{code} is missing")).with_code(code))
    };
    Pipeline::new(name, run).expect("a pipeline").defined(DefinitionVersion::new("aa"))
}

async fn bury(redrive: &Redrive, name: &str, letters: usize, code: &str) {
    let inputs = (0..letters).map(|n| json!({"n": format!("{code}{n}"), "code": code}));
    redrive.enqueue(&pipeline(name), inputs).await.expect("accepted");
    redrive.drain(pipeline(name)).await.expect("drained");
}

/// Only what the condition needs is watched.
fn rules(condition: Condition) -> RuleBook {
    let mut book = RuleBook::default();
    let all = &mut book.all;
    (all.jump, all.disk) = (None, None);
    match condition {
        Condition::Rate => all.cause_letters = None,
        _ => all.rate = None,
    }
    book
}

fn knowing(rules: RuleBook, names: &[&str], policy: &Policy) -> Watching {
    let policies = names.iter().map(|name| (name.parse().expect("a name"), policy.clone()));
    Watching::new(rules, Vec::new()).with_policies(policies.collect::<BTreeMap<_, _>>())
}

async fn firing(redrive: &Redrive, watching: &Watching) -> Vec<Alert> {
    let list = redrive.check_alerts(watching).await.expect("checked");
    list.alerts.into_iter().map(|view| view.alert).filter(Alert::is_firing).collect()
}

#[tokio::test]
async fn a_file_judges_its_own_pipelines_and_leaves_those_of_others_alone() {
    let (redrive, clock) = redrive();
    bury(&redrive, "shop", 10, "price").await;
    let mut off = rules(Condition::Rate);
    off.all.rate = None;
    let (shop, other) = (knowing(rules(Condition::Rate), &["shop"], &Policy::default()), ["other"]);
    let (strict, lax) = (rules(Condition::Rate), off);
    assert_eq!(firing(&redrive, &knowing(strict, &other, &Policy::default())).await, [], "it does not know shop");
    let fired = firing(&redrive, &shop).await;
    assert_eq!(fired.len(), 1);
    clock.advance(Duration::from_secs(60));
    let left = firing(&redrive, &knowing(lax, &other, &Policy::default())).await;
    assert_eq!(left, fired, "that the other file watches no rate ends nothing of shop");
}

/// Both files have `shop`, each with rules and a sink of its own.
#[tokio::test]
async fn two_files_with_other_rules_for_one_pipeline_do_not_end_each_others_alerts() {
    let (redrive, clock) = redrive();
    let file = |name: &str, rate| {
        let mut rules = rules(Condition::Rate);
        rules.all.rate = rate;
        let policies = [("shop".parse().expect("a name"), Policy::default())].into();
        let sink = Sink::new(name, SinkDefinition::Log, Duration::from_secs(60));
        Watching::new(rules, vec![sink]).with_policies(policies).of_file(Path::new(name))
    };
    let (strict, lax, off) = (file("strict", Some(0.005)), file("lax", Some(0.9)), file("off", None));
    let pipeline = || {
        let run = |job: Job| async move {
            let report = FailureReport::new(Reason::RejectedInput, "no price");
            if job.input["bad"] == true { Err(report) } else { Ok(json!({})) }
        };
        Pipeline::new("shop", run).expect("a pipeline")
    };
    let mut number = 0;
    let mut work = async |bad: usize| {
        let inputs: Vec<_> = (0..40).map(|n| json!({"n": number + n, "bad": n < bad})).collect();
        number += 40;
        redrive.enqueue(&pipeline(), inputs).await.expect("accepted");
        redrive.drain(pipeline()).await.expect("drained");
    };
    for _ in 0..5 {
        work(10).await;
        for watching in [&strict, &lax, &off, &lax] {
            let fires = firing(&redrive, watching).await;
            assert_eq!(fires.iter().map(|alert| (alert.since, alert.tellings)).collect::<Vec<_>>(), [(at_start(), 1)]);
        }
        clock.advance(Duration::from_secs(60));
    }
    let posted = async || {
        let posted = redrive.store().list_alerts().await.expect("listed").remove(0).posted;
        posted.into_iter().map(|(sink, posted)| (sink, posted.number)).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(posted().await, [("strict".to_owned(), 1)].into(), "sinks are told of what their own file sees");
    clock.advance(Duration::from_secs(20 * 60));
    work(40).await;
    for watching in [&lax, &strict, &off] {
        assert_eq!(firing(&redrive, watching).await.len(), 1);
    }
    let told = posted().await;
    assert_eq!(told.keys().collect::<Vec<_>>(), ["lax", "strict"], "both see it now");
    clock.advance(Duration::from_secs(20 * 60));
    work(10).await;
    assert_eq!(firing(&redrive, &lax).await.len(), 1, "it goes on for the other");
    clock.advance(Duration::from_secs(20 * 60));
    work(0).await;
    assert_eq!(firing(&redrive, &lax).await.len(), 1, "who saw it last says that it is over");
    assert_eq!(firing(&redrive, &strict).await, []);
    redrive.tell_sinks(&lax).await.expect("told");
    assert!(posted().await.into_iter().all(|(sink, number)| number > told[&sink]), "and all who heard of it hear that");
}

/// Who knows no pipeline looks by the defaults, and changes nothing for those who know some.
#[tokio::test]
async fn who_looks_on_sees_what_fires_and_keeps_nothing() {
    let (redrive, _) = redrive();
    bury(&redrive, "shop", 10, "price").await;
    let onlooker = Watching::new(rules(Condition::Rate), Vec::new()).looking_on();
    assert_eq!(firing(&redrive, &onlooker).await.len(), 1);
    assert_eq!(redrive.store().list_alerts().await.expect("listed"), []);
    let shop = knowing(rules(Condition::Rate), &["shop"], &Policy::default());
    assert_eq!(firing(&redrive, &shop).await.len(), 1);
    let mut off = rules(Condition::Rate);
    off.all.rate = None;
    firing(&redrive, &Watching::new(off, Vec::new()).looking_on()).await;
    assert!(redrive.store().list_alerts().await.expect("listed")[0].alert.is_firing());
}

#[tokio::test]
async fn how_long_letters_are_kept_is_not_guessed_for_pipelines_of_other_files() {
    let (redrive, clock) = redrive();
    bury(&redrive, "shop", 2, "price").await;
    clock.advance(Duration::from_secs(13 * 86_400));
    let for_ever = Policy { retention: None, ..Policy::default() };
    let rules = || rules(Condition::Expiry);
    assert_eq!(firing(&redrive, &knowing(rules(), &["other"], &Policy::default())).await, []);
    assert_eq!(firing(&redrive, &knowing(rules(), &["shop"], &for_ever)).await, []);
    let fires = firing(&redrive, &knowing(rules(), &["shop"], &Policy::default())).await;
    assert_eq!(fires.iter().map(|alert| alert.condition).collect::<Vec<_>>(), [Condition::Expiry]);
}

#[tokio::test]
async fn what_was_imported_did_not_die_here() {
    let (from, _) = redrive();
    bury(&from, "shop", 20, "price").await;
    let mut lines = Vec::new();
    from.export_dead(redrive::contract::DeadFilter::default(), &mut lines).await.expect("exported");
    let (to, clock) = redrive();
    let by = Actor::new("ada", Via::Api);
    let imported = to
        .import_dead_file(("letters", Cursor::new(lines)), (None, InputLimits::default()), &by, |_| {})
        .await
        .expect("imported");
    assert_eq!(imported.new, 20);
    let watching = Watching::new(rules(Condition::Cause), Vec::new());
    assert_eq!(firing(&to, &watching).await, []);
    clock.advance(Duration::from_secs(5));
    bury(&to, "shop", 12, "price").await;
    let fires = firing(&to, &watching).await;
    assert_eq!(fires.iter().map(|alert| alert.finding.numbers["letters"].clone()).collect::<Vec<_>>(), [json!(12)]);
}

/// A cause that fires is not over because others are busier.
#[tokio::test]
async fn a_cause_that_fires_is_looked_at_however_many_are_busier() {
    let (redrive, _) = redrive();
    let mut rules = rules(Condition::Cause);
    rules.all.cause_share = 0.0;
    let watching = Watching::new(rules, Vec::new());
    bury(&redrive, "shop", 10, "quiet").await;
    let quiet = firing(&redrive, &watching).await.remove(0);
    for n in 0..50 {
        let code: String = [n / 10, n % 10].map(|digit| char::from(b'a' + digit)).iter().collect();
        bury(&redrive, "shop", 11, &format!("busy_{code}")).await;
    }
    let fires = firing(&redrive, &watching).await;
    assert_eq!(fires.len(), 51);
    assert!(fires.iter().any(|alert| alert.key == quiet.key && alert.since == quiet.since));
}

/// The time of a check is bounded: what is left waits for whoever comes next.
#[tokio::test]
async fn a_check_begins_to_tell_nothing_after_its_time() {
    let (redrive, _) = redrive();
    bury(&redrive, "shop", 10, "price").await;
    bury(&redrive, "other", 10, "price").await;
    let command = ["sh", "-c", "sleep 0.5"].map(str::to_owned).to_vec();
    let slow = SinkDefinition::Command { command, folder: None };
    let sink = Sink::new("slow", slow, Duration::from_secs(20));
    let watching = Watching::new(rules(Condition::Rate), vec![sink]);
    let list = redrive.check_alerts_within(&watching, Duration::ZERO).await.expect("checked");
    assert_eq!(list.alerts.len(), 2);
    assert!(list.sinks[0].view.waiting >= 1, "at most the first was told");
    let list = redrive.check_alerts(&watching).await.expect("checked");
    assert_eq!(list.sinks[0].view.waiting, 0);
}

#[tokio::test]
async fn deaths_that_a_wrong_clock_counted_in_the_future_fire_nothing() {
    let (redrive, clock) = redrive();
    let right = clock.now();
    clock.set(right + Duration::from_secs(86_400));
    bury(&redrive, "shop", 10, "price").await;
    clock.set(right);
    assert_eq!(firing(&redrive, &Watching::new(rules(Condition::Rate), Vec::new())).await, []);
}

/// What a sink was still to be told when an alert was snoozed waits for the end of that, and is told once then.
#[tokio::test]
async fn what_was_not_told_before_a_snooze_is_told_once_after_it() {
    let (redrive, clock) = redrive();
    let folder = tempfile::tempdir().expect("a folder");
    let told = folder.path().join("told");
    let path = told.display().to_string();
    let definition = SinkDefinition::Command {
        command: vec!["sh".into(), "-c".into(), format!("echo told >> {path}")],
        folder: None,
    };
    let sink = Sink::new("file", definition, Duration::from_secs(60));
    let policies = [("shop".parse().expect("a name"), Policy::default())].into();
    let watching = Watching::new(rules(Condition::Rate), vec![sink]).with_policies(policies);
    bury(&redrive, "shop", 10, "price").await;
    redrive.judge_alerts(&watching).await.expect("judged and posted, and not told");
    let key = redrive.find_alert("rate/shop").await.expect("it fires").alert.key;
    let until = redrive.now() + Duration::from_secs(600);
    let ada = Actor::new("ada", Via::Cli);
    redrive.care_for_alert(&key, &CareChange::Snooze { until, why: None }, &ada, None).await.expect("snoozed");
    firing(&redrive, &watching).await;
    assert!(!told.exists(), "nobody is told while it is snoozed");
    clock.advance(Duration::from_secs(601));
    for _ in 0..3 {
        firing(&redrive, &watching).await;
    }
    assert_eq!(std::fs::read_to_string(&told).expect("told"), "told\n");
    assert_eq!(redrive.find_alert("rate/shop").await.expect("there").alert.tellings, 1);
}

/// Who snoozes an alert hears nothing of it until then, however bad it gets; whoever was told of it before is told again if it fires
/// still.
#[tokio::test]
async fn a_snoozed_alert_is_told_again_when_its_time_is_over() {
    let (redrive, clock) = redrive();
    let sink = Sink::new("log", SinkDefinition::Log, Duration::from_secs(60));
    let policies = [("shop".parse().expect("a name"), Policy::default())].into();
    let watching = Watching::new(rules(Condition::Rate), vec![sink]).with_policies(policies);
    bury(&redrive, "shop", 10, "price").await;
    let fired = firing(&redrive, &watching).await.remove(0);
    let told = async || redrive.find_alert("rate/shop").await.expect("there").posted["log"].number;
    assert_eq!(told().await, 1);
    let ada = Actor::new("ada", Via::Cli);
    let until = redrive.now() + Duration::from_secs(600);
    let snooze = CareChange::Snooze { until, why: None };
    redrive.care_for_alert(&fired.key, &snooze, &ada, None).await.expect("snoozed");
    for minute in 1..10 {
        clock.advance(Duration::from_secs(60));
        bury(&redrive, "shop", 10, &format!("price{minute}")).await;
        firing(&redrive, &watching).await;
        assert_eq!(told().await, 1, "minute {minute}");
    }
    clock.advance(Duration::from_secs(60));
    let again = firing(&redrive, &watching).await.remove(0);
    assert_eq!((again.tellings, again.since), (2, fired.since), "the same incident");
    assert_eq!(told().await, 2);
    clock.advance(Duration::from_secs(60));
    firing(&redrive, &watching).await;
    assert_eq!(told().await, 2, "once");
    let refused = redrive.care_for_alert(&fired.key, &CareChange::Wake, &ada, None).await.expect_err("it is over");
    assert!(refused.to_string().contains("rate/shop") && refused.to_string().contains("not snoozed"), "{refused}");
}

/// What programs report late, and what is imported, happened in an hour that is past.
#[tokio::test]
async fn history_that_comes_late_fires_nothing() {
    let (redrive, _) = redrive();
    let config = Config::parse("", Path::new("redrive.toml")).expect("nothing");
    let setting = Setting::of(config, Some("memory:")).expect("a setting");
    let by = Actor::new("crawler", Via::Api);
    let reporting = Reporting { setting: &setting, vault: None, by: &by, may: |_: &_| true, is_limited: false };
    let letter = |n: u32, hours: u32| {
        let died_at = redrive.now() - Duration::from_secs(3_600) * hours;
        json!({"pipeline": "shop", "input": {"n": n}, "message": "no price", "died_at": died_at})
    };
    let reported =
        redrive.report_letters((0..20).map(|n| letter(n, 30)).collect(), &reporting).await.expect("reported");
    assert!(reported.iter().all(|reported| matches!(reported, Reported::New(_))), "{reported:?}");
    let old = json!([{"pipeline": "shop", "done": 100, "hour": redrive.now() - Duration::from_secs(30 * 3_600)}]);
    redrive.count_outcomes("crawler", 1, serde_json::from_value(old).expect("counts")).await.expect("counted");
    let exported: String = (0..20).map(|n| format!("{}\n", letter(100 + n, 0))).collect();
    let reading = setting.reading("shop".parse().expect("a name"));
    let (file, limits) = (("letters", Cursor::new(exported)), InputLimits::default());
    let imported = redrive.import_dead_file(file, (Some(reading), limits), &by, |_| {}).await;
    assert_eq!(imported.expect("imported").new, 20);
    let mut all = RuleBook::default();
    all.all.disk = None;
    assert_eq!(firing(&redrive, &Watching::new(all.clone(), Vec::new())).await, []);
    let now = redrive.report_letters((200..220).map(|n| letter(n, 0)).collect(), &reporting).await.expect("reported");
    assert_eq!(now.len(), 20);
    let fires = firing(&redrive, &Watching::new(all, Vec::new())).await;
    assert!(fires.iter().any(|alert| alert.condition == Condition::Rate), "{fires:?}");
}
