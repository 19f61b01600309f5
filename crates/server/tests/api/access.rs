//! Who may do what: every route with every role, and with pipelines of others.

use redrive::Entry;
use redrive::api::Method;
use redrive::api::wire::{Parts, split};
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

/// The example of an operation, as it is sent.
fn example(entry: &Entry) -> (String, Option<Value>) {
    let fields = serde_json::from_str(entry.example).expect("an example is a JSON object");
    let Parts { path, query, body } = split(&entry.route, fields);
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    let method = if entry.route.method == Method::Get { "GET" } else { "POST" };
    (format!("{method} /{}?{query}", path.join("/")), body)
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
        let hold = json!({ "target": "t", "pipeline": pipeline });
        server.ask_as(Some(&all), "POST /breakers/hold", &[], Some(hold)).await.ok();
    }
    for n in 0..6 {
        let letter = json!({ "pipeline": "bank", "input": { "n": 10 + n }, "message": "no bank" });
        server.ask_as(Some(&all), "POST /letters", &[], Some(letter)).await.ok();
    }
    server.redrive.judge_alerts(&redrive::alerts::Watching::default()).await.expect("judged");
    let mut asked = Asked::default();
    for path in [
        "/jobs",
        "/letters",
        "/causes",
        "/pipelines",
        "/rounds",
        "/replays",
        "/tries",
        "/status",
        "/alerts",
        "/alerts/past",
    ] {
        let answer = asked.ask(&server, &limited, (&format!("GET {path}"), None)).await;
        assert_eq!(answer.status, 200, "{path}");
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!text.contains("bank"), "{path}: {text}");
    }
    let letters = server.ask_as(Some(&all), "GET /letters?pipeline=bank", &[], None).await.ok();
    let id = letters["items"][0]["id"].as_str().expect("an id").to_owned();
    let cause = letters["items"][0]["cause"].as_str().expect("a cause").to_owned();
    let other = json!({ "pipeline": "bank", "input": { "n": 3 }, "message": "no bank" });
    let other = server.ask_as(Some(&all), "POST /letters", &[], Some(other)).await.ok()["letters"][0]["id"].clone();
    let started = Some(json!({ "letters": { "ids": [other] } }));
    let started = server.ask_as(Some(&all), "POST /replays", &[], started).await.ok();
    let replay = started["replay"]["id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    let saved =
        json!({ "pipeline": "bank", "input": { "n": 4 }, "message": "no bank", "payload": { "text": "<html>" } });
    let saved = server.ask_as(Some(&all), "POST /letters", &[], Some(saved)).await.ok()["letters"][0]["id"].clone();
    let tried = Some(json!({ "letters": { "ids": [saved] } }));
    let tried = server.ask_as(Some(&all), "POST /tries", &[], tried).await.ok();
    let tried = tried["id"].as_str().unwrap_or_else(|| panic!("{tried}")).to_owned();
    let leased = json!({ "pipelines": ["bank"], "ttl": 600 });
    let leased = server.ask_as(Some(&all), "POST /leases", &[], Some(leased)).await.ok();
    let (worker, lease) = (leased["worker"].clone(), leased["leases"][0]["lease"].clone());
    let kept = json!({ "worker": worker, "leases": [lease] });
    let foreign = [
        ("GET /letters/top?by=reason&pipeline=bank".to_owned(), None),
        (format!("GET /payloads/{id}/bytes"), None),
        (format!("GET /causes/{cause}/compare"), None),
        (format!("GET /causes/{cause}/differences"), None),
        ("GET /pipelines/bank/definition".to_owned(), None),
        ("POST /pipelines/bank/resume".to_owned(), Some(json!({}))),
        ("POST /pipelines/bank/forget".to_owned(), Some(json!({}))),
        ("POST /replays/plan".to_owned(), Some(json!({ "letters": { "ids": [id] } }))),
        (format!("GET /replays/{replay}"), None),
        (format!("GET /replays/{replay}/letters"), None),
        (format!("GET /replays/{replay}/waits"), None),
        (format!("POST /replays/{replay}/pause"), Some(json!({}))),
        (format!("POST /replays/{replay}/resume"), Some(json!({}))),
        (format!("POST /replays/{replay}/rate"), Some(json!({ "rate": "5/s" }))),
        ("POST /alerts/changes".to_owned(), Some(json!({ "keys": ["rate/bank"], "verb": "acknowledge" }))),
        (format!("POST /replays/{replay}/cancel"), Some(json!({}))),
        ("POST /tries".to_owned(), Some(json!({ "letters": { "ids": [id] } }))),
        (format!("GET /tries/{tried}"), None),
        (format!("GET /tries/{tried}/letters"), None),
        (format!("POST /tries/{tried}/cancel"), Some(json!({}))),
        ("POST /leases/give-up".to_owned(), Some(json!({ "worker": worker, "pipeline": "bank" }))),
        ("POST /leases/start".to_owned(), Some(kept.clone())),
        ("POST /leases/died".to_owned(), Some(json!({ "worker": worker }))),
        (format!("DELETE /workers/{}", worker.as_str().expect("an id")), None),
        ("POST /leases/renew".to_owned(), Some(kept)),
        ("POST /leases/progress".to_owned(), Some(json!({ "worker": worker, "lease": lease }))),
        (
            "POST /leases/settle".to_owned(),
            Some(json!({ "worker": worker, "jobs": [{ "lease": lease, "verdict": "done" }] })),
        ),
        (
            "POST /outcomes".to_owned(),
            Some(json!({ "client": "c", "seq": 1, "counts": [{ "pipeline": "bank", "done": 1 }] })),
        ),
        ("GET /letters?pipeline=bank".to_owned(), None),
        (format!("GET /letters/{id}"), None),
        (format!("GET /jobs/{id}"), None),
        (format!("GET /causes/{cause}"), None),
        ("GET /pipelines/bank".to_owned(), None),
        ("GET /results?pipeline=bank".to_owned(), None),
        ("GET /reports?pipeline=bank".to_owned(), None),
        ("GET /activity?pipeline=bank".to_owned(), None),
        (format!("GET /payloads/{id}"), None),
        ("POST /jobs".to_owned(), Some(json!({ "pipeline": "bank", "jobs": [] }))),
        ("POST /jobs/known".to_owned(), Some(json!({ "pipeline": "bank", "keys": [] }))),
        ("POST /rounds".to_owned(), Some(json!({ "pipeline": "bank" }))),
        ("POST /jobs/cancel".to_owned(), Some(json!({ "ids": [id], "why": "x" }))),
        ("POST /letters/discard".to_owned(), Some(json!({ "letters": { "ids": [id] }, "why": "x" }))),
        ("POST /letters/import".to_owned(), Some(json!({ "letters": [], "pipeline": "bank" }))),
        ("POST /payloads/verify".to_owned(), Some(json!({ "ids": [id] }))),
        ("POST /letters/discard".to_owned(), Some(json!({ "letters": { "pipeline": "bank" }, "why": "x" }))),
        ("POST /replays".to_owned(), Some(json!({ "letters": { "ids": [id] } }))),
        ("POST /pipelines/bank/pause".to_owned(), Some(json!({}))),
        ("POST /leases".to_owned(), Some(json!({ "pipelines": ["shop-1", "bank"] }))),
        (format!("POST /causes/{cause}/changes"), Some(json!({ "verb": "reopen" }))),
    ];
    for (request, body) in foreign {
        let answer = asked.ask(&server, &limited, (&request, body)).await;
        assert_eq!(answer.refused(), (403, "foreign_pipeline".to_owned()), "{request}");
    }
    for (request, body) in [
        ("GET /reports", None),
        ("GET /activity", None),
        ("GET /payloads", None),
        ("POST /payloads/verify", Some(json!({}))),
        ("POST /payloads/gc", Some(json!({}))),
        ("POST /letters/discard", Some(json!({ "letters": { "text": "no" }, "why": "x" }))),
        ("POST /breakers/hold", Some(json!({ "target": "t" }))),
        ("GET /audit", None),
        ("GET /alerts/preview", None),
        ("POST /alerts/check", Some(json!({}))),
        ("POST /alerts/test", Some(json!({}))),
    ] {
        let answer = asked.ask(&server, &limited, (request, body)).await;
        assert_eq!(answer.refused(), (403, "pipeline_required".to_owned()), "{request}");
    }
    for entry in redrive::operations() {
        let (request, body) = example(entry);
        let answer = asked.ask(&server, &limited, (&request, body)).await;
        match answer.status {
            200 => assert!(!String::from_utf8_lossy(&answer.body).contains("bank"), "{request}"),
            _ => assert_eq!(answer.refused(), (403, "foreign_pipeline".to_owned()), "{request}"),
        }
    }
    let token = json!({ "name": "x", "role": "viewer" });
    for (request, body) in
        [("GET /tokens", None), ("POST /tokens", Some(token)), ("DELETE /tokens/ops", Some(json!({})))]
    {
        assert_eq!(asked.ask(&server, &limited, (request, body)).await.status, 403, "{request}");
    }
    let letter = json!({ "pipeline": "bank", "input": {}, "message": "no" });
    let told = asked.ask(&server, &limited, ("POST /letters", Some(letter))).await.ok();
    assert_eq!(told["letters"][0]["why"]["code"], "foreign_pipeline", "{told}");
    asked.assert_all();
}

