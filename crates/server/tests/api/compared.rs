//! The page that broke, whatever it is: compared, or said why not. What could be meant is counted over the saved pages of its cause.

use std::time::{Duration, Instant};

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::browsing::Browser;
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
