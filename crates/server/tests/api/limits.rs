//! Limits: what is over one is refused, whoever sends it, and the store never sees it.

use std::io::Write;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use redrive_core::policy::Bounds;
use redrive_server::{Options, Patience};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::running::{LOCAL, Running};

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packing = GzEncoder::new(Vec::new(), Compression::best());
    packing.write_all(bytes).expect("packed");
    packing.finish().expect("packed")
}

async fn send_packed(server: &Running, extra: &str, body: &[u8]) -> crate::running::Answer {
    let head = format!(
        "POST /api/v1/jobs HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-encoding: gzip{extra}",
        server.address
    );
    server.send(&head, body).await
}

async fn jobs(server: &Running) -> usize {
    server.get("/jobs?limit=1000").await.ok()["items"].as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packed_body_is_unpacked_no_further_than_a_body_may_be_long() {
    let server = Running::start().await;
    let body = json!({ "pipeline": "shop", "jobs": [{ "input": { "n": 1 } }] }).to_string();
    assert_eq!(send_packed(&server, "", &packed(body.as_bytes())).await.status, 201);
    let keyed = async || send_packed(&server, "\r\nidempotency-key: k", &packed(body.as_bytes())).await;
    let (first, again) = (keyed().await, keyed().await);
    assert_eq!((first.status, again.header("idempotency-replayed")), (201, Some("true")));
    let before = jobs(&server).await;
    // A bomb: a thousand times as long as what is sent.
    let bomb = format!("{{\"pipeline\":\"shop\",\"jobs\":[{{\"input\":{{\"x\":\"{}\"}}}}]}}", "0".repeat(64 << 20));
    assert_eq!(send_packed(&server, "", &packed(bomb.as_bytes())).await.refused(), (413, "too_large".to_owned()));
    let twice = packed(&packed(body.as_bytes()));
    for broken in [&b"{}"[..], &packed(body.as_bytes())[..20], &twice, b"\x1f\x8b"] {
        assert_eq!(send_packed(&server, "", broken).await.refused(), (400, "invalid".to_owned()));
    }
    for other in ["br", "zstd", "deflate", "gzip, gzip"] {
        let lines = [format!("content-encoding: {other}")];
        let answer = server.ask_as(None, "POST /jobs", &[&lines[0]], Some(json!({}))).await;
        assert_eq!(answer.refused(), (415, "encoding_unsupported".to_owned()), "{other}");
    }
    let upload = format!("PUT /payloads/{}", "a".repeat(64));
    let answer = server.ask_as(None, &upload, &["content-encoding: gzip"], Some(json!({}))).await;
    assert_eq!(answer.refused(), (415, "encoding_unsupported".to_owned()));
    assert_eq!(jobs(&server).await, before, "the store saw nothing of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn depth_number_and_length_have_an_end() {
    let server = Running::start().await;
    for depth in [130, 1_000, 150_000] {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let body = format!("{{\"pipeline\":\"shop\",\"jobs\":[{{\"input\":{{\"a\":{deep}}}}}]}}");
        let head = format!("POST /api/v1/jobs HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json", server.address);
        assert_eq!(server.send(&head, body.as_bytes()).await.refused(), (400, "invalid".to_owned()), "{depth}");
    }
    let jobs_of = |n: usize| vec![json!({ "input": {} }); n];
    let many = json!({ "pipeline": "shop", "jobs": jobs_of(10_001) });
    assert_eq!(server.post("/jobs", many).await.refused(), (413, "too_large".to_owned()));
    let letters = vec![json!({ "pipeline": "shop", "input": {}, "message": "no" }); 10_001];
    let refused = server.post("/letters", json!(letters)).await;
    assert_eq!((refused.refused(), refused.header("retry-after")), ((413, "too_large".to_owned()), Some("1")));
    let long = format!(
        "POST /api/v1/letters HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {LOCAL}\r\ncontent-type: application/json\r\n\
         content-length: 99999999\r\n\r\n",
        server.address
    );
    let refused = server.send_raw(long.as_bytes()).await;
    assert_eq!((refused.status, refused.header("retry-after")), (413, Some("1")));
    let many: Vec<_> = (0..101).map(|n| format!("p{n}")).collect();
    let refused = server.post("/leases", json!({ "pipelines": many })).await;
    assert_eq!(
        (refused.refused(), &refused.json()["error"]["field"]),
        ((413, "too_large".to_owned()), &json!("pipelines"))
    );
    server.post("/leases", json!({ "pipelines": vec!["shop"; 100_000] })).await.ok();
    let long = "x".repeat(4_001);
    for (path, body, field) in [
        ("/jobs", json!({ "pipeline": "shop", "jobs": [{ "input": {}, "target": long }] }), "jobs[0].target"),
        ("/jobs", json!({ "pipeline": "shop", "jobs": [{ "input": {}, "group": long }] }), "jobs[0].group"),
        ("/leases", json!({ "pipelines": ["shop"], "host": long }), "host"),
        ("/replays", json!({ "letters": { "pipeline": "shop" }, "name": long }), "name"),
        ("/pipelines/shop/pause", json!({ "why": long }), "why"),
        ("/breakers/hold", json!({ "target": long }), "target"),
        ("/letters/discard", json!({ "letters": { "pipeline": "shop" }, "why": long }), "why"),
        ("/letters/discard", json!({ "letters": { "pipeline": "shop" }, "why": " " }), "why"),
        ("/jobs/cancel", json!({ "ids": [1], "why": "" }), "why"),
        ("/replays", json!({ "letters": { "pipeline": "shop" }, "ramp": vec![1; 101] }), "ramp"),
    ] {
        let refused = server.post(path, body).await;
        assert_eq!((refused.status, &refused.json()["error"]["field"]), (400, &json!(field)), "{path}");
    }
    let headers: String = (0..100).map(|n| format!("\r\nx-{n}: 1")).collect();
    let head = |extra: &str| {
        format!("GET /api/v1/jobs HTTP/1.1\r\nhost: {}{extra}\r\nconnection: close\r\n\r\n", server.address)
    };
    assert_eq!(server.send_raw(head(&headers).as_bytes()).await.status, 431);
    for bytes in [40_000, 1_000_000] {
        let long = format!("\r\nx-long: {}", "x".repeat(bytes));
        let refused = server.send_raw(head(&long).as_bytes()).await;
        assert_eq!(refused.status, 431, "{bytes}");
        // What is longer than is read at all is refused before anybody looks at it.
        assert!(bytes > 100_000 || refused.header("retry-after") == Some("1"), "{bytes}: {refused:?}");
        let address = format!(
            "GET /api/v1/jobs?text={} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
            "x".repeat(bytes)
        );
        let status = server.send_raw(address.as_bytes()).await.status;
        assert!(status == 414 || status == 431, "{bytes}: {status}");
    }
    assert_eq!(jobs(&server).await, 0, "the store saw nothing of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_token_has_so_many_requests_under_way_and_others_are_not_in_its_way() {
    let options = || Options { in_flight_max: 4, ..Options::listening(([127, 0, 0, 1], 0).into()) };
    let server = Running::with_options(options()).await;
    let one = server.token("one", redrive_core::tokens::Role::Admin, &[]).await;
    let other = server.token("other", redrive_core::tokens::Role::Worker, &[]).await;
    let server = server.restart_with(options()).await;
    let body = json!({ "pipelines": ["shop"], "wait": 30 }).to_string();
    let head = format!(
        "POST /api/v1/leases HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {one}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let mut held = Vec::new();
    let begun = Instant::now();
    loop {
        // One that is refused, because the request below was in its way, is no loss: another follows.
        let mut stream = TcpStream::connect(server.address).await.expect("connected");
        stream.write_all(head.as_bytes()).await.expect("sent");
        held.push(stream);
        let answer = server.ask_as(Some(&one), "GET /jobs", &[], None).await;
        if answer.status == 429 {
            assert_eq!(answer.refused().1, "too_many_requests");
            assert!(answer.header("retry-after").is_some());
            break;
        }
        assert_eq!(answer.status, 200);
        assert!(begun.elapsed() < Duration::from_secs(25), "there is room without end");
    }
    assert_eq!(server.ask_as(Some(&other), "GET /jobs", &[], None).await.status, 200);
    drop(held);
    while server.ask_as(Some(&one), "GET /jobs", &[], None).await.status == 429 {
        assert!(begun.elapsed() < PATIENCE, "the places were not given back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_count_as_requests_for_as_long_as_they_are_open() {
    let options = Options { in_flight_max: 2, ..Options::listening(([127, 0, 0, 1], 0).into()) };
    let server = Running::with_options(options).await;
    for path in ["/api/v1/events", "/events"] {
        let open = async || {
            let mut stream = TcpStream::connect(server.address).await.expect("connected");
            let head = format!("GET {path} HTTP/1.1\r\nhost: {}", server.address);
            let head = format!("{head}{}\r\n\r\n", server.local(&head));
            stream.write_all(head.as_bytes()).await.expect("sent");
            let mut status = [0; 12];
            stream.read_exact(&mut status).await.expect("answered");
            assert_eq!(&status, b"HTTP/1.1 200", "{path}");
            stream
        };
        let begun = Instant::now();
        let open = (open().await, open().await);
        assert_eq!(server.get("/jobs").await.refused(), (429, "too_many_requests".to_owned()), "{path}");
        drop(open);
        while server.get("/jobs").await.status == 429 {
            assert!(begun.elapsed() < PATIENCE, "the places were not given back");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn impatient() -> Options {
    let soon = Duration::from_millis(300);
    let patience = Patience { head: soon, body: soon, more: soon, taken: soon, ..Patience::default() };
    Options { patience, ..Options::listening(([127, 0, 0, 1], 0).into()) }
}

/// What comes until the server hangs up.
async fn until_end(stream: &mut TcpStream) -> String {
    let mut heard = Vec::new();
    let end = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut heard)).await;
    let _ = end.expect("it hangs up in time");
    String::from_utf8_lossy(&heard).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_too_slowly_is_not_waited_for() {
    let server = Running::with_options(impatient()).await;
    let mut head = TcpStream::connect(server.address).await.expect("connected");
    head.write_all(b"GET /api/v1/jobs HT").await.expect("sent");
    let _ = until_end(&mut head).await;
    let start = |method: &str, path: &str| {
        format!(
            "{method} /api/v1{path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {LOCAL}\r\ncontent-type: application/json\r\n\
             content-length: 100\r\nconnection: close\r\n\r\n{{",
            server.address
        )
    };
    for (method, path) in [("POST", "/jobs".to_owned()), ("PUT", format!("/payloads/{}", "a".repeat(64)))] {
        let mut body = TcpStream::connect(server.address).await.expect("connected");
        body.write_all(start(method, &path).as_bytes()).await.expect("sent");
        let told = until_end(&mut body).await;
        assert!(told.starts_with("HTTP/1.1 408") && told.contains("too_slow"), "{method}: {told}");
        assert!(told.to_ascii_lowercase().contains("retry-after: 1"), "{method}: {told}");
    }
    for path in ["/login", "/letters/7/retry"] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/x-www-form-urlencoded\r\n\
             content-length: 100\r\nconnection: close\r\n\r\ntoken=",
            server.address
        );
        let mut form = TcpStream::connect(server.address).await.expect("connected");
        form.write_all(head.as_bytes()).await.expect("sent");
        let told = until_end(&mut form).await;
        assert!(told.starts_with("HTTP/1.1 408"), "{path}: {told}");
    }
    let mut gone = TcpStream::connect(server.address).await.expect("connected");
    gone.write_all(start("POST", "/jobs").as_bytes()).await.expect("sent");
    drop(gone);
    assert_eq!(jobs(&server).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_too_slowly_is_dropped() {
    let server = Running::with_options(impatient()).await;
    // One job is on its page however long it is: this one is of another time, with another `input_max`.
    let input = json!({ "text": "x".repeat(12 << 20) }).as_object().cloned().expect("an object");
    let job = server.redrive.new_job(input);
    server
        .redrive
        .enqueue_jobs(&"shop".parse().expect("a name"), Bounds::default(), vec![job])
        .await
        .expect("accepted");
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    let head = format!(
        "GET /api/v1/jobs?limit=1000 HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {LOCAL}\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    // The server has more to say than the buffers of both ends hold. It gives up, and what comes then is less than all.
    let begun = tokio::time::timeout(PATIENCE, stream.peek(&mut [0])).await;
    begun.expect("it begins to answer in time").expect("it answers");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let heard = until_end(&mut stream).await;
    assert!(heard.len() < 12 << 20, "{} bytes came", heard.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_and_values_have_an_end() {
    let server = Running::start().await;
    let long = json!({ "text": "x".repeat(1 << 20) });
    let refused =
        server.post("/jobs", json!({ "pipeline": "shop", "jobs": [{ "input": {} }, { "input": long }] })).await;
    assert_eq!(refused.refused(), (413, "input_too_large".to_owned()));
    assert_eq!(refused.json()["error"]["field"], "jobs[1].input");
    let letter = json!({ "pipeline": "shop", "input": long, "message": "no" });
    let told = server.post("/letters", json!([letter])).await.ok();
    let why = &told["letters"][0]["why"];
    assert_eq!((&why["field"], &why["code"]), (&json!("input"), &json!("invalid")), "{told}");
    assert!(why["message"].as_str().is_some_and(|why| why.contains("input_max")), "{why}");
    // Two bytes a value: each of them takes fifty times as much in memory.
    let small = format!("{{\"pipeline\":\"shop\",\"input\":{{\"n\":[{}1]}},\"message\":\"no\"}}", "1,".repeat(400_000));
    for body in [small.clone(), json!({ "letters": [{ "line": 1, "text": small }] }).to_string()] {
        let path = if body.contains("line") { "/letters/import" } else { "/letters" };
        let head = format!("POST /api/v1{path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json", server.address);
        let refused = server.send(&head, body.as_bytes()).await;
        assert_eq!(refused.refused(), (413, "too_large".to_owned()), "{path}");
    }
    let many = json!({ "pipeline": "shop", "jobs": vec![json!({ "input": { "a": 1, "b": 2, "c": 3 } }); 10_000] });
    let accepted = server.post("/jobs", many).await;
    assert_eq!(accepted.status, 201, "as many as may come at once");
    assert_eq!(server.get("/letters").await.ok()["items"], json!([]));
}

/// As many clients do: all of the body first, then the answer.
#[tokio::test(flavor = "multi_thread")]
async fn refused_bodies_are_read_on_so_that_the_answer_is_heard() {
    let server = Running::start().await;
    server.token("ops", redrive_core::tokens::Role::Admin, &[]).await;
    let server = server.restart().await;
    let body = vec![b'1'; 20 << 20];
    let secret = server.token("other", redrive_core::tokens::Role::Admin, &[]).await;
    for (token, status) in [("wrong", "401"), (secret.as_str(), "413")] {
        let head = format!(
            "POST /api/v1/jobs HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            server.address,
            body.len()
        );
        let mut stream = TcpStream::connect(server.address).await.expect("connected");
        stream.write_all(head.as_bytes()).await.expect("sent");
        stream.write_all(&body).await.expect("all of it is taken");
        let told = until_end(&mut stream).await;
        assert!(told.starts_with(&format!("HTTP/1.1 {status}")), "{told}");
    }
}

/// Short bodies of many values become large: seven of them take all the room there is for bodies, which is a tenth of what they become.
#[tokio::test(flavor = "multi_thread")]
async fn short_bodies_of_many_values_take_room_for_what_they_become() {
    let server = std::sync::Arc::new(Running::start().await);
    let body = json!({ "pipeline": "shop", "jobs": [{ "input": { "many": vec![json!({ "n": 1 }); 74_000] } }] });
    let held = server.hold("enqueue");
    let mut sent = tokio::task::JoinSet::new();
    for _ in 0..9 {
        let (server, body) = (std::sync::Arc::clone(&server), body.clone());
        sent.spawn(async move { server.post("/jobs", body).await });
    }
    // All others wait.
    let refused = sent.join_next().await.expect("one").expect("answered");
    assert_eq!(refused.refused(), (429, "too_many_requests".to_owned()));
    held.release();
    let answers = sent.join_all().await;
    assert!(answers.iter().filter(|answer| answer.status == 201).count() >= 6, "{answers:?}");
}

/// Names of pipelines that strangers make up end somewhere; those that exist or are defined are not concerned.
#[tokio::test(flavor = "multi_thread")]
async fn no_more_pipelines_than_may_be_come_into_being_over_the_network() {
    let options = Options { pipelines_max: 2, ..Options::listening(([127, 0, 0, 1], 0).into()) };
    let server = Running::with_options(options).await;
    server.configure("[pipeline.defined]\nhandler = \"remote\"\n");
    let jobs = |name: &str| json!({ "pipeline": name, "jobs": [{ "input": { "n": 1 } }] });
    let letter = |name: &str| json!({ "pipeline": name, "input": { "n": 2 }, "message": "no" });
    let counts = |name: &str| json!({ "client": "c", "seq": 1, "counts": [{ "pipeline": name, "done": 1 }] });
    server.post("/jobs", jobs("one")).await.ok();
    server.post("/letters", letter("two")).await.ok();
    for (path, body) in [
        ("/jobs", jobs("three")),
        ("/letters", letter("three")),
        ("/letters", json!([letter("one"), letter("three")])),
        ("/outcomes", counts("three")),
        ("/rounds", json!({ "pipeline": "three" })),
    ] {
        assert_eq!(server.post(path, body).await.refused(), (429, "too_many_pipelines".to_owned()), "{path}");
    }
    let names = server.redrive.store().ledgers().await.expect("read").into_keys().map(|name| name.to_string());
    assert_eq!(names.collect::<Vec<_>>(), ["one", "two"]);
    server.post("/jobs", jobs("two")).await.ok();
    server.until("/pipelines", |found| found.to_string().contains("defined")).await;
    server.post("/letters", letter("defined")).await.ok();
    server.post("/outcomes", counts("one")).await.ok();
}

/// A worker that never says which it is leaves nothing behind if it gets nothing, and there are only so many of them that have jobs.
#[tokio::test(flavor = "multi_thread")]
async fn nameless_workers_are_limited() {
    let options = Options { workers_max: 2, ..Options::listening(([127, 0, 0, 1], 0).into()) };
    let server = Running::with_options(options).await;
    server.enqueue("shop", (0..2).map(|n| json!({ "n": n }))).await;
    let lease = async |pipeline: &str| server.post("/leases", json!({ "pipelines": [pipeline], "max": 1 })).await;
    let first = lease("shop").await.ok()["worker"].clone();
    for _ in 0..5 {
        assert_eq!(lease("other").await.ok()["leases"], json!([]));
    }
    assert_eq!(lease("shop").await.ok()["leases"].as_array().map(Vec::len), Some(1));
    assert_eq!(lease("shop").await.refused(), (429, "too_many_requests".to_owned()));
    server.post("/leases", json!({ "pipelines": ["shop"], "max": 1, "worker": first })).await.ok();
}
