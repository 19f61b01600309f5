//! While a target is on hold, failures of tasks that wait for another attempt are told, with the command that lets them go on.

use serde_json::Value;

use crate::harness::Sandbox;
use crate::pty::Terminal;

const CLOSE: &str = "redrive breaker close shop.example --pipeline shop";
const CRASH: &str = "× AttributeError scrape.py:12: 'NoneType' object has no attribute 'text'";

/// Sixty tasks of one target: of every five it fails four with a 503, and the user's own code the fifth.
fn failing() -> Sandbox {
    let sandbox = Sandbox::new();
    let crash = "Traceback (most recent call last):\\n  File \"/app/scrape.py\", line 12, in parse\\n    x.text\\nAttributeError: '\"'\"'NoneType'\"'\"' object has no attribute '\"'\"'text'\"'\"'\\n";
    let report = r#"{"failure":{"reason":"server_error","http_status":503,"message":"Service Unavailable"}}"#;
    sandbox.write(
        "scrape.sh",
        format!("if grep -q '\"n\":[0-9]*[05][,}}]'; then printf '{crash}' >&2; exit 1; fi\necho '{report}'; exit 1\n"),
    );
    sandbox.write("redrive.toml", "[pipeline.shop]\ncommand = [\"sh\", \"scrape.sh\"]\nconcurrency = 1\n");
    let task = |n: u32| format!("{{\"url\":\"https://shop.example/{n}\",\"n\":{n}}}\n");
    sandbox.write("tasks.jsonl", (0..60).map(task).collect::<String>());
    sandbox
}

/// The failures of a pipeline that are told, as programs read them.
fn causes(view: &Value) -> Vec<(&str, u64)> {
    let causes = view["causes"].as_array().expect("causes");
    causes
        .iter()
        .map(|cause| (cause["reason"].as_str().expect("a reason"), cause["count"].as_u64().expect("a number")))
        .collect()
}

#[test]
fn failures_of_tasks_that_are_retried_are_told_wherever_a_target_on_hold_is() {
    let sandbox = failing();
    let ended = sandbox.redrive("run tasks.jsonl --max-wait 0").expect(7).complains(CRASH).complains(CLOSE);
    assert!(ended.stderr.contains("× server_error 503: Service Unavailable"), "{}", ended.stderr);
    let status = sandbox.redrive("status --json").expect(0).json();
    let view = &status["retrying"][0];
    let found = causes(view);
    let retrying = &status["pipelines"]["shop"]["retrying"];
    assert_eq!(
        found.iter().map(|(reason, _)| *reason).collect::<Vec<_>>(),
        ["handler_error", "server_error"],
        "{view}"
    );
    assert_eq!((&Value::from(found[0].1 + found[1].1), &view["at_least"]), (retrying, &Value::from(false)), "{view}");
    for command in ["status", "cause list"] {
        let told = sandbox.redrive(command).expect(0).stdout;
        assert!(told.contains(&format!("shop retrying: {} {CRASH}", found[0].1)), "{told}");
        assert!(told.contains(CLOSE), "{told}");
    }
    let listed = sandbox.redrive("cause list --json").expect(0).json_lines();
    assert_eq!(listed.iter().filter(|line| line.get("id").is_some()).count(), 0, "they are no letters");
    assert_eq!(&listed[0]["retrying"], view);
    assert!(sandbox.redrive("cause list -p shop").expect(0).stdout.contains(CLOSE));
    sandbox.redrive(CLOSE.strip_prefix("redrive ").expect("a command")).expect(0);
    for command in ["status", "cause list", "status --json", "cause list --json"] {
        let told = sandbox.redrive(command).expect(0).stdout;
        assert!(!told.contains("AttributeError") && !told.contains("breaker close"), "{told}");
    }
}

#[test]
fn the_document_of_a_run_tells_what_is_retried() {
    let ended = failing().redrive("run tasks.jsonl --max-wait 0 --json --out r.jsonl").expect(7).json();
    assert_eq!(ended["retrying"]["causes"][0]["place"], "scrape.py:12", "{ended}");
    assert_eq!(ended["retrying"]["targets"][0], "shop.example", "{ended}");
}

#[test]
fn the_bar_tells_what_is_retried_and_the_command_below_it_on_80_columns() {
    let sandbox = failing();
    let terminal = Terminal::new(&sandbox, 80).interrupt_after(CLOSE);
    let shown = terminal.run(&["run", "tasks.jsonl"]).expect(130).lines();
    assert!(
        shown.iter().any(|line| line.contains("retrying: ") && line.contains("AttributeError scrape.py:12")),
        "{shown:?}"
    );
    assert!(shown.iter().all(|line| line.chars().count() <= 80), "{shown:?}");
}

crate::network::over_the_network! {
    kept: [failures_of_tasks_that_are_retried_are_told_wherever_a_target_on_hold_is],
}
