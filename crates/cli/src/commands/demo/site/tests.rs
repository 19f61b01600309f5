//! The site as a client with nothing but a socket sees it.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::catalogue::{Behaviour, Product, api_catalogue};
use super::goods::price;
use super::solver::{BANNED_API_KEY, EMPTY_API_KEY};
use super::*;

/// A response as it came over the wire, whole or not.
struct Reply {
    status: u16,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

impl Reply {
    fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("UTF-8")
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    fn announced(&self) -> usize {
        self.headers["content-length"].parse().expect("a length")
    }
}

async fn open(site: &Site, request: &str) -> TcpStream {
    let mut socket = TcpStream::connect(site.address()).await.expect("connected");
    socket.write_all(request.as_bytes()).await.expect("sent");
    socket
}

async fn exchange(site: &Site, request: &str) -> Reply {
    let mut bytes = Vec::new();
    open(site, request).await.read_to_end(&mut bytes).await.expect("read");
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Reply {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&bytes[..end]);
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    Reply {
        status: head[9..12].parse().expect("a status"),
        headers: head.lines().filter_map(header).collect(),
        body: bytes[end + 4..].to_vec(),
    }
}

async fn get(site: &Site, target: &str) -> Reply {
    exchange(site, &format!("GET {target} HTTP/1.1\r\nHost: shop\r\n\r\n")).await
}

async fn post(site: &Site, path: &str, body: &str) -> Reply {
    let length = body.len();
    exchange(site, &format!("POST {path} HTTP/1.1\r\nHost: shop\r\ncontent-length: {length}\r\n\r\n{body}")).await
}

#[tokio::test]
async fn every_page_does_what_the_catalogue_says() {
    let site = Site::start().expect("started");
    for Product { number, path, behaviour } in catalogue() {
        if behaviour == Behaviour::Hangs {
            continue;
        }
        let reply = get(&site, &path).await;
        let (status, html) = (reply.status, reply.text());
        let whole = reply.announced() == reply.body.len();
        let old_price = html.contains(&format!("<span class=\"price-tag-main\">{}</span>", price(number)));
        let new_price = html.contains(&format!("<div class=\"price\"><data value=\"{}\">", price(number)));
        let seen = (status, whole, old_price, new_price, html.contains("Checking your browser before accessing"));
        let expected = match behaviour {
            Behaviour::OldLayout => (200, true, true, false, false),
            Behaviour::NewLayout => (200, true, false, true, false),
            Behaviour::PriceOnRequest => (200, true, false, false, false),
            Behaviour::Forbidden => (403, true, false, false, true),
            Behaviour::HiddenChallenge => (200, true, false, false, true),
            Behaviour::BreaksOff => (200, false, old_price, false, false),
            Behaviour::UnavailableTwice => (503, true, false, false, false),
            Behaviour::RateLimitedOnce => (429, true, false, false, false),
            Behaviour::NotFound => (404, true, false, false, false),
            Behaviour::Hangs | Behaviour::Json | Behaviour::TruncatedJson => unreachable!(),
        };
        assert_eq!(seen, expected, "product {number}");
    }
}

#[tokio::test]
async fn pages_are_shop_pages_with_everything_filled_in() {
    let site = Site::start().expect("started");
    for path in ["/products/1", "/products/120", "/products/101", "/"] {
        let html = get(&site, path).await.text();
        assert!((5_000..20_000).contains(&html.len()), "{path} has {} bytes", html.len());
        assert!(!html.contains("{{"), "{path} has an empty place");
    }
    let page = get(&site, "/products/61").await.text();
    for part in ["<h1 class=\"title\">", "<li class=\"tag\">", "<p class=\"description\">", "data:image/svg+xml,%3Csvg"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("price-tag-main"));
    assert_eq!(get(&site, "/images/7.svg").await.headers["content-type"], "image/svg+xml");
}

#[tokio::test]
async fn products_that_recover_do_so_after_their_failures() {
    let site = Site::start().expect("started");
    let mut statuses = Vec::new();
    for path in ["/products/9", "/products/9", "/products/9", "/products/14", "/products/14"] {
        let reply = get(&site, path).await;
        statuses.push((reply.status, reply.headers.get("retry-after").cloned()));
    }
    let once = Some("1".to_owned());
    assert_eq!(statuses, [(503, None), (503, None), (200, None), (429, once), (200, None)]);
    assert_eq!((site.count("/products/9"), site.count("/products/1")), (3, 0));
    assert_eq!(get(&site, "/counts?x=1").await.json()["/products/9"], 3);
}

#[tokio::test]
async fn the_hanging_page_says_nothing_and_is_counted() {
    let site = Site::start().expect("started");
    let mut socket = open(&site, "GET /products/42 HTTP/1.1\r\n\r\n").await;
    while site.count("/products/42") == 0 {
        tokio::task::yield_now().await;
    }
    assert!(timeout(Duration::from_millis(200), socket.read_u8()).await.is_err());
    assert_eq!(site.count("/products/42"), 1);
}

#[tokio::test]
async fn one_document_of_the_api_is_half_a_document() {
    let site = Site::start().expect("started");
    for Product { number, path, behaviour } in api_catalogue() {
        let reply = get(&site, &path).await;
        assert_eq!((reply.status, reply.announced()), (200, reply.body.len()));
        let parsed: Result<Value, _> = serde_json::from_slice(&reply.body);
        assert_eq!(parsed.is_err(), behaviour == Behaviour::TruncatedJson, "product {number}");
        if let Ok(document) = parsed {
            assert_eq!(document["price"]["amount"], price(number));
        }
    }
    for missing in ["/api/products/0", "/api/products/121", "/products/0", "/products/07", "/products/x"] {
        assert_eq!(get(&site, missing).await.status, 404, "{missing}");
    }
}

#[tokio::test]
async fn the_poison_pill_goes_on_for_as_long_as_it_is_read() {
    let site = Site::start().expect("started");
    let mut socket = open(&site, "GET /huge HTTP/1.1\r\n\r\n").await;
    let mut bytes = vec![0; 4 << 20];
    socket.read_exact(&mut bytes).await.expect("4 MiB");
    let head = String::from_utf8_lossy(&bytes[..400]);
    for part in ["Transfer-Encoding: chunked", r#"{"products":["#, r#"{"number":1,"title":"#] {
        assert!(head.contains(part), "{part} in {head}");
    }
}

#[tokio::test]
async fn stopping_closes_the_port_and_every_connection() {
    let site = Site::start().expect("started");
    let address: SocketAddr = site.address();
    let mut hanging = open(&site, "GET /products/42 HTTP/1.1\r\n\r\n").await;
    while site.count("/products/42") == 0 {
        tokio::task::yield_now().await;
    }
    site.stop().await;
    let end = timeout(Duration::from_secs(60), hanging.read(&mut [0; 1])).await.expect("in time");
    assert!(matches!(end, Ok(0) | Err(_)));
    assert!(TcpStream::connect(address).await.is_err());
}

#[test]
fn goods_differ() {
    let titles: HashSet<_> = (1..=PRODUCTS).map(goods::title).collect();
    assert_eq!(titles.len(), PRODUCTS as usize);
    assert_eq!(price(1), "12.99");
}

fn submission(key: &str, sitekey: &str) -> String {
    format!("key={key}&method=userrecaptcha&googlekey={sitekey}&pageurl=http%3A%2F%2Fshop%2Fproducts%2F1&json=1")
}

fn said(status: u8, request: &str) -> Value {
    json!({ "status": status, "request": request })
}

/// Submits a sitekey that is accepted and says what the first four polls find.
async fn polled(site: &Site, sitekey: &str) -> Vec<Value> {
    let task = post(site, "/in.php", &submission(API_KEY, sitekey)).await.json();
    assert_eq!(task["status"], 1, "{task}");
    let id = task["request"].as_str().expect("an id");
    let mut polls = Vec::new();
    for _ in 0..4 {
        polls.push(get(site, &format!("/res.php?key={API_KEY}&action=get&id={id}&json=1")).await.json());
    }
    polls
}

#[tokio::test]
async fn the_in_php_form_solves_on_the_third_poll() {
    let site = Site::start().expect("started");
    let pending = said(0, "CAPCHA_NOT_READY");
    let solved = polled(&site, "6Ldemo-solved-1").await;
    assert_eq!((&solved[0], &solved[1], &solved[2]["status"]), (&pending, &pending, &json!(1)));
    assert_eq!(solved[2], solved[3], "a result can be fetched again");
    let given_up = polled(&site, "6Ldemo-unsolvable").await;
    assert_eq!(given_up[1..3], [pending.clone(), said(0, "ERROR_CAPTCHA_UNSOLVABLE")]);
    assert_eq!(polled(&site, "6Ldemo-never-ready").await, vec![pending; 4]);
    assert_eq!((site.count("/in.php"), site.count("/res.php")), (3, 12));
}

#[tokio::test]
async fn the_in_php_form_refuses_by_code() {
    let site = Site::start().expect("started");
    let cases = [
        (API_KEY, "6Ldemo-wrong-sitekey", "ERROR_WRONG_GOOGLEKEY"),
        (API_KEY, "", "ERROR_WRONG_GOOGLEKEY"),
        (API_KEY, "6Ldemo-unknown-code", "ERROR_MOON_PHASE"),
        (API_KEY, "6Ldemo-no-slot", "ERROR_NO_SLOT_AVAILABLE"),
        ("another", "6Ldemo-solved-1", "ERROR_KEY_DOES_NOT_EXIST"),
        (EMPTY_API_KEY, "6Ldemo-solved-1", "ERROR_ZERO_BALANCE"),
        (BANNED_API_KEY, "6Ldemo-solved-1", "IP_BANNED"),
    ];
    for (key, sitekey, code) in cases {
        let reply = get(&site, &format!("/in.php?{}", submission(key, sitekey))).await;
        assert_eq!(reply.json(), said(0, code));
    }
    let again = get(&site, &format!("/in.php?{}", submission(API_KEY, "6Ldemo-no-slot"))).await.json();
    assert_eq!(again["status"], 1, "the second time there is a slot");
    let unknown = get(&site, &format!("/res.php?key={API_KEY}&action=get&id=1")).await;
    assert_eq!(unknown.text(), "ERROR_WRONG_CAPTCHA_ID", "plain text without json=1");
}

#[tokio::test]
async fn a_task_has_the_same_id_and_token_in_every_run() {
    let mut runs = Vec::new();
    for order in [["a", "b"], ["b", "a"]] {
        let site = Site::start().expect("started");
        let mut ids = BTreeMap::new();
        for sitekey in order {
            let body = format!("key={API_KEY}&googlekey={sitekey}&pageurl={}&json=1", site.url("/products/1"));
            ids.insert(sitekey, post(&site, "/in.php", &body).await.json()["request"].clone());
        }
        runs.push(ids);
    }
    assert_eq!(runs[0], runs[1]);
}

fn task(key: &str, sitekey: &str) -> String {
    let task = json!({ "type": "RecaptchaV2TaskProxyless", "websiteURL": "http://shop/1", "websiteKey": sitekey });
    json!({ "clientKey": key, "task": task }).to_string()
}

#[tokio::test]
async fn the_create_task_form_solves_on_the_third_poll() {
    let site = Site::start().expect("started");
    let created = post(&site, "/createTask", &task(API_KEY, "6Ldemo-solved-1")).await.json();
    assert_eq!(created["errorId"], 0);
    let query = json!({ "clientKey": API_KEY, "taskId": created["taskId"] }).to_string();
    let mut polls = Vec::new();
    for _ in 0..3 {
        polls.push(post(&site, "/getTaskResult", &query).await.json());
    }
    let processing = json!({ "errorId": 0, "status": "processing" });
    assert_eq!(polls[..2], [processing.clone(), processing]);
    assert_eq!(polls[2]["status"], "ready");
    assert!(polls[2]["solution"]["gRecaptchaResponse"].is_string());
}

#[tokio::test]
async fn the_create_task_form_refuses_by_code() {
    let site = Site::start().expect("started");
    let cases = [
        (task(API_KEY, "6Ldemo-wrong-sitekey"), "ERROR_RECAPTCHA_INVALID_SITEKEY"),
        (task(API_KEY, "6Ldemo-unknown-code"), "ERROR_MOON_PHASE"),
        (task(API_KEY, "6Ldemo-no-slot"), "ERROR_NO_SLOT_AVAILABLE"),
        (task("another", "6Ldemo-solved-1"), "ERROR_KEY_DOES_NOT_EXIST"),
        (task(EMPTY_API_KEY, "6Ldemo-solved-1"), "ERROR_ZERO_BALANCE"),
        (task(BANNED_API_KEY, "6Ldemo-solved-1"), "ERROR_IP_BLOCKED"),
        ("{".to_owned(), "ERROR_BAD_REQUEST"),
    ];
    for (body, code) in cases {
        let answer = post(&site, "/createTask", &body).await.json();
        assert_eq!((&answer["errorId"], &answer["errorCode"]), (&json!(1), &json!(code)));
        assert!(answer["errorDescription"].is_string());
    }
    let unknown = post(&site, "/getTaskResult", &json!({ "clientKey": API_KEY, "taskId": "7" }).to_string()).await;
    assert_eq!(unknown.json()["errorCode"], "ERROR_NO_SUCH_CAPCHA_ID");
}
