//! Analysis and formats: the report, `dead top`, WARC, HAR and curl, each read back by the tools they are for.

use serde_json::{Value, json};

use crate::harness::{DemoSite, Sandbox, python};

/// Jobs that succeed and die by site key, through two proxies, at one of two hosts.
fn with_history() -> Sandbox {
    let sandbox = Sandbox::new();
    let handler = r#"
import json, sys
job = json.load(sys.stdin)["input"]
if job["sitekey"] == "wrong":
    print(json.dumps({"reason": "rejected_input", "code": "ERROR_SITEKEY", "error": "the site key is wrong", "proxy": job["via"]}))
    sys.exit(1)
print(json.dumps({"token": 1, "_proxy": job["via"]}))
"#;
    sandbox.write("solve.py", handler);
    sandbox.write(
        "redrive.toml",
        "[pipeline.p]\ncommand = [\"python3\", \"solve.py\"]\ntrack = [\"sitekey\"]\nout = \"out.jsonl\"\n",
    );
    let task = |n: u32| {
        let sitekey = if n.is_multiple_of(3) { "wrong" } else { "right" };
        json!({"sitekey": sitekey, "via": format!("p{}", n % 2), "url": format!("https://h{}.example/", n % 2), "n": n})
    };
    let tasks: String = (0..12).map(|n| format!("{}\n", task(n))).collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.redrive("run tasks.jsonl").expect(3);
    sandbox
}

fn top(sandbox: &Sandbox, by: &str) -> Vec<Value> {
    sandbox.redrive(&format!("dead top --by {by} --json")).expect(0).json_lines()
}

#[test]
fn dead_letters_are_counted_with_their_denominators() {
    let sandbox = with_history();
    assert_eq!(top(&sandbox, "reason")[0], json!({"value": "rejected_input", "dead": 4, "share": 1.0}));
    assert_eq!(top(&sandbox, "code")[0]["value"], "ERROR_SITEKEY");
    let proxies = top(&sandbox, "proxy");
    assert_eq!((&proxies[0]["dead"], &proxies[0]["ok"], &proxies[0]["failed"]), (&json!(2), &json!(4), &json!(2)));
    let targets = top(&sandbox, "target");
    assert_eq!((targets.len(), &targets[0]["ok"]), (2, &json!(4)));
    let keys = top(&sandbox, "input.sitekey");
    assert_eq!((&keys[0]["value"], &keys[0]["ok"], &keys[0]["failed"]), (&json!("wrong"), &json!(0), &json!(4)));
    let shown = sandbox.redrive("dead top --by input.sitekey").expect(0).stdout;
    assert!(shown.contains("4 of 4 tasks died") && shown.contains("always"), "{shown}");
    assert_eq!(top(&sandbox, "hour")[0]["reason"], "rejected_input");
    let csv = sandbox.redrive("dead top --by target --csv").expect(0).stdout;
    assert!(csv.starts_with("value,reason,dead,share,ok,failed,of\nh"), "{csv}");
    sandbox.redrive("dead top --by colour").expect(2).complains("input.FIELD");
    assert!(sandbox.redrive("dead top --reason dns").expect(0).stdout.contains("no dead letters"));
}

#[test]
fn a_replay_that_fails_again_changes_no_rate() {
    let sandbox = with_history();
    sandbox.redrive("replay start --reason rejected_input --refail-max 100%").expect(3);
    let pipeline = &sandbox.redrive("report --json").expect(0).json()["pipelines"][0];
    assert_eq!((&pipeline["buried"], &pipeline["refailed"]), (&json!(4), &json!(4)), "{pipeline}");
    let shown = sandbox.redrive("report").expect(0).stdout;
    assert!(shown.contains("p: 4 of 12 tasks died (33.3 %); all for rejected_input"), "{shown}");
    let hours = top(&sandbox, "hour");
    let sum = |field: &str| hours.iter().filter_map(|hour| hour[field].as_i64()).sum::<i64>();
    assert_eq!((sum("dead"), sum("failed")), (4, 4), "{hours:?}");
    for target in top(&sandbox, "target") {
        assert_eq!((&target["failed"], &target["of"]), (&json!(2), &json!(6)), "{target}");
    }
}

#[test]
fn the_report_says_what_fails() {
    let sandbox = with_history();
    let shown = sandbox.redrive("report").expect(0).stdout;
    for part in ["p: 4 of 12 tasks died (33.3 %)", "causes", "h0.example", "proxies", "rejected_input"] {
        assert!(shown.contains(part), "{part} in:\n{shown}");
    }
    let report = sandbox.redrive("report --json --since 1h").expect(0).json();
    assert_eq!((&report["pipelines"][0]["buried"], &report["reasons"][0]["count"]), (&json!(4), &json!(4)));
    let csv = sandbox.redrive("report --csv").expect(0).stdout;
    assert!(csv.starts_with("section,name,detail,count,of\nburied,p,,4,12\n"), "{csv}");
    assert!(csv.contains("\ntarget,h0.example,,2,6\n"), "{csv}");
    sandbox.redrive("report --html report.html").expect(0);
    let page = sandbox.read("report.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<svg") && !page.contains("<script"), "a page");
    sandbox.redrive("report --since tomorrow-ish").expect(2).complains("not a time");
    sandbox.redrive("report --html no/such/folder.html").expect(1).complains("cannot write");
}

