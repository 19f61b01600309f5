//! The documents are true: their commands run, their files are what they say, their keys exist.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::Sandbox;

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// A file of the repository.
pub fn document(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A fenced block: what stands behind the fence, and what is in it.
pub struct Block {
    pub info: String,
    pub text: String,
}

/// The fenced blocks of a text.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let inside: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            blocks.push(Block { info: info.to_owned(), text: inside.join("\n") + "\n" });
        }
    }
    blocks
}

impl Block {
    /// The file it is, if it says so.
    pub fn file(&self) -> Option<&str> {
        self.info.split_once("file=").map(|(_, name)| name.trim())
    }

    /// The commands it shows, each with the exit code it should have.
    pub fn commands(&self) -> Vec<(&str, i32)> {
        let lines = self.text.lines().filter(|_| self.info == "console").filter_map(|line| line.strip_prefix("$ "));
        let code =
            |line: &str| line.split_once("# exits with ").map_or(0, |(_, code)| code.trim().parse().expect("a code"));
        lines.map(|line| (line, code(line))).collect()
    }
}

/// Runs a document from its beginning to its end, in a folder of its own.
fn run(name: &str) {
    let sandbox = Sandbox::new();
    let examples = Command::new("cp").arg("-r").arg(root().join("examples")).arg(sandbox.path("")).status();
    assert!(examples.expect("copied").success());
    let mut commands = 0;
    for block in blocks(&document(name)) {
        if let Some(file) = block.file() {
            sandbox.write(file, &block.text);
        }
        for (command, code) in block.commands() {
            run_command(&sandbox, name, command, code);
            commands += 1;
        }
    }
    assert!(commands > 0, "{name} has no command");
}

fn run_command(sandbox: &Sandbox, document: &str, command: &str, expected: i32) {
    let binary = Path::new(env!("CARGO_BIN_EXE_redrive"));
    let command = command.replace("cargo run --", "redrive");
    let path = std::env::var("PATH").unwrap_or_default();
    let folder = binary.parent().expect("a folder").display();
    let output = Command::new("sh")
        .args(["-c", &command])
        .current_dir(sandbox.path(""))
        .env("PATH", format!("{folder}:{path}"))
        .env("XDG_STATE_HOME", sandbox.path("state"))
        .output()
        .expect("ran");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(expected), "{document}: {command}\n{stdout}\n{stderr}");
}

#[test]
fn the_readme_runs() {
    run("README.md");
}

#[test]
fn running_runs() {
    run("docs/running.md");
}

#[test]
fn operating_runs() {
    run("docs/operating.md");
}

#[test]
fn outages_run() {
    run("docs/outages.md");
}

#[test]
fn fixing_runs() {
    run("docs/fixing.md");
}

#[test]
fn alerts_run() {
    run("docs/alerts.md");
}

#[test]
fn recipes_run() {
    run("docs/recipes.md");
}

#[test]
fn serving_runs() {
    run("docs/serving.md");
}

#[test]
fn dashboard_runs() {
    run("docs/dashboard.md");
}

#[test]
fn the_readmes_picture_is_what_is_seen() {
    let sandbox = Sandbox::new();
    let folder = root().join("examples/quickstart");
    let (tasks, script) = (folder.join("tasks.jsonl"), folder.join("shop.sh"));
    let ran = sandbox.run(&[
        "run",
        &tasks.display().to_string(),
        "--backoff",
        "1ms",
        "--",
        "sh",
        &script.display().to_string(),
    ]);
    let seen = ran.expect(3).stderr;
    let picture =
        blocks(&document("README.md")).into_iter().find(|block| block.text.starts_with("done:")).expect("a picture");
    for line in picture.text.lines() {
        let part = line.split_once("…  ").map_or(line, |(_, rest)| rest);
        let part = part.split_once("  in ").map_or(part, |(before, _)| before);
        assert!(seen.contains(part), "{part} in:\n{seen}");
    }
}

#[test]
fn files_that_stand_in_the_repository_are_quoted_as_they_are() {
    for block in blocks(&document("docs/embedding.md")) {
        if let Some(file) = block.file() {
            assert!(document(file).contains(&block.text), "docs/embedding.md does not quote {file}");
        }
    }
}

