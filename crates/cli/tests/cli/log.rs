//! The log: which lines it has, where they go, and what they look like.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::{Sandbox, eventually, json_lines};

/// Fails twice for a reason with a hostile message, then works.
const FLAKY: &str = r#"read -r job
n=$(ls tries 2>/dev/null | wc -l); mkdir -p tries; touch "tries/$n"
[ "$n" -ge 2 ] && { echo 1; exit 0; }
printf '{"failure":{"reason":"timeout","code":"ETIMEDOUT","message":"slow\\n\\u001b[2Jpage"}}'
exit 75"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.write("flaky.sh", FLAKY);
    sandbox
}

const RUN: &str = "run tasks.jsonl --pipeline shop --backoff 1ms -- sh flaky.sh";

#[test]
fn every_failed_attempt_is_one_line() {
    let quiet = sandbox().redrive(RUN).expect(0).stderr;
    assert!(!quiet.contains("attempt failed"), "{quiet}");
    let said = sandbox().redrive(&format!("-v {RUN}")).expect(0).stderr;
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("attempt failed")).collect();
    assert_eq!(lines.len(), 2, "{said}");
    for (line, attempt) in lines.iter().zip(["attempt=1", "attempt=2"]) {
        for part in ["shop", "timeout", "ETIMEDOUT", "slow \\u{1b}[2Jpage", "to be tried again", attempt] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }
    let sandbox = sandbox();
    let died = sandbox.redrive("-v run tasks.jsonl --attempts 1 -- sh flaky.sh").expect(3).stderr;
    assert_eq!(died.lines().filter(|line| line.contains("attempt failed, the task died")).count(), 1, "{died}");
}

#[test]
fn a_file_gets_the_log_and_standard_error_does_not() {
    let sandbox = sandbox();
    let said = sandbox.redrive(&format!("--log redrive.log {RUN}")).expect(0).stderr;
    assert!(!said.contains("attempt failed"), "{said}");
    assert_eq!(sandbox.read("redrive.log").lines().filter(|line| line.contains("attempt failed")).count(), 2);
    sandbox.redrive("--log no/such/folder/x.log status").expect(1).complains("no/such/folder/x.log cannot be written");
}

/// The exit code of `redrive` where nobody reads what it says.
#[track_caller]
fn unheard(sandbox: &Sandbox, line: &str) -> Option<i32> {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = sandbox.command();
    command.args(line.split_whitespace()).stdout(Stdio::null()).stderr(writer);
    let (mut child, mut ended) = (command.spawn().expect("redrive starts"), None);
    eventually("it ends", || {
        ended = child.try_wait().expect("asked");
        ended.is_some()
    });
    ended.and_then(|ended| ended.code())
}

/// A worker once waited for ever for a task that had ended because a line could not be written.
#[test]
fn a_log_that_nobody_reads_holds_up_nothing() {
    let sandbox = Sandbox::new();
    let tasks: String = (0..6).map(|n| format!("https://a.example/{n}\n")).collect();
    sandbox.write("tasks.txt", tasks);
    let run = "run tasks.txt --attempts 2 --backoff 1ms --out results";
    assert_eq!(unheard(&sandbox, &format!("-v {run} --round a -- false")), Some(3));
    assert_eq!(unheard(&sandbox, &format!("--log /dev/full {run} --round b -- false")), Some(3));
    sandbox.write("redrive.toml", "[pipeline.shop]\ncommand = [\"sh\", \"-c\", \"exit 65\"]\n");
    sandbox.redrive("push tasks.txt -p shop").expect(0);
    assert_eq!(unheard(&sandbox, "-v work --drain -p shop"), Some(0));
    assert_eq!(sandbox.ledger("shop")["dead"], 6);
    sandbox.assert_sound();
}

#[test]
fn a_log_that_cannot_be_written_is_told_once_and_at_the_end() {
    let said = sandbox().redrive(&format!("--log /dev/full {RUN}")).expect(0).stderr;
    assert_eq!(said.lines().filter(|line| line.contains("of the log could not be written")).count(), 1, "{said}");
    assert!(!said.contains("tracing"), "{said}");
}

