//! Alerts from what dies to what a sink receives: real servers, real commands, sinks that fail, hang and lead astray.

use std::sync::Arc;
use std::time::Duration;

use redrive::alerts::Watching;
use redrive::alerts::sinks::{Sink, SinkDefinition};
use redrive::config::{Config, Setting};
use redrive::{CancellationToken, FailureReport, Job, Pipeline, Reason, Redrive, json};
use redrive_core::alerts::{Alert, Condition, RuleBook};
use redrive_store::Options;
use redrive_store::contract::{SinkView, TakeNotice};
use redrive_store::sqlite::SqliteStore;
use serde_json::Value;

use self::in_memory::{as_time_passes, at_start, eventually, redrive};
use crate::support::bench::assert_no_secret;
use crate::support::misbehaving::{ClosedPort, Misbehaving};

use crate::support::in_memory;

/// Dies of every input that says so.
fn pipeline() -> Pipeline {
    let run = |job: Job| async move {
        match job.input.get("bad").and_then(Value::as_str) {
            Some(message) => Err(FailureReport::new(Reason::RejectedInput, message)),
            None => Ok(json!({})),
        }
    };
    Pipeline::new("shop", run).expect("a pipeline")
}

/// Works through jobs of which some die.
async fn work(redrive: &Redrive, good: usize, bad: usize, message: &str) {
    let inputs = (0..good).map(|n| json!({"n": n})).chain((0..bad).map(|n| json!({"n": n, "bad": message})));
    redrive.enqueue(&pipeline(), inputs).await.expect("accepted");
    redrive.drain(pipeline()).await.expect("drained");
}

fn webhook(name: &str, url: String) -> Sink {
    Sink::new(name, SinkDefinition::Webhook { url, headers: Vec::new() }, Duration::from_secs(20))
}

/// Only the share that dies is watched.
fn rate_only() -> RuleBook {
    let mut book = RuleBook::default();
    (book.all.jump, book.all.cause_letters, book.all.disk) = (None, None, None);
    book
}

fn watching(sinks: Vec<Sink>) -> Watching {
    Watching::new(rate_only(), sinks)
}

async fn firing(redrive: &Redrive, watching: &Watching) -> Vec<Alert> {
    let list = redrive.check_alerts(watching).await.expect("checked");
    list.alerts.into_iter().map(|view| view.alert).filter(Alert::is_firing).collect()
}

/// The bodies that a path received.
fn bodies(server: &Misbehaving, path: &str) -> Vec<Value> {
    let to = server.requests().into_iter().filter(|request| request["target"].as_str() == Some(path));
    to.map(|request| serde_json::from_str(request["body"].as_str().expect("text")).expect("JSON")).collect()
}

async fn sink(redrive: &Redrive, name: &str) -> SinkView {
    let sinks = redrive.store().list_sinks().await.expect("listed");
    sinks.into_iter().find(|sink| sink.name == name).expect("it was told something, or is to be")
}

