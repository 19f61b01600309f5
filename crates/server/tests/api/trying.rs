//! Tries on the pages: they run beside them, are stopped, and say what came of them; what speaks against a replay is said.

use std::time::{Duration, Instant};

use redrive::contract::Beat;
use redrive_core::ids::WorkerId;
use redrive_core::workers::{Runs, TakesReplays};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::browsing::{Browser, Form};
use super::running::Running;

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The first letter is through at once, the others when the file `go` is there.
fn gated(folder: &TempDir) -> String {
    let at = folder.path().display();
    let script = format!(
        "read -r job; mkdir {at}/first 2>/dev/null || while [ ! -e {at}/go ]; do sleep 0.05; done; echo '{{\\\"price\\\":5}}'"
    );
    format!("[pipeline.shop]\ncommand = [\"sh\", \"-c\", \"{script}\"]\npure = true\nconcurrency = 1\n")
}

const RULES: &str = "[pipeline.shop]\nhandler = \"http\"\n[pipeline.shop.extract.fields]\ntitle = \"h1::text\"\n\
                     price = { select = \".old::text\", type = \"number\" }\n";

/// Reports letters with saved pages; every third has no price on it.
async fn letters(server: &Running, many: u32) {
    let letter = |n: u32| {
        let price = if n % 3 == 2 { String::new() } else { format!("<b class=new>{n}.50</b>") };
        json!({
            "pipeline": "shop", "input": { "url": format!("https://shop.example/p/{n}") }, "message": "SelectorNotFound: .old (field price)",
            "reason": "schema_validation",
            "payload": { "text": format!("<h1>Thing {n}</h1>{price}"), "status": 200 },
        })
    };
    server.post("/letters", json!((0..many).map(letter).collect::<Vec<_>>())).await.ok();
}

