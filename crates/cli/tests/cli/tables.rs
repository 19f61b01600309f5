//! Tables on terminals of 60 to 160 columns: nothing wraps, no column that one needs is cut off, the message can be read, and what is
//! shown can be typed.

use std::path::Path;

use serde_json::json;
use unicode_width::UnicodeWidthStr;

use crate::harness::Sandbox;
use crate::pty::Terminal;

const WIDTHS: [u16; 5] = [60, 80, 100, 120, 160];

/// Every table: the file that prints it, a command that does, and the headings that are there however narrow the terminal is.
const TABLES: &[(&str, &str, &[&str])] = &[
    ("activity.rs", "activity", &["when", "who", "did", "to"]),
    ("alert/list.rs", "alert list", &["state", "alert", "told", "sink", "kind", "waiting"]),
    ("audit.rs", "audit", &["counted", "tasks", "queued", "running", "done", "died", "discarded"]),
    ("breaker/list.rs", "breaker list", &["target", "breaker", "waiting", "since", "next try"]),
    ("cause/list.rs", "cause list", &["id", "state", "died"]),
    ("codes.rs", "codes", &["table", "entries", "what it is about"]),
    ("codes.rs", "codes in-res", &["code", "reason", "first", "then", "task id"]),
    ("dead/import.rs", "dead import more.json -p shop --dry-run", &["letters", "reason", "gate"]),
    ("dead/list.rs", "dead list", &["no.", "died", "reason", "tries", "gate"]),
    ("job/list.rs", "job list", &["no.", "state", "due or ended", "tries"]),
    ("payload/list.rs", "payload list", &["payload", "bytes", "tasks", "kept since", "where"]),
    ("pipeline/list.rs", "pipeline list", &["pipeline", "state", "queued", "running", "died", "workers"]),
    ("pipeline/show.rs", "pipeline show paged", &["key", "from"]),
    ("replay/list.rs", "replay list", &["replay", "state", "left", "recovered", "died again"]),
    ("replay/show.rs", "replay show last --letters", &["no.", "state", "cause", "cause then"]),
    (
        "replay/try_out.rs",
        "replay try --pipeline paged --pure -- false",
        &["letters", "cause", "reason", "for example"],
    ),
    ("round/list.rs", "round list", &["round", "tasks", "queued", "running", "done", "died", "discarded"]),
    ("status.rs", "status", &["pipeline", "tasks", "queued", "running", "done", "died", "discarded", "replay", "left"]),
    (
        "store/copy.rs",
        "store copy sqlite:.redrive/redrive.db sqlite:copied-COLUMNS/redrive.db",
        &["copied", "source", "target"],
    ),
    ("token/list.rs", "token list", &["token", "role", "state", "last used"]),
];

/// Letters with long, wide and hostile texts, tasks that wait, a replay, an open breaker, a paused pipeline, rounds, alerts that fire
/// and a sink that fails.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let long = "the price of the product could not be found on the page although it was there yesterday, ".repeat(4);
    let wide = "価格が見つかりません。".repeat(20);
    let hostile = "gone \u{1b}[2J\u{1b}]0;title\u{7}\u{202e} and \u{9b}31m more of it, as long as it takes to wrap a line, or two";
    let letter = |n: u32, message: &str| {
        json!({
            "url": format!("https://www.a-shop-with-a-long-name-{n}.example/products/{n}"), "error": message,
            "code": "SelectorNotFound_in_the_new_layout", "attempts": 4, "timestamp": 1_763_215_320 + n,
        })
    };
    let letters = [letter(1, "no"), letter(2, &long), letter(3, &wide), letter(4, hostile)];
    sandbox.write("letters.json", json!(letters).to_string());
    let pipeline = "a-pipeline-with-a-name-that-is-a-good-deal-too-long";
    sandbox.run(&["dead", "import", "letters.json", "-p", pipeline]).expect(0);
    sandbox.write("tasks.jsonl", format!("{}\n", json!({"url": "https://shop.example/", "text": wide})));
    sandbox.redrive("push tasks.jsonl --pipeline shop").expect(0);
    sandbox.run(&["breaker", "hold", "shop.example", "--until", "2h", "--why", &long]).expect(0);
    sandbox.run(&["pipeline", "pause", "shop", "--why", &long]).expect(0);
    let failure = json!({"failure": {"reason": "rejected_input", "message": long, "code": "no_price"}});
    sandbox.write("failure.json", failure.to_string());
    sandbox.write("bad.txt", (0..12).map(|n| format!("https://bad.example/{n}\n")).collect::<String>());
    let round = "a-round-with-a-name-that-is-a-good-deal-too-long";
    let run =
        ["run", "bad.txt", "--round", round, "--pipeline", pipeline, "--", "sh", "-c", "cat failure.json; exit 65"];
    sandbox.run(&run).expect(3);
    let says = "echo 'no route to the host of the team, which is far away and has been for as long as one remembers' >&2; exit 1";
    let sink = format!(
        "[alerts.sink.team]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"{says}\"]\n[pipeline.{pipeline}]\ncommand = [\"true\"]\n"
    );
    sandbox.write("redrive.toml", format!("[alerts.rules]\ndisk = \"500000GiB\"\n{sink}"));
    sandbox.redrive("alert check").expect(3);
    sandbox.write("more.json", json!([letter(7, &long)]).to_string());
    sandbox.write("paged.txt", "https://paged.example/\n");
    let keeps = "echo '<p>' > \"$REDRIVE_PAYLOAD\"; cat failure.json; exit 65";
    sandbox.run(&["run", "paged.txt", "--pipeline", "paged", "--", "sh", "-c", keeps]).expect(3);
    sandbox.run(&["replay", "start", "--pipeline", pipeline, "--name", &long[..250], "--detach"]).expect(0);
    sandbox
}

