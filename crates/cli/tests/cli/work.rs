//! `redrive push` and `redrive work`: several processes, several pipelines, one file.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Sandbox, eventually};

const CONFIG: &str = r#"
[pipeline.a]
command = ["sh", "-c", "cat > /dev/null; echo a >> ran.log"]
[pipeline.b]
command = ["sh", "-c", "cat > /dev/null; echo b >> ran.log"]
"#;

fn tasks(count: usize) -> String {
    (0..count).map(|n| format!("{{\"n\":{n}}}\n")).collect()
}

#[test]
fn space_is_given_back_while_nobody_works() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.redrive("run tasks.jsonl --pipeline p -- true").expect(0);
    assert!(sandbox.redrive("doctor --compact").expect(0).stdout.starts_with("the store had "));
    let sizes = sandbox.redrive("doctor --compact --json").expect(0).json();
    assert!(sizes["after_bytes"].as_u64() <= sizes["before_bytes"].as_u64(), "{sizes}");
    sandbox.write("redrive.toml", "[pipeline.p]\ncommand = [\"true\"]\n");
    let mut worker = sandbox.spawn(&["work"]);
    eventually("it is at work", || sandbox.redrive("doctor").expect(0).stdout.contains("1 at work"));
    sandbox.redrive("doctor --compact").expect(1).complains("1 worker is at work on the store: stop it first");
    worker.kill().expect("killed");
    worker.wait().expect("waited");
    sandbox.assert_sound();
}

#[test]
fn two_workers_share_two_pipelines() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", CONFIG);
    sandbox.write("tasks.jsonl", tasks(100));
    let mut workers = [sandbox.spawn(&["work"]), sandbox.spawn(&["work"])];
    sandbox.redrive("push tasks.jsonl").expect(2).complains("name one of the pipelines with --pipeline: a, b");
    sandbox.redrive("push tasks.jsonl --pipeline a").expect(0);
    sandbox.redrive("push tasks.jsonl --pipeline b").expect(0);
    let again = sandbox.redrive("push tasks.jsonl --pipeline b").expect(0);
    assert!(again.stdout.contains("0 accepted, 100 known already"), "{}", again.stdout);
    eventually("all are done", || sandbox.ledger("a")["done"] == 100 && sandbox.ledger("b")["done"] == 100);
    assert_eq!(sandbox.read("ran.log").lines().count(), 200, "each ran once");
    for worker in &mut workers {
        kill_process(Pid::from_child(worker), Signal::INT).expect("signalled");
        assert_eq!(worker.wait().expect("waited").code(), Some(0));
    }
    assert_eq!(sandbox.redrive("status --json").expect(0).json()["workers"], serde_json::json!([]));
    sandbox.assert_sound();
}

#[test]
fn draining_ends_when_nothing_is_left() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", CONFIG);
    sandbox.write("tasks.jsonl", tasks(20));
    sandbox.redrive("push tasks.jsonl --pipeline a").expect(0);
    sandbox.redrive("work --drain").expect(0);
    assert_eq!(sandbox.ledger("a")["done"], 20);
    sandbox.redrive("work --pipeline c --drain").expect(2).complains("pipeline c has no command");
}

#[test]
fn a_cancelled_job_stops_running() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", tasks(1));
    sandbox.write(
        "redrive.toml",
        "[pipeline.p]\ncommand = [\"sh\", \"-c\", \"echo x >> begun.log; exec sleep 300\"]\nlease = \"300ms\"\n",
    );
    let mut worker = sandbox.spawn(&["work", "--drain"]);
    sandbox.redrive("push tasks.jsonl").expect(0);
    worker.kill().expect("killed");
    worker.wait().expect("waited");
    let mut worker = sandbox.spawn(&["work", "--drain"]);
    eventually("the job runs", || sandbox.read("begun.log").lines().count() >= 1);
    let id = sandbox.redrive("job list --json").expect(0).json_lines()[0]["id"].as_str().expect("an id").to_owned();
    sandbox.run(&["job", "cancel", &id, "--why", "wrong file"]).expect(0);
    assert_eq!(worker.wait().expect("waited").code(), Some(0), "it ends as nothing is left");
    let shown = sandbox.run(&["job", "show", &id]).expect(0);
    assert!(shown.stdout.contains("discarded") && shown.stdout.contains("wrong file"), "{}", shown.stdout);
    sandbox.assert_sound();
}

