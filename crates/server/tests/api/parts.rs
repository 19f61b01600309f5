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
        (&letter, "replays_of", "replays-of", "Replays of it"),
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

/// Refuses a verb, and looks at the part that cannot be read then; `others` are still there.
async fn breaks(server: &Running, path: &str, verb: &str, (name, title): (&str, &str), others: &[&str]) {
    let whole = page(server, path).await;
    assert!(!whole.contains("cannot be shown"), "{path}: {whole}");
    server.refuse(&[verb]);
    let broken = page(server, path).await;
    server.refuse(&[]);
    let at = broken.find(&format!("id=\"failed-{name}\"")).unwrap_or_else(|| panic!("{path} without {verb}: {broken}"));
    let part = &broken[at..broken.len().min(at + 900)];
    assert!(part.contains(title) && part.contains("the disk of the store is full"), "{part}");
    assert!(part.contains(&format!("<a href=\"{path}\">Retry</a>")), "{part}");
    for other in others {
        assert!(broken.contains(other), "{path} without {verb} has no {other}: {broken}");
    }
}

#[tokio::test]
async fn an_overview_loses_no_more_than_what_cannot_be_read() {
    let (server, ..) = with_letters().await;
    let letters = json!({ "letters": { "pipeline": "shop" }, "from": "refetch" });
    server.post("/replays", letters).await.ok();
    let lately = "tasks died in 10 min";
    for (verb, part, others) in [
        ("busiest_causes", ("lately", "Lately"), vec!["SelectorNotFound", "pipeline-shop", "Open replays"]),
        ("list_alerts", ("needs", "Needs you"), vec![lately, "pipeline-shop", "Open replays"]),
        ("list_workers", ("pl", "Pipelines"), vec!["SelectorNotFound", "Open replays"]),
        ("list_breakers", ("held", "Held targets"), vec!["SelectorNotFound", "Open replays"]),
        ("list_replays", ("rr", "Open replays"), vec![lately, "pipeline-shop"]),
    ] {
        breaks(&server, "/", verb, part, &others).await;
    }
    breaks(&server, "/pipelines", "list_workers", ("pl", "Pipelines"), &["redrive pipeline list"]).await;
}

#[tokio::test]
async fn a_replay_loses_no_more_than_what_cannot_be_read() {
    let (server, ..) = with_letters().await;
    let letters = json!({ "letters": { "pipeline": "shop" }, "from": "refetch" });
    let replay = server.post("/replays", letters).await.ok();
    let path = format!("/replays/{}", replay["replay"]["id"].as_str().unwrap_or_else(|| panic!("{replay}")));
    let always = ["Change rate…", "Choice", "Nothing has come to its end yet."];
    for (verb, part, other) in [
        ("list_replay_letters", ("ramp", "Steps"), "Verdicts"),
        ("list_replay_letters", ("letters", "Letters"), "Verdicts"),
        ("joined_since", ("verdicts", "Verdicts"), "Of its letters"),
        ("list_workers", ("awaited", "What it waits for"), "Of its letters"),
    ] {
        breaks(&server, &path, verb, part, &always).await;
        breaks(&server, &path, verb, part, &[other]).await;
    }
}

#[tokio::test]
async fn alerts_letters_and_pipelines_lose_no_more_than_what_cannot_be_read() {
    let (server, ..) = with_letters().await;
    breaks(&server, "/alerts", "list_alerts", ("alerts-of", "Alerts"), &["Who is told", "Rules"]).await;
    breaks(&server, "/alerts", "list_sinks", ("sinks", "Who is told"), &["Which alerts", "Rules"]).await;
    breaks(&server, "/alerts", "counts", ("rules", "Rules"), &["Which alerts", "Who is told"]).await;
    breaks(&server, "/letters", "list_dead", ("letters-of", "Letters"), &["filter-reason", "All letters"]).await;
    let always = ["Where its tasks are", "Pause…"];
    for (verb, part, other) in [
        ("counts", ("standing", "Where it stands"), "Policy as effective"),
        ("counts", ("hours", "Hours"), "Policy as effective"),
        ("list_breakers", ("held", "Held targets"), "Hours"),
        ("traffic", ("targets", "Targets"), "Policy as effective"),
        ("traffic", ("proxies", "Proxies"), "Policy as effective"),
        ("coverage", ("coverage", "Fields found"), "No worker knows this pipeline."),
        ("list_definitions", ("policy", "Policy as effective"), "No worker knows this pipeline."),
    ] {
        breaks(&server, "/pipelines/shop", verb, part, &[always[0], always[1], other]).await;
    }
    for (path, status) in [("/letters?since=never", 400), ("/letters?cause=ffffffff", 404), ("/alerts?state=odd", 400)]
    {
        assert_eq!(server.get(&format!("~{path}")).await.status, status, "{path} is no error of a part");
    }
}
