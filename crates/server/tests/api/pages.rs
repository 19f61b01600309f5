//! The pages of the dashboard: what they show, and what their forms do. Nothing here runs a script.

use redrive_core::tokens::Role;
use redrive_server::Options;
use serde_json::json;

use super::browsing::{Browser, Form};
use super::running::Running;

/// Every page that needs nothing to be there.
const PAGES: [&str; 13] = [
    "/",
    "/activity",
    "/alerts",
    "/alerts?state=ended",
    "/causes",
    "/causes?tab=all",
    "/causes?tab=resolved",
    "/letters",
    "/pipelines",
    "/replays",
    "/replays?state=open",
    "/search",
    "/settings/tokens",
];

async fn with_letters(n: usize) -> (Running, String) {
    let server = Running::start().await;
    for number in 0..n {
        server
            .report("shop", json!({ "url": format!("https://shop.example/p/{number}") }), "price is <b>gone</b>")
            .await;
    }
    let causes = server.get("/causes").await.ok();
    let cause = causes["items"][0]["id"].as_str().expect("a cause").to_owned();
    (server, cause)
}

#[tokio::test]
async fn a_headline_is_good_news_only_where_nothing_rests() {
    let server = Running::start().await;
    server.enqueue("shop", [json!({ "url": "https://shop.example/p/1" })]).await;
    let leased = server.post("/leases", json!({ "pipelines": ["shop"] })).await.ok();
    let done = json!({ "lease": leased["leases"][0]["lease"], "verdict": "done" });
    server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": [done] })).await.ok();
    let headline = async || {
        let page = String::from_utf8_lossy(&server.get("~/").await.body).into_owned();
        let from = page.find("id=\"headline\"").expect("a headline");
        let begin = page[..from].rfind('<').expect("a tag");
        page[begin..].split("</p>").next().expect("an end").to_owned()
    };
    let quiet = headline().await;
    assert!(quiet.contains("headline good") && quiet.contains("Nothing waits."), "{quiet}");
    server.post("/pipelines/shop/pause", json!({ "why": "it moves" })).await.ok();
    let resting = headline().await;
    assert!(resting.contains("headline warn") && resting.contains("shop is paused."), "{resting}");
    assert!(!resting.contains("Nothing waits"), "{resting}");
}

#[tokio::test]
async fn every_page_arrives_whole_on_an_empty_store_and_on_a_full_one() {
    let empty = Running::start().await;
    let browser = Browser::new(&empty);
    for path in PAGES {
        let answer = browser.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(answer.text().ends_with("</html>") && answer.text().matches("<h1").count() == 1, "{path}");
    }
    assert!(browser.page("/").await.contains("No dead letters"));
    let (full, cause) = with_letters(3).await;
    let browser = Browser::new(&full);
    let letter = full.get("/letters").await.ok()["items"][0]["id"].as_str().expect("an id").to_owned();
    let more = [
        format!("/causes/{cause}"),
        format!("/letters/{letter}"),
        format!("/replays/new?cause={cause}"),
        "/pipelines/shop".into(),
    ];
    for path in PAGES.map(str::to_owned).into_iter().chain(more) {
        let page = browser.page(&path).await;
        assert!(!page.contains("<b>gone</b>"), "{path} shows what a stranger wrote as it is");
        assert!(!page.contains(" style=\"") && !page.contains(" onclick"), "{path}");
    }
    assert!(browser.page("/").await.contains("price is &lt;b&gt;gone"));
    assert_eq!(browser.get("/nowhere").await.status, 404);
    assert_eq!(browser.get("/letters?gate=wide").await.status, 400);
}

