//! The page of one letter: from what it can be sent again, what is kept of its attempts, the same for other tools, and what there is
//! to see of a task that is not dead any more.

use data_encoding::BASE64;
use redrive_core::actors::{Actor, Via};
use redrive_core::tokens::Role;
use serde_json::{Value, json};

use crate::browsing::Browser;
use crate::replays::work;
use crate::running::Running;

const STACK: &str =
    "Error: x\n    at emit (node:events:5:2)\n    at load (/srv/http.js:27:15)\n    at run (/srv/job.js:2:1)";

/// A letter that died in a worker elsewhere, of which a page was kept.
async fn died(server: &Running, pipeline: &str, payload: Value) -> String {
    let ids = server.enqueue(pipeline, [json!({ "url": "https://shop.example/p/1" })]).await;
    let leased = server.post("/leases", json!({ "pipelines": [pipeline] })).await.ok();
    let failure = json!({ "message": "no price", "reason": "schema_validation", "stack": STACK });
    let job =
        json!({ "lease": leased["leases"][0]["lease"], "verdict": "failed", "failure": failure, "payload": payload });
    let settled = server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": [job] })).await.ok();
    assert_eq!(settled["jobs"][0]["result"], "ok", "{settled}");
    ids[0].clone()
}

fn page() -> Value {
    json!({ "base64": BASE64.encode(b"<p>no price here</p>"), "status": 200, "url": "https://shop.example/p/1" })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_which_only_the_beginning_was_kept_is_none_to_retry_from() {
    let server = Running::start().await;
    let mut cut = page();
    cut["total_bytes"] = json!(1_000_000);
    let id = died(&server, "shop", cut).await;
    let browser = Browser::new(&server);
    let shown = browser.page(&format!("/letters/{id}")).await;
    assert!(!shown.contains("Retry from saved") && shown.contains("Retry now"), "{shown}");
    assert!(shown.contains("Not from its saved page: only the beginning of its page was kept"), "{shown}");
    assert!(browser.page("/letters").await.contains("its beginning"), "nor does the list say that it is there");
    let retry = format!("/letters/{id}/retry");
    let asked = browser.page(&format!("{retry}?from=suited")).await;
    for refused in
        [browser.get(&format!("{retry}?from=saved")).await, browser.submit(&asked, &retry, &[("from", "saved")]).await]
    {
        assert_eq!(refused.status, 400);
        assert!(refused.text().contains("only the beginning of its page was kept"), "{}", refused.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_full_address_of_a_payload_is_told() {
    let server = Running::start().await;
    let id = died(&server, "shop", page()).await;
    let place = server.get("/payloads").await.ok()["items"][0]["place"].as_str().expect("a place").to_owned();
    let letter = server.get(&format!("/letters/{id}")).await.ok();
    let address = letter["payload_address"].as_str().expect("an address");
    assert!(address.ends_with(&format!("/{place}")) && std::path::Path::new(address).is_file(), "{address}");
    for listed in ["/letters", "/letters?failures=true", "/letters?text=price"] {
        assert_eq!(server.get(listed).await.ok()["items"][0]["payload_address"], address, "{listed}");
    }
    let shown = Browser::new(&server).page(&format!("/letters/{id}")).await;
    assert!(shown.contains(&format!("Kept at <code><bdi>{address}</bdi></code>")), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_tell_all_that_was_kept_of_them_own_frames_first() {
    let server = Running::start().await;
    let id = died(&server, "shop", page()).await;
    let shown = Browser::new(&server).page(&format!("/letters/{id}")).await;
    let worker = server.get(&format!("/letters/{id}")).await.ok()["failures"][0]["worker"].clone();
    assert!(shown.contains(worker.as_str().expect("a worker")), "{shown}");
    let own = shown.find("frames of your own code").expect("own frames");
    let whole = shown.find("The whole stack").expect("all frames");
    assert!(own < whole && !shown[own..whole].contains("node:events") && shown[own..whole].contains("http.js:27"));
    assert!(shown[whole..].contains("node:events"));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_tools_are_given_a_letter_by_who_may_read_its_page() {
    let server = Running::start().await;
    let id = died(&server, "shop", page()).await;
    let path = format!("/letters/{id}/har");
    let browser = Browser::new(&server);
    assert!(browser.page(&format!("/letters/{id}")).await.contains("https://shop.example/p/1</pre>"));
    let log = browser.get(&path).await;
    assert!(log.header("content-disposition").is_some_and(|kept| kept.starts_with("attachment")), "{log:?}");
    let entry = &log.ok()["log"]["entries"][0];
    assert_eq!(entry["request"]["url"], "https://shop.example/p/1", "{entry}");
    assert!(entry["response"]["content"]["text"].as_str().is_some_and(|text| text.contains("no price")), "{entry}");
    server.token("boss", Role::Admin, &[]).await;
    let new = redrive::tokens::NewToken {
        name: "eve".parse().expect("a name"),
        role: Role::Admin,
        pipelines: Vec::new(),
        payloads: false,
        expires_at: None,
    };
    let secret = server.redrive.create_token(&new, &Actor::new("ada", Via::Cli)).await.expect("made").secret;
    let eve = Browser::signed_in(&server, &secret).await;
    assert_eq!(eve.get(&path).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_recovered_says_what_led_there() {
    let server = Running::start().await;
    let id = died(&server, "shop", page()).await;
    let asked = json!({ "letters": { "ids": [id] }, "name": "by hand", "set": { "url": "https://shop.example/p/2" } });
    let replay = server.post("/replays", asked).await.ok()["replay"]["id"].as_str().expect("an id").to_owned();
    work(&server, &replay, &json!({ "verdict": "done" })).await;
    server.until(&format!("/replays/{replay}"), |replay| replay["state"] == "done").await;
    let shown = Browser::new(&server).page(&format!("/letters/{id}")).await;
    for said in ["recovered", "by hand", "+ url: &quot;https://shop.example/p/2&quot;", "no price", "/pipelines/shop"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    assert!(shown.contains(&format!("/replays/{replay}")), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sees_one_pipeline_is_told_how_many_letters_it_has() {
    let server = Running::start().await;
    for n in 0..60 {
        server.report("shop", json!({ "n": n }), "price is gone").await;
    }
    for n in 0..3 {
        server.report("cart", json!({ "n": n }), "basket is lost").await;
    }
    server.token("boss", Role::Admin, &[]).await;
    let some = server.token("cart-only", Role::Viewer, &["cart"]).await;
    let seen = Browser::signed_in(&server, &some).await.page("/letters").await;
    assert!(seen.contains("3 letters, newest first"), "{seen}");
    let boss = server.token("chief", Role::Viewer, &[]).await;
    let chief = Browser::signed_in(&server, &boss).await;
    assert!(chief.page("/letters").await.contains("50+ letters, newest first"));
    let next = server.ask_as(Some(&boss), "GET /letters?limit=50", &[], None).await.ok();
    let rest = chief.page(&format!("/letters?cursor={}", next["next"].as_str().expect("more"))).await;
    assert!(rest.contains("13 letters on this page"), "{rest}");
}

/// How many replays there are.
async fn replays(server: &Running) -> usize {
    server.get("/replays").await.ok()["items"].as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_is_sent_again_after_a_question_that_says_what_happens() {
    let server = Running::start().await;
    let id = died(&server, "shop", Value::Null).await;
    let browser = Browser::new(&server);
    let (path, retry) = (format!("/letters/{id}"), format!("/letters/{id}/retry"));
    let shown = browser.page(&path).await;
    assert!(!shown.contains(&format!("action=\"{retry}\"")), "no button of it sends anything: {shown}");
    assert!(shown.contains(&format!("href=\"{retry}?from=suited\" data-key=\"r\"")), "{shown}");
    let asked = browser.page(&format!("{retry}?from=suited")).await;
    assert!(asked.contains("one request or more to <bdi>shop.example</bdi>"), "{asked}");
    assert_eq!(replays(&server).await, 0, "it was only asked");
    assert!(browser.submit(&asked, &retry, &[]).await.leads_to().starts_with("/replays/"));
    assert_eq!(replays(&server).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_another_replay_has_says_so_and_cannot_be_sent() {
    let server = Running::start().await;
    for n in 0..2 {
        server.report("shop", json!({ "n": n }), "price is gone").await;
    }
    let asked = json!({ "letters": { "pipeline": "shop" }, "ramp": [1] });
    let replay = server.post("/replays", asked).await.ok()["replay"]["id"].as_str().expect("an id").to_owned();
    // The first is under way, and the second waits for what becomes of it.
    let left = server.until("/letters", |left| left["items"].as_array().is_some_and(|left| left.len() == 1)).await;
    let id = left["items"][0]["id"].as_str().expect("an id");
    let browser = Browser::new(&server);
    let page = browser.page(&format!("/letters/{id}")).await;
    assert!(page.contains("Another replay has it: <a href=\"/replays/") && page.contains(&replay), "{page}");
    assert!(!page.contains(&format!("href=\"/letters/{id}/retry")), "{page}");
    assert!(page.contains("<button disabled title=\"another replay has it\">See what changes…"), "{page}");
    let refused = browser.get(&format!("/letters/{id}/retry")).await;
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("this letter is not sent: another replay has it"), "{}", refused.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_failed_permanently_is_sent_for_a_reason() {
    let server = Running::start().await;
    let letter =
        json!({ "pipeline": "shop", "input": { "n": 1 }, "message": "its page is gone", "reason": "payload_expired" });
    let id = server.post("/letters", letter).await.ok()["letters"][0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(server.get(&format!("/letters/{id}")).await.ok()["gate"], "never");
    let browser = Browser::new(&server);
    let retry = format!("/letters/{id}/retry");
    let asked = browser.page(&format!("{retry}?from=suited")).await;
    assert!(asked.contains("It failed permanently (gate never") && asked.contains("name=\"why\""), "{asked}");
    let without = browser.submit(&asked, &retry, &[("why", "")]).await;
    assert_eq!((without.status, replays(&server).await), (400, 0), "{}", without.text());
    browser.submit(&asked, &retry, &[("why", "it is back")]).await.leads_to();
    assert_eq!(server.get("/replays").await.ok()["items"][0]["force_why"], "it is back");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_does_not_undo_what_somebody_else_changed() {
    let server = Running::start().await;
    let id = died(&server, "shop", Value::Null).await;
    let browser = Browser::new(&server);
    let (page, edit) = (browser.page(&format!("/letters/{id}")).await, format!("/letters/{id}/edit"));
    let asked = json!({ "letters": { "ids": [id] }, "set": { "page": 2 } });
    let replay = server.post("/replays", asked).await.ok()["replay"]["id"].as_str().expect("an id").to_owned();
    let failure = json!({ "message": "no price", "reason": "schema_validation" });
    work(&server, &replay, &json!({ "verdict": "failed", "failure": failure })).await;
    server.until(&format!("/letters/{id}"), |letter| letter["input"]["page"] == 2).await;
    let sent = r#"{"url": "https://shop.example/p/2"}"#;
    let again = browser.submit(&page, &edit, &[("input", sent)]).await.text();
    assert!(again.contains("somebody else changed the input meanwhile"), "{again}");
    let page = browser.page(&format!("/letters/{id}")).await;
    assert!(page.contains(&format!("href=\"/replays/{replay}\" title=")), "its attempt leads to the replay: {page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sees_one_pipeline_sees_no_replay_of_others() {
    let server = Running::start().await;
    let shop = server.report("shop", json!({ "n": 1 }), "price is gone").await;
    let cart = server.report("cart", json!({ "n": 1 }), "basket is lost").await;
    let both = json!({ "letters": { "ids": [shop, cart] }, "name": "secret-both" });
    server.post("/replays", both).await.ok();
    let path = format!("/letters/{cart}");
    let begun = std::time::Instant::now();
    while !Browser::new(&server).page(&path).await.contains("secret-both") {
        assert!(begun.elapsed().as_secs() < 60, "it is never listed");
    }
    server.token("boss", Role::Admin, &[]).await;
    let some = server.token("cart-only", Role::Operator, &["cart"]).await;
    let page = Browser::signed_in(&server, &some).await.page(&path).await;
    assert!(page.contains("basket is lost") && !page.contains("secret-both"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_lacks_a_masked_field_is_edited_before_it_is_sent() {
    let server = Running::start().await;
    let input = json!({ "url": "https://shop.example/p/1", "token": "s3cret", "headers": { "Cookie": "a=1" } });
    let id = server.report("shop", input, "price is gone").await;
    let lost = server.get(&format!("/letters/{id}")).await.ok()["origin"]["lost_input"].clone();
    assert_eq!(lost, json!(["token", "/headers/Cookie"]));
    let browser = Browser::new(&server);
    let page = browser.page(&format!("/letters/{id}")).await;
    assert!(page.contains("<a class=\"button primary\" href=\"#edit\""), "{page}");
    assert!(!page.contains("Retry now") && !page.contains("/retry?from="), "{page}");
    let (edit, retry) = (format!("/letters/{id}/edit"), format!("/letters/{id}/retry"));
    assert_eq!(browser.get(&format!("{retry}?from=suited")).await.leads_to(), format!("/letters/{id}#edit"));
    let mut filled = server.get(&format!("/letters/{id}")).await.ok()["input"].clone();
    for (field, value) in [("token", json!("mine")), ("headers", json!({ "Cookie": "b=2" }))] {
        let again = browser.submit(&page, &edit, &[("input", &filled.to_string())]).await.text();
        assert!(again.contains("is masked: its value was never kept") && again.contains("See what changes"), "{again}");
        assert_eq!(replays(&server).await, 0);
        filled[field] = value;
    }
    let asked = browser.submit(&page, &edit, &[("input", &filled.to_string())]).await.text();
    assert!(asked.contains("Retry with 2 changes") && !asked.contains("name=\"why\""), "{asked}");
    assert!(browser.submit(&asked, &retry, &[]).await.leads_to().starts_with("/replays/"));
    assert_eq!(replays(&server).await, 1);
}
