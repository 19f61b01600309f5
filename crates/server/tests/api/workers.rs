//! Workers that live elsewhere, once they have nothing more to do.

use redrive_core::tokens::Role;
use serde_json::{Value, json};

use crate::running::Running;

async fn workers(server: &Running) -> usize {
    server.redrive.store().list_workers().await.expect("read").into_iter().filter(|worker| worker.remote).count()
}

async fn leased(server: &Running) -> Value {
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    let leased = server.post("/leases", json!({ "pipelines": ["shop"], "ttl": 600 })).await.ok();
    assert_eq!(leased["leases"].as_array().map(Vec::len), Some(1), "{leased}");
    leased
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_leaves_is_off_the_list_and_may_say_so_twice() {
    let server = Running::start().await;
    let leased = leased(&server).await;
    let done = json!({ "lease": leased["leases"][0]["lease"], "verdict": "done" });
    server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": [done] })).await.ok();
    assert_eq!(workers(&server).await, 1);
    let leave = format!("DELETE /workers/{}", leased["worker"].as_str().expect("an id"));
    for _ in 0..2 {
        assert_eq!(server.ask_as(None, &leave, &[], None).await.ok()["left"], leased["worker"]);
    }
    assert_eq!(workers(&server).await, 0);
    assert_eq!(server.ask_as(None, "DELETE /workers/me", &[], None).await.refused(), (400, "invalid".to_owned()));
    // One that was mistaken comes back by asking for jobs.
    server.enqueue("shop", [json!({ "n": 2 })]).await;
    let again = server.post("/leases", json!({ "worker": leased["worker"], "pipelines": ["shop"] })).await.ok();
    assert_eq!(again["leases"].as_array().map(Vec::len), Some(1), "{again}");
    server.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_has_leases_settles_them_before_it_leaves() {
    let server = Running::start().await;
    let leased = leased(&server).await;
    let leave = format!("DELETE /workers/{}", leased["worker"].as_str().expect("an id"));
    assert_eq!(server.ask_as(None, &leave, &[], None).await.refused(), (409, "leases_held".to_owned()));
    let done = json!({ "lease": leased["leases"][0]["lease"], "verdict": "returned" });
    let told = server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": [done] })).await.ok();
    assert_eq!(told["jobs"][0]["result"], "ok", "its lease was not lost: {told}");
    server.ask_as(None, &leave, &[], None).await.ok();
    assert_eq!(workers(&server).await, 0);
    server.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_may_work_on_what_a_worker_runs_says_that_it_left() {
    let server = Running::start().await;
    let leased = leased(&server).await;
    server.token("ops", Role::Admin, &[]).await;
    let stranger = server.token("crawler", Role::Worker, &["bank"]).await;
    let server = server.restart().await;
    let leave = format!("DELETE /workers/{}", leased["worker"].as_str().expect("an id"));
    let refused = server.ask_as(Some(&stranger), &leave, &[], None).await;
    assert_eq!(refused.refused(), (403, "foreign_pipeline".to_owned()));
    assert_eq!(workers(&server).await, 1);
}
