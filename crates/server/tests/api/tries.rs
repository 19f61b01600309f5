//! Tries: letters are handed out with their saved payloads, verdicts come back, and nothing is settled.

use redrive_core::tokens::Role;
use serde_json::{Value, json};

use crate::running::Running;

/// Reports letters with saved payloads, of two groups in turn.
async fn letters(server: &Running, many: u32) {
    let letter = |n: u32| {
        let group = if n.is_multiple_of(2) { "books" } else { "toys" };
        json!({
            "pipeline": "shop", "input": { "n": n }, "message": "KeyError: price", "origin": { "kind": "scrapy", "group": group },
            "payload": { "text": format!("<html>{n}</html>"), "status": 200 },
        })
    };
    let letters: Vec<_> = (0..many).map(letter).collect();
    server.post("/letters", json!(letters)).await.ok();
}

async fn begin(server: &Running) -> Value {
    let started = server.post("/tries", json!({ "letters": { "pipeline": "shop" } })).await;
    assert_eq!(started.status, 201);
    started.ok()
}

async fn lease(server: &Running, of: &Value, more: Value) -> Value {
    let mut asked = json!({ "pipelines": ["shop"], "op": of["id"], "max": 100 });
    asked.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    server.post("/leases", asked).await.ok()
}

async fn settle(server: &Running, leased: &Value, jobs: Vec<Value>) -> Value {
    server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": jobs })).await.ok()
}

