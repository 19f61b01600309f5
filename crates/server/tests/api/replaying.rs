//! Starting replays by the page: what is started is what was looked at, with the right numbers in each way, and forms with a mistake come
//! back as they were; what a replay says of letters that fail again, and what can be done to it.

use redrive::contract::{DeadFilter, OpenTry, Selection};
use redrive_core::actors::Actor;
use redrive_core::alerts::{AlertKey, Condition};
use redrive_core::ids::TryId;
use redrive_core::tokens::Role;
use serde_json::{Value, json};

use crate::browsing::{Browser, Form};
use crate::replays::letters;
use crate::running::Running;
use crate::seen_to::self_paused;

const CHOICE: &str = "/replays/new?pipeline=shop";

const RULES: &str = "[pipeline.shop]\nhandler = \"http\"\n[pipeline.shop.extract.fields]\ntitle = \"h1::text\"\n\
                     price = { select = \".new::text\", type = \"number\" }\n";

/// Reports letters that died of a reason, each with a saved page.
async fn report(server: &Running, reason: &str, numbers: std::ops::Range<u32>) {
    let letter = |n: u32| {
        json!({
            "pipeline": "shop", "input": { "url": format!("https://shop.example/p/{n}") }, "message": "no", "reason": reason,
            "payload": { "text": format!("<h1>Thing</h1><b class=new>{n}.50</b>"), "status": 200 },
        })
    };
    server.post("/letters", json!(numbers.map(letter).collect::<Vec<_>>())).await.ok();
}

async fn replays(server: &Running) -> Vec<Value> {
    server.get("/replays").await.ok()["items"].as_array().expect("replays").clone()
}

#[tokio::test]
async fn who_looked_at_other_letters_than_would_go_is_asked_again() {
    let server = Running::start().await;
    letters(&server, 6).await;
    let browser = Browser::new(&server);
    let form = Form::of(&browser.page(CHOICE).await, "/replays/start");
    let all = server.get("/letters").await.ok();
    let ids: Vec<_> =
        all["items"].as_array().expect("letters")[..2].iter().map(|letter| letter["id"].clone()).collect();
    let other = server.post("/replays", json!({ "letters": { "ids": ids } })).await.ok();
    // One is sent, the other waits for its turn.
    let path = format!("/replays/{}", other["replay"]["id"].as_str().expect("an id"));
    server.until(&path, |replay| replay["progress"]["running"] == 1).await;
    let asks = browser.post(&form, &[]).await;
    assert_eq!(asks.status, 200);
    let page = asks.text();
    assert!(page.contains("6 when you looked, 1 gone since, 1 is in another replay since."), "{page}");
    assert!(page.contains("Replay 4 letters") && page.contains("href=\"/replays?state=open\""), "{page}");
    assert_eq!(replays(&server).await.len(), 1, "nothing more was started");
    browser.submit(&page, "/replays/start", &[]).await.leads_to();
    assert_eq!(replays(&server).await[0]["progress"]["total"], 4);
}

#[tokio::test]
async fn letters_that_failed_permanently_are_sent_with_a_reason_and_counted() {
    let server = Running::start().await;
    report(&server, "payload_expired", 0..2).await;
    let browser = Browser::new(&server);
    let page = browser.page(CHOICE).await;
    assert!(page.contains("They failed permanently; they are sent all the same, because"), "{page}");
    assert!(page.contains("<span class=\"of\">Replay 2 letters</span>"), "{page}");
    let asks = browser.submit(&page, "/replays/start", &[]).await;
    assert!(asks.status == 200 && asks.text().contains("say why they are sent all the same"), "{}", asks.text());
    report(&server, "timeout", 2..3).await;
    let mixed = browser.page(CHOICE).await;
    assert!(mixed.contains("Also send 2 letters that failed permanently, because"), "{mixed}");
    assert!(mixed.contains("<span class=\"of\">Replay 1 letter</span>"), "{mixed}");
    assert!(mixed.contains("<span class=\"of f\">Replay 3 letters</span>"), "{mixed}");
    assert!(mixed.contains("gate=never") && mixed.contains("left out: they failed permanently"), "{mixed}");
    browser.submit(&page, "/replays/start", &[("why", "they are back")]).await.leads_to();
    assert_eq!(replays(&server).await[0]["progress"]["total"], 2, "those that were looked at");
    let left = browser.submit(&browser.page(CHOICE).await, "/replays/start", &[]).await;
    left.leads_to();
    assert_eq!(replays(&server).await[0]["progress"]["total"], 1);
}