#[tokio::test]
async fn an_address_that_is_none_of_ours_has_the_way_back_around_it() {
    let server = Running::start().await;
    let browser = Browser::new(&server);
    for path in ["/nowhere", "/causes/ask", "/letters/a/b/c"] {
        let answer = browser.get(path).await;
        let page = answer.text();
        assert_eq!(answer.status, 404, "{path}");
        assert!(page.contains("there is no such page") && page.contains(r#"href="/causes""#), "{path}: {page}");
    }
    assert_eq!(browser.send("POST", "/nowhere", &[]).await.status, 404);
    assert_eq!(server.get("/nowhere").await.refused(), (404, "not_found".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelines_come_in_pages_of_a_hundred_with_the_sums_of_all() {
    let server = Running::start().await;
    let letters: Vec<_> =
        (0..130).map(|n| json!({ "pipeline": format!("p{n:03}"), "input": { "n": n }, "message": "no" })).collect();
    server.post("/letters", json!(letters)).await.ok();
    let browser = Browser::new(&server);
    for path in ["/", "/pipelines"] {
        let first = browser.page(path).await;
        assert_eq!(first.matches("id=\"pipeline-").count(), 100, "{path}");
        assert!(first.contains("100 of 130 pipelines"), "{path}: {first}");
        let next = format!("href=\"{path}?cursor=100\"");
        assert!(first.contains(&next), "{path}: {first}");
        let second = browser.page(&format!("{path}?cursor=100")).await;
        assert_eq!(second.matches("id=\"pipeline-").count(), 30, "{path}");
        assert!(second.contains("First page") && !second.contains("Next page"), "{path}: {second}");
        let seen =
            (0..130).all(|n| [&first, &second].iter().any(|page| page.contains(&format!("\"pipeline-p{n:03}\""))));
        assert!(seen, "{path}");
        if path == "/" {
            assert_eq!(first.matches("130 died").count(), second.matches("130 died").count(), "{first}");
        }
    }
}

#[tokio::test]
async fn filter_that_there_is_not_is_refused_with_the_one_that_was_meant() {
    let server = Running::start().await;
    server.report("shop", json!({ "n": 1 }), "gone").await;
    let browser = Browser::new(&server);
    for (query, meant) in [("reson=dns", "did you mean `reason`?"), ("pipelines=shop&sort=oldest", "`pipeline`?")] {
        let page = browser.get(&format!("/letters?{query}")).await;
        assert_eq!(page.status, 400, "{query}");
        assert!(page.text().contains(meant), "{query}: {}", page.text());
        let told = server.get(&format!("/letters?{query}")).await;
        assert_eq!(told.refused(), (400, "invalid".to_owned()), "{query}");
        assert!(String::from_utf8_lossy(&told.body).contains(meant), "{told:?}");
    }
    assert_eq!(browser.get("/letters?reason=dns&sort=oldest&said=discard&about=3").await.status, 200);
}

#[tokio::test]
async fn wrong_addresses_and_filters_are_pages_that_keep_the_filters_and_lead_on() {
    let (server, _) = with_letters(1).await;
    let browser = Browser::new(&server);
    let refused = async |path: &str| {
        let answer = browser.get(path).await;
        let page = answer.text();
        assert!(matches!(answer.status, 400 | 404), "{path}: {} {page}", answer.status);
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{path}: {page}");
        assert!(page.contains("aria-label=\"Main\""), "{path} has what every page has: {page}");
        page
    };
    for (path, way) in [
        ("/causes/zzz", "<a class=\"button\" href=\"/causes\">All causes</a>"),
        ("/causes/zzz/change?verb=mute", "All causes"),
        ("/letters/zzz", "<a class=\"button\" href=\"/letters\">All letters</a>"),
        ("/letters/zzz/retry?from=suited", "All letters"),
        ("/letters/zzz/har", "All letters"),
        ("/replays/zzz", "<a class=\"button\" href=\"/replays\">All replays</a>"),
        ("/replays/zzz/change?verb=pause", "All replays"),
        ("/pipelines/a%20b", "All pipelines"),
        ("/payloads/zzz/rendered", "Overview"),
    ] {
        let page = refused(path).await;
        assert!(page.contains(way), "{path}: {page}");
        assert!(!page.contains("{\"error\""), "{path}: {page}");
    }
    for path in [
        "/letters?gate=wide",
        "/letters?since=never",
        "/letters?sort=x",
        "/letters?cause=zzz",
        "/letters/discard?gate=wide",
        "/replays/new?gate=wide",
        "/causes?tab=x",
        "/causes?sort=x",
        "/replays?state=x",
        "/alerts?state=x",
        "/activity?since=never",
    ] {
        let page = refused(&format!("{path}&reason=dns&text=a+b")).await;
        let (name, value) = path.split_once('?').and_then(|(_, query)| query.split_once('=')).expect("a filter");
        assert!(page.contains(&format!("name=\"{name}\" value=\"{value}\"")), "{path} can be changed: {page}");
        assert!(page.contains(&format!("Drop the filter {name}")), "{path}: {page}");
        assert!(
            page.contains("name=\"text\" value=\"a b\"") && page.contains("Drop the filter reason"),
            "{path}: {page}"
        );
    }
    let unknown = refused("/letters?cause=ffffffff&reason=dns").await;
    assert!(unknown.contains("href=\"/letters?reason=dns\""), "it is dropped without the other: {unknown}");
    assert_eq!(server.get("/causes/zzz").await.refused(), (400, "invalid".to_owned()));
}

#[tokio::test]
async fn commands_to_copy_begin_with_where_their_reader_finds_the_server() {
    let place = " --store sqlite:jobs.db".to_owned();
    let options = Options { place, ..Options::listening(([127, 0, 0, 1], 0).into()) };
    let server = Running::with_options(options).await;
    for message in ["price is gone", "title is gone"] {
        server.report("shop", json!({ "url": "https://shop.example/p/1", "of": message }), message).await;
    }
    let causes = server.get("/causes").await.ok();
    let [one, other] = [0, 1].map(|n| causes["items"][n]["id"].as_str().expect("a cause").to_owned());
    let letter = server.get("/letters").await.ok()["items"][0]["id"].as_str().expect("an id").to_owned();
    let browser = Browser::new(&server);
    let more = [
        format!("/causes/{one}"),
        format!("/causes/{one}/change?verb=mute"),
        format!("/letters/{letter}"),
        format!("/letters/{letter}/retry?from=suited"),
        "/letters/discard?pipeline=shop".to_owned(),
        "/replays/new?pipeline=shop".to_owned(),
        "/pipelines/shop".to_owned(),
        "/pipelines/shop/pause".to_owned(),
    ];
    let mut pages = Vec::new();
    for path in PAGES.map(str::to_owned).into_iter().chain(more) {
        pages.push((browser.page(&path).await, path));
    }
    let ticked = [("verb", "merge"), ("id", &*one), ("id", &*other)];
    let form = Form::of(&browser.page("/causes").await, "/causes/change");
    let merge = Form { action: "/causes/ask".to_owned(), ..form };
    pages.push((browser.post(&merge, &ticked).await.text(), "merge".to_owned()));
    let mut seen = 0;
    for (page, path) in pages {
        for folded in page.split("<details class=\"cli\"").skip(1) {
            let folded = folded.split("</details>").next().unwrap_or_default();
            let lines = folded.split("<code").skip(1).filter_map(|code| code.split('>').nth(1)?.split('<').next());
            for line in lines.flat_map(|line| line.split(" &amp;&amp; ")) {
                seen += 1;
                assert!(line.starts_with("redrive --store sqlite:jobs.db "), "{path}: {line}");
                assert_eq!(line.matches("--store").count(), 1, "{path}: {line}");
            }
            let of_script = folded.split("data-line=\"").skip(1);
            of_script.for_each(|line| assert!(line.starts_with("redrive --store sqlite:jobs.db "), "{path}: {line}"));
        }
    }
    assert!(seen > 20, "{seen}");
}

#[tokio::test]
async fn the_style_and_the_scripts_are_kept_for_good() {
    let server = Running::start().await;
    let browser = Browser::new(&server);
    let page = browser.page("/").await;
    let assets: Vec<&str> = page.split('"').filter(|part| part.starts_with("/assets/")).collect();
    assert_eq!(assets.len(), 7, "{assets:?}");
    for asset in assets {
        let answer = browser.get(asset).await;
        assert_eq!(answer.status, 200, "{asset}");
        assert!(answer.header("cache-control").expect("kept").contains("immutable"), "{asset}");
    }
    assert_eq!(browser.get("/assets/live-0000000000.js").await.status, 404);
}

#[tokio::test]
async fn a_form_of_another_site_does_nothing() {
    let (server, cause) = with_letters(1).await;
    let browser = Browser::new(&server);
    let page = browser.page(&format!("/causes/{cause}")).await;
    let action = format!("/causes/{cause}/change");
    let form = Form::of(&page, &action);
    let without = [("verb", "resolve"), ("key", "k")];
    assert_eq!(browser.send("POST", &action, &without).await.status, 403, "it carries nothing of ours");
    let stranger = Browser::another(&server).await;
    assert_eq!(stranger.post(&form, &[("verb", "resolve")]).await.status, 403, "it was made for somebody else");
    let host = server.address;
    let body = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(&form.hidden)
        .append_pair("verb", "resolve")
        .finish();
    let head = format!(
        "POST {action} HTTP/1.1\r\nhost: {host}\r\norigin: https://evil.example\r\ncookie: {}\r\ncontent-type: application/x-www-form-urlencoded",
        browser.cookie().expect("a cookie")
    );
    assert_eq!(server.send(&head, body.as_bytes()).await.status, 403, "another origin");
    let head = head
        .replace(&format!("host: {host}"), "host: evil.example")
        .replace("https://evil.example", "http://evil.example");
    assert_eq!(server.send(&head, body.as_bytes()).await.status, 403, "another host");
    assert_eq!(server.get(&format!("/causes/{cause}")).await.ok()["state"], "new", "nothing was written");
    assert_eq!(server.get("/activity").await.ok()["items"], json!([]));
}

#[tokio::test]
async fn what_can_be_taken_back_is_done_at_once_with_an_undo() {
    let (server, cause) = with_letters(1).await;
    let browser = Browser::new(&server);
    let (path, action) = (format!("/causes/{cause}"), format!("/causes/{cause}/change"));
    let state = async || server.get(&path).await.ok()["state"].as_str().map(str::to_owned);
    let page = browser.page(&path).await;
    let done = browser.submit(&page, &action, &[("verb", "resolve")]).await;
    assert_eq!(state().await.as_deref(), Some("resolved"));
    let page = browser.page(done.leads_to()).await;
    assert!(page.contains("Undo") && page.contains("Resolved; if it comes back"), "{page}");
    let undo = Form::of(&page[page.find("class=\"said\"").expect("said")..], "/causes/change");
    let back = browser.post(&undo, &[]).await;
    assert!(browser.page(back.leads_to()).await.contains("Taken back."));
    assert_eq!(state().await.as_deref(), Some("new"));
    let again = browser.page(done.leads_to()).await;
    assert!(!again.contains("Resolved; if it comes back"), "an old address claims nothing: {again}");
    let activity = server.get("/activity").await.ok();
    assert_eq!(activity["items"][0]["by"]["via"], "web", "{activity}");
}

#[tokio::test]
async fn a_replay_is_started_once_however_often_its_form_is_sent() {
    let (server, cause) = with_letters(3).await;
    let browser = Browser::new(&server);
    let page = browser.page(&format!("/replays/new?cause={cause}")).await;
    assert!(page.contains("Replay 3 letters"), "{page}");
    let form = Form::of(&page, "/replays/start");
    let filled = [("name", "again"), ("from", "suited"), ("ramp", "1, 5"), ("refail_max", "25.0 %")];
    let first = browser.post(&form, &filled).await;
    let second = browser.post(&form, &filled).await;
    assert_eq!(first.leads_to(), second.leads_to());
    let replays = server.get("/replays").await.ok();
    assert_eq!(replays["items"].as_array().map(Vec::len), Some(1), "{replays}");
    assert_eq!(replays["items"][0]["progress"]["total"], 3);
    let replay = browser.page(first.leads_to()).await;
    assert!(replay.contains("again") && replay.contains("No worker takes letters of shop"), "{replay}");
    let action = format!("{}/change", first.leads_to());
    let asked = browser.page(&format!("{action}?verb=cancel")).await;
    assert!(asked.contains("leave 3 dead"), "{asked}");
    let back = browser.submit(&asked, &action, &[]).await;
    assert!(browser.page(back.leads_to()).await.contains("Cancelled"));
    server.audit().await;
}

#[tokio::test]
async fn what_was_looked_at_is_what_is_sent() {
    let (server, cause) = with_letters(3).await;
    let browser = Browser::new(&server);
    let form = Form::of(&browser.page(&format!("/replays/new?cause={cause}")).await, "/replays/start");
    let again = Form::of(&browser.page(&format!("/replays/new?cause={cause}")).await, "/replays/start");
    // One dies after the page was made: it is left out.
    server.report("shop", json!({ "url": "https://shop.example/p/new" }), "price is <b>gone</b>").await;
    let started = browser.post(&form, &[]).await;
    let page = browser.page(started.leads_to()).await;
    assert!(page.contains("1 letter that died meanwhile was left out"), "{page}");
    let replays = server.get("/replays").await.ok();
    assert_eq!(replays["items"][0]["progress"]["total"], 3);
    let id = started.leads_to().trim_start_matches("/replays/").split('?').next().expect("an id").to_owned();
    server.post(&format!("/replays/{id}/cancel"), json!({})).await.ok();
    // Two are given up meanwhile: the form comes back.
    let letters = server.get("/letters").await.ok();
    let ids: Vec<_> =
        letters["items"].as_array().expect("letters")[2..].iter().map(|letter| letter["id"].clone()).collect();
    server.post("/letters/discard", json!({ "letters": { "ids": ids }, "why": "old" })).await.ok();
    let asks = browser.post(&again, &[]).await;
    assert_eq!(asks.status, 200);
    assert!(asks.text().contains("3 when you looked, 2 gone since, 1 newer left out"), "{}", asks.text());
    assert_eq!(server.get("/replays").await.ok()["items"].as_array().map(Vec::len), Some(1), "nothing was started");
}

#[tokio::test]
async fn many_letters_are_discarded_only_by_who_types_their_number() {
    let (server, cause) = with_letters(101).await;
    let browser = Browser::new(&server);
    let page = browser.page(&format!("/letters/discard?cause={cause}")).await;
    assert!(page.contains("Discard 101 letters"), "{page}");
    let form = Form::of(&page, "/letters/discard");
    assert_eq!(browser.post(&form, &[("why", "old")]).await.status, 400, "without the number");
    assert_eq!(browser.post(&form, &[("why", "old"), ("count", "100")]).await.status, 400, "with another");
    assert_eq!(browser.post(&form, &[("count", "101")]).await.status, 400, "without a reason");
    let dead = async || server.get("/status").await.ok()["pipelines"]["shop"]["dead"].as_i64();
    assert_eq!(dead().await, Some(101));
    let done = browser.post(&form, &[("why", "old"), ("count", "101")]).await;
    assert!(browser.page(done.leads_to()).await.contains("101 letters were discarded"));
    assert_eq!(dead().await, Some(0));
    server.audit().await;
}

#[tokio::test]
async fn targets_and_pipelines_are_held_paused_and_let_go() {
    let (server, _) = with_letters(1).await;
    let browser = Browser::new(&server);
    let ask = browser.page("/breakers/turn?verb=hold&target=shop.example&pipeline=shop").await;
    browser.submit(&ask, "/breakers/turn", &[("why", "they asked us to"), ("until", "2h")]).await.leads_to();
    assert!(browser.page("/").await.contains("held by local: they asked us to"));
    let ask = browser.page("/breakers/turn?verb=close&target=shop.example&pipeline=shop").await;
    browser.submit(&ask, "/breakers/turn", &[]).await.leads_to();
    assert!(!browser.page("/").await.contains("Held targets"));
    let ask = browser.page("/pipelines/shop/pause").await;
    browser.submit(&ask, "/pipelines/shop/pause", &[("why", "it moves")]).await.leads_to();
    assert!(browser.page("/letters").await.contains("is paused by local"), "a banner is everywhere");
    let page = browser.page("/pipelines/shop").await;
    browser.submit(&page, "/pipelines/shop/resume", &[]).await.leads_to();
    assert!(!browser.page("/letters").await.contains("is paused by"));
}

#[tokio::test]
async fn one_letter_is_sent_again_with_another_input() {
    let (server, _) = with_letters(1).await;
    let browser = Browser::new(&server);
    let id = server.get("/letters").await.ok()["items"][0]["id"].as_str().expect("an id").to_owned();
    let (edit, retry) = (format!("/letters/{id}/edit"), format!("/letters/{id}/retry"));
    let page = browser.page(&format!("/letters/{id}")).await;
    for (sent, why) in [("{", "this is no JSON"), ("{}", "url is missing"), ("[]", "an input is an object")] {
        let again = browser.submit(&page, &edit, &[("input", sent)]).await.text();
        assert!(again.contains(why) && again.contains("See what changes"), "{again}");
    }
    let same = browser.submit(&page, &edit, &[("input", r#"{"url": "https://shop.example/p/0"}"#)]).await.text();
    assert!(same.contains("nothing is different"), "{same}");
    let asked = browser.submit(&page, &edit, &[("input", r#"{"url": "https://shop.example/p/other"}"#)]).await.text();
    assert!(asked.contains("- url: &quot;https://shop.example/p/0&quot;"), "{asked}");
    assert!(asked.contains("+ url: &quot;https://shop.example/p/other&quot;"), "{asked}");
    assert_eq!(server.get("/replays").await.ok()["items"], json!([]), "nothing happened yet");
    let changed = browser.submit(&asked, &retry, &[]).await;
    let replay = browser.page(changed.leads_to()).await;
    assert!(replay.contains("p/other"), "{replay}");
    // Whoever looks after the store sends it.
    server.until(&format!("/jobs/{id}"), |job| job["input"]["url"] == "https://shop.example/p/other").await;
}

#[tokio::test]
async fn who_may_only_look_sees_what_they_may_not_do() {
    let (server, cause) = with_letters(1).await;
    let boss = server.token("boss", Role::Admin, &[]).await;
    let viewer = server.token("eve", Role::Viewer, &[]).await;
    let browser = Browser::signed_in(&server, &viewer).await;
    let page = browser.page(&format!("/causes/{cause}")).await;
    assert!(page.contains("needs operator; you are viewer"), "{page}");
    let form = Form::of(&page, "/logout");
    let token = form.hidden.iter().find(|(name, _)| name == "form").expect("a token").1.clone();
    let action = format!("/causes/{cause}/change");
    for (path, verb) in [
        (action.as_str(), "resolve"),
        ("/replays/start", ""),
        ("/letters/discard", ""),
        ("/settings/tokens/create", ""),
    ] {
        let answer = browser
            .send(
                "POST",
                path,
                &[
                    ("form", &token),
                    ("key", "k"),
                    ("verb", verb),
                    ("cause", &cause),
                    ("name", "x"),
                    ("role", "admin"),
                    ("why", "x"),
                ],
            )
            .await;
        assert_eq!(answer.status, 403, "{path}");
    }
    let shown = server.ask_as(Some(&boss), &format!("GET /causes/{cause}"), &[], None).await.ok();
    assert_eq!(shown["state"], "new");
}

#[tokio::test]
async fn who_is_let_near_some_pipelines_sees_no_others() {
    let (server, cause) = with_letters(2).await;
    server.report("cart", json!({ "url": "https://cart.example/1" }), "basket is lost").await;
    server.token("boss", Role::Admin, &[]).await;
    let some = server.token("cart-only", Role::Operator, &["cart"]).await;
    let browser = Browser::signed_in(&server, &some).await;
    for path in ["/", "/causes?tab=all", "/letters", "/pipelines", "/alerts", "/replays", "/activity"] {
        let page = browser.page(path).await;
        assert!(!page.contains("shop") && !page.contains("price is"), "{path}: {page}");
    }
    assert!(browser.page("/causes?tab=all").await.contains("basket is lost"));
    for path in [
        format!("/causes/{cause}"),
        "/pipelines/shop".into(),
        "/?pipeline=shop".into(),
        format!("/replays/new?cause={cause}"),
        "/activity?pipeline=shop".into(),
    ] {
        assert_eq!(browser.get(&path).await.status, 403, "{path}");
    }
    let refused = browser.get(&format!("/causes/{cause}")).await.text();
    assert!(!refused.contains("shop"), "whose a number is stays untold: {refused}");
    let causes = server.ask_as(Some(&some), "GET /causes", &[], None).await.ok();
    let own = causes["items"][0]["id"].as_str().expect("an id").to_owned();
    assert!(browser.page(&format!("/replays/new?cause={own}")).await.contains("Replay 1 dead letter<"), "their own");
    let found = browser.page(&format!("/letters?cause={own}&text=basket")).await;
    assert!(found.contains("basket is lost") && found.contains("looked at all 1<"), "of their own: {found}");
    assert_eq!(browser.get(&format!("/letters?cause={cause}&text=price")).await.status, 403);
}

#[tokio::test]
async fn what_was_done_is_found_wherever_it_is_and_can_be_taken_back() {
    let (server, cause) = with_letters(1).await;
    let browser = Browser::new(&server);
    let (path, change) = (format!("/causes/{cause}"), format!("/causes/{cause}/changes"));
    server.post(&change, json!({ "verb": "mute", "until": "2h" })).await.ok();
    for n in 0..60 {
        server.post(&change, json!({ "verb": "note", "text": format!("note {n}") })).await.ok();
    }
    let found = browser.page("/activity?verb=mute").await;
    assert!(found.contains("mute <a href=") && !found.contains("note 1"), "it is beyond the first page: {found}");
    assert!(browser.page("/activity?object=replay").await.contains("Nobody did anything like that"));
    server.post(&change, json!({ "verb": "resolve" })).await.ok();
    let page = browser.page("/activity").await;
    browser.submit(&page, &format!("{path}/change"), &[]).await.leads_to();
    assert_ne!(server.get(&path).await.ok()["state"], "resolved", "it was taken back");
}

#[tokio::test]
async fn several_causes_are_merged_replayed_and_discarded_after_a_look() {
    let (server, cause) = with_letters(2).await;
    server.report("shop", json!({ "url": "https://shop.example/x" }), "basket is lost").await;
    let browser = Browser::new(&server);
    let causes = server.get("/causes").await.ok();
    let other = causes["items"].as_array().expect("causes").iter().find(|one| one["id"] != cause.as_str());
    let other = other.expect("another")["id"].as_str().expect("an id").to_owned();
    let page = browser.page("/causes").await;
    let form = Form { action: "/causes/ask".to_owned(), ..Form::of(&page, "/causes/change") };
    let one = browser.post(&form, &[("verb", "replay"), ("id", &cause)]).await;
    assert_eq!(one.leads_to(), format!("/replays/new?cause={cause}"));
    let both = browser.post(&form, &[("verb", "discard"), ("id", &cause), ("id", &other)]).await.text();
    assert!(both.contains("3 letters of 2 causes"), "{both}");
    assert!(both.contains(&format!("/letters/discard?cause={other}")), "{both}");
    let alone = browser.post(&form, &[("verb", "merge"), ("id", &cause)]).await;
    assert_eq!(alone.leads_to(), format!("/causes/{cause}/change?verb=merge"), "into which is asked there");
    let asked = browser.post(&form, &[("verb", "merge"), ("id", &cause), ("id", &other)]).await.text();
    assert!(asked.contains(&format!("redrive cause merge {other} {cause}")), "{asked}");
    let mut merge = Form::of(&asked, "/causes/change");
    merge.hidden.retain(|(name, _)| name != "back");
    browser.post(&merge, &[]).await.leads_to();
    assert_eq!(server.get(&format!("/causes/{cause}")).await.ok()["dead"], 3);
    assert!(browser.page("/causes?tab=all").await.contains("Causes 1 to 1"));
    assert_eq!(browser.get("/causes?cursor=x").await.status, 400);
}
