//! Payloads: the exact bytes come back.

use std::time::Duration;

use data_encoding::BASE64;
use redrive_core::tokens::Role;
use redrive_server::Options;
use serde_json::{Value, json};

use crate::browsing::Browser;
use crate::running::Running;

#[tokio::test(flavor = "multi_thread")]
async fn the_evidence_of_a_remote_worker_comes_back_as_it_was() {
    let server = Running::start().await;
    let ids = server.enqueue("shop", [json!({ "n": 1 })]).await;
    let leased = server.post("/leases", json!({ "pipelines": ["shop"] })).await.ok();
    let bytes: Vec<u8> = (0..200_000_u32).map(|n| (n * 7 % 251) as u8).collect();
    let headers = json!([["content-type", "text/html"], ["set-cookie", "session=hunter2hunter2"]]);
    let payload =
        json!({ "base64": BASE64.encode(&bytes), "status": 200, "url": "https://shop.example/1", "headers": headers });
    let failure = json!({ "message": "no price", "reason": "schema_validation" });
    let job =
        json!({ "lease": leased["leases"][0]["lease"], "verdict": "failed", "failure": failure, "payload": payload });
    let settled = server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": [job] })).await.ok();
    assert_eq!(settled["jobs"][0]["result"], "ok", "{settled}");
    let shown = server.get(&format!("/payloads/{}", ids[0])).await;
    assert!(!String::from_utf8_lossy(&shown.body).contains("hunter2"), "{shown:?}");
    let shown = shown.ok();
    assert_eq!((&shown["size_bytes"], &shown["status"]), (&json!(200_000), &json!(200)), "{shown}");
    let hash = shown["hash"].as_str().expect("a hash");
    for name in [ids[0].as_str(), hash] {
        let answer = server.get(&format!("/payloads/{name}/bytes")).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/octet-stream")));
        assert_eq!(answer.header("content-disposition"), Some("attachment"));
        assert!(answer.body == bytes, "{} bytes", answer.body.len());
    }
    assert_eq!(server.get("/payloads").await.ok()["items"][0]["hash"], hash);
    assert_eq!(server.get("/payloads/ffffffff/bytes").await.refused(), (404, "not_found".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_payloads_reads_none() {
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    let leased = server.post("/leases", json!({ "pipelines": ["shop"] })).await.ok();
    let (failure, payload) = (
        json!({ "message": "no price", "reason": "schema_validation" }),
        json!({ "base64": BASE64.encode(b"a page") }),
    );
    let job =
        json!({ "lease": leased["leases"][0]["lease"], "verdict": "failed", "failure": failure, "payload": payload });
    server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": [job] })).await.ok();
    let letter = server.get("/letters").await.ok()["items"][0].clone();
    assert!(letter["payload_address"].is_string(), "{letter}");
    let id = letter["id"].as_str().expect("an id").to_owned();
    server.token("ops", Role::Admin, &[]).await;
    let server = server.restart().await;
    let new = redrive::tokens::NewToken {
        name: "eve".parse().expect("a name"),
        role: Role::Admin,
        pipelines: Vec::new(),
        payloads: false,
        expires_at: None,
    };
    let by = redrive_core::actors::Actor::new("ada", redrive_core::actors::Via::Cli);
    let secret = server.redrive.create_token(&new, &by).await.expect("made").secret;
    let server = server.restart().await;
    for path in ["/payloads", "/payloads/abcdef12", "/payloads/abcdef12/bytes"] {
        let answer = server.ask_as(Some(&secret), &format!("GET {path}"), &[], None).await;
        assert_eq!(answer.refused(), (403, "payloads_refused".to_owned()), "{path}");
    }
    for path in ["/letters?failures=true".to_owned(), format!("/letters/{id}")] {
        let answer = server.ask_as(Some(&secret), &format!("GET {path}"), &[], None).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(answer.status == 200 && text.contains(&id) && !text.contains("payload_address"), "{path}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_is_uploaded_before_the_letter_that_names_it() {
    let server = Running::start().await;
    // The SHA-256 of "hello".
    let sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    let letter = json!({ "pipeline": "shop", "input": { "n": 1 }, "message": "no price", "lost": ["callback"],
        "origin": { "kind": "scrapy", "group": "books" },
        "payload": { "sha256": sha256, "status": 200, "headers": { "content-type": "text/html" } } });
    let told = server.post("/letters", letter.clone()).await.ok();
    assert_eq!(told["letters"][0]["result"], "payload_missing", "{told}");
    let head =
        |method: &str, name: &str| format!("{method} /api/v1/payloads/{name} HTTP/1.1\r\nhost: {}", server.address);
    assert_eq!(server.send(&head("HEAD", sha256), b"").await.status, 404);
    assert_eq!(server.send(&head("PUT", sha256), b"hallo").await.refused(), (422, "wrong_hash".to_owned()));
    assert_eq!(server.send(&head("PUT", sha256), b"hello").await.status, 201);
    assert_eq!(server.send(&head("PUT", sha256), b"hello").await.status, 200, "known");
    assert_eq!(server.send(&head("HEAD", sha256), b"").await.status, 200);
    let told = server.post("/letters", letter).await.ok();
    assert_eq!(told["letters"][0]["result"], "new", "{told}");
    let id = told["letters"][0]["id"].as_str().expect("an id");
    let bytes = server.get(&format!("/payloads/{id}/bytes")).await;
    assert_eq!((bytes.status, bytes.body.as_slice()), (200, b"hello".as_slice()));
    let letter = server.get(&format!("/letters/{id}")).await.ok();
    assert_eq!(letter["failures"][0]["payload"]["status"], 200, "{letter}");
    assert_eq!((&letter["origin"]["kind"], &letter["origin"]["group"]), (&json!("scrapy"), &json!("books")));
    assert_eq!(letter["gate"], "never", "a part of its input is lost");
}

/// Whoever knows the hash of what others have imports a letter that names it.
#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_names_a_foreign_payload_gives_nobody_its_bytes() {
    let server = Running::start().await;
    let admin = server.token("ops", Role::Admin, &[]).await;
    let limited = server.token("eve", Role::Admin, &["shop"]).await;
    let all = Some(admin.as_str());
    for (pipeline, text) in [("bank", "<p>balance 7,311</p>"), ("shop", "<p>price 12</p>")] {
        let letter = json!({ "pipeline": pipeline, "input": { "n": 1 }, "message": "no", "payload": { "text": text } });
        server.ask_as(all, "POST /letters", &[], Some(letter)).await.ok();
    }
    let letters = server.ask_as(all, "GET /letters?failures=true", &[], None).await.ok();
    let payload_of = |pipeline: &str| {
        let of = |letter: &&Value| letter["pipeline"] == pipeline;
        letters["items"].as_array().and_then(|items| items.iter().find(of)).expect("a letter").clone()
    };
    let import = async |token: &str, of: &str, id: &str| {
        let mut letter = payload_of(of);
        (letter["pipeline"], letter["id"], letter["key"]) = (json!("shop"), json!(id), json!(id));
        let body = json!({ "letters": [{ "line": 1, "value": letter }] });
        let answer = server.ask_as(Some(token), "POST /letters/import", &[], Some(body)).await.ok();
        assert_eq!(answer["new"], 1, "{answer}");
        server.ask_as(Some(token), &format!("GET /payloads/{id}/bytes"), &[], None).await.status
    };
    let id = |n: u32| format!("019a3b44-61a4-7000-8000-00000000000{n}");
    assert_eq!(import(&limited, "shop", &id(1)).await, 200, "it is of a pipeline of theirs");
    assert_eq!(import(&limited, "bank", &id(2)).await, 404, "it is of another");
    assert_eq!(import(&admin, "bank", &id(3)).await, 200, "who sees all names any");
    let browser = Browser::signed_in(&server, &limited).await;
    assert!(!browser.page(&format!("/letters/{}", id(2))).await.contains("balance"), "nor does the page show them");
}

#[tokio::test(flavor = "multi_thread")]
async fn vault_that_is_away_is_503_and_named() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let vault = folder.path().join("vault");
    let server = Running::with(&format!("vault = {:?}\n", vault.display().to_string())).await;
    let letter = json!({ "pipeline": "shop", "input": { "n": 1 }, "message": "no", "payload": { "text": "<p>" } });
    let told = server.post("/letters", letter).await.ok();
    let path = format!("/payloads/{}/bytes", told["letters"][0]["id"].as_str().expect("an id"));
    assert_eq!(server.get(&path).await.status, 200);
    std::fs::rename(&vault, folder.path().join("unmounted")).expect("moved");
    let away = server.get(&path).await;
    assert_eq!(away.refused(), (503, "vault_unavailable".to_owned()));
    assert!(away.header("retry-after").is_some() && away.json().to_string().contains("/vault"), "{away:?}");
    std::fs::rename(folder.path().join("unmounted"), &vault).expect("moved back");
    assert_eq!(server.get(&path).await.status, 200);
    std::fs::remove_dir_all(&vault).and_then(|()| std::fs::create_dir(&vault)).expect("emptied");
    assert_eq!(server.get(&path).await.refused(), (404, "not_found".to_owned()), "the vault is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn vault_that_does_not_answer_is_503_in_time() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let mut options = Options::listening(([127, 0, 0, 1], 0).into());
    options.patience.vault = Duration::from_millis(100);
    let server = Running::configured(&format!("vault = {:?}\n", folder.path().display().to_string()), options).await;
    let letter = json!({ "pipeline": "shop", "input": { "n": 1 }, "message": "no", "payload": { "text": "<p>" } });
    let told = server.post("/letters", letter).await.ok();
    let path = format!("/payloads/{}/bytes", told["letters"][0]["id"].as_str().expect("an id"));
    // The vault asks first where a payload is.
    let held = server.hold("place_of_payload");
    assert_eq!(server.get(&path).await.refused(), (503, "vault_unavailable".to_owned()));
    held.release();
}
