//! Jobs of the built-in handlers that a worker died with: they run again in a process of their own, and only its death is held
//! against them.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Sandbox, eventually, processes_with};
use crate::scripted::Scripted;

/// A server that lets everybody wait until it is opened.
struct Slow {
    server: Scripted,
    open: Arc<AtomicBool>,
}

impl Slow {
    fn start(body: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        let open = Arc::new(AtomicBool::new(false));
        let opened = Arc::clone(&open);
        let server = Scripted::start(move |asked| {
            if let Some(body) = body(&asked.path) {
                return (200, body);
            }
            let begun = Instant::now();
            while !opened.load(Ordering::Relaxed) && begun.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(5));
            }
            (200, "{\"state\":\"ready\",\"token\":\"t\"}".into())
        });
        Self { server, open }
    }

    fn open(&self) {
        self.open.store(true, Ordering::Relaxed);
    }

    /// Starts a worker, waits until it has asked for a path, and kills it.
    fn kill_a_worker(&self, sandbox: &Sandbox, path: &str) {
        let before = self.server.count(path);
        let mut worker = sandbox.spawn(&["work", "--drain"]);
        eventually("the server is asked", || self.server.count(path) > before);
        kill(&mut worker);
    }
}

fn kill(worker: &mut Child) {
    worker.kill().expect("killed");
    worker.wait().expect("waited");
}

fn sandbox(address: &str, keys: &str, tasks: usize) -> Sandbox {
    let sandbox = Sandbox::new();
    let config = format!(
        "[pipeline.p]\nhandler = \"http\"\nretry.base = \"10ms\"\nrequest.url = \"http://{address}/{{path}}\"\n{keys}\n"
    );
    sandbox.write("redrive.toml", config);
    sandbox.write("tasks.jsonl", (0..tasks).map(|n| format!("{{\"path\":\"page\",\"n\":{n}}}\n")).collect::<String>());
    sandbox
}

#[test]
fn killing_the_worker_again_and_again_makes_no_poison_pill() {
    let slow = Slow::start(|_| None);
    let sandbox = sandbox(&slow.server.address, "request.query.pass = \"${file:secret}\"", 2);
    sandbox.write("secret", "p4ss-w0rd\n");
    sandbox.redrive("push tasks.jsonl").expect(0);
    for _ in 0..6 {
        slow.kill_a_worker(&sandbox, "/page");
    }
    let before = slow.server.count("/page");
    let mut worker = sandbox.spawn(&["work", "--drain"]);
    eventually("both suspects run at once", || slow.server.count("/page") == before + 2);
    let jobs = sandbox.redrive("job list --all --json").expect(0).json_lines();
    let of_job = |job: &Value| processes_with(&format!("REDRIVE_JOB={}", job["id"].as_str().expect("an id")));
    let alone: Vec<u32> = jobs.iter().flat_map(of_job).collect();
    assert_eq!(alone.len(), 2, "each has a process of its own");
    let told = |pid: &u32, file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let all: Vec<u8> = alone.iter().flat_map(|pid| [told(pid, "cmdline"), told(pid, "environ")].concat()).collect();
    assert!(!String::from_utf8_lossy(&all).contains("p4ss-w0rd"), "secrets go by pipe alone");
    slow.open();
    assert!(worker.wait().expect("waited").success());
    assert!(slow.server.asked().iter().all(|asked| asked.path.ends_with("?pass=p4ss-w0rd")));
    let ledger = sandbox.ledger("p");
    assert_eq!((&ledger["done"], &ledger["dead"]), (&json!(2), &json!(0)), "{ledger}");
    for job in sandbox.redrive("job list --all --json").expect(0).json_lines() {
        assert_eq!((&job["attempts"], &job["crashes"]), (&json!(1), &json!(0)), "{job}");
    }
    sandbox.assert_sound();
}

#[test]
fn a_process_of_its_own_ends_with_the_worker() {
    let slow = Slow::start(|_| None);
    let sandbox = sandbox(&slow.server.address, "", 1);
    sandbox.redrive("push tasks.jsonl").expect(0);
    slow.kill_a_worker(&sandbox, "/page");
    let id =
        sandbox.redrive("job list --all --json").expect(0).json_lines()[0]["id"].as_str().expect("an id").to_owned();
    let mut worker = sandbox.spawn(&["work", "--drain"]);
    let marked = format!("REDRIVE_JOB={id}");
    eventually("the suspect runs alone", || slow.server.count("/page") == 2 && processes_with(&marked).len() == 1);
    kill(&mut worker);
    eventually("nobody is left", || processes_with(&marked).is_empty());
    slow.open();
}

