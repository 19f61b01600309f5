//! Text that wants to be obeyed by a terminal, in every field that a stranger can fill: no command prints it as it is.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Ran, Sandbox};
use crate::pty::Terminal;

/// Clears the screen, three ways; turns the text around; ends the line; hides what follows.
const HOSTILE: &str = "x\u{1b}[2J\u{9b}2J\u{1b}]0;t\u{7}\u{202e}\u{2066}\u{2028}\u{2029}\u{85}\r\u{8}\u{7f}\u{200b}\u{200d}\u{feff}\u{e0041}é🦀";

/// What must never get out.
fn is_forbidden(c: char) -> bool {
    let directs = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let hides = matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
    (c.is_control() && c != '\n') || directs || hides || matches!(c, '\u{2028}' | '\u{2029}')
}

#[track_caller]
fn assert_harmless(what: &str, ran: &Ran) {
    for (stream, text) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
        if let Some(at) = text.find(is_forbidden) {
            let around: String = text[at..].chars().take(40).collect();
            panic!("{what} prints {around:?} to {stream}");
        }
    }
}

/// A job that is dead, one that is done and one that waits, with hostile text wherever there can be any.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let failure = json!({"failure": {
        "message": format!("no {HOSTILE}\nsecond line {HOSTILE}"), "code": HOSTILE, "error_type": HOSTILE, "stack": format!("at {HOSTILE}\n  at f"),
        "stage": HOSTILE, "proxy": HOSTILE, "target": HOSTILE, "disposition": "dead", "hold": true,
    }});
    sandbox.write("failure.json", failure.to_string());
    sandbox.write("result.json", json!({"result": HOSTILE, HOSTILE: 1, "_proxy": HOSTILE}).to_string());
    let script = "case \"$(cat)\" in *dies*) cp page $REDRIVE_PAYLOAD; cat failure.json; cat page >&2; exit 1;; *) cat result.json;; esac\n";
    sandbox.write("handler.sh", script);
    sandbox.write("page", HOSTILE);
    sandbox.write("redrive.toml", "[pipeline.p]\ncommand = [\"sh\", \"handler.sh\"]\ntrack = [\"field\"]\n");
    let task = |kind: &str| {
        let url = format!("http://h/{HOSTILE}");
        json!({"kind": kind, "key": format!("{kind}{HOSTILE}"), "target": format!("{kind}{HOSTILE}"), "field": HOSTILE, HOSTILE: HOSTILE, "url": url})
    };
    sandbox.write("tasks.jsonl", format!("{}\n{}\n", task("dies"), task("works")));
    sandbox.write("more.jsonl", format!("{}\n", task("dies again")));
    sandbox.write("broken.jsonl", format!("{{\"a\": \"{HOSTILE}\n{HOSTILE}\n"));
    assert_harmless("run", &sandbox.redrive("run tasks.jsonl -v").expect(3));
    assert_harmless("push", &sandbox.redrive("push more.jsonl").expect(0));
    sandbox
}

fn id(sandbox: &Sandbox, list: &str) -> String {
    let listed = sandbox.redrive(list).expect(0);
    listed.json_lines()[0]["id"].as_str().expect("an id").to_owned()
}

