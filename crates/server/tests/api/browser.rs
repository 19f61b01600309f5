//! The dashboard in a real browser: Chromium without a window, driven by Playwright. One browser runs all flows of `flows.mjs`.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::process::Command;

use crate::running::{Running, tools};

/// How long all flows may take together, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(300);

#[tokio::test]
async fn pages_live_in_a_browser_as_they_should() {
    let server = Running::start().await;
    for number in 0..12 {
        let url = format!("https://shop.example/products/{number}");
        server.report("shop", json!({ "url": url }), "SelectorNotFound: .price-tag-main (field price)").await;
    }
    let hostile = "</td><script>window.hacked=1</script><img src=//evil.example/x onerror=alert(1)> \u{202e}gpj";
    server.report("shop", json!({ "url": "https://odd.example/<svg onload=alert(1)>" }), hostile).await;
    let flows = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser/flows.mjs");
    let mut node = Command::new("node");
    node.arg(flows).arg(format!("http://{}", server.address)).env("TOOLS", tools().join("node/node_modules"));
    let run = node.stdin(Stdio::null()).kill_on_drop(true).output();
    let run = tokio::time::timeout(PATIENCE, run).await.expect("done in time").expect("node runs");
    let said = format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{said}");
    server.audit().await;
}
