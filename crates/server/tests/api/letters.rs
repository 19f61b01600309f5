//! Letters: failures from elsewhere, looking at them, giving them up.

use redrive_core::tokens::Role;
use serde_json::{Value, json};

use crate::running::Running;

async fn report(server: &Running, letters: Value) -> Vec<Value> {
    let answer = server.post("/letters", letters).await.ok();
    answer["letters"].as_array().expect("letters").clone()
}

fn results(told: &[Value]) -> Vec<&str> {
    told.iter().map(|letter| letter["result"].as_str().expect("a result")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_least_letter_is_classified_and_grouped() {
    let server = Running::start().await;
    let url = "https://shop.example/1";
    let id = server.report("shop", json!({ "url": url }), "connect timed out after 30 s").await;
    server.report("shop", json!({ "url": "https://shop.example/2" }), "connect timed out after 31 s").await;
    let letter = server.get(&format!("/letters/{id}")).await.ok();
    assert_eq!((&letter["target"], &letter["pipeline"]), (&json!("shop.example"), &json!("shop")), "{letter}");
    assert_eq!(letter["failures"].as_array().map(Vec::len), Some(1));
    let causes = server.get("/causes").await.ok();
    assert_eq!(causes["items"].as_array().map(Vec::len), Some(1), "{causes}");
    assert_eq!(causes["items"][0]["dead"], 2);
    let pipelines = server.get("/pipelines").await.ok();
    assert_eq!(pipelines["items"][0]["name"], "shop", "it came into being with its first letter");
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_of_providers_are_understood_by_the_tables_that_ship_or_by_that_of_the_pipeline() {
    let server = Running::with(
        "[pipeline.own]\nhandler = \"remote\"\n[[pipeline.own.rule]]\ncode = [\"ERROR_CAPTCHA_UNSOLVABLE\"]\nreason = \"rejected_input\"\n",
    )
    .await;
    for (pipeline, reason) in [("solver", "unsolvable"), ("own", "rejected_input")] {
        for told in [json!({ "code": "ERROR_CAPTCHA_UNSOLVABLE" }), json!({ "message": "ERROR_CAPTCHA_UNSOLVABLE" })] {
            let mut letter = json!({ "pipeline": pipeline, "input": { "n": told.to_string() }, "message": "no" });
            letter.as_object_mut().expect("an object").extend(told.as_object().expect("an object").clone());
            let id = report(&server, json!([letter])).await[0]["id"].as_str().expect("an id").to_owned();
            assert_eq!(server.get(&format!("/letters/{id}")).await.ok()["reason"], reason, "{letter}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_in_one_letter_is_said_for_that_one() {
    let server = Running::start().await;
    let good = |n: u32| json!({ "pipeline": "shop", "input": { "n": n }, "message": "no" });
    let letters = json!([
        good(1),
        { "input": {}, "message": "no" },
        { "pipeline": "a b", "input": {}, "message": "no" },
        { "pipeline": "shop", "message": "no" },
        { "pipeline": "shop", "input": {} },
        7,
        { "pipeline": "shop", "input": {}, "message": "no", "id": "nonsense" },
        good(2),
    ]);
    let told = report(&server, letters).await;
    let wanted = ["new", "refused", "refused", "refused", "refused", "refused", "refused", "new"];
    assert_eq!(results(&told), wanted);
    let fields: Vec<_> = told.iter().map(|letter| letter["why"]["field"].as_str()).collect();
    let field = Some;
    let (pipeline, message) = (field("pipeline"), field("message"));
    assert_eq!(fields, [None, pipeline, pipeline, field("input"), message, None, field("id"), None]);
    for (name, value) in [
        ("died_at", json!("9999-12-31T23:59:59Z")),
        ("died_at", json!("2999-12-31T23:59:59Z")),
        ("attempts", json!(-1)),
        ("attempts", json!(2_000_000)),
        ("key", json!("k".repeat(513))),
        ("key", json!("a\u{0}b")),
        ("reason", json!("luck")),
        ("payload", json!({ "base64": "!" })),
        ("lost", json!(7)),
        ("origin", json!(7)),
    ] {
        let mut letter = good(9);
        letter[name] = value.clone();
        let told = report(&server, letter).await;
        assert_eq!((results(&told), &told[0]["why"]["field"]), (vec!["refused"], &json!(name)), "{value}: {told:?}");
    }
    assert_eq!(server.get("/letters").await.ok()["items"].as_array().map(Vec::len), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_is_sent_again_is_known_and_a_later_failure_of_its_key_is_added() {
    let server = Running::start().await;
    let letter = |id: &str, died_at: &str| {
        json!({ "pipeline": "shop", "key": "k", "input": { "n": 1 }, "id": id, "died_at": died_at,
                "failure": { "message": "KeyError: price", "error_type": "KeyError" } })
    };
    let (first, second) = ("0198f2c5-7d3e-7a10-9c51-0242ac120001", "0198f2c5-7d3e-7a10-9c51-0242ac120002");
    let told = report(&server, letter(first, "2026-01-01T00:00:00Z")).await;
    assert_eq!((results(&told), told[0]["id"].as_str()), (vec!["new"], Some(first)));
    assert_eq!(results(&report(&server, letter(first, "2026-01-01T00:00:00Z")).await), ["known"]);
    let again = report(&server, letter(second, "2026-01-02T00:00:00Z")).await;
    assert_eq!((results(&again), again[0]["id"].as_str()), (vec!["again"], Some(first)));
    let shown = server.get(&format!("/letters/{first}")).await.ok();
    assert_eq!(shown["failures"].as_array().map(Vec::len), Some(2), "{shown}");
    assert_eq!(shown["failures"][0]["error_type"], "KeyError");
    assert_eq!(results(&report(&server, letter(second, "2026-01-02T00:00:00Z")).await), ["known"], "sent again");
    server.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_id_the_time_of_death_tells_failures_apart() {
    let server = Running::start().await;
    let letter = |died_at: Option<&str>| {
        let mut letter = json!({ "pipeline": "shop", "key": "k", "input": {}, "message": "no" });
        if let Some(at) = died_at {
            letter["died_at"] = json!(at);
        }
        letter
    };
    let (one, two) = (Some("2026-01-01T00:00:00Z"), Some("2026-01-02T00:00:00Z"));
    let letters = json!({ "letters": [letter(one), letter(one), letter(two), letter(None), letter(None)] });
    assert_eq!(results(&report(&server, letters).await), ["new", "known", "again", "again", "again"]);
    let ask = async |key: &str| {
        let keyed = format!("idempotency-key: {key}");
        let told = server.ask_as(None, "POST /letters", &[&keyed], Some(letter(None))).await.ok();
        told["letters"][0]["result"].clone()
    };
    assert_eq!((ask("a").await, ask("a").await, ask("b").await), (json!("again"), json!("again"), json!("again")));
    let shown = server.get("/letters").await.ok()["items"][0]["id"].as_str().map(str::to_owned).expect("an id");
    let failures = server.get(&format!("/letters/{shown}")).await.ok()["failures"].as_array().map(Vec::len);
    assert_eq!(failures, Some(6), "with a key it was added once");
    server.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_of_a_key_that_waits_is_added_and_of_one_that_is_done_is_new() {
    let server = Running::start().await;
    let ids = server.enqueue("shop", [json!({ "key": "k" })]).await;
    let letter = || json!({ "pipeline": "shop", "key": "k", "input": { "key": "k" }, "message": "no" });
    let told = report(&server, letter()).await;
    assert_eq!((results(&told), told[0]["id"].as_str()), (vec!["again"], Some(ids[0].as_str())));
    let leased = server.post("/leases", json!({ "pipelines": ["shop"] })).await.ok();
    assert_eq!(results(&report(&server, letter()).await), ["again"]);
    let done = json!({ "lease": leased["leases"][0]["lease"], "verdict": "done" });
    server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": [done] })).await.ok();
    let told = report(&server, letter()).await;
    assert_eq!(results(&told), ["new"]);
    assert_ne!(told[0]["id"].as_str(), Some(ids[0].as_str()));
    assert_eq!(results(&report(&server, letter()).await), ["again"], "the key is the letter's");
    server.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_tells_all_that_a_failure_can_have() {
    let server = Running::start().await;
    let failure = json!({ "message": "no price", "reason": "schema_validation", "stage": "extract password=hunter2hunter2", "http_status": 200,
        "misses": [{ "field": "price", "rule": ".price", "code": "SelectorNotFound" }], "proxy": "http://u:p@10.0.0.9:1" });
    let letter = json!({ "pipeline": "shop", "input": { "url": "https://shop.example/1" }, "failure": failure,
        "payload": { "text": "<p>sold out</p>", "status": 200, "headers": [["set-cookie", "session=hunter2hunter2"]] } });
    let told = report(&server, letter).await;
    let id = told[0]["id"].as_str().expect("an id");
    let shown = server.get(&format!("/letters/{id}")).await;
    let text = String::from_utf8_lossy(&shown.body).into_owned();
    assert!(!text.contains("hunter2") && !text.contains("u:p@"), "{text}");
    let shown = shown.ok();
    assert_eq!(
        (&shown["reason"], &shown["failures"][0]["stage"]),
        (&json!("schema_validation"), &json!("extract password=***"))
    );
    assert_eq!(shown["failures"][0]["misses"][0]["field"], "price");
    assert_eq!(server.get(&format!("/payloads/{id}/bytes")).await.body, b"<p>sold out</p>");
    let wrong = json!({ "pipeline": "shop", "input": {}, "message": "no", "reason": "bad luck" });
    assert_eq!(report(&server, wrong).await[0]["why"]["field"], "reason");
    for (field, odd) in
        [("lost", json!("callback")), ("lost", json!([7])), ("failure", json!([1])), ("origin", json!("x"))]
    {
        let mut letter = json!({ "pipeline": "shop", "input": {}, "message": "no" });
        letter[field] = odd;
        assert_eq!(report(&server, letter.clone()).await[0]["why"]["field"], field, "{letter}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_count_as_deaths_and_outcomes_are_what_they_are_measured_by() {
    let server = Running::start().await;
    server.report("shop", json!({ "url": "https://shop.example/1" }), "no").await;
    let counts = json!([{ "pipeline": "shop", "target": "shop.example", "done": 199, "failed": 3 }]);
    let outcomes = json!({ "client": "crawler-1", "seq": 1, "counts": counts });
    assert_eq!(server.post("/outcomes", outcomes.clone()).await.ok(), json!({ "result": "new" }));
    assert_eq!(server.post("/outcomes", outcomes).await.ok(), json!({ "result": "known" }));
    let report = server.get("/reports?since=1h").await.ok();
    let shop = &report["pipelines"][0];
    assert_eq!((&shop["buried"], &shop["done"], &shop["retried"]), (&json!(1), &json!(199), &json!(3)), "{report}");
    let wrong = json!({ "client": "c", "seq": 1, "counts": [{ "pipeline": "shop", "hour": "2001-01-01T00:00:00Z" }] });
    let refused = server.post("/outcomes", wrong).await;
    assert_eq!((refused.status, &refused.json()["error"]["field"]), (400, &json!("counts[0].hour")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_looks_secret_in_an_input_is_masked_and_keeps_the_letter_from_being_replayed() {
    let server = Running::start().await;
    let input = json!({ "url": "https://shop.example/1", "password": "hunter2hunter2", "key": "k-1" });
    let id = server.report("shop", input, "no").await;
    let letter = server.get(&format!("/letters/{id}")).await;
    assert!(!String::from_utf8_lossy(&letter.body).contains("hunter2"), "{letter:?}");
    let letter = letter.ok();
    assert_eq!((&letter["gate"], &letter["input"]["key"]), (&json!("never"), &json!("k-1")), "{letter}");
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_are_given_up_with_a_record_and_never_all_by_mistake() {
    let server = Running::start().await;
    let id = server.report("shop", json!({ "n": 1 }), "no").await;
    server.report("cart", json!({ "n": 1 }), "no").await;
    let nothing = server.post("/letters/discard", json!({ "letters": {}, "why": "x" })).await;
    assert_eq!(nothing.refused(), (400, "invalid".to_owned()));
    let one = server.post("/letters/discard", json!({ "letters": { "ids": [id] }, "why": "old" })).await.ok();
    assert_eq!(one, json!({ "discarded": 1, "missing": [] }));
    let shown = server.get(&format!("/letters/{id}")).await;
    assert_eq!(shown.refused(), (409, "not_dead".to_owned()));
    let all = server.post("/letters/discard", json!({ "letters": { "pipeline": "cart" }, "why": "old" })).await.ok();
    assert_eq!(all["discarded"], 1);
}

#[tokio::test]
async fn id_of_a_foreign_letter_is_answered_as_one_that_nobody_has() {
    let server = Running::start().await;
    let foreign = server.report("bank", json!({ "n": 1 }), "gone").await;
    let another = server.report("bank", json!({ "n": 2 }), "gone").await;
    let own = server.report("shop", json!({ "n": 1 }), "gone").await;
    let admin = server.token("ada", Role::Admin, &[]).await;
    let limited = server.token("eve", Role::Admin, &["shop"]).await;
    let send = async |id: &str, n: u32| {
        let letter = json!({ "pipeline": "shop", "input": { "n": n }, "message": "gone", "id": id });
        let told = server.ask_as(Some(&limited), "POST /letters", &[], Some(letter)).await.ok();
        let letter = told["letters"][0].clone();
        (letter["result"].as_str().map(str::to_owned), letter["id"].as_str().expect("an id").to_owned())
    };
    let result = |text: &str| Some(text.to_owned());
    for (n, id) in [(2, foreign.as_str()), (3, "019a3b44-61a4-7000-8000-000000000009")] {
        let (first, given) = send(id, n).await;
        assert!(first == result("new") && given != id, "{first:?} {given}");
        assert_eq!(send(id, n).await, (result("known"), given), "sent again");
    }
    assert_eq!(send(&own, 1).await, (result("known"), own.clone()), "one of their own pipeline");
    let whole = server.ask_as(Some(&admin), "GET /letters?failures=true&pipeline=shop", &[], None).await.ok();
    let import = async |id: &str, is_tried: bool| {
        let mut letter = whole["items"][0].clone();
        (letter["id"], letter["key"]) = (json!(id), json!(id));
        let body = json!({ "letters": [{ "line": 1, "value": letter }], "dry_run": is_tried });
        let told = server.ask_as(Some(&limited), "POST /letters/import", &[], Some(body)).await.ok();
        (told["new"].clone(), told["known"].clone())
    };
    for is_tried in [true, false] {
        assert_eq!(import(&another, is_tried).await, (json!(1), json!(0)), "imported, tried: {is_tried}");
    }
    assert_eq!(import(&another, false).await, (json!(0), json!(1)), "imported again");
}
