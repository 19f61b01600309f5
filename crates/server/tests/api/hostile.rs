//! Requests as those send them who mean no good.

use redrive_core::tokens::Role;
use serde_json::json;

use crate::running::Running;

/// What a request on the wire, with lines as they are, is answered with; nothing if the server hangs up.
async fn status(server: &Running, head: &str, body: &str) -> u16 {
    let head = format!("{head}{}", server.local(head));
    server.send_raw(format!("{head}\r\nconnection: close\r\n\r\n{body}").as_bytes()).await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_read_in_two_ways_is_refused() {
    let server = Running::start().await;
    let own = server.address;
    let post = format!("POST /api/v1/jobs HTTP/1.1\r\nhost: {own}\r\ncontent-type: application/json");
    let body = json!({ "pipeline": "shop", "jobs": [{ "input": {} }] }).to_string();
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for head in [
        format!("GET /api/v1/jobs HTTP/1.1\r\nhost: {own}\r\nhost: evil.example"),
        format!("GET /api/v1/jobs HTTP/1.1\r\nhost: evil.example\r\nhost: {own}"),
        format!("GET http://evil.example/api/v1/jobs HTTP/1.1\r\nhost: {own}"),
        "GET /api/v1/jobs HTTP/1.1".to_owned(),
        format!("GET /api/v1/jobs HTTP/1.1\r\nhost: {own}\r\n folded: x"),
        format!("GET /api/v1/jobs HTTP/1.1\r\nhost: {own}\r\nx y: z"),
        format!("GET /api/v1/jobs\x01 HTTP/1.1\r\nhost: {own}"),
        format!("GET /api/v1/jobs HTTP/9.9\r\nhost: {own}"),
    ] {
        let told = status(&server, &head, "").await;
        assert!(matches!(told, 400 | 403 | 505), "{head:?}: {told}");
    }
    let lengths = "content-length: 5\r\ncontent-length: 6";
    assert_eq!(status(&server, &format!("{post}\r\n{lengths}"), &body).await, 400);
    let mangled = status(&server, &format!("{post}\r\ntransfer-encoding: gzip, identity"), &body).await;
    assert!((400..500).contains(&mangled), "{mangled}");
    assert_eq!(server.get("/jobs").await.ok()["items"], json!([]), "nothing of it was done");
    let absolute = format!("GET http://{own}/api/v1/jobs HTTP/1.1\r\nhost: {own}");
    assert_eq!(status(&server, &absolute, "").await, 200);
    // Of two lengths the chunks count, as the standard has it, and nothing is taken for a second request.
    let both = format!("{post}\r\ncontent-length: 5\r\ntransfer-encoding: chunked");
    assert_eq!(status(&server, &both, &chunked).await, 201);
    let trailed = format!("{:x}\r\n{body}\r\n0\r\nx-more: 1\r\nauthorization: Bearer x\r\n\r\n", body.len());
    assert_eq!(status(&server, &format!("{post}\r\ntransfer-encoding: chunked"), &trailed).await, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_twice_or_under_a_condition_is_not_guessed_at() {
    let server = Running::start().await;
    let token = server.token("ops", Role::Admin, &[]).await;
    let server = server.restart().await;
    let body = || Some(json!({ "pipeline": "shop", "jobs": [{ "input": {} }] }));
    let twice = server.ask_as(Some(&token), "GET /jobs", &["authorization: Bearer other"], None).await;
    assert_eq!(twice.refused(), (400, "invalid".to_owned()));
    let keys = ["idempotency-key: a", "idempotency-key: b"];
    let twice = server.ask_as(Some(&token), "POST /jobs", &keys, body()).await;
    assert_eq!(twice.refused(), (400, "invalid".to_owned()));
    assert_eq!(twice.json()["error"]["field"], "idempotency-key");
    for lines in [["content-type: text/plain"], ["transfer-encoding: identity\r\ntransfer-encoding: chunked"]] {
        let twice = server.ask_as(Some(&token), "POST /jobs", &lines, body()).await;
        assert_eq!(twice.status, 400, "{lines:?}");
    }
    for line in ["if-match: \"abc\"", "if-match: *", "if-unmodified-since: Mon, 16 Nov 2026 14:00:00 GMT"] {
        for request in ["POST /jobs", "DELETE /tokens/ops"] {
            let answer = server.ask_as(Some(&token), request, &[line], body()).await;
            assert_eq!(answer.refused(), (400, "version_required".to_owned()), "{request} {line}");
        }
    }
    let jobs = server.ask_as(Some(&token), "GET /jobs", &["if-match: \"abc\""], None).await.ok();
    assert_eq!(jobs["items"], json!([]), "nothing of it was done");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_none_are_refused_before_anything_else() {
    let server = Running::start().await;
    for name in ["a b", "a/b", "ä", "a\r\nb", "../x", "", &"x".repeat(65), "a\u{0}b", "a\u{202e}b"] {
        let jobs = server.post("/jobs", json!({ "pipeline": name, "jobs": [{ "input": {} }] })).await;
        assert_eq!(jobs.refused(), (400, "invalid".to_owned()), "{name:?}");
        let letter = json!({ "pipeline": name, "input": {}, "message": "no" });
        let told = server.post("/letters", letter).await.ok();
        assert_eq!(told["letters"][0]["why"]["field"], "pipeline", "{name:?}");
        let token = server.post("/tokens", json!({ "name": name, "role": "admin" })).await;
        assert_eq!(token.status, 400, "{name:?}");
    }
    for path in [
        "/payloads/..%2f..%2f..%2fetc%2fpasswd",
        "/payloads/..%2f..%2fetc%2fpasswd/bytes",
        "/payloads/%00",
        "/jobs/%2e%2e%2f",
        "/letters/'%20OR%201=1--",
        "/pipelines/..%2f",
        "/causes/%25",
        "/replays/%c3%28",
        "/tries/%0d%0aset-cookie:x",
    ] {
        let answer = server.get(path).await;
        assert!(matches!(answer.status, 400 | 404), "{path}: {answer:?}");
        assert!(answer.header("set-cookie").is_none());
    }
    server.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wildcards_and_cursors_of_ones_own_making_find_nothing_more() {
    let server = Running::start().await;
    for n in 0..3 {
        server.report("shop", json!({ "n": n, "text": "100 % of_it" }), "no").await;
    }
    let found =
        async |text: &str| server.get(&format!("/letters?text={text}")).await.ok()["items"].as_array().map(Vec::len);
    assert_eq!((found("100%20%25").await, found("%25of").await, found("f_i").await), (Some(3), Some(0), Some(3)));
    assert_eq!((found("f%25i").await, found("%5C").await, found("%00").await), (Some(0), Some(0), Some(0)));
    for cursor in ["x", "-1--1", "9223372036854775808-1", "1-1%20OR%201=1", "%00", "1-1-1-1", ""] {
        for list in
            ["/letters", "/jobs", "/activity", "/replays", "/payloads", "/causes", "/pipelines", "/breakers", "/rounds"]
        {
            let answer = server.get(&format!("{list}?cursor={cursor}")).await;
            assert!(matches!(answer.status, 200 | 400), "{list} {cursor}: {answer:?}");
        }
    }
    for query in [
        "limit=0",
        "limit=1001",
        "limit=-1",
        "limit=1e3",
        "limit=%00",
        "colour=red",
        "pipeline=a%20b",
        "limit=1&limit=2",
    ] {
        let answer = server.get(&format!("/letters?{query}")).await;
        assert_eq!(answer.refused(), (400, "invalid".to_owned()), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_others_in_a_batch_keep_all_of_it_from_being_done() {
    let server = Running::start().await;
    let all = server.token("all", Role::Admin, &[]).await;
    let mine = server.token("mine", Role::Admin, &["shop"]).await;
    let server = server.restart().await;
    let enqueue = async |pipeline: &str| {
        let body = json!({ "pipeline": pipeline, "jobs": [{ "input": {} }] });
        server.ask_as(Some(&all), "POST /jobs", &[], Some(body)).await.ok()["jobs"][0]["id"].clone()
    };
    let (own, foreign) = (enqueue("shop").await, enqueue("bank").await);
    let cancel = json!({ "ids": [own, foreign], "why": "x" });
    let refused = server.ask_as(Some(&mine), "POST /jobs/cancel", &[], Some(cancel)).await;
    assert_eq!(refused.refused(), (403, "foreign_pipeline".to_owned()));
    let shown = server.ask_as(Some(&all), &format!("GET /jobs/{}", own.as_str().expect("an id")), &[], None).await.ok();
    assert_eq!(shown["state"], "queued");
    let counts = json!([{ "pipeline": "shop", "done": 1 }, { "pipeline": "bank", "done": 1 }]);
    let outcomes = json!({ "client": "c", "seq": 1, "counts": counts });
    let refused = server.ask_as(Some(&mine), "POST /outcomes", &[], Some(outcomes)).await;
    assert_eq!(refused.refused(), (403, "foreign_pipeline".to_owned()));
    for secret in ["", " ", "x", &"x".repeat(10_000), "\u{e4}", "' OR 1=1 --"] {
        assert_eq!(server.ask_as(Some(secret), "GET /jobs", &[], None).await.status, 401, "{secret:?}");
    }
    let basic = format!("GET /api/v1/jobs HTTP/1.1\r\nhost: {}\r\nauthorization: Basic {all}", server.address);
    let basic = server.send(&basic, b"").await;
    let in_address = server.ask_as(None, &format!("GET /jobs?token={all}"), &[], None).await;
    assert_eq!((basic.status, in_address.status), (401, 401), "a token goes in one place only");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_name_after_name_is_not_remembered_to_run_them_all() {
    let server = Running::start().await;
    let mut asked = json!({ "pipelines": [] });
    for hundred in 0..11 {
        asked["pipelines"] = (0..100).map(|n| format!("p{hundred}-{n}")).collect();
        let leased = server.post("/leases", asked.clone()).await.ok();
        asked["worker"] = leased["worker"].clone();
    }
    let workers = server.redrive.store().list_workers().await.expect("read");
    let runs = &workers.iter().find(|worker| worker.remote).expect("it is there").runs;
    assert_eq!(runs.len(), 1_000);
    assert!(runs.iter().any(|runs| runs.pipeline.as_str() == "p10-99"), "the last ones are known");
    assert_eq!(server.get("/pipelines").await.ok()["items"], json!([]), "none of them came into being");
}

/// What must never be set over the network: what runs, with what, where, and who is told.
const NEVER_SET: [&str; 14] = [
    "command",
    "env",
    "folder",
    "cwd",
    "file",
    "path",
    "out",
    "sink",
    "handler",
    "webhook",
    "vault",
    "store",
    "proxies",
    "secret_hosts",
];

#[test]
fn no_route_sets_what_runs_or_where_it_goes() {
    let document = redrive_server::openapi::document();
    let schemas = &document["components"]["schemas"];
    let mut bodies = 0;
    for (path, at) in document["paths"].as_object().expect("paths") {
        for (method, operation) in at.as_object().expect("methods") {
            let Some(body) = operation.get("requestBody") else { continue };
            bodies += 1;
            let mut fields = Vec::new();
            collect(&body["content"]["application/json"]["schema"], schemas, &mut fields);
            let wrong: Vec<_> = fields.iter().filter(|field| NEVER_SET.contains(&field.as_str())).collect();
            assert!(wrong.is_empty(), "{method} {path} takes {wrong:?}");
        }
    }
    assert!(bodies > 15, "{bodies}");
}

/// The names of all fields of a schema.
fn collect(schema: &serde_json::Value, schemas: &serde_json::Value, fields: &mut Vec<String>) {
    match schema {
        serde_json::Value::Object(inside) => {
            if let Some(name) = inside.get("$ref").and_then(|name| name.as_str()?.rsplit('/').next()) {
                collect(&schemas[name], schemas, fields);
            }
            for (name, value) in inside {
                if name == "properties" {
                    fields.extend(value.as_object().into_iter().flat_map(|found| found.keys().cloned()));
                }
                collect(value, schemas, fields);
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, schemas, fields)),
        _ => {}
    }
}
