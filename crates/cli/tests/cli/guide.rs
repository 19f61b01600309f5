//! The guide from a retry loop to Redrive: the scripts it starts from, the scripts it ends with and every command of it,
//! against the demo's shop.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::docs::{blocks, document};
use crate::harness::{DemoSite, Ran, Sandbox, json_lines, tools};
use crate::ports::ClosedPort;

const GUIDE: &str = "docs/from-a-retry-loop.md";
const SCRIPTS: [&str; 4] = ["before.js", "before.py", "scrape.js", "scrape.py"];
/// The address that stands in the guides.
pub const PLACEHOLDER: &str = "127.0.0.1:8000";

/// What must become of the pages that cannot be had: page, reason, attempts.
const DEAD: [(u32, &str, u64); 4] =
    [(23, "not_found", 1), (31, "blocked", 1), (42, "timeout", 4), (61, "schema_validation", 1)];
const DONE: [u32; 5] = [1, 2, 3, 9, 14];

fn script(name: &str) -> String {
    document(&format!("examples/retry-loop/{name}"))
}

fn section(heading: &str) -> String {
    section_of(GUIDE, heading)
}

/// A section of a guide, without its heading.
pub fn section_of(guide: &str, heading: &str) -> String {
    let text = document(guide);
    let found = text.split("\n## ").find_map(|part| part.strip_prefix(heading)?.strip_prefix('\n'));
    found.unwrap_or_else(|| panic!("{guide} has no section {heading:?}")).to_owned()
}

/// A shell in a sandbox that finds `redrive`, `requests` and `axios`.
pub struct Shell {
    pub sandbox: Sandbox,
    pub site: DemoSite,
}

impl Shell {
    fn new() -> Self {
        let shell = Self::empty();
        for name in SCRIPTS {
            shell.sandbox.write(name, script(name));
        }
        shell
    }

    /// One without any script.
    pub fn empty() -> Self {
        let sandbox = Sandbox::new();
        let site = DemoSite::start(&sandbox);
        let shell = Self { sandbox, site };
        for check in ["python3 -c 'import requests'", "node -e 'require(\"axios\")'"] {
            let ran = shell.run(check);
            assert_eq!(ran.code, Some(0), "scripts/test installs what is missing here: {check}\n{}", ran.stderr);
        }
        shell
    }