#[test]
fn old_dead_letters_go_with_a_record() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", tasks(3));
    sandbox.redrive("run tasks.jsonl --pipeline p --attempts 1 -- false").expect(3);
    sandbox.write("redrive.toml", "[pipeline.p]\ncommand = [\"true\"]\nretention = \"1ms\"\n");
    // As if the run before had been more than a minute ago: old letters are looked for once a minute.
    let store = rusqlite::Connection::open(sandbox.path(".redrive/redrive.db")).expect("opened");
    store.execute("UPDATE chore SET last_run = last_run - 61000", []).expect("changed");
    drop(store);
    let mut worker = sandbox.spawn(&["work"]);
    eventually("they are discarded", || sandbox.ledger("p")["discarded"] == 3);
    worker.kill().expect("killed");
    worker.wait().expect("waited");
    let jobs = sandbox.redrive("job list --state discarded --json").expect(0).json_lines();
    let shown = sandbox.run(&["job", "show", jobs[0]["id"].as_str().expect("an id"), "--json"]).expect(0).json();
    assert_eq!(shown["discard"]["actor"], "retention");
    sandbox.assert_sound();
}

/// As if all of it had happened while the clock was 45 days behind: the clock's last look too.
#[test]
fn letters_of_a_wrong_clock_are_not_discarded_when_it_is_set_right() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", tasks(3));
    sandbox.write("redrive.toml", "[pipeline.p]\ncommand = [\"false\"]\nretry = { attempts = 1 }\n");
    sandbox.redrive("run tasks.jsonl").expect(3);
    let store = rusqlite::Connection::open(sandbox.path(".redrive/redrive.db")).expect("opened");
    let days: i64 = 45 * 86_400_000;
    store.execute("UPDATE dead SET died_at = died_at - ?1, kept_from = kept_from - ?1", [days]).expect("changed");
    let at: String =
        store.query_row("SELECT seen ->> 'at' FROM clock", [], |row| row.get(0)).expect("it was looked at");
    let behind = at.parse::<redrive_core::time::Timestamp>().expect("a time") - Duration::from_millis(days as u64);
    let changed = "UPDATE clock SET seen = json_set(seen, '$.at', ?1)";
    store.execute(changed, [behind.to_string()]).expect("changed");
    store.execute("UPDATE chore SET last_run = last_run - ?1", [days]).expect("changed");
    drop(store);
    let log = std::fs::File::create(sandbox.path("log")).expect("made");
    let mut worker = sandbox.command().arg("work").stderr(log).spawn().expect("started");
    eventually("it is noticed", || sandbox.read("log").contains("the clock went ahead by more than a day"));
    std::thread::sleep(Duration::from_millis(300));
    worker.kill().expect("killed");
    worker.wait().expect("waited");
    assert_eq!(sandbox.ledger("p")["dead"], 3);
    sandbox.assert_sound();
}

/// Two pipelines: one that works, and one that cannot as it is.
fn one_of_two_is_broken(broken: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let good = "command = [\"sh\", \"-c\", \"cat > /dev/null; echo good >> ran.log\"]";
    sandbox.write("redrive.toml", format!("[pipeline.good]\n{good}\n[pipeline.broken]\n{broken}\n"));
    sandbox.write("tasks.jsonl", tasks(10));
    for name in ["good", "broken"] {
        sandbox.run(&["push", "tasks.jsonl", "--pipeline", name]).expect(0);
    }
    sandbox
}

/// Lets a worker run until the good pipeline is done and the broken one is held, mends it, and sees it go on.
fn held_until_mended(sandbox: &Sandbox, why: &str, mend: impl FnOnce()) {
    let mut worker = sandbox.spawn(&["work"]);
    eventually("the good one is done", || sandbox.ledger("good")["done"] == 10);
    let held = || sandbox.redrive("status --json").expect(0).json()["workers"][0]["holds"][0].clone();
    eventually("the broken one is held", || held()["pipeline"] == "broken");
    assert!(held()["why"].as_str().is_some_and(|text| text.contains(why)), "{}", held());
    let status = sandbox.redrive("status").expect(0).stdout;
    assert!(status.contains("held pipeline") && status.contains(why), "{status}");
    assert_eq!(sandbox.ledger("broken")["done"], 0);
    mend();
    eventually("the broken one goes on by itself", || sandbox.ledger("broken")["done"] == 10);
    eventually("it is held no more", || held().is_null());
    kill_process(Pid::from_child(&worker), Signal::TERM).expect("signalled");
    assert_eq!(worker.wait().expect("waited").code(), Some(0));
    sandbox.assert_sound();
}

