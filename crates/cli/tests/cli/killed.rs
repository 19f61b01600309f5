//! Killed at any moment: SIGKILL in the middle of everything, again and again, and nothing is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Sandbox, json_lines, kill_after, kills_wanted};
use crate::postgres_server::{schema, url};

/// Enough of them that none of the kills comes too late.
const TASKS_PER_KILL: usize = 40;

/// Notes that it ran, then does what the task says: 65 is fatal, 75 wants one more attempt.
const HANDLER: &str = r#"
read -r job
echo "$REDRIVE_JOB" >> ran.log
sleep 0.004
case "$job" in
  *'"do":"die"'*) exit 65 ;;
  *'"do":"retry"'*) [ "$REDRIVE_ATTEMPT" -gt 1 ] || exit 75 ;;
esac
echo '{"ok":true}'
"#;

fn task(n: usize) -> Value {
    let what = if n % 40 == 7 {
        "die"
    } else if n % 25 == 3 {
        "retry"
    } else {
        "work"
    };
    json!({"n": n, "do": what, "url": format!("https://h{}.example/", n % 5)})
}

fn tasks(range: std::ops::Range<usize>) -> String {
    range.fold(String::new(), |mut text, n| {
        writeln!(text, "{}", task(n)).expect("written");
        text
    })
}

fn dying(range: std::ops::Range<usize>) -> usize {
    range.filter(|n| task(*n)["do"] == "die").count()
}

/// Where the store is, and for how long what is killed lives at most: long enough to have begun.
struct Place {
    sandbox: Sandbox,
    longest_millis: u64,
}

impl Place {
    fn on_a_file() -> Self {
        Self { sandbox: Sandbox::new(), longest_millis: 90 }
    }

    fn in_postgres() -> Self {
        Self { sandbox: Sandbox::with_store(url(&schema())), longest_millis: 600 }
    }

    fn moment(&self) -> Duration {
        Duration::from_millis(fastrand::u64(1..self.longest_millis))
    }
}

/// All tasks are done or dead, exactly once, each ran, and everything adds up.
fn assert_nothing_is_missing(sandbox: &Sandbox, tasks: usize) {
    sandbox.assert_sound();
    let ledger = sandbox.ledger("default");
    let dead = dying(0..tasks);
    assert_eq!(ledger["accepted"], tasks, "{ledger}");
    assert_eq!(ledger["dead"], dead, "{ledger}");
    assert_eq!(ledger["done"], tasks - dead, "{ledger}");

    let jobs = sandbox.redrive("job list --all --json").expect(0).json_lines();
    let states: BTreeMap<&str, &str> =
        jobs.iter().map(|job| (job["id"].as_str().expect("an id"), job["state"].as_str().expect("a state"))).collect();
    assert_eq!((jobs.len(), states.len()), (tasks, tasks), "each job is listed once");
    let log = sandbox.read("ran.log");
    let ran: BTreeSet<&str> = log.lines().collect();
    assert!(states.keys().all(|id| ran.contains(id)), "every settled job ran");

    let results = json_lines(&sandbox.read("out.jsonl"));
    let written: BTreeSet<&str> = results.iter().map(|result| result["id"].as_str().expect("an id")).collect();
    let done: BTreeSet<&str> = states.iter().filter(|(_, state)| **state == "done").map(|(id, _)| *id).collect();
    assert_eq!(written, done, "every result is written, and none of a dead job");

    for letter in sandbox.dead() {
        assert_eq!(letter["reason"], "rejected_input", "nobody is blamed for the kills: {letter}");
        assert_eq!((&letter["attempts"], &letter["crashes"]), (&json!(1), &json!(0)));
    }
}

#[test]
fn a_run_that_is_killed_again_and_again_loses_nothing() {
    kill_runs(&Place::on_a_file());
}

#[test]
fn a_run_in_postgres_that_is_killed_again_and_again_loses_nothing() {
    kill_runs(&Place::in_postgres());
}

fn kill_runs(place: &Place) {
    let Place { sandbox, .. } = place;
    let wanted = kills_wanted();
    let count = wanted * TASKS_PER_KILL;
    sandbox.write("handler.sh", HANDLER);
    sandbox.write("tasks.jsonl", tasks(0..count));
    let args = ["run", "tasks.jsonl", "-j", "4", "--backoff", "10ms", "--out", "out.jsonl", "--", "sh", "handler.sh"];
    let mut kills = 0;
    for _ in 0..wanted * 4 {
        kills += usize::from(kill_after(sandbox.spawn(&args), place.moment()));
        if kills >= wanted {
            break;
        }
    }
    assert!(kills >= wanted, "only {kills} kills hit a living process");
    sandbox.run(&args).expect(3);
    assert_nothing_is_missing(sandbox, count);
    let again = sandbox.run(&args).expect(3);
    assert!(again.stderr.contains("done: 0"), "nothing done is done again: {}", again.stderr);
}

