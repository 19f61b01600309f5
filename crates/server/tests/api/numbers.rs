//! Numbers on pages: each of its window, each task once, and none that says more than is known.

use std::sync::Arc;
use std::time::Duration;

use redrive::clock::TestClock;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;
use serde_json::json;

use crate::browsing::Browser;
use crate::replays::{letters, work};
use crate::running::Running;
use crate::seen_to::self_paused;

/// The headline, from its tag on.
async fn headline(browser: &Browser<'_>) -> String {
    let page = browser.page("/").await;
    let at = page.find("id=\"headline\"").unwrap_or_else(|| panic!("no headline: {page}"));
    page[at..].split("</p>").next().expect("an end").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_headline_names_all_that_fails_and_is_good_news_only_where_nobody_is_needed() {
    let clock = Arc::new(TestClock::at(Timestamp::from_millis(1_800_000_000_000)));
    let server = Running::on_clock(Arc::clone(&clock)).await;
    let browser = Browser::new(&server);
    letters(&server, 6).await;
    for n in 0..5 {
        server.report("mill", json!({ "n": n }), "gone").await;
    }
    let failing = headline(&browser).await;
    assert!(failing.contains("shop: 6 of 6 tasks died in 10 min"), "{failing}");
    assert!(failing.contains("mill: 5 of 5 tasks died in 1 h."), "{failing}");
    assert!(failing.contains("Main cause since 08:00: ") && failing.contains(", 6 of 6 that died."), "{failing}");
    assert!(!failing.contains("rest is normal"), "there is no rest: {failing}");
    clock.advance(Duration::from_secs(11 * 60));
    let later = headline(&browser).await;
    assert!(later.contains("No task came to its end in 10 min.") && later.contains("headline warn"), "{later}");
    assert!(later.contains("shop: 6 of 6 tasks died in 1 h.") && later.contains("2 causes need</a>"), "{later}");
    assert!(!later.contains("Nothing waits"), "{later}");
    let started = server.post("/replays", json!({ "letters": { "pipeline": "shop" } })).await.ok();
    work(&server, started["replay"]["id"].as_str().expect("an id"), &json!({ "verdict": "done" })).await;
    let recovered = headline(&browser).await;
    assert!(recovered.contains("6 letters recovered in 10 min."), "{recovered}");
    assert!(!recovered.contains("No task came to its end"), "{recovered}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_is_cancelled_says_what_stays_dead_and_its_numbers_add_up() {
    let (server, replay) = self_paused().await;
    let (browser, path) = (Browser::new(&server), format!("/replays/{replay}"));
    let progress = server.get(&path).await.ok()["progress"].clone();
    let number = |name: &str| progress[name].as_u64().expect("a number");
    let (failed, left) = (number("failed"), number("pending") + number("running"));
    assert_eq!(failed + left, 12, "{progress}");
    let ask = browser.page(&format!("{path}/change?verb=cancel")).await;
    assert!(ask.contains("Cancel, and leave 12 dead"), "{ask}");
    browser.submit(&ask, &format!("{path}/change"), &[]).await.leads_to();
    server.until(&path, |replay| replay["state"] == "cancelled").await;
    let page = browser.page(&format!("{path}?said=resume")).await;
    assert!(!page.contains("It goes on."), "it does not any more: {page}");
    assert!(page.contains("Cancelled by local.") && page.contains("See what failed"), "{page}");
    assert!(page.contains(&format!("left dead {left}")) && page.contains(&format!("failed {failed}")), "{page}");
    let tab = browser.page(&format!("{path}?outcome=cancelled")).await;
    assert_eq!(tab.matches("id=\"letter-").count() as u64, left, "{tab}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_numbers_of_a_replay_are_brought_up_to_date_together() {
    let server = Running::start().await;
    letters(&server, 3).await;
    let cause = server.get("/causes").await.ok()["items"][0]["id"].as_str().expect("an id").to_owned();
    let started = server.post("/replays", json!({ "letters": { "cause": cause } })).await.ok();
    let replay = started["replay"]["id"].as_str().expect("an id").to_owned();
    let parts = async || {
        let wanted = "x-parts: verdict,verdicts-fact,replay-tabs,failed-verdicts,failed-letters";
        let head = format!("GET /replays/{replay} HTTP/1.1\r\nhost: {}\r\n{wanted}", server.address);
        server.send(&head, b"").await.text()
    };
    let before = parts().await;
    assert!(before.contains("0 of 3 settled") && before.contains("Failed<b>0</b>"), "{before}");
    let failed = json!({ "verdict": "failed", "failure": { "message": "no", "reason": "not_found" } });
    work(&server, &replay, &failed).await;
    server.until(&format!("/replays/{replay}"), |replay| replay["state"] == "done").await;
    let after = parts().await;
    assert!(after.contains("3 of 3 failed again") && after.contains("3 of 3 settled"), "{after}");
    assert!(after.contains("Failed<b>3</b>") && after.contains("Not sent yet<b>0</b>"), "{after}");
    let page = Browser::new(&server).page(&format!("/replays/{replay}")).await;
    assert!(page.contains("none recovered") && page.contains(&format!("/replays/new?cause={cause}")), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_again_in_a_replay_is_no_other_task_that_died() {
    let (server, _) = self_paused().await;
    let page = Browser::new(&server).page("/").await;
    assert!(page.contains("12 tasks, 100.0 % of those that died in this hour"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_says_when_it_was_measured_leads_to_its_replay_and_ends() {
    let (server, replay) = self_paused().await;
    let browser = Browser::new(&server);
    let page = browser.page("/").await;
    let needs = page[page.find("id=\"todo\"").expect("needs")..].split("</ul>").next().expect("an end").to_owned();
    assert!(needs.contains("a replay paused itself") && !needs.contains("id=\"replay-"), "it is said once: {needs}");
    assert!(needs.contains(&format!("href=\"/replays/{replay}\"")), "{needs}");
    assert!(needs.contains("<span class=\"fact cut\">At "), "{needs}");
    server.post(&format!("/replays/{replay}/cancel"), json!({})).await.ok();
    server.until(&format!("/replays/{replay}"), |replay| replay["state"] == "cancelled").await;
    server.redrive.judge_alerts(&redrive::alerts::Watching::default()).await.expect("judged");
    let ended = browser.page("/alerts?state=ended").await;
    let row = ended[ended.find("a replay paused itself").expect("it ended")..].split("</tr>").next().expect("an end");
    assert!(row.contains("Over since <time") && !row.contains("Snooze…") && !row.contains("doubled"), "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_paused_replay_does_not_go_and_holds_no_target() {
    let server = Running::start().await;
    for n in 0..2 {
        server.report("shop", json!({ "url": format!("https://shop.example/{n}") }), "gone").await;
    }
    let hold = json!({ "target": "shop.example", "pipeline": "shop", "why": "they asked" });
    server.post("/breakers/hold", hold).await.ok();
    let asked = json!({ "letters": { "pipeline": "shop" }, "from": "refetch", "ramp": [] });
    let replay = server.post("/replays", asked).await.ok()["replay"]["id"].as_str().expect("an id").to_owned();
    server.until(&format!("/replays/{replay}"), |replay| replay["progress"]["running"] == 2).await;
    let leases = server.post("/leases", json!({ "pipelines": ["shop"], "replay": replay })).await.ok();
    assert_eq!(leases["leases"], json!([]), "its tasks wait");
    server.until("/breakers", |listed| listed["items"][0]["held_of_replays"] == 2).await;
    let browser = Browser::new(&server);
    let ask = "/breakers/turn?verb=close&target=shop.example&pipeline=shop";
    assert!(browser.page(ask).await.contains("Let 2 tasks go"));
    server.post(&format!("/replays/{replay}/pause"), json!({})).await.ok();
    let page = browser.page(ask).await;
    assert!(page.contains("2 tasks of replays that are paused wait") && page.contains(">Close the breaker<"), "{page}");
    assert!(browser.page("/").await.contains("held by"));
    browser.submit(&page, "/breakers/turn", &[]).await.leads_to();
    let closed = browser.page("/").await;
    assert!(!closed.contains("Held targets") && !closed.contains("00:00:00"), "{closed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn activity_of_some_pipelines_is_that_of_one_of_them_at_a_time() {
    let server = Running::start().await;
    for name in ["mill", "other", "shop"] {
        server.enqueue(name, [json!({ "n": 1 })]).await;
        server.post(&format!("/pipelines/{name}/pause"), json!({ "why": format!("{name} moves") })).await.ok();
    }
    server.token("ada", Role::Admin, &[]).await;
    let eve = server.token("eve", Role::Operator, &["mill", "shop"]).await;
    let browser = Browser::signed_in(&server, &eve).await;
    let first = browser.page("/activity").await;
    assert!(first.contains("mill moves") && first.contains("href=\"/activity?pipeline=shop\""), "{first}");
    // That hers rest is said on every page.
    assert!(!first.contains("shop moves, pipelines") && !first.contains("other moves"), "{first}");
    assert!(first.contains("redrive activity --pipeline mill"), "{first}");
    assert!(browser.page("/activity?pipeline=shop").await.contains("shop moves, pipelines"));
    assert_eq!(browser.get("/activity?pipeline=other").await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_with_a_mistake_comes_back_as_it_was_filled_in() {
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    let browser = Browser::new(&server);
    let hold = "/breakers/turn?verb=hold&target=shop.example&pipeline=shop";
    for (path, action) in [("/pipelines/shop/pause", "/pipelines/shop/pause"), (hold, "/breakers/turn")] {
        let ask = browser.page(path).await;
        let wrong = browser.submit(&ask, action, &[("until", "soonish"), ("why", "it <moves>")]).await;
        let page = wrong.text();
        assert_eq!(wrong.status, 400, "{page}");
        assert!(page.contains("value=\"soonish\"") && page.contains("value=\"it &lt;moves&gt;\""), "{page}");
        assert!(page.contains("It is about “Until when”"), "the mistake is named: {page}");
        assert!(page.contains("Nothing was done yet") && page.contains(">Until when: 2h (from now)"), "{page}");
        let mended = browser.submit(&page, action, &[("until", "2h"), ("why", "it <moves>")]).await;
        mended.leads_to();
    }
    assert_eq!(server.get("/pipelines/shop").await.ok()["paused"]["why"], "it <moves>");
    assert_eq!(server.get("/breakers").await.ok()["items"][0]["held_by"]["why"], "it <moves>");
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_that_are_kept_for_less_than_two_days_are_soon_discarded() {
    let server = Running::with("[pipeline.shop]\nhandler = \"remote\"\nretention = \"36h\"\n").await;
    server.report("shop", json!({ "n": 1 }), "gone").await;
    let page = Browser::new(&server).page("/").await;
    assert!(page.contains("1 letter is discarded for its age within 48 h") && page.contains("in 35 h"), "{page}");
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

async fn done(server: &Running, seq: u32, done: u32) {
    let counts = json!([{ "pipeline": "shop", "done": done }]);
    server.post("/outcomes", json!({ "client": "crawler", "seq": seq, "counts": counts })).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_main_cause_is_dated_by_its_first_death_and_counted_in_one_window() {
    let clock = Arc::new(TestClock::at(at("2027-01-15T08:20:00Z")));
    let server = Running::on_clock(Arc::clone(&clock)).await;
    let browser = Browser::new(&server);
    server.report("shop", json!({ "n": 0 }), "no such page").await;
    clock.advance(Duration::from_secs(28 * 60));
    for n in 1..5 {
        server.report("shop", json!({ "n": n }), "price is gone").await;
    }
    let fresh = headline(&browser).await;
    assert!(fresh.contains("Main cause since 08:48: ") && fresh.contains(", 4 of 4 that died."), "{fresh}");
    clock.advance(Duration::from_secs(80 * 60));
    for n in 5..7 {
        server.report("shop", json!({ "n": n }), "price is gone").await;
    }
    let later = headline(&browser).await;
    assert!(later.contains("Main cause: ") && later.contains(", first death <time"), "{later}");
    assert!(
        later.contains(">08:48:00<") && later.contains(" 2 of 2 tasks that died since 09:00 died of it."),
        "{later}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_share_of_a_cause_stays_as_it_is_after_its_last_death() {
    let clock = Arc::new(TestClock::at(at("2027-01-15T08:20:00Z")));
    let server = Running::on_clock(Arc::clone(&clock)).await;
    letters(&server, 4).await;
    done(&server, 1, 4).await;
    let cause = server.get("/causes").await.ok()["items"][0]["id"].as_str().expect("an id").to_owned();
    for minutes in [0, 50, 300, 8 * 24 * 60] {
        clock.advance(Duration::from_secs(minutes * 60));
        done(&server, 2 + u32::try_from(minutes).expect("small"), 40).await;
        // A session does not last for a week.
        let page = Browser::another(&server).await.page(&format!("/causes/{cause}")).await;
        assert!(page.contains("4 of 48 <small>tasks (8.3 %) "), "after {minutes} min: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_is_not_normal_while_an_alert_of_it_fires() {
    let clock = Arc::new(TestClock::at(at("2027-01-15T08:20:00Z")));
    let server = Running::on_clock(Arc::clone(&clock)).await;
    let browser = Browser::new(&server);
    letters(&server, 6).await;
    done(&server, 1, 300).await;
    server.redrive.judge_alerts(&redrive::alerts::Watching::default()).await.expect("judged");
    clock.advance(Duration::from_secs(11 * 60));
    let keys: Vec<_> = server.get("/alerts").await.ok()["alerts"]
        .as_array()
        .expect("alerts")
        .iter()
        .map(|alert| alert["key"].clone())
        .collect();
    for is_seen in [false, true] {
        if is_seen {
            server.post("/alerts/changes", json!({ "keys": keys, "verb": "acknowledge" })).await.ok();
        }
        let page = browser.page("/").await;
        let row = page[page.find("id=\"pipeline-shop\"").expect("its row")..].split("</tr>").next().expect("an end");
        assert!(row.contains("alerting") && !row.contains("normal"), "{row}");
        let headline = headline(&browser).await;
        assert!(headline.contains(">alerts that fire</a>.") && !headline.contains("normal"), "{headline}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_different_names_reported_proxies_and_says_what_was_not_reported() {
    let clock = Arc::new(TestClock::at(Timestamp::from_millis(1_800_000_000_000)));
    let server = Running::on_clock(Arc::clone(&clock)).await;
    let browser = Browser::new(&server);
    let proxies = |n: usize| if n < 30 { json!("residential-de-3") } else { json!(null) };
    let letter = |n: usize| {
        let (url, proxy) = (format!("https://a.example/{n}"), proxies(n));
        json!({ "pipeline": "shop", "input": { "url": url }, "message": "gone", "target": "a.example", "proxy": proxy })
    };
    server.post("/letters", json!({ "letters": (0..40).map(letter).collect::<Vec<_>>() })).await.ok();
    let count = |proxy, done| json!({ "pipeline": "shop", "target": "a.example", "proxy": proxy, "done": done });
    let report = async |seq, counts| {
        server.post("/outcomes", json!({ "client": "crawler", "seq": seq, "counts": counts })).await.ok();
    };
    report(1, json!([count(json!(null), 1_000)])).await;
    let cause = server.get("/causes").await.ok()["items"][0]["id"].as_str().expect("a cause").to_owned();
    let page = browser.page(&format!("/causes/{cause}")).await;
    let unknown = "left out: proxy of 10 of 40 failures and all 1,000 successes; rules of all 40 failures";
    assert!(page.contains(unknown) && page.contains("target are alike"), "{page}");
    assert!(
        page.contains("Of failures only, not counted of tasks that are done: proxy residential-de-3 (30 of 30)"),
        "{page}"
    );
    report(2, json!([count(json!("http://bob:hunter2@dc-1.example:80"), 500), count(json!("residential-de-3"), 2)]))
        .await;
    let page = browser.page(&format!("/causes/{cause}")).await;
    assert!(page.contains("<bdi>residential-de-3</bdi>") && page.contains("(30 of 30)"), "{page}");
    assert!(page.contains("successes that have one (2 of 502)") && !page.contains("hunter2"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_that_lack_a_field_are_not_said_to_have_failed_permanently_nor_to_go_by_force() {
    let server = Running::start().await;
    let id = server.report("shop", json!({ "n": 1, "password": "hunter2" }), "no login").await;
    let page = Browser::new(&server).page(&format!("/replays/new?id={id}")).await;
    assert!(
        page.contains("or their input lacks a field (gate never)") && page.contains("No letter can be sent"),
        "{page}"
    );
    assert!(!page.contains("they are sent all the same"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cause_of_which_all_was_imported_has_no_share_of_no_tasks() {
    let server = Running::start().await;
    let value = json!({ "url": "https://old.example/1", "error": "gone", "failed_at": "2026-01-15T08:20:00Z" });
    let import = json!({ "pipeline": "old", "fields": ["message=error", "time=failed_at"], "letters": [{ "line": 1, "value": value }] });
    assert_eq!(server.post("/letters/import", import).await.ok()["new"], 1);
    let cause = server.get("/causes").await.ok()["items"][0]["id"].as_str().expect("an id").to_owned();
    let page = Browser::new(&server).page(&format!("/causes/{cause}")).await;
    assert!(page.contains("<small>in all</small>") && !page.contains("tasks (0 %)"), "{page}");
}
