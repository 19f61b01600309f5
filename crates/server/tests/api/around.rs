//! What is around every page: places, the picker of pipelines, and pages of what went wrong, which lead on.

use serde_json::json;

use crate::browsing::Browser;
use crate::running::Running;

async fn with_letter() -> Running {
    let server = Running::start().await;
    server.report("shop", json!({ "url": "https://shop.example/1" }), "SelectorNotFound: .price").await;
    server
}

/// The page between two texts.
fn between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let begin = page.find(from).unwrap_or_else(|| panic!("no {from} in {page}"));
    page[begin..].split(to).next().expect("a part")
}

#[tokio::test]
async fn who_chose_a_pipeline_keeps_it_and_who_chooses_another_keeps_the_rest() {
    let server = with_letter().await;
    let browser = Browser::new(&server);
    let page = browser.page("/causes?tab=all&owner=ada&pipeline=shop&cursor=0&said=mute").await;
    let places = between(&page, "<nav class=\"tabs\"", "</nav>");
    for place in ["/?pipeline=shop", "/causes?pipeline=shop", "/letters?pipeline=shop", "/activity?pipeline=shop"] {
        assert!(places.contains(&format!("href=\"{place}\"")), "{place}: {places}");
    }
    assert!(places.contains("href=\"/alerts\"") && places.contains("href=\"/replays\""), "{places}");
    let picker = between(&page, "<form class=\"picker\"", "</form>");
    for (name, value) in [("tab", "all"), ("owner", "ada")] {
        assert!(picker.contains(&format!("name=\"{name}\" value=\"{value}\"")), "{name}: {picker}");
    }
    assert!(!picker.contains("cursor") && !picker.contains("said"), "{picker}");
    let cause = server.get("/causes").await.ok()["items"][0]["id"].as_str().expect("a cause").to_owned();
    let page = browser.page(&format!("/causes/{cause}?view=diff")).await;
    assert!(!between(&page, "<form class=\"picker\"", "</form>").contains("view"), "it is of another page");
    assert!(between(&page, "<nav class=\"tabs\"", "</nav>").contains("href=\"/causes\""), "nobody chose a pipeline");
}

#[tokio::test]
async fn a_mistake_leads_on_as_every_page_does() {
    let server = with_letter().await;
    let browser = Browser::new(&server);
    browser.page("/").await;
    for (path, status, place) in [("/causes/ffffffff", 404, "Causes"), ("/letters?since=never", 400, "Letters")] {
        let answer = browser.get(path).await;
        let page = answer.text();
        assert_eq!(answer.status, status, "{page}");
        assert!(page.contains("id=\"firing\"") && page.contains("role=\"search\""), "{page}");
        let current = format!("id=\"tab-{place}\" href=\"/{}\" aria-current=\"page\"", place.to_lowercase());
        assert!(page.contains(&current), "{current}: {page}");
        assert!(!page.contains("data-silent-ms"), "it is not brought up to date: {page}");
    }
    server.refuse(&["get_cause"]);
    let cause = server.get("/causes").await.ok()["items"][0]["id"].as_str().expect("a cause").to_owned();
    let broken = browser.get(&format!("/causes/{cause}")).await;
    assert_eq!(broken.status, 503);
    let page = broken.text();
    assert!(page.contains("id=\"tab-Alerts\"") && page.contains(">Retry</a>"), "{page}");
    server.refuse(&["change_cause"]);
    let list = browser.page("/causes").await;
    let sent = browser.submit(&list, "/causes/change", &[("verb", "resolve"), ("id", &cause)]).await;
    assert_eq!(sent.status, 503, "{}", sent.text());
    assert!(!sent.text().contains(">Retry</a>") && sent.text().contains("send the form again"), "{}", sent.text());
}
