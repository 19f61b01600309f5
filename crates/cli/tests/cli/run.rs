//! `redrive run`: from a file of tasks to results, dead letters and an exit code.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::harness::{Sandbox, eventually, json_lines, stop_at_once};

/// Doubles a number; refuses 3; fails always for 4.
const DOUBLE: &str = r#"
read -r job
n=$(printf %s "$job" | sed 's/.*"n":\([0-9]*\).*/\1/')
[ "$n" = 3 ] && exit 65
[ "$n" = 4 ] && { echo "no luck with $n" >&2; exit 1; }
echo "{\"double\":$((n * 2))}"
"#;

fn numbers(count: usize) -> String {
    (1..=count).map(|n| format!("{{\"n\":{n}}}\n")).collect()
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("double.sh", DOUBLE);
    sandbox.write("tasks.jsonl", numbers(5));
    sandbox
}

const RUN: &str = "run tasks.jsonl --backoff 5ms -- sh double.sh";

#[test]
fn prints_results_and_says_what_died() {
    let sandbox = sandbox();
    let ran = sandbox.redrive(RUN).expect(3);
    let mut results = ran.json_lines();
    results.sort_by_key(|result| result["input"]["n"].as_u64());
    let doubles: Vec<_> = results.iter().map(|result| result["result"]["double"].as_u64()).collect();
    assert_eq!(doubles, [Some(2), Some(4), Some(10)]);
    assert!(results[0]["id"].is_string());
    let ran = ran.complains("done: 3").complains("dead: 2").complains("1 × handler_error: ");
    let ran = ran.complains("no luck with 4").complains("(attempts 4)  redrive cause show ");
    ran.complains("(attempts 1)");
    assert_eq!(sandbox.ledger("default")["done"], 3);
    sandbox.assert_sound();
}

#[test]
fn the_same_command_again_does_nothing_twice() {
    let sandbox = sandbox();
    sandbox.redrive(RUN).expect(3);
    let again = sandbox.redrive(RUN).expect(3);
    assert_eq!(again.stdout, "");
    again.complains("known: 3 done before, 2 dead before; 0 new").complains("dead: 2  (2 of them before)");
    assert_eq!(sandbox.ledger("default")["accepted"], 5);

    sandbox.write("more.jsonl", numbers(1));
    sandbox.redrive("run more.jsonl -- sh double.sh").expect(0);
    assert_eq!(sandbox.ledger("default")["accepted"], 5, "equal tasks of two files are one");
    sandbox.write("keyed.jsonl", "{\"key\":\"a\",\"n\":1}\n{\"key\":\"b\",\"n\":2}\n");
    sandbox.redrive("run keyed.jsonl -- sh double.sh").expect(0);
    sandbox.write("keyed.jsonl", "{\"key\":\"c\",\"n\":1}\n{\"key\":\"b\",\"n\":2}\n");
    let third = sandbox.redrive("run keyed.jsonl -- sh double.sh").expect(0);
    assert_eq!(third.json_lines().len(), 1, "a key is done once");
}

#[test]
fn results_are_appended_and_a_torn_line_is_mended() {
    let sandbox = sandbox();
    sandbox.write("out.jsonl", "{\"before\":1}\n{\"id\":\"01a1f5c2-0b97");
    sandbox.redrive("run tasks.jsonl --out out.jsonl --attempts 1 -- sh double.sh").expect(3);
    let lines = json_lines(&sandbox.read("out.jsonl"));
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0], json!({"before": 1}));
}

