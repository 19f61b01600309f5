//! No job is done whose result is nowhere: files that are taken away, pipes whose reader goes, stores that vanish.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::harness::{Ran, Sandbox, eventually, json_lines};
use crate::served::{Served, answered, ask, free_address};

const TASKS: u64 = 20;

/// Prints the number; those above five wait for the file `go`.
const HANDLER: &str = r#"
read -r job
n=$(printf %s "$job" | sed 's/.*"n":\([0-9]*\).*/\1/')
echo "$n" >> begun.log
while [ "$n" -gt 5 ] && [ ! -e go ]; do sleep 0.02; done
echo "$n"
"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("handler.sh", HANDLER);
    sandbox.write("tasks.jsonl", (1..=TASKS).map(|n| format!("{{\"n\":{n}}}\n")).collect::<String>());
    fs::create_dir(sandbox.path("results")).expect("made");
    sandbox
}

/// Runs all tasks; after the first five `meddle` is called, then the others may go on.
fn run(sandbox: &Sandbox, meddle: impl FnOnce()) -> Ran {
    let args = ["run", "tasks.jsonl", "-j", "1", "--out", "results/out.jsonl", "--", "sh", "handler.sh"];
    let child = sandbox.command().args(args).stderr(Stdio::piped()).spawn().expect("started");
    eventually("five are done and the sixth runs", || {
        sandbox.read("begun.log").lines().count() == 6 && sandbox.ledger("default")["done"] == 5
    });
    meddle();
    sandbox.write("go", "");
    ended(child)
}

