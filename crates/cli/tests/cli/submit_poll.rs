//! `submit-poll` against a provider that misbehaves: what was paid for is not lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::harness::{Sandbox, eventually};
use crate::scripted::{Asked, Scripted};

const HTML: &str = "<html><title>502</title>we will be back soon</html>";

/// A sandbox with one task for a provider that answers as told.
fn sandbox(answer: impl Fn(&Asked) -> (u16, String) + Send + Sync + 'static) -> (Sandbox, Scripted) {
    let (sandbox, provider) = (Sandbox::new(), Scripted::start(answer));
    let config = r#"
        [pipeline.solver]
        handler = "submit-poll"
        [pipeline.solver.retry]
        base = "10ms"
        attempts = 2
        [pipeline.solver.submit]
        url = "http://ADDRESS/submit"
        json = { page = "{page}" }
        read = { ready = { pointer = "/error", equals = [0] }, value = "/task", code = "/code" }
        [pipeline.solver.poll]
        url = "http://ADDRESS/poll"
        query = { id = "{task_id}" }
        [pipeline.solver.poll.read]
        ready = { pointer = "/state", equals = ["ready"] }
        pending = { pointer = "/state", equals = ["pending"] }
        value = "/token"
        code = "/code"
        [pipeline.solver.polling]
        every = "20ms"
        times = 3
        codes = "create-task"
    "#;
    sandbox.write("redrive.toml", config.replace("ADDRESS", &provider.address));
    sandbox.write("tasks.jsonl", "{\"page\":\"a\"}\n");
    (sandbox, provider)
}

fn ok(body: Value) -> (u16, String) {
    (200, body.to_string())
}

/// The task that the n-th submission gets.
fn accept(asked: &Asked) -> (u16, String) {
    ok(json!({"error": 0, "task": format!("t{}", asked.before + 1)}))
}

fn ready() -> (u16, String) {
    ok(json!({"state": "ready", "token": "solved"}))
}

#[test]
fn a_mistake_in_the_poll_request_shows_before_anything_is_paid_for() {
    let (sandbox, provider) = sandbox(accept);
    sandbox.write("redrive.toml", sandbox.read("redrive.toml").replace("{task_id}", "{taskid}"));
    sandbox.redrive("run tasks.jsonl").expect(3).complains("taskid");
    assert_eq!(provider.count("/submit"), 0);
}

#[test]
fn an_answer_that_cannot_be_read_costs_a_poll_and_not_the_task() {
    let (sandbox, provider) = sandbox(|asked| match (asked.path.as_str(), asked.before) {
        ("/submit", _) => accept(asked),
        (_, 0) => (200, HTML.into()),
        (_, 1) => (200, "{\"state\": \"rea".into()),
        _ => ready(),
    });
    let ran = sandbox.redrive("run tasks.jsonl").expect(0);
    assert_eq!(ran.json_lines()[0]["result"], "solved");
    assert_eq!((provider.count("/submit"), provider.count("/poll")), (1, 3));
    assert!(sandbox.redrive("payload list --json").expect(0).stdout.is_empty(), "it did not fail in the end");
    sandbox.assert_sound();
}

#[test]
fn a_provider_that_stays_unreadable_is_a_server_error_of_the_same_task() {
    let (sandbox, provider) = sandbox(|asked| match asked.path.as_str() {
        "/submit" => accept(asked),
        _ => (200, HTML.into()),
    });
    sandbox.redrive("run tasks.jsonl").expect(3);
    assert_eq!((provider.count("/submit"), provider.count("/poll")), (1, 6), "two attempts at one task");
    let letter = &sandbox.dead()[0];
    assert_eq!((&letter["reason"], &letter["code"]), (&json!("server_error"), &json!("bad_answer")));
    assert_eq!((&letter["attempts"], &letter["gate"]), (&json!(2), &json!("auto")));
    assert!(letter["message"].as_str().is_some_and(|text| text.contains("(task t1)")), "{letter}");
    let shown = sandbox.run(&["payload", "show", letter["id"].as_str().expect("an id")]).expect(0);
    assert_eq!(shown.stdout.trim(), HTML);
    sandbox.assert_sound();
}

#[test]
fn a_bad_answer_before_time_runs_out_is_kept_with_it() {
    let (sandbox, _provider) = sandbox(|asked| match (asked.path.as_str(), asked.before) {
        ("/submit", _) => accept(asked),
        // The first poll of each task; the first one is asked for once more between them.
        (path, 0 | 4) if path.starts_with("/poll") => (200, HTML.into()),
        _ => ok(json!({"state": "pending"})),
    });
    sandbox.redrive("run tasks.jsonl").expect(3);
    let letter = &sandbox.dead()[0];
    assert_eq!((&letter["reason"], &letter["code"]), (&json!("timeout"), &json!("out_of_polls")));
    let shown = sandbox.run(&["payload", "show", letter["id"].as_str().expect("an id")]).expect(0);
    assert_eq!(shown.stdout.trim(), HTML);
}