#[test]
fn plain_lines_and_standard_input() {
    let sandbox = Sandbox::new();
    sandbox.write("urls.txt", "https://a.example/1\nhttps://b.example/2\n");
    let ran = sandbox.redrive("run urls.txt -- cat").expect(0);
    let mut urls: Vec<_> = ran.json_lines().iter().map(|r| r["result"]["input"]["url"].clone()).collect();
    urls.sort_by_key(ToString::to_string);
    assert_eq!(urls, ["https://a.example/1", "https://b.example/2"]);

    let mut child = sandbox
        .command()
        .args(["run", "-", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    child.stdin.take().expect("piped").write_all(b"{\"n\":1}\n{\"n\":2}\n").expect("written");
    let output = child.wait_with_output().expect("waited");
    assert_eq!(json_lines(&String::from_utf8_lossy(&output.stdout)).len(), 2);
}

#[test]
fn the_job_is_told_who_it_is() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"key\":\"k\",\"url\":\"https://example.com/x\"}\n");
    let ran = sandbox.redrive("run tasks.jsonl --pipeline shop -- cat").expect(0);
    let result = &ran.json_lines()[0];
    let job = &result["result"];
    assert_eq!(job["id"], result["id"]);
    assert_eq!((&job["pipeline"], &job["key"]), (&json!("shop"), &json!("k")));
    assert_eq!((&job["target"], &job["attempt"]), (&json!("example.com"), &json!(1)));
    assert_eq!(job["input"]["url"], "https://example.com/x");
}

#[test]
fn a_pipeline_of_the_configuration_needs_no_command() {
    let sandbox = sandbox();
    sandbox.write(
        "redrive.toml",
        "store = \"sqlite:here.db\"\n[pipeline.double]\ncommand = [\"sh\", \"double.sh\"]\nout = \"r.jsonl\"\n[pipeline.double.retry]\nattempts = 2\nbase = \"5ms\"\n",
    );
    sandbox.redrive("run tasks.jsonl").expect(3);
    assert!(sandbox.path("here.db").exists() && !sandbox.path(".redrive").exists());
    assert_eq!(json_lines(&sandbox.read("r.jsonl")).len(), 3);
    let attempts: Vec<_> = sandbox.dead().iter().map(|letter| letter["attempts"].as_u64()).collect();
    assert!(attempts.contains(&Some(2)), "{attempts:?}");
}

#[test]
fn a_small_queue_is_waited_for() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", numbers(60));
    sandbox.write("redrive.toml", "[pipeline.p]\ncommand = [\"true\"]\nmax_queued = 7\n");
    sandbox.redrive("run tasks.jsonl").expect(0);
    assert_eq!(sandbox.ledger("p")["done"], 60);
    sandbox.write("more.jsonl", numbers(80));
    let refused = sandbox.redrive("push more.jsonl").expect(1);
    refused.complains("the queue of pipeline p is full").complains("7 of at most 7");
    assert_eq!(sandbox.ledger("p")["queued"], 7, "as many as fit were accepted");
    sandbox.assert_sound();
}

#[test]
fn an_interrupted_run_returns_what_it_had_and_goes_on_later() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", numbers(40));
    sandbox.write("slow.sh", "cat > /dev/null; echo x >> begun.log; sleep 0.2; echo 1\n");
    let args = ["run", "tasks.jsonl", "-j", "4", "--out", "out.jsonl", "--", "sh", "slow.sh"];
    let mut child = sandbox.spawn(&args);
    eventually("jobs run", || sandbox.read("begun.log").lines().count() >= 4);
    kill_process(Pid::from_child(&child), Signal::INT).expect("signalled");
    let status = child.wait().expect("waited");
    assert_eq!(status.code(), Some(130));
    let ledger = sandbox.ledger("default");
    assert_eq!(ledger["leased"], 0, "nothing is left in nobody's hands: {ledger}");
    assert_eq!(json_lines(&sandbox.read("out.jsonl")).len(), ledger["done"].as_u64().expect("a number") as usize);
    sandbox.run(&args).expect(0);
    assert_eq!(sandbox.read("begun.log").lines().count(), 40, "what ran was not run again");
    sandbox.assert_sound();
}

