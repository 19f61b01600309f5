//! Jobs that hand on others, by commands and by `redrive.toml`.

use serde_json::{Value, json};

use crate::harness::Sandbox;

/// Hands on two items for each page.
const PAGES: &str = r#"
import json, sys
page = json.load(sys.stdin)["input"]["page"]
items = [{"pipeline": "items", "input": {"item": page * 10 + n}} for n in (1, 2)]
print(json.dumps({"result": {"page": page}, "enqueue": items}))
"#;

/// The same, for job after job.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    job = json.loads(line)
    items = [{"pipeline": "items", "input": {"item": job["input"]["page"] * 10}}]
    print(json.dumps({"id": job["id"], "result": {"ok": True}, "enqueue": items}), flush=True)
"#;

fn sandbox(hand_on: &str, script: &str, mode: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("pages.py", script);
    sandbox.write(
        "redrive.toml",
        format!(
            "[pipeline.pages]\ncommand = [\"python3\", \"pages.py\"]\nout = \"pages.jsonl\"\nmode = {mode:?}\n{hand_on}\n\
             [pipeline.items]\ncommand = [\"cat\"]\nout = \"items.jsonl\"\ntarget = \"warehouse\"\n"
        ),
    );
    sandbox.write("tasks.jsonl", "{\"page\":1}\n{\"page\":2}\n");
    sandbox
}

fn targets(sandbox: &Sandbox) -> Vec<Value> {
    let jobs = sandbox.redrive("job list --pipeline items --json").expect(0).json_lines();
    jobs.into_iter().map(|job| job["target"].clone()).collect()
}

#[test]
fn a_run_says_what_it_handed_on_and_how_to_work_on_that() {
    let sandbox = sandbox("hand_on = [\"items\"]", PAGES, "process");
    let ran = sandbox.redrive("run tasks.jsonl --pipeline pages").expect(0);
    let said = "handed on: 4 to pipeline items; 4 wait there: redrive work --drain --pipeline items";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert_eq!(targets(&sandbox), [json!("warehouse"), json!("warehouse"), json!("warehouse"), json!("warehouse")]);
    sandbox.redrive("work --drain --pipeline items").expect(0);
    assert_eq!(sandbox.ledger("items")["done"], 4);
    assert_eq!(sandbox.read("pages.jsonl").lines().count(), 2);
    let again = sandbox.redrive("run tasks.jsonl --pipeline pages").expect(0);
    assert!(!again.stderr.contains("handed on"), "{}", again.stderr);
    sandbox.assert_sound();
}

#[test]
fn what_a_server_does_not_let_a_worker_hand_on_is_not_said_to_be() {
    let here = sandbox("hand_on = [\"items\"]", PAGES, "process");
    let there = Sandbox::new();
    there.write("redrive.toml", "[pipeline.pages]\nhandler = \"remote\"\n[pipeline.items]\nhandler = \"remote\"\n");
    let serving = crate::network::Serving::start(&there, &[]);
    let mut command = here.command();
    command.env("REDRIVE_SERVER", serving.url()).env("XDG_STATE_HOME", there.path("state")).args([
        "run",
        "tasks.jsonl",
        "--pipeline",
        "pages",
        "--attempts",
        "1",
    ]);
    let ran = crate::harness::Ran::of(command.output().expect("redrive starts")).expect(3);
    assert!(!ran.stderr.contains("handed on:"), "{}", ran.stderr);
    assert!(ran.stderr.contains("takes a task that is done here for failed"), "{}", ran.stderr);
    assert_eq!((&there.ledger("pages")["dead"], &there.ledger("pages")["done"]), (&json!(2), &json!(0)));
    assert_eq!(there.dead()[0]["code"], "hand_on");
    there.assert_sound();
}

#[test]
fn a_settlement_that_a_server_refuses_fails_its_task() {
    let here = Sandbox::new();
    // More values than a body may have.
    let hand = "import json\nmany = [{'input': {'n': n, 'many': [1] * 24000}} for n in range(20)]\n\
                print(json.dumps({'enqueue': many}, separators=(',', ':')))\n";
    here.write("hand.py", hand);
    here.write("tasks.jsonl", "{\"n\":1}\n");
    let there = Sandbox::new();
    there.write("redrive.toml", "[pipeline.pages]\nhandler = \"remote\"\n");
    let serving = crate::network::Serving::start(&there, &[]);
    let mut command = here.command();
    command.env("REDRIVE_SERVER", serving.url()).env("XDG_STATE_HOME", there.path("state"));
    command.args(["run", "tasks.jsonl", "--pipeline", "pages", "--attempts", "1", "--", "python3", "hand.py"]);
    crate::harness::Ran::of(command.output().expect("redrive starts")).expect(3);
    let letter = &there.dead()[0];
    assert_eq!((&letter["reason"], &letter["code"]), (&json!("misconfigured"), &json!("settlement_refused")));
    assert!(letter["message"].as_str().is_some_and(|why| why.contains("JSON values")), "{letter}");
    there.assert_sound();
}

#[test]
fn a_persistent_command_hands_on() {
    let sandbox = sandbox("hand_on = [\"items\"]", SERVER, "persistent");
    let ran = sandbox.redrive("run tasks.jsonl --pipeline pages").expect(0);
    assert!(ran.stderr.contains("handed on: 2 to pipeline items"), "{}", ran.stderr);
    sandbox.redrive("work --drain").expect(0);
    assert_eq!(sandbox.ledger("items")["done"], 2);
    sandbox.assert_sound();
}

#[test]
fn hand_on_names_the_pipelines_that_jobs_may_go_to() {
    let refused = sandbox("hand_on = []", PAGES, "process");
    refused.redrive("run tasks.jsonl --pipeline pages").expect(3);
    let letter = &refused.dead()[0];
    assert_eq!((&letter["reason"], &letter["code"]), (&json!("misconfigured"), &json!("hand_on")));
    assert!(letter["message"].as_str().is_some_and(|why| why.contains("hand_on of pipeline pages")), "{letter}");
    refused.assert_sound();
    let unknown = sandbox("hand_on = [\"item\"]", PAGES, "process");
    unknown.redrive("run tasks.jsonl --pipeline pages").expect(2).complains("pipeline item, which is not in this file");
}

#[test]
fn a_replay_says_what_it_handed_on() {
    let sandbox = sandbox("hand_on = []", PAGES, "process");
    sandbox.redrive("run tasks.jsonl --pipeline pages").expect(3);
    let config = sandbox.read("redrive.toml").replace("hand_on = []", "hand_on = [\"items\"]");
    sandbox.write("redrive.toml", config);
    let replayed = sandbox.redrive("replay start --pipeline pages").expect(0);
    assert!(replayed.stderr.contains("handed on: 4 to pipeline items; 4 wait there"), "{}", replayed.stderr);
    sandbox.assert_sound();
}

crate::network::over_the_network! {
    kept: [a_persistent_command_hands_on],
    soak: [a_run_says_what_it_handed_on_and_how_to_work_on_that],
}
