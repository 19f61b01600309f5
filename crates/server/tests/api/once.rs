//! `Idempotency-Key`.

use serde_json::json;

use crate::running::Running;

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_sent_again_with_its_key_is_done_once() {
    let server = Running::start().await;
    let body = json!({ "pipeline": "shop", "jobs": [{ "input": { "n": 1 } }] });
    let send =
        async |body: serde_json::Value| server.ask_as(None, "POST /jobs", &["idempotency-key: abc"], Some(body)).await;
    let (first, second) = tokio::join!(send(body.clone()), send(body.clone()));
    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!(first.body, second.body, "also at the same time");
    let third = send(body).await;
    assert_eq!((third.header("idempotency-replayed"), &third.body), (Some("true"), &first.body));
    assert_eq!(server.get("/jobs").await.ok()["items"].as_array().map(Vec::len), Some(1));
    let other = send(json!({ "pipeline": "shop", "jobs": [{ "input": { "n": 2 } }] })).await;
    assert_eq!(other.refused(), (422, "key_reused".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_may_be_done_yet_with_the_same_key() {
    let server = Running::start().await;
    let send = async || {
        let body = json!({ "why": "x" });
        server.ask_as(None, "POST /pipelines/shop/pause", &["idempotency-key: p"], Some(body)).await
    };
    assert_eq!(send().await.status, 404);
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    assert_eq!(send().await.status, 200);
}