#[tokio::test]
async fn what_can_be_tried_is_counted_by_saved_pages_and_if_not_it_is_said_why() {
    let server = Running::with(RULES).await;
    report(&server, "blocked", 0..2).await;
    let browser = Browser::new(&server);
    let page = browser.page(CHOICE).await;
    assert!(page.contains("Try 2 saved pages") && page.contains("2 letters; no request is sent"), "{page}");
    assert!(page.contains("2 requests to <bdi>shop.example</bdi>, breaker closed."), "{page}");
    assert!(page.contains("Rules of shop: version") && page.contains("no worker is there."), "{page}");
    let one = server.get("/letters").await.ok()["items"][0]["id"].as_str().expect("an id").to_owned();
    let page = browser.page(&format!("/replays/new?id={one}")).await;
    assert!(page.contains("Replay 1 dead letter<") && page.contains("1 letter that was ticked"), "{page}");
    assert!(page.contains("Try 1 saved page<"), "{page}");
    assert!(page.contains(&format!("href=\"/letters/{one}\"")), "{page}");
    let server = Running::with("[pipeline.shop]\ncommand = [\"true\"]\n").await;
    report(&server, "schema_validation", 0..2).await;
    let page = Browser::new(&server).page(CHOICE).await;
    assert!(page.contains("They cannot be tried: pipeline shop cannot work from saved payloads."), "{page}");
    assert!(!page.contains("None of them has a saved page"), "{page}");
}

#[tokio::test]
async fn what_passed_and_is_dead_no_more_is_not_counted() {
    let server = Running::with(RULES).await;
    report(&server, "schema_validation", 0..3).await;
    let bare = json!({ "text": "<h1>Thing</h1>", "status": 200 });
    let failing = json!({ "pipeline": "shop", "input": { "url": "https://shop.example/x" }, "message": "no price",
                          "reason": "schema_validation", "payload": bare });
    server.post("/letters", json!([failing])).await.ok();
    let browser = Browser::new(&server);
    let page = browser.page(CHOICE).await;
    let try_form = Form { action: "/replays/try".to_owned(), ..Form::of(&page, "/replays/start") };
    let here = browser.post(&try_form, &[]).await.leads_to().split('#').next().expect("a path").to_owned();
    server.until("/tries", |tries| tries["items"][0]["finished_at"].is_string()).await;
    let page = browser.page(&here).await;
    assert!(page.contains("Only the 3 that passed the try"), "{page}");
    let all = server.get("/letters").await.ok();
    let passed = all["items"].as_array().expect("letters").iter().find(|letter| letter["message"] == "no");
    let id = passed.expect("one that passed")["id"].clone();
    server.post("/letters/discard", json!({ "letters": { "ids": [id] }, "why": "old" })).await.ok();
    let asks = browser.submit(&page, "/replays/start", &[("only", "passed"), ("unattended", "yes")]).await;
    assert!(asks.status == 200 && asks.text().contains("3 when you looked, 1 gone since"), "{}", asks.text());
    let page = browser.page(&here).await;
    assert!(page.contains("Only the 2 that passed the try") && page.contains("Replay 2 letters"), "{page}");
    assert!(page.contains("3 passed; the others are no longer dead"), "{page}");
}

#[tokio::test]
async fn a_try_that_nobody_runs_any_more_is_cut_off() {
    let server = Running::with(RULES).await;
    report(&server, "schema_validation", 0..2).await;
    let browser = Browser::new(&server);
    let (store, now) = (server.redrive.store(), server.redrive.now());
    let known = |secs: u64| {
        let seen_at = now - std::time::Duration::from_secs(secs);
        json!({ "here": true, "seen_at": seen_at, "of": 2, "tried": 0, "recovered": 0, "excluded": {}, "remaining": [], "stopped": false })
    };
    let open = OpenTry {
        id: TryId::new(now, 1),
        by: Actor::redrive(),
        selection: Selection {
            filter: DeadFilter { pipeline: "shop".parse().ok(), ..DeadFilter::default() },
            ids: Vec::new(),
        },
        edits: Default::default(),
        tried_with: Default::default(),
        outcome: known(2),
        now,
    };
    store.open_try(open.clone()).await.expect("opened");
    let page = browser.page(CHOICE).await;
    assert!(page.contains("It runs in another process") && page.contains("data-busy"), "{page}");
    store.note_try(open.id, known(90)).await.expect("noted");
    let page = browser.page(CHOICE).await;
    assert!(page.contains("It was cut short: ") && page.contains("the process that ran it stopped"), "{page}");
    assert!(!page.contains("data-busy"), "{page}");
}

