//! `redrive` with a proxy that asks for a password (squid), and with a certificate authority of one's own (nginx).

use data_encoding::BASE64;
use serde_json::json;

use crate::dashboard_commands::{browser, unset};
use crate::harness::{DemoSite, Ran, Sandbox};
use crate::real::nginx::{Nginx, PathProxy};
use crate::real::squid::{PASSWORD, Squid, USER};
use crate::served::{Served, free_address};

const WRONG: &str = "wr0ng-pa55word";

/// Asserts that neither what was printed nor what was kept has a password, plain or as it is sent.
#[track_caller]
fn assert_nowhere(sandbox: &Sandbox, printed: &[u8], password: &str) {
    let sent = BASE64.encode(format!("{USER}:{password}").as_bytes());
    let has_it = |bytes: &[u8]| {
        [password, &sent].iter().any(|secret| bytes.windows(secret.len()).any(|window| window == secret.as_bytes()))
    };
    assert!(!has_it(printed), "printed: {}", String::from_utf8_lossy(printed));
    assert!(!has_it(sandbox.redrive("dead export").expect(0).stdout.as_bytes()), "exported");
    let mut folders = vec![sandbox.path(".redrive")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => assert!(!has_it(&std::fs::read(&path).unwrap_or_default()), "{} has it", path.display()),
            }
        }
    }
}

#[test]
fn a_proxys_password_is_nowhere_whether_it_is_right_or_wrong() {
    let sandbox = Sandbox::new();
    let (site, squid) = (DemoSite::start(&sandbox), Squid::start());
    sandbox.write("tasks.jsonl", format!("{}\n", json!({"url": site.url("products/1")})));
    let run = |url: &str, password: &str| {
        let config = format!("proxies = [{{ label = \"eu-1\", url = \"{url}\" }}]\n");
        let config = format!("[pipeline.p]\nhandler = \"http\"\npayload = \"always\"\n[pipeline.p.http]\n{config}");
        sandbox.write("redrive.toml", config);
        let mut command = sandbox.command();
        command.args(["run", "tasks.jsonl"]).env("PROXY_PASSWORD", password).env("REDRIVE_LOG", "trace");
        let output = command.output().expect("ran");
        assert_nowhere(&sandbox, &[output.stdout, output.stderr].concat(), password);
        output.status.code()
    };
    assert_eq!(run(&squid.url(USER, WRONG), WRONG), Some(3), "literally");
    let letter = &sandbox.dead()[0];
    assert_eq!((&letter["reason"], &letter["code"]), (&json!("blocked"), &json!("http_407")), "{letter}");
    assert_eq!((&letter["proxy"], &letter["attempts"]), (&json!("eu-1"), &json!(1)));
    std::fs::remove_dir_all(sandbox.path(".redrive")).expect("removed");
    assert_eq!(run(&squid.url(USER, "${env:PROXY_PASSWORD}"), PASSWORD), Some(0), "{}", squid.log(|_| true));
    let is_there = |log: &str| log.contains("/products/1");
    assert!(is_there(&squid.log(is_there)), "it went through the proxy");
}

#[test]
fn an_authority_of_ones_own_is_trusted_and_a_file_that_is_none_is_named() {
    let (sandbox, nginx) = (Sandbox::new(), Nginx::start());
    sandbox.write("tasks.jsonl", format!("{}\n", json!({"url": nginx.tls("good")})));
    let config = |ca: &str| format!("[pipeline.p]\nhandler = \"http\"\nretry.attempts = 1\n[pipeline.p.http]\n{ca}");
    sandbox.write("empty.pem", "");
    sandbox.write("broken.pem", "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n");
    for (file, said) in [
        ("missing.pem", "missing.pem cannot be read"),
        ("empty.pem", "empty.pem have no certificate"),
        ("tasks.jsonl", "tasks.jsonl have no certificate"),
        ("broken.pem", "certificate 1 of the authorities broken.pem is broken"),
    ] {
        sandbox.write("redrive.toml", config(&format!("ca = \"{file}\"\n")));
        sandbox.redrive("run tasks.jsonl").expect(2).complains(said);
    }
    sandbox.write("redrive.toml", config(""));
    sandbox.redrive("run tasks.jsonl").expect(3);
    let letter = &sandbox.dead()[0];
    assert!(
        letter["message"].as_str().is_some_and(|message| message.contains("name its PEM file with `ca`")),
        "{letter}"
    );
    sandbox.write("redrive.toml", config(&format!("ca = \"{}\"\n", nginx.ca.display())));
    sandbox.write("tasks.jsonl", format!("{}\n", json!({"url": nginx.tls("good"), "again": true})));
    let ran = sandbox.redrive("run tasks.jsonl").expect(0);
    assert_eq!(ran.json_lines()[0]["result"]["protocol"], "HTTP/2.0", "{}", ran.stdout);
}

#[test]
fn dashboard_below_a_path_of_a_proxy_works_in_a_browser() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\": 1}\n");
    sandbox.redrive("push tasks.jsonl -p shop").expect(0);
    let token = sandbox.redrive("token create ada --role admin").expect(0).stdout.trim().to_owned();
    let server = free_address();
    let proxy = PathProxy::start("/redrive", &server);
    let public = format!("http://127.0.0.1:{}/redrive", proxy.port);
    let _served = Served::start(&sandbox, &server, &["--public-url", &public, "--proxy", "127.0.0.1"]);
    let mut node = browser("below.mjs");
    Ran::of(unset(&mut node).args([&public, &token]).output().expect("node runs")).expect(0);
}