fn ended(child: Child) -> Ran {
    let Output { status, stdout, stderr } = child.wait_with_output().expect("waited");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

/// The numbers whose results are in a file.
fn numbers(sandbox: &Sandbox, file: &str) -> BTreeSet<u64> {
    json_lines(&sandbox.read(file)).iter().filter_map(|line| line["result"].as_u64()).collect()
}

#[test]
fn a_rotated_file_of_results_goes_on_as_a_new_one() {
    let sandbox = sandbox();
    let (file, rotated) = (sandbox.path("results/out.jsonl"), sandbox.path("results/out.1.jsonl"));
    run(&sandbox, || fs::rename(&file, &rotated).expect("renamed")).expect(0);
    assert_eq!(numbers(&sandbox, "results/out.1.jsonl"), (1..=5).collect());
    assert_eq!(numbers(&sandbox, "results/out.jsonl"), (6..=TASKS).collect());
    assert_eq!(sandbox.ledger("default")["done"], TASKS);
}

#[test]
fn a_folder_that_is_named_for_results_is_refused_by_its_path() {
    let sandbox = sandbox();
    let folder = sandbox.path("").canonicalize().expect("there").display().to_string();
    let refused = sandbox.redrive("run tasks.jsonl --out . -- true").expect(1).complains("--out FILE");
    refused.complains(folder.trim_end_matches('/'));
}

#[test]
fn a_file_of_results_that_is_removed_is_made_again() {
    let sandbox = sandbox();
    let file = sandbox.path("results/out.jsonl");
    let ran = run(&sandbox, || fs::remove_file(&file).expect("removed")).expect(0);
    ran.complains("moved or removed");
    assert_eq!(numbers(&sandbox, "results/out.jsonl"), (6..=TASKS).collect());
}

#[test]
fn a_file_of_results_that_is_replaced_is_appended_to() {
    let sandbox = sandbox();
    let (file, other) = (sandbox.path("results/out.jsonl"), sandbox.write("other.jsonl", "{\"result\":0}\n"));
    run(&sandbox, || fs::rename(&other, &file).expect("replaced")).expect(0);
    assert_eq!(numbers(&sandbox, "results/out.jsonl"), std::iter::once(0).chain(6..=TASKS).collect());
}

#[test]
fn results_without_a_place_leave_their_jobs_queued() {
    let sandbox = sandbox();
    let folder = sandbox.path("results");
    let ran = run(&sandbox, || fs::remove_dir_all(&folder).expect("removed")).expect(1);
    ran.complains("cannot write results to results/out.jsonl").complains("left: 15 queued");
    let ledger = sandbox.ledger("default");
    assert_eq!((&ledger["done"], &ledger["queued"]), (&5.into(), &15.into()), "{ledger}");
    sandbox.assert_sound();
}

#[test]
fn a_pipe_whose_reader_goes_loses_nothing() {
    let sandbox = sandbox();
    sandbox.write("go", "");
    let made = Command::new("mkfifo").arg(sandbox.path("pipe")).status().expect("mkfifo is installed");
    assert!(made.success());
    let args = ["run", "tasks.jsonl", "-j", "1", "--out", "pipe", "--", "sh", "handler.sh"];
    let start = || sandbox.command().args(args).stderr(Stdio::piped()).spawn().expect("started");

    let mut child = start();
    let mut said = BufReader::new(child.stderr.as_mut().expect("piped")).lines().map(|line| line.expect("read"));
    assert!(said.any(|line| line.contains("waiting for its reader")));
    kill_process(Pid::from_child(&child), Signal::INT).expect("signalled");
    assert!(!child.wait().expect("waited").success(), "Ctrl-C ends the wait");
    assert!(!sandbox.path("begun.log").exists(), "nothing was begun");

    let child = start();
    let mut reader = BufReader::new(fs::File::open(sandbox.path("pipe")).expect("opened"));
    let mut read = 0;
    for _ in 0..3 {
        read += reader.read_line(&mut String::new()).expect("a line");
    }
    assert!(read > 0);
    drop(reader);
    ended(child).expect(1).complains("cannot write results to pipe").complains("left: ");
    let ledger = sandbox.ledger("default");
    assert_eq!(ledger["leased"], 0, "{ledger}");
    assert!(ledger["done"].as_u64() < Some(TASKS), "what nobody could read is not done: {ledger}");
    sandbox.assert_sound();
}

/// A pipe holds so much; whoever has it open and does not read leaves the writer waiting.
#[test]
fn a_reader_that_does_not_read_keeps_nobody_from_stopping() {
    let sandbox = sandbox();
    sandbox.write("handler.sh", "cat > /dev/null; head -c 100000 /dev/zero | tr '\\0' a; echo begun >> begun.log\n");
    let made = Command::new("mkfifo").arg(sandbox.path("pipe")).status().expect("mkfifo is installed");
    assert!(made.success());
    let args = ["run", "tasks.jsonl", "-j", "4", "--out", "pipe", "--", "sh", "handler.sh"];
    let start = || sandbox.command().args(args).stderr(Stdio::piped()).spawn().expect("started");

    let mut child = start();
    let asleep = fs::File::open(sandbox.path("pipe")).expect("opened");
    eventually("all have begun", || sandbox.read("begun.log").lines().count() as u64 == TASKS);
    let mut said = BufReader::new(child.stderr.take().expect("piped")).lines().map(|line| line.expect("read"));
    kill_process(Pid::from_child(&child), Signal::TERM).expect("signalled");
    assert!(said.any(|line| line.contains("stopping")));
    kill_process(Pid::from_child(&child), Signal::TERM).expect("signalled");
    eventually("it ends", || child.try_wait().expect("asked").is_some());
    assert_eq!(child.wait().expect("waited").code(), Some(130));
    let ledger = sandbox.ledger("default");
    assert_eq!((&ledger["leased"], &ledger["dead"]), (&0.into(), &0.into()), "{ledger}");
    assert!(ledger["done"].as_u64() < Some(TASKS), "what nobody has read is not done: {ledger}");
    drop(asleep);

    let child = start();
    let read = std::io::read_to_string(fs::File::open(sandbox.path("pipe")).expect("opened")).expect("read");
    ended(child).expect(0);
    assert_eq!(json_lines(&read).len() as u64 + ledger["done"].as_u64().expect("a number"), TASKS);
    sandbox.assert_sound();
}

#[test]
fn a_reader_that_has_seen_enough_leaves_the_rest_queued_and_says_so() {
    let sandbox = sandbox();
    sandbox.write("go", "");
    let line = format!(
        "{} run tasks.jsonl -j 1 -- sh handler.sh 2> said.txt | head -n 5 > first.txt; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_redrive")
    );
    let status = Command::new("bash").args(["-c", &line]).current_dir(sandbox.path("")).status().expect("bash runs");
    assert_eq!(status.code(), Some(1), "{}", sandbox.read("said.txt"));
    assert_eq!(sandbox.read("first.txt").lines().count(), 5);
    let left = sandbox.ledger("default")["queued"].as_u64().expect("a number");
    assert!(left > 0);
    let said = sandbox.read("said.txt");
    assert!(said.contains("nobody reads standard output any more"), "{said}");
    assert!(said.contains(&format!("left: {left} queued")), "{said}");
}

