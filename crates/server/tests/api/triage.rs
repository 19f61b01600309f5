//! Causes on their pages: who needs somebody, what is done to several at once, and taking that back.

use std::sync::Arc;
use std::time::Duration;

use redrive::clock::TestClock;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;
use serde_json::{Value, json};

use crate::browsing::{Browser, Form};
use crate::running::Running;

/// A cause of its own, with so many letters.
async fn cause(server: &Running, pipeline: &str, message: &str, letters: usize) -> String {
    for n in 0..letters {
        server.report(pipeline, json!({ "n": n, "of": message }), message).await;
    }
    let causes = server.get(&format!("/causes?limit=1000&pipeline={pipeline}")).await.ok();
    let found = causes["items"].as_array().expect("causes").iter().find(|one| one["title"] == message);
    found.unwrap_or_else(|| panic!("no {message} in {causes}"))["id"].as_str().expect("an id").to_owned()
}

async fn change(server: &Running, id: &str, body: Value) -> Value {
    server.post(&format!("/causes/{id}/changes"), body).await.ok()
}

/// The form by which what was just done is taken back.
fn undo(page: &str) -> Form {
    let at = page.find("class=\"said\"").unwrap_or_else(|| panic!("nothing is said: {page}"));
    Form::of(&page[at..], "/causes/change")
}

