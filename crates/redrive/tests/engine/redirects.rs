//! Redirects between two real servers that record what they were sent.

use std::time::Duration;

use crate::support::bench::{Bench, assert_no_secret, config, payload};
use crate::support::misbehaving::Misbehaving;
use redrive::handler::http::HttpConfig;
use redrive::handler::http::request::{Body, Request, Template};
use redrive::handler::submit_poll::codes::Codes;
use redrive::handler::submit_poll::{Condition, Reading, SubmitPoll, SubmitPollConfig};
use redrive::{Reason, json};
use reqwest::Method;
use serde_json::Value;

/// Headers that every request has, whoever it goes to.
const OWN: &[&str] = &["host", "accept", "accept-encoding", "user-agent"];

fn template(text: &str) -> Template {
    Template::parse(text).expect("a template")
}

/// The headers, each with a secret of its own but the last two.
fn headers() -> std::collections::BTreeMap<String, Template> {
    let headers = [
        ("Authorization", "Bearer pl4nted-s3cret"),
        ("X-Api-Key", "pl4nted-s3cret"),
        ("Cookie", "sid=pl4nted-s3cret"),
        ("Referer", "http://here.example/?pl4nted-s3cret"),
        ("User-Agent", "mine"),
        ("Accept", "text/html"),
    ];
    headers.map(|(name, value)| (name.to_owned(), template(value))).into()
}

fn asking(method: Method, body: Body) -> HttpConfig {
    let mut asked = config();
    asked.request = Request { method, url: template("{url}"), query: Default::default(), headers: headers(), body };
    asked
}

fn names(request: &Value) -> Vec<&str> {
    request["headers"].as_object().expect("headers").keys().map(String::as_str).collect()
}

/// Asserts that a request has nothing that was configured, but for what kind of page is wanted.
#[track_caller]
fn assert_bare(request: &Value) {
    assert!(!request.to_string().contains("pl4nted-s3cret"), "{request}");
    assert!(names(request).iter().all(|name| OWN.contains(name)), "{request}");
    assert_eq!((&request["body"], &request["headers"]["accept"]), (&json!(""), &json!("text/html")));
}