/// Routes by which nothing of a pipeline is told or changed: hints, the document, and what a token uploads for itself.
const OF_NO_PIPELINE: [&str; 5] =
    ["GET /events", "GET /openapi.json", "GET /whoami", "PUT /payloads/{id}", "HEAD /payloads/{id}"];

/// The requests that were made, by which it is seen that no route was forgotten.
#[derive(Default)]
struct Asked(Vec<String>);

impl Asked {
    async fn ask(&mut self, server: &Running, token: &str, (request, body): (&str, Option<Value>)) -> Answer {
        self.0.push(request.to_owned());
        server.ask_as(Some(token), request, &[], body).await
    }

    fn assert_all(&self) {
        for route in all_routes() {
            let named = format!("{} {}", route.method, route.path);
            let asked = self.0.iter().any(|request| is_of(request, &named));
            assert!(asked || OF_NO_PIPELINE.contains(&named.as_str()), "{named} was not asked for another's pipeline");
        }
    }
}

/// Whether a request is to a route.
fn is_of(request: &str, route: &str) -> bool {
    let (asked, path) = (request.split('?').next().unwrap_or_default().split('/'), route.split('/'));
    asked.clone().count() == path.clone().count() && asked.zip(path).all(|(a, p)| a == p || p.starts_with('{'))
}
