//! Looking for letters: by what they are called, and by what stands in them.

use std::time::Duration;

use redrive_server::{Options, Patience};
use serde_json::json;

use crate::browsing::Browser;
use crate::running::Running;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_named_is_gone_to() {
    let server = Running::start().await;
    let saved = json!({
        "pipeline": "shop", "input": { "url": "https://shop.example/1" }, "message": "no price",
        "payload": { "text": "<html>one</html>" },
    });
    server.post("/letters", saved).await.ok();
    server.report("shop", json!({ "url": "https://shop.example/2" }), "no price").await;
    let letters = server.get("/letters").await.ok()["items"].as_array().expect("letters").clone();
    let of = |url: &str| letters.iter().find(|letter| letter["input"]["url"] == url).expect("it");
    let (first, second) = (of("https://shop.example/1"), of("https://shop.example/2"));
    let page = |letter: &serde_json::Value| format!("/letters/{}", letter["id"].as_str().expect("an id"));
    let browser = Browser::new(&server);
    let leads = async |text: &str| {
        let query = form_urlencoded::Serializer::new(String::new()).append_pair("q", text).finish();
        browser.get(&format!("/search?{query}")).await.leads_to().to_owned()
    };
    let hash = first["payload"].as_str().expect("a payload");
    assert_eq!(leads(hash).await, page(first), "a payload's hash");
    assert_eq!(leads(&hash[..12].to_uppercase()).await, page(first), "the beginning of it");
    assert_eq!(leads("https://shop.example/2").await, page(second), "an address");
    assert_eq!(leads(&format!("#{}", second["number"])).await, page(second), "a number");
    let id = second["id"].as_str().expect("an id");
    assert_eq!(leads(&id[id.len() - 8..]).await, page(second), "the end of an id");
    let cause = second["cause"].as_str().expect("a cause");
    assert_eq!(leads(cause).await, format!("/causes/{cause}"));
    assert_eq!(leads("no price").await, "/letters?text=no+price");
    assert_eq!(leads("ffffffffffff").await, "/letters?text=ffffffffffff", "no payload begins so");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_says_how_far_it_looked() {
    let server = Running::start().await;
    for n in 0..60 {
        let message = if n == 0 { "the needle" } else { "price is gone" };
        server.report("shop", json!({ "n": n }), message).await;
    }
    let browser = Browser::new(&server);
    let needle = browser.page("/letters?text=needle").await;
    assert!(needle.contains("looked at all 60") && needle.contains("the needle"), "{needle}");
    let none = browser.page("/letters?text=nowhere&reason=handler_error").await;
    assert!(none.contains("Drop a filter") && none.contains("/letters?reason=handler_error"), "{none}");
    let first = browser.page("/letters?text=gone").await;
    assert!(first.contains("looked at 50 of 60") && first.contains("50+"), "{first}");
    let next = first.split("id=\"further\" href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a link");
    let rest = browser.page(&next.replace("&amp;", "&")).await;
    assert!(rest.contains("looked at all 60"), "{rest}");
    assert_eq!(browser.get("/letters?text=gone&cursor=x").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_come_in_the_order_that_is_asked_for() {
    let server = Running::start().await;
    for n in 0..60 {
        server.report("shop", json!({ "url": format!("https://shop.example/{n}") }), "price is gone").await;
    }
    let browser = Browser::new(&server);
    let shown = |page: &str| {
        let paths = page.split("<bdi>/").skip(1).filter_map(|rest| rest.split('<').next()?.parse::<u32>().ok());
        paths.collect::<Vec<_>>()
    };
    for path in ["/letters?sort=oldest", "/letters?text=gone&sort=oldest"] {
        let first = browser.page(path).await;
        assert_eq!(shown(&first), (0..50).collect::<Vec<_>>(), "{path}: {first}");
        assert!(first.contains("oldest first") && first.contains("--sort oldest"), "{path}: {first}");
        assert!(first.contains(r#"aria-sort="ascending""#), "{path}: {first}");
        let next = first.split("cursor=").nth(1).and_then(|rest| rest.split(['"', '&']).next()).expect("a link");
        assert_eq!(shown(&browser.page(&format!("{path}&cursor={next}")).await), (50..60).collect::<Vec<_>>());
    }
    assert_eq!(shown(&browser.page("/letters").await), (10..60).rev().collect::<Vec<_>>());
    let letters = server.get("/letters?sort=oldest&limit=2").await.ok();
    assert_eq!(letters["items"][1]["input"]["url"], "https://shop.example/1");
    let wrong = browser.get("/letters?sort=loudest").await;
    assert!(wrong.status == 400 && wrong.text().contains("expected newest or oldest"), "{}", wrong.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_of_letters_says_where_to_go_on_when_its_time_is_over() {
    let options = Options::listening(([127, 0, 0, 1], 0).into());
    let patience = Patience { letters: Duration::ZERO, ..Patience::default() };
    let server = Running::with_options(Options { patience, ..options }).await;
    let letter = |n: u32| {
        let message = if n == 0 { "the needle" } else { "no price" };
        json!({ "pipeline": "shop", "input": { "n": n }, "message": message })
    };
    server.post("/letters", letter(0)).await.ok();
    server.post("/letters", (1..600).map(letter).collect()).await.ok();
    let first = server.get("/letters?text=needle").await.ok();
    assert_eq!(first["items"], json!([]), "the oldest is looked at last");
    let next = first["next"].as_str().unwrap_or_else(|| panic!("it goes on: {first}"));
    let rest = server.get(&format!("/letters?text=needle&cursor={next}")).await.ok();
    assert_eq!((&rest["items"][0]["input"]["n"], &rest["next"]), (&json!(0), &json!(null)), "{rest}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_of_jobs_that_takes_too_long_is_refused() {
    let options = Options::listening(([127, 0, 0, 1], 0).into());
    let patience = Patience { jobs: Duration::from_millis(1), ..Patience::default() };
    let server = Running::with_options(Options { patience, ..options }).await;
    let hold = server.hold("list_jobs");
    let answer = server.get("/jobs?text=needle").await;
    assert_eq!(answer.refused(), (413, "too_large".to_owned()));
    assert!(
        answer.json()["error"]["message"].as_str().is_some_and(|why| why.contains("name a pipeline")),
        "{answer:?}"
    );
    hold.release();
}
