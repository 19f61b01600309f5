//! The workers in other languages that ship as examples, as they are.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use redrive_core::tokens::Role;
use serde_json::json;
use tokio::process::{Child, Command};

use crate::running::Running;

fn spawn(program: &str, file: &str, server: &Running, token: &str) -> Child {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/remote").join(file);
    let mut command = Command::new(program);
    command.arg(file).args(["shop", "--until-empty"]).kill_on_drop(true).stdin(Stdio::null());
    command.env("REDRIVE_SERVER", format!("http://{}", server.address)).env("REDRIVE_TOKEN", token);
    command.spawn().unwrap_or_else(|error| panic!("{program} is needed for this test: {error}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_in_python_and_javascript_share_the_work() {
    let config = "[pipeline.shop]\nhandler = \"remote\"\n[pipeline.shop.retry]\nattempts = 1\n";
    let server = Running::with(config).await;
    let titles = (0..40).map(|n| json!({ "n": n, "title": format!("title {n}") }));
    let bad = (0..2).map(|n| json!({ "n": n, "title": null }));
    server.enqueue("shop", titles.chain(bad)).await;
    server.token("ops", Role::Admin, &[]).await;
    let token = server.token("crawler", Role::Worker, &["sh*"]).await;
    let mut workers = [spawn("python3", "worker.py", &server, &token), spawn("node", "worker.mjs", &server, &token)];
    for worker in &mut workers {
        let ended = tokio::time::timeout(Duration::from_secs(120), worker.wait()).await.expect("it ends");
        assert!(ended.expect("waited").success());
    }
    let ledger = server.redrive.ledger(&"shop".parse().expect("a name")).await.expect("read");
    assert_eq!((ledger.done, ledger.dead, ledger.queued, ledger.leased), (40, 2, 0, 0));
    assert!(server.redrive.store().audit().await.expect("audited").problems.is_empty());
}