#[test]
fn fields_are_counted_by_version_of_the_rules() {
    let sandbox = Sandbox::new();
    let site = DemoSite::start(&sandbox);
    let config = |select: &str| {
        format!(
            "[pipeline.shop]\nhandler = \"http\"\nout = \"o\"\n[pipeline.shop.extract.fields]\ntitle = \"h1.title::text\"\n\
             price = {{ select = \"{select}\", type = \"number\", required = false }}\n"
        )
    };
    let tasks = |first: u32| -> String {
        (first..first + 3)
            .map(|n| format!("{}\n", json!({"url": format!("http://{}/products/{n}", site.address)})))
            .collect()
    };
    sandbox.write("redrive.toml", config(".price-tag-main::text"));
    sandbox.write("old.jsonl", tasks(17));
    sandbox.redrive("run old.jsonl").expect(0);
    sandbox.write("new.jsonl", tasks(61));
    sandbox.redrive("run new.jsonl").expect(0);
    let fields = sandbox.redrive("report --json").expect(0).json()["fields"].clone();
    let price =
        fields.as_array().expect("a list").iter().find(|field| field["field"] == "price").expect("a field").clone();
    assert_eq!((&price["records"], &price["filled"]), (&json!(6), &json!(3)), "the drift shows though nothing died");
    sandbox.write("redrive.toml", config(".price data::attr(value)"));
    sandbox.write("again.jsonl", tasks(64));
    sandbox.redrive("run again.jsonl").expect(0);
    let fields = sandbox.redrive("report --json").expect(0).json()["fields"].clone();
    assert_eq!(fields.as_array().map(Vec::len), Some(4), "two fields by two versions: {fields}");
}

/// A shop's dead letters, with their pages.
fn with_pages() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    let site = DemoSite::start(&sandbox);
    sandbox.write("secret", "hunter2-hunter2");
    sandbox.write(
        "redrive.toml",
        "[pipeline.shop]\nhandler = \"http\"\nout = \"o\"\n[pipeline.shop.request]\nurl = \"{url}\"\nquery = { api_key = \"${file:secret}\" }\n\
         headers = { X-Auth-Token = \"${file:secret}\", Accept = \"text/html\" }\n[pipeline.shop.extract.fields]\nprice = \".none::text\"\n",
    );
    let tasks: String =
        (17..20).map(|n| format!("{}\n", json!({"url": format!("http://{}/products/{n}", site.address)}))).collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.redrive("run tasks.jsonl").expect(3);
    let id = sandbox.dead()[0]["id"].as_str().expect("an id").to_owned();
    (sandbox, id)
}

#[test]
fn a_web_archive_is_what_others_read() {
    let (sandbox, id) = with_pages();
    sandbox.redrive("dead export --warc pages.warc.gz").expect(0).complains("3 dead letters archived");
    let page = sandbox.redrive(&format!("payload show {id}")).expect(0).stdout;
    sandbox.write("page.html", &page);
    let check = r#"
import json, sys
from warcio.archiveiterator import ArchiveIterator
kinds, bodies = [], []
with open("pages.warc.gz", "rb") as stream:
    for record in ArchiveIterator(stream, check_digests="raise"):
        kinds.append(record.rec_type)
        body = record.content_stream().read()
        if record.rec_type == "response":
            assert record.http_headers.get_statuscode() == "200", record.http_headers
            bodies.append(body)
        assert b"hunter2" not in body and b"hunter2" not in str(record.rec_headers).encode()
assert sorted(kinds) == sorted(["warcinfo"] + 3 * ["response", "request", "metadata"]), kinds
assert open("page.html", "rb").read() in bodies
"#;
    python(&sandbox, check);
}

#[test]
fn a_request_can_be_copied_and_an_attempt_logged_without_secrets() {
    let (sandbox, id) = with_pages();
    let curl = sandbox.redrive(&format!("dead show {id} --curl")).expect(0).stdout;
    assert!(curl.starts_with("curl ") && curl.contains("/products/") && curl.contains("Accept"), "{curl}");
    assert!(curl.contains("***") && !curl.contains("hunter2"), "{curl}");
    let har = sandbox.redrive(&format!("dead show {id} --har")).expect(0);
    assert!(!har.stdout.contains("hunter2"));
    let log = &har.json()["log"];
    assert_eq!((&log["version"], &log["entries"][0]["response"]["status"]), (&json!("1.2"), &json!(200)));
    assert!(log["entries"][0]["response"]["content"]["text"].as_str().is_some_and(|text| text.contains("<html")));
    assert_eq!(log["entries"][0]["_failure"]["reason"], "schema_validation");
}

crate::network::over_the_network! {
    kept: [the_report_says_what_fails],
}