#[test]
fn standard_output_that_is_a_removed_file_is_no_place_for_results() {
    let sandbox = sandbox();
    let out = fs::File::create(sandbox.path("out.jsonl")).expect("made");
    let mut command = sandbox.command();
    command.args(["run", "tasks.jsonl", "--", "sh", "handler.sh"]).stdout(out).stderr(Stdio::piped());
    fs::remove_file(sandbox.path("out.jsonl")).expect("removed");
    sandbox.write("go", "");
    ended(command.spawn().expect("started")).expect(1).complains("the file it goes to was removed");
    assert_eq!(sandbox.ledger("default")["done"], 0);
}

#[test]
fn a_store_that_is_deleted_or_replaced_is_noticed() {
    for replaced in [false, true] {
        let sandbox = sandbox();
        let store = sandbox.path(".redrive/redrive.db");
        let other = sandbox.path("other.db");
        let ran = run(&sandbox, || {
            if replaced {
                sandbox.redrive("push tasks.jsonl --store sqlite:other.db").expect(0);
                fs::rename(&other, &store).expect("replaced");
            } else {
                fs::remove_dir_all(sandbox.path(".redrive")).expect("removed");
            }
        });
        ran.expect(1).complains(".redrive/redrive.db was removed or replaced while it was in use");
        assert_eq!(sandbox.path(".redrive").exists(), replaced, "nothing was made in its place");
    }
}

/// Others begin a new log when one is taken away. What they write stays, whenever the worker with the old one ends.
#[test]
fn tasks_pushed_after_the_log_was_taken_away_are_kept() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", "[pipeline.p]\ncommand = [\"cat\"]\n");
    sandbox.write("tasks.jsonl", "{\"n\":0}\n");
    sandbox.redrive("push tasks.jsonl").expect(0);
    let worker = sandbox.command().arg("work").stderr(Stdio::piped()).spawn().expect("started");
    eventually("it works", || sandbox.ledger("p")["done"] == 1);
    for ending in ["-wal", "-shm"] {
        fs::remove_file(sandbox.path(&format!(".redrive/redrive.db{ending}"))).expect("removed");
    }
    for n in 1..=10 {
        sandbox.write("more.jsonl", format!("{{\"n\":{n}}}\n"));
        sandbox.redrive("push more.jsonl").expect(0);
    }
    ended(worker).expect(1).complains("redrive.db-wal was removed or replaced while it was in use");
    assert_eq!(sandbox.ledger("p")["accepted"], 11);
    sandbox.redrive("audit").expect(0);
}

/// Suspends a process while it does not write: the store would stay locked.
fn suspend_between_writes(sandbox: &Sandbox, process: &Child) {
    let store = rusqlite::Connection::open(sandbox.path(".redrive/redrive.db")).expect("opened");
    store.busy_timeout(Duration::ZERO).expect("set");
    eventually("it is suspended between two writes", || {
        kill_process(Pid::from_child(process), Signal::STOP).expect("suspended");
        // It stops a moment later.
        std::thread::sleep(Duration::from_millis(20));
        let free = store.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok();
        if !free {
            kill_process(Pid::from_child(process), Signal::CONT).expect("woken");
        }
        free
    });
}

