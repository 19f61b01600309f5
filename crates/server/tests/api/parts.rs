//! Errors in one part of a page: the part says so in its place, and the rest of the page stays.

use serde_json::json;

use crate::running::Running;

async fn page(server: &Running, path: &str) -> String {
    let answer = server.get(&format!("~{path}")).await;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!(answer.status, 200, "{path}: {text}");
    text
}

/// A server with some letters of one cause: its page, and that of a letter.
async fn with_letters() -> (Running, String, String) {
    let server = Running::start().await;
    let mut id = String::new();
    for number in 0..6 {
        let url = format!("https://shop.example/products/{number}");
        id = server.report("shop", json!({ "url": url }), "SelectorNotFound: .price").await;
    }
    let causes = server.get("/causes").await.ok();
    let cause = causes["items"][0]["id"].as_str().expect("a cause").to_owned();
    (server, format!("/causes/{cause}"), format!("/letters/{id}"))
}

#[tokio::test]
async fn a_part_that_cannot_be_read_says_so_and_the_rest_of_the_page_stays() {
    let (server, cause, letter) = with_letters().await;
    let parts = [
        (&cause, "cause_facets", "different", "What is different"),
        (&cause, "cause_hours", "when", "When"),
        (&cause, "list_dead", "letters", "Letters"),
        (&letter, "replays_of", "edits", "Edits"),
    ];
    for (path, verb, name, title) in parts {
        let whole = page(&server, path).await;
        assert!(!whole.contains("cannot be shown"), "{path}: {whole}");
        server.refuse(&[verb]);
        let broken = page(&server, path).await;
        let at = broken.find(&format!("id=\"failed-{name}\"")).unwrap_or_else(|| panic!("{verb}: {broken}"));
        let part = &broken[at..broken.len().min(at + 900)];
        assert!(part.contains(title) && part.contains("the disk of the store is full"), "{part}");
        assert!(part.contains(&format!("<a href=\"{path}\">Retry</a>")), "{part}");
        assert!(!broken.contains("/secret/place"), "{broken}");
        for other in ["What broke", "SelectorNotFound: .price", "shop.example"] {
            assert!(broken.contains(other), "without {verb} there is no {other}: {broken}");
        }
        server.refuse(&[]);
    }
}

#[tokio::test]
async fn a_header_that_cannot_be_read_takes_no_page_with_it() {
    let (server, cause, _) = with_letters().await;
    assert!(page(&server, &cause).await.contains("counts add up"));
    server.refuse(&["pauses"]);
    let broken = page(&server, &cause).await;
    assert!(
        broken.contains("numbers up here</span> cannot be read") && broken.contains("SelectorNotFound"),
        "{broken}"
    );
    assert!(!broken.contains("counts add up"), "nobody looked: {broken}");
    assert!(broken.contains("<option value=\"shop\" selected>"), "the page is about one pipeline still: {broken}");
}

#[tokio::test]
async fn what_went_wrong_is_a_page_that_may_load_its_style() {
    let (server, ..) = with_letters().await;
    for (path, status) in
        [("/nothing", 404), ("/causes/ffffffff", 404), ("/letters?since=never", 400), ("/login/x", 404)]
    {
        let answer = server.get(&format!("~{path}")).await;
        assert_eq!(answer.status, status, "{path}");
        let policy = answer.header("content-security-policy").unwrap_or_default();
        assert!(policy.contains("style-src 'self'") && policy.contains("script-src 'self'"), "{path}: {policy}");
    }
}

/// Without its cause a page has nothing to say.
#[tokio::test]
async fn a_page_that_cannot_be_read_at_all_is_an_error() {
    let (server, cause, _) = with_letters().await;
    server.refuse(&["get_cause"]);
    assert_eq!(server.get(&format!("~{cause}")).await.status, 503);
}
