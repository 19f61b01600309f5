//! What is seen, and asked, on a terminal of 80 columns.

use std::process::Command;

use crate::harness::Sandbox;
use crate::tasks::{of_before, urls};

/// Runs `redrive` on a terminal of 80 columns; types a line once a text was seen. Gives its exit code and the lines that were shown,
/// those that were overwritten included.
fn on_80_columns(sandbox: &Sandbox, args: &[&str], (seen, typed): (&str, &str)) -> (i32, Vec<String>) {
    let script = r#"
import fcntl, os, pty, struct, subprocess, sys, termios
seen, mark, typed = b"", sys.argv[1].encode(), sys.argv[2].encode()
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
child = subprocess.Popen(sys.argv[3:], stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
os.close(slave)
while True:
    try:
        block = os.read(master, 65536)
    except OSError:
        break
    if not block:
        break
    seen += block
    if mark and mark in seen:
        mark = b""
        os.write(master, typed + b"\n")
sys.stdout.buffer.write(seen)
sys.stdout.flush()
sys.exit(child.wait())
"#;
    let mut command = Command::new("timeout");
    command.args(["120", "python3", "-c", script, seen, typed, env!("CARGO_BIN_EXE_redrive")]).args(args);
    let output = command.current_dir(sandbox.path("")).env("TERM", "xterm").output().expect("python3 starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = without_codes(&text).split(['\r', '\n']).map(|line| line.trim_end().to_owned()).collect();
    (output.status.code().unwrap_or_else(|| panic!("ended: {text}")), lines)
}

/// A text without the codes that set colours and move the cursor.
fn without_codes(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(char::is_alphabetic).map_or("", |(_, rest)| rest))
}

#[test]
fn whoever_sits_there_is_asked_about_a_file_that_may_have_run_before() {
    let sandbox = Sandbox::new();
    sandbox.write("urls.txt", urls(0..10));
    sandbox.redrive("run urls.txt -- true").expect(0);
    of_before(&sandbox, &urls(0..10));
    sandbox.write("urls.txt", urls(1..10));
    let args = ["run", "urls.txt", "--out", "out.jsonl", "--", "true"];
    let (code, shown) = on_80_columns(&sandbox, &args, ("[y/N]", "n"));
    assert_eq!(code, 2, "{shown:?}");
    assert_eq!(sandbox.ledger("default")["accepted"], 10);
    let (code, shown) = on_80_columns(&sandbox, &args, ("[y/N]", "y"));
    assert_eq!(code, 0, "{shown:?}");
    assert_eq!(sandbox.ledger("default")["accepted"], 19);
    assert!(shown.iter().all(|line| line.chars().count() <= 80), "{shown:?}");
}

#[test]
fn the_bar_and_the_end_of_a_run_fit_80_columns() {
    let sandbox = Sandbox::new();
    sandbox.write("urls.txt", format!("{}https://slow.example/\n", urls(0..40)));
    let failure = r#"{"failure":{"reason":"network","code":"ECONNREFUSED","message":"connect ECONNREFUSED 10.0.0.7:443, and so on and so on"}}"#;
    // The slow one runs until its neighbours are held, and that was seen.
    sandbox.write(
        "fetch.sh",
        format!("if grep -q slow; then until [ -e seen ]; do sleep 0.1; done; exit 65; fi; echo '{failure}'; exit 1\n"),
    );
    sandbox.write(
        "redrive.toml",
        "[pipeline.p]\ncommand = [\"sh\", \"fetch.sh\"]\nconcurrency = 2\n[pipeline.p.breaker]\nattempts_min = 4\n[pipeline.p.retry]\nbase = \"10ms\"\n",
    );
    let sandbox = std::sync::Arc::new(sandbox);
    let watching = std::thread::spawn({
        let sandbox = std::sync::Arc::clone(&sandbox);
        move || {
            crate::harness::eventually("the target is held and the slow one runs", || {
                let status = sandbox.redrive("status --json").json_or_null();
                status["breakers"][0]["held"].as_u64() > Some(10) && status["pipelines"]["p"]["leased"] == 1
            });
            std::thread::sleep(std::time::Duration::from_secs(2));
            sandbox.write("seen", "");
        }
    });
    let (code, shown) = on_80_columns(&sandbox, &["run", "urls.txt", "--max-wait", "1s"], ("", ""));
    watching.join().expect("no panic");
    assert_eq!(code, 7, "{shown:?}");
    assert!(shown.iter().all(|line| line.chars().count() <= 80), "{shown:?}");
    let held = |line: &&String| line.contains("held ") && line.contains("shop.example (ECONNREFUSED) ");
    let bar = shown.iter().rfind(held).unwrap_or_else(|| panic!("{shown:?}"));
    assert!(shown.iter().any(|line| line.contains("held ") && line.contains("1 running")), "{bar}: {shown:?}");
    assert!(shown.iter().any(|line| line.contains("1 × rejected_input")), "{shown:?}");
}
