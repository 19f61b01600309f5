//! Lists: each comes in pages, and the pages are all of it.

use std::time::{Duration, Instant};

use redrive_core::tokens::Role;
use redrive_server::openapi;
use serde_json::{Value, json};

use crate::running::Running;

/// Lists that are short by what they are: of one pipeline, of its rules, or of what fires now.
const SHORT: [&str; 3] = ["/alerts/past", "/alerts/preview", "/pipelines/{name}/definition"];

/// A store with two of everything that is listed.
async fn filled() -> (Running, String) {
    let server = Running::with("[pipeline.shop]\nhandler = \"remote\"\n").await;
    for (pipeline, n) in [("shop", 1), ("bank", 2), ("mill", 3)] {
        let payload = json!({ "text": format!("<html>{n}") });
        let letter = json!({ "pipeline": pipeline, "input": { "n": n }, "message": "no price", "payload": payload });
        let told = server.post("/letters", letter).await.ok();
        let id = told["letters"][0]["id"].clone();
        let round = server.post("/rounds", json!({ "pipeline": pipeline })).await.ok();
        let jobs = json!({ "pipeline": pipeline, "round": round["round"], "jobs": [{ "input": { "n": n } }] });
        server.post("/jobs", jobs).await.ok();
        let hold = json!({ "target": format!("{n}.example"), "pipeline": pipeline });
        server.post("/breakers/hold", hold).await.ok();
        server.post("/tries", json!({ "letters": { "ids": [id] } })).await.ok();
        server.post("/replays", json!({ "letters": { "ids": [id] } })).await.ok();
        server.report(pipeline, json!({ "n": n + 10 }), &format!("other {pipeline}")).await;
    }
    server.enqueue("yard", (0..5).map(|n| json!({ "n": n }))).await;
    let leased = server.post("/leases", json!({ "pipelines": ["yard"], "max": 5 })).await.ok();
    let jobs = leased["leases"].as_array().expect("leases").iter();
    let done = |job: &Value| json!({ "lease": job["lease"], "verdict": "done", "result": job["input"] });
    let jobs: Vec<_> = jobs.map(done).collect();
    server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": jobs })).await.ok();
    let token = server.token("ops", Role::Admin, &[]).await;
    server.token("eve", Role::Viewer, &[]).await;
    let server = server.restart().await;
    // The letters of replays are on their way: nothing moves any more.
    let begun = Instant::now();
    loop {
        let replays = server.ask_as(Some(&token), "GET /replays", &[], None).await.ok();
        if replays["items"].as_array().expect("items").iter().all(|replay| replay["progress"]["running"] == 1) {
            return (server, token);
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "they are not sent: {replays}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn walked(server: &Running, token: &str, path: &str, field: &str) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.ask_as(Some(token), &format!("GET {path}limit=1{cursor}"), &[], None).await.ok();
        let items = page[field].as_array().unwrap_or_else(|| panic!("{path}: {page}"));
        assert!(items.len() <= 1, "{path}: {page}");
        all.extend(items.iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
        assert!(all.len() < 100, "{path} has no end");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_list_comes_in_pages_that_are_all_of_it() {
    let (server, token) = filled().await;
    let mut lists = 0;
    for (path, at) in openapi::document()["paths"].as_object().expect("paths") {
        let (path, get) = (path.trim_start_matches("/api/v1"), &at["get"]);
        let takes = |name: &str| {
            let mut params = get["parameters"].as_array().into_iter().flatten();
            params.any(|param| param["name"] == name)
        };
        assert_eq!(takes("limit"), takes("cursor"), "{path}");
        let answer = &get["responses"]["200"]["content"]["application/json"]["schema"];
        let is_list = answer["properties"]["items"].is_object();
        assert!(!is_list || takes("cursor") || SHORT.contains(&path), "{path} has no pages");
        if !takes("cursor") || path.contains('{') {
            continue;
        }
        lists += 1;
        let asked = match path {
            "/letters/top" => "/letters/top?by=pipeline&".to_owned(),
            "/results" => "/results?pipeline=yard&".to_owned(),
            path => format!("{path}?"),
        };
        let field = if path == "/alerts" { "alerts" } else { "items" };
        let whole = server.ask_as(Some(&token), &format!("GET {asked}limit=1000"), &[], None).await.ok();
        let whole = whole[field].as_array().expect("items").clone();
        assert!(whole.len() > 1 || path == "/alerts", "{path}: {whole:?}");
        let mut pieces = walked(&server, &token, &asked, field).await;
        if path == "/pipelines" || path == "/letters/top" {
            // What is told of now, and shares, may differ between two looks.
            let named = |view: &Value| view["name"].as_str().or(view["value"].as_str()).map(str::to_owned);
            assert_eq!(pieces.iter().map(named).collect::<Vec<_>>(), whole.iter().map(named).collect::<Vec<_>>());
            continue;
        }
        if path == "/tokens" {
            let without_use = |token: &mut Value| drop(token.as_object_mut().and_then(|token| token.remove("used_at")));
            let mut whole = whole;
            pieces.iter_mut().chain(&mut whole).for_each(without_use);
            assert_eq!(pieces, whole);
            continue;
        }
        assert_eq!(pieces.len(), whole.len(), "{path}");
        let ids = |items: &[Value]| items.iter().map(|item| item["id"].clone()).collect::<Vec<_>>();
        assert_eq!(ids(&pieces), ids(&whole), "{path}");
    }
    assert!(lists >= 12, "{lists}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_letters_have_in_common_is_counted_over_all_pages() {
    let (server, token) = filled().await;
    let top = async |query: &str| {
        server.ask_as(Some(&token), &format!("GET /letters/top?by=pipeline&{query}"), &[], None).await.ok()
    };
    let first = top("limit=1").await;
    let others = first["others"].as_i64().expect("a number");
    let next = top(&format!("limit=1&cursor={}", first["next"].as_str().expect("there is more"))).await;
    assert_eq!(others - next["others"].as_i64().expect("a number"), next["items"][0]["dead"].as_i64().expect("some"));
    let whole = top("limit=1000").await;
    assert_eq!((&whole["others"], &whole["next"]), (&json!(0), &Value::Null));
    let hours = server.ask_as(Some(&token), "GET /letters/top?by=hour&limit=1", &[], None).await.ok();
    assert_eq!(hours["others"], 0, "a day is told whole: {hours}");
}

/// A cursor would tell whose text is in tasks of others, and of how many tasks, causes and replays they are.
#[tokio::test(flavor = "multi_thread")]
async fn lists_of_a_token_for_some_pipelines_are_full_pages_of_those_alone() {
    let (server, token) = filled().await;
    for (name, pipelines) in [("one", &["shop"][..]), ("more", &["sh*", "none"])] {
        let body = json!({ "name": name, "role": "viewer", "pipelines": pipelines });
        let made = server.ask_as(Some(&token), "POST /tokens", &[], Some(body)).await.ok();
        let limited = made["secret"].as_str().unwrap_or_else(|| panic!("{made}"));
        for path in ["jobs", "letters", "causes", "rounds", "breakers", "replays", "pipelines"] {
            let (mut items, mut cursor) = (0, String::new());
            loop {
                let request = format!("GET /{path}?limit=1{cursor}");
                let page = server.ask_as(Some(limited), &request, &[], None).await.ok();
                assert_eq!(page["items"].as_array().map(Vec::len), Some(1), "{name}: {request}: {page}");
                items += 1;
                let Some(next) = page["next"].as_str() else { break };
                cursor = format!("&cursor={next}");
            }
            assert!((1..5).contains(&items), "{path}: {items}");
        }
        for path in ["jobs?text=other bank", "letters?text=other bank", "letters?text=no price&pipeline=shop&code=zz"] {
            let request = format!("GET /{}&limit=1", path.replace(' ', "%20"));
            let page = server.ask_as(Some(limited), &request, &[], None).await.ok();
            assert_eq!((&page["items"], &page["next"]), (&json!([]), &Value::Null), "{name}: {request}");
        }
    }
}