#[tokio::test]
async fn what_fires_is_told_once_in_every_shape_and_when_it_is_over() {
    let server = Misbehaving::start();
    let (redrive, clock) = redrive();
    let headers = || vec![("X-Team".to_owned(), "shop".to_owned())];
    let time = Duration::from_secs(20);
    let pagerduty =
        SinkDefinition::PagerDuty { url: server.url("/echo?p"), routing_key: "r0uting".into(), headers: Vec::new() };
    let watching = watching(vec![
        Sink::new("hook", SinkDefinition::Webhook { url: server.url("/echo?w"), headers: headers() }, time),
        Sink::new("chat", SinkDefinition::Slack { url: server.url("/echo?s"), headers: headers() }, time),
        Sink::new("duty", pagerduty, time),
        Sink::new("log", SinkDefinition::Log, time),
    ]);
    assert_eq!(firing(&redrive, &watching).await, [], "nothing happened yet");
    work(&redrive, 30, 10, "no such page").await;
    let fires = firing(&redrive, &watching).await;
    assert_eq!(fires.iter().map(|alert| alert.condition).collect::<Vec<_>>(), [Condition::Rate]);
    assert_eq!(firing(&redrive, &watching).await.len(), 1, "it still fires");
    assert_eq!(server.count("/echo"), 3, "each is told once");
    clock.advance(Duration::from_secs(20 * 60));
    work(&redrive, 40, 0, "").await;
    assert_eq!(firing(&redrive, &watching).await, []);
    assert_eq!(firing(&redrive, &watching).await, []);
    assert_eq!(server.count("/echo"), 6);

    let told = bodies(&server, "/echo?w");
    assert_eq!((&told[0]["kind"], &told[1]["kind"]), (&json!("fired"), &json!("over")));
    assert_eq!((&told[0]["numbers"]["died"], &told[0]["numbers"]["ended"]), (&json!(10), &json!(40)));
    assert_eq!(told[0]["numbers"]["threshold"], json!(0.005));
    assert_eq!(told[0]["look"], "redrive cause list --pipeline shop");
    assert_eq!(told[0]["dedup_key"], told[1]["dedup_key"]);
    assert!(told[0]["summary"].as_str().is_some_and(|text| text.contains("25.0 %") && text.contains("0.50 %")));
    let sent = server.requests().into_iter().find(|request| request["target"] == "/echo?w").expect("sent");
    assert_eq!((&sent["headers"]["x-team"], &sent["method"]), (&json!("shop"), &json!("POST")));
    let key = told[0]["dedup_key"].as_str().expect("a key");
    assert_eq!(sent["headers"]["idempotency-key"], format!("{key}-1"));

    let events = bodies(&server, "/echo?p");
    assert_eq!((&events[0]["event_action"], &events[1]["event_action"]), (&json!("trigger"), &json!("resolve")));
    assert_eq!((&events[0]["dedup_key"], &events[1]["dedup_key"]), (&json!(key), &json!(key)));
    assert_eq!(bodies(&server, "/echo?s")[0]["blocks"][0]["text"]["type"], "plain_text");
}

#[tokio::test]
async fn a_sink_that_answers_500_for_ever_is_tried_less_often_and_seen_and_holds_up_nobody() {
    let server = Misbehaving::start();
    let (redrive, clock) = redrive();
    let ill = webhook("ill", server.url("/status/500"));
    let watching = watching(vec![ill, webhook("well", server.url("/echo"))]);
    work(&redrive, 10, 10, "no").await;
    assert_eq!(firing(&redrive, &watching).await.len(), 1);
    for _ in 0..3 {
        redrive.tell_sinks(&watching).await.expect("told");
    }
    assert_eq!((server.count("/status/500"), server.count("/echo")), (1, 1), "it is left alone for a while");
    let seen = sink(&redrive, "ill").await;
    assert_eq!((seen.failing_since, seen.failures, seen.waiting), (Some(at_start()), 1, 1));
    assert_eq!(seen.error.as_deref(), Some("it answered with HTTP 500: status 500"));
    let status = redrive.status().await.expect("read");
    assert_eq!(status.failing_sinks.iter().map(|sink| sink.name.as_str()).collect::<Vec<_>>(), ["ill"]);
    assert_eq!(status.alerts.len(), 1);
    for (secs, tries) in [(4, 1), (1, 2), (9, 2), (1, 3), (19, 3), (1, 4)] {
        clock.advance(Duration::from_secs(secs));
        redrive.tell_sinks(&watching).await.expect("told");
        assert_eq!(server.count("/status/500"), tries);
    }
    clock.advance(Duration::from_secs(86_400));
    redrive.tell_sinks(&watching).await.expect("told");
    let seen = sink(&redrive, "ill").await;
    assert_eq!((seen.waiting, seen.given_up), (0, 1), "after a day it is given up, and that is seen");
}

