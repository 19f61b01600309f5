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

/// What is not kept, and why it need not be.
const ANEW: [(&str, &str); 11] = [
    ("POST /jobs/known", "nothing is changed by asking"),
    ("POST /payloads/verify", "nothing is changed by asking"),
    ("POST /tokens", "there is a secret in the answer: the same name again is refused"),
    ("POST /tries/{id}/cancel", "to cancel twice changes nothing, and what it came to is told anew"),
    ("POST /leases", "a lease ends by itself, and nobody is blamed"),
    ("POST /leases/give-up", "a job that is a letter by now waits for nothing"),
    ("POST /leases/start", "to begin twice changes nothing"),
    ("POST /leases/died", "to die twice changes nothing"),
    ("POST /leases/renew", "to renew twice changes nothing"),
    ("POST /leases/progress", "the last word counts"),
    ("POST /leases/settle", "known by the lease: what was settled by it is told to be"),
];

#[test]
fn all_that_is_done_may_have_a_key() {
    for route in redrive_server::all_routes().into_iter().filter(|route| route.method == "POST") {
        let named = format!("{} {}", route.method, route.path);
        let anew = ANEW.iter().any(|(known, _)| *known == named);
        assert_ne!(route.is_kept, anew, "{named}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_is_made_is_made_once_under_a_key() {
    let server = Running::start().await;
    let payload = json!({ "text": "<html>" });
    let tried = json!({ "pipeline": "shop", "input": { "n": 1 }, "message": "no", "payload": payload });
    let tried = server.post("/letters", tried).await.ok()["letters"][0]["id"].clone();
    let sent = server.report("shop", json!({ "n": 2 }), "no").await;
    let counts = json!([{ "pipeline": "shop", "done": 5 }]);
    // Neither an id nor a time of death tells these letters apart: the key alone does.
    let letter = json!({ "pipeline": "shop", "input": { "n": 3 }, "message": "no" });
    let cause = server.get("/causes").await.ok()["items"][0]["id"].as_str().expect("an id").to_owned();
    let note = format!("/causes/{cause}/changes");
    for (path, body, list) in [
        ("/jobs", json!({ "pipeline": "shop", "jobs": [{ "input": { "n": 4 } }] }), "/jobs"),
        ("/letters", letter, "/letters"),
        ("/rounds", json!({ "pipeline": "shop" }), "/rounds"),
        ("/tries", json!({ "letters": { "ids": [tried] } }), "/tries"),
        ("/replays", json!({ "letters": { "ids": [sent] } }), "/replays"),
        ("/outcomes", json!({ "client": "c", "seq": 1, "counts": counts }), "/reports"),
        (&note, json!({ "verb": "note", "text": "seen" }), "/activity"),
    ] {
        let key = format!("idempotency-key: {path}");
        let send = async || server.ask_as(None, &format!("POST {path}"), &[&key], Some(body.clone())).await;
        let first = send().await;
        assert!((200..300).contains(&first.status), "{path}: {first:?}");
        let (before, again) = (server.get(list).await.ok(), send().await);
        assert_eq!((again.header("idempotency-replayed"), &again.body), (Some("true"), &first.body), "{path}");
        let many = |list: &serde_json::Value| list["items"].as_array().map(Vec::len);
        assert_eq!(many(&before), many(&server.get(list).await.ok()), "{path}");
    }
}
