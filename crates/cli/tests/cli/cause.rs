//! Causes: why things fail, what people say about it, and grouping checked on logs of one's own.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Sandbox, json_lines};

/// Two causes: five letters of one on two hosts, one of another.
fn with_causes() -> Sandbox {
    let sandbox = Sandbox::new();
    let handler = r#"
read -r job
case "$job" in *'"kind":"a"'*) echo "order $$ was lost after 3.$$ s" >&2 ;; *) echo "the site key is wrong" >&2 ;; esac
exit 65
"#;
    sandbox.write("fail.sh", handler);
    sandbox.write("redrive.toml", "[pipeline.p]\ncommand = [\"sh\", \"fail.sh\"]\n");
    let task =
        |n: u32, kind: &str| json!({"url": format!("https://h{}.example/{n}", n % 2), "kind": kind}).to_string() + "\n";
    let tasks: String = (0..5).map(|n| task(n, "a")).chain([task(9, "b")]).collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.redrive("run tasks.jsonl").expect(3);
    sandbox
}

fn list(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.redrive("cause list --json").expect(0).json_lines()
}

fn id(cause: &Value) -> &str {
    cause["id"].as_str().expect("an id")
}

#[test]
fn letters_are_grouped_and_say_why() {
    let sandbox = with_causes();
    let causes = list(&sandbox);
    assert_eq!(causes.len(), 2, "{causes:?}");
    assert_eq!((&causes[0]["dead"], &causes[0]["targets_count"]), (&json!(5), &json!(2)));
    assert!(causes[0]["title"].as_str().is_some_and(|title| title.contains("was lost")), "{}", causes[0]);
    let shown = sandbox.redrive(&format!("cause show {}", id(&causes[0]))).expect(0).stdout;
    for part in ["what is different", "why these belong together", "was lost", "for example", "replay start --cause"] {
        assert!(shown.contains(part), "{part} in:\n{shown}");
    }
    assert!(!shown.contains("replay try"), "no page was saved that it could work from:\n{shown}");
    let listed = sandbox.redrive(&format!("dead list --cause {} --json", id(&causes[0]))).expect(0).json_lines();
    assert_eq!(listed.len(), 5);
    let letter = listed[0]["id"].as_str().expect("an id");
    let explained = sandbox.redrive(&format!("cause explain {letter}")).expect(0).stdout;
    assert!(explained.contains(id(&causes[0])) && explained.contains("because it varies"), "{explained}");
    let table = sandbox.redrive("cause list").expect(0).stdout;
    assert!(table.contains("83.3 %") && table.contains("h0.example +1"), "{table}");
    sandbox.write("more.jsonl", "{\"n\":1}\n");
    sandbox.redrive("run more.jsonl --pipeline q --attempts 1 -- false").expect(3);
    let all = sandbox.redrive("cause list").expect(0).stdout;
    assert!(all.contains("71.4 %") && all.contains("shares are of 7 dead letters\n"), "{all}");
    let own = sandbox.redrive("cause list --pipeline p").expect(0).stdout;
    assert!(own.contains("83.3 %") && own.contains("shares are of 6 dead letters of p\n"), "{own}");
}

#[test]
fn people_have_their_say() {
    let sandbox = with_causes();
    let causes = list(&sandbox);
    let (most, other) = (id(&causes[0]), id(&causes[1]));
    sandbox.redrive(&format!("cause assign {most} ada")).expect(0);
    sandbox.run(&["cause", "note", most, "the supplier was told"]).expect(0);
    sandbox.redrive(&format!("cause mute {most} --until 7d")).expect(0);
    let detail = sandbox.redrive(&format!("cause show {most} --json")).expect(0).json();
    assert_eq!((&detail["owner"], &detail["state"]), (&json!("ada"), &json!("muted")));
    assert!(
        detail["notes"]
            .as_array()
            .is_some_and(|notes| notes.iter().any(|note| note["text"] == "the supplier was told"))
    );
    assert_eq!(sandbox.redrive("cause list --owner ada --json").expect(0).json_lines().len(), 1);
    sandbox.redrive(&format!("cause unmute {most}")).expect(0);
    sandbox.redrive(&format!("cause mute {most} --until 2020-01-01")).expect(2).complains("is over");

    sandbox.redrive(&format!("cause resolve {most} --why fixed")).expect(0);
    sandbox.write("again.jsonl", "{\"kind\":\"a\",\"url\":\"https://h0.example/new\"}\n");
    sandbox.redrive("run again.jsonl").expect(3);
    assert_eq!(list(&sandbox)[0]["state"], "regressed");

    sandbox.redrive(&format!("cause merge {other} {most}")).expect(0);
    assert_eq!((list(&sandbox).len(), &list(&sandbox)[0]["dead"]), (1, &json!(7)));
    sandbox.redrive(&format!("cause merge {most} {most}")).expect(1).complains("the same cause");
    let split = sandbox.redrive(&format!("cause split {most} --target h1.example")).expect(0).stdout;
    assert!(split.contains("dead"), "{split}");
    assert_eq!(list(&sandbox).len(), 2);
    sandbox.redrive(&format!("cause split {most} --target h1.example")).expect(1).complains("already");
    sandbox.redrive(&format!("cause split {most}")).expect(2);
    sandbox.redrive("cause show zzz").expect(2).complains("is not a cause");
    sandbox.assert_sound();
}

/// Any log can be explained: without a store, in its order, a line for a line.
#[test]
fn grouping_can_be_checked_on_ones_own_log() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", "this is not even a configuration");
    let mut child = sandbox.command();
    let mut child = child
        .args(["cause", "explain", "--stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let lines: &[&[u8]] = &[
        b"connection to 10.0.0.1:443 timed out after 30 s\n",
        b"connection to 10.0.0.2:443 timed out after 31 s\n",
        b"{\"message\": \"HTTP 403 for https://a.example/1\", \"http_status\": 403}\n",
        b"{\"message\": \"HTTP 403 for https://b.example/2\", \"http_status\": 403, \"extra\": [1]}\n",
        b"{\"message\": \"HTTP 429 for https://b.example/2\", \"http_status\": 429}\n",
        b"\n",
        b"{broken json 12\n",
        b"not \xff utf-8 7",
    ];
    child.stdin.take().expect("a pipe").write_all(&lines.concat()).expect("written");
    let output = child.wait_with_output().expect("ended");
    let said = json_lines(&String::from_utf8(output.stdout).expect("text"));
    assert_eq!(said.len(), lines.len());
    let key = |n: usize| said[n]["key"].as_str().expect("a key");
    assert_eq!(key(0), key(1));
    assert_eq!(key(2), key(3));
    assert_ne!(key(3), key(4));
    assert!(said[0]["masked"].as_array().is_some_and(|masked| !masked.is_empty()), "{}", said[0]);
    assert!(said[0]["template"].as_str().is_some_and(|template| template.contains("timed out")));
}

crate::network::over_the_network! {
    kept: [people_have_their_say],
    soak: [letters_are_grouped_and_say_why, grouping_can_be_checked_on_ones_own_log],
}