#[test]
fn a_pipeline_whose_command_cannot_start_is_held_while_others_go_on() {
    let sandbox = one_of_two_is_broken("command = [\"./tool.sh\"]");
    let mend = || {
        let jobs = sandbox.redrive("job list --pipeline broken --json").expect(0).json_lines();
        assert!(jobs.iter().all(|job| job["attempts"] == 0), "no attempt is lost: {jobs:?}");
        let tool = sandbox.write("tool.sh.new", "#!/bin/sh\ncat\n");
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).expect("made executable");
        std::fs::rename(&tool, sandbox.path("tool.sh")).expect("put in place");
    };
    held_until_mended(&sandbox, "tool.sh cannot be started", mend);
}

#[test]
fn a_pipeline_whose_results_cannot_be_written_is_held_while_others_go_on() {
    let command = "[\"sh\", \"-c\", \"cat > /dev/null; echo broken >> ran.log; echo 1\"]";
    let sandbox = one_of_two_is_broken(&format!("command = {command}\nout = \"later/out.jsonl\""));
    let mend = || std::fs::create_dir(sandbox.path("later")).expect("made");
    held_until_mended(&sandbox, "cannot write results to later/out.jsonl", mend);
    assert_eq!(sandbox.read("later/out.jsonl").lines().count(), 10);
    assert_eq!(sandbox.read("ran.log").matches("broken").count(), 10, "each ran once");
}

#[test]
fn draining_does_what_can_be_done_and_says_what_cannot() {
    let sandbox = one_of_two_is_broken("command = [\"./tool.sh\"]");
    let ran = sandbox.redrive("work --drain").expect(1);
    ran.complains("pipeline broken cannot go on: ./tool.sh cannot be started");
    assert_eq!(sandbox.ledger("good")["done"], 10);
    assert_eq!(
        (sandbox.ledger("broken")["queued"].clone(), sandbox.ledger("broken")["dead"].clone()),
        (10.into(), 0.into())
    );
}

#[test]
fn a_command_that_vanishes_in_the_middle_ends_the_run_after_a_few_tries() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", tasks(5));
    let tool = sandbox.write("tool.sh", "#!/bin/sh\nrm tool.sh\ncat\n");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).expect("made executable");
    let ran = sandbox.redrive("run tasks.jsonl -j 1 -- ./tool.sh").expect(1);
    ran.complains("cannot be started").complains("(tried 3 times)").complains("left: 4 queued");
    let jobs = sandbox.redrive("job list --state queued --json").expect(0).json_lines();
    assert!(jobs.len() == 4 && jobs.iter().all(|job| job["attempts"] == 0), "{jobs:?}");
    sandbox.assert_sound();
}

#[test]
fn draining_does_not_wait_for_a_sick_target_without_end() {
    let sandbox = Sandbox::new();
    let sick =
        "echo '{\"failure\":{\"reason\":\"network\",\"code\":\"ECONNREFUSED\",\"disposition\":\"hold\"}}'; exit 1";
    sandbox.write("sick.sh", format!("cat > /dev/null; {sick}\n"));
    let config = "[pipeline.sick]\ncommand = [\"sh\", \"sick.sh\"]\nbreaker.cool_down = \"200ms\"\n\
                  [pipeline.well]\ncommand = [\"sh\", \"-c\", \"cat > /dev/null; sleep 0.2\"]\nconcurrency = 1\n";
    sandbox.write("redrive.toml", config);
    let tasks: String = (0..8).map(|n| format!("{{\"n\":{n},\"url\":\"https://there.example/\"}}\n")).collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.redrive("push tasks.jsonl --pipeline sick").expect(0);
    sandbox.redrive("push tasks.jsonl --pipeline well").expect(0);
    let ran = sandbox.redrive("work --drain --max-wait 300ms").expect(7);
    let ran = ran.complains("waited: nothing moved for").complains("there.example").complains("ECONNREFUSED");
    ran.complains("left: 8 of sick; the same command goes on");
    assert_eq!(sandbox.ledger("well")["done"], 8, "the others go on meanwhile");
    let ledger = sandbox.ledger("sick");
    assert_eq!((&ledger["queued"], &ledger["dead"]), (&8.into(), &0.into()), "{ledger}");
    sandbox.redrive("work --max-wait 1s").expect(2).complains("--drain");
    sandbox.assert_sound();
}

crate::network::over_the_network! {
    kept: [draining_does_what_can_be_done_and_says_what_cannot],
    soak: [draining_does_not_wait_for_a_sick_target_without_end, draining_ends_when_nothing_is_left],
}
