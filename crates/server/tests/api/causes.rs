//! Causes: what people say about them.

use serde_json::{Value, json};

use crate::running::Running;

async fn one_cause(server: &Running) -> String {
    server.report("shop", json!({ "n": 1 }), "KeyError: price").await;
    let causes = server.get("/causes").await.ok();
    causes["items"][0]["id"].as_str().expect("a cause").to_owned()
}

async fn change(server: &Running, id: &str, body: Value) -> Value {
    server.post(&format!("/causes/{id}/changes"), body).await.ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn people_have_their_say_about_a_cause() {
    let server = Running::start().await;
    let id = one_cause(&server).await;
    assert_eq!(change(&server, &id, json!({ "verb": "assign", "owner": "ada" })).await["owner"], "ada");
    assert_eq!(server.get("/causes?owner=ada").await.ok()["items"].as_array().map(Vec::len), Some(1));
    change(&server, &id, json!({ "verb": "note", "text": "the selector moved" })).await;
    assert_eq!(change(&server, &id, json!({ "verb": "mute", "until": "7d" })).await["state"], "muted");
    change(&server, &id, json!({ "verb": "unmute" })).await;
    let resolved = change(&server, &id, json!({ "verb": "resolve", "why": "fixed" })).await;
    assert_eq!(resolved["state"], "resolved");
    let notes = resolved["notes"].to_string();
    assert!(notes.contains("the selector moved") && notes.contains("local"), "{notes}");
    assert_eq!(server.get("/causes?state=resolved").await.ok()["items"][0]["id"], id);
    assert_ne!(change(&server, &id, json!({ "verb": "reopen" })).await["state"], "resolved");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_makes_no_sense_names_its_field() {
    let server = Running::start().await;
    let id = one_cause(&server).await;
    for (body, field) in [
        (json!({ "verb": "note" }), "text"),
        (json!({ "verb": "assign", "until": "7d" }), "until"),
        (json!({ "verb": "merge" }), "into"),
        (json!({ "verb": "split" }), "key"),
        (json!({ "verb": "mute", "until": "2001-01-01" }), "until"),
        (json!({ "verb": "forget" }), "verb"),
    ] {
        let answer = server.post(&format!("/causes/{id}/changes"), body.clone()).await;
        assert_eq!((answer.status, &answer.json()["error"]["field"]), (400, &json!(field)), "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_edit_at_once_the_second_is_told() {
    let server = Running::start().await;
    let id = one_cause(&server).await;
    let path = format!("/causes/{id}");
    let version = server.get(&path).await.ok()["version"].clone();
    let edit = async |owner: &str| {
        let body = json!({ "verb": "assign", "owner": owner, "version": version });
        server.post(&format!("{path}/changes"), body).await
    };
    // More letters are no edit: only what people say counts.
    server.report("shop", json!({ "n": 2 }), "KeyError: price").await;
    assert_eq!(edit("ada").await.status, 200);
    assert_eq!(edit("bob").await.refused(), (409, "changed_meanwhile".to_owned()));
    assert_eq!(server.get(&path).await.ok()["owner"], "ada");
}
