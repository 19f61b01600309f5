//! Bad input gets a clear error and loses nothing.

use std::process::{Command, Stdio};

use rusqlite::Connection;

use crate::disk::Disk;
use crate::harness::Sandbox;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":\n{\"n\":3}\n[4]\n");
    sandbox
}

#[test]
fn broken_lines_are_named_and_the_rest_is_done() {
    let sandbox = sandbox();
    let ran = sandbox.redrive("run tasks.jsonl -- true").expect(4);
    assert_eq!(ran.json_lines().len(), 2);
    ran.complains("tasks.jsonl:2: not JSON")
        .complains("tasks.jsonl:4: expected a JSON object")
        .complains("broken lines: 2");
    let pushed = sandbox.redrive("push tasks.jsonl").expect(4);
    assert!(pushed.stdout.contains("0 accepted, 2 known already, 2 broken"), "{}", pushed.stdout);
}

#[test]
fn strict_refuses_the_whole_file() {
    let sandbox = sandbox();
    for command in ["run tasks.jsonl --strict -- true", "push tasks.jsonl --strict"] {
        sandbox.redrive(command).expect(2).complains("nothing was enqueued").complains("tasks.jsonl:2: not JSON");
    }
    assert_eq!(sandbox.redrive("status --json").expect(0).json()["pipelines"], serde_json::json!({}));
}

#[test]
fn invalid_utf8_and_huge_lines_are_lines_too() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", "[pipeline.tasks]\ncommand = [\"true\"]\ninput_max = \"4MiB\"\n");
    let huge = format!("{{\"text\":\"{}\"}}\n", "x".repeat(3_000_000));
    let mut content = b"{\"a\":\"\xff\"}\n".to_vec();
    content.extend(huge.as_bytes());
    sandbox.write("tasks.jsonl", content);
    let ran =
        sandbox.redrive("run tasks.jsonl --pipeline tasks -- wc -c").expect(4).complains("tasks.jsonl:1: not UTF-8");
    let read: usize = ran.json_lines()[0]["result"].as_u64().expect("a number") as usize;
    assert!(read > 3_000_000, "the whole input reached the command: {read}");
}

#[test]
fn an_input_above_input_max_is_named_by_line_and_key() {
    let (sandbox, elsewhere) = (Sandbox::new(), Sandbox::new());
    let tasks = format!("{{\"key\":\"a\"}}\n{{\"key\":\"b\",\"text\":\"{}\"}}\n", "x".repeat(2_000));
    for (sandbox, config) in
        [(&sandbox, "[pipeline.shop]\ncommand = [\"true\"]\ninput_max = \"1KiB\"\n"), (&elsewhere, "")]
    {
        sandbox.write("redrive.toml", config);
        sandbox.write("tasks.jsonl", &tasks);
    }
    for command in ["push tasks.jsonl --pipeline shop", "run tasks.jsonl --pipeline shop -- true"] {
        let ran = sandbox.redrive(command).expect(4);
        ran.complains("tasks.jsonl:2: task b: its input has 2021 bytes as JSON: input_max allows 1024");
    }
    elsewhere.redrive("run tasks.jsonl --pipeline shop --attempts 1 -- false").expect(3);
    let letters = elsewhere.redrive("dead export").expect(0).stdout;
    let line = 1 + letters.lines().position(|line| line.contains("xxx")).expect("the long one");
    sandbox.write("letters.jsonl", letters);
    for command in ["dead import letters.jsonl --dry-run", "dead import letters.jsonl"] {
        let ran = sandbox.redrive(command).expect(4);
        ran.complains(&format!("letters.jsonl:{line}: not a dead letter: b: its input has 2021 bytes"));
    }
    assert!(sandbox.dead().is_empty(), "the key of the other one is done here");
}

