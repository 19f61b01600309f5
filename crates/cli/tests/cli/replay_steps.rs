//! Replays killed between their steps: while letters are chosen, while they are sent, while they are taken back.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Sandbox, kill_after, kills_wanted};

/// Enough letters that choosing and taking back take several steps.
const LETTERS: usize = 2_200;

/// Fails until the file `fixed` exists, without a process per letter.
const HANDLER: &str = r#"
import json, os, sys
for line in sys.stdin:
    job = json.loads(line)
    answer = {"result": 1} if os.path.exists("fixed") else {"failure": {"reason": "handler_error", "message": "broken"}}
    print(json.dumps({"id": job["id"], **answer}), flush=True)
"#;

fn newest_replay(sandbox: &Sandbox) -> Option<Value> {
    sandbox.redrive("replay list --json").expect(0).json_lines().into_iter().next()
}

#[test]
fn killed_between_any_two_steps_it_goes_on_or_lets_go() {
    let sandbox = Sandbox::new();
    let config =
        "[pipeline.p]\ncommand = [\"python3\", \"h.py\"]\nmode = \"persistent\"\n[pipeline.p.retry]\nattempts = 1\n";
    sandbox.write("redrive.toml", config);
    sandbox.write("h.py", HANDLER);
    let tasks: String = (0..LETTERS).map(|n| format!("{}\n", json!({"n": n}))).collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.redrive("run tasks.jsonl").expect(3);
    let mut kills = 0;
    for round in 0..kills_wanted() * 2 {
        let moment = Duration::from_millis(fastrand::u64(5..250));
        let args: &[&str] = match newest_replay(&sandbox).as_ref().and_then(|replay| replay["state"].as_str()) {
            Some("preparing" | "running" | "paused") if round % 2 == 0 => &["replay", "cancel", "last"],
            Some("preparing" | "running" | "paused" | "cancelling") => &["replay", "resume", "last"],
            _ => &["replay", "start", "--pipeline", "p", "--ramp", "none"],
        };
        kills += usize::from(kill_after(sandbox.spawn(args), moment));
        sandbox.assert_sound();
    }
    assert!(kills > 0, "nothing was killed");
    // Whatever was left behind, a worker brings to its end.
    sandbox.write("fixed", "");
    // One that was running may pause itself by what failed before the fix, and is resumed once more then.
    for _ in 0..2 {
        if newest_replay(&sandbox).is_some_and(|replay| replay["state"] == "paused") {
            sandbox.redrive("replay resume last --detach").expect(0);
        }
        sandbox.redrive("work --drain").expect(0);
    }
    let over = newest_replay(&sandbox).expect("a replay")["state"].clone();
    assert!(over == "done" || over == "cancelled", "{over}");
    let dead = sandbox.ledger("p")["dead"].as_i64().expect("a number");
    if dead > 0 {
        sandbox.run(&["replay", "start", "--pipeline", "p", "--force", "--why", "killed", "--ramp", "none"]).expect(0);
    }
    let ledger = sandbox.ledger("p");
    assert_eq!(
        (&ledger["done"], &ledger["dead"], &ledger["queued"]),
        (&json!(LETTERS), &json!(0), &json!(0)),
        "{ledger}"
    );
    sandbox.assert_sound();
}
