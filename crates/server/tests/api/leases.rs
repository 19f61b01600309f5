//! Remote workers: leasing, keeping leases up, settling.

use std::sync::Arc;
use std::time::Instant;

use redrive_core::tokens::Role;
use serde_json::{Value, json};

use crate::browsing::Browser;
use crate::running::Running;

async fn lease(server: &Running, body: Value) -> Value {
    server.post("/leases", body).await.ok()
}

async fn settle(server: &Running, leased: &Value, jobs: Value) -> Value {
    server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": jobs })).await.ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_leased_settled_and_counted() {
    let server = Running::start().await;
    server.enqueue("shop", (0..3).map(|n| json!({ "n": n, "url": "https://shop.example/" }))).await;
    let leased = lease(&server, json!({ "pipelines": ["shop"], "max": 3 })).await;
    let leases = leased["leases"].as_array().expect("leases").clone();
    assert_eq!((leases.len(), &leased["open"]), (3, &json!(3)));
    assert_eq!(
        (&leases[0]["kind"], &leases[0]["attempt"], &leases[0]["input"]["n"]),
        (&json!("job"), &json!(1), &json!(0))
    );
    let of = |n: usize| leases[n]["lease"].clone();
    let start = json!({ "worker": leased["worker"], "leases": [of(0), of(1)] });
    server.post("/leases/start", start).await.ok();
    let jobs = json!([
        { "lease": of(0), "verdict": "done", "result": { "price": 5 }, "duration_ms": 12 },
        { "lease": of(1), "verdict": "failed", "failure": { "message": "no price", "reason": "schema_validation" } },
        { "lease": of(2), "verdict": "returned" },
    ]);
    let settled = settle(&server, &leased, jobs.clone()).await;
    let results: Vec<_> = settled["jobs"].as_array().expect("jobs").iter().map(|job| job["result"].clone()).collect();
    assert_eq!(results, ["ok", "ok", "ok"], "{settled}");
    let shop = server.get("/pipelines/shop").await.ok();
    assert_eq!([&shop["done"], &shop["dead"], &shop["queued"], &shop["workers"]], [1, 1, 1, 1], "{shop}");
    let again = settle(&server, &leased, json!([jobs[0]])).await;
    assert_eq!(again["jobs"][0]["result"], "ok", "its answer may have been lost");
    let lie = json!([{ "lease": of(1), "verdict": "done" }]);
    assert_eq!(settle(&server, &leased, lie).await["jobs"][0]["result"], "lost", "a job ends once");
}

