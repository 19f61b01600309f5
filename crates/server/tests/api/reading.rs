//! Reading: pages, tags, and what is wrong with a question.

use serde_json::json;

use crate::running::Running;

#[tokio::test(flavor = "multi_thread")]
async fn a_list_comes_in_pages_that_lead_to_the_next() {
    let server = Running::start().await;
    server.enqueue("shop", (0..5).map(|n| json!({ "n": n }))).await;
    let mut seen = Vec::new();
    let mut path = "/jobs?limit=2".to_owned();
    loop {
        let page = server.get(&path).await.ok();
        let items = page["items"].as_array().expect("items");
        assert!(items.len() <= 2);
        seen.extend(items.iter().map(|job| job["input"]["n"].as_i64().expect("a number")));
        match page["next"].as_str() {
            Some(next) => path = format!("/jobs?limit=2&cursor={next}"),
            None => break,
        }
    }
    // Those of one moment come in any order, and each once.
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3, 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_question_is_told_with_the_field() {
    let server = Running::start().await;
    for (path, field) in [
        ("/jobs?limit=0", "limit"),
        ("/jobs?limit=many", "limit"),
        ("/jobs?limit=1001", "limit"),
        ("/jobs?state=lost", "state"),
        ("/jobs?since=soon", "since"),
        ("/letters?reason=bad%20luck", "reason"),
        ("/letters?cursor=nonsense", "cursor"),
        ("/letters?pipeline=a%20b", "pipeline"),
        ("/causes/zzz", "id"),
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.refused(), (400, "invalid".to_owned()), "{path}");
        assert_eq!(answer.json()["error"]["field"], field, "{path}: {}", answer.json());
    }
    let unknown = server.get("/jobs?colour=red").await;
    assert_eq!(unknown.status, 400);
    assert!(unknown.json()["error"]["message"].as_str().is_some_and(|text| text.contains("colour")), "{unknown:?}");
    for path in
        ["/jobs/1", "/jobs/0198f2c5-7d3e-7a10-9c51-0242ac120002", "/letters/77", "/causes/abcd", "/replays/last"]
    {
        assert_eq!(server.get(path).await.refused(), (404, "not_found".to_owned()), "{path}");
    }
    assert_eq!(server.get("/nothing").await.refused(), (404, "not_found".to_owned()));
    let not_so = server.ask_as(None, "DELETE /jobs", &[], None).await;
    assert_eq!(not_so.refused(), (405, "method_not_allowed".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_an_answer_already_is_told_that_it_still_holds() {
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    let first = server.get("/jobs").await;
    let tag = first.header("etag").expect("a tag").to_owned();
    let had = format!("if-none-match: {tag}");
    let again = server.ask_as(None, "GET /jobs", &[&had], None).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    server.enqueue("shop", [json!({ "n": 2 })]).await;
    let changed = server.ask_as(None, "GET /jobs", &[&had], None).await;
    assert_eq!(changed.status, 200);
    assert_ne!(changed.header("etag"), Some(tag.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_is_read_has_a_tag_and_so_have_the_bytes_of_a_payload() {
    let server = Running::with("[pipeline.shop]\nhandler = \"remote\"\n").await;
    let payload = json!({ "text": "<html>" });
    let letter = json!({ "pipeline": "shop", "input": { "n": 1 }, "message": "no", "payload": payload });
    let letter = server.post("/letters", letter).await.ok()["letters"][0]["id"].as_str().expect("an id").to_owned();
    let other = server.report("shop", json!({ "n": 2 }), "no").await;
    let replay = server.post("/replays", json!({ "letters": { "ids": [other] } })).await.ok()["replay"]["id"].clone();
    let tried = server.post("/tries", json!({ "letters": { "ids": [letter] } })).await.ok()["id"].clone();
    let cause = server.get("/causes").await.ok()["items"][0]["id"].clone();
    let text = |value: serde_json::Value| value.as_str().expect("an id").to_owned();
    let (replay, tried, cause) = (text(replay), text(tried), text(cause));
    for route in
        redrive_server::all_routes().into_iter().filter(|route| route.method == "GET" && route.path != "/events")
    {
        let id = match route.path.split('/').nth(1).expect("a noun") {
            "replays" => &replay,
            "tries" => &tried,
            "causes" => &cause,
            _ => &letter,
        };
        let by = match route.path {
            "/letters/top" => "?by=reason",
            "/results" => "?pipeline=shop",
            _ => "",
        };
        let path = route.path.replace("{id}", id).replace("{name}", "shop") + by;
        let answer = server.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        assert!(answer.header("etag").is_some(), "{path}");
        assert_eq!(answer.header("cache-control"), Some("private, no-cache"), "{path}");
    }
    let bytes = format!("/payloads/{letter}/bytes");
    let tag = server.get(&bytes).await.header("etag").expect("a tag").to_owned();
    let had = async |line: &str| server.ask_as(None, &format!("GET {bytes}"), &[line], None).await;
    for line in [format!("if-none-match: {tag}"), format!("if-none-match: \"x\", W/{tag}")] {
        let again = had(&line).await;
        assert_eq!((again.status, again.body.len(), again.header("etag")), (304, 0, Some(tag.as_str())), "{line}");
    }
    assert_eq!(had("if-none-match: \"x\"").await.body, b"<html>");
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_can_be_read_is_answered() {
    let server = Running::with("[pipeline.shop]\ncommand = [\"true\"]\n").await;
    server.report("shop", json!({ "url": "https://shop.example/1" }), "KeyError: price").await;
    for path in [
        "/status",
        "/jobs",
        "/letters",
        "/causes",
        "/replays",
        "/payloads",
        "/breakers",
        "/pipelines",
        "/pipelines/shop",
    ] {
        server.get(path).await.ok();
    }
    for path in ["/rounds", "/alerts", "/activity", "/reports", "/reports?since=7d&pipeline=shop", "/tokens", "/audit"]
    {
        server.get(path).await.ok();
    }
    let top = server.get("/letters/top?by=target").await.ok();
    assert_eq!((&top["items"][0]["value"], &top["items"][0]["dead"]), (&json!("shop.example"), &json!(1)), "{top}");
    assert_eq!(server.get("/letters/top?by=luck").await.json()["error"]["field"], "by");
    let definition = server.get("/pipelines/shop/definition").await.ok();
    assert!(definition["items"].to_string().contains("command"), "{definition}");
    server.post("/alerts/check", json!({})).await.ok();
    assert_eq!(server.post("/alerts/test", json!({})).await.ok()["items"], json!([]));
    assert_eq!(server.post("/alerts/test", json!({ "sinks": ["nobody"] })).await.status, 400);
    let status = server.get("/status").await.ok();
    assert_eq!(status["pipelines"]["shop"]["dead"], 1, "{status}");
    let shop = server.get("/pipelines/shop").await.ok();
    assert_eq!((&shop["configured"], &shop["dead"]), (&json!(true), &json!(1)), "{shop}");
    let report = server.get("/reports").await.ok();
    assert_eq!(report["pipelines"][0]["buried"], 1, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn health_needs_no_token_and_metrics_count() {
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    let token = server.token("ops", redrive_core::tokens::Role::Admin, &[]).await;
    assert_eq!(server.get("~/healthz").await.ok()["status"], "ok");
    assert_eq!(server.get("~/readyz").await.ok()["status"], "ok");
    let metrics = server.ask_as(Some(&token), "GET ~/metrics", &[], None).await;
    let text = String::from_utf8(metrics.body).expect("text");
    assert_eq!(metrics.status, 200, "{text}");
    assert!(text.contains("redrive_jobs{pipeline=\"shop\",state=\"queued\"} 1\n"), "{text}");
    assert!(text.contains("redrive_jobs_accepted_total{pipeline=\"shop\"} 1\n"), "{text}");
}