/// Waits until a page says something.
async fn until(browser: &Browser<'_>, path: &str, words: &str) -> String {
    let begun = Instant::now();
    loop {
        let page = browser.page(path).await;
        if page.contains(words) {
            return page;
        }
        assert!(begun.elapsed() < PATIENCE, "it never said {words:?}: {page}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The form of a page, sent by another of its buttons.
fn form(page: &str, action: &str) -> Form {
    Form { action: action.to_owned(), ..Form::of(page, "/replays/start") }
}

fn after<'a>(page: &'a str, mark: &str) -> &'a str {
    let from = page.find(mark).unwrap_or_else(|| panic!("no {mark} in {page}")) + mark.len();
    page[from..].split('"').next().expect("an end")
}

const CHOICE: &str = "/replays/new?pipeline=shop";

/// Tries what a page is about; says where that can be seen: the choice is frozen there.
async fn begin(browser: &Browser<'_>, page: &str, filled: &[(&str, &str)]) -> String {
    let begun = browser.post(&form(page, "/replays/try"), filled).await;
    begun.leads_to().strip_suffix("#step-2").expect("the step").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_try_runs_beside_its_page_and_can_be_stopped() {
    let folder = TempDir::new().expect("a folder");
    let server = Running::with(&gated(&folder)).await;
    letters(&server, 4).await;
    let browser = Browser::new(&server);
    let begin = form(&browser.page(CHOICE).await, "/replays/try");
    let begun = browser.post(&begin, &[]).await;
    let here = begun.leads_to().strip_suffix("#step-2").expect("the step").to_owned();
    assert_eq!(browser.post(&begin, &[]).await.leads_to(), begun.leads_to(), "the same form begins nothing more");
    let page = until(&browser, &here, "1 of 1 would recover").await;
    assert!(page.contains("3 to go") && page.contains("1 of 4 tried in") && page.contains("Look again"), "{page}");
    assert!(page.contains("data-busy=\"load\"") && page.contains("A try of these letters is under way"), "{page}");
    let refused = browser.post(&form(&page, "/replays/start"), &[("unattended", "yes")]).await;
    assert_eq!(refused.status, 200);
    assert!(refused.text().contains("is under way: wait for it"), "{}", refused.text());
    assert_eq!(server.get("/replays").await.ok()["items"], json!([]), "nothing was started");
    let id = after(&page, "name=\"try\" value=\"").to_owned();
    let stopped = browser.post(&form(&page, "/replays/try/stop"), &[("try", &id)]).await;
    let page = browser.page(stopped.leads_to().split('#').next().expect("a path")).await;
    assert!(page.contains("1 of 1 would recover") && page.contains("It was stopped before all were tried"), "{page}");
    assert!(page.contains("1 of 4 tried in") && !page.contains("data-busy"), "{page}");
    let kept = server.get(&format!("/tries/{id}")).await.ok();
    assert_eq!((&kept["outcome"]["stopped"], &kept["outcome"]["of"]), (&json!(true), &json!(4)), "{kept}");
    std::fs::write(folder.path().join("go"), "").expect("written");
    let here = self::begin(&browser, &page, &[]).await;
    let page = until(&browser, &here, "4 of 4 would recover").await;
    assert!(page.contains("Record of letter") && page.contains("<dt><bdi>price</bdi></dt>"), "{page}");
    assert!(!page.contains("data-busy"), "{page}");
    server.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_try_that_begins_anew_ends_the_one_before() {
    let folder = TempDir::new().expect("a folder");
    let server = Running::with(&gated(&folder)).await;
    letters(&server, 3).await;
    let browser = Browser::new(&server);
    let here = begin(&browser, &browser.page(CHOICE).await, &[]).await;
    let page = until(&browser, &here, "1 of 1 would recover").await;
    begin(&browser, &page, &[]).await;
    let tries = server.get("/tries").await.ok();
    let ended: Vec<bool> =
        tries["items"].as_array().expect("tries").iter().map(|kept| kept["finished_at"].is_string()).collect();
    assert_eq!(ended, [false, true], "{tries}");
    // A server that stops ends what runs on it: nobody looks at it for ever.
    let server = server.restart().await;
    server.until("/tries", |tries| tries["items"][0]["finished_at"].is_string()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_that_run_other_rules_or_are_not_there_keep_a_replay_from_being_started() {
    let server = Running::with(RULES).await;
    letters(&server, 1).await;
    let browser = Browser::new(&server);
    let page = browser.page(CHOICE).await;
    assert!(page.contains("No worker is alive for shop") && page.contains("name=\"unattended\""), "{page}");
    let alone = browser.post(&form(&page, "/replays/start"), &[]).await;
    assert!(alone.status == 200 && alone.text().contains("No worker is alive for shop"), "{}", alone.text());
    let now = server.redrive.now();
    let beat = Beat {
        worker: WorkerId::new(now, 7),
        host: "elsewhere".into(),
        pid: 1,
        remote: true,
        runs: vec![Runs {
            pipeline: "shop".parse().expect("a name"),
            definition: Some(redrive_core::definitions::DefinitionVersion::new("old")),
            waits_forever: false,
            replays: TakesReplays::default(),
        }],
        leases: Vec::new(),
        until: now,
        now,
    };
    server.redrive.store().beat(beat).await.expect("noted");
    let page = browser.page(CHOICE).await;
    assert!(page.contains("The only worker of shop runs other rules than redrive.toml has"), "{page}");
    let refused = browser.post(&form(&page, "/replays/start"), &[("unattended", "yes")]).await;
    assert!(refused.status == 200 && refused.text().contains("runs other rules"), "{}", refused.text());
    assert_eq!(server.get("/replays").await.ok()["items"], json!([]), "nothing was started");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passed_by_a_draft_is_started_once_the_file_has_its_rules() {
    let server = Running::with(RULES).await;
    letters(&server, 3).await;
    let browser = Browser::new(&server);
    let drafted = ("draft.price", ".new::text");
    let here = begin(&browser, &browser.page(CHOICE).await, &[drafted]).await;
    let page = until(&browser, &here, "2 of 3 would recover").await;
    assert!(page.contains("by this draft") && page.contains("What was tried is a draft"), "{page}");
    assert!(page.contains("No page that worked is kept to check the draft against"), "{page}");
    assert!(page.contains("+ price = {"), "{page}");
    let early = browser.post(&form(&page, "/replays/start"), &[("unattended", "yes"), ("only", "passed")]).await;
    assert!(early.status == 200 && early.text().contains("What was tried is a draft"), "{}", early.text());
    server.configure(&RULES.replace(".old", ".new"));
    let page = until(&browser, &here, "Only the 2 that passed the try").await;
    let passed = [("unattended", "yes"), ("only", "passed")];
    let started = browser.post(&form(&page, "/replays/start"), &passed).await;
    assert!(started.leads_to().starts_with("/replays/"), "{}", started.leads_to());
    let replays = server.get("/replays").await.ok();
    assert_eq!(replays["items"][0]["progress"]["total"], 2, "without another try: {replays}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passed_before_the_file_changed_is_not_taken() {
    let server = Running::with(&RULES.replace(".old", ".new")).await;
    letters(&server, 3).await;
    let browser = Browser::new(&server);
    let here = begin(&browser, &browser.page(CHOICE).await, &[]).await;
    let page = until(&browser, &here, "Only the 2 that passed the try").await;
    server.configure(RULES);
    let later = until(&browser, &here, "redrive.toml has changed since this try").await;
    assert!(!later.contains("that passed the try"), "{later}");
    let passed = [("unattended", "yes"), ("only", "passed")];
    let asks = browser.post(&form(&page, "/replays/start"), &passed).await;
    assert!(
        asks.status == 200 && asks.text().contains("What passed the try cannot be told any more"),
        "{}",
        asks.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_whose_handler_is_not_known_here_are_tried_elsewhere() {
    let server = Running::start().await;
    letters(&server, 3).await;
    let browser = Browser::new(&server);
    let page = browser.page(CHOICE).await;
    assert!(page.contains("How tasks of shop are done is not known here"), "{page}");
    let here = begin(&browser, &page, &[]).await;
    let page = browser.page(&here).await;
    assert!(page.contains("0 in their hands, 3 wait for one") && page.contains("data-busy"), "{page}");
    let id = after(&page, "name=\"try\" value=\"").to_owned();
    let leased = server.post("/leases", json!({ "pipelines": ["shop"], "op": id, "max": 9 })).await.ok();
    let leases = leased["leases"].as_array().expect("leases");
    assert_eq!(leases.len(), 3, "{leased}");
    let settle = async |jobs: Vec<Value>| {
        server.post("/leases/settle", json!({ "worker": leased["worker"], "jobs": jobs })).await.ok()
    };
    let of = |n: usize| leases[n]["lease"].clone();
    settle(vec![json!({ "lease": of(0), "verdict": "done", "result": { "price": 5 } })]).await;
    let page = browser.page(&here).await;
    assert!(page.contains("1 of 1 would recover") && page.contains("2 in their hands, 0 wait"), "{page}");
    let no = json!({ "message": "no price", "reason": "schema_validation" });
    settle(vec![
        json!({ "lease": of(1), "verdict": "done" }),
        json!({ "lease": of(2), "verdict": "failed", "failure": no }),
    ])
    .await;
    let page = browser.page(&here).await;
    assert!(page.contains("2 of 3 would recover") && page.contains("no price"), "{page}");
    assert!(page.contains("Record of letter") && page.contains("Only the 2 that passed the try"), "{page}");
    let started = browser.post(&form(&page, "/replays/start"), &[("only", "passed")]).await;
    started.leads_to();
    assert_eq!(server.get("/replays").await.ok()["items"][0]["progress"]["total"], 2);
    server.audit().await;
}
