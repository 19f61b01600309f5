//! Signing in: a token becomes a cookie, and no page is reachable without it once there is a token.

use std::sync::Arc;
use std::time::Duration;

use redrive::clock::TestClock;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;
use serde_json::json;

use super::browsing::{Browser, Form};
use super::running::Running;

#[tokio::test]
async fn nobody_sees_a_page_without_signing_in_once_there_is_a_token() {
    let server = Running::start().await;
    server.report("shop", json!({ "url": "https://shop.example/1" }), "gone").await;
    let stranger = Browser::new(&server);
    assert_eq!(stranger.get("/").await.status, 200, "while there is no token");
    let token = server.token("ada", Role::Admin, &[]).await;
    for path in
        ["/", "/causes", "/letters?reason=dns", "/events", "/settings/tokens", "/replays/new?cause=ab", "/nowhere"]
    {
        let answer = stranger.get(path).await;
        assert!(answer.leads_to().starts_with("/login"), "{path} leads to {}", answer.leads_to());
    }
    assert_eq!(stranger.get("/letters?reason=dns").await.leads_to(), "/login?to=%2Fletters%3Freason%3Ddns");
    let answer = stranger.send("POST", "/login", &[("token", &token), ("to", "/letters?reason=dns")]).await;
    assert_eq!(answer.leads_to(), "/letters?reason=dns");
    let cookie = answer.header("set-cookie").expect("a cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax") && !cookie.contains(&token), "{cookie}");
    let page = stranger.page("/letters?reason=dns").await;
    assert!(page.contains("Sign out"));
    assert_eq!(stranger.submit(&page, "/logout", &[]).await.leads_to(), "/login");
    assert!(stranger.get("/").await.leads_to().starts_with("/login"));
}

#[tokio::test]
async fn only_tokens_of_people_open_a_session() {
    let server = Running::start().await;
    let admin = server.token("ada", Role::Admin, &[]).await;
    let worker = server.token("bot", Role::Worker, &[]).await;
    let browser = Browser::new(&server);
    for (token, why) in [("", "no such token"), ("rdr_wrong", "no such token"), (worker.as_str(), "for workers")] {
        let answer = browser.send("POST", "/login", &[("token", token)]).await;
        assert!(answer.status == 401 && answer.text().contains(why), "{}", answer.text());
        assert!(answer.header("set-cookie").is_none());
    }
    for to in ["https://evil.example/", "//evil.example", "/\\evil.example"] {
        let answer = browser.send("POST", "/login", &[("token", &admin), ("to", to)]).await;
        assert_eq!(answer.leads_to(), "/", "{to} is not of this server");
    }
    let revoked = Browser::signed_in(&server, &server.token("eve", Role::Viewer, &[]).await).await;
    assert_eq!(revoked.get("/").await.status, 200);
    let gone = server.ask_as(Some(&admin), "DELETE /tokens/eve", &[], None).await;
    assert_eq!(gone.status, 200);
    assert!(revoked.get("/").await.leads_to().starts_with("/login"), "its token was revoked");
}

#[tokio::test]
async fn a_session_holds_on_every_server_of_the_store() {
    let server = Running::start().await;
    let token = server.token("ada", Role::Admin, &[]).await;
    let cookie = {
        let browser = Browser::signed_in(&server, &token).await;
        browser.cookie().expect("a cookie")
    };
    let secret = cookie.split_once('=').expect("a pair").1.to_owned();
    let server = server.restart().await;
    let port = server.address.port();
    let head = format!("GET / HTTP/1.1\r\nhost: {}\r\ncookie: redrive-{port}={secret}", server.address);
    assert_eq!(server.send(&head, b"").await.status, 200);
}

#[tokio::test]
async fn cookie_is_no_good_after_signing_out() {
    let server = Running::start().await;
    let another = Browser::another(&server).await;
    assert_signing_out_ends(Browser::new(&server), &server).await;
    assert_eq!(another.get("/").await.status, 200, "another session goes on");
    let token = server.token("ada", Role::Admin, &[]).await;
    assert_signing_out_ends(Browser::signed_in(&server, &token).await, &server).await;
}