#[test]
fn a_second_signal_returns_running_jobs_at_once_and_without_blame() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", numbers(2));
    sandbox.write("stuck.sh", "echo x >> begun.log; exec sleep 300\n");
    let mut child = sandbox.spawn_saying("said", &["run", "tasks.jsonl", "-j", "2", "--", "sh", "stuck.sh"]);
    eventually("jobs run", || sandbox.read("begun.log").lines().count() == 2);
    stop_at_once(&sandbox, &child, "said");
    assert_eq!(child.wait().expect("waited").code(), Some(130));
    let jobs = sandbox.redrive("job list --json").expect(0).json_lines();
    assert!(jobs.iter().all(|job| job["state"] == "queued" && job["attempts"] == 0 && job["crashes"] == 0), "{jobs:?}");
    let folder = sandbox.path("").display().to_string();
    eventually("the children are gone", || {
        crate::harness::processes_with(&format!("PWD={}", folder.trim_end_matches('/'))).is_empty()
    });
}

#[test]
fn a_reader_that_goes_away_loses_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", numbers(300));
    // Three tasks end at once, the others when the reader is gone.
    let script = "for n in 1 2 3; do mkdir slot$n 2>/dev/null && exec cat; done\nwhile [ ! -e gone ]; do sleep 0.05; done\nexec cat\n";
    sandbox.write("gated.sh", script);
    let mut command = sandbox.command();
    command.args(["run", "tasks.jsonl", "--", "sh", "gated.sh"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("started");
    let reader = BufReader::new(child.stdout.take().expect("piped"));
    let read: Vec<String> = reader.lines().take(3).map(|line| line.expect("read")).collect();
    sandbox.write("gone", "");
    assert!(!child.wait().expect("waited").success());
    sandbox.assert_sound();
    let ledger = sandbox.ledger("default");
    assert_eq!((&ledger["dead"], &ledger["done"]), (&json!(0), &json!(3)), "what was read, and no more");
    sandbox.redrive("run tasks.jsonl --out rest.jsonl -- cat").expect(0);
    assert_eq!(sandbox.ledger("default")["done"], 300);
    let results = json_lines(&format!("{}\n{}", read.join("\n"), sandbox.read("rest.jsonl")));
    let inputs: std::collections::BTreeSet<_> = results.iter().map(|result| result["input"].to_string()).collect();
    assert_eq!((results.len(), inputs.len()), (300, 300), "each result was written once");
}

#[test]
fn a_breaker_holds_a_failing_target_and_others_go_on() {
    let sandbox = Sandbox::new();
    let tasks: String = (0..60)
        .map(|n| format!("{{\"n\":{n},\"url\":\"https://{}/\"}}\n", if n % 2 == 0 { "sick" } else { "well" }))
        .collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.write(
        "fetch.sh",
        "read -r job\ncase $job in *//sick/*) [ -e cured ] || { echo '{\"failure\":{\"reason\":\"network\",\"code\":\"ECONNREFUSED\"}}'; exit 1; } ;; esac\necho 1\n",
    );
    sandbox.write(
        "redrive.toml",
        "[pipeline.p]\ncommand = [\"sh\", \"fetch.sh\"]\n[pipeline.p.breaker]\nattempts_min = 6\nfailure_share = 0.4\ncool_down = \"300ms\"\n[pipeline.p.retry]\nbase = \"50ms\"\n",
    );
    sandbox.redrive("push tasks.jsonl").expect(0);
    let mut worker = sandbox.spawn(&["work", "--out", "out.jsonl"]);
    eventually("the well ones are done and the sick ones wait", || {
        let status = sandbox.redrive("status --json").expect(0).json();
        let breaker = &status["breakers"][0];
        status["pipelines"]["p"]["done"] == 30 && breaker["target"] == "sick" && breaker["held"].as_u64() > Some(15)
    });
    assert_eq!(sandbox.ledger("p")["dead"], 0, "no attempt was burnt");
    sandbox.write("cured", "");
    eventually("all are done", || sandbox.ledger("p")["done"] == 60);
    kill_process(Pid::from_child(&worker), Signal::TERM).expect("signalled");
    assert_eq!(worker.wait().expect("waited").code(), Some(0));
    sandbox.assert_sound();
}

#[test]
fn a_run_does_not_wait_for_a_sick_target_without_end() {
    // With a small queue the tasks of the file wait for room, too.
    for max_queued in ["", "max_queued = 12"] {
        let sandbox = Sandbox::new();
        let tasks: String = (0..30).map(|n| format!("{{\"n\":{n},\"url\":\"https://sick.example/\"}}\n")).collect();
        sandbox.write("tasks.jsonl", tasks);
        let failure = r#"{"failure":{"reason":"network","code":"ECONNREFUSED"}}"#;
        sandbox.write("fetch.sh", format!("cat > /dev/null; [ -e cured ] && exit 0; echo '{failure}'; exit 1\n"));
        sandbox.write(
            "redrive.toml",
            format!("[pipeline.p]\ncommand = [\"sh\", \"fetch.sh\"]\n{max_queued}\n[pipeline.p.breaker]\nattempts_min = 6\ncool_down = \"300ms\"\nhold_max = \"forever\"\n[pipeline.p.retry]\nbase = \"20ms\"\n"),
        );
        let ran = sandbox.redrive("run tasks.jsonl --max-wait 1500ms").expect(7);
        let ran = ran.complains("waited: nothing moved for").complains("sick.example").complains("ECONNREFUSED");
        let left = sandbox.ledger("p")["queued"].as_u64().expect("a number");
        assert!(left > 5, "{left}");
        ran.complains(&format!("left: {left}; the same command goes on"));
        let breaker = sandbox.redrive("status --json").expect(0).json()["breakers"][0].clone();
        assert_eq!(breaker["last"]["code"], "ECONNREFUSED", "{breaker}");
        sandbox.write("cured", "");
        sandbox.redrive("run tasks.jsonl --max-wait forever");
        let ledger = sandbox.ledger("p");
        assert_eq!((&ledger["accepted"], &ledger["queued"]), (&30.into(), &0.into()), "{ledger}");
        sandbox.assert_sound();
    }
}

/// With a small queue the tasks of the file wait for room, too.
#[test]
fn tasks_of_a_target_that_stays_away_are_letters_in_the_end() {
    for (max_queued, command) in [("", "run tasks.jsonl"), ("max_queued = 12", "run tasks.jsonl"), ("", "work --drain")]
    {
        let sandbox = Sandbox::new();
        let tasks: String = (0..30).map(|n| format!("{{\"n\":{n},\"url\":\"https://sick.example/\"}}\n")).collect();
        sandbox.write("tasks.jsonl", tasks);
        let failure = r#"{"failure":{"reason":"network","code":"ECONNREFUSED","message":"nobody listens"}}"#;
        sandbox.write("fetch.sh", format!("cat > /dev/null; [ -e cured ] && exit 0; echo '{failure}'; exit 1\n"));
        sandbox.write(
            "redrive.toml",
            format!("[pipeline.p]\ncommand = [\"sh\", \"fetch.sh\"]\n{max_queued}\n[pipeline.p.breaker]\nattempts_min = 6\ncool_down = \"300ms\"\n[pipeline.p.retry]\nbase = \"20ms\"\n"),
        );
        if command == "work --drain" {
            sandbox.redrive("push tasks.jsonl").expect(0);
        }
        let ran = sandbox.redrive(&format!("{command} --max-wait 1500ms")).expect(3);
        ran.complains("given up: ").complains("redrive dead list --code target_on_hold");
        let ledger = sandbox.ledger("p");
        assert_eq!((&ledger["dead"], &ledger["queued"]), (&30.into(), &0.into()), "{ledger}");
        let given_up = sandbox.redrive("dead list --code target_on_hold --json").expect(0).json_lines();
        assert!(given_up.len() > 5 && given_up.iter().all(|letter| letter["message"] == "nobody listens"));
        sandbox.write("cured", "");
        sandbox.redrive("retry --code target_on_hold").expect(0);
        assert_eq!(sandbox.ledger("p")["done"], given_up.len());
        sandbox.assert_sound();
    }
}

#[test]
fn what_is_due_much_later_is_not_waited_for() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    let script =
        "grep -q '\"n\":2' && exit 0; echo '{\"failure\":{\"reason\":\"rate_limited\",\"retry_after\":10800}}'; exit 1";
    sandbox.write("limited.sh", script);
    let ran = sandbox.redrive("run tasks.jsonl -- sh limited.sh").expect(7);
    ran.complains("done: 1").complains("the next is due at").complains("left: 1");
    sandbox.redrive("run tasks.jsonl --max-wait never -- true").expect(2).complains("0 or forever");
}

