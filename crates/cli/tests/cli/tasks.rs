//! Tasks as users have them: files that grow, other forms, standard input as it comes, stores of before.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Sandbox, eventually, json_lines, peak_kib};

pub fn urls(range: std::ops::Range<u32>) -> String {
    range.map(|n| format!("https://shop.example/{n}\n")).collect()
}

/// Runs with a text as standard input.
fn fed(sandbox: &Sandbox, args: &[&str], text: &[u8]) -> (Option<i32>, Vec<Value>, String) {
    let mut child = open(sandbox, args);
    child.stdin.take().expect("piped").write_all(text).expect("written");
    let output = child.wait_with_output().expect("waited");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), json_lines(&stdout), stderr.into_owned())
}

/// Starts with a standard input that stays open.
fn open(sandbox: &Sandbox, args: &[&str]) -> Child {
    let mut command = sandbox.command();
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("started")
}

#[test]
fn a_file_that_grew_is_run_from_where_it_grew() {
    let sandbox = Sandbox::new();
    sandbox.write("urls.txt", urls(0..100));
    sandbox.redrive("run urls.txt -- echo 1").expect(0).complains("done: 100");
    sandbox.write("urls.txt", urls(0..110));
    let ran = sandbox.redrive("run urls.txt -- echo 1").expect(0).complains("done: 10");
    assert_eq!(ran.complains("known: 100 done before; 10 new").complains("--again").json_lines().len(), 10);
    sandbox.write("urls.txt", urls(1..110).replace("/50\n", "/5000\n"));
    sandbox.redrive("run urls.txt -- echo 1").expect(0).complains("done: 1 ");
    sandbox.write("other.csv", "url\nhttps://shop.example/3\nhttps://shop.example/new\n");
    sandbox.redrive("run other.csv -- echo 1").expect(0).complains("known: 1 done before; 1 new");
    sandbox.assert_sound();
}