async fn assert_signing_out_ends(browser: Browser<'_>, server: &Running) {
    let cookie = browser.cookie().expect("a cookie");
    let page = browser.page("/").await;
    assert_eq!(browser.submit(&page, "/logout", &[]).await.leads_to(), "/login");
    let kept = Browser::with_cookie(server, &cookie);
    assert!(kept.get("/").await.leads_to().starts_with("/login"), "somebody kept the cookie");
}

#[tokio::test]
async fn preview_of_the_one_time_link_does_not_use_it_up() {
    let server = Running::start().await;
    let link = server.one_time_link().await;
    let ask = async |method: &str, more: &str| {
        server.send(&format!("{method} {link} HTTP/1.1\r\nhost: {}{more}", server.address), b"").await
    };
    for (method, more) in [("HEAD", ""), ("GET", "\r\nsec-purpose: prefetch"), ("GET", "\r\npurpose: prefetch")] {
        let answer = ask(method, more).await;
        assert_eq!((answer.status, answer.header("set-cookie")), (503, None), "{method}{more}");
    }
    assert!(ask("GET", "").await.header("set-cookie").is_some());
    assert!(ask("GET", "").await.header("set-cookie").is_none(), "once");
}

#[tokio::test]
async fn what_was_filled_in_survives_the_end_of_a_session() {
    let server = Running::start().await;
    server.report("shop", json!({ "url": "https://shop.example/1" }), "gone").await;
    let token = server.token("ada", Role::Admin, &[]).await;
    let asked = server.ask_as(Some(&token), "GET /causes", &[], None).await.ok();
    let cause = asked["items"][0]["id"].as_str().expect("a cause").to_owned();
    let browser = Browser::signed_in(&server, &token).await;
    let (note, action) = (format!("/causes/{cause}/change?verb=note"), format!("/causes/{cause}/change"));
    let form = Form::of(&browser.page(&note).await, &action);
    let page = browser.page("/").await;
    browser.submit(&page, "/logout", &[]).await.leads_to();
    let answer = browser.post(&form, &[("text", "written for an hour")]).await;
    assert_eq!(answer.status, 401);
    let login = answer.text();
    assert!(login.contains("what you filled in is kept"), "{login}");
    let again = browser.submit(&login, "/login", &[("token", &token)]).await;
    assert_eq!(again.status, 200, "nothing is sent by signing in");
    let page = again.text();
    assert!(page.contains("written for an hour"), "{page}");
    browser.submit(&page, &action, &[]).await.leads_to();
    assert!(browser.page(&format!("/causes/{cause}")).await.contains("written for an hour"));
}

#[tokio::test]
async fn a_session_ends_after_twelve_hours_and_keeps_the_address_and_the_form() {
    let clock = Arc::new(TestClock::at(Timestamp::from_millis(1_763_215_320_000)));
    let server = Running::on_clock(Arc::clone(&clock)).await;
    server.report("shop", json!({ "url": "https://shop.example/1" }), "gone").await;
    let token = server.token("ada", Role::Admin, &[]).await;
    let asked = server.ask_as(Some(&token), "GET /causes", &[], None).await.ok();
    let cause = asked["items"][0]["id"].as_str().expect("a cause").to_owned();
    let browser = Browser::signed_in(&server, &token).await;
    let (note, action) = (format!("/causes/{cause}/change?verb=note"), format!("/causes/{cause}/change"));
    let form = Form::of(&browser.page(&note).await, &action);
    clock.advance(Duration::from_secs(12 * 3_600 - 1));
    assert_eq!(browser.get("/").await.status, 200, "a second before");
    clock.advance(Duration::from_secs(1));
    assert_eq!(browser.get("/letters?reason=dns").await.leads_to(), "/login?to=%2Fletters%3Freason%3Ddns");
    let answer = browser.post(&form, &[("text", "written for an hour")]).await;
    assert_eq!(answer.status, 401);
    let again = browser.submit(&answer.text(), "/login", &[("token", &token)]).await.text();
    assert!(again.contains("written for an hour") && again.contains(&format!("action=\"{action}\"")), "{again}");
    browser.submit(&again, &action, &[]).await.leads_to();
    assert!(browser.page(&format!("/causes/{cause}")).await.contains("written for an hour"));
}