#[tokio::test]
async fn a_sink_that_recovers_is_told_what_it_missed_in_order() {
    let server = Misbehaving::start();
    let (redrive, clock) = redrive();
    let watching = watching(vec![webhook("s", server.url("/recovers/1"))]);
    work(&redrive, 10, 10, "no").await;
    firing(&redrive, &watching).await;
    clock.advance(Duration::from_secs(20 * 60));
    // It is judged by somebody who tells nobody, so that both wait.
    work(&redrive, 40, 0, "").await;
    redrive.judge_alerts(&watching).await.expect("judged");
    assert_eq!(sink(&redrive, "s").await.waiting, 2);
    redrive.tell_sinks(&watching).await.expect("told");
    let kinds: Vec<_> = bodies(&server, "/recovers/1").iter().map(|body| body["kind"].clone()).collect();
    assert_eq!(kinds, [json!("fired"), json!("fired"), json!("over")]);
    assert_eq!(sink(&redrive, "s").await.failing_since, None);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (server, elsewhere) = (Misbehaving::start(), Misbehaving::start());
    let (redrive, _) = redrive();
    let url = server.url(&format!("/redirect-to/{}", elsewhere.url("/echo")));
    let watching = watching(vec![webhook("s", url)]);
    work(&redrive, 10, 10, "no").await;
    firing(&redrive, &watching).await;
    let error = sink(&redrive, "s").await.error.expect("it fails");
    assert!(error.contains("it redirects (HTTP 302), which is not followed"), "{error}");
    assert_eq!(elsewhere.requests(), Vec::<Value>::new());
}

/// Neither what fails nor what hangs says where it was sent to, and the store does not know.
#[tokio::test]
async fn addresses_are_neither_said_nor_stored() {
    let (server, closed) = (Misbehaving::start(), ClosedPort::reserve());
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("redrive.db"), Options::create()).expect("opened");
    let redrive = Redrive::over(Arc::new(store));
    let secret = "pl4nted-s3cret";
    let urls = [
        server.url(&format!("/hang?token={secret}")),
        server.url(&format!("/redirect-to/{}/{secret}", server.url("/echo"))),
        server.url(&format!("/services/{secret}")),
        closed.url(&format!("/{secret}")),
        closed.url("/x").replace("http://", &format!("http://me:{secret}@")),
    ];
    let short = |url: String| SinkDefinition::Slack { url, headers: vec![("X-Key".into(), secret.into())] };
    let says = format!("echo 'cannot reach https://hooks.example/{secret}' >&2; exit 1");
    let says = ["sh", "-c", &says].map(str::to_owned).to_vec();
    let says = SinkDefinition::Command { command: says, folder: None };
    let mut sinks: Vec<_> = urls
        .into_iter()
        .enumerate()
        .map(|(n, url)| Sink::new(&format!("s{n}"), short(url), Duration::from_millis(300)))
        .collect();
    sinks.push(Sink::new("s5", says, Duration::from_secs(20)));
    let watching = watching(sinks);
    work(&redrive, 10, 10, "no").await;
    assert_eq!(firing(&redrive, &watching).await.len(), 1);
    for n in 0..6 {
        let error = sink(&redrive, &format!("s{n}")).await.error.expect("it fails");
        assert!(!error.contains(secret), "{error}");
    }
    let error = sink(&redrive, "s5").await.error.expect("it fails");
    assert!(error.contains("cannot reach ***"), "{error}");
    let list = redrive.list_alerts(&watching).await.expect("listed");
    assert!(!serde_json::to_string(&list).expect("JSON").contains(secret));
    assert!(!format!("{watching:?}").contains(secret));
    assert_no_secret(folder.path());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_deliver_once() {
    let server = Misbehaving::start();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("redrive.db");
    let open = || Redrive::over(Arc::new(SqliteStore::open(&path, Options::create()).expect("opened")));
    let (first, second) = (open(), open());
    let watching = || watching(vec![webhook("s", server.url("/echo"))]);
    let (one, two) = (watching(), watching());
    work(&first, 10, 10, "no").await;
    let (a, b) = tokio::join!(first.check_alerts(&one), second.check_alerts(&two));
    a.and(b).expect("checked");
    let (a, b) = tokio::join!(first.check_alerts(&one), second.check_alerts(&two));
    a.and(b).expect("checked");
    assert_eq!(server.count("/echo"), 1);
}

