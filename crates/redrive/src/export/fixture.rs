//! A dead letter for the tests of all formats.

use redrive_core::dead::DeadLetter;
use serde_json::{Value, json};

use super::HttpRequest;

/// A letter that failed three times: no answer, an answer with this response, and a file of a command.
pub(super) fn letter(response: &Value, size_bytes: usize) -> DeadLetter {
    let failure = |attempt: u32, reason: &str, payload: Value| {
        json!({
            "at": format!("2025-11-15T14:02:0{attempt}.500Z"), "attempt": attempt, "replay": 0, "reason": reason,
            "code": format!("code_{attempt}"), "message": format!("it failed\r\nfor {reason}"), "duration_ms": 250,
            "payload": payload,
        })
    };
    let mut answer = json!({"hash": "11".repeat(32), "size_bytes": size_bytes, "truncated": true});
    answer.as_object_mut().expect("an object").extend(response.as_object().expect("an object").clone());
    let file = json!({"hash": "22".repeat(32), "size_bytes": 4});
    let letter = json!({
        "id": "0198f2c5-7d3e-7a10-9c51-0242ac120002", "pipeline": "catalog", "input": {"url": "https://h.example/a"},
        "reason": "handler_error", "message": "it failed", "attempts": 3, "crashes": 0, "replays": 0, "gate": "review",
        "accepted_at": "2025-11-15T14:02:00Z", "died_at": "2025-11-15T14:02:03.500Z",
        "failures": [
            failure(1, "timeout", Value::Null), failure(2, "blocked", answer), failure(3, "handler_error", file),
        ],
    });
    serde_json::from_value(letter).expect("a dead letter")
}

/// A response as hostile as one can be that still is one.
pub(super) fn response() -> Value {
    json!({
        "status": 403, "url": "https://h.example/ü?q=1#part", "elapsed_ms": 200,
        "headers": [
            ["Content-Type", "text/html"], ["set-cookie", "***"], ["Content-Encoding", "gzip"],
            ["Content-Length", "77"], ["X-Evil", "1\r\n\r\nHTTP/1.1 200 OK"], ["X-Evil\r\nName", "ü\u{0}"], ["", ""],
        ],
    })
}

/// The request that it answers.
pub(super) fn request() -> HttpRequest {
    HttpRequest {
        method: "POST".into(),
        url: "https://h.example/a?key=***&q=%C3%BC".into(),
        headers: vec![("Authorization".into(), "***".into()), ("X-A".into(), "1\r\n2".into())],
        body: Some(b"a=\xff\r\n\r\n".to_vec()),
    }
}