#[test]
fn what_another_worker_took_over_is_not_written_twice() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    let script = "echo x >> begun.log; while [ ! -e go ]; do sleep 0.02; done; echo \\\"$REDRIVE_WORKER\\\"";
    sandbox.write(
        "redrive.toml",
        format!("[pipeline.p]\ncommand = [\"sh\", \"-c\", '''{script}''']\nlease = \"300ms\"\n"),
    );
    let begun = |times| eventually("it runs", || sandbox.read("begun.log").lines().count() == times);
    let args = ["run", "tasks.jsonl", "--out", "out.jsonl"];
    let mut first = sandbox.spawn(&args);
    begun(1);
    suspend_between_writes(&sandbox, &first);
    let mut second = sandbox.spawn(&args);
    begun(2);
    sandbox.write("go", "");
    assert_eq!(second.wait().expect("waited").code(), Some(0));
    let result = sandbox.read("out.jsonl");
    assert_eq!(result.lines().count(), 1);
    kill_process(Pid::from_child(&first), Signal::CONT).expect("woken");
    first.wait().expect("waited");
    assert_eq!(sandbox.read("out.jsonl"), result);
    sandbox.assert_sound();
}

fn exported(sandbox: &Sandbox, args: &[&str]) -> Vec<serde_json::Value> {
    json_lines(&sandbox.run(&[&["result", "export"], args].concat()).expect(0).stdout)
}

#[test]
fn results_that_went_to_no_file_are_given_back() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
    let printed = sandbox.redrive("run tasks.jsonl -- cat").expect(0).stdout;
    let mut printed = json_lines(&printed);
    let mut kept = exported(&sandbox, &[]);
    for results in [&mut printed, &mut kept] {
        results.sort_by_key(|result| result["input"]["n"].as_u64());
    }
    assert_eq!(kept, printed);
    let id = kept[1]["id"].as_str().expect("an id");
    let shown = sandbox.run(&["job", "show", id, "--json"]).expect(0).json();
    assert_eq!(shown["result"], kept[1]["result"]);
    assert!(sandbox.run(&["job", "show", id]).expect(0).stdout.contains("\nresult\n"));
    sandbox.redrive("status").expect(0).prints("results kept: 3, see redrive result export");
    sandbox.redrive("doctor").expect(0).prints("results: 3 are kept");
    assert!(exported(&sandbox, &["--until", "1h"]).is_empty());
    assert_eq!(exported(&sandbox, &["--bare", "--since", "1h"]).len(), 3);
    sandbox.redrive("result export kept.jsonl").expect(0).complains("3 results exported");
    assert_eq!(json_lines(&sandbox.read("kept.jsonl")).len(), 3);
    sandbox.redrive("result export kept.jsonl").expect(1).complains("kept.jsonl is there already");
    sandbox.redrive("result export --pipeline nobody").expect(1).complains("no task of a pipeline nobody");
    sandbox.redrive("run tasks.jsonl --pipeline filed --out filed.jsonl -- cat").expect(0);
    let none = sandbox.redrive("result export --pipeline filed").expect(0);
    none.complains("0 results exported").complains("none of filed are kept");
}

#[test]
fn results_above_the_limit_are_removed_and_counted() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", "[pipeline.p]\ncommand = [\"cat\"]\nkept_results_max = \"1\"\n");
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    sandbox.redrive("run tasks.jsonl").expect(0);
    sandbox.redrive("status").expect(0).prints("2 results of p");
    sandbox.redrive("doctor").expect(0).prints("2 were removed before their time");
    sandbox.redrive("result export").expect(0).complains("2 older results of p were removed");
    sandbox.assert_sound();
}