/// The words that a cause is of: without digits, which are the same cause.
fn word(n: usize) -> String {
    let letter = |n: usize| char::from(b'a' + u8::try_from(n % 26).expect("a letter"));
    format!("lost{}{}", letter(n / 26), letter(n))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_somebody_is_found_behind_what_does_not() {
    let clock = Arc::new(TestClock::at(Timestamp::from_millis(1_800_000_000_000)));
    let server = Running::on_clock(Arc::clone(&clock)).await;
    for n in 0..101 {
        let id = cause(&server, "shop", &word(n), 2).await;
        change(&server, &id, json!({ "verb": "assign", "owner": "ada" })).await;
    }
    clock.advance(Duration::from_secs(3 * 86_400));
    let new = cause(&server, "cart", "basket is lost", 1).await;
    let browser = Browser::new(&server);
    for path in ["/", "/causes", "/?pipeline=cart", "/causes?pipeline=cart"] {
        let page = browser.page(path).await;
        assert!(page.contains(&format!("id=\"cause-{new}\"")), "{path}: {page}");
    }
    assert!(browser.page("/causes").await.contains("Causes<b>1</b>"), "the others are looked after");
    let page = browser.page("/causes?tab=all").await;
    assert!(page.contains("<b>100+</b>") && page.contains("Next 100"), "{page}");
    server.token("boss", Role::Admin, &[]).await;
    let some = server.token("carts", Role::Viewer, &["cart*", "mill"]).await;
    let limited = Browser::signed_in(&server, &some).await;
    for path in ["/causes", "/causes?tab=all"] {
        let page = limited.page(path).await;
        assert!(page.contains("basket is lost") && !page.contains("lostaa"), "{path}: {page}");
    }
    assert!(limited.page("/letters").await.contains("basket is lost"));
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_of_some_pipelines_are_found_behind_those_of_others() {
    let server = Running::start().await;
    server.report("cart", json!({ "n": 1 }), "basket is lost").await;
    for n in 0..60 {
        server.report("shop", json!({ "n": n }), "price is gone").await;
    }
    server.token("boss", Role::Admin, &[]).await;
    let some = server.token("carts", Role::Viewer, &["cart*", "mill"]).await;
    let page = Browser::signed_in(&server, &some).await.page("/letters").await;
    assert!(page.contains("basket is lost") && !page.contains("price is gone"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_most_urgent_causes_are_named_first() {
    let clock = Arc::new(TestClock::at(Timestamp::from_millis(1_800_000_000_000)));
    let server = Running::on_clock(Arc::clone(&clock)).await;
    for n in 0..6 {
        cause(&server, "shop", &word(n), 3).await;
    }
    clock.advance(Duration::from_secs(3 * 86_400));
    let new = cause(&server, "shop", "basket is lost", 1).await;
    let page = Browser::new(&server).page("/").await;
    let todo = &page[page.find("id=\"todo\"").expect("a list")..];
    let first = todo.find("<li id=\"cause-").expect("a cause");
    assert!(todo[first..].starts_with(&format!("<li id=\"cause-{new}\"")), "{todo}");
    assert!(page.contains("2 more causes"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_to_several_causes_is_said_and_taken_back() {
    let server = Running::start().await;
    let one = cause(&server, "shop", "price is gone", 1).await;
    let other = cause(&server, "shop", "basket is lost", 1).await;
    change(&server, &other, json!({ "verb": "assign", "owner": "bob" })).await;
    let browser = Browser::new(&server);
    let both = [("id", one.as_str()), ("id", other.as_str())];
    let owners = async || {
        let mut owners = Vec::new();
        for id in [&one, &other] {
            owners.push(server.get(&format!("/causes/{id}")).await.ok()["owner"].as_str().map(str::to_owned));
        }
        owners
    };
    let form = Form::of(&browser.page("/causes?tab=all").await, "/causes/change");
    let done = browser.post(&form, &[("verb", "assign"), both[0], both[1]]).await;
    let page = browser.page(done.leads_to()).await;
    assert!(page.contains("2 causes assigned to you."), "{page}");
    assert!(!page.contains("did=%7B") && !page.contains("about=2"), "links do not carry that on: {page}");
    assert_eq!(owners().await, [Some("local".into()), Some("local".into())]);
    let back = browser.post(&undo(&page), &[]).await;
    assert!(browser.page(back.leads_to()).await.contains("Taken back for 2 causes."));
    assert_eq!(owners().await, [None, Some("bob".into())]);
    let form = Form::of(&browser.page("/causes?tab=all").await, "/causes/change");
    let none = browser.post(&form, &[("verb", "resolve")]).await;
    assert!(browser.page(none.leads_to()).await.contains("No cause is ticked"));
    let ask = Form { action: "/causes/ask".into(), ..form };
    let asked = browser.post(&ask, &[("verb", "mute"), both[0], both[1]]).await.text();
    assert!(
        asked.contains("Mute 2 causes?") && asked.contains(&format!("redrive cause mute {one} {other}")),
        "{asked}"
    );
    let mut mute = Form::of(&asked, "/causes/change");
    mute.hidden.retain(|(name, _)| name != "back");
    let done = browser.post(&mute, &[("until", "2h"), ("per_hour", "7")]).await;
    assert!(browser.page(done.leads_to()).await.contains("2 causes muted."));
    let muted = server.get(&format!("/causes/{one}")).await.ok();
    assert_eq!((&muted["state"], &muted["mute"]["per_hour"]), (&json!("muted"), &json!(7)), "{muted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn undo_brings_back_what_was_and_nothing_that_others_changed_since() {
    let server = Running::start().await;
    let id = cause(&server, "shop", "price is gone", 1).await;
    let (path, action) = (format!("/causes/{id}"), format!("/causes/{id}/change"));
    let browser = Browser::new(&server);
    let act = async |verb: &str| {
        let page = browser.page(&path).await;
        let done = browser.submit(&page, &action, &[("verb", verb), ("owner", "")]).await;
        browser.page(done.leads_to()).await
    };
    change(&server, &id, json!({ "verb": "mute", "until": "7d", "per_hour": 20 })).await;
    let muted = server.get(&path).await.ok()["mute"].clone();
    for verb in ["unmute", "resolve"] {
        let page = act(verb).await;
        browser.post(&undo(&page), &[]).await.leads_to();
        let now = server.get(&path).await.ok();
        assert_eq!((&now["state"], &now["mute"]), (&json!("muted"), &muted), "{verb}: {now}");
    }
    change(&server, &id, json!({ "verb": "assign", "owner": "local" })).await;
    let given = act("assign").await;
    assert!(given.contains("Given back: nobody looks after it."), "{given}");
    // Somebody else takes it before that is taken back.
    change(&server, &id, json!({ "verb": "assign", "owner": "bob" })).await;
    let left = browser.post(&undo(&given), &[]).await;
    assert!(left.leads_to().contains("left=1"), "{}", left.leads_to());
    assert_eq!(server.get(&path).await.ok()["owner"], "bob");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_about_a_cause_that_others_changed_does_nothing_and_says_so() {
    let server = Running::start().await;
    let id = cause(&server, "shop", "price is gone", 1).await;
    let (path, action) = (format!("/causes/{id}"), format!("/causes/{id}/change"));
    let browser = Browser::new(&server);
    let seen = browser.page(&path).await;
    change(&server, &id, json!({ "verb": "note", "text": "it is the layout" })).await;
    let back = browser.submit(&seen, &action, &[("verb", "resolve")]).await;
    let page = browser.page(back.leads_to()).await;
    assert!(page.contains("Somebody changed it since you looked") && page.contains("it is the layout"), "{page}");
    assert_eq!(server.get(&path).await.ok()["state"], "new");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_is_taken_back_on_the_page_of_the_cause() {
    let server = Running::start().await;
    let one = cause(&server, "shop", "price is gone", 2).await;
    let other = cause(&server, "shop", "basket is lost", 1).await;
    let browser = Browser::new(&server);
    change(&server, &other, json!({ "verb": "merge", "into": one })).await;
    let page = browser.page(&format!("/causes/{one}")).await;
    let links = page.split('"').filter(|part| part.contains("change?verb=split&amp;of="));
    let links: Vec<String> = links.map(|link| link.replace("&amp;", "&")).collect();
    assert_eq!(links.len(), 2, "{page}");
    let asked = browser.page(links.last().expect("a link")).await;
    assert!(asked.contains("1 letter with messages like “basket is lost”"), "{asked}");
    assert!(asked.contains(&format!("redrive cause split {one} --key ")), "{asked}");
    let done = browser.submit(&asked, &format!("/causes/{one}/change"), &[]).await;
    let page = browser.page(done.leads_to()).await;
    assert!(page.contains("Split.") && page.contains(&format!("<a href=\"/causes/{other}\">the new cause")), "{page}");
    assert_eq!(server.get(&format!("/causes/{other}")).await.ok()["dead"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cause_says_how_many_died_of_how_many_and_since_when() {
    let clock = Arc::new(TestClock::at(Timestamp::from_millis(1_800_000_000_000)));
    let server = Running::on_clock(Arc::clone(&clock)).await;
    server.enqueue("shop", [json!({ "n": 1 })]).await;
    let leased = server.post("/leases", json!({ "pipelines": ["shop"] })).await.ok();
    let done = json!({ "lease": leased["leases"][0]["lease"], "verdict": "done" });
    let id = cause(&server, "shop", "price is gone", 3).await;
    server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": [done] })).await.ok();
    let next = cause(&server, "shop", "basket is lost", 1).await;
    let browser = Browser::new(&server);
    let page = browser.page(&format!("/causes/{id}")).await;
    assert!(page.contains("3 of 5 <small>tasks (60.0 %) from "), "{page}");
    assert!(page.contains("1 of 2 that need you") && page.contains(&format!("href=\"/causes/{next}\"")), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_of_causes_are_shown_and_dropped() {
    let server = Running::start().await;
    let id = cause(&server, "shop", "price is gone", 1).await;
    change(&server, &id, json!({ "verb": "resolve" })).await;
    let browser = Browser::new(&server);
    let all = browser.page("/causes?tab=all").await;
    assert!(all.contains("price is gone"), "what is resolved is one of all: {all}");
    let none = browser.page("/causes?tab=all&owner=bob&reason=dns").await;
    assert!(none.contains("No cause is like that.") && none.contains("Drop the filter owner"), "{none}");
    assert!(none.contains("Causes are not filtered by reason"), "{none}");
    assert!(browser.page("/?pipeline=nowhere").await.contains("No pipeline is called nowhere"));
    server.refuse(&["list_causes"]);
    let broken = browser.page("/causes?tab=all").await;
    assert!(broken.contains("id=\"failed-causes-of\"") && broken.contains(">Resolved</a>"), "{broken}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_look_is_told_so_where_it_can_be_read() {
    let server = Running::start().await;
    let id = cause(&server, "shop", "price is gone", 1).await;
    server.token("boss", Role::Admin, &[]).await;
    let viewer = server.token("eve", Role::Viewer, &[]).await;
    let browser = Browser::signed_in(&server, &viewer).await;
    let page = browser.page(&format!("/causes/{id}")).await;
    let menu = &page[page.find("Add a note…").expect("a menu")..];
    assert!(menu.starts_with("Add a note…</button><span class=\"fact\">needs operator; you are viewer"), "{menu}");
    for path in ["/causes", "/letters"] {
        let page = browser.page(path).await;
        assert!(page.contains("<span class=\"fact\">needs operator; you are viewer</span>"), "{path}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn causes_of_several_pipelines_are_not_offered_to_be_merged() {
    let server = Running::start().await;
    let one = cause(&server, "shop", "price is gone", 1).await;
    let other = cause(&server, "shop", "basket is lost", 1).await;
    let far = cause(&server, "cart", "basket is lost", 1).await;
    let browser = Browser::new(&server);
    let form = Form::of(&browser.page("/causes?tab=all").await, "/causes/change");
    let form = Form { action: "/causes/ask".to_owned(), ..form };
    let ask = async |ids: &[&String]| {
        let ids = ids.iter().map(|id| ("id", id.as_str()));
        browser.post(&form, &[("verb", "merge")].into_iter().chain(ids).collect::<Vec<_>>()).await
    };
    let apart = ask(&[&one, &far]).await;
    assert_eq!(apart.status, 200, "{}", apart.text());
    let said = apart.text();
    assert!(
        said.contains("These causes are not of one pipeline") && !said.contains("action=\"/causes/change\""),
        "{said}"
    );
    let together = ask(&[&one, &other]).await.text();
    assert!(together.contains("Merge 2 causes?") && together.contains("action=\"/causes/change\""), "{together}");
    let alone = ask(&[&one]).await;
    assert_eq!(alone.leads_to(), format!("/causes/{one}/change?verb=merge"));
    let asked = browser.page(alone.leads_to()).await;
    assert!(asked.contains(&format!("<option value=\"{other}\">")), "{asked}");
    assert!(!asked.contains(&format!("<option value=\"{far}\">")), "not one of another pipeline: {asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_question_names_the_cause_the_pipeline_and_the_number() {
    let server = Running::start().await;
    let id = cause(&server, "shop", "price is gone", 3).await;
    let other = cause(&server, "shop", "basket is lost", 2).await;
    let letters = server.get(&format!("/letters?cause={id}")).await.ok();
    let letter = letters["items"][0]["id"].as_str().expect("an id");
    let ids = letters["items"].as_array().expect("letters").iter().map(|one| one["id"].as_str().expect("an id"));
    let ticked = ids.map(|id| format!("id={id}")).collect::<Vec<_>>().join("&");
    let asked = json!({ "letters": { "cause": other }, "name": "by hand", "rate": "1/h" });
    let replay = server.post("/replays", asked).await.ok()["replay"]["id"].as_str().expect("an id").to_owned();
    let browser = Browser::new(&server);
    let title = "price is gone";
    let about = async |page: String, words: &[&str]| {
        let at = page.find("id=\"about\"").unwrap_or_else(|| panic!("nothing is said of what it is about: {page}"));
        let about = &page[at..at + page[at..].find("<form").or_else(|| page[at..].find("</main>")).expect("an end")];
        for word in words {
            assert!(about.contains(word), "{word}: {about}");
        }
    };
    let (dead, three) = ("3 dead letters", "3 letters");
    for verb in ["mute", "note", "merge", "split"] {
        about(browser.page(&format!("/causes/{id}/change?verb={verb}")).await, &[title, "pipeline shop", dead]).await;
    }
    for filter in [format!("cause={id}"), "text=price".to_owned(), ticked] {
        let words = [title, "pipeline shop: 3 letters", three];
        about(browser.page(&format!("/letters/discard?{filter}")).await, &words).await;
        about(browser.page(&format!("/replays/new?{filter}")).await, &words).await;
    }
    let all = [title, "basket is lost", "pipeline shop: 5 letters"];
    about(browser.page("/letters/discard?pipeline=shop").await, &all).await;
    about(browser.page(&format!("/letters/{letter}/retry")).await, &["letter #", title, "pipeline shop"]).await;
    about(
        browser.page(&format!("/replays/{replay}/change?verb=cancel")).await,
        &["by hand", "pipeline shop", "2 letters"],
    )
    .await;
    about(browser.page("/pipelines/shop/pause").await, &["pipeline shop", "queued", "running"]).await;
    let hold = "/breakers/turn?verb=hold&target=shop.example&pipeline=shop";
    about(browser.page(hold).await, &["target shop.example", "pipeline shop", "0 tasks held"]).await;
    let form = Form::of(&browser.page("/causes?tab=all").await, "/causes/change");
    let form = Form { action: "/causes/ask".to_owned(), ..form };
    for verb in ["mute", "merge"] {
        let asked = browser.post(&form, &[("verb", verb), ("id", &id), ("id", &other)]).await.text();
        about(asked, &[title, "basket is lost", "pipeline shop", dead]).await;
    }
}
