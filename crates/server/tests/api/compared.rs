//! The page that broke, whatever it is: compared, or said why not. What could be meant is counted over the saved pages of its cause.

use std::time::{Duration, Instant};

use data_encoding::BASE64;
use redrive::tokens::NewToken;
use redrive_core::actors::{Actor, Via};
use redrive_core::tokens::Role;
use serde_json::{Value, json};

use super::browsing::{Browser, Form};
use super::running::Running;

const RULES: &str = "[pipeline.shop]\nhandler = \"http\"\n[pipeline.shop.extract.fields]\ntitle = \"h1::text\"\n\
                     price = { select = \".old::text\", type = \"number\" }\n";

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

async fn report(server: &Running, message: &str, payload: Value) -> String {
    let letter = json!({
        "pipeline": "shop", "input": { "url": format!("https://shop.example/p/{}", message.len()) }, "message": message,
        "reason": "schema_validation", "payload": payload,
    });
    let told = server.post("/letters", letter).await.ok();
    told["letters"][0]["id"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
}

/// A task that was done with a page, and then one of the same shape that died with another; says which letter that is.
pub async fn pair(server: &Running, good: Value, broke: Value) -> String {
    let failure = json!({ "message": "SelectorNotFound: .old (field price)", "reason": "schema_validation" });
    pair_with(server, good, (failure, broke)).await
}

/// The same with what is told of the failure.
pub async fn pair_with(server: &Running, good: Value, (failure, broke): (Value, Value)) -> String {
    let ids = server.enqueue("shop", (1..=2).map(|n| json!({ "url": format!("https://shop.example/p/{n}") }))).await;
    let leased = server.post("/leases", json!({ "pipelines": ["shop"], "max": 2 })).await.ok();
    let ended = |id: &str, verdict: Value| {
        let all = leased["leases"].as_array().expect("leases");
        let of_it = all.iter().find(|one| one["id"] == id).unwrap_or_else(|| panic!("{leased}"));
        let mut ended = verdict;
        ended["lease"] = of_it["lease"].clone();
        ended
    };
    for job in [
        ended(&ids[0], json!({ "verdict": "done", "result": {}, "payload": good })),
        ended(&ids[1], json!({ "verdict": "failed", "failure": failure, "payload": broke })),
    ] {
        server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": [job] })).await.ok();
    }
    ids[1].clone()
}

/// The page came over HTTP, by a worker that says nothing of rules, says the server's version of them, or says one of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_worked_elsewhere_is_judged_by_the_rules_that_its_lease_was_handed_out_with() {
    let page = |class: &str| json!({ "text": format!("<h1>Thing</h1><b class={class}>5</b>"), "status": 200 });
    let another = Running::with(RULES).await;
    another.enqueue("shop", [json!({ "url": "https://shop.example/p/1" })]).await;
    another.post("/leases", json!({ "pipelines": ["shop"] })).await.ok();
    let workers = another.redrive.store().list_workers().await.expect("listed");
    let runs = workers.iter().flat_map(|worker| &worker.runs).find_map(|runs| runs.definition.as_ref());
    let version = json!(runs.expect("a version"));
    for own in [None, Some(None), Some(Some("of-its-own"))] {
        let server = Running::with(RULES).await;
        server.enqueue("shop", [json!({ "url": "https://shop.example/p/1" })]).await;
        let runs = match own {
            None => json!([]),
            Some(own) => json!([{ "pipeline": "shop", "definition": own.map_or(version.clone(), Value::from) }]),
        };
        let leased = server.post("/leases", json!({ "pipelines": ["shop"], "runs": runs })).await.ok();
        let ended = json!({
            "lease": leased["leases"][0]["lease"], "verdict": "done", "result": {}, "payload": page("old"),
        });
        let settled = json!({ "worker": leased["worker"], "jobs": [ended], "runs": runs });
        server.post("/leases/settle", settled).await.ok();
        server.configure(&RULES.replace(".old", ".new"));
        report(&server, "SelectorNotFound: .old (field price)", page("new")).await;
        let cause = server.get("/causes").await.ok()["items"][0]["id"].as_str().expect("a cause").to_owned();
        let is_changed = |compared: &Value| compared["rules_now"].is_string() && compared["rules_now"] != version;
        let compared = server.until(&format!("/causes/{cause}/compare"), is_changed).await;
        let price = &compared["fields"][1];
        if own == Some(Some("of-its-own")) {
            assert_eq!(price["worked"], Value::Null, "nothing is known of its rules: {compared}");
            continue;
        }
        assert_eq!((&price["field"], &price["worked"]["value"]), (&json!("price"), &json!("5")), "{compared}");
        assert_eq!((&price["worked_rule"], &compared["worked_rules"]), (&json!(".old::text"), &version), "{compared}");
    }
}