    pub fn run(&self, line: &str) -> Ran {
        let binary = Path::new(env!("CARGO_BIN_EXE_redrive"));
        let folder = binary.parent().expect("a folder");
        let tools = tools();
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(self.sandbox.path(""));
        for name in ["REDRIVE_STORE", "REDRIVE_CONFIG", "REDRIVE_LOG"] {
            command.env_remove(name);
        }
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env("PATH", format!("{}:{path}", folder.display()))
            .env("PYTHONPATH", tools.join("python"))
            .env("NODE_PATH", tools.join("node/node_modules"))
            .env("NO_PROXY", "127.0.0.1")
            .env("no_proxy", "127.0.0.1");
        let output = command.output().expect("sh starts");
        Ran {
            // As a shell sees it.
            code: output.status.code().or(output.status.signal().map(|signal| 128 + signal)),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn follow(&self, heading: &str) {
        self.follow_in(GUIDE, heading);
    }

    /// Runs the commands of a section of a guide.
    pub fn follow_in(&self, guide: &str, heading: &str) {
        let mut commands = 0;
        for block in blocks(&section_of(guide, heading)) {
            for (line, code) in block.commands() {
                let ran = self.run(&line.replace(PLACEHOLDER, &self.site.address));
                assert_eq!(ran.code, Some(code), "{heading}: {line}\n{}\n{}", ran.stdout, ran.stderr);
                commands += 1;
            }
        }
        assert!(commands > 0, "{heading} has no command");
    }

    fn write_urls(&self, pages: &[u32]) {
        let line = |page| format!("http://{}/products/{page}\n", self.site.address);
        self.sandbox.write("urls.txt", pages.iter().map(line).collect::<String>());
    }
}

/// The number of the page that a result, a failure or a dead letter is about.
fn page(record: &Value) -> u32 {
    let url = record["url"].as_str().or(record["input"]["url"].as_str()).expect("a url");
    url.rsplit('/').next().and_then(|number| number.parse().ok()).expect("a number")
}

/// Runs a loop as it was, but for its sleeps.
fn assert_loop_works(command: &str, name: &str, pause: &str, short: &str) {
    let shell = Shell::new();
    let text = script(name);
    assert!(text.contains(pause), "{name} does not pause with {pause}");
    shell.sandbox.write(name, text.replace(pause, short));
    shell.write_urls(&[1, 9, 23, 31, 61]);
    let results = shell.run(&format!("{command} {name}")).expect(0).json_lines();
    assert_eq!(results.iter().map(page).collect::<Vec<_>>(), [1, 9]);
    assert_eq!((&results[0]["title"], &results[0]["price"]), (&"Oak wall clock".into(), &12.99.into()));
    let failures: Vec<Value> = serde_json::from_str(&shell.sandbox.read("failures.json")).expect("a list");
    assert_eq!(failures.iter().map(page).collect::<Vec<_>>(), [23, 31, 61]);
    assert!(failures.iter().all(|failure| failure["error"].is_string()), "{failures:?}");
    assert_eq!(shell.site.count("/products/31"), 4, "it hammers, as the guide says");
}

/// Follows the guide in one language, to its end.
fn assert_guide_works(language: &str) {
    let shell = Shell::new();
    shell.follow(language);
    // A kill may repeat a line, but never lose one.
    let results: BTreeMap<u32, Value> = json_lines(&shell.sandbox.read("results.jsonl"))
        .into_iter()
        .map(|line| (page(&line), line["result"].clone()))
        .collect();
    assert_eq!(results.keys().copied().collect::<Vec<_>>(), DONE);
    assert_eq!((&results[&1]["title"], &results[&1]["price"]), (&"Oak wall clock".into(), &12.99.into()));
    let letters: BTreeMap<u32, Value> =
        shell.sandbox.dead().into_iter().map(|letter| (page(&letter), letter)).collect();
    let ends: Vec<_> = letters
        .iter()
        .map(|(page, letter)| {
            (*page, letter["reason"].as_str().unwrap_or_default(), letter["attempts"].as_u64().unwrap_or_default())
        })
        .collect();
    assert_eq!(ends, DEAD);
    assert_eq!(letters[&61]["message"], ".price-tag-main");
    let payload = |page: u32| shell.sandbox.run(&["payload", "show", letters[&page]["id"].as_str().expect("an id")]);
    assert!(payload(23).expect(0).stdout.contains("This article is no longer part of our range."));
    assert!(payload(31).expect(0).stdout.contains("Checking your browser"));
    payload(42).expect(1).complains("has no payload");

    shell.follow("What you get");
    assert_eq!(shell.sandbox.read("page.html"), payload(61).expect(0).stdout);
    assert_eq!(json_lines(&shell.sandbox.read("letters.jsonl")).len(), DEAD.len());
    shell.sandbox.assert_sound();
    assert_again_asks_for_nothing(&shell, language);
}

/// The guide's last promise: its last command again changes nothing and asks for nothing.
fn assert_again_asks_for_nothing(shell: &Shell, language: &str) {
    let blocks = blocks(&section(language));
    let (last, code) = blocks.iter().rev().find_map(|block| block.commands().pop()).expect("a command");
    let before = (shell.sandbox.ledger("default"), shell.sandbox.read("results.jsonl"));
    let pages = || DONE.into_iter().chain(DEAD.map(|(page, ..)| page));
    let asked = || pages().map(|page| shell.site.count(&format!("/products/{page}"))).sum::<u64>();
    let asked_before = asked();
    shell.run(last).expect(code);
    assert_eq!((shell.sandbox.ledger("default"), shell.sandbox.read("results.jsonl")), before);
    assert_eq!(asked(), asked_before);
}

/// What the clients report of connections that fail, and of what is no address, has its reason.
fn assert_errors_have_reasons(command: &str) {
    let shell = Shell::new();
    let closed = ClosedPort::reserve();
    let cases = [
        (format!("http://{}/products/48", shell.site.address), "network"),
        (closed.url("/"), "network"),
        ("not-a-url".to_owned(), "rejected_input"),
        ("ftp://shop.example/".to_owned(), "rejected_input"),
    ];
    shell.sandbox.write("urls.txt", cases.iter().map(|(url, _)| format!("{url}\n")).collect::<String>());
    shell.run(&format!("redrive run urls.txt --attempts 2 --backoff 10ms -- {command}")).expect(3);
    let letters = shell.sandbox.dead();
    for (url, reason) in &cases {
        let letter = letters.iter().find(|letter| letter["input"]["url"] == **url).expect("a letter");
        let attempts = if *reason == "network" { 2 } else { 1 };
        assert_eq!((&letter["reason"], &letter["attempts"]), (&Value::from(*reason), &Value::from(attempts)), "{url}");
    }
}

#[test]
fn the_loop_in_python_works() {
    assert_loop_works("python3", "before.py", "time.sleep(2 ** attempt)", "time.sleep(0.02 * 2 ** attempt)");
}

#[test]
fn the_loop_in_javascript_works() {
    assert_loop_works("node", "before.js", "sleep(1000 * 2 ** attempt)", "sleep(20 * 2 ** attempt)");
}

#[test]
fn the_guide_works_in_python() {
    assert_guide_works("Python");
}

#[test]
fn the_guide_works_in_javascript() {
    assert_guide_works("JavaScript");
}

#[test]
fn errors_of_requests_have_reasons() {
    assert_errors_have_reasons("python3 scrape.py");
}

#[test]
fn errors_of_axios_have_reasons() {
    assert_errors_have_reasons("node scrape.js");
}

#[test]
fn the_guide_quotes_the_scripts_as_they_are() {
    let mut quoted: Vec<String> = Vec::new();
    for block in blocks(&document(GUIDE)) {
        if let Some(name) = block.file() {
            assert_eq!(block.text, script(name), "{GUIDE} does not quote {name} as it is");
            quoted.push(name.to_owned());
        }
    }
    quoted.sort();
    assert_eq!(quoted, SCRIPTS);
}

#[test]
fn the_guides_table_says_what_happens() {
    let table = section("What you get");
    let row = |page: u32| {
        let start = format!("| `/products/{page}` ");
        table.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("no row for page {page}"))
    };
    for (page, reason, attempts) in DEAD {
        let end = format!("`{reason}` after {attempts} attempt");
        assert!(row(page).contains(&end), "{end} in: {}", row(page));
    }
}