#[test]
fn no_command_prints_what_a_terminal_would_obey() {
    let sandbox = sandbox();
    let (dead, done) = (id(&sandbox, "dead list --json"), id(&sandbox, "job list --state done --json"));
    let queued = id(&sandbox, "job list --state queued --json");
    let cause = id(&sandbox, "cause list --json");
    let change = |args: &[&str]| assert_harmless(&args.join(" "), &sandbox.run(args).expect(0));
    change(&["cause", "assign", &cause, HOSTILE]);
    change(&["cause", "note", &cause, HOSTILE]);
    change(&["breaker", "hold", HOSTILE, "--why", HOSTILE]);
    change(&["pipeline", "pause", "p", "--why", HOSTILE]);
    let foreign = json!({"error": HOSTILE, "code": HOSTILE, "url": HOSTILE, HOSTILE: HOSTILE});
    sandbox.write("letters.jsonl", foreign.to_string());
    let commands = format!(
        "status|status --json|audit|audit --json|doctor|doctor --json
        |dead list|dead list --json|dead show {dead}|dead show {dead} --json|dead show {dead} --curl|dead show {dead} --har
        |dead top --by code|dead top --by target --csv|dead top --by proxy --json|dead top --by input.field --csv|dead export
        |job list --all|job list --all --json|job show {dead}|job show {done}|job show {done} --json|job show {queued}
        |cause list|cause list --json|cause show {cause}|cause show {cause} --json|cause explain {dead}
        |payload list|payload list --json|payload show {dead} --meta
        |breaker list|breaker list --json|pipeline list|pipeline show p|dead import letters.jsonl -p p --dry-run
        |replay plan --cause {cause}|replay plan --cause {cause} --json
        |report|report --json|report --csv|report --html -"
    );
    for line in commands.split('|').map(str::trim) {
        assert_harmless(line, &sandbox.redrive(line).expect(0));
    }
    change(&["replay", "start", "--cause", &cause, "--name", HOSTILE, "--refetch", "--detach"]);
    for line in [
        "replay list",
        "replay list --json",
        "replay show last",
        "replay show last --letters",
        "replay show last --json",
    ] {
        assert_harmless(line, &sandbox.redrive(line).expect(0));
    }
    change(&["replay", "cancel", "last"]);
    change(&["job", "cancel", &queued, "--why", HOSTILE]);
    assert_harmless("job show", &sandbox.run(&["job", "show", &queued]).expect(0));
    change(&["dead", "discard", &dead, "--why", HOSTILE]);
    assert_harmless("job show", &sandbox.run(&["job", "show", &dead]).expect(0));
}

#[test]
fn json_says_the_same_with_escapes() {
    let sandbox = sandbox();
    let dead = id(&sandbox, "dead list --json");
    let letter = sandbox.run(&["dead", "show", &dead, "--json"]).expect(0).json();
    assert_eq!((letter["input"]["field"].as_str(), letter["code"].as_str()), (Some(HOSTILE), Some(HOSTILE)));
    let exported = sandbox.dead();
    assert_eq!(exported[0]["failures"][0]["stage"], HOSTILE);
    sandbox.write("letters.jsonl", sandbox.redrive("dead export").expect(0).stdout);
    let other = Sandbox::new();
    let path = sandbox.path("letters.jsonl");
    other.run(&["dead", "import", path.to_str().expect("UTF-8")]).expect(0);
    let imported = other.dead();
    for field in ["input", "key", "target", "message", "failures"] {
        assert_eq!(imported[0][field], exported[0][field]);
    }
    let results = sandbox.redrive("run more.jsonl --pipeline other -- cat result.json").expect(0);
    assert_harmless("run", &results);
    assert_eq!(results.json_lines()[0]["result"]["result"], HOSTILE);
}

#[test]
fn errors_quote_nothing_as_it_is() {
    let sandbox = sandbox();
    let mut cases: Vec<Vec<&str>> = vec![
        vec!["run", "broken.jsonl", "--", "true"],
        vec!["run", "broken.jsonl", "--strict", "--", "true"],
        vec!["dead", "import", "broken.jsonl"],
        vec!["run", HOSTILE, "--", "true"],
        vec!["run", "tasks.jsonl", "--pipeline", "q", "--", HOSTILE],
        vec!["dead", "list", "--reason", HOSTILE],
        vec!["dead", "list", "--since", HOSTILE],
        vec!["dead", "show", HOSTILE],
        vec!["payload", "show", HOSTILE],
        vec!["status", "--store", HOSTILE],
        vec!["status", "--config", HOSTILE],
        vec![HOSTILE],
    ];
    sandbox.write("wrong.toml", format!("[pipeline.p]\ncommand = [\"x\"]\n\"{}\" = 1\n", "k\u{202e}\u{2028}"));
    cases.push(vec!["status", "--config", "wrong.toml"]);
    for args in cases {
        let ran = sandbox.run(&args);
        assert_ne!(ran.code, Some(0), "{args:?}");
        assert!(!ran.stderr.is_empty(), "{args:?}");
        assert_harmless(&format!("{args:?}"), &ran);
    }
}