/// Whoever was killed after judging, after posting or while delivering: the next one tells it.
#[tokio::test]
async fn a_kill_between_judging_and_delivering_loses_nothing() {
    let server = Misbehaving::start();
    let (redrive, clock) = redrive();
    work(&redrive, 10, 10, "no").await;
    redrive.judge_alerts(&watching(Vec::new())).await.expect("judged by who knows no sink, or was killed then");
    let watching = watching(vec![webhook("s", server.url("/echo"))]);
    clock.advance(Duration::from_secs(20 * 60));
    work(&redrive, 40, 0, "").await;
    redrive.judge_alerts(&watching).await.expect("judged, and posted, and killed then");
    let kept = sink(&redrive, "s").await;
    assert_eq!((kept.waiting, server.count("/echo")), (2, 0), "that it fired is told though it is over by now");
    let now = redrive.now();
    let (until, believed_until) = (now + Duration::from_secs(30), now + Duration::from_secs(600));
    let take = TakeNotice { sink: "s".into(), until, believed_until, now };
    redrive.store().take_notice(take).await.expect("taken, and killed then").expect("a notice");
    redrive.tell_sinks(&watching).await.expect("told");
    assert_eq!(server.count("/echo"), 0, "somebody may be telling it");
    clock.advance(Duration::from_secs(31));
    redrive.tell_sinks(&watching).await.expect("told");
    let kinds: Vec<_> = bodies(&server, "/echo").iter().map(|body| body["kind"].clone()).collect();
    assert_eq!(kinds, [json!("fired"), json!("over")]);
}

#[tokio::test]
async fn a_run_that_is_over_in_a_moment_is_judged_at_its_end() {
    let server = Misbehaving::start();
    let (redrive, _) = redrive();
    redrive.alerts().replace(Some(watching(vec![webhook("s", server.url("/echo"))])));
    work(&redrive, 10, 10, "no").await;
    assert_eq!(server.count("/echo"), 1);
    assert_eq!(redrive.status().await.expect("read").alerts.len(), 1);
}

/// The leader judges once a minute, and a sink that hangs stops no job.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_judge_and_tell_and_a_slow_sink_stops_no_job() {
    let server = Misbehaving::start();
    let (redrive, clock) = redrive();
    let slow = Sink::new(
        "slow",
        SinkDefinition::Webhook { url: server.url("/hang"), headers: Vec::new() },
        Duration::from_secs(60),
    );
    redrive.alerts().replace(Some(watching(vec![slow, webhook("s", server.url("/echo"))])));
    let (worker, stop) = (redrive.worker(vec![pipeline()]), CancellationToken::new());
    let hurry = worker.hurry();
    let working = tokio::spawn(worker.run(redrive::worker::Until::Stopped, stop.clone()));
    let inputs = |bad: bool| (0..20).map(move |n| json!({"n": n, "bad": bad.then_some("no")}));
    redrive.enqueue(&pipeline(), inputs(true)).await.expect("accepted");
    let name = "shop".parse().expect("a name");
    let dead = async || redrive.ledger(&name).await.is_ok_and(|ledger| ledger.dead == 20);
    eventually("they die", dead).await;
    let told = async |hanging: u32, well: u32| {
        // A look at the store for each second: whoever leads is answered before its term is over.
        redrive.ledger(&name).await.expect("read");
        server.count("/hang") >= hanging && server.count("/echo") == well
    };
    as_time_passes(&clock, "both sinks are told", async || told(1, 1).await).await;
    redrive.enqueue(&pipeline(), inputs(false)).await.expect("accepted");
    let done = async || redrive.ledger(&name).await.is_ok_and(|ledger| ledger.done == 20);
    eventually("jobs go on while the sink hangs", done).await;
    clock.advance(Duration::from_secs(20 * 60));
    redrive.enqueue(&pipeline(), (100..140).map(|n| json!({"n": n}))).await.expect("accepted");
    as_time_passes(&clock, "the other sink is told more while the first hangs", async || told(1, 2).await).await;
    stop.cancel();
    hurry.cancel();
    working.await.expect("no panic").expect("worked");
    let slow = sink(&redrive, "slow").await;
    assert_eq!(slow.error.as_deref(), Some("it had not answered when the worker ended"), "it is seen, and waited with");
}

