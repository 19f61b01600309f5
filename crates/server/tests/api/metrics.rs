//! The numbers that monitoring reads: that Prometheus takes the page, that counters only grow, that what names them is right.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use redrive_core::tokens::Role;
use redrive_server::FAMILIES;
use serde_json::{Value, json};

use crate::running::Running;

async fn page(server: &Running) -> String {
    let answer = server.get("~/metrics").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/plain; version=0.0.4; charset=utf-8")));
    String::from_utf8(answer.body).expect("text")
}

/// The value of a series.
fn value(page: &str, series: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

fn promtool(arguments: &[&str], input: &str) -> String {
    let mut command = Command::new("promtool");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        command.spawn().unwrap_or_else(|error| panic!("promtool, of the package prometheus, is needed: {error}"));
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("waited");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{input}");
    said
}

/// Work of every kind: done, dead, retried, recovered, failed again, discarded.
async fn work(server: &Running) {
    server.enqueue("shop", (0..3).map(|n| json!({ "n": n, "url": "https://shop.example/" }))).await;
    let leased = server.post("/leases", json!({ "pipelines": ["shop"], "max": 4 })).await.ok();
    let of = |n: usize| leased["leases"][n]["lease"].clone();
    let dead = json!({ "message": "no price", "reason": "schema_validation" });
    let jobs = json!([
        { "lease": of(0), "verdict": "done" },
        { "lease": of(1), "verdict": "failed", "failure": dead, "payload": { "text": "<html>" } },
        { "lease": of(2), "verdict": "failed", "failure": { "message": "reset", "reason": "timeout" } },
    ]);
    server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": jobs })).await.ok();
    // Whoever crashed comes alone next time, so it is of a pipeline of its own.
    server.enqueue("pills", [json!({ "n": 0 })]).await;
    let leased = server.post("/leases", json!({ "pipelines": ["pills"], "max": 1 })).await.ok();
    let crashed =
        json!([{ "lease": leased["leases"][0]["lease"], "verdict": "crashed", "failure": { "message": "SIGSEGV" } }]);
    server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": crashed })).await.ok();
    let letter = server.report("books", json!({ "n": 1 }), "KeyError: title").await;
    server.post("/letters/discard", json!({ "letters": { "ids": [letter] }, "why": "test" })).await.ok();
    server.get("/payloads/ffffffff/bytes").await;
    server.get("/letters?text=hunter2").await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_takes_the_page_and_counters_only_grow_over_restarts() {
    let server = Running::start().await;
    work(&server).await;
    let first = page(&server).await;
    assert_eq!(promtool(&["check", "metrics"], &first), "", "nothing to complain of");
    for (series, least) in [
        ("redrive_jobs_accepted_total{pipeline=\"shop\"}", 3.0),
        ("redrive_jobs_done_total{pipeline=\"shop\"}", 1.0),
        ("redrive_jobs_died_total{pipeline=\"shop\",reason=\"schema_validation\"}", 1.0),
        ("redrive_attempts_retried_total{pipeline=\"shop\",reason=\"timeout\"}", 1.0),
        ("redrive_jobs{pipeline=\"shop\",state=\"queued\"}", 1.0),
        ("redrive_jobs_discarded_total{pipeline=\"books\",reason=\"handler_error\"}", 1.0),
        ("redrive_ledger_balanced{pipeline=\"shop\"}", 1.0),
        ("redrive_vault_saves_total{result=\"saved\"}", 1.0),
        ("redrive_http_requests_total{route=\"/api/v1/leases/settle\",method=\"POST\",status=\"2xx\"}", 1.0),
        ("redrive_store_call_duration_seconds_count{call=\"settle\"}", 1.0),
    ] {
        assert!(value(&first, series).is_some_and(|value| value >= least), "{series}\n{first}");
    }
    assert!(value(&first, "redrive_oldest_dead_age_seconds{pipeline=\"shop\"}").is_some(), "{first}");
    assert!(!first.contains("hunter2") && !first.contains("shop.example"), "nothing of what jobs are about: {first}");
    let server = server.restart().await;
    work(&server).await;
    let second = page(&server).await;
    let of_store = |name: &str| {
        let of_process = ["redrive_http", "redrive_store", "redrive_vault", "redrive_access"];
        name.contains("_total") && !of_process.iter().any(|own| name.starts_with(own))
    };
    let counters = first.lines().filter(|line| of_store(line) && !line.starts_with('#'));
    for line in counters {
        let (series, before) = line.rsplit_once(' ').expect("a value");
        let (before, now) = (before.parse::<f64>().expect("a number"), value(&second, series));
        assert!(now.is_some_and(|now| now >= before), "{series} was {before}, and is {now:?}");
    }
    assert_eq!(value(&second, "redrive_jobs_done_total{pipeline=\"shop\"}"), Some(2.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_of_history_raise_no_counter_that_rules_are_about() {
    let server = Running::start().await;
    let ago = |hours: u64| server.redrive.now() - Duration::from_secs(hours * 3_600);
    let report = async |n: u32, hours: u64| {
        let letter = json!({ "pipeline": "shop", "input": { "n": n }, "message": "no", "died_at": ago(hours) });
        server.post("/letters", letter).await.ok();
    };
    for n in 0..20 {
        report(n, 48).await;
    }
    report(20, 0).await;
    for (seq, hours, done) in [(1, 48, 500), (2, 0, 40)] {
        let counts = json!([{ "pipeline": "shop", "hour": ago(hours), "done": done }]);
        server.post("/outcomes", json!({ "client": "crawler", "seq": seq, "counts": counts })).await.ok();
    }
    let text = page(&server).await;
    for (series, counted) in [
        ("redrive_jobs_died_total{pipeline=\"shop\",reason=\"handler_error\"}", 1.0),
        ("redrive_jobs_done_total{pipeline=\"shop\"}", 40.0),
        ("redrive_jobs_reported_late_total{pipeline=\"shop\",event=\"died\"}", 20.0),
        ("redrive_jobs_reported_late_total{pipeline=\"shop\",event=\"done\"}", 500.0),
    ] {
        assert_eq!(value(&text, series), Some(counted), "{series}\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn series_are_bounded_whatever_is_asked_and_reported() {
    let server = Running::start().await;
    let letters: Vec<_> = (0..230)
        .map(
            |n| json!({ "pipeline": format!("p{n}"), "input": { "n": n }, "target": format!("t{n}"), "message": "no" }),
        )
        .collect();
    server.post("/letters", json!(letters)).await.ok();
    for n in 0..30 {
        server.get(&format!("/nothing-{n}")).await;
        server.get(&format!("/jobs/{n}")).await;
    }
    let text = page(&server).await;
    let mut labels = BTreeMap::<&str, BTreeSet<&str>>::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let inside = line.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}')).map_or("", |(labels, _)| labels);
        for (name, value) in inside.split("\",").filter_map(|label| label.split_once("=\"")) {
            labels.entry(name).or_default().insert(value.trim_end_matches('"'));
        }
    }
    assert_eq!(labels["pipeline"].len(), 200, "of 230");
    assert_eq!(value(&text, "redrive_pipelines_left_out"), Some(30.0));
    assert!(labels["route"].len() < 10, "{:?}", labels["route"]);
    assert!(!text.contains("nothing-") && !text.contains("t17"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_let_near_some_pipelines_reads_numbers_of_no_other() {
    let server = Running::start().await;
    server.report("shop", json!({ "n": 1 }), "no").await;
    let letter = server.report("bank", json!({ "n": 1 }), "no").await;
    server.post("/replays", json!({ "letters": { "ids": [letter] } })).await.ok();
    server.enqueue("bank", [json!({ "n": 2 })]).await;
    server.post("/leases", json!({ "pipelines": ["bank"] })).await.ok();
    server.redrive.judge_alerts(&redrive::alerts::Watching::default()).await.expect("judged");
    let admin = server.token("ops", Role::Admin, &[]).await;
    let limited = server.token("eve", Role::Viewer, &["shop"]).await;
    let server = server.restart().await;
    let page = async |token: &str| {
        let answer = server.ask_as(Some(token), "GET ~/metrics", &[], None).await;
        String::from_utf8(answer.body).expect("text")
    };
    let (all, theirs) = (page(&admin).await, page(&limited).await);
    assert!(theirs.contains("pipeline=\"shop\"") && !theirs.contains("bank"), "{theirs}");
    for series in ["redrive_replays_open{state=\"running\"}", "redrive_workers{kind=\"remote\"}"] {
        assert_eq!(value(&all, series), Some(1.0), "{series}: {all}");
        assert_eq!(value(&theirs, series).unwrap_or(0.0), 0.0, "{series}: {theirs}");
    }
    let replayed = |text: &str| -> f64 {
        let left = ["pending", "running"].map(|state| format!("redrive_replay_letters{{state=\"{state}\"}}"));
        left.iter().filter_map(|series| value(text, series)).sum()
    };
    assert_eq!((replayed(&all), replayed(&theirs)), (1.0, 0.0), "{all}");
    for family in ["redrive_store_", "redrive_vault_", "redrive_http_", "redrive_sinks_failing", "redrive_access_log_"]
    {
        assert!(all.contains(family) && !theirs.contains(family), "{family}: {theirs}");
    }
    assert_eq!(server.get("~/metrics").await.status, 401);
}

fn document(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The families that a text names.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let family = |word: &str| {
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| word.strip_suffix(end));
        let is_histogram = |name: &str| FAMILIES.iter().any(|(known, kind, _)| *known == name && *kind == "histogram");
        base.filter(|base| is_histogram(base)).unwrap_or(word).to_owned()
    };
    words.filter(|word| word.starts_with("redrive_")).map(family).collect()
}

#[test]
fn the_dashboard_and_the_alert_rules_name_what_there_is() {
    let known: BTreeSet<_> = FAMILIES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    let rules = document("docs/prometheus/redrive-alerts.yml");
    let dashboard = document("docs/grafana/redrive.json");
    for (file, text) in [("the rules", &rules), ("the dashboard", &dashboard)] {
        let unknown: Vec<_> = named(text).difference(&known).cloned().collect();
        assert!(unknown.is_empty(), "{file} name what there is not: {unknown:?}");
    }
    let missing: Vec<_> = known.difference(&named(&dashboard)).cloned().collect();
    assert!(missing.is_empty(), "the dashboard shows nothing of {missing:?}");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let queries: Vec<_> = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets")).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/prometheus/redrive-alerts.yml");
    promtool(&["check", "rules", path.to_str().expect("a path")], "");
    // Each query of the dashboard is one that Prometheus understands.
    let rules = queries.iter().enumerate().map(|(n, query)| {
        let expr =
            query["expr"].as_str().expect("a query").replace("$__rate_interval", "5m").replace("$pipeline", ".*");
        json!({ "record": format!("query_{n}"), "expr": expr })
    });
    let rules = json!({ "groups": [{ "name": "dashboard", "rules": rules.collect::<Vec<_>>() }] });
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("dashboard.yml");
    std::fs::write(&file, rules.to_string()).expect("written");
    promtool(&["check", "rules", file.to_str().expect("a path")], "");
}

/// Both windows: a burst within a quarter of an hour, and a pipeline with 288 tasks a day of which one in a hundred dies.
#[test]
fn the_alert_rules_fire_for_a_burst_and_for_a_slow_loss() {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/prometheus/redrive-alerts.yml");
    let pipeline = |name: &str, died: &str, done: &str| {
        let series = |family: &str, values: &str| json!({ "series": format!("redrive_{family}{{pipeline=\"{name}\"}}"), "values": values });
        [series("jobs_died_total", died), series("jobs_done_total", done), series("letters_recovered_total", "0x600")]
    };
    // A value every five minutes.
    let input = [
        pipeline("burst", "0x390 6x10 12x10 18x10", "0+100x600"),
        pipeline("slow", "0x95 1x95 2x95 3x95 4x95 5x95", "0+1x600"),
        pipeline("well", "0x95 1x190 2x190 3x90", "0+1x600"),
    ];
    let expect = |name: &str, pipelines: &[(&str, &str)]| {
        let fires = |(pipeline, summary): &(&str, &str)| {
            let labels = json!({ "severity": "ticket", "pipeline": pipeline });
            json!({ "exp_labels": labels, "exp_annotations": { "summary": summary } })
        };
        let alerts: Vec<_> = pipelines.iter().map(fires).collect();
        json!({ "eval_time": "1965m", "alertname": name, "exp_alerts": alerts })
    };
    let test = json!({
        "interval": "5m",
        "input_series": input.concat(),
        "alert_rule_test": [
            expect("RedriveTasksDie", &[("burst", "More than 0.5 % of the tasks of burst die")]),
            expect("RedriveTasksDieSlowly", &[("slow", "More than 0.5 % of the tasks of slow died within a day")]),
        ],
    });
    let tests = json!({ "rule_files": [rules], "evaluation_interval": "1m", "tests": [test] });
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("tests.yml");
    std::fs::write(&file, tests.to_string()).expect("written");
    promtool(&["test", "rules", file.to_str().expect("a path")], "");
}

#[tokio::test(flavor = "multi_thread")]
async fn leasing_and_settling_many_jobs_takes_few_calls_to_the_store() {
    let server = Running::start().await;
    server.enqueue("shop", (0..60).map(|n| json!({ "n": n }))).await;
    let work = async |worker: Value, max: usize| {
        let asked = json!({ "pipelines": ["shop"], "max": max, "worker": worker });
        let leased = server.post("/leases", asked).await.ok();
        let jobs = leased["leases"].as_array().expect("leases").iter();
        let jobs: Vec<_> = jobs.map(|job| json!({ "lease": job["lease"], "verdict": "done", "result": 1 })).collect();
        assert_eq!(jobs.len(), max);
        server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": jobs })).await.ok();
        leased["worker"].clone()
    };
    // The first time it has yet to be put on the list, and breakers to be learned.
    let worker = work(Value::Null, 10).await;
    let before = page(&server).await;
    work(worker, 50).await;
    let after = page(&server).await;
    let calls = |verb: &str| {
        let series = format!("redrive_store_call_duration_seconds_count{{call=\"{verb}\"}}");
        value(&after, &series).unwrap_or(0.0) - value(&before, &series).unwrap_or(0.0)
    };
    let made = ["outlook", "lease", "leased", "settle", "get_job"].map(calls);
    assert_eq!(
        made,
        [1.0, 1.0, 1.0, 1.0, 0.0],
        "all that is to be known is asked for once, however many jobs there are"
    );
}