#[test]
fn what_is_missing_is_named() {
    let sandbox = sandbox();
    sandbox.redrive("run none.jsonl -- true").expect(1).complains("cannot open none.jsonl");
    sandbox.redrive("run . -- true").expect(2).complains("is a folder");
    sandbox.redrive("run tasks.jsonl").expect(2).complains("has no command");
    sandbox.redrive("run tasks.jsonl -- nosuchcommand").expect(2).complains("\"nosuchcommand\" is not in PATH");
    sandbox.redrive("run tasks.jsonl -- ./nosuch.sh").expect(2).complains("./nosuch.sh does not exist");
    sandbox.redrive("work").expect(2).complains("nothing to run");
    sandbox.redrive("run tasks.jsonl --config none.toml -- true").expect(1).complains("cannot read none.toml");
    sandbox.redrive("run tasks.jsonl --store nonsense -- true").expect(2).complains("sqlite:PATH or memory:");
    sandbox.redrive("status").expect(1).complains("no store at .redrive/redrive.db");
    assert!(!sandbox.path(".redrive").exists(), "nothing was made on the way");
    let unknown = "0198f2c5-7d3e-7a10-9c51-0242ac120002";
    sandbox.write("one.jsonl", "{}\n");
    sandbox.redrive("run one.jsonl -- true").expect(0);
    sandbox.redrive(&format!("dead show {unknown}")).expect(1).complains("no dead letter");
    sandbox.redrive(&format!("job show {unknown}")).expect(1).complains("no task");
    sandbox.redrive("dead show xyz").expect(2).complains("is not a task");
    sandbox.redrive("dead list --reason sad").expect(2).complains("rate_limited");
    sandbox.redrive("dead list --since soon").expect(2).complains("is not a time");
    sandbox.redrive("dead list --cursor x").expect(1).complains("is not a cursor");
}

#[test]
fn a_command_that_cannot_be_started_stops_the_run_and_buries_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    sandbox.write("not-executable", "#!/bin/sh\n");
    sandbox.redrive("run tasks.jsonl -- ./not-executable").expect(1).complains("cannot be started");
    let ledger = sandbox.ledger("default");
    assert_eq!((&ledger["queued"], &ledger["dead"]), (&2.into(), &0.into()));
    sandbox.assert_sound();
}

#[test]
fn a_wrong_key_in_the_configuration_is_explained() {
    let sandbox = sandbox();
    sandbox.write("redrive.toml", "[pipeline.a]\ncommand = [\"true\"]\ntimout = \"5m\"\n");
    let said = "redrive.toml:3: unknown field `timout`";
    sandbox.redrive("run tasks.jsonl").expect(2).complains(said).complains("did you mean `timeout`?");
    let doctor = sandbox.redrive("doctor").expect(1);
    assert!(doctor.stdout.contains("✗ configuration") && doctor.stdout.contains("timout"), "{}", doctor.stdout);
}

#[test]
fn a_store_of_a_newer_version_is_left_alone() {
    let sandbox = sandbox();
    sandbox.redrive("push tasks.jsonl").expect(4);
    let file = sandbox.path(".redrive/redrive.db");
    Connection::open(&file).and_then(|conn| conn.pragma_update(None, "user_version", 77)).expect("tampered");
    for command in ["push tasks.jsonl", "status", "dead list", "audit"] {
        sandbox.redrive(command).expect(1).complains("newer version of redrive (schema 77");
    }
    sandbox.redrive("doctor").expect(1);
}

#[test]
fn a_full_disk_is_named_and_loses_nothing() {
    let sandbox = Sandbox::new();
    let disk = Disk::mount(sandbox.path("disk"), "size=720k");
    let tasks: String =
        (0..2_000).map(|n| format!("{{\"key\":\"k{n}\",\"n\":{n},\"pad\":\"{}\"}}\n", "x".repeat(200))).collect();
    sandbox.write("tasks.jsonl", tasks);
    let store = ["--store", "sqlite:disk/redrive.db"];
    let failed = sandbox.run(&["push", "tasks.jsonl", store[0], store[1]]).expect(1);
    failed.complains("the disk is full");
    sandbox.run(&["audit", store[0], store[1]]).expect(0);
    let ledger = sandbox.run(&["status", "--json", store[0], store[1]]).expect(0).json();
    let accepted = ledger["pipelines"]["default"]["accepted"].as_u64().unwrap_or(0);

    disk.remount("size=64m");
    let pushed = sandbox.run(&["push", "tasks.jsonl", store[0], store[1]]).expect(0);
    assert!(pushed.stdout.contains(&format!("{} accepted, {accepted} known", 2_000 - accepted)), "{}", pushed.stdout);
    sandbox.run(&["audit", store[0], store[1]]).expect(0);
}

#[test]
fn results_are_not_written_into_the_store() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.redrive("push tasks.jsonl --store sqlite:s.db").expect(0);
    std::os::unix::fs::symlink("s.db", sandbox.path("link")).expect("linked");
    for out in ["s.db", "./s.db-wal", "link"] {
        let ran = sandbox.run(&["run", "tasks.jsonl", "--store", "sqlite:s.db", "--out", out, "--", "true"]);
        ran.expect(2).complains("is a file of the store");
        let ran = sandbox.run(&["work", "--drain", "--store", "sqlite:s.db", "--out", out, "--", "true"]);
        ran.expect(2).complains("is a file of the store");
    }
    sandbox.redrive("audit --store sqlite:s.db").expect(0);
}