/// Runs `redrive` on a terminal of its own. Gives its exit code and all that it printed.
fn on_a_terminal(sandbox: &Sandbox, args: &[&str]) -> (i32, String) {
    let shown = Terminal::new(sandbox, 200).run(args);
    (shown.code, shown.raw)
}

#[test]
fn a_payload_reaches_a_terminal_only_if_it_is_plain() {
    let sandbox = sandbox();
    let dead = id(&sandbox, "dead list --json");
    let (code, text) = on_a_terminal(&sandbox, &["payload", "show", &dead]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("--out FILE") && !text.contains("\u{1b}[2J") && !text.contains('\u{202e}'), "{text:?}");
    let (code, text) = on_a_terminal(&sandbox, &["payload", "show", &dead, "--out", "-"]);
    assert!(code == 0 && text.contains("\u{1b}[2J"), "{text:?}");
    sandbox.run(&["payload", "show", &dead, "--out", "saved"]).expect(0);
    assert_eq!(fs::read_to_string(sandbox.path("saved")).expect("written"), HOSTILE);
    assert_eq!(sandbox.run(&["payload", "show", &dead]).expect(0).stdout, HOSTILE, "a pipe gets the bytes");

    let (code, text) = on_a_terminal(&sandbox, &["dead", "export", "--warc", "-"]);
    assert!(code == 2 && text.contains("give a file") && !text.contains("\u{1b}[2J"), "{text:?}");

    sandbox.write("page", "<p>zażółć</p>\n");
    sandbox.write("plain.jsonl", "{\"kind\":\"dies\"}\n");
    sandbox.redrive("run plain.jsonl").expect(3);
    let plain = id(&sandbox, "dead list --json");
    assert_eq!(on_a_terminal(&sandbox, &["payload", "show", &plain]), (0, "<p>zażółć</p>\r\n".to_owned()));
}

#[test]
fn what_a_terminal_shows_of_strangers_is_escaped() {
    let sandbox = sandbox();
    let dead = id(&sandbox, "dead list --json");
    for args in
        [vec!["dead", "show", &dead], vec!["dead", "list"], vec!["status"], vec!["report"], vec!["cause", "list"]]
    {
        let (code, text) = on_a_terminal(&sandbox, &args);
        assert_eq!(code, 0, "{text}");
        let ours = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\r\n"];
        let rest = ours.iter().fold(text, |text, code| text.replace(code, ""));
        assert_eq!(rest.chars().find(|c| is_forbidden(*c)), None, "{args:?}: {rest:?}");
    }
    // Both tasks have one target, whose breaker the first one opens: the bar says who is waited for.
    let task = |n: u32| json!({"kind": "dies", "target": HOSTILE, "n": n}).to_string();
    sandbox.write("first.jsonl", task(1));
    sandbox.write("second.jsonl", task(2));
    sandbox.redrive("run first.jsonl").expect(3);
    let text = Terminal::new(&sandbox, 200).interrupt_after("held 1").run(&["run", "second.jsonl"]).raw;
    let shown = text.split("held 1").nth(1).unwrap_or_else(|| panic!("nobody is held: {text:?}"));
    assert!(shown.contains("\\u{9b}2J\\u{1b}]0;"), "{shown:?}");
    let hostile: Value = json!(["\u{1b}]0;t", "\u{9b}", "\u{202e}", "\u{2028}", "\u{200b}", "\u{1b}[2J"]);
    for part in hostile.as_array().expect("a list") {
        assert!(!text.contains(part.as_str().expect("a text")), "{part}: {text:?}");
    }
}

crate::network::over_the_network! {
    soak: [json_says_the_same_with_escapes, a_payload_reaches_a_terminal_only_if_it_is_plain],
}
