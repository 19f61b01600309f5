//! Requests that schemathesis makes of the document: what it allows, and what it does not. Whatever is asked, the server answers in time,
//! with no failure of its own, and with nothing that the document does not describe.

use std::process::Stdio;
use std::time::Duration;

use redrive_core::tokens::Role;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::running::{Running, tools};

/// Requests to each route besides those that cover its fields one by one, unless REDRIVE_TEST_FUZZ names another number.
const EACH: &str = "4";

/// How long an answer may take, in seconds.
const ANSWERED_WITHIN: &str = "30";

/// How long one request may go on before all is given up, in seconds: an answer that comes too late is named by then.
const GIVEN_UP_AFTER: &str = "60";

/// How long all of it may take for each request to each route, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// What an answer has to be. That data which the document allows is taken, and other data refused, is said by no schema alone.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance";

/// The token that it asks with.
const TOKEN: &str = "schemathesis";

/// Fills a store with something of everything, and says by what it is known, by the names of fields.
async fn filled(server: &Running, token: &str) -> Value {
    let post =
        async |path: &str, body: Value| server.ask_as(Some(token), &format!("POST {path}"), &[], Some(body)).await.ok();
    let input = json!({ "url": "https://shop.example/1" });
    let jobs: Vec<_> = (0..4).map(|n| json!({ "input": { "n": n } })).collect();
    let jobs = post("/jobs", json!({ "pipeline": "shop", "jobs": jobs })).await;
    let letter = json!({ "pipeline": "shop", "input": input, "message": "no", "payload": { "text": "<p>" } });
    let letter = post("/letters", letter).await["letters"][0]["id"].clone();
    let find = format!("GET /letters/{}", letter.as_str().expect("an id"));
    let cause = server.ask_as(Some(token), &find, &[], None).await.ok()["cause"].clone();
    let leased = post("/leases", json!({ "pipelines": ["shop"], "ttl": 3_600 })).await;
    let letters = json!({ "ids": [letter] });
    let tried = post("/tries", json!({ "letters": letters })).await["id"].clone();
    let replay = post("/replays", json!({ "letters": letters })).await["id"].clone();
    let (job, lease) = (jobs["jobs"][0]["id"].clone(), leased["leases"][0]["lease"].clone());
    json!({
        "token": TOKEN,
        "id": [job, letter, cause, tried, replay, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"],
        "name": ["shop"],
        "pipeline": ["shop"],
        "pipelines": [["shop"], ["shop", "books"]],
        "ids": [[job], [job, letter]],
        "letters": [{ "ids": [letter] }, { "pipeline": "shop" }],
        "op": [tried, replay],
        "worker": [leased["worker"]],
        "lease": [lease],
        "leases": [[lease]],
        "target": ["shop.example"],
        "version": [1],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_asked_is_answered_as_the_document_says() {
    let server = Running::start().await;
    let token = server.token(TOKEN, Role::Admin, &[]).await;
    let server = server.restart().await;
    let known = filled(&server, &token).await;
    let each = std::env::var("REDRIVE_TEST_FUZZ").unwrap_or_else(|_| EACH.to_owned());
    let folder = tempfile::TempDir::new().expect("a folder");
    let mut asking = Command::new("python3");
    asking
        .arg(tools().join("python/bin/schemathesis"))
        .args(["run", &format!("http://{}/api/v1/openapi.json", server.address)])
        .args(["--header", &format!("Authorization: Bearer {token}"), "--checks", CHECKS])
        .args(["--phases", "coverage,fuzzing", "--max-examples", &each, "--seed", "20261116", "--workers", "1"])
        .args(["--max-response-time", ANSWERED_WITHIN, "--request-timeout", GIVEN_UP_AFTER])
        // What is followed has no end.
        .args(["--exclude-path", "/api/v1/events"])
        .args([
            "--no-shrink",
            "--continue-on-failure",
            "--generation-database",
            "none",
            "--warnings",
            "off",
            "--no-color",
        ])
        .env("PYTHONPATH", tools().join("python"))
        .env("SCHEMATHESIS_HOOKS", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/schemathesis.py"))
        .env("REDRIVE_KNOWN", known.to_string())
        .env("NO_PROXY", "*")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let patience = PATIENCE * each.parse().expect("REDRIVE_TEST_FUZZ is a number");
    let asked = tokio::time::timeout(patience, asking.output()).await.expect("done in time").expect("python3 runs");
    let said = format!("{}{}", String::from_utf8_lossy(&asked.stdout), String::from_utf8_lossy(&asked.stderr));
    assert!(asked.status.success(), "{said}");
    let whoami = server.ask_as(Some(&token), "GET /whoami", &[], None).await;
    assert_eq!(whoami.status, 200, "it was let in until the end");
    server.audit().await;
}