fn command(name: &str, script: &str, timeout: Duration) -> Sink {
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    Sink::new(name, SinkDefinition::Command { command, folder: None }, timeout)
}

const HOSTILE: &str = "$(touch owned) `id`; \u{1b}[2J<!channel>\nsecond line\r\n\u{202e}& <https://evil.example|x>";

/// The text comes on standard input, and nothing that a stranger wrote is obeyed by anybody.
#[tokio::test]
async fn a_command_reads_harmless_text_and_nothing_of_it_is_in_its_arguments() {
    let server = Misbehaving::start();
    let (redrive, _) = redrive();
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let script = format!("cat > {}; tr '\\0' '\\n' < /proc/$$/cmdline > {}", path("text"), path("arguments"));
    let mut rules = RuleBook::default();
    (rules.all.rate, rules.all.jump, rules.all.disk) = (None, None, None);
    let slack = SinkDefinition::Slack { url: server.url("/echo"), headers: Vec::new() };
    let sinks = vec![command("c", &script, Duration::from_secs(20)), Sink::new("chat", slack, Duration::from_secs(20))];
    let watching = Watching::new(rules, sinks);
    work(&redrive, 0, 12, HOSTILE).await;
    let fires = firing(&redrive, &watching).await;
    assert_eq!(fires.iter().map(|alert| alert.condition).collect::<Vec<_>>(), [Condition::Cause]);
    let text = std::fs::read_to_string(path("text")).expect("it was told");
    assert_eq!(text.lines().count(), 3, "{text:?}");
    assert!(text.starts_with("redrive alert fired: shop: 12 tasks") && !text.contains(['\u{1b}', '\u{202e}', '\r']));
    let arguments = std::fs::read_to_string(path("arguments")).expect("written");
    assert!(!arguments.contains("shop") && !arguments.contains("channel"), "{arguments}");
    let chat = bodies(&server, "/echo")[0].to_string();
    assert!(!chat.contains(['<', '>']) && !chat.contains("\\u001b"), "{chat}");
}

/// What a file says, up to what each kind of sink gets, and nothing of it where the file does not say where the dashboard is.
#[tokio::test]
async fn what_is_told_leads_to_the_page_that_it_is_about_in_every_shape() {
    for (dashboard, link) in
        [("", None), ("dashboard = \"https://redrive.example/\"\n", Some("https://redrive.example"))]
    {
        let server = Misbehaving::start();
        let (redrive, _) = redrive();
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let script = format!("cat > {}; echo ${{REDRIVE_ALERT_URL-none}} > {}", path("text"), path("url"));
        let sink = |name: &str, kind: &str, rest: &str| format!("[alerts.sink.{name}]\nkind = \"{kind}\"\n{rest}\n");
        let url = |of: &str| format!("url = \"{}\"", server.url(of));
        let file = [
            format!("[alerts]\n{dashboard}[alerts.rules]\nrate = \"off\"\njump = \"off\"\ndisk = \"off\"\n"),
            sink("hook", "webhook", &url("/echo?w")),
            sink("chat", "slack", &url("/echo?s")),
            sink("duty", "pagerduty", &format!("routing_key = \"r0uting\"\n{}", url("/echo?p"))),
            sink("mail", "command", &format!("command = [\"sh\", \"-c\", {script:?}]")),
            "[pipeline.shop]\ncommand = [\"true\"]\n".to_owned(),
        ];
        let config = Config::parse(&file.concat(), &folder.path().join("redrive.toml")).expect("valid");
        let watching = Setting::of(config, Some("memory:")).expect("valid").watching();
        work(&redrive, 0, 12, HOSTILE).await;
        let fires = firing(&redrive, &watching).await;
        let cause = fires[0].finding.numbers["cause"].as_str().expect("an id").to_owned();
        let link = link.map(|at| format!("{at}/causes/{cause}"));

        let hook = &bodies(&server, "/echo?w")[0];
        assert_eq!(hook.get("url").and_then(Value::as_str), link.as_deref());
        let blocks = bodies(&server, "/echo?s")[0]["blocks"].as_array().expect("blocks").clone();
        let marked = blocks.get(1).map(|block| block["text"]["text"].clone());
        assert_eq!(marked, link.as_ref().map(|link| json!(format!("<{link}|Open in Redrive>"))));
        let links = bodies(&server, "/echo?p")[0].get("links").cloned();
        assert_eq!(links, link.as_ref().map(|link| json!([{"href": link, "text": "Open in Redrive"}])));
        let read = |name: &str| std::fs::read_to_string(path(name)).expect("it was told");
        let open = read("text").lines().nth(3).map(str::to_owned);
        assert_eq!(open, link.as_ref().map(|link| format!("open: {link}")));
        assert_eq!(read("url").trim(), link.as_deref().unwrap_or("none"));
    }
}

