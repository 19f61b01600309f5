//! The guide from a script that submits and polls to Redrive: the scripts it starts from, the ways it ends with and every command of
//! it, against the demo's solver.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::docs::{blocks, document, root};
use crate::guide::{PLACEHOLDER, Shell, section_of};
use crate::harness::json_lines;

const GUIDE: &str = "docs/from-a-polling-script.md";

/// What must become of the puzzles that cannot be solved: sitekey, reason, attempts.
const DEAD: [(&str, &str, u64); 4] = [
    ("6Ldemo-never-ready", "timeout", 2),
    ("6Ldemo-unknown-code", "handler_error", 1),
    ("6Ldemo-unsolvable", "unsolvable", 2),
    ("6Ldemo-wrong-sitekey", "rejected_input", 1),
];
const SOLVED: [&str; 3] = ["6Ldemo-no-slot", "6Ldemo-solved-1", "6Ldemo-solved-2"];

/// The files of the guide, pointed at the site and hurried.
fn shell() -> Shell {
    let shell = Shell::empty();
    for block in blocks(&document(GUIDE)) {
        if let Some(name) = block.file() {
            let text = block.text.replace(PLACEHOLDER, &shell.site.address);
            shell.sandbox.write(name, hurried(&text));
        }
    }
    shell
}

/// The same without its waits; there must be some.
fn hurried(text: &str) -> String {
    let waits = [
        ("every = \"1s\"", "every = \"100ms\""),
        ("base = \"1s\"\ncap = \"1s\"", "base = \"100ms\"\ncap = \"100ms\""),
        ("\"retry_after\": 1 if pending", "\"retry_after\": 0.1 if pending"),
        ("retry_after: pending ? 1", "retry_after: pending ? 0.1"),
        ("time.sleep(5)", "time.sleep(0.02)"),
        ("time.sleep(2 ** attempt)", "time.sleep(0.02)"),
        ("sleep(5000)", "sleep(20)"),
        ("sleep(1000 * 2 ** attempt)", "sleep(20)"),
    ];
    waits.iter().fold(text.to_owned(), |text, (slow, quick)| text.replace(slow, quick))
}

fn sitekey(record: &Value) -> String {
    let puzzle = [&record["input"]["puzzle"], &record["input"], &record["result"], record];
    let found = puzzle.iter().find_map(|puzzle| puzzle["googlekey"].as_str());
    found.unwrap_or_else(|| panic!("{record} has no sitekey")).to_owned()
}

/// The sitekeys of what was solved, each once; a kill may repeat a line.
fn solved(lines: &str) -> Vec<String> {
    let lines = json_lines(lines).into_iter().filter(|line| !line.get("result").is_some_and(Value::is_null));
    lines.map(|line| sitekey(&line)).collect::<BTreeSet<_>>().into_iter().collect()
}

#[test]
fn the_guide_quotes_its_files_as_they_are() {
    let mut quoted = Vec::new();
    for block in blocks(&document(GUIDE)) {
        let Some(name) = block.file().filter(|name| *name != "puzzles.jsonl") else { continue };
        assert_eq!(
            block.text,
            document(&format!("examples/submit-poll/{name}")),
            "{GUIDE} does not quote {name} as it is"
        );
        quoted.push(name.to_owned());
    }
    let files = std::fs::read_dir(root().join("examples/submit-poll")).expect("a folder").flatten();
    let mut there: Vec<_> = files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    there.sort();
    quoted.sort();
    assert_eq!(quoted, there);
}

/// The scripts of before work, and pay as often as the guide says.
#[test]
fn the_scripts_of_before_work_and_pay_thrice() {
    for command in ["python3 before.py", "node before.js"] {
        let shell = shell();
        let lines = shell.run(&format!("SOLVER_KEY=demo-api-key {command}")).expect(0).stdout;
        assert_eq!(solved(&lines), SOLVED, "{command}");
        let failures: Vec<Value> = serde_json::from_str(&shell.sandbox.read("failures.json")).expect("a list");
        let mut failed: Vec<_> = failures.iter().map(sitekey).collect();
        failed.sort();
        assert_eq!(failed, DEAD.map(|(sitekey, ..)| sitekey), "{command}");
        assert_eq!(shell.site.count("/in.php"), 2 + 2 + 4 * 3, "{command}: what fails is submitted three times");
    }
}

