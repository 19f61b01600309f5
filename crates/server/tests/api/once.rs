//! `Idempotency-Key`.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::browsing::{Browser, Form};
use crate::running::{Answer, Running};

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_sent_again_with_its_key_is_done_once() {
    let server = Running::start().await;
    let body = json!({ "pipeline": "shop", "jobs": [{ "input": { "n": 1 } }] });
    let send = async |body: Value| server.ask_as(None, "POST /jobs", &["idempotency-key: abc"], Some(body)).await;
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
async fn request_whose_answer_was_dropped_is_not_done_again() {
    let server = Running::start().await;
    let body = json!({ "pipeline": "shop", "jobs": [{ "input": { "n": 1 } }] });
    let send = async || server.ask_as(None, "POST /jobs", &["idempotency-key: abc"], Some(body.clone())).await;
    assert_eq!(send().await.status, 201);
    server.redrive.store().shorten_answers(0, 10).await.expect("dropped");
    assert_eq!(send().await.refused(), (409, "answer_dropped".to_owned()));
    assert_eq!(server.get("/jobs").await.ok()["items"].as_array().map(Vec::len), Some(1));
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

/// What makes something: a path, a body, and the list that has one more of it then.
async fn makers(server: &Running) -> Vec<(String, Value, &'static str)> {
    let payload = json!({ "text": "<html>" });
    let tried = json!({ "pipeline": "shop", "input": { "n": 1 }, "message": "no", "payload": payload });
    let tried = server.post("/letters", tried).await.ok()["letters"][0]["id"].clone();
    let sent = server.report("shop", json!({ "n": 2 }), "no").await;
    let counts = json!([{ "pipeline": "shop", "done": 5 }]);
    // Neither an id nor a time of death tells these letters apart: the key alone does.
    let letter = json!({ "pipeline": "shop", "input": { "n": 3 }, "message": "no" });
    let cause = server.get("/causes").await.ok()["items"][0]["id"].as_str().expect("an id").to_owned();
    vec![
        ("/jobs".to_owned(), json!({ "pipeline": "shop", "jobs": [{ "input": { "n": 4 } }] }), "/jobs"),
        ("/letters".to_owned(), letter, "/letters"),
        ("/rounds".to_owned(), json!({ "pipeline": "shop" }), "/rounds"),
        ("/tries".to_owned(), json!({ "letters": { "ids": [tried] } }), "/tries"),
        ("/replays".to_owned(), json!({ "letters": { "ids": [sent] } }), "/replays"),
        ("/outcomes".to_owned(), json!({ "client": "c", "seq": 1, "counts": counts }), "/reports"),
        (format!("/causes/{cause}/changes"), json!({ "verb": "note", "text": "seen" }), "/activity"),
    ]
}

/// The same but what has a number of its own, and is in no list.
async fn listed(server: &Running) -> Vec<(String, Value, &'static str)> {
    makers(server).await.into_iter().filter(|(path, ..)| path != "/outcomes").collect()
}

async fn send(server: &Running, path: &str, body: &Value) -> Answer {
    let key = format!("idempotency-key: {path}");
    server.ask_as(None, &format!("POST {path}"), &[&key], Some(body.clone())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_is_made_is_made_once_under_a_key() {
    let server = Running::start().await;
    for (path, body, list) in makers(&server).await {
        let first = send(&server, &path, &body).await;
        assert!((200..300).contains(&first.status), "{path}: {first:?}");
        let (before, again) = (server.get(list).await.ok(), send(&server, &path, &body).await);
        assert_eq!((again.header("idempotency-replayed"), &again.body), (Some("true"), &first.body), "{path}");
        let many = |list: &Value| list["items"].as_array().map(Vec::len);
        assert_eq!(many(&before), many(&server.get(list).await.ok()), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_client_left_is_done_and_its_answer_kept() {
    let server = Running::start().await;
    for (path, body, list) in listed(&server).await {
        let request = Request::post(format!("/api/v1{path}"))
            .header("host", server.address.to_string())
            .header("content-type", "application/json")
            .header("idempotency-key", &path)
            .body(Body::from(body.to_string()))
            .expect("a request");
        let before = known(&server, list).await;
        server.leave(request).await;
        let again = send(&server, &path, &body).await;
        again.ok();
        assert_eq!(again.header("idempotency-replayed"), Some("true"), "{path}");
        assert_eq!(known(&server, list).await, before + 1, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_server_did_is_not_done_again_under_its_key() {
    let mut server = Running::start().await;
    for (path, body, list) in listed(&server).await {
        let before = known(&server, list).await;
        // It ends before the answer is kept.
        server.refuse(&["keep_answer"]);
        assert_eq!(send(&server, &path, &body).await.status, 503, "{path}");
        let done = server.get(list).await.ok();
        server = server.restart().await;
        let again = send(&server, &path, &body).await;
        again.ok();
        assert_eq!(again.header("idempotency-replayed"), None, "{path}");
        assert_eq!(known(&server, list).await, before + 1, "{path}");
        let ids = |list: &Value| list["items"].as_array().expect("items").iter().map(|one| one["id"].clone()).collect();
        let [then, now]: [Vec<Value>; 2] = [ids(&done), ids(&server.get(list).await.ok())];
        assert_eq!(then, now, "{path}");
    }
    server.audit().await;
}

/// Requests by which people do something, each possible after those before it.
async fn deeds(server: &Running) -> Vec<(String, Value)> {
    let (first, second) = (server.report("shop", json!({ "n": 1 }), "no").await, json!({ "n": 2 }));
    let second = server.report("shop", second, "no").await;
    let job = server.enqueue("mill", [json!({ "n": 1 })]).await[0].clone();
    let cause = server.get("/causes").await.ok()["items"][0]["id"].as_str().expect("an id").to_owned();
    let started = server.post("/replays", json!({ "letters": { "ids": [first] } })).await.ok();
    let replay = started["replay"]["id"].as_str().expect("an id").to_owned();
    let (change, of_replay) = (format!("/causes/{cause}/changes"), |verb: &str| format!("/replays/{replay}/{verb}"));
    let target = json!({ "target": "t.example", "pipeline": "shop" });
    vec![
        (change.clone(), json!({ "verb": "assign", "owner": "ada" })),
        (change.clone(), json!({ "verb": "mute", "until": "7d" })),
        (change.clone(), json!({ "verb": "unmute" })),
        (change.clone(), json!({ "verb": "resolve", "why": "fixed" })),
        (change, json!({ "verb": "reopen" })),
        (of_replay("pause"), json!({})),
        (of_replay("resume"), json!({})),
        (of_replay("cancel"), json!({})),
        ("/pipelines/shop/pause".to_owned(), json!({ "why": "moving", "until": "2h" })),
        ("/pipelines/shop/resume".to_owned(), json!({})),
        ("/breakers/hold".to_owned(), target.clone()),
        ("/breakers/close".to_owned(), target),
        ("/letters/discard".to_owned(), json!({ "letters": { "ids": [second] }, "why": "gone" })),
        ("/jobs/cancel".to_owned(), json!({ "ids": [job], "why": "wrong" })),
        ("/pipelines/mill/forget".to_owned(), json!({})),
    ]
}

/// A deed is one transaction, and its key another. A server that is killed between the two has done it and does not know the answer: the
/// request runs again, and finds that there is nothing left to do.
#[tokio::test(flavor = "multi_thread")]
async fn deed_of_a_killed_server_is_not_done_again_under_its_key() {
    let mut server = Running::start().await;
    let noted = async |server: &Running| server.get("/activity?limit=100").await.ok()["items"].clone();
    for (at, (path, body)) in deeds(&server).await.into_iter().enumerate() {
        let key = format!("idempotency-key: {at}");
        let ask =
            async |server: &Running| server.ask_as(None, &format!("POST {path}"), &[&key], Some(body.clone())).await;
        server.refuse(&["keep_answer"]);
        assert_eq!(ask(&server).await.status, 503, "{path}");
        let done = noted(&server).await;
        server = server.restart().await;
        let again = ask(&server).await;
        assert!(matches!(again.status, 200..300 | 404 | 409), "{path} {body}: {again:?}");
        assert_eq!(noted(&server).await, done, "{path} {body} is done twice");
    }
    server.audit().await;
}

/// How many a list has.
async fn known(server: &Running, list: &str) -> usize {
    server.get(list).await.ok()["items"].as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_whose_client_left_and_one_of_a_killed_server_are_done_once() {
    let mut server = Running::start().await;
    server.report("shop", json!({ "n": 1 }), "no").await;
    let cause = server.get("/causes").await.ok()["items"][0]["id"].as_str().expect("an id").to_owned();
    let action = format!("/causes/{cause}/change");
    for (round, is_killed) in [false, true].into_iter().enumerate() {
        let browser = Browser::new(&server);
        let form = Form::of(&browser.page(&format!("{action}?verb=note")).await, &action);
        // No version tells that the cause was changed meanwhile: the key alone does.
        let filled = [("verb", "note"), ("text", "seen"), ("version", "")];
        let cookie = browser.cookie().expect("a cookie");
        if is_killed {
            server.refuse(&["keep_answer"]);
            assert_eq!(browser.post(&form, &filled).await.status, 503);
            server = server.restart().await;
        } else {
            let hidden = form.hidden.iter().filter(|(name, _)| name != "verb" && name != "version").cloned();
            let fields = hidden.chain(filled.map(|(name, value)| (name.to_owned(), value.to_owned())));
            let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
            let request = Request::post(&action)
                .header("host", server.address.to_string())
                .header("origin", format!("http://{}", server.address))
                .header("cookie", cookie.clone())
                .header("content-type", "application/x-www-form-urlencoded")
                .body(Body::from(body))
                .expect("a request");
            server.leave(request).await;
        }
        Browser::with_cookie(&server, &cookie).post(&form, &filled).await.leads_to();
        assert_eq!(known(&server, "/activity").await, round + 1, "killed: {is_killed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_another_server_runs_is_waited_for() {
    let first = Arc::new(Running::start().await);
    let second = Arc::new(first.beside().await);
    for (path, body, list) in listed(&first).await {
        let before = known(&first, list).await;
        let sent = |server: &Arc<Running>| {
            let (server, path, body) = (Arc::clone(server), path.clone(), body.clone());
            tokio::spawn(async move { send(&server, &path, &body).await })
        };
        let kept = first.hold("keep_answer");
        let one = sent(&first);
        kept.arrived().await;
        let begun = second.hold("begin_request");
        let mut other = sent(&second);
        begun.arrived().await;
        let begun_again = second.hold("begin_request");
        begun.release();
        tokio::select! {
            () = begun_again.arrived() => {}
            answer = &mut other => panic!("{path} was done twice: {answer:?}"),
        }
        kept.release();
        let one = one.await.expect("answered");
        begun_again.release();
        let other = other.await.expect("answered");
        assert_eq!((other.header("idempotency-replayed"), &other.body), (Some("true"), &one.body), "{path}");
        assert_eq!(known(&first, list).await, before + 1, "{path}");
    }
    first.audit().await;
}
