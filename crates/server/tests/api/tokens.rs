//! Tokens: made, listed and revoked over the network.

use redrive::answers::KeyedRequest;
use redrive_core::tokens::Role;
use serde_json::json;

use crate::running::Running;

#[tokio::test(flavor = "multi_thread")]
async fn the_first_token_closes_the_door() {
    let server = Running::start().await;
    let viewer = server.post("/tokens", json!({ "name": "eve", "role": "viewer" })).await;
    assert_eq!(viewer.refused(), (409, "token_refused".to_owned()), "the first must be an admin");
    let made = server.post("/tokens", json!({ "name": "ops", "role": "admin" })).await;
    assert_eq!(made.status, 201);
    let secret = made.ok()["secret"].as_str().expect("a secret").to_owned();
    assert_eq!(server.get("/jobs").await.refused(), (401, "unauthenticated".to_owned()));
    assert_eq!(server.ask_as(Some("rdr_wrong"), "GET /jobs", &[], None).await.status, 401);
    let tokens = server.ask_as(Some(&secret), "GET /tokens", &[], None).await;
    assert_eq!(tokens.ok()["items"][0]["name"], "ops");
    assert!(!String::from_utf8_lossy(&tokens.body).contains(&secret), "it is told once");
    let activity = server.ask_as(Some(&secret), "GET /activity", &[], None).await.ok();
    assert_eq!(activity["items"][0]["object"], "token ops", "{activity}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_is_no_good_and_the_door_stays_closed() {
    let server = Running::start().await;
    let admin = server.token("ops", Role::Admin, &[]).await;
    let viewer = server.token("eve", Role::Viewer, &[]).await;
    let server = server.restart().await;
    assert_eq!(server.ask_as(Some(&viewer), "GET /jobs", &[], None).await.status, 200);
    let revoked = server.ask_as(Some(&admin), "DELETE /tokens/eve", &[], None).await;
    assert_eq!(revoked.ok(), json!({ "revoked": "eve" }));
    let refused = server.ask_as(Some(&viewer), "GET /jobs", &[], None).await;
    assert_eq!(refused.refused(), (401, "unauthenticated".to_owned()));
    let unknown = server.ask_as(Some(&admin), "DELETE /tokens/eve", &[], None).await;
    assert_eq!(unknown.refused(), (404, "not_found".to_owned()));
    server.ask_as(Some(&admin), "DELETE /tokens/ops", &[], None).await.ok();
    for token in [None, Some(admin.as_str())] {
        assert_eq!(server.ask_as(token, "GET /jobs", &[], None).await.status, 401, "it never opens again");
    }
    let by = redrive_core::actors::Actor::new("ada", redrive_core::actors::Via::Cli);
    let reset = server.redrive.reset_tokens(&by).await.expect("reset");
    let server = server.restart().await;
    assert_eq!(server.ask_as(Some(&reset.secret), "GET /tokens", &[], None).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_with_a_secret_is_kept_nowhere() {
    let server = Running::start().await;
    let body = json!({ "name": "ops", "role": "admin" });
    let made = server.ask_as(None, "POST /tokens", &["idempotency-key: t"], Some(body)).await.ok();
    let secret = made["secret"].as_str().expect("a secret");
    let kept = server.redrive.begin_request("local", "t", "another").await.expect("answered");
    assert!(matches!(kept, KeyedRequest::Open(_)), "{secret} may be kept");
}