#[test]
fn the_guide_works_without_a_script() {
    let shell = shell();
    shell.follow_in(GUIDE, "Without a script");
    assert_eq!(solved(&shell.sandbox.read("tokens.jsonl")), SOLVED);
    let mut ends: Vec<_> = shell
        .sandbox
        .dead()
        .iter()
        .map(|letter| (sitekey(letter), letter["reason"].clone(), letter["attempts"].clone()))
        .collect();
    ends.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = DEAD.map(|(sitekey, reason, attempts)| (sitekey.to_owned(), reason.into(), attempts.into()));
    assert_eq!(ends, expected);

    let submitted = shell.site.count("/in.php");
    shell.follow_in(GUIDE, "What you get");
    // Those that met the empty account were submitted once more; the late one was asked for, and submitted by each of two attempts.
    let replays = shell.sandbox.redrive("replay list --json").expect(0).json_lines();
    let retried = replays.iter().find(|replay| replay["selection"]["reason"] == "misconfigured").expect("a retry");
    let again = retried["progress"]["recovered"].as_u64().expect("a number");
    assert!((1..60).contains(&again), "{retried}");
    assert_eq!(shell.site.count("/in.php") - submitted, 60 + again + 2);
    let tokens = shell.sandbox.read("tokens.jsonl");
    assert_eq!(json_lines(&tokens).len(), SOLVED.len() + 60, "all of the account's are solved:\n{tokens}");
    shell.sandbox.assert_sound();
}

#[test]
fn the_guides_table_says_what_happens() {
    let table = section_of(GUIDE, "What you get");
    for (sitekey, reason, attempts) in DEAD {
        let start = format!("| `{sitekey}` ");
        let row = table.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("no row for {sitekey}"));
        assert!(row.contains(&format!("`{reason}` after {attempts} attempt")), "{row}");
    }
}

/// Two commands of one's own: what each puzzle comes to, and that its id is on disk before it is asked for.
fn assert_own_scripts_work(shell: &Shell, language: &str) {
    shell.follow_in(GUIDE, "With your own script");
    assert_eq!(solved(&shell.sandbox.read("tokens.jsonl")), SOLVED, "{language}");
    let letters = shell.run("redrive dead export --store sqlite:own.db").expect(0).json_lines();
    let mut ends: Vec<_> = letters
        .iter()
        .map(|letter| {
            let word = |field: &str| letter[field].as_str().unwrap_or_default().to_owned();
            format!(
                "{}: {} {} {} {}",
                sitekey(letter),
                word("pipeline"),
                word("reason"),
                letter["attempts"],
                word("gate")
            )
        })
        .collect();
    ends.sort();
    assert_eq!(
        ends,
        [
            "6Ldemo-never-ready: poll handler_error 8 auto",
            "6Ldemo-unknown-code: submit handler_error 1 review",
            "6Ldemo-unsolvable: poll unsolvable 3 review",
            "6Ldemo-wrong-sitekey: submit rejected_input 1 review",
        ],
        "{language}"
    );
    assert_eq!(shell.site.count("/in.php"), 9, "{language}: once each, but again no-slot and what was given up");
    let status = shell.run("redrive audit --store sqlite:own.db");
    assert_eq!(status.code, Some(0), "{}", status.stderr);
}

#[test]
fn the_guide_works_with_scripts_in_python() {
    assert_own_scripts_work(&shell(), "Python");
}

#[test]
fn the_guide_works_with_scripts_in_javascript() {
    let shell = shell();
    let config = shell.sandbox.read("own.toml");
    let config = config.replace("\"python3\", \"submit.py\"", "\"node\", \"submit.js\"");
    shell.sandbox.write("own.toml", config.replace("\"python3\", \"poll.py\"", "\"node\", \"poll.js\""));
    assert_own_scripts_work(&shell, "JavaScript");
}