#[test]
fn results_that_cannot_be_written_leave_their_jobs_queued() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    sandbox.redrive("run tasks.jsonl --out /dev/full -- cat").expect(1).complains("cannot write results to /dev/full");
    let ledger = sandbox.ledger("default");
    assert_eq!((&ledger["queued"], &ledger["done"]), (&2.into(), &0.into()));
    sandbox.redrive("run tasks.jsonl -- cat").expect(0);
    sandbox.redrive("run tasks.jsonl --out none/out.jsonl -- cat").expect(1).complains("none/out.jsonl");
}

#[test]
fn a_read_only_place_is_named() {
    let sandbox = sandbox();
    let ran = sandbox.redrive("push tasks.jsonl --store sqlite:/proc/nowhere/redrive.db").expect(1);
    ran.complains("/proc/nowhere").complains("cannot be written");
    sandbox.write("notes.txt", "not a database at all, but long enough to look like one\n".repeat(40));
    sandbox.redrive("push tasks.jsonl --store sqlite:notes.txt").expect(1).complains("is not a redrive store");
}

#[test]
fn a_locked_store_is_waited_for() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.redrive("push tasks.jsonl").expect(0);
    let conn = Connection::open(sandbox.path(".redrive/redrive.db")).expect("opened");
    conn.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let mut run = sandbox
        .command()
        .args(["run", "tasks.jsonl", "--", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(run.try_wait().expect("asked").is_none(), "it waits");
    assert_eq!(sandbox.ledger("default")["queued"], 1, "reading goes on");
    conn.execute_batch("ROLLBACK").expect("unlocked");
    assert_eq!(run.wait().expect("waited").code(), Some(0));
}

#[test]
fn init_and_completions() {
    let sandbox = Sandbox::new();
    sandbox.redrive("init").expect(0);
    sandbox.redrive("init").expect(2).complains("already there");
    sandbox.redrive("doctor").expect(0);
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.redrive("run tasks.jsonl").expect(0);
    assert_eq!(sandbox.ledger("example")["done"], 1);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = sandbox.redrive(&format!("completions {shell}")).expect(0).stdout;
        assert!(script.contains("redrive"), "{shell}");
    }
    for command in ["", "run", "push", "work", "dead list", "dead discard", "job list", "status", "audit"] {
        let help = sandbox.redrive(&format!("{command} --help")).expect(0).stdout;
        assert!(help.contains("Usage: redrive"), "{help}");
    }
}

#[test]
fn a_closed_or_full_standard_output_is_no_panic() {
    let sandbox = sandbox();
    sandbox.redrive("push tasks.jsonl").expect(4);
    for command in ["job list --all --json", "status", "completions bash", "audit --json"] {
        let line = format!("{} {command} > /dev/full", env!("CARGO_BIN_EXE_redrive"));
        let output = Command::new("sh").args(["-c", &line]).current_dir(sandbox.path("")).output().expect("ran");
        assert_eq!(output.status.code(), Some(1), "{command}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"), "{command}");
        let line = format!("{} {command} | true", env!("CARGO_BIN_EXE_redrive"));
        let output = Command::new("sh").args(["-c", &line]).current_dir(sandbox.path("")).output().expect("ran");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{command}");
    }
}

#[test]
fn what_a_handler_wrote_does_not_reach_the_terminal_raw() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    let ran = sandbox.run(&[
        "run",
        "tasks.jsonl",
        "--attempts",
        "1",
        "--",
        "sh",
        "-c",
        "printf '\\033[2Jgone\\n' >&2; exit 1",
    ]);
    assert!(!ran.expect(3).stderr.contains('\u{1b}'));
    let id = sandbox.dead()[0]["id"].as_str().expect("an id").to_owned();
    let shown = sandbox.run(&["dead", "show", &id]).expect(0).stdout;
    assert!(shown.contains("\\u{1b}[2Jgone") && !shown.contains('\u{1b}'), "{shown}");
}

#[test]
fn what_is_wrong_in_a_json_array_is_named_by_line_and_element() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.json", "[\n{\"n\":1},\n{\"n\":},\n{\"n\":3},\n{\"n\":4");
    let ran = sandbox.redrive("run tasks.json -- true").expect(4).complains("tasks.json:3: element 2: not JSON");
    ran.complains("tasks.json:5: the array breaks off here").complains("done: 2");
}
