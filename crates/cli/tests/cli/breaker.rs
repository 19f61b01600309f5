//! `redrive breaker`: people close, hold and probe, and workers of other processes hear of it.

use crate::harness::{Sandbox, eventually};

/// Two tasks of a solver that is out of money: its first answer holds the target.
fn held() -> Sandbox {
    let sandbox = Sandbox::new();
    let script = "test -e topped-up && echo '{}' || { echo '{\"failure\":{\"reason\":\"misconfigured\",\"message\":\"no money\",\"disposition\":\"hold\"}}'; exit 1; }\n";
    sandbox.write("solve.sh", script);
    sandbox.write("redrive.toml", "[pipeline.solver]\ncommand = [\"sh\", \"solve.sh\"]\ntarget = \"solver.example\"\n");
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
    sandbox.redrive("run tasks.jsonl --max-wait 0").expect(7);
    sandbox
}

fn breaker(sandbox: &Sandbox) -> serde_json::Value {
    sandbox.redrive("breaker list --json").expect(0).json_lines().pop().unwrap_or_default()
}

#[test]
fn topped_up_means_go_on() {
    let sandbox = held();
    let listed = sandbox.redrive("breaker list").expect(0).stdout;
    for part in ["solver.example", "open", "no money", "in "] {
        assert!(listed.contains(part), "{part} in:\n{listed}");
    }
    assert_eq!((&breaker(&sandbox)["state"], &breaker(&sandbox)["held"]), (&"open".into(), &3.into()));
    sandbox.write("topped-up", "");
    let mut worker = sandbox.spawn(&["work"]);
    let closed = sandbox.redrive("breaker close solver.example").expect(0).stdout;
    assert!(closed.contains("solver.example is asked again in pipeline solver: 3 tasks go on"), "{closed}");
    eventually("all are done", || sandbox.ledger("solver")["done"] == 3);
    worker.kill().expect("killed");
    worker.wait().expect("waited");
    sandbox.redrive("breaker close solver.example").expect(1).complains("no breaker of solver.example is open");
    assert_eq!(sandbox.redrive("breaker list").expect(0).stdout, "no target is waited for\n");
}

#[test]
fn only_tasks_of_the_pipelines_that_were_turned_are_counted_and_a_pause_is_told() {
    let sandbox = held();
    let pipeline =
        |name: &str| format!("[pipeline.{name}]\ncommand = [\"sh\", \"solve.sh\"]\ntarget = \"solver.example\"\n");
    sandbox.write("redrive.toml", pipeline("solver") + &pipeline("other"));
    sandbox.write("two.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    sandbox.redrive("run two.jsonl -p other --max-wait 0").expect(7);
    sandbox.redrive("pipeline pause other").expect(0);
    let closed = sandbox.redrive("breaker close solver.example --pipeline other").expect(0).stdout;
    assert!(closed.contains("pipeline other: 2 tasks go on\nbut pipeline other is paused"), "{closed}");
    let closed = sandbox.redrive("breaker close solver.example").expect(0).stdout;
    assert!(closed.contains("pipeline solver: 3 tasks go on") && !closed.contains("paused"), "{closed}");
}

#[test]
fn a_probe_goes_when_somebody_says_so() {
    let sandbox = held();
    sandbox.write("topped-up", "");
    let probed = sandbox.redrive("breaker probe solver.example").expect(0).stdout;
    assert!(probed.contains("one task of solver.example"), "{probed}");
    // One goes to see, then more, then all: the cool-down of half a minute is not waited for.
    sandbox.redrive("work --drain --max-wait 20s").expect(0);
    assert_eq!(sandbox.ledger("solver")["done"], 3);
    sandbox.redrive("breaker probe shop.example").expect(1).complains("no breaker of shop.example is open");
}

#[test]
fn a_target_is_held_with_who_and_why() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", "[pipeline.shop]\ncommand = [\"echo\", \"{}\"]\n");
    sandbox.write("tasks.jsonl", "{\"url\":\"https://shop.example/\"}\n{\"url\":\"https://other.example/\"}\n");
    sandbox.redrive("push tasks.jsonl").expect(0);
    let mut hold = sandbox.command();
    hold.args(["breaker", "hold", "shop.example", "--until", "2h", "--why", "they asked us to"]);
    let output = hold.env("REDRIVE_ACTOR", "ada").output().expect("redrive starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("shop.example is held in pipeline shop until 2"), "{said}");
    let ran = sandbox.redrive("work --drain --max-wait 1s").expect(7).complains("held by ada: they asked us to");
    assert!(ran.stderr.contains("shop.example"), "{}", ran.stderr);
    assert_eq!((&sandbox.ledger("shop")["done"], &sandbox.ledger("shop")["queued"]), (&1.into(), &1.into()));
    let held = breaker(&sandbox);
    assert_eq!((&held["held_by"]["by"]["name"], &held["held_by"]["why"]), (&"ada".into(), &"they asked us to".into()));
    assert!(sandbox.redrive("status").expect(0).stdout.contains("held by ada: they asked us to"));
    let listed = sandbox.redrive("breaker list").expect(0).stdout;
    assert!(listed.contains("in 2h"), "{listed}");
    sandbox.redrive("breaker hold shop.example --until soon").expect(2).complains("expected 2h (from now)");
    let closed = sandbox.redrive("breaker close SHOP.example").expect(0).stdout;
    assert!(closed.starts_with("shop.example is asked again in pipeline shop: 1 tasks go on"), "{closed}");
    sandbox.redrive("work --drain").expect(0);
    sandbox.redrive("breaker hold shop.example --until 2020-01-01").expect(2).complains("is over");
    sandbox.redrive("breaker hold shop.example -p nobody").expect(1).complains("no pipeline nobody: there are shop");
    sandbox.redrive("breaker hold shop.exmaple").expect(0).complains("no task of shop.exmaple is queued");
    assert!(sandbox.redrive("breaker list").expect(0).stdout.contains("never"), "until it is closed");
    sandbox.assert_sound();
}

crate::network::over_the_network! {
    kept: [a_probe_goes_when_somebody_says_so],
    soak: [a_target_is_held_with_who_and_why],
    soak_but_work: [
        topped_up_means_go_on,
        only_tasks_of_the_pipelines_that_were_turned_are_counted_and_a_pause_is_told,
    ],
}