/// What a try must leave as it is.
async fn all_but_tries(server: &Running) -> Value {
    let mut all = Vec::new();
    for path in ["/pipelines/shop", "/letters?pipeline=shop", "/causes", "/breakers", "/jobs"] {
        all.push(server.get(path).await.ok());
    }
    // Who leases shows up nowhere else.
    json!(all)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_try_hands_out_saved_payloads_and_changes_nothing() {
    let server = Running::start().await;
    letters(&server, 4).await;
    let before = all_but_tries(&server).await;
    let started = begin(&server).await;
    assert_eq!((&started["letters"], &started["from"], &started["left_out"]), (&json!(4), &json!("saved"), &json!({})));
    let groups: Vec<_> = started["groups"].as_array().expect("groups").iter().map(|g| g["group"].clone()).collect();
    assert_eq!(groups, ["books", "toys"], "{started}");
    let leased = lease(&server, &started, json!({})).await;
    let leases = leased["leases"].as_array().expect("leases").clone();
    assert_eq!((leases.len(), &leased["open"], &leased["paused"]), (4, &json!(4), &json!(false)));
    for lease in &leases {
        assert_eq!((&lease["kind"], &lease["from"], &lease["op"]), (&json!("try"), &json!("saved"), &started["id"]));
        assert_eq!(lease["origin"]["kind"], "scrapy", "{lease}");
        assert_eq!(lease["failure"]["message"], "KeyError: price", "{lease}");
        let bytes = server.get(&format!("/payloads/{}/bytes", lease["id"].as_str().expect("an id"))).await;
        assert_eq!(bytes.body, format!("<html>{}</html>", lease["input"]["n"]).into_bytes());
    }
    let of = |n: usize| leases[n]["lease"].clone();
    let handed: Vec<_> = (0..7).map(|n| json!({ "input": { "page": n } })).collect();
    let jobs = vec![
        json!({ "lease": of(0), "verdict": "done", "items": 3, "sample": { "price": 5 }, "follow": 40, "enqueue": handed }),
        json!({ "lease": of(1), "verdict": "failed", "failure": { "message": "no price", "reason": "schema_validation" } }),
        json!({ "lease": of(2), "verdict": "unknown", "failure": { "message": "it asks the network" } }),
        json!({ "lease": of(3), "verdict": "returned" }),
    ];
    let settled = settle(&server, &leased, jobs.clone()).await;
    let results: Vec<_> = settled["jobs"].as_array().expect("jobs").iter().map(|job| job["result"].clone()).collect();
    assert_eq!(results, ["ok", "ok", "ok", "ok"], "{settled}");
    assert_eq!(settle(&server, &leased, vec![jobs[0].clone()]).await["jobs"][0]["result"], "ok", "its answer was lost");
    let again = lease(&server, &started, json!({})).await;
    assert_eq!((again["leases"].as_array().map(Vec::len), &again["open"]), (Some(1), &json!(1)), "{again}");
    let last = json!({ "lease": again["leases"][0]["lease"], "verdict": "done" });
    settle(&server, &again, vec![last]).await;
    let over = lease(&server, &started, json!({ "wait": 20 })).await;
    assert_eq!((&over["leases"], &over["open"]), (&json!([]), &json!(0)), "all is done: nobody waits");
    let path = format!("/tries/{}", started["id"].as_str().expect("an id"));
    let shown = server.get(&path).await.ok();
    let outcome = &shown["outcome"];
    assert_eq!(
        [&outcome["tried"], &outcome["recovered"], &outcome["unknown"], &outcome["follow"]],
        [4, 2, 1, 40],
        "{shown}"
    );
    let left = &outcome["remaining"][0];
    assert_eq!((&left["letters"], &left["reason"]), (&json!(1), &json!("schema_validation")), "{outcome}");
    let verdicts = server.get(&format!("{path}/letters")).await.ok();
    let first = verdicts["items"].as_array().expect("items").iter().find(|item| item["details"]["follow"] == 40);
    assert_eq!(first.expect("the first")["details"]["enqueue"].as_array().map(Vec::len), Some(5), "{verdicts}");
    assert_eq!(all_but_tries(&server).await, before, "a try settles nothing");
    let status = server.get("/status").await.ok();
    assert_eq!(status["workers"].as_array().map(|all| all.iter().filter(|w| w["remote"] == true).count()), Some(0));
    server.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_of_a_try_are_leased_by_group_and_go_to_others_when_leases_run_out() {
    let server = Running::start().await;
    letters(&server, 4).await;
    let started = begin(&server).await;
    let toys = lease(&server, &started, json!({ "group": "toys", "ttl": 5 })).await;
    assert_eq!((toys["leases"].as_array().map(Vec::len), &toys["open"]), (Some(2), &json!(2)), "{toys}");
    let none = lease(&server, &started, json!({ "group": "toys" })).await;
    assert_eq!((&none["leases"], &none["open"]), (&json!([]), &json!(2)), "somebody has them: wait");
    let held: Vec<_> = toys["leases"].as_array().expect("leases").iter().map(|lease| lease["lease"].clone()).collect();
    let keep = json!({ "worker": toys["worker"], "leases": [held[0]], "ttl": 600 });
    let server = server.restart().await;
    assert_eq!(server.post("/leases/renew", keep.clone()).await.ok()["leases"][0]["result"], "ok");
    let waited = lease(&server, &started, json!({ "group": "toys", "wait": 30 })).await;
    assert_eq!(waited["leases"].as_array().map(Vec::len), Some(1), "the other ran out: {waited}");
    let late = vec![json!({ "lease": held[1], "verdict": "done" }), json!({ "lease": held[0], "verdict": "done" })];
    let settled = settle(&server, &toys, late).await;
    assert_eq!((&settled["jobs"][0]["result"], &settled["jobs"][1]["result"]), (&json!("lost"), &json!("ok")));
    assert_eq!(server.post("/leases/renew", keep).await.ok()["leases"][0]["result"], "lost", "it has its verdict");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_takes_what_a_try_recovered() {
    let server = Running::start().await;
    letters(&server, 2).await;
    let started = begin(&server).await;
    let leased = lease(&server, &started, json!({})).await;
    let verdicts = ["done", "failed"].iter().zip(leased["leases"].as_array().expect("leases"));
    let jobs = verdicts.map(|(verdict, lease)| match *verdict {
        "done" => json!({ "lease": lease["lease"], "verdict": "done" }),
        _ => json!({ "lease": lease["lease"], "verdict": "failed", "failure": { "message": "no" } }),
    });
    settle(&server, &leased, jobs.collect()).await;
    let asked = json!({ "letters": { "pipeline": "shop" }, "recoverable": true });
    let plan = server.post("/replays/plan", asked).await.ok();
    assert_eq!((&plan["included"], &plan["excluded"]["not_recovered"]), (&json!(1), &json!(1)), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_try_that_is_cancelled_is_over_for_who_works_on_it() {
    let server = Running::start().await;
    letters(&server, 3).await;
    let started = begin(&server).await;
    let leased = lease(&server, &started, json!({ "max": 2 })).await;
    let held: Vec<_> = leased["leases"].as_array().expect("leases").iter().map(|one| one["lease"].clone()).collect();
    settle(&server, &leased, vec![json!({ "lease": held[0], "verdict": "done" })]).await;
    let cancel = format!("/tries/{}/cancel", started["id"].as_str().expect("an id"));
    for _ in 0..2 {
        let ended = server.post(&cancel, json!({})).await.ok();
        assert!(ended["finished_at"].is_string(), "{ended}");
        assert_eq!((&ended["outcome"]["tried"], &ended["outcome"]["recovered"]), (&json!(1), &json!(1)), "{ended}");
    }
    let keep = json!({ "worker": leased["worker"], "leases": [held[1]] });
    assert_eq!(server.post("/leases/renew", keep).await.ok()["leases"][0]["result"], "lost");
    let late = settle(&server, &leased, vec![json!({ "lease": held[1], "verdict": "done" })]).await;
    assert_eq!(late["jobs"][0]["result"], "lost", "{late}");
    let none = lease(&server, &started, json!({ "wait": 30 })).await;
    assert_eq!((&none["leases"], &none["open"]), (&json!([]), &json!(0)), "finished: nobody waits for more");
    assert_eq!(server.get("/letters").await.ok()["items"].as_array().map(Vec::len), Some(3), "no letter changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_try_that_makes_no_sense_is_refused() {
    let server = Running::start().await;
    let none = server.post("/tries", json!({ "letters": { "pipeline": "shop" } })).await;
    assert_eq!(none.refused(), (404, "not_found".to_owned()));
    server.report("shop", json!({ "n": 1 }), "no payload").await;
    let without = server.post("/tries", json!({ "letters": { "pipeline": "shop" } })).await;
    assert_eq!(without.status, 200);
    let without = without.ok();
    assert_eq!((&without["letters"], &without["left_out"]), (&json!(0), &json!({ "payload_gone": 1 })), "{without}");
    let unknown = "01890a5d-ac96-774b-bcce-b302099a8057";
    let answer = server.post("/leases", json!({ "pipelines": ["shop"], "op": unknown })).await;
    assert_eq!((answer.status, &answer.json()["error"]["field"]), (404, &json!("op")));
    assert_eq!(server.get(&format!("/tries/{unknown}")).await.refused(), (404, "not_found".to_owned()));
    server.enqueue("shop", [json!({ "n": 2 })]).await;
    let leased = server.post("/leases", json!({ "pipelines": ["shop"] })).await.ok();
    let job = json!({ "lease": leased["leases"][0]["lease"], "verdict": "unknown" });
    let answer = server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": [job] })).await;
    assert_eq!((answer.status, &answer.json()["error"]["field"]), (400, &json!("jobs[0].verdict")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_tries_what_its_token_covers() {
    let server = Running::start().await;
    letters(&server, 1).await;
    server.token("ops", Role::Admin, &[]).await;
    let worker = server.token("crawler", Role::Worker, &["shop"]).await;
    let foreign = server.token("other", Role::Worker, &["bank"]).await;
    let server = server.restart().await;
    let asked = json!({ "letters": { "pipeline": "shop" } });
    let refused = server.ask_as(Some(&foreign), "POST /tries", &[], Some(asked.clone())).await;
    assert_eq!(refused.refused(), (403, "foreign_pipeline".to_owned()));
    let started = server.ask_as(Some(&worker), "POST /tries", &[], Some(asked)).await.ok();
    let asked = json!({ "pipelines": ["bank"], "op": started["id"] });
    let refused = server.ask_as(Some(&foreign), "POST /leases", &[], Some(asked)).await;
    assert_eq!(refused.refused(), (404, "not_found".to_owned()), "a foreign try is as unknown as none");
    let asked = json!({ "pipelines": ["shop"], "op": started["id"] });
    let leased = server.ask_as(Some(&worker), "POST /leases", &[], Some(asked)).await.ok();
    let job = json!({ "lease": leased["leases"][0]["lease"], "verdict": "done" });
    let settle = json!({ "worker": leased["worker"], "jobs": [job] });
    let refused = server.ask_as(Some(&foreign), "POST /leases/settle", &[], Some(settle.clone())).await;
    assert_eq!(refused.refused(), (403, "foreign_pipeline".to_owned()));
    server.ask_as(Some(&worker), "POST /leases/settle", &[], Some(settle)).await.ok();
}
