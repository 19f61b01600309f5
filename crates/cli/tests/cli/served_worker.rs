//! `redrive` as the worker of a server, in processes of its own: killed half-way, cut off from a server that is killed, late with what it
//! did, and told to stop. Nothing is lost, nothing is settled twice, and it says what it waits for.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Sandbox, eventually, json_lines, stop_at_once};
use crate::served::{Served, answered, ask, free_address};

/// Leases as short as they may be: whoever is killed is waited for so long.
const CONFIG: &str =
    "[pipeline.shop]\ncommand = [\"sh\", \"work.sh\"]\nlease = \"5s\"\nconcurrency = 2\nout = \"out.jsonl\"\n";

struct Site {
    sandbox: Sandbox,
    address: String,
}

impl Site {
    fn new(tasks: u32, script: &str) -> (Self, Served) {
        let sandbox = Sandbox::new();
        sandbox.write("redrive.toml", CONFIG);
        sandbox.write("work.sh", script);
        sandbox.write("tasks.jsonl", (0..tasks).map(|n| format!("{{\"n\":{n}}}\n")).collect::<String>());
        let address = free_address();
        let server = Served::start(&sandbox, &address, &[]);
        (Self { sandbox, address }, server)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = self.sandbox.command();
        command.env("REDRIVE_SERVER", format!("http://{}", self.address)).args(line.split_whitespace());
        command
    }

    /// Starts a worker, with what it says in a file.
    fn start(&self, line: &str, said: &str) -> Child {
        let said = File::create(self.sandbox.path(said)).expect("made");
        self.command(line).stdout(Stdio::null()).stderr(said).spawn().expect("redrive starts")
    }

    fn count(&self, what: &str) -> u64 {
        self.sandbox.ledger("shop")[what].as_u64().unwrap_or(0)
    }

    fn results(&self) -> Vec<u64> {
        let lines = json_lines(&self.sandbox.read("out.jsonl"));
        let mut numbers: Vec<u64> = lines.iter().map(|line| line["input"]["n"].as_u64().expect("a number")).collect();
        numbers.sort_unstable();
        numbers
    }
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("signalled");
}

#[test]
fn what_a_killed_worker_had_is_done_by_the_next_and_nobody_is_blamed() {
    let (site, _server) = Site::new(12, "cat > /dev/null; sleep 0.2; echo 1");
    site.command("push tasks.jsonl").output().expect("pushed");
    let mut worker = site.start("work", "said");
    eventually("some are done", || site.count("done") >= 3);
    worker.kill().expect("killed");
    worker.wait().expect("waited");
    assert!(site.command("work --drain").output().expect("ran").status.success());
    assert_eq!((site.count("done"), site.count("dead"), site.count("queued")), (12, 0, 0));
    let mut numbers = site.results();
    numbers.dedup();
    assert_eq!(numbers, (0..12).collect::<Vec<_>>(), "nothing is missing");
    let jobs = site.sandbox.redrive("job list --all --json").expect(0).json_lines();
    assert!(jobs.iter().all(|job| job["crashes"] == 0), "{jobs:?}");
    site.sandbox.assert_sound();
}

/// The page that broke is put beside the last one that worked, wherever both were fetched.
#[test]
fn pages_that_worked_elsewhere_are_kept_at_the_server() {
    let script = "read task; case \"$task\" in *broken*) echo '<i>5</i>' > \"$REDRIVE_PAYLOAD\"; exit 65;; esac\n\
                  head -c 400000 /dev/zero | tr '\\0' x > \"$REDRIVE_PAYLOAD\"; echo 1";
    let (site, server) = Site::new(0, script);
    let tasks = ["1", "2", "3?broken"].map(|n| format!("{{\"url\":\"https://shop.example/p/{n}\"}}\n"));
    site.sandbox.write("tasks.jsonl", tasks.concat());
    site.command("run tasks.jsonl --pipeline shop").output().expect("ran");
    assert_eq!((site.count("done"), site.count("dead")), (2, 1));
    let cause = &site.sandbox.redrive("cause list --json").expect(0).json_lines()[0];
    let request = format!("GET /causes/{}/compare", cause["id"].as_str().expect("an id"));
    let compared = answered(&server.address, "", &request, &Value::Null);
    assert_eq!(compared["worked"]["payload"]["size_bytes"], 400_000, "{compared}");
    site.sandbox.assert_sound();
}

#[test]
fn a_server_that_is_killed_is_waited_for_and_nothing_is_done_twice() {
    let (site, server) = Site::new(12, "cat > /dev/null; sleep 0.1; echo 1");
    let run = site.start("run tasks.jsonl", "said");
    eventually("some are done", || site.results().len() >= 3);
    server.kill();
    eventually("it says what it waits for", || {
        let said = site.sandbox.read("said");
        said.contains("waiting for") && said.contains(&site.address)
    });
    let _server = Served::start(&site.sandbox, &site.address, &[]);
    let ended = run.wait_with_output().expect("waited");
    assert!(ended.status.success(), "{}", site.sandbox.read("said"));
    assert_eq!(site.results(), (0..12).collect::<Vec<_>>(), "each once");
    assert_eq!((site.count("done"), site.count("accepted")), (12, 12));
    site.sandbox.assert_sound();
}

