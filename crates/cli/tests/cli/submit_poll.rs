//! `submit-poll` against a provider that misbehaves: what was paid for is not lost.

use serde_json::{Value, json};

use crate::harness::Sandbox;
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
    let (sandbox, _provider) = sandbox(|asked| match (asked.path.as_str(), asked.before % 3) {
        ("/submit", _) => accept(asked),
        (_, 0) => (200, HTML.into()),
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

/// What is JSON but not what the configuration says is a mistake in one of the two: submitting again would pay again.
#[test]
fn json_of_another_shape_goes_to_a_person_at_once() {
    let (sandbox, provider) = sandbox(|asked| match asked.path.as_str() {
        "/submit" => ok(json!({"error": 0, "taskId": "elsewhere"})),
        _ => ready(),
    });
    sandbox.redrive("run tasks.jsonl").expect(3);
    let letter = &sandbox.dead()[0];
    assert_eq!((&letter["reason"], &letter["attempts"]), (&json!("malformed_payload"), &json!(1)));
    assert_eq!(provider.count("/submit"), 1);
}