#[test]
fn retention_does_not_hide_what_died() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", "[pipeline.p]\ncommand = [\"sh\", \"-c\", \"exit 65\"]\nretention = \"1ms\"\n");
    for n in 0..3 {
        sandbox.write("tasks.jsonl", format!("{{\"n\":{n}}}\n"));
        sandbox.redrive("run tasks.jsonl").expect(3).complains("dead: 1");
    }
}

#[test]
fn what_a_resumed_run_finishes_is_counted_once() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", numbers(300));
    sandbox.redrive("push tasks.jsonl").expect(0);
    let ran = sandbox.redrive("run tasks.jsonl --out out.jsonl -- true").expect(0).complains("done: 300");
    assert!(!ran.stderr.contains("done before"), "{}", ran.stderr);
    ran.complains("known: 300 queued already");
    sandbox.redrive("run tasks.jsonl -- true").expect(0).complains("done: 0").complains("300 done before; 0 new");
}

#[test]
fn inputs_reach_the_command_as_they_were_written() {
    let sandbox = Sandbox::new();
    let input = r#"{"big":12345678901234567890123,"small":1e400,"exact":0.1000,"order":{"z":1,"a":2}}"#;
    sandbox.write("tasks.jsonl", format!("{input}\n"));
    let ran = sandbox.redrive("run tasks.jsonl -- cat").expect(0);
    for part in ["12345678901234567890123", "1e+400", "0.1000", r#"{"z":1,"a":2}"#] {
        assert!(ran.stdout.contains(part) || ran.stdout.contains("1e400"), "{part} in {}", ran.stdout);
    }
}