/// Half of an address is not fetched; nothing is lost, either.
#[test]
fn a_line_that_is_still_being_written_waits_for_the_next_run() {
    let sandbox = Sandbox::new();
    let mut file = std::fs::File::create(sandbox.path("urls.txt")).expect("made");
    file.write_all(b"https://shop.example/1\nhttps://shop.exam").expect("written");
    let said = "the last line of the file is still being written";
    let foretold = sandbox.redrive("run urls.txt --dry-run -- echo 1").expect(0).stdout;
    assert!(foretold.contains("1 would be enqueued") && foretold.contains(said), "{foretold}");
    let ran = sandbox.redrive("run urls.txt -- echo 1").expect(0).complains("done: 1 ").complains(said);
    assert_eq!(ran.json_lines().len(), 1);
    file.write_all(b"ple/2").expect("written");
    drop(file);
    let ran = sandbox.redrive("run urls.txt -- echo 1").expect(0).complains("done: 1 ");
    assert_eq!(ran.json_lines()[0]["input"]["url"], "https://shop.example/2");
    assert!(!ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn tables_arrays_and_compressed_files_are_tasks_too() {
    let sandbox = Sandbox::new();
    sandbox.write("products.csv", "sku,name\n007,\"Tea, green\"\n008,Cup\n");
    let pack = |line: &str| {
        let packed = Command::new("sh").args(["-c", line]).current_dir(sandbox.path("")).status();
        assert!(packed.expect("ran").success(), "{line}");
    };
    pack("gzip -k products.csv");
    let first = sandbox.redrive("run products.csv.gz --key sku -- cat").expect(0).json_lines();
    let mut inputs: Vec<_> = first.iter().map(|result| result["input"].clone()).collect();
    inputs.sort_by_key(|input| input["sku"].to_string());
    assert_eq!(inputs, [json!({"sku": "007", "name": "Tea, green"}), json!({"sku": "008", "name": "Cup"})]);
    assert!(first.iter().any(|result| result["key"] == "007"));
    sandbox.write("products.json", "[{\"sku\": \"008\", \"name\": \"Mug\"}, {\"sku\": 9}]");
    let second = sandbox.redrive("run products.json --key sku -- cat").expect(0).json_lines();
    assert_eq!(second.iter().map(|result| result["key"].clone()).collect::<Vec<_>>(), ["9"]);
    sandbox.write("bad.csv", "sku,name\n1,a,b\n2,c\n");
    let ran = sandbox.redrive("run bad.csv --key sku -- cat").expect(4);
    ran.complains("bad.csv:2: it has 3 fields, the header has 2").complains("done: 1");
    pack("head -c 40 products.csv.gz > cut.csv.gz");
    let ran = sandbox.redrive("run cut.csv.gz --key sku -- cat").expect(4);
    ran.complains("the compressed file breaks off or is damaged here");
}

#[test]
fn what_would_be_done_is_told_and_nothing_is_made() {
    let sandbox = Sandbox::new();
    sandbox.write("urls.txt", urls(0..20));
    let told = sandbox.redrive("run urls.txt --limit 8 --dry-run -- true").expect(0);
    assert!(told.stdout.starts_with("pipeline default: 8 would be enqueued, and more are left in the file\n"));
    assert!(told.stdout.contains("{\"url\":\"https://shop.example/0\"}"), "{}", told.stdout);
    assert!(!sandbox.path(".redrive").exists());
    sandbox
        .redrive("run urls.txt --limit 8 -- true")
        .expect(0)
        .complains("done: 8 (8 without a result)")
        .complains("limit reached");
    let told = sandbox.redrive("run urls.txt --dry-run --json -- true").expect(0).json();
    assert_eq!((&told["new"], &told["known"]["done"]), (&json!(12), &json!(8)));
    sandbox.redrive("run urls.txt --limit 8 -- true").expect(0).complains("8 done before; 8 new");
    sandbox.redrive("run urls.txt --limit 8 -- true").expect(0).complains("16 done before; 4 new");
}

#[test]
fn standard_input_is_worked_on_as_it_comes() {
    let sandbox = Sandbox::new();
    let args = ["run", "-", "--out", "out.jsonl", "--", "cat"];
    let mut child = open(&sandbox, &args);
    let mut stdin = child.stdin.take().expect("piped");
    for n in 0..3 {
        stdin.write_all(urls(n..n + 1).as_bytes()).expect("written");
        eventually("what came is done", || sandbox.read("out.jsonl").lines().count() == n as usize + 1);
    }
    drop(stdin);
    assert_eq!(child.wait().expect("waited").code(), Some(0));
    let (code, results, said) = fed(&sandbox, &["run", "-", "--", "cat"], urls(0..4).as_bytes());
    assert_eq!((code, results.len()), (Some(0), 1), "{said}");
    assert!(said.contains("known: 3 done before; 1 new"), "{said}");
    let (code, results, said) = fed(&sandbox, &["run", "-", "--strict", "--", "cat"], b"{\"a\":1}\n{\n");
    assert_eq!((code, results.len()), (Some(2), 0), "{said}");
}

/// `tail -f urls | redrive run -`, and Ctrl-C: what had come is queued, and the next run does it.
#[test]
fn an_interrupted_stream_loses_nothing_that_had_come() {
    let sandbox = Sandbox::new();
    sandbox.write("slow.sh", "cat > /dev/null; echo x >> begun.log; sleep 0.2; echo 1\n");
    let mut child = open(&sandbox, &["run", "-", "-j", "2", "--out", "out.jsonl", "--", "sh", "slow.sh"]);
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(urls(0..40).as_bytes()).expect("written");
    eventually("jobs run", || sandbox.read("begun.log").lines().count() >= 2);
    stdin.write_all(format!("{}https://shop.exa", urls(40..60)).as_bytes()).expect("written");
    kill_process(Pid::from_child(&child), Signal::INT).expect("signalled");
    let output = child.wait_with_output().expect("waited");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("standard input:61: its end had not come yet"), "{said}");
    drop(stdin);
    let ledger = sandbox.ledger("default");
    assert_eq!((&ledger["accepted"], &ledger["leased"]), (&json!(60), &json!(0)), "{said}");
    let (code, _, said) = fed(&sandbox, &["run", "-", "--out", "out.jsonl", "--", "echo", "1"], b"");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(json_lines(&sandbox.read("out.jsonl")).len(), 60);
    sandbox.assert_sound();
}

#[test]
fn a_named_pipe_is_read_as_it_comes() {
    let sandbox = Sandbox::new();
    let made = Command::new("mkfifo").arg(sandbox.path("tasks.csv")).status();
    assert!(made.expect("ran").success());
    let child = sandbox.spawn(&["run", "tasks.csv", "--out", "out.jsonl", "--", "cat"]);
    let mut pipe = std::fs::File::options().write(true).open(sandbox.path("tasks.csv")).expect("opened");
    pipe.write_all(b"sku,name\n1,a\n").expect("written");
    eventually("what came is done", || sandbox.read("out.jsonl").lines().count() == 1);
    pipe.write_all(b"2,b\n").expect("written");
    drop(pipe);
    assert_eq!(child.wait_with_output().expect("waited").status.code(), Some(0));
    assert_eq!(json_lines(&sandbox.read("out.jsonl")).len(), 2);
}

/// What was read of a pipe is nowhere else: a limit does not lose it without a word.
#[test]
fn a_limit_says_what_had_come_of_a_stream_and_is_not_taken() {
    let sandbox = Sandbox::new();
    let args = ["run", "-", "--limit", "10", "--", "cat"];
    let (code, results, said) = fed(&sandbox, &args, urls(0..50).as_bytes());
    assert_eq!((code, results.len()), (Some(4), 10), "{said}");
    assert!(said.contains("limit reached: 40 more tasks had come and are NOT taken"), "{said}");
    let (code, results, said) = fed(&sandbox, &args, urls(0..20).as_bytes());
    assert_eq!((code, results.len()), (Some(0), 10), "{said}");
    assert!(!said.contains("the same command"), "{said}");
    let mut pushing = open(&sandbox, &["push", "-", "--limit", "1"]);
    pushing.stdin.take().expect("piped").write_all(urls(60..63).as_bytes()).expect("written");
    let pushed = pushing.wait_with_output().expect("waited");
    let said = String::from_utf8_lossy(&pushed.stderr);
    assert!(pushed.status.code() == Some(4) && said.contains("limit reached: 2 more tasks"), "{said}");
}

/// A million lines, and then one that unpacks to a gigabyte: memory has room for neither.
#[test]
fn memory_does_not_grow_with_what_is_read() {
    let sandbox = Sandbox::new();
    let make =
        "{ seq 50000 | sed 's|^|https://shop.example/|'; head -c 200000000 /dev/zero | tr '\\0' x; } | gzip -1 > t.gz";
    let made = Command::new("sh").args(["-c", make]).current_dir(sandbox.path("")).status();
    assert!(made.expect("ran").success());
    let peak = peak_kib(&sandbox, &["push", "t.gz"], 4);
    assert!(peak < 150 * 1024, "{peak} KiB");
    assert_eq!(sandbox.ledger("default")["queued"], 50_000);
}

#[test]
fn a_file_of_before_that_changed_is_asked_about_by_whatever_its_tasks_are_to_be_known() {
    let sandbox = Sandbox::new();
    sandbox.write("urls.txt", urls(0..10));
    sandbox.redrive("run urls.txt -- true").expect(0);
    of_before(&sandbox, &urls(0..10));
    sandbox.write("urls.txt", urls(1..10));
    sandbox.redrive("run urls.txt --key url -- true").expect(2).complains("9 of its tasks are new");
    let (code, _, said) = fed(&sandbox, &["run", "-", "--key", "url", "--", "true"], urls(1..10).as_bytes());
    assert_eq!(code, Some(2), "{said}");
    // Most of them may be known.
    sandbox.write("later.txt", urls(20..60));
    sandbox.redrive("run later.txt --yes -- true").expect(0);
    sandbox.write("urls.txt", format!("{}{}", urls(1..10), urls(20..60)));
    sandbox.redrive("run urls.txt -- true").expect(2).complains("9 of its tasks are new");
    sandbox.write("later.txt", urls(20..62));
    sandbox.redrive("run later.txt -- true").expect(0).complains("40 done before; 2 new");
    assert_eq!(sandbox.ledger("default")["accepted"], 52);
    // What brings its key was always known by it.
    sandbox.write("keyed.jsonl", "{\"key\":\"a\"}\n");
    sandbox.redrive("run keyed.jsonl --key url -- true").expect(0).complains("done: 1");
}

/// The store as it was when tasks were known by their file and line.
pub fn of_before(sandbox: &Sandbox, text: &str) {
    let conn = Connection::open(sandbox.path(".redrive/redrive.db")).expect("opened");
    let hash = blake3::hash(text.as_bytes()).to_hex()[..24].to_owned();
    conn.execute("INSERT INTO task_file SELECT id, ?1 FROM pipeline", [&hash]).expect("written");
    for (number, line) in (1..).zip(text.lines()) {
        let select = "SELECT job FROM done WHERE key = ?1";
        let job: Vec<u8> = conn.query_row(select, [content_key(line)], |row| row.get(0)).expect("its job");
        for table in ["done", "identity"] {
            let set = format!("UPDATE {table} SET key = ?2 WHERE job = ?1");
            conn.execute(&set, rusqlite::params![job, format!("{hash}:{number}")]).expect("written");
        }
    }
}

fn content_key(url: &str) -> String {
    let input = json!({ "url": url });
    redrive_core::tasks::ContentHash::of(input.as_object().expect("an object")).key(1)
}

#[test]
fn a_file_of_before_is_known_while_it_only_grows_and_is_asked_about_when_it_changed() {
    let sandbox = Sandbox::new();
    sandbox.write("urls.txt", urls(0..10));
    sandbox.redrive("run urls.txt -- true").expect(0);
    of_before(&sandbox, &urls(0..10));
    sandbox.redrive("run urls.txt -- true").expect(0).complains("10 done before; 0 new");
    sandbox.write("urls.txt", urls(0..12));
    sandbox.redrive("run urls.txt -- true").expect(0).complains("10 done before; 2 new");
    sandbox.write("urls.txt", urls(1..12));
    let asked = sandbox.redrive("run urls.txt -- true").expect(2).complains("9 of its tasks are new");
    asked.complains("--yes");
    let (code, _, said) = fed(&sandbox, &["run", "-", "--", "true"], urls(1..12).as_bytes());
    assert_eq!(code, Some(2), "{said}");
    assert_eq!(sandbox.ledger("default")["accepted"], 12);
    sandbox.redrive("run urls.txt --yes -- true").expect(0).complains("2 done before; 9 new");
    sandbox.redrive("run urls.txt -- true").expect(0).complains("11 done before; 0 new");
    sandbox.write("urls.txt", urls(2..30));
    sandbox.write("few.txt", format!("{}https://new.example/\n", urls(2..12)));
    sandbox.redrive("run few.txt -- true").expect(0).complains("10 done before; 1 new");
    sandbox.redrive("run urls.txt --round r -- true").expect(0).complains("done: 28");
    sandbox.assert_sound();
}