#[test]
fn json_is_an_object_per_line() {
    let sandbox = sandbox();
    sandbox.redrive(&format!("--log redrive.log --log-format json {RUN}")).expect(0);
    sandbox.redrive(&format!("--log redrive.log --log-format json {RUN}")).expect(0);
    let text = sandbox.read("redrive.log");
    assert!(!text.contains('\u{1b}'), "{text}");
    let failed: Vec<Value> = json_lines(&text).into_iter().filter(|line| line["reason"] == "timeout").collect();
    assert_eq!(failed.len(), 2, "{text}");
    assert_eq!(
        (&failed[0]["level"], &failed[0]["pipeline"], &failed[1]["attempt"]),
        (&"info".into(), &"shop".into(), &2.into())
    );
    assert_eq!(failed[0]["code"], "ETIMEDOUT");
    assert!(
        failed[0]["message"].as_str().is_some_and(|text| text.starts_with("attempt failed, to be tried again: slow"))
    );
    assert!(failed[0]["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{}", failed[0]);
}

/// What bash proposes for the last of some words.
fn proposed(sandbox: &Sandbox, words: &[&str]) -> Vec<String> {
    let script = sandbox.redrive("completions bash").expect(0).stdout;
    sandbox.write("completions.bash", script);
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let binary = env!("CARGO_BIN_EXE_redrive");
    let ask = format!(
        "source completions.bash; COMP_WORDS=('{binary}' {}); COMP_CWORD={}; \
         _redrive_values '{binary}' \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
        words.len()
    );
    let mut command = Command::new("bash");
    command.args(["-c", &ask]).current_dir(sandbox.path("")).env_remove("REDRIVE_STORE").env_remove("REDRIVE_CONFIG");
    let output = command.output().expect("bash is installed");
    String::from_utf8_lossy(&output.stdout).lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_reasons_pipelines_causes_and_rounds() {
    let sandbox = sandbox();
    assert_eq!(proposed(&sandbox, &["status", "--pipeline", ""]), Vec::<String>::new(), "there is none, and no error");
    sandbox.write("redrive.toml", "[pipeline.catalog]\ncommand = [\"true\"]\n[pipeline.shoes]\ncommand = [\"true\"]\n");
    sandbox.redrive("run tasks.jsonl --pipeline shop --attempts 1 -- sh flaky.sh").expect(3);
    assert_eq!(proposed(&sandbox, &["dead", "list", "--pipeline", ""]), ["catalog", "shoes", "shop"]);
    assert_eq!(proposed(&sandbox, &["work", "-p", "sho"]), ["shoes", "shop"]);
    assert_eq!(proposed(&sandbox, &["dead", "list", "--reason", "time"]), ["timeout"]);
    let causes = sandbox.redrive("cause list --json").expect(0).json_lines();
    let id = causes[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(proposed(&sandbox, &["replay", "start", "--cause", ""]), std::slice::from_ref(&id));
    assert_eq!(proposed(&sandbox, &["cause", "show", &id[..3]]), [id]);
    assert!(proposed(&sandbox, &["cause", "sh"]).contains(&"show".to_owned()), "the rest is as it was");
    assert_eq!(proposed(&sandbox, &["dead", "list", "--round", ""]), Vec::<String>::new());
    for round in ["monday", "tuesday"] {
        let args = ["run", "tasks.jsonl", "--pipeline", "shop", "--round", round, "--", "true"];
        sandbox.run(&args).expect(0);
    }
    assert_eq!(proposed(&sandbox, &["dead", "list", "--round", ""]), ["monday", "tuesday"]);
    assert_eq!(proposed(&sandbox, &["run", "tasks.jsonl", "--round", "t"]), ["tuesday"]);
    for verb in ["pause", "resume", "show"] {
        assert_eq!(proposed(&sandbox, &["pipeline", verb, ""]), ["catalog", "shoes", "shop"], "{verb}");
    }
    assert_eq!(proposed(&sandbox, &["pipeline", "pause", "c"]), ["catalog"]);
}

/// The scripts of other shells ask for the same.
#[test]
fn scripts_of_other_shells_ask_for_pipelines_and_causes() {
    let sandbox = Sandbox::new();
    let fish = sandbox.redrive("completions fish").expect(0).stdout;
    assert!(fish.contains("-l pipeline -x -a \"(redrive complete pipelines") && fish.contains("complete causes"));
    assert!(fish.contains("-l round -x -a \"(redrive complete rounds") && fish.contains("from show pause resume"));
    let zsh = sandbox.redrive("completions zsh").expect(0).stdout;
    assert!(zsh.starts_with("#compdef redrive\n"), "{zsh}");
    for part in [
        ":NAME:_redrive_pipelines'",
        ":CAUSE:_redrive_causes'",
        "The cause:_redrive_causes'",
        "The pipeline:_redrive_pipelines'",
        ":NAME:_redrive_rounds'",
    ] {
        assert!(zsh.contains(part), "{part}");
    }
}
