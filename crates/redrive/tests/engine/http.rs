//! The `http` handler against a server that misbehaves for real: every reason that can come from HTTP.

use std::time::Duration;

use crate::support::bench::{Bench, Caught, assert_no_secret, config, payload};
use crate::support::misbehaving::{ClosedPort, FullPort, Misbehaving, bodies};
use redrive::handler::http::extract::Rules;
use redrive::handler::http::request::Template;
use redrive::handler::http::validate::Validator;
use redrive::handler::http::{Authorities, Http, HttpConfig, Proxy};
use redrive::{Pipeline, Policy, Reason, json};
use redrive_core::payloads::Payload;
use serde_json::Value;

fn rules(text: Value) -> Rules {
    serde_json::from_value(text).expect("rules")
}

/// The reason and code of the failure of a path.
async fn fails(server: &Misbehaving, path: &str) -> (Reason, String, Option<Payload>) {
    fails_of(&Bench::new(), config(), &server.url(path)).await
}

async fn fails_of(bench: &Bench, asked: HttpConfig, url: &str) -> (Reason, String, Option<Payload>) {
    let letter = bench.run(asked, json!({"url": url})).await;
    let letter = letter.unwrap_or_else(|| panic!("{url} did not fail"));
    (letter.reason, letter.code.clone().unwrap_or_default(), payload(&letter))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_to_misbehave_has_its_reason() {
    let server = Misbehaving::start();
    for (path, reason, code) in [
        ("/reset", Reason::Network, "connection_reset"),
        ("/short", Reason::Network, "broken_off"),
        ("/badgzip", Reason::MalformedPayload, "bad_encoding"),
        ("/loop", Reason::ServerError, "redirect_loop"),
        ("/endless", Reason::MalformedPayload, "body_too_large"),
        ("/status/401", Reason::Blocked, "http_401"),
        ("/status/403", Reason::Blocked, "http_403"),
        ("/status/404", Reason::NotFound, "http_404"),
        ("/status/408", Reason::Timeout, "http_408"),
        ("/status/422", Reason::RejectedInput, "http_422"),
        ("/status/500", Reason::ServerError, "http_500"),
        ("/status/504", Reason::Timeout, "http_504"),
        ("/retry-after/7", Reason::RateLimited, "http_429"),
        ("/challenge200", Reason::Blocked, "challenge"),
        ("/truncjson", Reason::MalformedPayload, ""),
    ] {
        let (found, said, _) = fails(&server, path).await;
        assert_eq!(found, reason, "{path} ({said})");
        assert!(code.is_empty() || said == code, "{path}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn body_that_the_connection_cut_short_gets_one_retry() {
    let server = Misbehaving::start();
    let bench = Bench { attempts: 4, ..Bench::new() };
    for (path, reason, requests) in [
        ("/short", Reason::Network, 2),
        ("/short-chunked", Reason::Network, 2),
        ("/truncgzip", Reason::Network, 2),
        ("/badgzip", Reason::MalformedPayload, 2),
        ("/truncjson", Reason::MalformedPayload, 1),
    ] {
        let (found, code, kept) = fails_of(&bench, config(), &server.url(path)).await;
        assert_eq!((found, server.count(path)), (reason, requests), "{path} ({code})");
        assert!(kept.is_some() || path == "/badgzip", "{path}: what came is kept");
    }
    let fresh = Bench { attempts: 4, ..Bench::new() };
    assert!(fresh.run(config(), json!({"url": server.url("/short-once")})).await.is_none(), "the second one is whole");
    assert_eq!(server.count("/short-once"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_connection_that_ends_within_a_body_is_broken_off() {
    let server = Misbehaving::start_tls_self_signed();
    let certificate = data_encoding::BASE64.encode(server.certificate().expect("it has one"));
    let pem = format!("-----BEGIN CERTIFICATE-----\n{certificate}\n-----END CERTIFICATE-----\n");
    let mut asked = config();
    asked.transport.authorities = Authorities::parse("of the test", pem.as_bytes()).expect("a certificate");
    let bench = Bench { attempts: 4, ..Bench::new() };
    let (reason, code, _) = fails_of(&bench, asked, &server.url("/short-without-notice")).await;
    assert_eq!((reason, code.as_str()), (Reason::Network, "broken_off"));
    assert_eq!(server.count("/short-without-notice"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(feature = "json-schema"), ignore = "needs the feature json-schema")]
async fn page_that_is_not_json_fits_no_schema() {
    let server = Misbehaving::start();
    let asked = || HttpConfig { validator: Validator::compile(&json!({})).ok(), extractor: None, ..config() };
    let (reason, ..) = fails_of(&Bench::new(), asked(), &server.url("/page")).await;
    assert_eq!(reason, Reason::MalformedPayload);
    assert!(Bench::new().run(asked(), json!({"url": server.url("/json")})).await.is_none(), "that is JSON");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_says_nothing_for_too_long_is_a_timeout() {
    let server = Misbehaving::start();
    for path in ["/hang", "/headers-only-then-hang"] {
        let mut asked = config();
        asked.transport.read_timeout = Duration::from_millis(500);
        let (reason, code, _) = fails_of(&Bench::new(), asked, &server.url(path)).await;
        assert_eq!((reason, code.as_str()), (Reason::Timeout, "timeout"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_dripped_in_before_the_deadline_is_kept() {
    let server = Misbehaving::start();
    let bench = Bench::within(Duration::from_secs(5));
    let (reason, _, kept) = fails_of(&bench, config(), &server.url("/drip")).await;
    let kept = kept.expect("what came is kept");
    assert_eq!(reason, Reason::Timeout);
    assert!(kept.size_bytes > 0 && kept.size_bytes < 100, "{} bytes", kept.size_bytes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_that_is_asked_for_is_noted_and_broken_xml_is_fatal() {
    let server = Misbehaving::start();
    let letter = Bench::new().run(config(), json!({"url": server.url("/retry-after/7")})).await.expect("it fails");
    assert_eq!(letter.failures.expect("failures")[0].retry_after_secs, Some(7.0));
    let mut asked = config();
    asked.extractor = Some(rules(json!({"format": "xml", "fields": {"x": "item::text"}})).compile().expect("valid"));
    let letter = Bench::new().run(asked, json!({"url": server.url("/truncxml")})).await.expect("it fails");
    assert_eq!((letter.reason, letter.attempts), (Reason::MalformedPayload, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fails_before_any_http() {
    let tls = Misbehaving::start_tls_self_signed();
    let (closed, full) = (ClosedPort::reserve(), FullPort::fill());
    for (url, reason) in [
        (tls.url("/page"), Reason::Tls),
        (closed.url("/"), Reason::Network),
        (full.url("/"), Reason::Timeout),
        ("http://no-such-host.invalid/".to_owned(), Reason::Dns),
        ("nonsense".to_owned(), Reason::RejectedInput),
    ] {
        let mut asked = config();
        if reason == Reason::Timeout {
            // Shorter than the wait for an answer, as by default: then it is known that nothing was reached.
            asked.transport.connect_timeout = Duration::from_millis(500);
        }
        let letter = Bench::new().run(asked, json!({"url": url})).await.expect("it fails");
        assert_eq!(letter.reason, reason, "{url}: {}", letter.message);
        let stage = letter.failures.iter().flatten().next().and_then(|failure| failure.stage.clone());
        let expected = if reason == Reason::RejectedInput { "request" } else { "connect" };
        assert_eq!(stage.as_deref(), Some(expected), "{url}");
    }
    let letter = Bench::new().run(config(), json!({"link": 1})).await.expect("it fails");
    assert_eq!(letter.code.as_deref(), Some("MissingField"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_evidence_is_what_came_and_has_no_secret() {
    let server = Misbehaving::start();
    let bench = Bench::new();
    let url = format!("{}?api_key=pl4nted-s3cret", server.url("/short"));
    let letter = bench.run(config(), json!({"url": server.url("/short"), "see": url})).await.expect("it fails");
    let kept = payload(&letter).expect("what came is kept");
    assert_eq!((kept.size_bytes, kept.truncated, kept.total_bytes), (10, true, Some(1_000)));
    assert_eq!(kept.response.status, Some(200));
    assert_eq!(bench.bytes(&kept).await.len(), 10);

    let bench = Bench::new();
    let url = format!("{}?token=pl4nted-s3cret", server.url("/status/500"));
    let mut asked = config();
    asked.request.url = Template::parse(&url).expect("a template");
    let letter = bench.run(asked, json!({"n": 1})).await.expect("it fails");
    let kept = payload(&letter).expect("kept");
    assert!(kept.response.url.as_deref().is_some_and(|url| url.ends_with("?token=***")), "{:?}", kept.response.url);
    assert_no_secret(bench.folder.path());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_literal_token_that_a_server_gives_back_is_masked() {
    let server = Misbehaving::start();
    for (name, value) in [("Authorization", "Bearer pl4nted-s3cret"), ("X-Api-Key", "pl4nted-s3cret")] {
        let mut asked = config();
        asked.transport.secrets = Default::default();
        asked.request.headers = [(name.to_owned(), Template::parse(value).expect("a template"))].into();
        let pointer = format!("/headers/{}", name.to_lowercase());
        let fields = json!({"n": {"pointer": pointer, "type": "integer"}});
        asked.extractor = Some(rules(json!({"fields": fields})).compile().expect("valid"));
        let bench = Bench::new();
        let letter = bench.run(asked, json!({"url": server.url("/echo")})).await.expect("it fails");
        assert_eq!(letter.reason, Reason::SchemaValidation);
        assert!(letter.message.contains("***"), "{}", letter.message);
        assert_no_secret(bench.folder.path());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_body_is_cut_at_the_cap() {
    let server = Misbehaving::start();
    let (_, _, kept) = fails(&server, "/endless").await;
    let kept = kept.expect("its head is kept");
    assert_eq!((kept.size_bytes, kept.truncated), (8 << 20, true));
    assert!(kept.total_bytes > Some(8 << 20));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_become_records() {
    let server = Misbehaving::start();
    let results = |extract: Value, path: &str| {
        let url = server.url(path);
        async move {
            let mut asked = config();
            asked.extractor = Some(rules(extract).compile().expect("valid rules"));
            let bench = Bench::new();
            let sink = Caught::default();
            let pipeline = Pipeline::new("p", Http::new(asked).expect("a handler")).expect("a pipeline");
            let pipeline = pipeline.attempts(1).sink(sink.clone());
            bench.redrive.enqueue(&pipeline, [json!({"url": url})]).await.expect("accepted");
            bench.redrive.drain(pipeline).await.expect("drained");
            let caught = sink.0.lock().expect("unpoisoned").clone();
            caught.into_iter().next()
        }
    };
    let json = results(json!({"fields": {"all": {"pointer": "", "type": "json"}}}), "/json").await;
    let expected: Value = serde_json::from_str(bodies::JSON).expect("JSON");
    assert_eq!(json.map(|record| record["all"].clone()), Some(expected));
    for path in ["/latin1", "/metacharset"] {
        let text = results(json!({"format": "html", "fields": {"body": "body::text"}}), path).await.expect("a record");
        let words = text["body"].as_str().expect("a text").to_owned();
        let expected = if path == "/latin1" { bodies::LATIN1_TEXT } else { bodies::WINDOWS1252_TEXT };
        assert!(words.contains(expected), "{path}: {words}");
    }
    for path in ["/gzip", "/br", "/zstd"] {
        let page = results(json!({"format": "html", "fields": {"body": "body::text"}}), path).await;
        assert!(page.is_some(), "{path}");
    }
    assert!(results(json!({"format": "html", "fields": {"body": "body::text"}}), "/cookies/set").await.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_that_is_gone_is_a_result_or_discarded_if_a_rule_says_so() {
    let server = Misbehaving::start();
    for (rule, results, died) in [
        (json!({"disposition": "done"}), vec![json!({"gone": true})], 0),
        (json!({"disposition": "done", "result": {"listed": false}}), vec![json!({"listed": false})], 0),
        (json!({"disposition": "discard"}), vec![], 0),
        (json!({}), vec![], 1),
    ] {
        let (bench, sink) = (Bench::new(), Caught::default());
        let Value::Object(mut rule) = rule else { panic!("a rule is an object") };
        rule.extend([("status".to_owned(), json!([404])), ("reason".to_owned(), json!("not_found"))]);
        let policy = Policy { rules: vec![serde_json::from_value(rule.into()).expect("valid")], ..Policy::default() };
        let pipeline = Pipeline::new("p", Http::new(config()).expect("a handler")).expect("a pipeline");
        let pipeline = pipeline.with_policy(policy).sink(sink.clone());
        let name = pipeline.name().clone();
        bench.redrive.enqueue(&pipeline, [json!({"url": server.url("/status/404")})]).await.expect("accepted");
        bench.redrive.drain(pipeline).await.expect("drained");
        let ledger = bench.redrive.ledger(&name).await.expect("counted");
        let discarded = i64::from(results.is_empty()) - died;
        let found = (ledger.done, ledger.dead, ledger.discarded);
        assert_eq!(found, (results.len() as i64, died, discarded));
        assert_eq!(*sink.0.lock().expect("unpoisoned"), results);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_field_is_fatal_and_names_its_selector() {
    let server = Misbehaving::start();
    let bench = Bench::new();
    let mut asked = config();
    let rules =
        rules(json!({"format": "html", "fields": {"price": {"select": ".price-tag-main::text", "type": "number"}}}));
    asked.extractor = Some(rules.compile().expect("valid"));
    let letter = bench.run(asked, json!({"url": server.url("/page")})).await.expect("it fails");
    assert_eq!((letter.reason, letter.code.as_deref()), (Reason::SchemaValidation, Some("SelectorNotFound")));
    assert!(letter.message.contains(".price-tag-main"), "{}", letter.message);
    let kept = payload(&letter).expect("the page is kept");
    assert_eq!(bench.bytes(&kept).await, bodies::PAGE.as_bytes());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_is_known_by_its_label_alone() {
    let server = Misbehaving::start();
    let closed = ClosedPort::reserve();
    let bench = Bench::new();
    let mut asked = config();
    let address = closed.url("").replace("http://", "http://user:pl4nted-s3cret@");
    asked.transport.proxies = vec![Proxy { label: "eu-1".into(), url: address }];
    let letter = bench.run(asked, json!({"url": server.url("/page")})).await.expect("it fails");
    assert_eq!((letter.reason, letter.proxy.as_deref()), (Reason::Network, Some("eu-1")));
    assert_no_secret(bench.folder.path());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_is_asked_no_faster_than_allowed() {
    let server = Misbehaving::start();
    let mut asked = config();
    asked.transport.per_second_max = Some(20.0);
    let bench = Bench::new();
    let pipeline = Pipeline::new("p", Http::new(asked).expect("a handler")).expect("a pipeline").concurrency(8);
    let inputs = (0..11).map(|n| json!({"url": server.url("/page"), "n": n}));
    bench.redrive.enqueue(&pipeline, inputs).await.expect("accepted");
    let begun = std::time::Instant::now();
    assert_eq!(bench.redrive.drain(pipeline).await.expect("drained").done, 11);
    assert!(begun.elapsed() >= Duration::from_millis(500), "eleven requests, ten waits of 50 ms");
}
