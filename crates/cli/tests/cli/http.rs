//! The `http` handler from a configuration file, against the demo's shop.

use serde_json::{Value, json};

use crate::harness::{DemoSite, Sandbox, json_lines};

const CATALOG: &str = r#"
[pipeline.catalog]
handler = "http"
out = "records.jsonl"
schema = "record.schema.json"
[pipeline.catalog.request]
url = "http://SITE/products/{n}"
headers = { X-Shop = "redrive test" }
[pipeline.catalog.http]
read_timeout = "5s"
per_target = 2
[pipeline.catalog.retry]
base = "20ms"
[pipeline.catalog.extract.fields]
title = "h1.title::text"
price = { select = ".price-tag-main::text", type = "number" }
tags = { select = "ul.tags li.tag::text", list = true }
"#;

fn letter(sandbox: &Sandbox, n: u64) -> Value {
    sandbox.dead().into_iter().find(|letter| letter["input"]["n"] == n).unwrap_or_else(|| panic!("{n} is not dead"))
}

#[test]
fn pages_become_records_and_what_does_not_fit_says_why() {
    let sandbox = Sandbox::new();
    let site = DemoSite::start(&sandbox);
    sandbox.write("redrive.toml", CATALOG.replace("SITE", &site.address));
    let schema = json!({"type": "object", "required": ["title", "price"], "properties": {"price": {"maximum": 65}}});
    sandbox.write("record.schema.json", schema.to_string());
    let tasks: String = [1, 2, 9, 14, 23, 31, 60, 61]
        .iter()
        .map(|n| format!("{}\n", json!({"n": n, "target": format!("shop-{n}")})))
        .collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.redrive("run tasks.jsonl").expect(3);
    let mut records = json_lines(&sandbox.read("records.jsonl"));
    records.sort_by_key(|record| record["input"]["n"].as_u64());
    let numbers: Vec<_> = records.iter().map(|record| record["input"]["n"].as_u64().expect("a number")).collect();
    assert_eq!(numbers, [1, 2, 9, 14], "two of them only after retries");
    assert_eq!(records[0]["result"]["price"].to_string(), "12.99");
    assert!(records[0]["result"]["tags"].as_array().is_some_and(|tags| tags.len() > 1));

    for (n, reason, code) in [
        (23, "not_found", "http_404"),
        (31, "blocked", "challenge"),
        (60, "schema_validation", "SchemaViolation"),
        (61, "schema_validation", "SelectorNotFound"),
    ] {
        let letter = letter(&sandbox, n);
        assert_eq!((&letter["reason"], &letter["code"]), (&json!(reason), &json!(code)), "{n}");
        assert_eq!(letter["attempts"], 1, "{n}");
        assert!(letter["payload"].is_string(), "{n} has its page");
    }
    let message = letter(&sandbox, 60)["message"].as_str().expect("a message").to_owned();
    assert!(message.contains("maximum at /price"), "{message}");
    let id = letter(&sandbox, 61)["id"].as_str().expect("an id").to_owned();
    let page = sandbox.run(&["payload", "show", &id]).expect(0).stdout;
    assert!(page.contains("<div class=\"price\">"), "the very page that broke it");
    let meta = sandbox.run(&["payload", "show", &id, "--meta"]).expect(0).json();
    assert_eq!(meta["status"], 200);
    assert!(meta["url"].as_str().is_some_and(|url| url.ends_with("/products/61")), "{meta}");
    sandbox.assert_sound();
}

#[test]
fn documents_are_read_by_pointer_and_a_broken_one_is_fatal() {
    let sandbox = Sandbox::new();
    let site = DemoSite::start(&sandbox);
    sandbox.write("redrive.toml", "[pipeline.api]\nhandler = \"http\"\n[pipeline.api.extract.fields]\nall = { pointer = \"\", type = \"json\" }\n");
    let tasks = [1, 52].map(|n| format!("{}\n", json!({"n": n, "url": site.url(&format!("api/products/{n}"))})));
    sandbox.write("tasks.jsonl", tasks.concat());
    let ran = sandbox.redrive("run tasks.jsonl").expect(3);
    assert!(ran.json_lines()[0]["result"]["all"].is_object(), "{}", ran.stdout);
    let broken = letter(&sandbox, 52);
    assert_eq!((&broken["reason"], &broken["code"]), (&json!("malformed_payload"), &json!("JsonTruncated")));
    assert!(broken["message"].as_str().is_some_and(|message| message.contains("line")), "{broken}");
}

#[test]
fn mistakes_in_the_rules_are_found_before_anything_is_fetched() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"url\":\"http://127.0.0.1:1/\"}\n");
    for (config, expected) in [
        ("[pipeline.p.extract.fields]\nprice = \".a[\"\n", "price"),
        ("[pipeline.p.extract.fields]\nprice = { select = \".a\", type = \"flot\" }\n", "flot"),
        ("[pipeline.p.request]\nurl = \"{\"\n", "brace"),
        ("[pipeline.p.request]\nheaders = { A = \"${env:REDRIVE_NO_SUCH}\" }\n", "REDRIVE_NO_SUCH"),
        ("[pipeline.p.request]\nbody = \"x\"\nform = { a = \"b\" }\n", "more than one of body, form and json"),
        ("[pipeline.p.http]\nallow = \"private\"\n", "http.allow: \"private\" is not a network"),
        ("[pipeline.p.http]\nallow = [\"public\", \"10.1.2.3/16\"]\n", "write 10.1.0.0/16"),
        ("[pipeline.p.http]\nallow = []\n", "is empty"),
        ("[pipeline.p.http]\nallow = 5\n", "or a list of them"),
        ("[pipeline.p.http]\nproxies = [{ label = \"x\", url = \"nowhere\" }]\n", "proxy \"x\""),
    ] {
        sandbox.write("redrive.toml", format!("[pipeline.p]\nhandler = \"http\"\n{config}"));
        sandbox.redrive("run tasks.jsonl").expect(2).complains(expected);
    }
    sandbox.write("redrive.toml", "[pipeline.p]\nhandler = \"submit-poll\"\n");
    sandbox.redrive("run tasks.jsonl").expect(2).complains("no section submit");
    assert!(!sandbox.path(".redrive").exists(), "nothing was enqueued");
}

#[test]
fn a_job_that_points_inside_is_refused_once_and_asked_for_nothing() {
    let sandbox = Sandbox::new();
    let site = DemoSite::start(&sandbox);
    let config = |allow: &str| format!("[pipeline.p]\nhandler = \"http\"\n[pipeline.p.http]\nallow = {allow}\n");
    sandbox.write("redrive.toml", config("\"public\""));
    sandbox.write("tasks.jsonl", format!("{}\n", json!({"url": site.url("products/1")})));
    sandbox.redrive("run tasks.jsonl").expect(3);
    let letter = &sandbox.dead()[0];
    assert_eq!(
        (&letter["reason"], &letter["code"]),
        (&json!("rejected_input"), &json!("AddressNotAllowed")),
        "{letter}"
    );
    assert_eq!(letter["attempts"], 1);
    assert_eq!(site.count("/products/1"), 0);
    sandbox.write("redrive.toml", config("[\"public\", \"127.0.0.0/8\"]"));
    sandbox.write("tasks.jsonl", format!("{}\n", json!({"url": site.url("products/2")})));
    sandbox.redrive("run tasks.jsonl").expect(0);
}
