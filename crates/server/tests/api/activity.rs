//! What people and tokens did is written down: who, by which way, what, to what, how many, why. What programs do all the time is not.

use redrive_core::tokens::Role;
use serde_json::{Value, json};

use crate::running::Running;

async fn entries(server: &Running, token: &str) -> Vec<Value> {
    let listed = server.ask_as(Some(token), "GET /activity?limit=1000", &[], None).await.ok();
    listed["items"].as_array().expect("items").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_token_did_is_written_down_and_what_programs_do_all_the_time_is_not() {
    let server = Running::start().await;
    let token = server.token("ops", Role::Admin, &[]).await;
    let server = server.restart().await;
    let before = entries(&server, &token).await.len();
    let ask = async |request: &str, body: Value| server.ask_as(Some(&token), request, &[], Some(body)).await.ok();
    let letter = |n: u32| json!({ "pipeline": "shop", "input": { "n": n }, "message": "no price" });
    ask("POST /letters", json!([letter(1), letter(2), letter(3)])).await;
    ask("POST /outcomes", json!({ "client": "c", "seq": 1, "counts": [{ "pipeline": "shop", "done": 5 }] })).await;
    let jobs =
        ask("POST /jobs", json!({ "pipeline": "mill", "jobs": [{ "input": { "n": 1 } }, { "input": {} }] })).await;
    let leased = ask("POST /leases", json!({ "pipelines": ["mill"], "max": 1 })).await;
    let done = json!({ "lease": leased["leases"][0]["lease"], "verdict": "done" });
    ask("POST /leases/settle", json!({ "worker": leased["worker"], "jobs": [done] })).await;
    let entries_now = entries(&server, &token).await;
    assert_eq!(entries_now.len(), before, "{entries_now:?}");
    let letters = server.ask_as(Some(&token), "GET /letters", &[], None).await.ok();
    let (id, other) = (letters["items"][0]["id"].clone(), letters["items"][1]["id"].clone());
    let cause = letters["items"][0]["cause"].as_str().expect("a cause").to_owned();
    let left = jobs["jobs"].as_array().expect("jobs").iter().find(|job| {
        leased["leases"][0]["lease"]
            .as_str()
            .is_some_and(|lease| !lease.starts_with(job["id"].as_str().expect("an id")))
    });
    let started = ask("POST /replays", json!({ "letters": { "ids": [id] } })).await;
    let replay = started["replay"]["id"].as_str().expect("an id").to_owned();
    let change = format!("POST /causes/{cause}/changes");
    let of_replay = |verb: &str| format!("POST /replays/{replay}/{verb}");
    let deeds = [
        (change.clone(), json!({ "verb": "assign", "owner": "ada" }), "assign", "cause"),
        (change.clone(), json!({ "verb": "note", "text": "seen" }), "note", "cause"),
        (change.clone(), json!({ "verb": "mute", "until": "7d" }), "mute", "cause"),
        (change.clone(), json!({ "verb": "unmute" }), "unmute", "cause"),
        (change.clone(), json!({ "verb": "resolve", "why": "fixed" }), "resolve", "cause"),
        (change, json!({ "verb": "reopen" }), "reopen", "cause"),
        (of_replay("pause"), json!({}), "pause", "replay"),
        (of_replay("resume"), json!({}), "resume", "replay"),
        (of_replay("cancel"), json!({}), "cancel", "replay"),
        ("POST /pipelines/shop/pause".to_owned(), json!({ "why": "moving" }), "pause", "pipeline"),
        ("POST /pipelines/shop/resume".to_owned(), json!({}), "resume", "pipeline"),
        ("POST /breakers/hold".to_owned(), json!({ "target": "t.example", "pipeline": "shop" }), "hold", "breaker"),
        ("POST /breakers/close".to_owned(), json!({ "target": "t.example", "pipeline": "shop" }), "close", "breaker"),
        ("POST /letters/discard".to_owned(), json!({ "letters": { "ids": [other] }, "why": "gone" }), "discard", ""),
        ("POST /jobs/cancel".to_owned(), json!({ "ids": [left.expect("a job")["id"]], "why": "wrong" }), "cancel", ""),
        ("POST /rounds".to_owned(), json!({ "pipeline": "shop" }), "begin", "round"),
        ("POST /tokens".to_owned(), json!({ "name": "eve", "role": "viewer" }), "create", "token"),
        ("DELETE /tokens/eve".to_owned(), json!({}), "revoke", "token"),
    ];
    let mut known = entries(&server, &token).await.len();
    assert_eq!(known, before + 1, "the replay was begun");
    for (request, body, verb, object) in deeds {
        ask(&request, body).await;
        let all = entries(&server, &token).await;
        assert_eq!(all.len(), known + 1, "{request}: {:?}", all.first());
        known = all.len();
        let entry = &all[0];
        assert_eq!((&entry["by"]["name"], &entry["by"]["via"]), (&json!("ops"), &json!("api")), "{request}: {entry}");
        assert_eq!(entry["verb"], verb, "{request}: {entry}");
        assert!(entry["object"].as_str().is_some_and(|text| text.starts_with(object)), "{request}: {entry}");
    }
    let secret = entries(&server, &token).await.iter().any(|entry| entry.to_string().contains(&token));
    assert!(!secret, "a token is named, never told");
}