#[tokio::test]
async fn a_command_that_fails_or_hangs_says_so_and_leaves_nothing_running() {
    let (redrive, _) = redrive();
    let folder = tempfile::tempdir().expect("a folder");
    let pids = folder.path().join("pids");
    let hangs = format!("sleep 300 & echo $! >> {0}; echo $$ >> {0}; wait", pids.display());
    let watching = watching(vec![
        command("fails", "echo 'no such channel' >&2; exit 3", Duration::from_secs(20)),
        command("hangs", &hangs, Duration::from_millis(500)),
        command("deaf", "exec 0<&-; exit 0", Duration::from_secs(20)),
    ]);
    work(&redrive, 10, 10, "no").await;
    firing(&redrive, &watching).await;
    let error = sink(&redrive, "fails").await.error.expect("it fails");
    assert!(error.contains("exit status: 3") && error.contains("no such channel"), "{error}");
    let error = sink(&redrive, "hangs").await.error.expect("it fails");
    assert!(error.contains("longer than 500ms"), "{error}");
    assert_eq!(sink(&redrive, "deaf").await.error, None, "its exit code counts");
    let left = || {
        let text = std::fs::read_to_string(&pids).unwrap_or_default();
        let runs = |pid: &&str| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        text.lines().filter(runs).count()
    };
    eventually("they are ended", async || left() == 0).await;
}

/// A program that sends mail hands it to another and ends.
#[tokio::test]
async fn what_a_command_that_ended_well_left_running_goes_on() {
    let (redrive, _) = redrive();
    let folder = tempfile::tempdir().expect("a folder");
    let sent = folder.path().join("sent");
    let hands_over = format!("cat > /dev/null; (sleep 1; echo sent > {}) > /dev/null 2>&1 & exit 0", sent.display());
    let watching = watching(vec![command("mail", &hands_over, Duration::from_secs(20))]);
    work(&redrive, 10, 10, "no").await;
    firing(&redrive, &watching).await;
    eventually("it is sent", async || sent.exists()).await;
}

#[tokio::test]
async fn a_test_says_what_came_of_it() {
    let server = Misbehaving::start();
    let (redrive, _) = redrive();
    let watching = watching(vec![webhook("well", server.url("/echo")), webhook("ill", server.url("/status/404"))]);
    let tested = redrive.test_sinks(&watching, &[]).await.expect("tested");
    let errors: Vec<_> = tested.iter().map(|test| (test.sink.as_str(), test.error.as_deref())).collect();
    assert_eq!(errors, [("well", None), ("ill", Some("it answered with HTTP 404: status 404"))]);
    assert_eq!(bodies(&server, "/echo")[0]["kind"], "test");
    let unknown = redrive.test_sinks(&watching, &["other".to_owned()]).await.expect_err("unknown");
    assert_eq!(unknown.to_string(), "no sink other (there are: well, ill)");
    assert_eq!(redrive.store().list_sinks().await.expect("listed"), [], "nothing is kept of it");
}
