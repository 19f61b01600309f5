//! Events: hints of what changed.

use std::time::Duration;

use redrive_server::Options;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::running::{LOCAL, Running};

/// Reads from a stream until a text has come.
async fn hear(stream: &mut TcpStream, text: &str) -> String {
    let mut heard = Vec::new();
    let reading = async {
        loop {
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).await.expect("read");
            heard.extend_from_slice(&bytes[..read]);
            let so_far = String::from_utf8_lossy(&heard).into_owned();
            if so_far.contains(text) {
                return so_far;
            }
            assert!(read > 0, "it ended with {so_far}");
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reading).await.expect("heard in time")
}

#[tokio::test(flavor = "multi_thread")]
async fn who_follows_hears_what_changed() {
    let server = Running::start().await;
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    let head = format!(
        "GET /api/v1/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {LOCAL}\r\nlast-event-id: 7\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let heard = hear(&mut stream, "data: all").await;
    assert!(heard.contains("text/event-stream") && heard.contains("event: change"), "{heard}");
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    hear(&mut stream, "jobs").await;
    drop(server.restart().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_nothing_is_in_nobodys_way_and_an_id_that_nobody_knows_means_all() {
    let server = Running::start().await;
    let follow = async |extra: &str| {
        let mut stream = TcpStream::connect(server.address).await.expect("connected");
        let head = format!(
            "GET /api/v1/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {LOCAL}{extra}\r\n\r\n",
            server.address
        );
        stream.write_all(head.as_bytes()).await.expect("sent");
        stream
    };
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(follow("").await);
    }
    let mut fresh = follow("").await;
    let begun = hear(&mut fresh, "text/event-stream").await;
    assert!(!begun.contains("data: all"), "who is new has missed nothing: {begun}");
    for unknown in ["7", "nonsense", "99999999999999", "%00"] {
        let mut back = follow(&format!("\r\nlast-event-id: {unknown}")).await;
        hear(&mut back, "data: all").await;
    }
    for n in 0..20 {
        server.enqueue("shop", [json!({ "n": n })]).await;
    }
    hear(&mut fresh, "jobs").await;
    drop(idle);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_at_once_is_few_hints() {
    let server = Running::start().await;
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    let head =
        format!("GET /api/v1/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {LOCAL}\r\n\r\n", server.address);
    stream.write_all(head.as_bytes()).await.expect("sent");
    hear(&mut stream, "text/event-stream").await;
    let begun = std::time::Instant::now();
    for n in 0..100 {
        server.enqueue("shop", [json!({ "n": n })]).await;
    }
    // What comes after all of them are accepted tells of the last.
    let heard = hear(&mut stream, "jobs").await;
    server.post("/pipelines/shop/pause", json!({})).await.ok();
    let heard = heard + &hear(&mut stream, "pipelines").await;
    let hints = heard.matches("event: change").count();
    let most = usize::try_from(begun.elapsed().as_millis() / 100).expect("a number") + 2;
    assert!(hints <= most, "{hints} hints of {most} at most");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_ask_any_more_hears_nothing_more() {
    let server = Running::start().await;
    let admin = server.token("ops", redrive_core::tokens::Role::Admin, &[]).await;
    let token = server.token("eve", redrive_core::tokens::Role::Viewer, &[]).await;
    let server = server.restart().await;
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    let head = format!(
        "GET /api/v1/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\nlast-event-id: 1\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    hear(&mut stream, "data: all").await;
    server.ask_as(Some(&admin), "DELETE /tokens/eve", &[], None).await.ok();
    let jobs = json!({ "pipeline": "shop", "jobs": [{ "input": {} }] });
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(60), async {
        server.ask_as(Some(&admin), "POST /jobs", &[], Some(jobs)).await.ok();
        stream.read_to_end(&mut rest).await.expect("read")
    });
    ended.await.expect("it ends");
    assert!(!String::from_utf8_lossy(&rest).contains("jobs"), "{}", String::from_utf8_lossy(&rest));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_hears_that_its_server_is_there_and_that_an_alert_fires() {
    let options = Options { silence: Duration::from_millis(600), ..Options::listening(([127, 0, 0, 1], 0).into()) };
    let server = Running::with_options(options).await;
    for number in 0..6 {
        server.report("shop", json!({ "n": number }), "SelectorNotFound: .price").await;
    }
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    let cookie = server.cookie.as_deref().expect("a cookie");
    let head = format!("GET /events HTTP/1.1\r\nhost: {}\r\ncookie: {cookie}\r\n\r\n", server.address);
    stream.write_all(head.as_bytes()).await.expect("sent");
    // A browser tells nobody of an event without data.
    hear(&mut stream, "event: alive\ndata: yes").await;
    server.redrive.judge_alerts(&redrive::alerts::Watching::default()).await.expect("judged");
    hear(&mut stream, "data: alerts").await;
}