#[test]
fn who_was_silent_for_longer_than_its_lease_is_told_that_it_is_too_late() {
    let script = "cat > /dev/null; touch \"begun.$$\"; while [ ! -e go ]; do sleep 0.05; done; echo 1";
    let (site, _server) = Site::new(1, script);
    site.command("push tasks.jsonl").output().expect("pushed");
    let begun = || {
        let names = std::fs::read_dir(site.sandbox.path("")).expect("read").flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().starts_with("begun.")).count()
    };
    let mut silent = site.start("work", "silent");
    eventually("it has begun", || begun() == 1);
    signal(&silent, Signal::STOP);
    let other = site.start("work --drain", "other");
    eventually("another has it", || begun() == 2);
    site.sandbox.write("go", "");
    assert!(other.wait_with_output().expect("waited").status.success(), "{}", site.sandbox.read("other"));
    signal(&silent, Signal::CONT);
    eventually("it is told", || site.sandbox.read("silent").contains("another worker has it"));
    assert!(silent.try_wait().expect("asked").is_none(), "it goes on");
    signal(&silent, Signal::TERM);
    silent.wait().expect("waited");
    assert_eq!((site.count("done"), site.count("accepted")), (1, 1), "it counts once");
    site.sandbox.assert_sound();
}

#[test]
fn who_is_told_to_stop_gives_its_leases_back() {
    let (site, _server) = Site::new(8, "cat > /dev/null; touch begun; sleep 60");
    let mut run = site.start("run tasks.jsonl", "said");
    eventually("they have begun", || site.sandbox.path("begun").exists());
    stop_at_once(&site.sandbox, &run, "said");
    assert_eq!(run.wait().expect("waited").code(), Some(130), "{}", site.sandbox.read("said"));
    assert_eq!((site.count("queued"), site.count("leased")), (8, 0), "{}", site.sandbox.read("said"));
    let jobs = site.sandbox.redrive("job list --all --json").expect(0).json_lines();
    assert!(jobs.iter().all(|job| job["attempts"] == 0 && job["crashes"] == 0), "{jobs:?}");
    site.sandbox.assert_sound();
}

/// The time that a worker has to end begins with the signal, whatever it waits for.
#[test]
fn worker_that_is_told_to_stop_ends_though_its_server_is_away() {
    let script = "cat > /dev/null; touch begun; while [ ! -e go ]; do sleep 0.05; done; echo 1";
    let (site, server) = Site::new(2, script);
    site.command("push tasks.jsonl").output().expect("pushed");
    let mut worker = site.start("work", "said");
    eventually("they have begun", || site.sandbox.path("begun").exists());
    server.kill();
    site.sandbox.write("go", "");
    eventually("it waits for the server", || site.sandbox.read("said").contains("waiting for"));
    signal(&worker, Signal::TERM);
    let told = Instant::now();
    eventually("it ends", || worker.try_wait().expect("asked").is_some());
    // 20 s for what runs, and a moment for the server to come back.
    assert!(told.elapsed() < Duration::from_secs(40), "it took {:?}", told.elapsed());
    assert!(site.sandbox.read("said").contains("they run again"), "{}", site.sandbox.read("said"));
    let _server = Served::start(&site.sandbox, &site.address, &[]);
    assert!(site.command("work --drain").output().expect("ran").status.success());
    assert_eq!((site.count("done"), site.count("accepted")), (2, 2));
    site.sandbox.assert_sound();
}

/// It takes as long as jobs that were leased ahead wait for their turn: five seconds.
#[test]
fn what_was_leased_ahead_by_who_is_stuck_is_done_by_another() {
    let script = "case $(cat) in
        *'\"n\":8'*|*'\"n\":9'*) touch \"begun.$$\"; while [ ! -e go ]; do sleep 0.05; done ;;
    esac
    echo 1";
    let (site, _server) = Site::new(30, script);
    site.command("push tasks.jsonl").output().expect("pushed");
    let stuck = site.start("work --drain", "stuck");
    eventually("two are stuck", || {
        let names = std::fs::read_dir(site.sandbox.path("")).expect("read").flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().starts_with("begun.")).count() == 2
    });
    let other = site.start("work --drain", "other");
    eventually("another does the rest", || site.count("done") == 28);
    assert_eq!((site.count("leased"), site.count("queued")), (2, 0));
    site.sandbox.write("go", "");
    for worker in [stuck, other] {
        assert!(worker.wait_with_output().expect("waited").status.success(), "{}", site.sandbox.read("stuck"));
    }
    assert_eq!(site.results(), (0..30).collect::<Vec<_>>(), "each once");
    let jobs = site.sandbox.redrive("job list --all --json").expect(0).json_lines();
    assert!(jobs.iter().all(|job| job["crashes"] == 0), "{jobs:?}");
    site.sandbox.assert_sound();
}

