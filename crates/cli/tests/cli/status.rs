//! What `redrive status` shows beside the ledger.

use serde_json::json;

use crate::harness::{Sandbox, eventually};

/// Holds its target, whatever the job.
const HOLDS: &str = r#"echo '{"failure": {"reason": "blocked", "code": "challenge", "message": "prove that you are human", "disposition": "hold"}}'; exit 1"#;

#[test]
fn a_target_that_is_waited_for_is_shown_with_since_when_until_when_and_why() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"url\":\"https://sick.example/1\"}\n{\"url\":\"https://sick.example/2\"}\n");
    sandbox.run(&["run", "tasks.jsonl", "--max-wait", "0", "-j", "1", "--", "sh", "-c", HOLDS]).expect(7);
    let shown = sandbox.redrive("status").expect(0).stdout;
    for column in ["waiting", "since", "next try", "why"] {
        assert!(shown.contains(column), "{column} in:\n{shown}");
    }
    assert!(shown.contains("sick.example") && shown.contains("prove that you are human"), "{shown}");
    let status = sandbox.redrive("status --json").expect(0).json();
    let breaker = &status["breakers"][0];
    assert_eq!((&breaker["target"], &breaker["held"]), (&json!("sick.example"), &json!(2)));
    assert_eq!((&breaker["held_of_replays"], breaker["opened_at"].is_null()), (&json!(0), false));
}

#[test]
fn workers_are_shown_with_their_host_and_what_they_run() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", "[pipeline.shop]\ncommand = [\"cat\"]\n");
    sandbox.write("tasks.jsonl", "{}\n");
    sandbox.redrive("push tasks.jsonl").expect(0);
    let mut worker = sandbox.spawn(&["work"]);
    let workers = || sandbox.redrive("status --json").json_or_null()["workers"].clone();
    eventually("it is there", || workers()[0]["runs"][0]["pipeline"] == "shop");
    let (shown, listed) = (sandbox.redrive("status").expect(0).stdout, workers());
    let version = listed[0]["runs"][0]["definition"].as_str().expect("a version").to_owned();
    for text in ["host", "process", "runs", "alive", listed[0]["host"].as_str().expect("a host")] {
        assert!(shown.contains(text), "{text} in:\n{shown}");
    }
    assert!(shown.contains(&format!("shop {version}")), "{shown}");
    worker.kill().expect("killed");
    worker.wait().expect("waited");
}

/// Not on a terminal each page is printed below the one before, and only if something is news.
#[test]
fn what_changes_is_shown_again_until_enough_is_seen() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.write("more.jsonl", "{\"n\":2}\n");
    sandbox.redrive("push tasks.jsonl --pipeline shop").expect(0);
    let pages = std::fs::File::create(sandbox.path("pages")).expect("a file");
    let mut command = sandbox.command();
    let mut watching = command.args(["status", "--watch", "--json"]).stdout(pages).spawn().expect("redrive starts");
    // Of a page that is being printed the beginning may be there.
    let lines = || {
        let printed = sandbox.read("pages");
        crate::harness::json_lines(printed.rsplit_once('\n').map_or("", |(whole, _)| whole))
    };
    let seen = |count: u64| lines().last().is_some_and(|page| page["pipelines"]["shop"]["queued"] == count);
    eventually("the first page", || seen(1));
    sandbox.redrive("push more.jsonl --pipeline shop").expect(0);
    eventually("the next page", || seen(2));
    let pid = rustix::process::Pid::from_child(&watching);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("told to end");
    assert!(watching.wait().expect("ended").success());
    assert_eq!(lines().len(), 2, "a page for each change");
}

crate::network::over_the_network! {
    kept: [workers_are_shown_with_their_host_and_what_they_run],
    soak: [
        a_target_that_is_waited_for_is_shown_with_since_when_until_when_and_why,
        what_changes_is_shown_again_until_enough_is_seen,
    ],
}
