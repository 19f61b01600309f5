//! Jobs: enqueueing, looking, cancelling.

use serde_json::json;

use crate::running::Running;

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_accepted_once_by_its_key() {
    let server = Running::start().await;
    let jobs = json!([{ "input": { "url": "https://shop.example/1" }, "key": "one" }, { "input": { "key": "two" } }]);
    let answer = server.post("/jobs", json!({ "pipeline": "shop", "jobs": jobs })).await;
    assert_eq!(answer.status, 201);
    let first = answer.ok();
    assert_eq!([&first["jobs"][0]["result"], &first["jobs"][1]["result"]], ["accepted", "accepted"]);
    let again = server.post("/jobs", json!({ "pipeline": "shop", "jobs": [{ "input": {}, "key": "one" }] })).await.ok();
    assert_eq!((&again["jobs"][0]["result"], &again["jobs"][0]["state"]), (&json!("known"), &json!("queued")));
    assert_eq!(again["jobs"][0]["id"], first["jobs"][0]["id"]);
    let id = first["jobs"][0]["id"].as_str().expect("an id");
    let shown = server.get(&format!("/jobs/{id}")).await.ok();
    assert_eq!((&shown["target"], &shown["origin"]["kind"]), (&json!("shop.example"), &json!("api")), "{shown}");
    let number = shown["number"].as_i64().expect("a number");
    assert_eq!(server.get(&format!("/jobs/{number}")).await.ok()["id"], id);
    assert_eq!(server.get("/jobs?target=shop.example").await.ok()["items"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_says_when_to_come_again() {
    let config = "[pipeline.shop]\ncommand = [\"true\"]\nmax_queued = 1\n";
    let server = Running::with(config).await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    let answer = server.post("/jobs", json!({ "pipeline": "shop", "jobs": [{ "input": { "n": 2 } }] })).await;
    assert_eq!(answer.refused(), (429, "queue_full".to_owned()));
    assert!(answer.header("retry-after").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_too_many_letters_jobs_are_refused_and_letters_are_taken() {
    let config = "[pipeline.shop]\nhandler = \"remote\"\nletters_max = 1\n[alerts.sink.log]\nkind = \"log\"\n";
    let server = Running::with(config).await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    for n in [2, 3] {
        server.report("shop", json!({ "n": n }), "no").await;
    }
    let more = |input: serde_json::Value| json!({ "pipeline": "shop", "jobs": [{ "input": input }] });
    for input in [json!({ "n": 4 }), json!({ "n": 5, "token": "hunter2hunter2" })] {
        let refused = server.post("/jobs", more(input)).await;
        assert_eq!(refused.refused(), (429, "letters_full".to_owned()));
        let told = refused.json()["error"]["message"].to_string();
        assert!(told.contains("shop") && told.contains("2 dead letters"), "{told}");
        assert!(refused.header("retry-after").is_some());
    }
    let ledger = async || server.redrive.ledger(&"shop".parse().expect("a name")).await.expect("read");
    let before = ledger().await;
    assert_eq!((before.queued, before.dead, before.discarded), (1, 2, 0), "nothing is evicted");
    let letter = json!({ "url": "https://old.example/1", "error": "gone", "failed_at": "2026-01-15T08:20:00Z" });
    let fields = ["message=error", "time=failed_at"];
    let import = json!({ "pipeline": "shop", "fields": fields, "letters": [{ "line": 1, "value": letter }] });
    let imported = server.post("/letters/import", import).await.ok();
    let after = ledger().await;
    assert_eq!(
        (&imported["new"], after.dead, after.discarded),
        (&json!(1), 3, 0),
        "what is imported is taken: {imported}"
    );
    let fires = server.post("/alerts/check", json!({})).await.ok();
    let keys: Vec<_> = fires["alerts"].as_array().expect("alerts").iter().map(|alert| alert["key"].clone()).collect();
    assert!(keys.contains(&json!("letters/shop")), "{fires}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_cancelled_with_a_record() {
    let server = Running::start().await;
    let ids = server.enqueue("shop", [json!({ "n": 1 }), json!({ "n": 2 })]).await;
    let answer = server.post("/jobs/cancel", json!({ "ids": [ids[0]], "why": "not needed" })).await.ok();
    assert_eq!(answer, json!({ "cancelled": [ids[0]], "refused": [], "why_not": [] }));
    let shown = server.get(&format!("/jobs/{}", ids[0])).await.ok();
    assert_eq!((&shown["state"], &shown["discard"]["why"]), (&json!("discarded"), &json!("not needed")));
    let again = server.post("/jobs/cancel", json!({ "ids": [ids[0]], "why": "again" })).await.ok();
    assert_eq!(again["cancelled"], json!([]));
    let activity = server.get("/activity").await.ok();
    assert_eq!((&activity["items"][0]["verb"], &activity["items"][0]["by"]["via"]), (&json!("cancel"), &json!("api")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_with_a_secret_in_its_input_waits_until_somebody_supplies_it() {
    let server = Running::with("[pipeline.shop]\nhandler = \"remote\"\nkey = [\"session\"]\n").await;
    let inputs = json!([
        { "input": { "url": "https://shop.example/1?token=in-the-address" } },
        { "input": { "n": 2, "token": "hunter2hunter2", "headers": { "Cookie": "hunter2" }, "key": "k", "session": "s-1" } },
    ]);
    let asked = json!({ "pipeline": "shop", "jobs": inputs });
    let told = server.post("/jobs", asked.clone()).await.ok();
    assert_eq!([&told["jobs"][0]["result"], &told["jobs"][1]["result"]], ["accepted", "withheld"], "{told}");
    let lost = json!(["token", "/headers/Cookie"]);
    assert_eq!((&told["jobs"][1]["lost"], &told["jobs"][1]["state"]), (&lost, &json!("dead")));
    let again = server.post("/jobs", asked).await.ok();
    assert_eq!((&again["jobs"][1]["result"], &again["jobs"][1]["id"]), (&json!("known"), &told["jobs"][1]["id"]));
    let id = told["jobs"][1]["id"].as_str().expect("an id");
    let shown = server.get(&format!("/letters/{id}")).await;
    assert!(!String::from_utf8_lossy(&shown.body).contains("hunter2"), "{shown:?}");
    let shown = shown.ok();
    assert_eq!((&shown["input"]["key"], &shown["input"]["session"]), (&json!("k"), &json!("s-1")), "{shown}");
    assert_eq!((&shown["gate"], &shown["origin"]["lost_input"]), (&json!("never"), &lost));
    let verdict = shown["verdict"].as_str().expect("a verdict");
    assert!(verdict.contains("token, /headers/Cookie") && verdict.contains("--set"), "{verdict}");
    server.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_masked_is_lifted_by_supplying_it_and_by_nothing_else() {
    let server = Running::start().await;
    let id = server.report("shop", json!({ "n": 1, "token": "hunter2hunter2" }), "no").await;
    let start = async |set: serde_json::Value| {
        let body = json!({ "letters": { "ids": [id] }, "set": set });
        server.post("/replays", body).await.ok()
    };
    for set in [json!({}), json!({ "n": 2 })] {
        let refused = start(set).await;
        assert_eq!((&refused["replay"], &refused["plan"]["excluded"]), (&json!(null), &json!({ "gate_never": 1 })));
    }
    let started = start(json!({ "token": "another" })).await;
    assert_eq!(started["replay"]["progress"]["total"], 1, "{started}");
    let leased = json!({ "pipelines": ["shop"], "wait": 20 });
    let leased = server.post("/leases", leased).await.ok();
    let lease = &leased["leases"][0];
    assert_eq!(lease["input"], json!({ "n": 1, "token": "another" }), "{leased}");
    assert_eq!((&lease["from_network"], &lease["edited"]), (&json!(true), &json!(true)));
    server.audit().await;
}
