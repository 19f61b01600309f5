//! Suspects: jobs that may have taken a worker elsewhere down run alone there, and only a crash of their own convicts them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::running::Running;

const CONFIG: &str = "[pipeline.shop]\nhandler = \"remote\"\n[pipeline.shop.retry]\nbase = \"1ms\"\n";

async fn lease(server: &Running, body: Value) -> Value {
    server.post("/leases", body).await.ok()
}

fn leases(leased: &Value) -> Vec<Value> {
    leased["leases"].as_array().expect("leases").iter().map(|one| one["lease"].clone()).collect()
}

fn inputs(leased: &Value) -> Vec<Value> {
    leased["leases"].as_array().expect("leases").iter().map(|one| one["input"]["n"].clone()).collect()
}

async fn settle(server: &Running, leased: &Value, jobs: Value) {
    let settled = server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": jobs })).await.ok();
    assert!(settled["jobs"].as_array().expect("jobs").iter().all(|job| job["result"] == "ok"), "{settled}");
}

/// A server with jobs, of which the first crashed once.
async fn with_suspect(jobs: u32) -> Running {
    let server = Running::with(CONFIG).await;
    server.enqueue("shop", (0..jobs).map(|n| json!({ "n": n }))).await;
    let leased = lease(&server, json!({ "pipelines": ["shop"] })).await;
    let crashed = json!({ "lease": leases(&leased)[0], "verdict": "crashed", "failure": { "message": "SIGSEGV" } });
    settle(&server, &leased, json!([crashed])).await;
    server
}

/// Leases until the suspect comes, settling what else does.
async fn until_alone(server: &Running, worker: &Value) -> Value {
    let begun = Instant::now();
    loop {
        let leased = lease(server, json!({ "pipelines": ["shop"], "worker": worker, "max": 10, "wait": 5 })).await;
        if leased["leases"].as_array().expect("leases").iter().any(|one| one["alone"] == true) {
            return leased;
        }
        let done: Vec<_> =
            leases(&leased).into_iter().map(|held| json!({ "lease": held, "verdict": "done" })).collect();
        settle(server, &leased, json!(done)).await;
        assert!(begun.elapsed() < Duration::from_secs(60), "it never came");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspect_comes_alone_and_nothing_comes_beside_it() {
    let server = with_suspect(3).await;
    let worker = lease(&server, json!({ "pipelines": ["none"] })).await["worker"].clone();
    let alone = until_alone(&server, &worker).await;
    assert_eq!((inputs(&alone), &alone["leases"][0]["crashes"]), (vec![json!(0)], &json!(1)), "{alone}");
    server.enqueue("shop", [json!({ "n": 9 })]).await;
    let ask = json!({ "pipelines": ["shop"], "worker": worker, "max": 10 });
    assert_eq!(inputs(&lease(&server, ask.clone()).await), Vec::<Value>::new(), "it is alone");
    let other = lease(&server, json!({ "pipelines": ["shop"], "max": 10 })).await;
    assert!(inputs(&other).contains(&json!(9)), "others go on: {other}");
    settle(&server, &alone, json!([{ "lease": leases(&alone)[0], "verdict": "done" }])).await;
    server.enqueue("shop", [json!({ "n": 10 })]).await;
    assert_eq!(inputs(&lease(&server, ask).await), [json!(10)], "it may have others again");
    server.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspect_waits_for_who_has_others_unless_each_has_a_process_of_its_own() {
    let server = Running::with(CONFIG).await;
    server.enqueue("shop", [json!({ "n": 0 })]).await;
    let busy = lease(&server, json!({ "pipelines": ["shop"] })).await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    let crashing = lease(&server, json!({ "pipelines": ["shop"] })).await;
    let crashed = json!({ "lease": leases(&crashing)[0], "verdict": "crashed", "failure": { "message": "SIGSEGV" } });
    settle(&server, &crashing, json!([crashed])).await;
    let due = |shop: &Value| shop["queued"] == 1;
    server.until("/pipelines/shop", due).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let ask = json!({ "pipelines": ["shop"], "worker": busy["worker"], "max": 10 });
    assert_eq!(inputs(&lease(&server, ask.clone()).await), Vec::<Value>::new(), "it has another");
    let mut own = ask;
    (own["own_process"], own["wait"]) = (json!(true), json!(20));
    let beside = lease(&server, own).await;
    assert_eq!((inputs(&beside), &beside["leases"][0]["alone"]), (vec![json!(1)], &json!(true)), "{beside}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_died_leaves_suspects_and_a_second_death_convicts_the_one_that_ran_alone() {
    let server = Running::with(CONFIG).await;
    server.enqueue("shop", (0..3).map(|n| json!({ "n": n }))).await;
    let first = lease(&server, json!({ "pipelines": ["shop"], "max": 3, "ttl": 600 })).await;
    let start = json!({ "worker": first["worker"], "leases": leases(&first)[..2] });
    server.post("/leases/start", start).await.ok();
    for _ in 0..2 {
        server.post("/leases/died", json!({ "worker": first["worker"] })).await.ok();
    }
    let shop = server.get("/pipelines/shop").await.ok();
    assert_eq!((&shop["queued"], &shop["leased"], &shop["dead"]), (&json!(3), &json!(0), &json!(0)), "{shop}");
    // The first suspect takes its process down again and again; the other one, and what never began, are done.
    let (mut convicted, mut acquitted) = (0, Vec::new());
    let begun = Instant::now();
    while server.get("/pipelines/shop").await.ok()["queued"] != 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never came to an end");
        let leased = lease(&server, json!({ "pipelines": ["shop"], "max": 3, "wait": 5, "ttl": 600 })).await;
        let many = leases(&leased);
        if inputs(&leased) == [json!(0)] && leased["leases"][0]["alone"] == true {
            assert_eq!(leased["leases"][0]["crashes"], convicted, "{leased}");
            server.post("/leases/start", json!({ "worker": leased["worker"], "leases": many })).await.ok();
            server.post("/leases/died", json!({ "worker": leased["worker"] })).await.ok();
            convicted += 1;
            continue;
        }
        assert!(!inputs(&leased).contains(&json!(0)), "the suspect is alone: {leased}");
        acquitted.extend(inputs(&leased));
        let done: Vec<_> = many.into_iter().map(|held| json!({ "lease": held, "verdict": "done" })).collect();
        settle(&server, &leased, json!(done)).await;
    }
    acquitted.sort_by_key(|n| n.as_u64());
    assert_eq!((convicted, acquitted), (3, vec![json!(1), json!(2)]));
    let dead = server.get("/letters").await.ok();
    let letter = &dead["items"][0];
    assert_eq!((&letter["reason"], &letter["crashes"]), (&json!("poison_pill"), &json!(3)), "{dead}");
    server.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_may_work_on_what_a_worker_runs_says_that_it_died() {
    use redrive_core::tokens::Role;
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    server.enqueue("bank", [json!({ "n": 1 })]).await;
    let ask = json!({ "pipelines": ["shop", "bank"], "max": 2 });
    let both = lease(&server, ask).await;
    server.token("ops", Role::Admin, &[]).await;
    let token = server.token("crawler", Role::Worker, &["shop"]).await;
    let server = server.restart().await;
    let died = Some(json!({ "worker": both["worker"] }));
    let refused = server.ask_as(Some(&token), "POST /leases/died", &[], died).await;
    assert_eq!(refused.refused(), (403, "foreign_pipeline".to_owned()));
    let bank = server.redrive.ledger(&"bank".parse().expect("a name")).await.expect("read");
    assert_eq!(bank.leased, 1);
}