#[tokio::test(flavor = "multi_thread")]
async fn results_settled_over_the_api_are_in_the_file_of_the_pipeline_and_in_the_store() {
    let server = Running::with(
        "[pipeline.shop]\nhandler = \"remote\"\nout = \"r.jsonl\"\n[pipeline.books]\nhandler = \"remote\"\n",
    )
    .await;
    for name in ["shop", "books"] {
        server.enqueue(name, (0..3).map(|n| json!({ "n": n }))).await;
        let leased = lease(&server, json!({ "pipelines": [name], "max": 3 })).await;
        let jobs = leased["leases"].as_array().expect("leases").iter();
        let done = |job: &Value| json!({ "lease": job["lease"], "verdict": "done", "result": job["input"]["n"], "log": "<one> page" });
        let jobs: Vec<_> = jobs.map(done).collect();
        for _ in 0..2 {
            assert_eq!(settle(&server, &leased, json!(jobs)).await["jobs"][2]["result"], "ok");
        }
    }
    let file = std::fs::read_to_string(server.folder().join("r.jsonl")).expect("it is beside redrive.toml");
    let written: Vec<Value> = file.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(written.iter().map(|line| line["result"].clone()).collect::<Vec<_>>(), [0, 1, 2]);
    let kept = server.get("/results?pipeline=books").await.ok();
    let results = kept["items"].as_array().expect("items").iter().map(|item| item["result"].clone());
    assert_eq!(results.collect::<Vec<_>>(), [0, 1, 2], "{kept}");
    assert_eq!(server.get("/results?pipeline=shop").await.ok()["items"], json!([]), "they are in the file");
    let id = kept["items"][1]["id"].as_str().expect("an id");
    assert_eq!(server.get(&format!("/jobs/{id}")).await.ok()["result"], 1);
    let page = Browser::new(&server).page(&format!("/letters/{id}")).await;
    assert!(page.contains("Result</h2>") && page.contains("<bdi>1</bdi></pre>"), "{page}");
    assert!(page.contains("&lt;one&gt; page"), "what was printed before it: {page}");
    assert_eq!(server.get("/results").await.status, 400, "of which pipeline?");
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_cannot_be_written_hold_up_only_their_own_pipeline() {
    let server = Running::with(
        "[pipeline.shop]\nhandler = \"remote\"\nout = \"gone/r.jsonl\"\n[pipeline.books]\nhandler = \"remote\"\n",
    )
    .await;
    for name in ["shop", "books"] {
        server.enqueue(name, [json!({ "n": 1 })]).await;
    }
    let leased = lease(&server, json!({ "pipelines": ["shop", "books"], "max": 2 })).await;
    let jobs = leased["leases"].as_array().expect("leases").iter();
    let done = |job: &Value| json!({ "lease": job["lease"], "verdict": "done", "result": job["pipeline"] });
    let jobs: Vec<_> = jobs.map(done).collect();
    let settled = settle(&server, &leased, json!(jobs)).await;
    for (job, settled) in jobs.iter().zip(settled["jobs"].as_array().expect("jobs")) {
        let expected = if job["result"] == "shop" { "unkept" } else { "ok" };
        assert_eq!(settled["result"], expected, "{settled}");
    }
    std::fs::create_dir(server.folder().join("gone")).expect("made");
    let again = settle(&server, &leased, json!(jobs)).await;
    assert!(again["jobs"].as_array().expect("jobs").iter().all(|job| job["result"] == "ok"), "{again}");
    let file = std::fs::read_to_string(server.folder().join("gone/r.jsonl")).expect("written");
    assert_eq!(file.lines().count(), 1);
}

/// A client that leaves while its settlement is under way, and brings it again.
#[tokio::test(flavor = "multi_thread")]
async fn results_of_a_client_that_hangs_up_and_comes_back_are_written_once() {
    let server = Running::with("[pipeline.shop]\nhandler = \"remote\"\nout = \"r.jsonl\"\n").await;
    const JOBS: usize = 60;
    server.enqueue("shop", (0..JOBS).map(|n| json!({ "n": n }))).await;
    for n in 0..JOBS {
        let leased = lease(&server, json!({ "pipelines": ["shop"], "max": 1 })).await;
        let jobs = json!([{ "lease": leased["leases"][0]["lease"], "verdict": "done", "result": n }]);
        let asked = settle(&server, &leased, jobs.clone());
        let patience = std::time::Duration::from_micros(200 * (n as u64 % 20));
        if tokio::time::timeout(patience, asked).await.is_err() {
            assert_eq!(settle(&server, &leased, jobs).await["jobs"][0]["result"], "ok");
        }
    }
    let file = std::fs::read_to_string(server.folder().join("r.jsonl")).expect("written");
    assert_eq!(file.lines().count(), JOBS);
}

/// A client that sends its settlement to another server of the store while the first one has written the results. Each server has a
/// file of its own, as on two machines.
#[tokio::test(flavor = "multi_thread")]
async fn results_that_arrive_at_two_servers_are_written_by_one() {
    let config = |out: &str| format!("[pipeline.shop]\nhandler = \"remote\"\nout = \"{out}\"\n");
    let first = Arc::new(Running::with(&config("first.jsonl")).await);
    let second = Arc::new(first.beside_with(&config("second.jsonl")).await);
    first.enqueue("shop", (0..3).map(|n| json!({ "n": n }))).await;
    let leased = lease(&first, json!({ "pipelines": ["shop"], "max": 3 })).await;
    let done = |n: usize| json!({ "lease": leased["leases"][n]["lease"], "verdict": "done", "result": n });
    let settled = |server: &Arc<Running>, jobs: Value| {
        let (server, leased) = (Arc::clone(server), leased.clone());
        tokio::spawn(async move { settle(&server, &leased, jobs).await })
    };
    let written = first.hold("settle");
    let one = settled(&first, json!([done(0), done(1)]));
    written.arrived().await;
    let claimed = second.hold("claim_results");
    // It is brought together with another one.
    let mut other = settled(&second, json!([done(1), done(2)]));
    tokio::select! {
        () = claimed.arrived() => {}
        answer = &mut other => panic!("it is written twice: {answer:?}"),
    }
    let claimed_again = second.hold("claim_results");
    claimed.release();
    tokio::select! {
        () = claimed_again.arrived() => {}
        answer = &mut other => panic!("it is written twice: {answer:?}"),
    }
    written.release();
    claimed_again.release();
    for answer in [one.await.expect("answered"), other.await.expect("answered")] {
        assert!(answer["jobs"].as_array().expect("jobs").iter().all(|job| job["result"] == "ok"), "{answer}");
    }
    let results = |file: &str| {
        let text = std::fs::read_to_string(first.folder().join(file)).expect("written");
        text.lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["result"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!((results("first.jsonl"), results("second.jsonl")), (vec![json!(0), json!(1)], vec![json!(2)]));
    first.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_done_hands_on_with_its_settlement() {
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "page": 1 })]).await;
    let leased = lease(&server, json!({ "pipelines": ["shop"] })).await;
    let job =
        json!({ "lease": leased["leases"][0]["lease"], "verdict": "done", "enqueue": [{ "input": { "page": 2 } }] });
    for _ in 0..2 {
        assert_eq!(settle(&server, &leased, json!([job])).await["jobs"][0]["result"], "ok");
    }
    let queued = server.get("/jobs?state=queued").await.ok();
    assert_eq!(queued["items"].as_array().map(Vec::len), Some(1), "{queued}");
    assert_eq!(queued["items"][0]["input"], json!({ "page": 2 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_server_loses_no_lease() {
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    let leased = lease(&server, json!({ "pipelines": ["shop"], "ttl": 600 })).await;
    let server = server.restart().await;
    let lease_of = leased["leases"][0]["lease"].clone();
    let keep = json!({ "worker": leased["worker"], "leases": [lease_of], "ttl": 600 });
    assert_eq!(server.post("/leases/renew", keep.clone()).await.ok()["leases"][0]["result"], "ok");
    let progress = json!({ "worker": leased["worker"], "lease": lease_of, "progress": { "page": 3 } });
    assert_eq!(server.post("/leases/progress", progress).await.ok()["result"], "ok");
    let done = json!([{ "lease": lease_of, "verdict": "done" }]);
    assert_eq!(settle(&server, &leased, done).await["jobs"][0]["result"], "ok");
    assert_eq!(server.post("/leases/renew", keep).await.ok()["leases"][0]["result"], "lost");
    let shop = server.get("/pipelines/shop").await.ok();
    assert_eq!((&shop["done"], &shop["leased"]), (&json!(1), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_gets_a_job_when_it_comes() {
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "n": 0 })]).await;
    lease(&server, json!({ "pipelines": ["shop"] })).await;
    let begun = Instant::now();
    let waiting = lease(&server, json!({ "pipelines": ["shop"], "wait": 30 }));
    let coming = server.enqueue("shop", [json!({ "n": 1 })]);
    let (leased, _) = tokio::join!(waiting, coming);
    assert_eq!(leased["leases"][0]["input"]["n"], 1, "{leased} after {:?}", begun.elapsed());
    let none = lease(&server, json!({ "pipelines": ["shop"], "wait": 1 })).await;
    assert_eq!(none["leases"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_makes_no_sense_names_its_field() {
    let server = Running::start().await;
    for (path, body, field) in [
        ("/leases", json!({ "pipelines": [] }), "pipelines"),
        ("/leases", json!({ "pipelines": ["shop"], "max": 0 }), "max"),
        ("/leases", json!({ "pipelines": ["shop"], "wait": 31 }), "wait"),
        ("/leases", json!({ "pipelines": ["shop"], "ttl": 1 }), "ttl"),
        ("/leases", json!({ "pipelines": ["shop"], "worker": "me" }), "worker"),
    ] {
        let answer = server.post(path, body.clone()).await;
        assert_eq!((answer.status, &answer.json()["error"]["field"]), (400, &json!(field)), "{body}");
    }
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    let leased = lease(&server, json!({ "pipelines": ["shop"] })).await;
    let held = &leased["leases"][0]["lease"];
    for (job, field) in [
        (json!({ "lease": "nonsense", "verdict": "done" }), "jobs[0].lease"),
        (json!({ "lease": held, "verdict": "won" }), "jobs[0].verdict"),
        (json!({ "lease": held, "verdict": "failed" }), "jobs[0].failure"),
        (json!({ "lease": held, "verdict": "returned", "result": 1 }), "jobs[0].result"),
        (
            json!({ "lease": held, "verdict": "failed", "failure": { "message": "x" }, "payload": {} }),
            "jobs[0].payload",
        ),
    ] {
        let answer = server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": [job] })).await;
        assert_eq!((answer.status, &answer.json()["error"]["field"]), (400, &json!(field)), "{job}");
    }
    let twice = json!([{ "lease": held, "verdict": "done" }, { "lease": held, "verdict": "returned" }]);
    let answer = server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": twice })).await;
    assert_eq!((answer.status, &answer.json()["error"]["field"]), (400, &json!("jobs[1].lease")));
    let shop = server.get("/pipelines/shop").await.ok();
    assert_eq!(shop["leased"], 1, "nothing was settled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_falls_silent_loses_its_job_and_another_gets_it() {
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    let first = lease(&server, json!({ "pipelines": ["shop"], "ttl": 5 })).await;
    server.until("/pipelines/shop", |shop| shop["queued"] == 1).await;
    let second = lease(&server, json!({ "pipelines": ["shop"], "wait": 30 })).await;
    assert_eq!(second["leases"][0]["crashes"], 0, "nobody is to blame: {second}");
    let late = json!([{ "lease": first["leases"][0]["lease"], "verdict": "done" }]);
    assert_eq!(settle(&server, &first, late).await["jobs"][0]["result"], "lost");
    let done = json!([{ "lease": second["leases"][0]["lease"], "verdict": "done" }]);
    assert_eq!(settle(&server, &second, done).await["jobs"][0]["result"], "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_that_was_uploaded_before_is_named_by_its_hash() {
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    let leased = lease(&server, json!({ "pipelines": ["shop"] })).await;
    let (bytes, sha256) = (b"hello", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
    let failed = json!([{
        "lease": leased["leases"][0]["lease"], "verdict": "failed", "failure": { "message": "no", "reason": "schema_validation" },
        "payload": { "sha256": sha256, "status": 200 },
    }]);
    let early = settle(&server, &leased, failed.clone()).await;
    assert_eq!(early["jobs"][0]["result"], "unkept", "the lease holds: {early}");
    let head = format!("PUT /api/v1/payloads/{sha256} HTTP/1.1\r\nhost: {}", server.address);
    assert_eq!(server.send(&head, bytes).await.status, 201);
    assert_eq!(settle(&server, &leased, failed).await["jobs"][0]["result"], "ok");
    let letter = server.get("/letters").await.ok()["items"][0]["id"].clone();
    let kept = server.get(&format!("/payloads/{}/bytes", letter.as_str().expect("an id"))).await;
    assert_eq!(kept.body, bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_takes_its_process_down_is_quarantined() {
    let server = Running::with("[pipeline.shop]\nhandler = \"remote\"\n[pipeline.shop.retry]\nbase = \"1ms\"\n").await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    for crashes in 0..3 {
        let leased = lease(&server, json!({ "pipelines": ["shop"], "wait": 30 })).await;
        assert_eq!(leased["leases"][0]["crashes"], crashes, "{leased}");
        let crashed = json!([{ "lease": leased["leases"][0]["lease"], "verdict": "crashed", "failure": { "message": "SIGSEGV" } }]);
        assert_eq!(settle(&server, &leased, crashed).await["jobs"][0]["result"], "ok");
    }
    let dead = server.get("/letters").await.ok();
    assert_eq!(
        (&dead["items"][0]["reason"], &dead["items"][0]["gate"]),
        (&json!("poison_pill"), &json!("review")),
        "{dead}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_hands_on_within_its_pipelines() {
    let config = "[pipeline.shop]\nhandler = \"remote\"\nhand_on = [\"books\", \"bank\"]\n[pipeline.books]\nhandler = \"remote\"\n[pipeline.bank]\nhandler = \"remote\"\n";
    let server = Running::with(config).await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    server.token("ops", redrive_core::tokens::Role::Admin, &[]).await;
    let token = server.token("crawler", redrive_core::tokens::Role::Worker, &["shop", "books"]).await;
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let leased = server.ask_as(Some(&token), "POST /leases", &[], Some(json!({ "pipelines": ["shop"] }))).await.ok();
    let done = |to: &str| {
        let handed = json!([{ "pipeline": to, "input": { "n": 2 } }]);
        let job = json!({ "lease": leased["leases"][0]["lease"], "verdict": "done", "enqueue": handed });
        Some(json!({ "worker": leased["worker"], "jobs": [job] }))
    };
    let refused = server.ask_as(Some(&token), "POST /leases/settle", &[], done("bank")).await;
    assert_eq!(refused.refused(), (403, "foreign_pipeline".to_owned()));
    let settled = server.ask_as(Some(&token), "POST /leases/settle", &[], done("books")).await.ok();
    assert_eq!(settled["jobs"][0]["result"], "ok", "{settled}");
    let ledger = server.redrive.ledger(&"books".parse().expect("a name")).await.expect("read");
    assert_eq!(ledger.queued, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_handed_on_over_the_network_goes_without_secrets() {
    let config = "[pipeline.shop]\nhandler = \"remote\"\nhand_on = [\"books\"]\n[pipeline.books]\nhandler = \"remote\"\nkey = [\"session\"]\n";
    let server = Running::with(config).await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    let leased = lease(&server, json!({ "pipelines": ["shop"] })).await;
    let handed = json!([
        { "pipeline": "books", "input": { "page": 2, "session": "s-1" } },
        { "pipeline": "books", "input": { "page": 3, "token": "hunter2hunter2", "headers": { "Cookie": "hunter2" } } },
    ]);
    let done = json!([{ "lease": leased["leases"][0]["lease"], "verdict": "done", "enqueue": handed }]);
    for _ in 0..2 {
        assert_eq!(settle(&server, &leased, done.clone()).await["jobs"][0]["result"], "ok");
    }
    let books = server.get("/pipelines/books").await.ok();
    assert_eq!((&books["queued"], &books["dead"]), (&json!(1), &json!(1)), "{books}");
    let dead = server.get("/letters?pipeline=books").await;
    assert!(!String::from_utf8_lossy(&dead.body).contains("hunter2"), "{dead:?}");
    let letter = &dead.ok()["items"][0];
    let lost = json!(["token", "/headers/Cookie"]);
    assert_eq!((&letter["gate"], &letter["origin"]["lost_input"]), (&json!("never"), &lost), "{letter}");
    assert_eq!((&letter["origin"]["kind"], &letter["input"]["page"]), (&json!("hand_on"), &json!(3)), "{letter}");
    let replay = json!({ "letters": { "pipeline": "books" }, "set": { "token": "t", "headers": { "Cookie": "c" } } });
    assert_eq!(server.post("/replays", replay).await.ok()["replay"]["progress"]["total"], 1);
    server.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_takes_longer_than_it_may_is_not_renewed_and_fails() {
    let server =
        Running::with("[pipeline.shop]\nhandler = \"remote\"\ntimeout = \"1s\"\n[pipeline.shop.retry]\nattempts = 1\n")
            .await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    server.enqueue("books", [json!({ "n": 1 })]).await;
    let shop = lease(&server, json!({ "pipelines": ["shop"], "ttl": 600 })).await;
    assert!(shop["leases"][0]["deadline"].is_string(), "{shop}");
    let books = lease(&server, json!({ "pipelines": ["books"], "ttl": 600 })).await;
    let keep = |of: &Value| json!({ "worker": of["worker"], "leases": [of["leases"][0]["lease"]], "ttl": 600 });
    let begun = Instant::now();
    loop {
        let kept = server.post("/leases/renew", keep(&shop)).await.ok();
        if kept["leases"][0]["result"] == "lost" {
            break;
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{kept}");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let dead = server.get("/letters").await.ok();
    assert_eq!(
        (&dead["items"][0]["reason"], &dead["items"][0]["code"]),
        (&json!("timeout"), &json!("deadline")),
        "{dead}"
    );
    let late = json!([{ "lease": shop["leases"][0]["lease"], "verdict": "done" }]);
    assert_eq!(settle(&server, &shop, late).await["jobs"][0]["result"], "lost");
    let kept = server.post("/leases/renew", keep(&books)).await.ok();
    assert_eq!(kept["leases"][0]["result"], "ok", "nobody said how long that may take");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_carries_its_trace_from_enqueue_to_settlement() {
    let server = Running::start().await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let jobs = json!([{ "input": { "n": 1 }, "traceparent": trace, "group": "toys" }, { "input": { "n": 2 } }]);
    server.post("/jobs", json!({ "pipeline": "shop", "jobs": jobs })).await.ok();
    let none = lease(&server, json!({ "pipelines": ["shop"], "group": "books" })).await;
    assert_eq!(none["leases"], json!([]));
    let leased = lease(&server, json!({ "pipelines": ["shop"], "group": "toys", "max": 9 })).await;
    assert_eq!(
        (leased["leases"].as_array().map(Vec::len), &leased["leases"][0]["traceparent"]),
        (Some(1), &json!(trace)),
        "{leased}"
    );
    let failed = json!([{ "lease": leased["leases"][0]["lease"], "verdict": "failed", "failure": { "message": "no", "reason": "not_found" } }]);
    settle(&server, &leased, failed).await;
    let dead = server.get("/letters").await.ok();
    let letter = server.get(&format!("/letters/{}", dead["items"][0]["id"].as_str().expect("an id"))).await.ok();
    assert_eq!(letter["origin"]["traceparent"], trace, "{letter}");
    let plain = lease(&server, json!({ "pipelines": ["shop"] })).await;
    assert!(plain["leases"][0].get("traceparent").is_none(), "{plain}");
    let wrong = json!({ "pipeline": "shop", "jobs": [{ "input": {}, "traceparent": "yesterday" }] });
    let answer = server.post("/jobs", wrong).await;
    assert_eq!((answer.status, &answer.json()["error"]["field"]), (400, &json!("jobs[0].traceparent")));
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_replay_or_try_is_as_unknown_to_a_lease_as_none() {
    let server = Running::with("[pipeline.bank]\nhandler = \"remote\"\n").await;
    let letter = json!({ "pipeline": "bank", "input": { "n": 1 }, "message": "no", "payload": { "text": "<p>" } });
    let saved = server.post("/letters", letter).await.ok()["letters"][0]["id"].clone();
    let other = server.report("bank", json!({ "n": 2 }), "no").await;
    let replay = server.post("/replays", json!({ "letters": { "ids": [other] } })).await.ok()["replay"]["id"].clone();
    let tried = server.post("/tries", json!({ "letters": { "ids": [saved] } })).await.ok()["id"].clone();
    server.token("ada", Role::Admin, &[]).await;
    let limited = server.token("eve", Role::Worker, &["shop"]).await;
    let own = server.token("bot", Role::Worker, &["bank"]).await;
    let ask = async |token: &str, pipeline: &str, op: &Value| {
        let body = json!({ "pipelines": [pipeline], "op": op });
        server.ask_as(Some(token), "POST /leases", &[], Some(body)).await
    };
    let none = json!("019a3b44-61a4-7000-8000-000000000009");
    let unknown = ask(&limited, "shop", &none).await;
    assert_eq!(unknown.refused(), (404, "not_found".to_owned()));
    for op in [&replay, &tried] {
        assert!(op.is_string(), "{op}");
        let told = ask(&limited, "shop", op).await;
        let same =
            String::from_utf8_lossy(&unknown.body).replace(none.as_str().expect("text"), op.as_str().expect("text"));
        assert_eq!((told.status, String::from_utf8_lossy(&told.body).into_owned()), (404, same));
        assert_eq!(ask(&own, "bank", op).await.status, 200);
    }
}