#[test]
fn a_page_that_takes_its_process_down_is_a_poison_pill_and_the_others_finish() {
    let body = |path: &str| Some(if path == "/page" { "[1]".to_owned() } else { "x".repeat(200 << 20) });
    let server = Slow::start(body).server;
    let keys = "concurrency = 4\nmemory_max = \"100MiB\"\nhttp.body_max = \"1GiB\"";
    let sandbox = sandbox(&server.address, keys, 6);
    sandbox.write("big.jsonl", "{\"path\":\"big\"}\n");
    sandbox.redrive("push big.jsonl").expect(0);
    sandbox.redrive("push tasks.jsonl").expect(0);
    // The machine's memory ends at 150 MB: the worker, which has no limit of its own, dies of the page.
    let work = || {
        let mut worker = Command::new("sh");
        worker.args(["-c", "ulimit -d 150000; exec \"$0\" work --drain", env!("CARGO_BIN_EXE_redrive")]);
        worker.current_dir(sandbox.path("")).stdout(Stdio::null()).stderr(Stdio::null()).status().expect("started")
    };
    assert_eq!(work().code(), None, "it died");
    assert_eq!(work().code(), Some(0), "nobody takes the worker down twice");
    let ledger = sandbox.ledger("p");
    assert_eq!((&ledger["done"], &ledger["dead"]), (&json!(6), &json!(1)), "{ledger}");
    let letter = &sandbox.dead()[0];
    assert_eq!((&letter["reason"], &letter["code"]), (&json!("poison_pill"), &json!("out_of_memory")), "{letter}");
    assert_eq!((&letter["crashes"], &letter["attempts"], &letter["gate"]), (&json!(3), &json!(0), &json!("review")));
    let message = letter["message"].as_str().expect("a message");
    assert!(message.contains("of at most 100 MiB"), "{message}");
    assert_eq!(server.count("/big"), 4, "once in company, three times alone");
    sandbox.assert_sound();
}

#[test]
fn a_suspect_keeps_the_task_it_paid_for() {
    let slow = Slow::start(|path| path.starts_with("/submit").then(|| "{\"error\":0,\"task\":\"t1\"}".to_owned()));
    let sandbox = Sandbox::new();
    let config = r#"
        [pipeline.solver]
        handler = "submit-poll"
        polling = { every = "10ms", times = 3, codes = "create-task" }
        [pipeline.solver.submit]
        url = "http://ADDRESS/SUBMIT"
        json = {}
        read = { ready = { pointer = "/error", equals = [0] }, value = "/task", code = "/code" }
        [pipeline.solver.poll]
        url = "http://ADDRESS/poll"
        query = { id = "{task_id}" }
        read = { ready = { pointer = "/state", equals = ["ready"] }, value = "/token", code = "/code" }
    "#
    .replace("ADDRESS", &slow.server.address);
    // The first worker dies while it submits, at a place that does not answer.
    sandbox.write("redrive.toml", config.replace("SUBMIT", "waiting"));
    sandbox.write("tasks.jsonl", "{\"page\":1}\n");
    sandbox.redrive("push tasks.jsonl").expect(0);
    slow.kill_a_worker(&sandbox, "/waiting");
    // The second one dies while the suspect, in its own process, polls for the task that it submitted.
    sandbox.write("redrive.toml", config.replace("SUBMIT", "submit"));
    slow.kill_a_worker(&sandbox, "/poll");
    slow.open();
    let ran = sandbox.redrive("work --drain").expect(0);
    assert_eq!(ran.json_lines()[0]["result"], "t");
    assert_eq!(slow.server.count("/submit"), 1, "what was paid for is asked for again, not paid for again");
    let last = slow.server.asked().pop().expect("asked");
    assert_eq!(last.path, "/poll?id=t1");
    sandbox.assert_sound();
}

#[test]
fn suspects_keep_the_pace_of_their_target() {
    let times = Arc::<Mutex<Vec<Instant>>>::default();
    let noted = Arc::clone(&times);
    let slow = Slow::start(move |_| {
        noted.lock().expect("unpoisoned").push(Instant::now());
        None
    });
    let sandbox = sandbox(&slow.server.address, "concurrency = 4\nhttp.per_second = 1", 4);
    sandbox.redrive("push tasks.jsonl").expect(0);
    slow.kill_a_worker(&sandbox, "/page");
    slow.open();
    // A kill that came late may have let more than one request out.
    let before = times.lock().expect("unpoisoned").len();
    sandbox.redrive("work --drain").expect(0);
    let times = times.lock().expect("unpoisoned").split_off(before);
    assert_eq!(times.len(), 4);
    // Three spaces of a second, of which two may be lost to a first process that started late.
    assert!(times[3] - times[0] >= Duration::from_millis(1_000), "{:?}", times[3] - times[0]);
}