#[test]
fn two_workers_that_are_killed_lose_nothing_that_was_acknowledged() {
    kill_workers(&Place::on_a_file());
}

#[test]
fn two_workers_in_postgres_that_are_killed_lose_nothing_that_was_acknowledged() {
    kill_workers(&Place::in_postgres());
}

fn kill_workers(place: &Place) {
    let Place { sandbox, .. } = place;
    let wanted = kills_wanted();
    let (files, size) = (wanted, TASKS_PER_KILL);
    sandbox.write("handler.sh", HANDLER);
    let args = ["work", "-j", "2", "--backoff", "10ms", "--out", "out.jsonl", "--", "sh", "handler.sh"];
    let mut workers = [sandbox.spawn(&args), sandbox.spawn(&args)];
    let mut kills = 0;
    let mut pushed = 0;
    while kills < wanted || pushed < files {
        if pushed < files {
            sandbox.write("part.jsonl", tasks(pushed * size..(pushed + 1) * size));
            // Killed in the middle, or left to be acknowledged.
            if fastrand::bool() {
                let push = sandbox.spawn(&["push", "part.jsonl"]);
                kill_after(push, place.moment() / 4);
            }
            sandbox.redrive("push part.jsonl").expect(0);
            pushed += 1;
        }
        let victim = &mut workers[fastrand::usize(..2)];
        std::thread::sleep(place.moment());
        let old = std::mem::replace(victim, sandbox.spawn(&args));
        kills += usize::from(kill_after(old, Duration::ZERO));
    }
    for worker in workers {
        kill_after(worker, place.moment());
    }
    let drain = ["work", "--drain", "-j", "4", "--backoff", "10ms", "--out", "out.jsonl", "--", "sh", "handler.sh"];
    sandbox.run(&drain).expect(0);
    assert_nothing_is_missing(sandbox, files * size);
}

#[test]
fn what_a_killed_worker_left_running_is_ended_before_its_job_runs_again() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.write("handler.sh", "cat > /dev/null\necho x >> ran.log\nif [ $(wc -l < ran.log) = 1 ]; then sleep 300; echo late >> ran.log; fi\necho 1\n");
    let args = ["run", "tasks.jsonl", "--", "sh", "handler.sh"];
    let first = sandbox.spawn(&args);
    crate::harness::eventually("the job runs", || sandbox.read("ran.log").lines().count() == 1);
    kill_after(first, Duration::ZERO);
    sandbox.run(&args).expect(0);
    assert_eq!(sandbox.read("ran.log").lines().count(), 2);
    let folder = sandbox.path("").display().to_string();
    let pattern = format!("PWD={}", folder.trim_end_matches('/'));
    crate::harness::eventually("nothing is left running", || crate::harness::processes_with(&pattern).is_empty());
}

/// Each task hands on three others, and is killed at any moment.
#[test]
fn what_is_handed_on_is_neither_lost_nor_doubled_by_a_kill() {
    let sandbox = Sandbox::new();
    let wanted = kills_wanted().min(10);
    let count = wanted * TASKS_PER_KILL / 4;
    sandbox.write(
        "handler.sh",
        r#"
read -r job
sleep 0.004
case "$job" in
  *'"child":'*) echo '{"ok":true}' ;;
  *) echo '{"result":{"parent":true},"enqueue":[{"input":{"child":1}},{"input":{"child":2}},{"input":{"child":3}}]}' ;;
esac
"#,
    );
    sandbox.write("tasks.jsonl", tasks(0..count));
    let args = ["run", "tasks.jsonl", "-j", "4", "--out", "out.jsonl", "--", "sh", "handler.sh"];
    let mut kills = 0;
    for _ in 0..wanted * 4 {
        kills += usize::from(kill_after(sandbox.spawn(&args), Duration::from_millis(fastrand::u64(1..90))));
        if kills >= wanted {
            break;
        }
    }
    sandbox.run(&args).expect(0);
    sandbox.assert_sound();
    let ledger = sandbox.ledger("default");
    assert_eq!((&ledger["accepted"], &ledger["done"]), (&json!(count * 4), &json!(count * 4)), "{ledger}");
    let results = json_lines(&sandbox.read("out.jsonl"));
    let written: BTreeSet<&str> = results.iter().map(|result| result["id"].as_str().expect("an id")).collect();
    assert_eq!(written.len(), count * 4, "every one has its result");
    assert!(results.iter().all(|result| result["result"].get("enqueue").is_none()), "which is not what it handed on");
}
