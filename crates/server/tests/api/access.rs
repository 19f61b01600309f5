//! Who may do what: every route with every role, and with pipelines of others.

use redrive_core::tokens::Role;
use redrive_server::{Route, all_routes};
use serde_json::{Value, json};

use crate::running::{Answer, Running};

/// A request to a route that means nothing in particular.
fn request(route: &Route) -> (String, Option<Value>) {
    let path = route.path.replace("{id}", "abcd").replace("{name}", "nobody");
    let body = (route.method != "GET").then(|| json!({}));
    (format!("{} {path}", route.method), body)
}

async fn ask(server: &Running, token: &str, route: &Route) -> Answer {
    let (request, body) = request(route);
    server.ask_as(Some(token), &request, &[], body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_is_for_its_role_and_those_above() {
    let server = Running::start().await;
    let mut tokens = vec![(Role::Admin, server.token("admin", Role::Admin, &[]).await)];
    for role in [Role::Viewer, Role::Worker, Role::Operator] {
        tokens.push((role, server.token(role.as_str(), role, &[]).await));
    }
    let server = server.restart().await;
    for route in all_routes() {
        let (request, body) = request(&route);
        assert_eq!(server.ask_as(None, &request, &[], body).await.status, 401, "{request} without a token");
        for (role, token) in &tokens {
            // What is followed has no end.
            if route.path == "/events" {
                continue;
            }
            let answer = ask(&server, token, &route).await;
            let told = route.method != "HEAD";
            let refused = answer.status == 403 && (!told || answer.refused().1 == "role_required");
            assert_eq!(refused, *role < route.role, "{request} as {role}: {}", answer.status);
            assert!(answer.status < 500, "{request} as {role}: {}", answer.status);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_let_near_some_pipelines_sees_nothing_of_others() {
    let server = Running::start().await;
    server.token("ops", Role::Admin, &[]).await;
    let limited = server.token("shop", Role::Admin, &["shop-*"]).await;
    let server = server.restart().await;
    let all = server.token("all", Role::Admin, &[]).await;
    let server = server.restart().await;
    for pipeline in ["shop-1", "bank"] {
        let letter = json!({ "pipeline": pipeline, "input": { "n": 1 }, "message": format!("no {pipeline}") });
        server.ask_as(Some(&all), "POST /letters", &[], Some(letter)).await.ok();
        let jobs = json!({ "pipeline": pipeline, "jobs": [{ "input": { "n": 2 } }] });
        server.ask_as(Some(&all), "POST /jobs", &[], Some(jobs)).await.ok();
    }
    for path in ["/jobs", "/letters", "/causes", "/pipelines", "/rounds", "/breakers", "/replays", "/status", "/alerts"]
    {
        let answer = server.ask_as(Some(&limited), &format!("GET {path}"), &[], None).await;
        assert_eq!(answer.status, 200, "{path}");
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!text.contains("bank"), "{path}: {text}");
    }
    let letters = server.ask_as(Some(&all), "GET /letters?pipeline=bank", &[], None).await.ok();
    let id = letters["items"][0]["id"].as_str().expect("an id").to_owned();
    let cause = letters["items"][0]["cause"].as_str().expect("a cause").to_owned();
    let foreign = [
        ("GET /letters?pipeline=bank".to_owned(), None),
        (format!("GET /letters/{id}"), None),
        (format!("GET /jobs/{id}"), None),
        (format!("GET /causes/{cause}"), None),
        ("GET /pipelines/bank".to_owned(), None),
        ("GET /reports?pipeline=bank".to_owned(), None),
        ("GET /activity?pipeline=bank".to_owned(), None),
        (format!("GET /payloads/{id}"), None),
        ("POST /jobs".to_owned(), Some(json!({ "pipeline": "bank", "jobs": [] }))),
        ("POST /jobs/cancel".to_owned(), Some(json!({ "ids": [id], "why": "x" }))),
        ("POST /letters/discard".to_owned(), Some(json!({ "letters": { "ids": [id] }, "why": "x" }))),
        ("POST /letters/discard".to_owned(), Some(json!({ "letters": { "pipeline": "bank" }, "why": "x" }))),
        ("POST /replays".to_owned(), Some(json!({ "letters": { "ids": [id] } }))),
        ("POST /pipelines/bank/pause".to_owned(), Some(json!({}))),
        ("POST /breakers/hold".to_owned(), Some(json!({ "target": "t", "pipeline": "bank" }))),
        ("POST /leases".to_owned(), Some(json!({ "pipelines": ["shop-1", "bank"] }))),
        (format!("POST /causes/{cause}/changes"), Some(json!({ "verb": "reopen" }))),
    ];
    for (request, body) in foreign {
        let answer = server.ask_as(Some(&limited), &request, &[], body).await;
        assert_eq!(answer.refused(), (403, "foreign_pipeline".to_owned()), "{request}");
    }
    for (request, body) in [
        ("GET /reports", None),
        ("GET /activity", None),
        ("GET /payloads", None),
        ("POST /letters/discard", Some(json!({ "letters": { "text": "no" }, "why": "x" }))),
        ("POST /breakers/hold", Some(json!({ "target": "t" }))),
    ] {
        let answer = server.ask_as(Some(&limited), request, &[], body).await;
        assert_eq!(answer.refused(), (403, "pipeline_required".to_owned()), "{request}");
    }
    let letter = json!({ "pipeline": "bank", "input": {}, "message": "no" });
    let told = server.ask_as(Some(&limited), "POST /letters", &[], Some(letter)).await.ok();
    assert_eq!(told["letters"][0]["why"]["code"], "foreign_pipeline", "{told}");
    assert_eq!(server.ask_as(Some(&limited), "GET /tokens", &[], None).await.status, 403);
}
