//! Traces: a task carries the `traceparent` that it was given to whoever works on it.

use serde_json::json;

use crate::harness::{Sandbox, json_lines};
use crate::served::{Served, answered};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn a_command_finds_the_trace_of_its_task() {
    let sandbox = Sandbox::new();
    let script = "read -r job; printf '{\"trace\": \"%s\"}' \"$TRACEPARENT\"";
    sandbox.write("redrive.toml", format!("[pipeline.shop]\ncommand = [\"sh\", \"-c\", {}]\n", json!(script)));
    sandbox.write("traced.jsonl", "{\"n\":1}\n");
    sandbox.write("plain.jsonl", "{\"n\":2}\n");
    sandbox.redrive(&format!("push traced.jsonl --traceparent {TRACE}")).expect(0);
    sandbox.redrive("push traced.jsonl --traceparent yesterday").expect(2).complains("expected a traceparent");
    let ran = sandbox.redrive("run plain.jsonl").expect(0);
    let mut traces: Vec<_> = json_lines(&ran.stdout).into_iter().map(|line| line["result"]["trace"].clone()).collect();
    traces.sort_by_key(ToString::to_string);
    assert_eq!(traces, [json!(""), json!(TRACE)], "{}", ran.stdout);
}

#[test]
fn a_trace_goes_over_the_network_with_its_task() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    let server = Served::start(&sandbox, "127.0.0.1:0", &[]);
    let push = format!("--server http://{} push tasks.jsonl --pipeline shop --traceparent {TRACE}", server.address);
    sandbox.redrive(&push).expect(0);
    let leased = answered(&server.address, "", "POST /leases", &json!({ "pipelines": ["shop"] }));
    assert_eq!(leased["leases"][0]["traceparent"], TRACE, "{leased}");
    server.stop();
}