/// Makes tokens besides: from then on a server wants one.
fn with_tokens() -> Sandbox {
    let sandbox = sandbox();
    sandbox.run(&["token", "create", "boss", "--role", "admin"]).expect(0);
    let many = "a-pipeline-with-a-long-name,another-pipeline-with-a-long-name";
    let token = ["token", "create", "a-token-with-a-long-name", "--role", "operator", "--pipeline", many];
    sandbox.run(&[&token[..], &["--expires", "90d"]].concat()).expect(0);
    sandbox
}

/// Sentences around tables, which may go on in the next line.
const SENTENCES: [&str; 6] =
    ["  paused by", "1 payloads (", "✓ ", "work on ", "nothing was settled", "nothing has happened"];

#[test]
fn no_line_of_a_table_is_wider_than_the_terminal() {
    let sandbox = with_tokens();
    for width in WIDTHS {
        let tables = TABLES.iter().map(|(_, line, _)| *line);
        for line in tables.chain(["alert check", "dead top --by target", "codes names"]) {
            let line = &meant(line, width);
            let args: Vec<&str> = line.split(' ').collect();
            for printed in Terminal::new(&sandbox, width).run(&args).lines() {
                let fits = printed.width() <= usize::from(width);
                let waits = printed.starts_with("replay ") && printed.contains(" waits for a worker with version ");
                let sentence = waits || SENTENCES.iter().any(|begins| printed.starts_with(begins));
                assert!(fits || sentence, "`{line}` at {width} columns: {} columns: {printed}", printed.width());
                assert!(!printed.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{7}']), "`{line}`: {printed:?}");
            }
        }
    }
}

/// A command with what is named in it in capitals.
fn meant(line: &str, width: u16) -> String {
    line.replace("COLUMNS", &width.to_string())
}

#[test]
fn no_table_loses_a_column_that_one_needs() {
    let sandbox = with_tokens();
    for width in [60, 80] {
        for (_, line, headings) in TABLES {
            let line = meant(line, width);
            let args: Vec<&str> = line.split(' ').collect();
            let lines = Terminal::new(&sandbox, width).run(&args).lines();
            for heading in *headings {
                let is_there = lines.iter().any(|line| {
                    let mut columns = line.split("  ").map(str::trim);
                    columns.any(|column| column == *heading)
                });
                assert!(is_there, "`{line}` at {width} columns lacks {heading:?}:\n{}", lines.join("\n"));
            }
        }
    }
}

#[test]
fn every_table_is_tested() {
    let commands = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands");
    let (mut folders, mut untested) = (vec![commands.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&commands).expect("within").to_str().expect("text").to_owned();
            let text = std::fs::read_to_string(&path).expect("a file");
            let prints = ["table::print", "print_titled(", "print_folded("].iter().any(|call| text.contains(call));
            if prints && !TABLES.iter().any(|(file, ..)| *file == name) {
                untested.push(name);
            }
        }
    }
    assert!(untested.is_empty(), "{untested:?}");
}