/// Every key that the reference names is understood, and every key that is understood is in the reference.
#[test]
fn the_reference_has_every_key() {
    let reference = document("docs/configuration.md");
    let named: Vec<&str> = reference
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(key, _)| key))
        .filter(|key| !key.starts_with('['))
        .collect();
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{}\n");
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for key in named {
        let (table, field) = key.rsplit_once('.').unwrap_or(("", key));
        groups.entry(table.replace("NAME", "a")).or_default().push(field.to_owned());
    }
    for (table, mut fields) in groups {
        let header = match table.as_str() {
            "" => String::new(),
            table if table.ends_with("rule") => format!("[[{table}]]\n"),
            table => format!("[{table}]\n"),
        };
        sandbox.write("redrive.toml", format!("{header}no_such_key = 1\n"));
        let said = sandbox.redrive("run tasks.jsonl -- true").expect(2).stderr;
        let mut known: Vec<String> = said.split('`').skip(3).step_by(2).map(str::to_owned).collect();
        let sections = [
            "alerts", "rules", "sink", "pipeline", "retry", "breaker", "rule", "http", "request", "submit", "poll",
            "polling", "extract",
        ];
        known.retain(|key| fields.contains(key) || !sections.contains(&key.as_str()) && key != "no_such_key");
        known.sort();
        known.dedup();
        fields.sort();
        assert_eq!(known, fields, "[{table}]: {said}");
    }
}

/// The sinks that are shown can be made, if what they take from outside is there.
#[test]
fn the_sinks_of_the_example_are_valid() {
    let sandbox = Sandbox::new();
    let examples = blocks(&document("docs/alerts.md"));
    let sinks = examples.iter().find(|block| block.info == "toml").expect("an example");
    // Not everybody has a mail command.
    sandbox.write("redrive.toml", sinks.text.replace("\"mail\"", "\"cat\""));
    let mut command = sandbox.command();
    for (name, value) in [
        ("ALERTS_URL", "https://alerts.example/in"),
        ("ALERTS_TOKEN", "s3cr3t-token"),
        ("SLACK_WEBHOOK", "https://hooks.example/s3cr3t-path"),
        ("PAGERDUTY_KEY", "s3cr3t-key"),
    ] {
        command.env(name, value);
    }
    let output = command.arg("doctor").output().expect("ran");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let said = sandbox.redrive("doctor").expect(1).stdout;
    assert!(said.contains("the environment has no variable SLACK_WEBHOOK"), "{said}");
}

#[test]
fn the_configuration_example_is_valid() {
    let sandbox = Sandbox::new();
    sandbox.write("scrape.py", "");
    sandbox.write("vault.key", "s3cr3t");
    for block in blocks(&document("docs/configuration.md")).iter().filter(|block| block.info.starts_with("toml")) {
        sandbox.write("redrive.toml", &block.text);
        let findings = sandbox.redrive("doctor --json").json();
        let wrong = |finding: &&serde_json::Value| finding["ok"] == false;
        // The server of the vault is not there; the engine's own tests have one.
        let here = |finding: &&serde_json::Value| finding["check"] != "vault";
        let findings: Vec<_> = findings.as_array().expect("a list").iter().filter(here).filter(wrong).collect();
        assert!(findings.is_empty(), "{findings:?}");
    }
}

/// The documents that people read.
fn documents() -> Vec<String> {
    let docs = fs::read_dir(root().join("docs")).expect("a folder").flatten();
    let docs = docs.map(|entry| format!("docs/{}", entry.file_name().to_string_lossy()));
    let others = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(str::to_owned);
    docs.filter(|name| name.ends_with(".md")).chain(others).collect()
}

/// A text without its fenced blocks.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut kept = String::new();
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        if !fenced && !line.starts_with("```") {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// The anchors of the headings of a document, as they are made of their words.
fn anchors(name: &str) -> Vec<String> {
    let anchor = |heading: &str| {
        let kept = heading.trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ')).collect::<String>();
        kept.replace(' ', "-")
    };
    prose(&document(name))
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .map(|line| anchor(line.trim_start_matches('#')))
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    for name in documents() {
        let text = prose(&document(&name));
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://") && !link.contains(' ')) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let folder = Path::new(&name).parent().expect("a folder").to_owned();
            let target = if path.is_empty() { PathBuf::from(&name) } else { folder.join(path) };
            assert!(root().join(&target).exists(), "{name}: {link}");
            let target = root().join(&target).canonicalize().expect("there");
            let target = target.strip_prefix(root()).expect("inside").display().to_string();
            assert!(anchor.is_empty() || anchors(&target).iter().any(|known| known == anchor), "{name}: {link}");
        }
    }
}
