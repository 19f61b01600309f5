//! Alerts: what people do about them, over the API and by pages, and what is told of rules.

use serde_json::{Value, json};

use crate::browsing::Browser;
use crate::running::Running;

/// A server with an alert that fires.
async fn firing() -> Running {
    let server = Running::start().await;
    for n in 0..6 {
        server.report("shop", json!({ "n": n }), "price is gone").await;
    }
    // A server without a file keeps nothing of what it judges.
    server.redrive.judge_alerts(&redrive::alerts::Watching::default()).await.expect("judged");
    server
}

fn alert(listed: &Value) -> &Value {
    listed["alerts"].as_array().and_then(|alerts| alerts.iter().find(|alert| alert["key"] == "rate/shop")).expect("it")
}

async fn listed(server: &Running) -> Value {
    alert(&server.get("/alerts").await.ok()).clone()
}

fn change(verb: &str) -> Value {
    json!({ "keys": ["rate/shop"], "verb": verb })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_is_acknowledged_snoozed_and_assigned() {
    let server = firing().await;
    let changed = server.post("/alerts/changes", change("acknowledge")).await.ok();
    let by = changed["items"][0]["care"]["acknowledged"]["by"]["name"].clone();
    assert!(by.is_string(), "{changed}");
    assert_eq!(listed(&server).await["care"]["acknowledged"]["by"]["name"], by);
    let mut snooze = change("snooze");
    snooze["until"] = json!("2h");
    snooze["why"] = json!("the shop moves");
    server.post("/alerts/changes", snooze).await.ok();
    let snoozed = listed(&server).await;
    assert_eq!(snoozed["care"]["snoozed"]["why"], "the shop moves", "{snoozed}");
    let mut assign = change("assign");
    assign["owner"] = json!("ada");
    assign["version"] = snoozed["version"].clone();
    server.post("/alerts/changes", assign.clone()).await.ok();
    assign["owner"] = json!("bob");
    let second = server.post("/alerts/changes", assign).await;
    assert_eq!(second.refused(), (409, "changed_meanwhile".to_owned()), "ada was faster");
    server.post("/alerts/changes", change("wake")).await.ok();
    let after = listed(&server).await;
    assert_eq!((&after["care"]["owner"], &after["care"]["snoozed"]), (&json!("ada"), &Value::Null));
    let verbs = server.get("/activity").await.ok();
    let verbs: Vec<_> = verbs["items"].as_array().expect("items").iter().map(|item| item["verb"].clone()).collect();
    assert_eq!(verbs[..4], ["wake", "assign", "snooze", "acknowledge"].map(Value::from));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_about_an_alert_is_refused() {
    let server = firing().await;
    let refused = async |body: Value| server.post("/alerts/changes", body).await.refused();
    let with = |verb: &str, field: &str, value: &str| {
        let mut asked = change(verb);
        asked[field] = json!(value);
        asked
    };
    assert_eq!(refused(change("snooze")).await, (400, "invalid".to_owned()), "until when?");
    assert_eq!(refused(with("snooze", "until", "2001-01-01")).await.0, 400);
    assert_eq!(refused(with("acknowledge", "until", "2h")).await.0, 400, "that would be passed over");
    assert_eq!(refused(change("wake")).await.0, 409, "it is not snoozed");
    assert_eq!(refused(json!({ "keys": [], "verb": "wake" })).await.0, 400);
    let unknown = json!({ "keys": ["rate/shop", "rate/nobody"], "verb": "acknowledge" });
    assert_eq!(refused(unknown).await.0, 404);
    assert_eq!(listed(&server).await["care"], Value::Null, "nothing was done to the other");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_is_seen_to_on_its_page() {
    let server = firing().await;
    let browser = Browser::new(&server);
    let page = browser.page("/alerts").await;
    assert!(page.contains("6 of 6") && page.contains("redrive alert ack rate/shop"), "{page}");
    assert!(page.contains("shop: rate") && page.contains("once in 7 d"), "the rule would have fired: {page}");
    let form = crate::browsing::Form::of(&page, "/alerts/change");
    let sent = [("verb", "acknowledge"), ("alert", "rate/shop")];
    let answer = browser.post(&form, &sent).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    let seen = browser.page(answer.leads_to()).await;
    assert!(seen.contains("Acknowledged by") && seen.contains(">Undo<"), "{seen}");
    assert!(!seen.contains(">Acknowledge<"), "once is enough");
    assert_eq!(browser.post(&form, &sent).await.leads_to(), answer.leads_to(), "sent twice, done once");

    let ask = browser.page("/alerts/change?verb=snooze&alert=rate%2Fshop").await;
    let answer = browser.submit(&ask, "/alerts/change", &[("until", "2h"), ("why", "known")]).await;
    let snoozed = browser.page(answer.leads_to()).await;
    assert!(answer.leads_to().starts_with("/alerts?state=snoozed"), "{}", answer.leads_to());
    assert!(snoozed.contains("Muted by") && snoozed.contains("known"), "{snoozed}");
    assert!(browser.page("/alerts").await.contains("No alert fires."));
    let undone = browser.submit(&snoozed, "/alerts/change", &[]).await;
    assert_eq!(undone.status, 303, "the first form takes it back");
    assert!(browser.page("/alerts?state=snoozed").await.contains("No alert is snoozed."));
    assert_eq!(browser.get("/alerts?state=loud").await.status, 400);
    assert_eq!(browser.get("/alerts/change?verb=snooze&alert=rate%2Fnobody").await.status, 404);
    let activity = browser.page("/activity").await;
    assert!(activity.contains("snooze") && activity.contains("alert rate/shop"), "{activity}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_told_how_often_rules_would_have_fired() {
    let server = firing().await;
    let past = server.get("/alerts/past").await.ok();
    let rate = past["items"].as_array().expect("items").iter().find(|rule| rule["condition"] == "rate").expect("it");
    assert_eq!((&rate["pipeline"], &rate["times"]), (&json!("shop"), &json!(1)), "{past}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelines_that_only_report_are_watched_and_others_are_named_as_not_watched() {
    let server = Running::with("[pipeline.shop]\ncommand = [\"cat\"]\n").await;
    for n in 0..6 {
        server.report("crawler", json!({ "n": n }), "price is gone").await;
        server.report("shop", json!({ "n": n }), "price is gone").await;
    }
    server.until("/alerts", |listed| listed["unwatched"] == json!(["shop"])).await;
    let watching = server.redrive.alerts().watching().expect("the server watches");
    server.redrive.judge_alerts(&watching).await.expect("judged");
    let listed = server.get("/alerts").await.ok();
    let fires = |name: &str| listed["alerts"].as_array().expect("a list").iter().any(|alert| alert["pipeline"] == name);
    assert!(fires("crawler") && !fires("shop"), "{listed}");
    let page = Browser::new(&server).page("/alerts").await;
    assert!(page.contains("Pipelines that are not watched from here: shop."), "{page}");
    assert!(page.contains("crawler: rate") && !page.contains("shop: rate"), "{page}");
    assert!(page.contains("the defaults, since redrive.toml has no [alerts]"), "{page}");
    assert!(!page.contains("from redrive.toml; in 7 days"), "{page}");
}
