//! What people see to, page by page: replays that paused themselves, what belongs to nobody's pipeline, pipelines with odd names, what
//! was done and can be taken back, and who may not.

use std::time::Duration;

use redrive::clock::TestClock;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;
use serde_json::json;

use crate::browsing::Browser;
use crate::replays::{letters, work};
use crate::running::Running;

/// A server with a replay that paused itself, and an alert of that; says which replay it is.
pub async fn self_paused() -> (Running, String) {
    let server = Running::start().await;
    letters(&server, 12).await;
    let asked = json!({ "letters": { "pipeline": "shop" }, "refail_max": "10%", "name": "failing" });
    let started = server.post("/replays", asked).await.ok();
    let replay = started["replay"]["id"].as_str().expect("an id").to_owned();
    let failed = json!({ "verdict": "failed", "failure": { "message": "no", "reason": "not_found" } });
    work(&server, &replay, &failed).await;
    server.until(&format!("/replays/{replay}"), |replay| replay["state"] == "paused").await;
    server.redrive.judge_alerts(&redrive::alerts::Watching::default()).await.expect("judged");
    (server, replay)
}

fn comes_first(page: &str, first: &str, second: &str) -> bool {
    let at = |name: &str| page.find(&format!("id=\"replay-{name}\"")).unwrap_or_else(|| panic!("no {name}: {page}"));
    at(first) < at(second)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_paused_itself_is_on_top_until_it_is_acknowledged() {
    let (server, paused) = self_paused().await;
    server.report("other", json!({ "n": 1 }), "gone").await;
    let newer = server.post("/replays", json!({ "letters": { "pipeline": "other" }, "name": "newer" })).await.ok();
    let newer = newer["replay"]["id"].as_str().expect("an id");
    let browser = Browser::new(&server);
    let page = browser.page("/replays").await;
    assert!(comes_first(&page, &paused, newer), "{page}");
    let answer = browser.submit(&page, "/alerts/change", &[]).await;
    assert!(answer.leads_to().starts_with("/replays?said=acknowledge"), "{}", answer.leads_to());
    let seen = browser.page(answer.leads_to()).await;
    assert!(comes_first(&seen, newer, &paused) && seen.contains(">Undo<"), "{seen}");
    let undone = browser.submit(&seen, "/alerts/change", &[]).await;
    let again = browser.page(undone.leads_to()).await;
    assert!(comes_first(&again, &paused, newer), "{again}");
    server.post(&format!("/replays/{paused}/resume"), json!({})).await.ok();
    assert!(comes_first(&browser.page("/replays").await, newer, &paused), "who resumes it has seen it");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_no_pipeline_is_for_who_sees_all() {
    let (server, _) = self_paused().await;
    let ada = server.token("ada", Role::Admin, &[]).await;
    let eve = server.token("eve", Role::Operator, &["other"]).await;
    let all = Browser::signed_in(&server, &ada).await.page("/").await;
    assert!(all.contains("a replay paused itself") && all.contains("(failing)"), "{all}");
    let browser = Browser::signed_in(&server, &eve).await;
    for path in ["/", "/alerts", "/replays"] {
        let page = browser.page(path).await;
        assert!(!page.contains("failing") && !page.contains("paused itself"), "{path}: {page}");
        assert!(!page.contains("firing</span>"), "nothing fires for her: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_that_is_called_by_dots_has_its_page() {
    let server = Running::start().await;
    let browser = Browser::new(&server);
    for name in [".", "..", "a..b", "-x", "A_1.z"] {
        server.enqueue(name, [json!({ "n": 1 })]).await;
    }
    let overview = browser.page("/").await;
    for (name, path) in
        [(".", "/pipelines/~."), ("..", "/pipelines/~.."), ("a..b", "/pipelines/a..b"), ("-x", "/pipelines/-x")]
    {
        assert!(overview.contains(&format!("href=\"{path}\" title=\"{name}\"")), "{name}: {overview}");
        let page = browser.page(path).await;
        assert!(page.contains(&format!("</a> / {name}</span>")), "{page}");
        let ask = browser.page(&format!("{path}/pause")).await;
        let paused = browser.submit(&ask, &format!("{path}/pause"), &[("why", "it moves")]).await;
        assert_eq!(paused.leads_to(), format!("{path}?said=pause"));
        let banner = browser.page("/").await;
        assert!(banner.contains(&format!("<a href=\"{path}\">{name}</a> is paused")), "{banner}");
        let activity = browser.page("/activity").await;
        let back = browser.submit(&activity, &format!("{path}/resume"), &[]).await;
        assert_eq!(back.leads_to(), format!("{path}?said=resume"), "it is taken back from the list of what was done");
        assert_eq!(server.get(path).await.ok()["paused"], json!(null));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_was_done_last_can_be_taken_back_however_it_is_filtered() {
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    let browser = Browser::new(&server);
    server.post("/pipelines/shop/pause", json!({ "why": "it moves" })).await.ok();
    assert!(browser.page("/activity?verb=pause").await.contains(">Undo<"));
    server.post("/pipelines/shop/resume", json!({})).await.ok();
    let page = browser.page("/activity?verb=pause").await;
    assert!(page.contains("it moves") && !page.contains(">Undo<"), "it goes on by now: {page}");
    server.post("/breakers/hold", json!({ "pipeline": "shop", "target": "shop.example" })).await.ok();
    let page = browser.page("/activity?object=breaker").await;
    browser.submit(&page, "/breakers/turn", &[]).await.leads_to();
    let held = server.get("/breakers").await.ok();
    assert!(held["items"][0]["held_by"].is_null() && held["items"][0]["breaker"]["held_by"].is_null(), "{held}");
    let none = browser.page("/activity?verb=sing&object=cause&since=2h").await;
    for left in [
        "/activity?object=cause&amp;since=2h",
        "/activity?verb=sing&amp;since=2h",
        "/activity?verb=sing&amp;object=cause",
    ] {
        assert!(none.contains(&format!("href=\"{left}\"")), "no way to drop a filter: {left}: {none}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_is_held_from_where_it_is_seen_and_that_is_taken_back_there() {
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    let browser = Browser::new(&server);
    let held = async || server.get("/breakers").await.ok()["items"].as_array().expect("items").len();
    let ask = browser.page("/breakers/turn?verb=hold&target=shop.example&pipeline=shop&back=%2Fpipelines%2Fshop").await;
    let answer = browser.submit(&ask, "/breakers/turn", &[("why", "they asked")]).await;
    assert!(answer.leads_to().starts_with("/pipelines/shop?said=hold"), "{}", answer.leads_to());
    assert_eq!(held().await, 1);
    let page = browser.page(answer.leads_to()).await;
    assert!(page.contains("shop.example</bdi> in <bdi>shop</bdi>: its tasks wait."), "{page}");
    let undone = browser.submit(&page, "/breakers/turn", &[]).await;
    assert!(undone.leads_to().starts_with("/pipelines/shop?said=close"), "it was well before: {}", undone.leads_to());
    assert_eq!(held().await, 0);
    let elsewhere = browser.page("/breakers/turn?verb=hold&target=a&pipeline=shop&back=%2F%2Fevil.example").await;
    assert!(!elsewhere.contains("evil.example\""), "nobody is led to another server: {elsewhere}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_viewer_may_not_do_is_there_and_says_what_it_needs() {
    let (server, replay) = self_paused().await;
    server.post("/breakers/hold", json!({ "pipeline": "shop", "target": "shop.example" })).await.ok();
    let cause = server.get("/causes").await.ok()["items"][0]["id"].as_str().expect("an id").to_owned();
    server.token("ada", Role::Admin, &[]).await;
    let eve = server.token("eve", Role::Viewer, &[]).await;
    let browser = Browser::signed_in(&server, &eve).await;
    let pages = [
        ("/".to_owned(), vec!["Acknowledge", "Replay…", "Probe", "Close…", "Hold…"], "operator"),
        ("/alerts".to_owned(), vec!["Acknowledge", "Snooze…", "Assign me"], "operator"),
        ("/replays".to_owned(), vec!["Acknowledge"], "operator"),
        (format!("/replays/{replay}"), vec!["Resume…", "Change rate…", "Cancel…"], "operator"),
        ("/pipelines/shop".to_owned(), vec!["Pause…", "Probe"], "operator"),
        ("/settings/tokens".to_owned(), vec!["Make a token"], "admin"),
        (format!("/letters?cause={cause}"), vec!["Discard all that match…"], "admin"),
    ];
    for (path, labels, role) in pages {
        let page = browser.page(&path).await;
        for label in labels {
            let off = format!("disabled title=\"needs {role}; you are viewer\">{label}</button>");
            assert!(page.contains(&off), "{path}: no {label} that is off: {page}");
        }
        assert!(!page.contains("method=\"post\" action=\"/alerts"), "{path}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_says_when_its_file_was_loaded() {
    let server = Running::with("[pipeline.shop]\nhandler = \"remote\"\n").await;
    server.enqueue("mine", [json!({ "n": 1 })]).await;
    let browser = Browser::new(&server);
    assert!(browser.page("/pipelines/shop").await.contains("; the file as this server loaded it at <time"));
    assert!(!browser.page("/pipelines/mine").await.contains("as this server loaded it"), "it is in no file");
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_that_are_soon_too_old_need_somebody() {
    let clock = std::sync::Arc::new(TestClock::at(Timestamp::from_millis(1_800_000_000_000)));
    let server = Running::on_clock(std::sync::Arc::clone(&clock)).await;
    let browser = Browser::new(&server);
    server.report("shop", json!({ "n": 1 }), "gone").await;
    assert!(!browser.page("/").await.contains("discarded for its age"), "it is young");
    // They are kept for 14 days.
    clock.advance(Duration::from_secs((13 * 24 + 1) * 3_600));
    server.report("shop", json!({ "n": 2 }), "gone").await;
    let browser = Browser::another(&server).await;
    let page = browser.page("/").await;
    assert!(page.contains("1 letter is discarded for its age within 48 h"), "{page}");
    assert!(page.contains("in 23 h"), "{page}");
    let at = page.find("/letters?pipeline=shop&amp;until=").unwrap_or_else(|| panic!("no link: {page}"));
    let link = page[at..].split('"').next().expect("a link").replace("&amp;", "&");
    assert_eq!(browser.page(&link).await.matches("id=\"letter-").count(), 1, "the other is not meant");
}