#[test]
fn lines_before_a_result_are_its_log_and_warned_of_once() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", numbers(3));
    sandbox.write("shop.sh", "cat > /dev/null; echo loading; echo '{\"price\": 5}'\n");
    let ran = sandbox.redrive("run tasks.jsonl -- sh shop.sh").expect(0);
    assert_eq!(ran.stderr.matches("other lines before its result").count(), 1, "{}", ran.stderr);
    let results = ran.json_lines();
    assert!(results.iter().all(|line| (&line["result"]["price"], &line["log"]) == (&json!(5), &json!("loading"))));
    assert_eq!(results.len(), 3);
}

crate::network::over_the_network! {
    kept: [tasks_of_a_target_that_stays_away_are_letters_in_the_end],
    soak: [
        what_is_due_much_later_is_not_waited_for,
        prints_results_and_says_what_died,
        the_same_command_again_does_nothing_twice,
        results_are_appended_and_a_torn_line_is_mended,
        the_job_is_told_who_it_is,
        a_pipeline_of_the_configuration_needs_no_command,
        a_small_queue_is_waited_for,
        a_breaker_holds_a_failing_target_and_others_go_on,
        a_run_does_not_wait_for_a_sick_target_without_end,
        what_a_resumed_run_finishes_is_counted_once,
        inputs_reach_the_command_as_they_were_written,
    ],
}