#[test]
fn an_unreadable_answer_to_a_submission_is_submitted_again() {
    let (sandbox, provider) = sandbox(|asked| match (asked.path.as_str(), asked.before) {
        ("/submit", 0) => (200, HTML.into()),
        ("/submit", _) => accept(asked),
        _ => ready(),
    });
    sandbox.redrive("run tasks.jsonl").expect(0);
    assert_eq!(provider.count("/submit"), 2);
    let job = &sandbox.redrive("job list --all --json").expect(0).json_lines()[0];
    assert_eq!(job["attempts"], 2);
}

/// What is limited for a target are requests: tasks that wait for their next poll are in nobody's way.
#[test]
fn sixteen_tasks_of_one_provider_are_polled_at_once() {
    let submitted = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (sandbox, provider) = sandbox(move |asked| match asked.path.as_str() {
        "/submit" => {
            submitted.fetch_add(1, Ordering::SeqCst);
            accept(asked)
        }
        _ if submitted.load(Ordering::SeqCst) < 16 => ok(json!({"state": "pending"})),
        _ => ready(),
    });
    sandbox.write("redrive.toml", sandbox.read("redrive.toml").replace("times = 3", "times = 500"));
    sandbox.write("tasks.jsonl", (1..=16).map(|n| format!("{{\"page\":\"{n}\"}}\n")).collect::<String>());
    let ran = sandbox.redrive("run tasks.jsonl").expect(0);
    assert_eq!(ran.stderr.lines().next(), Some("solver: tasks at once: 16, requests to one target: 4"));
    assert_eq!(provider.count("/submit"), 16);
}

/// What comes of asking for a task is not told as what came of submitting it: to send that again would pay again.
#[test]
fn each_exchange_is_exported_with_its_own_request() {
    let (sandbox, _provider) = sandbox(|asked| match (asked.path.as_str(), asked.before) {
        ("/submit", 0) => (200, HTML.into()),
        ("/submit", _) => accept(asked),
        _ => ok(json!({"state": "failed", "code": "ERROR_CAPTCHA_UNSOLVABLE"})),
    });
    sandbox.redrive("run tasks.jsonl").expect(3);
    let number = sandbox.dead()[0]["number"].clone();
    let har = sandbox.redrive(&format!("dead show {number} --har")).expect(0).json();
    let entries = har["log"]["entries"].as_array().expect("entries");
    let asked = |entry: &Value| {
        let url = entry["request"]["url"].as_str().expect("an address").to_owned();
        (entry["request"]["method"].clone(), url.rsplit_once('/').expect("a path").1.to_owned())
    };
    let expected = [(json!("POST"), "submit".to_owned()), (json!("GET"), "poll?id=t2".to_owned())];
    assert_eq!(entries.iter().map(asked).collect::<Vec<_>>(), expected);
    let curl = sandbox.redrive(&format!("dead show {number} --curl")).expect(0).stdout;
    assert!(curl.contains("/poll?id=t2") && !curl.contains("/submit"), "{curl}");
    sandbox.redrive("dead export --warc letters.warc.gz").expect(0);
    let warc = std::process::Command::new("gzip").arg("-dc").arg(sandbox.path("letters.warc.gz")).output();
    let warc = String::from_utf8_lossy(&warc.expect("gzip runs").stdout).into_owned();
    let requests: Vec<_> = warc.lines().filter(|line| line.ends_with(" HTTP/1.1")).collect();
    assert_eq!(requests, ["POST /submit HTTP/1.1", "GET /poll?id=t2 HTTP/1.1"]);
}

/// As with an answer that is no JSON, nobody knows whether the provider took the task.
#[test]
fn json_without_a_task_id_is_submitted_again() {
    let (sandbox, provider) = sandbox(|asked| match asked.path.as_str() {
        "/submit" => ok(json!({"error": 0, "taskId": "elsewhere"})),
        _ => ready(),
    });
    sandbox.redrive("run tasks.jsonl").expect(3);
    let letter = &sandbox.dead()[0];
    assert_eq!((&letter["reason"], &letter["code"]), (&json!("server_error"), &json!("bad_answer")));
    assert_eq!((&letter["attempts"], provider.count("/submit")), (&json!(2), 2));
}

/// A result of another shape is a mistake in the configuration or the provider: another task would only cost again.
#[test]
fn a_result_of_another_shape_goes_to_a_person() {
    let (sandbox, provider) = sandbox(|asked| match asked.path.as_str() {
        "/submit" => accept(asked),
        _ => ok(json!({"state": "ready", "elsewhere": 1})),
    });
    sandbox.redrive("run tasks.jsonl").expect(3);
    let letter = &sandbox.dead()[0];
    assert_eq!((&letter["reason"], &letter["attempts"]), (&json!("malformed_payload"), &json!(1)));
    assert_eq!(provider.count("/submit"), 1);
}

