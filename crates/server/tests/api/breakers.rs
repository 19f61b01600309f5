//! Breakers: holding targets and letting them go on.

use serde_json::json;

use crate::running::Running;

#[tokio::test(flavor = "multi_thread")]
async fn a_target_is_held_and_let_go() {
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "url": "https://shop.example/1" })]).await;
    let hold = json!({ "target": "shop.example", "pipeline": "shop", "until": "2h", "why": "they asked" });
    let held = server.post("/breakers/hold", hold).await.ok();
    assert_eq!((&held["pipelines"], &held["is_queued"]), (&json!(["shop"]), &json!(true)), "{held}");
    let listed = server.get("/breakers").await.ok();
    assert_eq!((&listed["items"][0]["target"], &listed["items"][0]["state"]), (&json!("shop.example"), &json!("open")));
    let asked = json!({ "pipelines": ["shop"] });
    assert_eq!(server.post("/leases", asked.clone()).await.ok()["leases"], json!([]), "its jobs wait");
    // A field that is null is not there: clients of before send all of them.
    let close = json!({ "target": "shop.example", "until": null, "why": null });
    let closed = json!({ "target": "shop.example", "pipelines": ["shop"], "paused": [], "waiting": 1 });
    assert_eq!(server.post("/breakers/close", close.clone()).await.ok(), closed);
    assert_eq!(server.post("/leases", asked).await.ok()["leases"].as_array().map(Vec::len), Some(1));
    assert_eq!(server.post("/breakers/close", close).await.refused(), (409, "breaker_closed".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_makes_no_sense_names_its_field() {
    let server = Running::start().await;
    let cases = [
        ("close", json!({ "target": "t", "why": "x" }), "why"),
        ("probe", json!({ "target": "t", "until": "2h" }), "until"),
        ("hold", json!({ "target": "" }), "target"),
        ("hold", json!({}), "target"),
        ("hold", json!({ "target": "t", "until": "2001-01-01" }), "until"),
        ("hold", json!({ "target": "t", "until": 7 }), "until"),
        ("hold", json!({ "target": "t", "why": "" }), "why"),
        ("close", json!({ "target": "t", "pipeline": "a b" }), "pipeline"),
    ];
    for (verb, body, field) in cases {
        let answer = server.post(&format!("/breakers/{verb}"), body.clone()).await;
        assert_eq!(
            (answer.refused(), &answer.json()["error"]["field"]),
            ((400, "invalid".to_owned()), &json!(field)),
            "{body}"
        );
    }
    for (query, field) in
        [("limit=0", "limit"), ("limit=x", "limit"), ("colour=red", "colour"), ("pipeline=a%20b", "pipeline")]
    {
        let error = server.get(&format!("/breakers?{query}")).await;
        assert_eq!((error.status, &error.json()["error"]["field"]), (400, &json!(field)), "{query}");
    }
    let unknown = server.post("/breakers/hold", json!({ "target": "t", "pipeline": "nobody" })).await;
    assert_eq!(unknown.refused(), (404, "not_found".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_editor_of_a_hold_gets_a_conflict() {
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "url": "https://shop.example/1" })]).await;
    let hold = async |why: &str, version: Option<&serde_json::Value>| {
        let body = json!({ "target": "shop.example", "pipeline": "shop", "why": why, "version": version });
        server.post("/breakers/hold", body).await
    };
    hold("they asked", None).await.ok();
    let seen = server.get("/breakers").await.ok()["items"][0]["version"].clone();
    hold("once more", Some(&seen)).await.ok();
    assert_eq!(hold("mine", Some(&seen)).await.refused(), (409, "changed_meanwhile".to_owned()));
    let close = json!({ "target": "shop.example", "pipeline": "shop", "version": seen });
    assert_eq!(server.post("/breakers/close", close).await.refused(), (409, "changed_meanwhile".to_owned()));
    let held = server.get("/breakers").await.ok()["items"][0].clone();
    assert_eq!(held["held_by"]["why"], "once more", "nothing was overwritten");
    let close = json!({ "target": "shop.example", "pipeline": "shop", "version": held["version"] });
    server.post("/breakers/close", close).await.ok();
    let all = json!({ "target": "shop.example", "version": "abc" });
    assert_eq!(server.post("/breakers/hold", all).await.json()["error"]["field"], "pipeline");
}

/// A terminal that is pasted into obeys control characters between quotes, too.
#[tokio::test(flavor = "multi_thread")]
async fn commands_to_copy_have_no_character_of_a_target_that_a_terminal_obeys() {
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    for (target, quoted) in [("\u{3}touch\nowned", r"$'\x03touch\x0aowned'"), ("--all", "--pipeline shop -- --all")] {
        server.post("/breakers/hold", json!({ "target": target, "pipeline": "shop", "why": "w" })).await.ok();
        let query = form_urlencoded::Serializer::new(String::new()).append_pair("target", target).finish();
        let browser = crate::browsing::Browser::new(&server);
        for path in [format!("/breakers/turn?verb=close&pipeline=shop&{query}"), "/".to_owned()] {
            let page = browser.page(&path).await;
            let commands: Vec<_> = page.split("redrive breaker ").skip(1).map(|rest| rest.split('<').next()).collect();
            assert!(commands.iter().flatten().any(|command| command.contains(quoted)), "{path}: {commands:?}");
            assert!(
                !commands.iter().flatten().any(|command| command.contains(char::is_control)),
                "{path}: {commands:?}"
            );
        }
    }
}