#[test]
fn the_message_can_be_read_and_the_number_typed() {
    let sandbox = sandbox();
    for width in WIDTHS {
        let lines = Terminal::new(&sandbox, width).run(&["dead", "list"]).expect(0).lines();
        let message = lines.iter().find(|line| line.contains("the price of the product")).expect("the message");
        assert!(message.width() > usize::from(width.min(80)) - 10, "{message}");
    }
    let lines = Terminal::new(&sandbox, 80).run(&["dead", "list"]).expect(0).lines();
    let row = lines.iter().find(|line| line.contains("SelectorN")).expect("a row");
    let number = row.split_whitespace().next().expect("a number");
    let shown = sandbox.run(&["dead", "show", number]).expect(0).stdout;
    assert!(shown.starts_with(&format!("dead letter {number}\n")), "{shown}");
}

#[test]
fn a_pipe_gets_whole_rows() {
    let sandbox = sandbox();
    let text = sandbox.redrive("dead list").expect(0).stdout;
    assert_eq!(text.lines().count(), 18, "a heading and a line each:\n{text}");
    assert!(text.contains("a-pipeline-with-a-name-that-is-a-good-deal-too-long"), "{text}");
}

#[test]
fn the_end_of_a_run_fits_the_terminal() {
    for width in WIDTHS {
        let sandbox = Sandbox::new();
        sandbox.write("tasks.txt", format!("https://shop.example/{}\n", "a-long-way-down/".repeat(20)));
        let args = ["run", "tasks.txt", "--out", "results", "--", "sh", "-c", "echo no such page >&2; exit 65"];
        let lines = Terminal::new(&sandbox, width).run(&args).expect(3).lines();
        let example = lines.iter().find(|line| line.contains("e.g. ")).unwrap_or_else(|| panic!("{lines:#?}"));
        assert_eq!(example.width(), usize::from(width), "as much of the address as there is room for: {example}");
        let end = lines.iter().skip_while(|line| !line.starts_with("done:"));
        assert!(end.clone().count() > 3 && end.clone().all(|line| line.width() <= usize::from(width)), "{lines:#?}");
    }
}

#[test]
fn what_is_shown_of_a_letter_and_a_cause_fits_the_terminal() {
    let sandbox = sandbox();
    let letters = sandbox.redrive("dead list --json").expect(0).json_lines();
    let with = |text: &str| letters.iter().find(|letter| letter["message"].as_str().is_some_and(|m| m.contains(text)));
    let letters = ["the price", "価格", "gone"].map(|text| with(text).expect("a letter"));
    let cause = letters[0]["cause"].as_str().expect("a cause");
    sandbox.run(&["cause", "note", cause, &"they were told, and told again, ".repeat(9)]).expect(0);
    for width in [80, 120] {
        for letter in letters {
            let (number, cause) = (letter["number"].to_string(), letter["cause"].as_str().expect("a cause"));
            for args in [["dead", "show", &number], ["cause", "show", cause]] {
                let lines = Terminal::new(&sandbox, width).run(&args).expect(0).lines();
                for line in &lines {
                    assert!(line.width() <= usize::from(width), "`{args:?}`: {} columns: {line}", line.width());
                    assert!(!line.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{7}']), "`{args:?}`: {line:?}");
                }
            }
            let lines = Terminal::new(&sandbox, width).run(&["cause", "show", cause]).expect(0).lines();
            let is_number = |word: Option<&str>| word.is_some_and(|word| word.chars().all(|c| c.is_ascii_digit()));
            let examples = lines.iter().skip_while(|line| *line != "for example").skip(1);
            assert!(
                examples.clone().any(|line| is_number(line.split_whitespace().next())),
                "their numbers: {lines:#?}"
            );
            let id = letter["id"].as_str().expect("an id");
            assert!(!lines.iter().any(|line| line.contains(id)), "no longer their ids: {lines:#?}");
        }
    }
    let whole = sandbox.run(&["dead", "show", &letters[0]["number"].to_string()]).expect(0).stdout;
    assert!(whole.contains(letters[0]["message"].as_str().expect("a message").trim_end()), "{whole}");
}

crate::network::over_the_network! {
    soak: [
        the_message_can_be_read_and_the_number_typed,
        a_pipe_gets_whole_rows,
        the_end_of_a_run_fits_the_terminal,
        what_is_shown_of_a_letter_and_a_cause_fits_the_terminal,
    ],
}
