//! Pages made to keep a parser busy or to fill the memory: they are refused by a cap that the failure names, and neither a
//! time-out nor a signal waits for them.

use serde_json::{Value, json};

use crate::harness::{Sandbox, eventually, peak_kib, stop_at_once};
use crate::pages::Pages;

fn configure(sandbox: &Sandbox, site: &Pages, path: &str, keys: &str, selector: &str) {
    let config = format!(
        "[pipeline.p]\nhandler = \"http\"\n{keys}\n[pipeline.p.retry]\nattempts = 1\n\
         [pipeline.p.extract.fields]\ntitle = \"{selector}\"\n"
    );
    sandbox.write("redrive.toml", config);
    sandbox.write("tasks.jsonl", json!({"url": site.url(path)}).to_string() + "\n");
}

fn letter(sandbox: &Sandbox) -> Value {
    let mut letters = sandbox.dead();
    assert_eq!(letters.len(), 1);
    letters.remove(0)
}

/// 400,000 attributes on one element.
fn attributes() -> String {
    let attributes: String = (0..400_000).map(|n| format!(" a{n}='1'")).collect();
    format!("<a{attributes}></a>")
}

/// Below all caps, but each element is compared with all before it: minutes, and nothing is found.
fn slow_page() -> String {
    "<i></i>".repeat(60_000)
}

const SLOW_SELECTOR: &str = ":is(x ~ i ~ i)";

/// The time that a process's reader of pages has used, in hundredths of a second.
fn reader_ticks(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut stats = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    let stat = stats.find(|stat| stat.contains("(redrive-page)")).unwrap_or_default();
    stat.rsplit(") ").next().and_then(|fields| fields.split(' ').nth(11)?.parse().ok()).unwrap_or(0)
}

#[test]
fn a_page_above_a_cap_says_which_and_is_kept() {
    let html = "text/html";
    let site = Pages::of([
        ("/attributes", (html, attributes().into_bytes())),
        ("/attributes.xml", ("application/xml", attributes().into_bytes())),
        ("/deep", (html, "<span>".repeat(2_500_000).into_bytes())),
        ("/deep.xml", ("application/xml", "<a>".repeat(2_000_000).into_bytes())),
    ]);
    for (path, code, says) in [
        ("/attributes", "TooManyAttributes", "more than 1000 attributes on one element"),
        ("/attributes.xml", "TooManyAttributes", "more than 1000 attributes on one element"),
        ("/deep", "HtmlTooDeep", "nested more than 512 deep"),
        ("/deep.xml", "TooManyNodes", "more than 1000000 nodes"),
    ] {
        let sandbox = Sandbox::new();
        configure(&sandbox, &site, path, "timeout = \"2m\"", "h1");
        sandbox.redrive("run tasks.jsonl").expect(3);
        let letter = letter(&sandbox);
        assert_eq!((&letter["reason"], &letter["code"]), (&json!("malformed_payload"), &json!(code)), "{path}");
        assert!(letter["message"].as_str().is_some_and(|message| message.ends_with(says)), "{letter}");
        let id = letter["id"].as_str().expect("an id");
        let kept = sandbox.run(&["payload", "show", id]).expect(0).stdout;
        assert!(kept.len() > 3_000_000, "{path} is kept whole: {}", kept.len());
    }
}

#[test]
fn fifteen_megabytes_of_tags_stay_within_the_memory_that_is_stated() {
    // Every paragraph opens all formatting elements of the first again, with their attributes.
    let attributes: String = (0..800).map(|n| format!(" x{n}")).collect();
    let formats: String = (0..50).map(|n| format!("<b i{n}{attributes}>")).collect();
    let site = Pages::html([
        ("/nested", "<a><b>".repeat(2_500_000)),
        ("/reopened", format!("<p>{formats}</p>{}", "<p>x</p>".repeat(1_800_000))),
    ]);
    for (path, code) in [("/nested", "HtmlTooDeep"), ("/reopened", "TooManyAttributes")] {
        let sandbox = Sandbox::new();
        configure(&sandbox, &site, path, "timeout = \"2m\"", "h1");
        let peak = peak_kib(&sandbox, &["run", "tasks.jsonl"], 3);
        assert_eq!(letter(&sandbox)["code"], code, "{path}");
        assert!(peak < 500 * 1024, "{path}: {peak} KiB");
    }
}

#[test]
fn a_time_out_holds_while_a_page_keeps_its_reader_busy() {
    let sandbox = Sandbox::new();
    let site = Pages::html([("/slow", slow_page())]);
    configure(&sandbox, &site, "/slow", "timeout = \"8s\"", SLOW_SELECTOR);
    sandbox.redrive("run tasks.jsonl").expect(3);
    let letter = letter(&sandbox);
    assert_eq!((&letter["reason"], &letter["code"]), (&json!("timeout"), &json!("deadline")));
    assert!(letter["payload"].is_string(), "the page that was too slow to read is kept: {letter}");
    sandbox.assert_sound();
}

#[test]
fn a_signal_ends_the_process_whatever_a_parser_does() {
    let sandbox = Sandbox::new();
    let site = Pages::html([("/slow", slow_page())]);
    configure(&sandbox, &site, "/slow", "", SLOW_SELECTOR);
    let mut child = sandbox.spawn_saying("said", &["run", "tasks.jsonl"]);
    eventually("the selector is being matched", || reader_ticks(child.id()) > 300);
    stop_at_once(&sandbox, &child, "said");
    let mut ended = None;
    eventually("the process ends", || {
        ended = child.try_wait().expect("asked");
        ended.is_some()
    });
    assert_eq!(ended.and_then(|status| status.code()), Some(130), "interrupted");
    let ledger = sandbox.ledger("p");
    assert_eq!((&ledger["queued"], &ledger["leased"]), (&json!(1), &json!(0)), "the job is given back");
    sandbox.assert_sound();
}
