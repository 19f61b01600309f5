//! What people do on pages beside causes and letters: tokens, sinks, targets, the record; done once, said right, and to nobody who may
//! not see it.

use std::time::Duration;

use redrive_core::tokens::Role;
use redrive_server::Options;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::browsing::{Browser, Form};
use crate::replays::{letters, work};
use crate::running::Running;

fn secret(page: &str) -> String {
    let from = page.find("rdr_").unwrap_or_else(|| panic!("no secret: {page}"));
    page[from..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}

const MAKE: &str = "/settings/tokens/create";

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_made_twice_shows_its_secret_twice_also_the_first_one() {
    let server = Running::start().await;
    let local = Browser::new(&server);
    let form = Form::of(&local.page("/settings/tokens").await, MAKE);
    let filled = [("name", "ada"), ("role", "admin"), ("payloads", "yes")];
    let (first, second) = tokio::join!(local.post(&form, &filled), local.post(&form, &filled));
    let ada = secret(&first.text());
    assert_eq!((first.status, second.status, secret(&second.text())), (200, 200, ada.clone()), "a double click");
    assert_eq!(Browser::new(&server).get("/").await.status, 303);
    let late = local.post(&form, &filled).await;
    assert_eq!((late.status, secret(&late.text())), (200, ada.clone()), "though everybody signs in by now");
    let stranger = Browser::stranger(&server);
    assert_eq!(stranger.post(&form, &filled).await.status, 401, "nobody else is shown it");
    let browser = Browser::signed_in(&server, &ada).await;
    let form = Form::of(&browser.page("/settings/tokens").await, MAKE);
    let filled = [("name", "eve"), ("role", "viewer"), ("payloads", "no"), ("pipelines", "shop, mill-*")];
    let made = browser.post(&form, &filled).await.text();
    assert_eq!(secret(&made), secret(&browser.post(&form, &filled).await.text()));
    let tokens = server.redrive.list_tokens().await.expect("listed");
    assert_eq!(tokens.iter().map(|token| token.name.as_str()).collect::<Vec<_>>(), ["ada", "eve"]);
    assert!(!tokens[1].payloads && tokens[1].pipelines.len() == 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_with_a_mistake_comes_back_as_it_was_filled_in() {
    let server = Running::start().await;
    let token = server.token("ada", Role::Admin, &[]).await;
    let browser = Browser::signed_in(&server, &token).await;
    let page = browser.page("/settings/tokens").await;
    assert!(page.contains("<option value=\"viewer\" selected>"), "the least role is chosen: {page}");
    assert!(page.contains("redrive token create NAME --role viewer<"), "{page}");
    let wrong = [("name", "ada"), ("role", "operator"), ("payloads", "no"), ("pipelines", "shop"), ("expires", "90d")];
    let taken = browser.submit(&page, MAKE, &wrong).await;
    let text = taken.text();
    assert_eq!(taken.status, 400);
    assert!(text.contains("there is a token ada already") && !text.contains("meanwhile"), "{text}");
    assert!(text.contains("<option value=\"operator\" selected>") && text.contains("value=\"90d\""), "{text}");
    let line = "redrive token create ada --role operator --pipeline shop --expires 90d --no-payloads";
    assert!(text.contains(line), "{text}");
    let mended = [("name", "bob"), ("role", "operator"), ("payloads", "no"), ("pipelines", "shop"), ("expires", "90d")];
    secret(&browser.submit(&text, MAKE, &mended).await.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn sinks_are_tested_once_however_often_the_form_is_sent() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let told = folder.path().join("told.txt");
    let tells = format!("cat >> {0}; echo >> {0}; echo told >> {0}", told.display());
    let server =
        Running::with(&format!("[alerts.sink.team]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", {tells:?}]\n"))
            .await;
    let browser = Browser::new(&server);
    let form = Form::of(&browser.page("/alerts").await, "/alerts/test");
    let (one, other) = (browser.post(&form, &[]).await, browser.post(&form, &[]).await);
    assert_eq!(one.leads_to(), other.leads_to());
    let shown = browser.page(one.leads_to()).await;
    assert!(shown.contains("command: <span class=\"good-text\">told</span>"), "{shown}");
    assert_eq!(std::fs::read_to_string(&told).expect("told").lines().filter(|line| *line == "told").count(), 1);
    assert!(browser.page("/alerts/test?run=another").await.contains("for a moment only"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_theirs_is_as_if_it_were_not_there() {
    let server = Running::start().await;
    let letter = server.report("mill", json!({ "url": "https://mill.example/1" }), "gone").await;
    for n in 0..30 {
        server.report("mill", json!({ "url": "https://shop.example/1", "n": n }), "gone").await;
    }
    let own = server.report("shop", json!({ "url": "https://shop.example/1" }), "gone").await;
    let listed = server.get(&format!("/letters/{letter}")).await.ok();
    let (number, cause) = (listed["number"].to_string(), listed["cause"].as_str().expect("a cause").to_owned());
    server.token("ada", Role::Admin, &[]).await;
    let eve = server.token("eve", Role::Operator, &["shop*"]).await;
    let browser = Browser::signed_in(&server, &eve).await;
    let leads = async |text: &str| {
        let query = form_urlencoded::Serializer::new(String::new()).append_pair("q", text).finish();
        browser.get(&format!("/search?{query}")).await.leads_to().to_owned()
    };
    for text in [number.as_str(), cause.as_str(), &letter] {
        assert_eq!(leads(text).await, format!("/letters?text={text}"));
    }
    assert_eq!(
        leads("https://shop.example/1").await,
        format!("/letters/{own}"),
        "letters of others are not in the way"
    );
    let unknown = browser.get("/pipelines/shop-x").await.text();
    assert!(unknown.contains("no pipeline shop-x: there are shop") && !unknown.contains("mill"), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_signs_out_hears_nothing_more() {
    let server = Running::start().await;
    let token = server.token("ada", Role::Admin, &[]).await;
    let browser = Browser::signed_in(&server, &token).await;
    let page = browser.page("/").await;
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    let cookie = browser.cookie().expect("a cookie");
    let head = format!("GET /events HTTP/1.1\r\nhost: {}\r\ncookie: {cookie}\r\n\r\n", server.address);
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut bytes = [0; 4096];
    assert!(stream.read(&mut bytes).await.expect("read") > 0, "it begins");
    browser.submit(&page, "/logout", &[]).await.leads_to();
    let job = json!({ "pipeline": "shop", "jobs": [{ "input": { "n": 1 } }] });
    server.ask_as(Some(&token), "POST /jobs", &[], Some(job)).await.ok();
    let rest = async {
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).await.expect("read");
        String::from_utf8_lossy(&heard).into_owned()
    };
    let heard = tokio::time::timeout(Duration::from_secs(60), rest).await.expect("it ends");
    assert!(!heard.contains("jobs"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_of_a_name_that_is_reached_by_https_goes_nowhere_else() {
    let options = Options {
        public_hosts: vec!["redrive.example".into()],
        secure_hosts: vec!["redrive.example".into()],
        ..Options::listening(([127, 0, 0, 1], 0).into())
    };
    let server = Running::start().await;
    let token = server.token("ada", Role::Admin, &[]).await;
    let server = server.restart_with(options).await;
    let given = async |host: &str| {
        let head = format!("POST /login HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/x-www-form-urlencoded");
        let answer = server.send(&head, format!("token={token}").as_bytes()).await;
        answer.header("set-cookie").expect("a cookie").to_owned()
    };
    let public = given("redrive.example").await;
    assert!(public.starts_with("__Host-redrive=") && public.contains("; Secure"), "{public}");
    let local = given(&server.address.to_string()).await;
    assert!(!local.contains("Secure") && !local.contains("__Host-"), "{local}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_has_what_a_replay_did_by_itself_with_its_numbers() {
    let server = Running::start().await;
    letters(&server, 12).await;
    let asked = json!({ "letters": { "pipeline": "shop" }, "refail_max": "10%", "name": "failing" });
    let replay = server.post("/replays", asked).await.ok()["replay"]["id"].as_str().expect("an id").to_owned();
    let failed = json!({ "verdict": "failed", "failure": { "message": "no", "reason": "not_found" } });
    work(&server, &replay, &failed).await;
    server.until(&format!("/replays/{replay}"), |replay| replay["state"] == "paused").await;
    let noted = server.get("/activity?verb=pause&object=replay").await.ok()["items"].clone();
    assert_eq!((&noted[0]["by"]["via"], noted.as_array().map(Vec::len)), (&json!("automatic"), Some(1)), "{noted}");
    assert!(noted[0]["detail"]["why"].as_str().is_some_and(|why| why.contains("failed again")), "{noted}");
    server.post("/pipelines/shop/pause", json!({ "until": "2h", "why": "it moves" })).await.ok();
    let browser = Browser::new(&server);
    let page = browser.page("/activity").await;
    assert!(page.contains("12 letters") && page.contains("automatic") && page.contains("it moves"), "{page}");
    assert!(page.contains("until 20"), "until when: {page}");
    let found = browser.page("/activity?verb=start&object=replay").await;
    assert!(found.contains("redrive activity --verb start --object replay"), "{found}");
    assert!(!found.contains("automatic</td>") && found.contains("12 letters"), "{found}");
    let none = browser.page("/activity?verb=nothing").await;
    assert!(none.contains("Nobody did anything like that"), "{none}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cause_that_a_replay_resolved_says_so_in_the_record() {
    let server = Running::start().await;
    letters(&server, 3).await;
    let started = server.post("/replays", json!({ "letters": { "pipeline": "shop" }, "name": "fixed" })).await.ok();
    let replay = started["replay"]["id"].as_str().expect("an id").to_owned();
    work(&server, &replay, &json!({ "verdict": "done" })).await;
    server
        .until("/activity?verb=resolve", |noted| noted["items"].as_array().is_some_and(|items| items.len() == 1))
        .await;
    let noted: Value = server.get("/activity?verb=resolve").await.ok()["items"][0].clone();
    assert_eq!((&noted["by"]["via"], &noted["by"]["name"]), (&json!("automatic"), &json!("local")), "{noted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_more_tasks_are_not_let_go_than_who_closed_a_breaker_was_told() {
    let server = Running::with("[pipeline.shop]\nhandler = \"remote\"\nconcurrency = 8\n").await;
    let tasks = |from: u32, to: u32| (from..to).map(|n| json!({ "url": format!("https://shop.example/{n}") }));
    server.enqueue("shop", tasks(0, 3)).await;
    let hold = json!({ "target": "shop.example", "pipeline": "shop", "why": "they asked" });
    server.post("/breakers/hold", hold.clone()).await.ok();
    let browser = Browser::new(&server);
    let close = "/breakers/turn?verb=close&target=shop.example&pipeline=shop";
    // Whoever asks for tasks finds that they wait.
    server.post("/leases", json!({ "pipelines": ["shop"] })).await.ok();
    server.until("/breakers", |held| held["items"][0]["held"] == 3).await;
    let page = browser.page(close).await;
    assert!(page.contains("Let 3 tasks go") && page.contains("8 at once with each worker"), "{page}");
    server.enqueue("shop", tasks(3, 9)).await;
    server.post("/leases", json!({ "pipelines": ["shop"] })).await.ok();
    server.until("/breakers", |held| held["items"][0]["held"] == 9).await;
    let again = browser.submit(&page, "/breakers/turn", &[]).await;
    let text = again.text();
    assert!(
        again.status == 200 && text.contains("3 tasks when you looked") && text.contains("Let 9 tasks go"),
        "{text}"
    );
    assert_eq!(server.get("/breakers").await.ok()["items"].as_array().map(Vec::len), Some(1), "nothing was let go");
    let done = browser.submit(&text, "/breakers/turn", &[]).await;
    let said = browser.page(done.leads_to()).await;
    assert!(said.contains("its tasks go on."), "{said}");
    server.post("/breakers/hold", hold).await.ok();
    let later = browser.page(done.leads_to()).await;
    assert!(!later.contains("its tasks go on."), "somebody holds it again: {later}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipelines_page_says_what_its_workers_run_and_has_its_hours_as_a_table() {
    let server = Running::with("[pipeline.shop]\nhandler = \"remote\"\n").await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    let leased = server.post("/leases", json!({ "pipelines": ["shop"], "max": 1 })).await.ok();
    let browser = Browser::new(&server);
    let page = browser.page("/pipelines/shop").await;
    assert!(page.contains(", 1 task<") || page.contains(", 1 task,"), "{page}");
    let pause = browser.page("/pipelines/shop/pause").await;
    assert!(pause.contains("1 running task comes to its end; none is queued."), "{pause}");
    let done = json!({ "lease": leased["leases"][0]["lease"], "verdict": "done" });
    server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": [done] })).await.ok();
    let page = browser.page("/pipelines/shop").await;
    let table = page.split("As a table").nth(1).expect("a table");
    assert!(table.contains("<td class=\"num\" role=\"cell\">1</td>"), "{table}");
    let actions = page.find("redrive pipeline pause shop").expect("the command");
    assert!(actions < page.find("Where its tasks are").expect("the ledger"), "it is beside its button");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_about_an_alert_is_said_right_and_taken_back() {
    let server = Running::start().await;
    letters(&server, 12).await;
    server.redrive.judge_alerts(&redrive::alerts::Watching::default()).await.expect("judged");
    let browser = Browser::new(&server);
    let care = async || {
        let listed = server.get("/alerts").await.ok();
        let alerts = listed["alerts"].as_array().cloned().unwrap_or_default();
        alerts.into_iter().find(|alert| alert["key"] == "rate/shop").expect("it")["care"].clone()
    };
    let change = "/alerts/change";
    let ask = browser.page("/alerts/change?verb=snooze&alert=rate%2Fshop").await;
    browser.submit(&ask, change, &[("until", "3h"), ("why", "it moves")]).await.leads_to();
    let snoozed = care().await["snoozed"].clone();
    let form = Form::of(&browser.page("/alerts?state=snoozed").await, change);
    let woken = browser.post(&form, &[("verb", "wake"), ("alert", "rate/shop")]).await;
    assert!(care().await["snoozed"].is_null());
    let undone = browser.submit(&browser.page(woken.leads_to()).await, change, &[]).await;
    undone.leads_to();
    let again = care().await["snoozed"].clone();
    assert_eq!((&again["until"], &again["why"]), (&snoozed["until"], &json!("it moves")), "as it was");
    let form = Form::of(&browser.page("/alerts?state=snoozed").await, change);
    let assigned = browser.post(&form, &[("verb", "assign"), ("alert", "rate/shop"), ("owner", "ada")]).await;
    let page = browser.page(assigned.leads_to()).await;
    assert!(page.contains("Assigned to ada."), "{page}");
    let undone = browser.submit(&page, change, &[]).await;
    assert!(browser.page(undone.leads_to()).await.contains("Assigned to nobody."));
    assert!(care().await["owner"].is_null());
}
