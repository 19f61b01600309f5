//! Replays of letters that are worked on elsewhere.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::browsing::Browser;
use crate::running::Running;

/// Works on all letters of a replay, as a remote worker does, until it has ended or rests; each with the same verdict.
pub async fn work(server: &Running, replay: &str, verdict: &Value) -> Value {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < Duration::from_secs(180), "replay {replay} never comes to an end");
        let asked = json!({ "pipelines": ["shop"], "replay": replay, "max": 10, "wait": 1 });
        let leased = server.post("/leases", asked).await.ok();
        let leases = leased["leases"].as_array().expect("leases");
        if leases.is_empty() && (leased["open"] == 0 || leased["paused"] == true) {
            return leased;
        }
        let job = |lease: &Value| {
            let mut job = verdict.clone();
            job["lease"] = lease["lease"].clone();
            job
        };
        let jobs: Vec<_> = leases.iter().map(job).collect();
        if !jobs.is_empty() {
            server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": jobs })).await.ok();
        }
    }
}

pub async fn letters(server: &Running, many: u32) {
    let letter = |n| json!({ "pipeline": "shop", "input": { "n": n }, "message": "connect timed out" });
    let letters: Vec<_> = (0..many).map(letter).collect();
    server.post("/letters", json!(letters)).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_that_are_worked_on_elsewhere_recover() {
    let server = Running::start().await;
    letters(&server, 12).await;
    let plan = server.post("/replays/plan", json!({ "letters": { "pipeline": "shop" } })).await.ok();
    assert_eq!((&plan["matched"], &plan["included"]), (&json!(12), &json!(12)), "{plan}");
    let started = server.post("/replays", json!({ "letters": { "pipeline": "shop" }, "name": "fixed" })).await;
    assert_eq!(started.status, 201);
    let replay = started.ok()["replay"]["id"].as_str().expect("an id").to_owned();
    let path = format!("/replays/{replay}");
    let handed_out = server.get(&path).await.ok();
    assert_eq!(handed_out["progress"]["recovered"], 0, "nothing is recovered by being sent");
    work(&server, &replay, &json!({ "verdict": "done" })).await;
    let done = server.until(&path, |replay| replay["state"] == "done").await;
    assert_eq!((&done["progress"]["recovered"], &done["name"]), (&json!(12), &json!("fixed")), "{done}");
    let became = server.get(&format!("{path}/letters?state=recovered&limit=5")).await.ok();
    assert_eq!(became["items"].as_array().map(Vec::len), Some(5));
    assert!(became["next"].is_string());
    assert_eq!(server.get("/pipelines/shop").await.ok()["recovered"], 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_whose_letters_fail_again_pauses_itself_and_can_be_cancelled() {
    let server = Running::start().await;
    letters(&server, 12).await;
    let started = server.post("/replays", json!({ "letters": { "pipeline": "shop" }, "refail_max": "10%" })).await.ok();
    let replay = started["replay"]["id"].as_str().expect("an id").to_owned();
    let failed = json!({ "verdict": "failed", "failure": { "message": "no", "reason": "not_found" } });
    let left = work(&server, &replay, &failed).await;
    assert_eq!(left["paused"], true, "{left}");
    let path = format!("/replays/{replay}");
    let paused = server.until(&path, |replay| replay["state"] == "paused").await;
    assert!(paused["progress"]["pending"].as_u64().is_some_and(|pending| pending > 0), "{paused}");
    assert_eq!(server.post(&format!("{path}/resume"), json!({})).await.ok()["state"], "running");
    server.post(&format!("{path}/pause"), json!({})).await;
    server.post(&format!("{path}/cancel"), json!({})).await.ok();
    server.until(&path, |replay| replay["state"] == "cancelled").await;
    let again = server.post(&format!("{path}/cancel"), json!({})).await;
    assert_eq!(again.refused(), (409, "replay_state".to_owned()));
    assert_eq!(server.get("/pipelines/shop").await.ok()["dead"], 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_goes_faster_while_it_runs() {
    let server = Running::start().await;
    letters(&server, 3).await;
    let slow = json!({ "letters": { "pipeline": "shop" }, "rate": "1/h", "ramp": [] });
    let started = server.post("/replays", slow).await.ok();
    let replay = started["replay"]["id"].as_str().expect("an id").to_owned();
    let path = format!("/replays/{replay}");
    let rate = async |rate: &str| server.post(&format!("{path}/rate"), json!({ "rate": rate })).await;
    assert_eq!(rate("fast").await.refused(), (400, "invalid".to_owned()));
    assert_eq!(rate("20/s").await.ok()["pacing"]["per_second"], 20.0);
    let late = server.post(&format!("{path}/rate"), json!({ "rate": "2/s", "was": "1/h" })).await;
    assert_eq!(late.refused(), (409, "changed_meanwhile".to_owned()));
    let browser = Browser::new(&server);
    let page = browser.page(&path).await;
    assert!(page.contains("at most 20/s"), "{page}");
    assert!(page.contains(&format!("redrive replay rate {replay} 20/s")), "{page}");
    let ask = browser.page(&format!("{path}/change?verb=rate")).await;
    let answer = browser.submit(&ask, &format!("{path}/change"), &[("rate", "none")]).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    assert!(browser.page(answer.leads_to()).await.contains("From now on: all at once"));
    assert_eq!(server.get(&path).await.ok()["pacing"]["per_second"], Value::Null);
    work(&server, &replay, &json!({ "verdict": "done" })).await;
    server.until(&path, |replay| replay["state"] == "done").await;
    assert_eq!(rate("5/s").await.refused().0, 409, "it is over");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_makes_no_sense_is_refused() {
    let server = Running::start().await;
    let none = server.post("/replays", json!({ "letters": { "pipeline": "shop" } })).await;
    assert_eq!(none.refused(), (404, "not_found".to_owned()));
    letters(&server, 1).await;
    let all = server.post("/replays", json!({ "letters": {} })).await;
    assert_eq!(all.refused(), (400, "invalid".to_owned()));
    for (extra, field) in [
        (json!({ "force": true }), "why"),
        (json!({ "why": "x" }), "why"),
        (json!({ "rate": "fast" }), "rate"),
        (json!({ "refail_max": "200%" }), "refail_max"),
        (json!({ "ramp": [0] }), "ramp"),
        (json!({ "from": "memory" }), "from"),
    ] {
        let mut body = json!({ "letters": { "pipeline": "shop" } });
        body.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        let answer = server.post("/replays", body.clone()).await;
        assert_eq!((answer.status, &answer.json()["error"]["field"]), (400, &json!(field)), "{body}");
    }
    assert_eq!(server.get("/letters").await.ok()["items"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_processed_and_not_durable_yet_lets_the_replay_go_on() {
    let server = Running::start().await;
    letters(&server, 6).await;
    let started = server.post("/replays", json!({ "letters": { "pipeline": "shop" } })).await.ok();
    let (id, path) =
        (started["replay"]["id"].clone(), format!("/replays/{}", started["replay"]["id"].as_str().expect("an id")));
    let mut held = Vec::new();
    // One letter, then five: those are sent although the first is still leased.
    for many in [1, 5] {
        let asked = json!({ "pipelines": ["shop"], "op": id, "max": 10, "wait": 30 });
        let mut leases = Vec::new();
        while leases.len() < many {
            let leased = server.post("/leases", asked.clone()).await.ok();
            leases.extend(
                leased["leases"]
                    .as_array()
                    .expect("leases")
                    .iter()
                    .map(|lease| (lease["lease"].clone(), leased["worker"].clone())),
            );
        }
        for (lease, worker) in &leases {
            let job = json!({ "lease": lease, "verdict": "done", "commit": false });
            for _ in 0..2 {
                let settled = server.post("/leases/settle", json!({ "worker": worker, "jobs": [job] })).await.ok();
                assert_eq!(settled["jobs"][0]["result"], "ok", "{settled}");
            }
        }
        held.extend(leases);
    }
    let shown = server.get(&path).await.ok();
    assert_eq!((&shown["progress"]["recovered"], &shown["progress"]["processed"]), (&json!(0), &json!(6)), "{shown}");
    assert_eq!(server.get("/pipelines/shop").await.ok()["leased"], 6, "the leases stay");
    for (lease, worker) in held {
        let job = json!({ "lease": lease, "verdict": "done" });
        server.post("/leases/settle", json!({ "worker": worker, "jobs": [job] })).await.ok();
    }
    let done = server.until(&path, |replay| replay["state"] == "done").await;
    assert_eq!(done["progress"]["recovered"], 6, "{done}");
    let job = json!({ "lease": "x.y.1", "verdict": "failed", "failure": { "message": "no" }, "commit": false });
    let answer = server.post("/leases/settle", json!({ "worker": shown["id"], "jobs": [job] })).await;
    assert_eq!(answer.status, 400);
    server.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_of_a_replay_are_leased_by_what_they_belong_to() {
    let server = Running::start().await;
    let letter = |n: u32, group: &str| json!({ "pipeline": "shop", "input": { "n": n }, "message": "no", "origin": { "kind": "scrapy", "group": group } });
    server.post("/letters", json!([letter(1, "books"), letter(2, "toys"), letter(3, "toys")])).await.ok();
    let asked = json!({ "letters": { "pipeline": "shop" }, "ramp": [] });
    let started = server.post("/replays", asked).await.ok();
    let groups: Vec<_> =
        started["groups"].as_array().expect("groups").iter().map(|g| (g["group"].clone(), g["open"].clone())).collect();
    assert_eq!(groups, [(json!("books"), json!(1)), (json!("toys"), json!(2))], "{started}");
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let asked =
            json!({ "pipelines": ["shop"], "op": started["replay"]["id"], "group": "toys", "max": 10, "wait": 30 });
        let leased = server.post("/leases", asked).await.ok();
        seen.extend(leased["leases"].as_array().expect("leases").iter().map(|lease| lease["input"]["n"].clone()));
    }
    seen.sort_by_key(|n| n.as_i64());
    assert_eq!(seen, [json!(2), json!(3)]);
    let asked = json!({ "pipelines": ["shop"], "op": started["replay"]["id"], "group": "books", "wait": 30 });
    assert_eq!(server.post("/leases", asked).await.ok()["leases"][0]["input"]["n"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_say_how_fast_a_replay_goes_and_how_old_its_oldest_letter_is() {
    let server = Running::start().await;
    letters(&server, 3).await;
    let started = server.post("/replays", json!({ "letters": { "pipeline": "shop" } })).await.ok();
    let replay = started["replay"]["id"].as_str().expect("an id").to_owned();
    let (browser, path) = (Browser::new(&server), format!("/replays/{replay}"));
    assert!(server.get(&path).await.ok()["oldest"].is_string());
    assert!(browser.page(&path).await.contains("The oldest letter that is left died <time"));
    for list in ["/", "/replays"] {
        let page = browser.page(list).await;
        assert!(page.contains("oldest letter died <time") && !page.contains("/min"), "{list}: {page}");
    }
    work(&server, &replay, &json!({ "verdict": "done" })).await;
    server.until(&path, |replay| replay["state"] == "done").await;
    for page in [path.as_str(), "/replays"] {
        let page = browser.page(page).await;
        assert!(!page.contains("ldest letter") && page.contains("/min"), "{page}");
    }
}