#[test]
fn results_of_a_worker_of_a_server_go_where_the_pipeline_has_them() {
    let sandbox = Sandbox::new();
    let served =
        "[pipeline.shop]\nhandler = \"remote\"\nout = \"shop.jsonl\"\n[pipeline.books]\nhandler = \"remote\"\n";
    sandbox.write("redrive.toml", served);
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    let address = free_address();
    let _server = Served::start(&sandbox, &address, &[]);
    for name in ["shop", "books", "other"] {
        sandbox.run(&["push", "tasks.jsonl", "--pipeline", name]).expect(0);
    }
    let elsewhere = Sandbox::new();
    let work = |name: &str, more: &[&str]| {
        let args = [&["work", "--drain", "--pipeline", name], more, &["--", "cat"]].concat();
        let mut command = elsewhere.command();
        command
            .args(args)
            .env("REDRIVE_SERVER", format!("http://{address}"))
            .env("XDG_STATE_HOME", sandbox.path("state"));
        ended(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started")).expect(0);
    };
    work("shop", &[]);
    assert_eq!(numbers_of_inputs(&sandbox.read("shop.jsonl")), [1, 2], "the server writes them");
    work("books", &[]);
    assert_eq!(exported(&sandbox, &["--pipeline", "books"]).len(), 2, "the store keeps them");
    work("other", &["--out", "here.jsonl"]);
    assert_eq!(numbers_of_inputs(&elsewhere.read("here.jsonl")), [1, 2], "the worker writes them");
    assert!(!sandbox.path("here.jsonl").exists());
}

/// The server is killed when it has written a result and before it has settled the job: a lock on the file of results holds it up, then
/// one on the store.
#[test]
fn a_result_is_written_once_though_the_server_is_killed_before_it_is_settled() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", "[pipeline.shop]\nhandler = \"remote\"\nout = \"r.jsonl\"\n");
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    let address = free_address();
    let server = Served::start(&sandbox, &address, &[]);
    sandbox.run(&["push", "tasks.jsonl", "--pipeline", "shop"]).expect(0);
    let leased = answered(&address, "", "POST /leases", &json!({ "pipelines": ["shop"], "max": 2 }));
    let done = |n: usize| json!({ "lease": leased["leases"][n]["lease"], "verdict": "done", "result": n });
    let settlement = json!({ "worker": leased["worker"], "jobs": [done(0), done(1)] });
    let file = fs::File::create(sandbox.path("r.jsonl")).expect("made");
    file.lock().expect("locked");
    let store = rusqlite::Connection::open(sandbox.path(".redrive/redrive.db")).expect("opened");
    std::thread::scope(|scope| {
        let lost = scope.spawn(|| ask(&address, "", "POST /leases/settle", Some(&settlement)));
        eventually("the server waits for the file", || is_waited_for(&file));
        store.busy_timeout(Duration::from_secs(60)).expect("set");
        store.execute_batch("BEGIN IMMEDIATE").expect("locked");
        file.unlock().expect("unlocked");
        eventually("the results are written", || sandbox.read("r.jsonl").lines().count() == 2);
        server.kill();
        assert_eq!(lost.join().expect("ended"), None, "nothing was answered");
    });
    store.execute_batch("ROLLBACK").expect("unlocked");
    assert_eq!(sandbox.ledger("shop")["leased"], 2, "nothing was settled");
    let _server = Served::start(&sandbox, &address, &[]);
    let settled = answered(&address, "", "POST /leases/settle", &settlement);
    assert!(settled["jobs"].as_array().expect("jobs").iter().all(|job| job["result"] == "ok"), "{settled}");
    assert_eq!(numbers_of_inputs(&sandbox.read("r.jsonl")), [1, 2]);
    assert_eq!(sandbox.ledger("shop")["done"], 2);
    sandbox.assert_sound();
}

/// Returns whether somebody waits for the lock on a file.
fn is_waited_for(file: &fs::File) -> bool {
    let locks = fs::read_to_string("/proc/locks").expect("read");
    let inode = format!(":{} ", file.metadata().expect("there").ino());
    locks.lines().any(|line| line.contains("->") && line.contains(&inode))
}

/// The numbers of the tasks whose results are in a text, in their order.
fn numbers_of_inputs(text: &str) -> Vec<u64> {
    let mut numbers: Vec<_> = json_lines(text).iter().filter_map(|line| line["input"]["n"].as_u64()).collect();
    numbers.sort_unstable();
    numbers
}