/// The requests for a path.
fn asked_for(server: &Misbehaving, path: &str) -> Vec<Value> {
    let is_for = |request: &Value| request["target"].as_str().is_some_and(|target| target.starts_with(path));
    server.requests().into_iter().filter(is_for).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_configured_goes_to_another_origin_nor_comes_along_on_the_way_back() {
    let (home, away) = (Misbehaving::start(), Misbehaving::start());
    for status in [301, 302, 303, 307, 308] {
        let back = away.url(&format!("/redirect-by/{status}/{}", home.url("/echo")));
        let mut asked = asking(Method::GET, Body::None);
        asked.request.url = template(&home.url(&format!("/redirect-by/{status}/{back}")));
        asked.request.query = [("api_key".to_owned(), template("pl4nted-s3cret"))].into();
        assert_eq!(Bench::new().run(asked, json!({"n": status})).await, None, "{status}");
    }
    assert_eq!(away.requests().len(), 5);
    away.requests().iter().for_each(assert_bare);
    let back = asked_for(&home, "/echo");
    assert_eq!(back.len(), 5);
    back.iter().for_each(assert_bare);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_its_own_origin_a_request_stays_whole() {
    let home = Misbehaving::start();
    let asked = asking(Method::POST, Body::Text(template("the body")));
    for (status, method, body) in [(302, "GET", ""), (307, "POST", "the body")] {
        let url = home.url(&format!("/redirect-by/{status}/{}", home.url("/echo")));
        let asked = HttpConfig { request: asked.request.clone(), ..config() };
        assert_eq!(Bench::new().run(asked, json!({"url": url})).await, None);
        let came = asked_for(&home, "/echo").pop().expect("it came");
        assert_eq!((&came["method"], &came["body"]), (&json!(method), &json!(body)));
        assert_eq!(came["headers"]["x-api-key"], "pl4nted-s3cret");
        assert_eq!(came["headers"]["referer"], "http://here.example/?pl4nted-s3cret", "ours, not where it comes from");
    }
    // The user and password of an address too, where no header says it otherwise.
    let mut asked = HttpConfig { request: asked.request.clone(), ..config() };
    (asked.request.method, asked.request.body) = (Method::GET, Body::None);
    asked.request.headers.remove("Authorization");
    let url = home.url(&format!("/redirect-by/302/{}", home.url("/echo"))).replace("http://", "http://me:pl4nted@");
    let url = url.replacen("/http://me:pl4nted@", "/http://", 1);
    assert_eq!(Bench::new().run(asked, json!({"url": url})).await, None);
    let came = asked_for(&home, "/echo").pop().expect("it came");
    assert_eq!(came["headers"]["authorization"], "Basic bWU6cGw0bnRlZA==");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_is_not_sent_to_another_origin() {
    let (home, away) = (Misbehaving::start(), Misbehaving::start());
    let form = || Body::Form([("key".to_owned(), template("pl4nted-s3cret"))].into());
    for status in [307, 308] {
        let url = home.url(&format!("/redirect-by/{status}/{}", away.url("/echo")));
        let bench = Bench::new();
        let letter = bench.run(asking(Method::POST, form()), json!({"url": url})).await.expect("it fails");
        assert_eq!((letter.reason, letter.code.as_deref()), (Reason::Misconfigured, Some("RedirectRefused")));
        assert!(letter.message.contains(&away.url("/echo")), "{}", letter.message);
        assert_no_secret(bench.folder.path());
    }
    assert_eq!(away.requests().len(), 0);
    let url = home.url(&format!("/redirect-by/303/{}", away.url("/echo")));
    assert_eq!(Bench::new().run(asking(Method::POST, form()), json!({"url": url})).await, None);
    away.requests().iter().for_each(assert_bare);
    assert_eq!(away.requests()[0]["method"], "GET");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_that_lead_nowhere_say_so() {
    let (home, away) = (Misbehaving::start(), Misbehaving::start());
    for (path, reason, code, said) in [
        ("/status/302".to_owned(), Reason::ServerError, "http_302", "without a Location"),
        ("/redirect-by/302/file:///etc/passwd".to_owned(), Reason::ServerError, "bad_redirect", "\"file\" is not"),
        ("/redirect/6".to_owned(), Reason::ServerError, "redirect_loop", "at most 5"),
        (format!("/redirect-by/302/{}", away.url("/status/401")), Reason::Blocked, "http_401", "another origin"),
    ] {
        let letter = Bench::new().run(config(), json!({"url": home.url(&path)})).await.expect("it fails");
        assert_eq!((letter.reason, letter.code.as_deref()), (reason, Some(code)), "{path}: {}", letter.message);
        assert!(letter.message.contains(said), "{path}: {}", letter.message);
        assert_eq!(payload(&letter).is_some(), code.starts_with("http_"), "an answer with a body is kept: {path}");
    }
    assert_eq!(Bench::new().run(config(), json!({"url": home.url("/redirect/5")})).await, None, "five are followed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn submitting_and_polling_keep_to_themselves_too() {
    let (home, away) = (Misbehaving::start(), Misbehaving::start());
    let reading = || Reading {
        ready: Condition { pointer: "/method".into(), equals: vec!["GET".into()] },
        value: "/target".into(),
        pending: None,
        code: "/body".into(),
        message: None,
    };
    let handler = |submit: String| {
        let request = |url: String| Request { url: template(&url), ..asking(Method::GET, Body::None).request };
        let poll = request(home.url(&format!("/redirect-by/302/{}", away.url("/echo"))));
        let config = SubmitPollConfig {
            transport: config().transport,
            submit: Request { method: Method::POST, body: Body::Text(template("pl4nted-s3cret")), ..request(submit) },
            submit_reading: reading(),
            poll,
            poll_reading: reading(),
            every: Duration::from_millis(1),
            polls_max: 1,
            codes: Codes::default(),
        };
        SubmitPoll::new(config).expect("a handler")
    };
    let submit = handler(home.url(&format!("/redirect-by/303/{}", away.url("/echo"))));
    assert_eq!(Bench::new().run_handler(submit, json!({"n": 1})).await, None);
    assert_eq!(away.requests().len(), 2);
    away.requests().iter().for_each(assert_bare);
    let submit = handler(home.url(&format!("/redirect-by/307/{}", away.url("/echo"))));
    let letter = Bench::new().run_handler(submit, json!({"n": 1})).await.expect("it fails");
    assert_eq!(letter.code.as_deref(), Some("RedirectRefused"), "{}", letter.message);
    assert_eq!(away.requests().len(), 2);
}