#[tokio::test]
async fn a_form_with_a_mistake_comes_back_as_it_was_with_the_mistake_beside_its_field() {
    let server = Running::with(RULES).await;
    report(&server, "schema_validation", 0..2).await;
    let browser = Browser::new(&server);
    let page = browser.page(CHOICE).await;
    let filled = [("name", "again"), ("ramp", "1, x"), ("unattended", "yes"), ("from", "refetch")];
    let wrong = browser.submit(&page, "/replays/start", &filled).await;
    let text = wrong.text();
    assert_eq!(wrong.status, 400, "{text}");
    assert!(text.contains("value=\"1, x\"") && text.contains("aria-invalid=\"true\""), "{text}");
    assert!(text.contains("value=\"again\"") && text.contains("value=\"refetch\" checked"), "{text}");
    assert!(!text.contains("That makes no sense") && text.contains("expected numbers of letters"), "{text}");
    let empty = browser.submit(&text, "/replays/start", &[("ramp", ""), ("unattended", "yes")]).await;
    assert_eq!(empty.status, 400, "an empty field is no answer: {}", empty.text());
    let try_form = Form { action: "/replays/try".to_owned(), ..Form::of(&page, "/replays/start") };
    let drafted = browser.post(&try_form, &[("draft.price", "..x"), ("name", "again")]).await;
    let text = drafted.text();
    assert!(drafted.status == 400 && text.contains("value=\"..x\"") && text.contains("id=\"step-2\""), "{text}");
    assert!(text.contains("value=\"again\"") && text.matches("role=\"alert\"").count() == 2, "{text}");
    let none = [("ramp", "none"), ("unattended", "yes")];
    browser.submit(&text, "/replays/start", &none).await.leads_to();
    assert_eq!(replays(&server).await[0]["pacing"]["ramp"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_that_fail_for_another_cause_are_told_apart_wherever_they_are() {
    let (server, replay) = self_paused().await;
    let browser = Browser::new(&server);
    let path = format!("/replays/{replay}");
    let failed = server.get(&path).await.ok()["progress"]["failed"].as_u64().expect("a number");
    let page = browser.page(&format!("{path}?outcome=pending")).await;
    assert!(page.contains("outcome=other_cause#letters") && page.contains("Other cause: <a href=\"/causes/"), "{page}");
    let other = browser.page(&format!("{path}?outcome=other_cause")).await;
    assert_eq!(other.matches("id=\"letter-").count() as u64, failed, "{other}");
    let same = browser.page(&format!("{path}?outcome=same_cause")).await;
    assert!(same.contains("No letter of it is like that"), "{same}");
    assert_eq!(browser.get(&format!("{path}?outcome=no")).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_is_paused_at_once_and_that_is_taken_back_there() {
    let server = Running::start().await;
    letters(&server, 3).await;
    let asked = json!({ "letters": { "pipeline": "shop" }, "rate": "100/m", "ramp": [] });
    let replay = server.post("/replays", asked).await.ok()["replay"]["id"].as_str().expect("an id").to_owned();
    let (browser, path) = (Browser::new(&server), format!("/replays/{replay}"));
    server.until(&path, |replay| replay["progress"]["running"] != 0).await;
    let page = browser.page(&path).await;
    assert!(page.contains("at most 100/m") && !page.contains("1.666"), "{page}");
    assert!(page.contains("Under way, oldest: <a href=\"/letters/"), "{page}");
    assert!(browser.page(&format!("{path}/change?verb=rate")).await.contains("value=\"100/m\""));
    let running = server.get(&path).await.ok()["progress"]["running"].as_u64().expect("a number");
    let leased = server.post("/leases", json!({ "pipelines": ["shop"], "replay": replay, "max": 1 })).await.ok();
    assert_eq!(leased["leases"].as_array().map(Vec::len), Some(1), "{leased}");
    let paused = browser.submit(&page, &format!("{path}/change"), &[]).await;
    let page = browser.page(paused.leads_to()).await;
    assert!(page.contains("Paused: nothing more is sent.") && page.contains(">Undo<"), "{page}");
    let ask = browser.page(&format!("{path}/change?verb=cancel")).await;
    assert!(ask.contains("1 letter that a worker has begun comes to its end"), "{running}: {ask}");
    assert!(ask.contains("Cancel, and leave 2 dead"), "{ask}");
    let resumed = browser.submit(&page, &format!("{path}/change"), &[]).await;
    assert!(browser.page(resumed.leads_to()).await.contains("It goes on."));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_covers_all_pipelines_of_a_replay_acknowledges_that_it_paused_itself() {
    let (server, replay) = self_paused().await;
    server.token("root", Role::Admin, &[]).await;
    let own = server.token("ada", Role::Operator, &["shop"]).await;
    let other = server.token("eve", Role::Operator, &["other"]).await;
    let key = AlertKey::new(Condition::Replay, None, Some(&replay)).as_str().to_owned();
    let asked = json!({ "keys": [key], "verb": "acknowledge" });
    let refused = server.ask_as(Some(&other), "POST /alerts/changes", &[], Some(asked)).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    let browser = Browser::signed_in(&server, &own).await;
    let page = browser.page("/replays").await;
    let done = browser.submit(&page, "/alerts/change", &[]).await;
    assert!(done.leads_to().starts_with("/replays?said=acknowledge"), "{}", done.leads_to());
    let foreign = Browser::signed_in(&server, &other).await.page("/replays").await;
    assert!(foreign.contains("No replay "), "{foreign}");
}