#[test]
fn who_has_nothing_left_to_do_is_off_the_list_of_workers() {
    let (site, _server) = Site::new(3, "cat > /dev/null; echo 1");
    assert!(site.command("run tasks.jsonl").output().expect("ran").status.success());
    let status = site.sandbox.redrive("status --json").expect(0).json();
    let workers = status["workers"].as_array().expect("workers");
    assert!(workers.iter().all(|worker| worker["remote"] != true), "{status}");
}

#[test]
fn a_changed_file_is_taken_up_and_what_runs_ends_as_it_began() {
    let script = "cat > /dev/null; touch begun; while [ ! -e go ]; do sleep 0.05; done; echo '\"old\"'";
    let (site, _server) = Site::new(1, script);
    site.command("push tasks.jsonl").output().expect("pushed");
    let mut worker = site.start("work -v", "said");
    eventually("it has begun", || site.sandbox.path("begun").exists());
    site.sandbox.write("redrive.toml", "[pipeline.shop]\nconcurrency = 2\n");
    eventually("it says what is wrong", || site.sandbox.read("said").contains("it has no command"));
    site.sandbox.write("new.sh", "cat > /dev/null; echo '\"new\"'");
    site.sandbox.write("redrive.toml", CONFIG.replace("work.sh", "new.sh"));
    site.sandbox.write("more.jsonl", "{\"n\":7}\n{\"n\":8}\n");
    eventually("it says that it changed", || site.sandbox.read("said").contains("is taken up"));
    site.command("push more.jsonl").output().expect("pushed");
    eventually("the new ones are done", || site.count("done") == 2);
    assert_eq!(site.count("leased"), 1, "the old one still runs");
    site.sandbox.write("go", "");
    eventually("it is done, too", || site.count("done") == 3);
    signal(&worker, Signal::TERM);
    worker.wait().expect("waited");
    let lines = json_lines(&site.sandbox.read("out.jsonl"));
    let by = |n: u64| lines.iter().find(|line| line["input"]["n"] == n).map(|line| line["result"].clone());
    assert_eq!((by(0), by(7), by(8)), (Some("old".into()), Some("new".into()), Some("new".into())), "{lines:?}");
    site.sandbox.assert_sound();
}

#[test]
fn evidence_that_is_too_long_for_a_request_arrives_whole() {
    let script = "cat > /dev/null; head -c 9437184 /dev/zero > \"$REDRIVE_PAYLOAD\"; echo broken >&2; exit 65";
    let (site, _server) = Site::new(1, script);
    assert_eq!(site.command("run tasks.jsonl").output().expect("ran").status.code(), Some(3));
    let payload = site.sandbox.dead()[0]["failures"][0]["payload"].clone();
    assert_eq!(payload["size_bytes"], 9_437_184, "{payload}");
    assert!(payload["truncated"] != true, "{payload}");
    assert!(site.command("payload verify").output().expect("ran").status.success());
}

#[test]
fn a_worker_takes_part_in_tries_that_are_for_workers() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", format!("{CONFIG}pure = true\n"));
    let script = "read -r job; grep -q price \"$REDRIVE_SAVED\" && { echo '{\"price\":5}'; exit 0; }; echo '{\"message\":\"no price\"}'; exit 65";
    sandbox.write("work.sh", script);
    let address = free_address();
    let _server = Served::start(&sandbox, &address, &[]);
    let site = Site { sandbox, address };
    let letter = |n: u32, page: &str| json!({ "pipeline": "shop", "input": { "n": n }, "message": "it broke", "payload": { "text": page, "status": 200 } });
    let letters = json!([letter(1, "<b class=price>5</b>"), letter(2, "<b>none</b>")]);
    answered(&site.address, "", "POST /letters", &letters);
    let own = json!({ "letters": { "pipeline": "shop" } });
    let other = answered(&site.address, "", "POST /tries", &own);
    let asked = json!({ "letters": { "pipeline": "shop" }, "for_workers": true });
    let begun = answered(&site.address, "", "POST /tries", &asked);
    let shown = |begun: &Value| {
        let path = format!("GET /tries/{}", begun["id"].as_str().expect("an id"));
        ask(&site.address, "", &path, None).expect("an answer").1
    };
    let worker = site.start("work", "said");
    eventually("it is tried", || shown(&begun)["finished_at"].is_string());
    let outcome = shown(&begun)["outcome"].clone();
    assert_eq!((&outcome["tried"], &outcome["recovered"]), (&json!(2), &json!(1)), "{outcome}");
    assert!(shown(&other)["finished_at"].is_null(), "that one is for whoever asked for it");
    assert_eq!((site.count("dead"), site.sandbox.read("out.jsonl").as_str()), (2, ""), "nothing is settled");
    signal(&worker, Signal::TERM);
    worker.wait_with_output().expect("it ends");
    site.sandbox.assert_sound();
}
