//! Last failures of jobs that wait for another attempt while a target is on hold, over the API and on the pages.

use redrive_core::tokens::Role;
use serde_json::{Value, json};

use crate::browsing::Browser;
use crate::running::Running;

/// A job of a pipeline that failed once, and whose target is held.
async fn waiting(server: &Running, pipeline: &str) {
    server.enqueue(pipeline, [json!({ "url": "https://shop.example/1" })]).await;
    let leased = server.post("/leases", json!({ "pipelines": [pipeline] })).await.ok();
    let failure = json!({ "message": "AttributeError: <none>", "error_type": "AttributeError",
                          "stack": "Traceback:\n  File \"/app/scrape.py\", line 12, in parse\n    x.text\n" });
    let failed = json!({ "lease": leased["leases"][0]["lease"], "verdict": "failed", "failure": failure });
    server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": [failed] })).await.ok();
    server.post("/breakers/hold", json!({ "target": "shop.example", "pipeline": pipeline })).await.ok();
}

/// What is told of each pipeline: its name, its target on hold, the place of its failure.
fn told(answer: &Value) -> Vec<[&str; 3]> {
    let views = answer["retrying"].as_array().map(Vec::as_slice).unwrap_or_default();
    let one = |view| ["/pipeline", "/targets/0", "/causes/0/place"].map(|at| text(view, at));
    views.iter().map(one).collect()
}

fn text<'a>(view: &'a Value, at: &str) -> &'a str {
    view.pointer(at).and_then(Value::as_str).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn status_and_causes_have_what_is_retried_of_pipelines_that_the_caller_may_see() {
    let server = Running::start().await;
    waiting(&server, "shop").await;
    waiting(&server, "mill").await;
    let both = [["mill", "shop.example", "scrape.py:12"], ["shop", "shop.example", "scrape.py:12"]];
    assert_eq!(told(&server.get("/status").await.ok()), both);
    assert_eq!(told(&server.get("/causes").await.ok()), both);
    assert_eq!(told(&server.get("/causes?pipeline=shop").await.ok()), both[1..]);
    assert!(told(&server.get("/causes?cursor=0").await.ok()).is_empty(), "it is on the first page");
    server.token("root", Role::Admin, &[]).await;
    let token = server.token("ada", Role::Operator, &["shop"]).await;
    for path in ["/status", "/causes"] {
        let answer = server.ask_as(Some(&token), &format!("GET {path}"), &[], None).await.ok();
        assert_eq!(told(&answer), both[1..], "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_with_held_targets_tell_what_is_retried() {
    let server = Running::start().await;
    waiting(&server, "shop").await;
    let browser = Browser::new(&server);
    for path in ["/", "/pipelines/shop"] {
        let page = browser.page(path).await;
        assert!(page.contains("1 × AttributeError scrape.py:12: &lt;none&gt;"), "{path}: {page}");
        assert!(page.contains("redrive breaker close shop.example --pipeline shop"), "{path}: {page}");
    }
    server.post("/breakers/close", json!({ "target": "shop.example" })).await.ok();
    assert!(!browser.page("/").await.contains("AttributeError"));
}
