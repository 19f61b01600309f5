//! Pipelines: pausing, resuming and forgetting them.

use redrive_core::tokens::Role;
use redrive_server::Options;
use serde_json::{Value, json};

use crate::browsing::Browser;
use crate::running::Running;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_paused_pipeline_is_leased() {
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    assert_eq!(server.get("/pipelines/shop").await.ok()["workers"], 0, "the server itself works on nothing");
    let paused = server.post("/pipelines/shop/pause", json!({ "why": "the shop moves" })).await.ok();
    assert_eq!((&paused["why"], &paused["by"]["name"]), (&json!("the shop moves"), &json!("local")), "{paused}");
    let leased = server.post("/leases", json!({ "pipelines": ["shop"] })).await.ok();
    assert_eq!((&leased["leases"], &leased["paused"], &leased["open"]), (&json!([]), &json!(true), &json!(1)));
    server.post("/pipelines/shop/resume", json!({})).await.ok();
    let leased = server.post("/leases", json!({ "pipelines": ["shop"] })).await.ok();
    assert_eq!(leased["leases"].as_array().map(Vec::len), Some(1));
    let again = server.post("/pipelines/shop/resume", json!({})).await;
    assert_eq!(again.refused(), (409, "pipeline_state".to_owned()));
    assert_eq!(server.post("/pipelines/nobody/pause", json!({})).await.refused(), (404, "not_found".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_changed_is_taken_up() {
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    assert_eq!(server.get("/pipelines/shop").await.ok()["configured"], false);
    server.configure("[pipeline.shop]\nhandler = \"remote\"\nmax_queued = 1\n");
    server.until("/pipelines/shop", |shop| shop["configured"] == true).await;
    let more = json!({ "pipeline": "shop", "jobs": [{ "input": { "n": 2 } }] });
    assert_eq!(server.post("/jobs", more).await.refused(), (429, "queue_full".to_owned()));
    server.configure("[pipeline.shop]\nhandler = \"remote\"\n[pipeline.cart]\nhandler = \"remote\"\n");
    server.until("/pipelines", |all| all["items"].as_array().is_some_and(|items| items.len() == 2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_editor_of_a_pause_gets_a_conflict() {
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    let version = async || server.get("/pipelines/shop").await.ok()["version"].clone();
    let (running, pause) = (version().await, "/pipelines/shop/pause");
    server.post(pause, json!({ "why": "the shop moves", "version": running })).await.ok();
    let second = server.post(pause, json!({ "why": "mine", "version": running })).await;
    assert_eq!(second.refused(), (409, "changed_meanwhile".to_owned()));
    assert_eq!(server.get("/pipelines/shop").await.ok()["paused"]["why"], "the shop moves", "nothing was overwritten");
    let resume = async |version| server.post("/pipelines/shop/resume", json!({ "version": version })).await;
    assert_eq!(resume(running).await.refused(), (409, "changed_meanwhile".to_owned()));
    resume(version().await).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_whose_name_is_made_of_dots_is_reached_with_a_tilde() {
    let server = Running::start().await;
    for name in [".", "..", "..."] {
        server.enqueue(name, [json!({ "n": 1 })]).await;
        assert_eq!(server.get(&format!("/pipelines/~{name}")).await.ok()["name"], name);
        server.post(&format!("/pipelines/~{name}/pause"), json!({})).await.ok();
    }
    assert_eq!(server.get("/pipelines/~shop").await.refused(), (400, "invalid".to_owned()));
    assert_eq!(server.get("/pipelines/~").await.refused(), (400, "invalid".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reported_pipeline_has_what_was_reported_and_no_settings_of_ours() {
    let server = Running::start().await;
    let counts = json!([{ "pipeline": "spider", "done": 65_789 }]);
    server.post("/outcomes", json!({ "client": "crawler-1", "seq": 1, "counts": counts })).await.ok();
    server.report("spider", json!({ "url": "https://shop.example/1" }), "gone").await;
    let browser = Browser::new(&server);
    let page = browser.page("/pipelines/spider").await;
    assert_eq!(server.get("/pipelines/spider").await.ok()["done_elsewhere"], 65_789);
    assert_eq!(server.get("/status").await.ok()["done_elsewhere"], json!({ "spider": 65_789 }));
    assert!(page.contains("<dt>Done elsewhere</dt><dd>65,789 <small>reported</small></dd>"), "{page}");
    assert!(page.contains("Not known: the configuration of this server does not have this pipeline"), "{page}");
    assert!(page.contains("No attempt in 24 h is known to have gone through a proxy."), "{page}");
    assert!(!page.contains("retry.attempts"), "what nobody said is not invented: {page}");
    assert_eq!(server.get("/pipelines/spider/definition").await.ok()["items"], json!([]));
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    let leased = server.post("/leases", json!({ "pipelines": ["shop"] })).await.ok();
    let done = json!({ "lease": leased["leases"][0]["lease"], "verdict": "done", "result": {} });
    server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": [done] })).await.ok();
    let own = browser.page("/pipelines/shop").await;
    assert!(own.contains("<dt>+ done</dt><dd>1 ") && !own.contains("Done elsewhere"), "{own}");
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_pipeline_is_forgotten_and_leaves_room_for_another() {
    let options = Options { pipelines_max: 1, ..Options::listening(([127, 0, 0, 1], 0).into()) };
    let server = Running::with_options(options).await;
    let admin = server.token("ada", Role::Admin, &[]).await;
    let [viewer, operator, foreign] = [
        server.token("eve", Role::Viewer, &[]).await,
        server.token("bob", Role::Operator, &["shop"]).await,
        server.token("ann", Role::Operator, &["bank"]).await,
    ];
    let ask =
        async |token: &str, request: &str, body: Value| server.ask_as(Some(token), request, &[], Some(body)).await;
    let forget = async |token: &str| ask(token, "POST /pipelines/shop/forget", json!({})).await;
    let letter = |pipeline: &str, n: u32| json!({ "pipeline": pipeline, "input": { "n": n }, "message": "no" });
    assert_eq!(forget(&operator).await.refused(), (404, "not_found".to_owned()));
    ask(&admin, "POST /letters", letter("shop", 1)).await.ok();
    assert_eq!(forget(&viewer).await.refused(), (403, "role_required".to_owned()));
    assert_eq!(forget(&foreign).await.refused(), (403, "foreign_pipeline".to_owned()));
    let refused = forget(&operator).await;
    assert_eq!(refused.refused(), (409, "pipeline_state".to_owned()));
    assert!(
        refused.json()["error"]["message"].as_str().is_some_and(|why| why.contains("it has 1 dead")),
        "{refused:?}"
    );
    let discard = json!({ "letters": { "pipeline": "shop" }, "why": "a typo" });
    ask(&admin, "POST /letters/discard", discard).await.ok();
    assert_eq!(ask(&admin, "POST /letters", letter("bank", 1)).await.refused().1, "too_many_pipelines");
    assert_eq!(forget(&operator).await.ok()["discarded"], 1);
    let listed = server.ask_as(Some(&admin), "GET /pipelines", &[], None).await.ok();
    assert_eq!(listed["items"], json!([]));
    assert_eq!(forget(&operator).await.refused(), (404, "not_found".to_owned()), "it is forgotten");
    ask(&admin, "POST /letters", letter("bank", 1)).await.ok();
    assert_eq!(ask(&admin, "POST /letters", letter("shop", 2)).await.refused().1, "too_many_pipelines");
    server.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_of_an_empty_pipeline_forgets_it() {
    let server = Running::start().await;
    let browser = Browser::new(&server);
    let id = server.report("typo", json!({ "n": 1 }), "no").await;
    assert!(!browser.page("/pipelines/typo").await.contains("/pipelines/typo/forget"), "a letter is dead");
    server.post("/letters/discard", json!({ "letters": { "ids": [id] }, "why": "a typo" })).await.ok();
    let page = browser.page("/pipelines/typo").await;
    let told = browser.submit(&page, "/pipelines/typo/forget", &[]).await.leads_to().to_owned();
    let list = browser.page(&told).await;
    assert!(list.contains(" is forgotten until") && !list.contains("id=\"pipeline-typo\""), "{list}");
    assert_eq!(browser.get("/pipelines/typo").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn pipeline_that_is_defined_or_worked_on_is_not_forgotten() {
    let server = Running::with("[pipeline.shop]\nhandler = \"remote\"\n").await;
    let forget = async |name: &str| {
        let told = server.post(&format!("/pipelines/{name}/forget"), json!({})).await;
        told.json()["error"]["message"].as_str().map(str::to_owned)
    };
    assert!(forget("shop").await.is_some_and(|why| why.contains("defined in redrive.toml")));
    server.enqueue("loose", [json!({ "n": 1 })]).await;
    let leased = server.post("/leases", json!({ "pipelines": ["loose"] })).await.ok();
    let job = json!({ "lease": leased["leases"][0]["lease"], "verdict": "done" });
    server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": [job] })).await.ok();
    assert!(forget("loose").await.is_some_and(|why| why.contains("is worked on")));
}
