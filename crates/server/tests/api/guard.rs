//! What is refused of whomever it comes from.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::browsing::Browser;
use crate::running::{LOCAL, Running};

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_not_its_own_is_refused() {
    let server = Running::start().await;
    let head = |host: &str| format!("GET /api/v1/jobs HTTP/1.1\r\nhost: {host}");
    let look = |host: &str| format!("GET / HTTP/1.1\r\nhost: {host}\r\naccept: text/html,*/*;q=0.8");
    for own in ["127.0.0.1:7171", "localhost", "[::1]:80"] {
        assert_eq!(server.send(&head(own), b"").await.status, 200, "{own}");
    }
    for foreign in ["evil.example", "127.0.0.1.evil.example", "10.1.2.3"] {
        assert_eq!(server.send(&head(foreign), b"").await.refused(), (403, "foreign_host".to_owned()), "{foreign}");
        let page = server.send(&look(foreign), b"").await;
        assert_eq!((page.status, page.header("content-type")), (403, Some("text/html; charset=utf-8")), "{foreign}");
        assert!(page.text().contains(foreign) && page.text().contains("--public-url"), "{}", page.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_site_changes_nothing() {
    let server = Running::start().await;
    let body = json!({ "pipeline": "shop", "jobs": [{ "input": {} }] }).to_string();
    let head = |extra: &str| format!("POST /api/v1/jobs HTTP/1.1\r\nhost: {}\r\n{extra}", server.address);
    let json = "content-type: application/json";
    let foreign = head(&format!("{json}\r\norigin: https://evil.example"));
    assert_eq!(server.send(&foreign, body.as_bytes()).await.refused(), (403, "foreign_origin".to_owned()));
    let neighbour = head(&format!("{json}\r\norigin: http://127.0.0.1:3000"));
    assert_eq!(server.send(&neighbour, body.as_bytes()).await.refused(), (403, "foreign_origin".to_owned()));
    let null = head(&format!("{json}\r\norigin: null"));
    assert_eq!(server.send(&null, body.as_bytes()).await.refused(), (403, "foreign_origin".to_owned()));
    let both = head(&format!("{json}\r\norigin: http://{}\r\norigin: https://evil.example", server.address));
    assert_eq!(server.send(&both, body.as_bytes()).await.refused(), (403, "foreign_origin".to_owned()));
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        let form = head(&format!("content-type: {kind}"));
        assert_eq!(server.send(&form, body.as_bytes()).await.refused(), (415, "json_required".to_owned()), "{kind}");
    }
    assert_eq!(server.get("/jobs").await.ok()["items"], json!([]));
    let own = head(&format!("{json}; charset=utf-8\r\norigin: http://{}", server.address));
    assert_eq!(server.send(&own, body.as_bytes()).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_only_who_has_the_token_file_or_the_link_is_let_in() {
    let server = Running::start().await;
    let bare = async |head: &str| {
        let head = format!("{head}\r\nhost: {}\r\nconnection: close\r\n\r\n", server.address);
        server.send_raw(head.as_bytes()).await
    };
    for line in ["", "\r\nx-forwarded-for: 1.2.3.4", "\r\nauthorization: Bearer rdl_another"] {
        // As nginx passes a stranger's request on, too.
        for path in ["/api/v1/jobs", "/metrics", "/api/v1/events"] {
            let answer = bare(&format!("GET {path} HTTP/1.1{line}")).await;
            assert_eq!(answer.refused(), (401, "unauthenticated".to_owned()), "{path} {line}");
        }
        for path in ["/", "/settings/tokens", "/events"] {
            let answer = bare(&format!("GET {path} HTTP/1.1{line}")).await;
            assert!(answer.leads_to().starts_with("/login"), "{path} {line}");
        }
        assert_eq!(bare(&format!("GET /healthz HTTP/1.1{line}")).await.status, 200);
        assert_eq!(bare(&format!("GET /readyz HTTP/1.1{line}")).await.status, 200);
    }
    let stranger = Browser::stranger(&server);
    assert_eq!(stranger.send("POST", "/login", &[("token", "rdl_another")]).await.status, 401);
    let used = stranger.get("/login?link=rdo_another").await;
    assert!(used.status == 401 && used.text().contains("opened before"), "{}", used.text());
    assert_eq!(bare(&format!("GET /metrics HTTP/1.1\r\nauthorization: Bearer {LOCAL}")).await.status, 200);
    assert_eq!(Browser::new(&server).get("/").await.status, 200, "by the link");
    assert_eq!(Browser::another(&server).await.get("/").await.status, 200, "by the file");
    let token = server.token("ops", redrive_core::tokens::Role::Admin, &[]).await;
    assert_eq!(bare(&format!("GET /metrics HTTP/1.1\r\nauthorization: Bearer {LOCAL}")).await.status, 401);
    assert!(Browser::new(&server).get("/").await.leads_to().starts_with("/login"));
    assert_eq!(server.ask_as(Some(&token), "GET /jobs", &["x-forwarded-for: 1.2.3.4"], None).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_read_up_to_its_limit_and_its_depth() {
    let server = Running::start().await;
    let broken = format!("POST /api/v1/jobs HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json", server.address);
    for body in ["{", "[]", "7", "{\"pipeline\": \"shop\", \"jobs\": []} and more", "\u{1}"] {
        assert_eq!(server.send(&broken, body.as_bytes()).await.refused(), (400, "invalid".to_owned()), "{body}");
    }
    let deep = format!("{{\"pipeline\":\"shop\",\"jobs\":[{{\"input\":{{\"a\":{}}}}}]}}", "[".repeat(100_000));
    assert_eq!(server.send(&broken, deep.as_bytes()).await.status, 400);
    let long = format!(
        "{broken}\r\nauthorization: Bearer {LOCAL}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        17 << 20
    );
    assert_eq!(server.send_raw(long.as_bytes()).await.refused(), (413, "too_large".to_owned()));
    let answer = server.post("/jobs", json!({ "pipeline": "shop", "jobs": [{ "input": {}, "colour": 1 }] })).await;
    assert_eq!(answer.json()["error"]["field"], "jobs[0].colour", "{}", answer.json());
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_have_room_for_a_few_at_once() {
    let server = Running::start().await;
    let head = format!("POST /api/v1/jobs HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json", server.address);
    let length = 16 << 20;
    // Whoever is not refused stays, and takes room.
    let (mut held, begun) = (Vec::new(), Instant::now());
    loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "there is room without end");
        let mut stream = TcpStream::connect(server.address).await.expect("connected");
        let asked =
            format!("{head}\r\nauthorization: Bearer {LOCAL}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
        stream.write_all(asked.as_bytes()).await.expect("sent");
        let mut answer = [0; 1024];
        match tokio::time::timeout(Duration::from_millis(500), stream.read(&mut answer)).await {
            Ok(read) => {
                let answer = String::from_utf8_lossy(&answer[..read.expect("read")]).into_owned();
                assert!(answer.contains("too_many_requests"), "{answer}");
                break;
            }
            Err(_) => held.push(stream),
        }
    }
    assert!(held.len() >= 4, "{} have room", held.len());
    drop(held);
    let small = json!({ "pipeline": "shop", "jobs": [{ "input": {} }] });
    while server.post("/jobs", small.clone()).await.status != 201 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the room was not given back");
    }
}
