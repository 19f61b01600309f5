//! `redrive pipeline`: pausing for every worker of every process, and where each value came from.

use serde_json::json;

use crate::harness::{Sandbox, eventually};

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", "[pipeline.shop]\ncommand = [\"echo\", \"{}\"]\nconcurrency = 1\nenv = { API_KEY = \"s3cret-of-mine\" }\n\n[pipeline.shop.retry]\nattempts = 2\n");
    sandbox.write("tasks.jsonl", (0..5).map(|n| format!("{{\"n\":{n}}}\n")).collect::<String>());
    sandbox
}

#[test]
fn a_paused_pipeline_rests_with_every_worker_until_it_is_resumed() {
    let sandbox = sandbox();
    sandbox.redrive("push tasks.jsonl").expect(0);
    let mut workers = [sandbox.spawn(&["work"]), sandbox.spawn(&["work"])];
    eventually("all are done", || sandbox.ledger("shop")["done"] == 5);
    let mut pause = sandbox.command();
    pause.args(["pipeline", "pause", "shop", "--why", "the shop moves"]).env("REDRIVE_ACTOR", "ada");
    assert!(pause.output().expect("redrive starts").status.success());
    sandbox.write("more.jsonl", (5..9).map(|n| format!("{{\"n\":{n}}}\n")).collect::<String>());
    sandbox.redrive("push more.jsonl").expect(0);
    // A third process, too; and it says why nothing happens.
    let ran = sandbox.redrive("work --drain --max-wait 1s").expect(7).complains("paused by ada since");
    assert!(
        ran.stderr.contains("the shop moves") && ran.stderr.contains("redrive pipeline resume shop"),
        "{}",
        ran.stderr
    );
    assert_eq!((&sandbox.ledger("shop")["done"], &sandbox.ledger("shop")["queued"]), (&5.into(), &4.into()));
    let listed = sandbox.redrive("pipeline list --json").expect(0).json_lines().remove(0);
    assert_eq!((&listed["paused"]["by"]["name"], &listed["workers"]), (&json!("ada"), &json!(2)));
    assert!(sandbox.redrive("status").expect(0).stdout.contains("paused: shop, by ada"));
    let resumed = sandbox.redrive("pipeline resume shop").expect(0).stdout;
    assert!(resumed.contains("4 queued; it was paused by ada") && resumed.contains("the shop moves"), "{resumed}");
    eventually("the rest is done", || sandbox.ledger("shop")["done"] == 9);
    sandbox.redrive("pipeline resume shop").expect(1).complains("pipeline shop is not paused");
    sandbox.redrive("pipeline pause shpo").expect(1).complains("no pipeline shpo: there are shop");
    workers.iter_mut().for_each(|worker| {
        worker.kill().expect("killed");
        worker.wait().expect("waited");
    });
    sandbox.assert_sound();
}

#[test]
fn who_retries_what_is_paused_is_told_and_nothing_happens() {
    let sandbox = sandbox();
    sandbox.redrive("run tasks.jsonl -p shop -- false").expect(3);
    sandbox.redrive("pipeline pause shop --until 2020-01-01").expect(2).complains("2020-01-01");
    sandbox.redrive("pipeline pause shop --until soon").expect(2).complains("soon");
    let paused = sandbox.redrive("pipeline pause shop --until 2h").expect(0).stdout;
    assert!(paused.contains("for every worker until 2"), "{paused}");
    sandbox.redrive("retry --pipeline shop").expect(1).complains("redrive pipeline resume shop");
    assert!(sandbox.redrive("replay list --json").expect(0).json_lines().is_empty());
    sandbox.redrive("pipeline resume shop").expect(0);
    sandbox.redrive("retry --pipeline shop").expect(0);
    assert_eq!(sandbox.ledger("shop")["done"], 5);
}

#[test]
fn every_value_says_where_it_came_from() {
    let sandbox = sandbox();
    sandbox.redrive("run tasks.jsonl").expect(0);
    let shown = sandbox.redrive("pipeline show shop --json").expect(0).json();
    let values = shown["definition"].as_array().expect("values");
    let of = |key: &str| values.iter().find(|value| value["key"] == key).unwrap_or_else(|| panic!("{key}"));
    assert_eq!(of("retry.attempts")["from"]["file"], json!({"file": "redrive.toml", "line": 7}));
    assert_eq!((&of("timeout")["from"], &of("timeout")["value"]), (&json!("default"), &json!("5m")));
    let text = sandbox.redrive("pipeline show shop").expect(0).stdout;
    assert!(text.contains("redrive.toml:7") && text.contains("default"), "{text}");
    assert!(!text.contains("s3cret-of-mine") && !shown.to_string().contains("s3cret-of-mine"), "{text}");

    sandbox.redrive("run tasks.jsonl -p adhoc -- cat").expect(0);
    let text = sandbox.redrive("pipeline show adhoc").expect(0).stdout;
    assert!(text.contains("what was run, version") && text.contains("cat"), "{text}");
    sandbox.redrive("pipeline show nobody").expect(1).complains("there are adhoc, shop");
}

crate::network::over_the_network! {
    kept: [who_retries_what_is_paused_is_told_and_nothing_happens],
    soak_but_work: [
        every_value_says_where_it_came_from,
        a_paused_pipeline_rests_with_every_worker_until_it_is_resumed,
    ],
}
