//! The `http` handler against servers that the world runs: nginx and squid.

use std::collections::BTreeSet;

use crate::support::bench::{Bench, Caught, config};
use crate::support::servers::nginx::Nginx;
use crate::support::servers::squid::{PASSWORD, Squid, USER};
use redrive::handler::http::extract::Rules;
use redrive::handler::http::{Authorities, Http, HttpConfig, Proxy};
use redrive::{Pipeline, Reason, json};
use serde_json::Value;

/// Trusts the authority of a server too.
fn trusting(nginx: &Nginx) -> HttpConfig {
    let mut asked = config();
    asked.transport.authorities = Authorities::read(&nginx.ca).expect("certificates");
    let rules: Rules =
        serde_json::from_value(json!({"fields": {"all": {"pointer": "", "type": "json"}}})).expect("rules");
    asked.extractor = Some(rules.compile().expect("valid"));
    asked
}

/// Fetches an address several times, one after the other, and gives the answers.
async fn fetch(asked: HttpConfig, url: &str, times: usize) -> Vec<Value> {
    let (bench, sink) = (Bench::new(), Caught::default());
    let pipeline = Pipeline::new("p", Http::new(asked).expect("a handler")).expect("a pipeline");
    let pipeline = pipeline.attempts(1).concurrency(1).sink(sink.clone());
    let inputs = (0..times).map(|n| json!({"url": url, "n": n}));
    bench.redrive.enqueue(&pipeline, inputs).await.expect("accepted");
    bench.redrive.drain(pipeline).await.expect("drained");
    let caught = sink.0.lock().expect("unpoisoned").clone();
    caught.into_iter().map(|record| record["all"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_http_2_kept_connections_and_compression_work_with_nginx() {
    let nginx = Nginx::start();
    for (url, protocol) in [(nginx.tls("good"), "HTTP/2.0"), (nginx.plain(), "HTTP/1.1")] {
        let answers = fetch(trusting(&nginx), &url, 4).await;
        assert_eq!(answers.len(), 4, "{url}");
        assert!(answers.iter().all(|answer| answer["protocol"] == protocol), "{answers:?}");
        let connections: BTreeSet<_> = answers.iter().map(|answer| answer["connection"].to_string()).collect();
        assert!(connections.len() < answers.len(), "connections are used again: {answers:?}");
        let packed = |line: &&str| line.starts_with(protocol) && line.ends_with(" gzip");
        let log = nginx.log(|log| log.lines().filter(packed).count() == 4);
        assert_eq!(log.lines().filter(packed).count(), 4, "{log}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_is_not_accepted_says_why_at_once() {
    let nginx = Nginx::start();
    for (certificate, said) in [
        ("expired", "the server's certificate expired on 2020-01-01: "),
        ("other-name", "the server's certificate is for other.example, not for localhost: "),
        ("stranger", "the server's certificate is signed by itself, or by an authority that is not trusted here: name"),
        ("self-signed", "the server's certificate is signed by itself, or by"),
        ("self-signed-authority", "the server's certificate is that of an authority (a self-signed one"),
    ] {
        let letter =
            Bench::new().run(trusting(&nginx), json!({"url": nginx.tls(certificate)})).await.expect("it fails");
        assert_eq!((letter.reason, letter.code.as_deref()), (Reason::Tls, Some("tls")), "{}", letter.message);
        assert!(letter.message.starts_with(said), "{certificate}: {}", letter.message);
    }
    let letter = Bench::new().run(config(), json!({"url": nginx.tls("good")})).await.expect("it fails");
    assert!(letter.message.contains("`ca`"), "without its authority nothing is trusted: {}", letter.message);
    let no_tls = nginx.plain().replace("http:", "https:");
    let letter = Bench::new().run(config(), json!({"url": no_tls})).await.expect("it fails");
    assert!(letter.message.starts_with("the server does not speak TLS"), "{}", letter.message);
    let mut asked = trusting(&nginx);
    asked.transport.authorities = Authorities::read(&nginx.certificate("self-signed")).expect("a certificate");
    assert_eq!(fetch(asked, &nginx.tls("self-signed"), 1).await.len(), 1, "one that is named itself is trusted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn squid_is_passed_with_the_right_credentials_and_blocks_others() {
    let (nginx, squid) = (Nginx::start(), Squid::start());
    let by = |password: &str| {
        let mut asked = trusting(&nginx);
        asked.transport.proxies = vec![Proxy { label: "eu-1".into(), url: squid.url(USER, password) }];
        asked
    };
    for url in [nginx.plain(), nginx.tls("good")] {
        assert_eq!(fetch(by(PASSWORD), &url, 1).await.len(), 1, "{url}: {}", squid.log(|_| true));
        let letter = Bench::new().run(by("wr0ng-pa55word"), json!({"url": url})).await.expect("it fails");
        assert_eq!((letter.reason, letter.code.as_deref()), (Reason::Blocked, Some("http_407")), "{}", letter.message);
        assert_eq!(letter.proxy.as_deref(), Some("eu-1"));
        assert!(!letter.message.contains("pa55word"), "{}", letter.message);
    }
    let both = |log: &str| log.contains("TCP_TUNNEL/200") && log.contains("TCP_MISS/200");
    let log = squid.log(both);
    assert!(both(&log), "both kinds went through it: {log}");
}