/// The addresses of the frames of a page.
fn frames(page: &str) -> Vec<String> {
    let after = page.split("src=\"/payloads/").skip(1).map(|rest| rest.split('"').next().unwrap_or_default());
    after.map(|rest| format!("/payloads/{}", rest.replace("&amp;", "&"))).collect()
}

/// Tokens that may not read payloads.
async fn blind(server: &Running, role: Role) -> String {
    server.token("boss", Role::Admin, &[]).await;
    let new = NewToken {
        name: "blind".parse().expect("a name"),
        role,
        pipelines: Vec::new(),
        payloads: false,
        expires_at: None,
    };
    server.redrive.create_token(&new, &Actor::new("ada", Via::Cli)).await.expect("made").secret
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_that_the_parser_multiplies_are_refused_and_cost_little() {
    let server = Running::with(RULES).await;
    let browser = Browser::new(&server);
    let classes: String = (0..100_000).map(|n| format!("{n:x} ")).collect();
    for (n, long) in [format!("id='{}'", "x".repeat(1 << 20)), format!("class='{classes}'")].iter().enumerate() {
        let text = format!("<p><b {long}>{}", "<p>x".repeat(20_000));
        let id = report(&server, &format!("SelectorNotFound: {}", "x".repeat(n)), json!({ "text": text })).await;
        for view in ["fields", "diff", "rendered", "headers"] {
            let page = browser.page(&format!("/letters/{id}?view={view}")).await;
            assert!(page.contains("longer than the document by 16 MiB"), "{view}: {page}");
        }
        let framed = &frames(&browser.page(&format!("/letters/{id}?view=rendered")).await)[0];
        let begun = Instant::now();
        let shown = browser.page(framed).await;
        assert!(shown.contains("This page is not shown") && shown.len() < 2_000, "{shown}");
        assert!(begun.elapsed() < Duration::from_secs(5), "it was given up on, not read");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_cannot_be_rendered_says_so_in_its_frame() {
    let server = Running::start().await;
    let browser = Browser::new(&server);
    let of = |text: &str, kind: &str| json!({ "text": text, "status": 200, "headers": [["content-type", kind]] });
    for (what, payload, says) in [
        ("json", of("{\"price\": 5}", "application/json"), "it is JSON"),
        ("text", of("a", "text/plain"), "it is text"),
        ("feed", of("<rss/>", "application/rss+xml"), "it is XML"),
        ("long", of(&"x".repeat(5 << 20), "text/html"), "longer than 4 MiB"),
        ("deep page", of(&"<div>".repeat(20_000), "text/html"), "nested more than 512 deep"),
    ] {
        let id = report(&server, &format!("SelectorNotFound: {what}"), payload).await;
        let framed = &frames(&browser.page(&format!("/letters/{id}?view=rendered")).await)[0];
        let answer = browser.get(framed).await;
        let policy = answer.header("content-security-policy").expect("a policy").to_owned();
        assert!(answer.status == 200 && policy.ends_with("frame-ancestors 'self'"), "{what}: {answer:?}");
        assert!(answer.text().contains(says) && answer.text().contains("This page is not shown"), "{}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_say_what_is_missed_and_what_is_there_instead() {
    let rules = format!("{RULES}note = {{ select = \".note::text\", required = false }}\n");
    let server = Running::with(&rules).await;
    let payload = json!({ "text": "<h1>Lamp</h1><b class=old>Sold out</b>", "status": 200 });
    let id = report(&server, "WrongType: .old (field price)", payload).await;
    let page = Browser::new(&server).page(&format!("/letters/{id}")).await;
    assert!(page.contains("1 missed of 3"), "what is optional is not missed: {page}");
    assert!(
        page.contains("<code><bdi>.old</bdi></code> matches once") && page.contains("found “<bdi>Sold out</bdi>”"),
        "{page}"
    );
    assert!(!page.contains("matches any more") && page.contains("nothing, optional"), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_of_now_and_attempts_of_then_are_told_apart() {
    let server = Running::with(RULES).await;
    let good = json!({ "text": "<h1>a</h1><b class=old>5</b>", "status": 200 });
    let id = pair(&server, good, json!({ "text": "<h1>b</h1><b class=new>5</b>", "status": 200 })).await;
    let browser = Browser::new(&server);
    let page = browser.page(&format!("/letters/{id}")).await;
    assert!(page.contains("1 missed of 2") && page.contains("· attempt 1"), "{page}");
    assert!(!page.contains("read by the rules of now"), "{page}");
    server.configure(&RULES.replace(".old", ".new"));
    let begun = Instant::now();
    let page = loop {
        let page = browser.page(&format!("/letters/{id}")).await;
        if page.contains("0 missed of 2") {
            break page;
        }
        assert!(begun.elapsed() < PATIENCE, "{page}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(
        page.contains("The page that broke is read by the rules of now") && page.contains("this task died under"),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_is_compared_line_by_line() {
    let server = Running::start().await;
    let of = |text: &str| json!({ "text": text, "status": 200, "headers": [["content-type", "application/json"]] });
    let id = pair(&server, of("{\"id\": 1, \"price\": 5}"), of("{\"id\": 2, \"cost\": 5}")).await;
    let browser = Browser::new(&server);
    let page = browser.page(&format!("/letters/{id}?view=diff")).await;
    assert!(page.contains("&quot;cost&quot;: 5") && page.contains("&quot;price&quot;: 5"), "{page}");
    let text = |text: &str| json!({ "text": text, "status": 200, "headers": [["content-type", "text/plain"]] });
    let server = Running::start().await;
    let id = pair(&server, text("a"), text("b")).await;
    let page = Browser::new(&server).page(&format!("/letters/{id}?view=diff")).await;
    assert!(page.contains("What differs is not known") && !page.contains("built alike"), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why_no_page_that_worked_is_kept_is_told() {
    for (config, says) in [
        ("handler = \"remote\"", "kept from the next success"),
        ("handler = \"remote\"\ngood_pages = false", "none is kept: the pipeline has good_pages = false"),
    ] {
        let server = Running::with(&format!("[pipeline.shop]\n{config}\n")).await;
        let id = report(&server, "SelectorNotFound", json!({ "text": "<p>x", "status": 200 })).await;
        let page = Browser::new(&server).page(&format!("/letters/{id}")).await;
        assert!(page.contains(says), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cause_begins_with_a_page_that_was_kept() {
    let server = Running::with(RULES).await;
    let letter = |n: u32, payload: Option<&str>| {
        let mut letter = json!({
            "pipeline": "shop", "input": { "url": format!("https://shop.example/p/{n}") }, "reason": "schema_validation",
            "message": "SelectorNotFound: .old (field price)",
        });
        if let Some(text) = payload {
            letter["payload"] = json!({ "text": text, "status": 200 });
        }
        letter
    };
    server.post("/letters", letter(1, Some("<h1>Lamp</h1>"))).await.ok();
    server.post("/letters", letter(2, None)).await.ok();
    let cause = server.get("/causes").await.ok()["items"][0]["id"].as_str().expect("a cause").to_owned();
    let browser = Browser::new(&server);
    let page = browser.page(&format!("/causes/{cause}")).await;
    assert!(page.contains("sample 2 of 2") && page.contains("1 missed of 2"), "{page}");
    let newest = browser.page(&format!("/causes/{cause}?sample=1")).await;
    assert!(newest.contains("the page that broke was not kept") && newest.contains("sample 1 of 2"), "{newest}");
    let compared = server.get(&format!("/causes/{cause}/compare")).await.ok();
    assert_eq!(compared["fields"][0]["broke"]["value"], "Lamp", "{compared}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_split_is_asked_for_with_the_target_that_it_is_about() {
    let server = Running::start().await;
    server.report("shop", json!({ "url": "https://shop.example/" }), "it timed out").await;
    let cause = server.get("/causes").await.ok()["items"][0]["id"].as_str().expect("a cause").to_owned();
    let ask = Browser::new(&server).page(&format!("/causes/{cause}/change?verb=split&target=shop.example")).await;
    assert!(ask.contains("name=\"target\" value=\"shop.example\""), "{ask}");
    assert!(ask.contains("--target shop.example"), "{ask}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_read_pages_is_not_told_what_is_on_them() {
    let server = Running::with(RULES).await;
    let miss =
        json!({ "field": "price", "rule": ".old", "code": "WrongType", "why": "expected number", "found": "S0ld out" });
    let letter = json!({
        "pipeline": "shop", "input": { "url": "https://shop.example/p/1" },
        "failure": { "message": "no price", "misses": [miss], "reason": "schema_validation" },
        "payload": { "text": "<h1>Lamp</h1><b class=old>S0ld out</b>", "status": 200 },
    });
    let id = server.post("/letters", letter).await.ok()["letters"][0]["id"].as_str().expect("an id").to_owned();
    let shown = server.get(&format!("/letters/{id}")).await.ok();
    assert_eq!(shown["failures"][0]["misses"][0]["found"], "S0ld out", "{shown}");
    let token = blind(&server, Role::Operator).await;
    let browser = Browser::signed_in(&server, &token).await;
    let page = browser.page(&format!("/letters/{id}")).await;
    assert!(page.contains("your token may not read payloads") && !page.contains("S0ld"), "{page}");
    for path in [format!("/letters/{id}"), "/letters?failures=true".to_owned(), format!("/jobs/{id}")] {
        let answer = server.ask_as(Some(&token), &format!("GET {path}"), &[], None).await;
        let text = answer.text();
        assert!(answer.status == 200 && text.contains("WrongType") && !text.contains("S0ld"), "{path}: {text}");
    }
    let step = browser.page(&format!("/replays/new?id={id}")).await;
    assert!(step.contains("needs a token that may read payloads") && !step.contains("name=\"draft."), "{step}");
    let form = Form { action: "/replays/try".to_owned(), ..Form::of(&step, "/replays/start") };
    let refused = browser.post(&form, &[("id", &id), ("draft.price", "h1::text")]).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_payload_can_be_looked_at_or_is_said_why_not() {
    let server = Running::with(RULES).await;
    let browser = Browser::new(&server);
    let base64 = |bytes: &[u8]| json!({ "base64": BASE64.encode(bytes), "status": 200 });
    let long = format!("<h1>Long</h1>{}", "<p>x</p>".repeat(600_000));
    let payloads: Vec<(&str, Value, &str)> = vec![
        ("invalid text", base64(b"<h1>caf\xe9 \xff\xfe</h1><b class=new>5.50</b>"), "missed"),
        ("binary", base64(&(0..=255_u8).cycle().take(5_000).collect::<Vec<_>>()), "missed"),
        (
            "json",
            json!({ "text": "{\"price\": 5}", "status": 200, "headers": [["content-type", "application/json"]] }),
            "missed",
        ),
        ("empty", json!({ "text": " ", "status": 200 }), "missed"),
        ("deep", json!({ "text": "<div>".repeat(20_000), "status": 200 }), "nested more than 512 deep"),
        ("longer than is read", json!({ "text": long, "status": 200 }), "longer than 4 MiB"),
        ("a script", json!({ "text": "<h1><script>alert(1)</script>&lt;b&gt;</h1>", "status": 200 }), "missed"),
    ];
    for (what, payload, says) in payloads {
        let id = report(&server, &format!("SelectorNotFound: {what}"), payload).await;
        for view in ["fields", "diff", "rendered", "headers"] {
            let page = browser.page(&format!("/letters/{id}?view={view}")).await;
            assert!(!page.contains("<script>alert"), "{what} {view}: {page}");
            if view == "fields" {
                assert!(page.contains(says), "{what}: expected {says:?} in {page}");
            }
        }
    }
    let none = server.report("shop", json!({ "url": "https://shop.example/p/none" }), "it <b>timed</b> out").await;
    let page = browser.page(&format!("/letters/{none}")).await;
    assert!(page.contains("the page that broke was not kept") && page.contains("it &lt;b&gt;timed"), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_could_be_meant_is_counted_over_the_saved_pages() {
    let server = Running::with(RULES).await;
    for n in 0..6 {
        let price = if n == 3 { "<p>on request</p>".to_owned() } else { format!("<b class=new>{n}.50</b>") };
        let text = format!("<h1>Thing {n}</h1>{price}");
        let letter = json!({
            "pipeline": "shop", "input": { "url": format!("https://shop.example/p/{n}") }, "reason": "schema_validation",
            "message": "SelectorNotFound: .old (field price)", "payload": { "text": text, "status": 200 },
        });
        server.post("/letters", letter).await.ok();
    }
    let cause = server.get("/causes").await.ok()["items"][0]["id"].as_str().expect("a cause").to_owned();
    let browser = Browser::new(&server);
    let begun = Instant::now();
    let page = loop {
        let page = browser.page(&format!("/causes/{cause}")).await;
        if page.contains("5 of 6") {
            break page;
        }
        assert!(page.contains("data-busy"), "while it is counted the page looks again: {page}");
        assert!(begun.elapsed() < PATIENCE, "{page}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(page.contains("Matches on saved pages") && page.contains("Try this rule"), "{page}");
    let part = page.split("id=\"match-").nth(1).and_then(|rest| rest.split('"').next()).expect("a part");
    assert_eq!(part.len(), 10, "a part that scripts can ask for: {part}");
}