#[test]
fn a_task_that_is_stuck_is_asked_for_once_more_and_then_submitted_again() {
    let (sandbox, provider) = sandbox(|asked| match asked.path.as_str() {
        "/submit" => accept(asked),
        "/poll?id=t1" => ok(json!({"state": "pending"})),
        _ => ready(),
    });
    sandbox.redrive("run tasks.jsonl").expect(0);
    let asked: Vec<_> = provider.asked().into_iter().map(|asked| asked.path).collect();
    let first = ["/submit", "/poll?id=t1", "/poll?id=t1", "/poll?id=t1"];
    assert_eq!(asked, [&first[..], &["/poll?id=t1", "/submit", "/poll?id=t2"]].concat());
    let failure = &sandbox.redrive("job show 1 --json").expect(0).json()["failures"][0];
    assert_eq!((&failure["code"], &failure["task_id"]), (&json!("out_of_polls"), &json!("t1")));
}

#[test]
fn a_task_whose_table_calls_it_spent_is_submitted_again_at_once() {
    let (sandbox, provider) = sandbox(|asked| match asked.path.as_str() {
        "/submit" => accept(asked),
        "/poll?id=t1" => ok(json!({"state": "pending"})),
        _ => ready(),
    });
    sandbox.write("codes.json", r#"{"out_of_polls": {"reason": "timeout", "spent": true}}"#);
    sandbox.write("redrive.toml", sandbox.read("redrive.toml").replace("\"create-task\"", "\"codes.json\""));
    sandbox.redrive("run tasks.jsonl").expect(0);
    assert_eq!((provider.count("/submit"), provider.count("/poll")), (2, 4), "three of the first, one of the second");
}

#[test]
fn each_failure_after_the_submission_has_the_id_of_the_task() {
    let (sandbox, _provider) = sandbox(|asked| match (asked.path.as_str(), asked.before) {
        ("/submit", _) => accept(asked),
        (_, 0) => (503, HTML.into()),
        _ => ok(json!({"code": "ERROR_CAPTCHA_UNSOLVABLE"})),
    });
    sandbox.redrive("run tasks.jsonl").expect(3);
    let letter = &sandbox.dead()[0];
    let shown = sandbox.run(&["dead", "show", letter["id"].as_str().expect("an id"), "--json"]).expect(0).json();
    let of = |n: usize| (shown["failures"][n]["reason"].clone(), shown["failures"][n]["task_id"].clone());
    assert_eq!(of(0), (json!("server_error"), json!("t1")), "{shown}");
    assert_eq!(of(1).0, json!("unsolvable"), "{shown}");
    assert_eq!(of(1).1, letter["task_id"], "{shown}");
}

/// A provider that has no result until it is told to, and a sandbox whose task has run out of polls there.
fn out_of_polls(
    later: impl Fn(&Asked) -> (u16, String) + Send + Sync + 'static,
) -> (Sandbox, Scripted, Arc<AtomicBool>) {
    let is_later = Arc::<AtomicBool>::default();
    let told = Arc::clone(&is_later);
    let (sandbox, provider) = sandbox(move |asked| match asked.path.as_str() {
        "/submit" => accept(asked),
        _ if told.load(Ordering::SeqCst) => later(asked),
        _ => ok(json!({"state": "pending"})),
    });
    let config = sandbox.read("redrive.toml");
    sandbox.write("redrive.toml", config.replace("attempts = 2", "attempts = 1"));
    sandbox.redrive("run tasks.jsonl").expect(3);
    sandbox.write("redrive.toml", config);
    assert_eq!(provider.count("/submit"), 1);
    (sandbox, provider, is_later)
}

/// Starts a replay of everything once the provider answers as it does later.
fn replayed(sandbox: &Sandbox, is_later: &AtomicBool, options: &str) {
    is_later.store(true, Ordering::SeqCst);
    sandbox.redrive(&format!("replay start --pipeline solver {options}")).expect(0);
    assert_eq!(sandbox.ledger("solver")["done"], 1);
    sandbox.assert_sound();
}

#[test]
fn a_replay_asks_for_the_task_that_was_paid_for() {
    let (sandbox, provider, is_later) = out_of_polls(|_| ready());
    let letter = sandbox.dead().remove(0);
    assert_eq!((&letter["code"], &letter["task_id"]), (&json!("out_of_polls"), &json!("t1")));
    let shown = sandbox.run(&["dead", "show", letter["id"].as_str().expect("an id")]).expect(0).stdout;
    assert!(shown.lines().any(|line| line.contains("task id") && line.contains("t1")), "{shown}");
    replayed(&sandbox, &is_later, "");
    assert_eq!(provider.count("/submit"), 1, "it was paid for once");
}

#[test]
fn a_replay_that_is_killed_while_it_polls_pays_no_second_time() {
    let (sandbox, provider, is_later) = out_of_polls(|_| ready());
    sandbox.write("redrive.toml", sandbox.read("redrive.toml").replace("times = 3", "times = 10000"));
    for _ in 0..2 {
        let polls = provider.count("/poll");
        let start = ["replay", "start", "--pipeline", "solver"];
        let resume = ["replay", "resume", "last"];
        let is_first = sandbox.ledger("solver")["dead"] == 1;
        let mut child = sandbox.spawn(if is_first { &start } else { &resume });
        eventually("the replay polls", || provider.count("/poll") > polls + 2);
        child.kill().expect("killed");
        child.wait().expect("waited");
    }
    is_later.store(true, Ordering::SeqCst);
    sandbox.redrive("replay resume last").expect(0);
    // The stuck one, and the one that was submitted in its place before the first kill.
    assert_eq!((provider.count("/submit"), &sandbox.ledger("solver")["done"]), (2, &json!(1)));
    sandbox.assert_sound();
}

/// Whether the provider forgot the task or gave it up: asking again is of no use, so the same attempt submits anew.
#[test]
fn a_spent_id_is_submitted_anew_in_the_same_attempt() {
    for code in ["ERROR_NO_SUCH_CAPCHA_ID", "ERROR_CAPTCHA_UNSOLVABLE"] {
        let (sandbox, provider, is_later) = out_of_polls(move |asked| match asked.path.as_str() {
            "/poll?id=t1" => ok(json!({"code": code})),
            _ => ready(),
        });
        replayed(&sandbox, &is_later, "");
        assert_eq!(provider.count("/submit"), 2, "{code}");
        let job = &sandbox.redrive("job list --all --json").expect(0).json_lines()[0];
        assert_eq!(job["attempts"], 2, "{code}: one before, and the one that was replayed");
    }
}

#[test]
fn a_code_that_nobody_knows_does_not_spend_the_task() {
    let (sandbox, provider) = sandbox(|asked| match (asked.path.as_str(), asked.before) {
        ("/submit", _) => accept(asked),
        (_, 0) => ok(json!({"code": "ERROR_MOON_PHASE"})),
        _ => ready(),
    });
    sandbox.redrive("run tasks.jsonl").expect(3);
    assert_eq!(sandbox.dead()[0]["task_id"], "t1");
    replayed(&sandbox, &AtomicBool::default(), "");
    assert_eq!(provider.count("/submit"), 1);
}

#[test]
fn a_task_is_submitted_again_when_that_is_asked_for() {
    for options in ["--resubmit", "--set page=b"] {
        let (sandbox, provider, is_later) = out_of_polls(|_| ready());
        let polls = provider.count("/poll");
        replayed(&sandbox, &is_later, options);
        let asked: Vec<_> = provider.asked().into_iter().filter(|asked| asked.path.starts_with("/poll")).collect();
        assert_eq!(provider.count("/submit"), 2, "{options}");
        assert!(asked[polls..].iter().all(|asked| asked.path == "/poll?id=t2"), "{options}: {asked:?}");
    }
}

#[test]
fn a_task_id_travels_with_its_letter() {
    let (sandbox, provider, is_later) = out_of_polls(|_| ready());
    let elsewhere = Sandbox::new();
    elsewhere.write("redrive.toml", sandbox.read("redrive.toml"));
    elsewhere.write("letters.jsonl", sandbox.redrive("dead export").expect(0).stdout);
    elsewhere
        .write("hostile.jsonl", elsewhere.read("letters.jsonl").replace("\"t1\"", &format!("{:?}", "x".repeat(513))));
    assert!(elsewhere.redrive("dead import hostile.jsonl").stderr.contains("task_id is longer than 512 bytes"));
    elsewhere.redrive("dead import letters.jsonl").expect(0);
    assert_eq!(elsewhere.dead()[0]["task_id"], "t1");
    replayed(&elsewhere, &is_later, "");
    assert_eq!(provider.count("/submit"), 1);
}

#[test]
fn an_id_that_cannot_be_kept_goes_to_a_person() {
    let (sandbox, provider) = sandbox(|_| ok(json!({"error": 0, "task": "x".repeat(513)})));
    sandbox.redrive("run tasks.jsonl").expect(3);
    let letter = &sandbox.dead()[0];
    assert_eq!((&letter["reason"], &letter["task_id"]), (&json!("malformed_payload"), &Value::Null));
    assert_eq!(provider.count("/submit"), 1);
}
