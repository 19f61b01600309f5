//! Workers on machines of their own, and one PostgreSQL server: cut off, killed, stopped at once. Nothing is lost, nothing is settled
//! twice, and nobody has to be started again.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs::File;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Sandbox, eventually, json_lines, kill_after, kills_wanted};
use crate::networks::{Machine, Network};
use crate::postgres_server::{OwnServer, url_in};

/// Leases are short, so that what a worker had that is cut off is soon done by others.
const CONFIG: &str = r#"
[pipeline.default]
command = ["sh", "handler.sh"]
lease = "6s"
concurrency = 3
"#;

/// Notes who ran it, then does what the task says.
const HANDLER: &str = r#"
read -r job
echo "$MACHINE $REDRIVE_JOB" >> ran.log
case "$job" in *'"slow"'*) sleep 1 ;; *) sleep 0.02 ;; esac
case "$job" in *'"die"'*) exit 65 ;; esac
echo '{"ok":true}'
"#;

/// A server, and two machines with a cable to it each.
struct Fleet {
    server: OwnServer,
    machines: [Machine; 2],
    hub: Network,
    sandbox: Sandbox,
}

impl Fleet {
    fn new() -> Self {
        let hub = Network::alone();
        let machines = [1, 2].map(|number| Machine::beside(&hub, number));
        let server = OwnServer::start_within(hub.enter(), "*");
        // The test itself sits beside the server.
        let sandbox = Sandbox::with_store(url_in(server.folder(), "redrive"));
        sandbox.write("redrive.toml", CONFIG);
        sandbox.write("handler.sh", HANDLER);
        Self { server, machines, hub, sandbox }
    }

    /// Starts a worker on a machine; what it says is added to a file.
    fn worker(&self, number: usize) -> Child {
        let machine = &self.machines[number];
        let said = File::options().create(true).append(true).open(self.sandbox.path(&format!("said-{number}")));
        let store = format!("postgres://redrive@{}/postgres", machine.hub_address());
        self.sandbox
            .command_on(machine)
            .args(["work", "--out", &format!("out-{number}.jsonl"), "--store", &store])
            .env("MACHINE", format!("m{number}"))
            .stdout(Stdio::null())
            .stderr(said.expect("a file"))
            .spawn()
            .expect("redrive starts")
    }

    fn said(&self, number: usize) -> String {
        self.sandbox.read(&format!("said-{number}"))
    }

    /// Jobs that a machine began.
    fn ran(&self, number: usize) -> usize {
        self.sandbox.read("ran.log").lines().filter(|line| line.starts_with(&format!("m{number} "))).count()
    }

    fn push(&self, tasks: &str) {
        self.sandbox.write("part.jsonl", tasks);
        self.sandbox.redrive("push part.jsonl").expect(0);
    }

    fn is_drained(&self) -> bool {
        let ledger = self.sandbox.ledger("default");
        ledger["queued"] == 0 && ledger["leased"] == 0
    }

    /// Answered = rows = ledger: every task is done or dead, once, and those that are done have their result.
    fn assert_nothing_is_missing(&self, done: usize, dead: usize) {
        self.sandbox.assert_sound();
        let ledger = self.sandbox.ledger("default");
        assert_eq!((&ledger["accepted"], &ledger["done"]), (&(done + dead).into(), &done.into()), "{ledger}");
        assert_eq!(ledger["dead"], dead, "{ledger}");
        let jobs = self.sandbox.redrive("job list --all --json").expect(0).json_lines();
        let of = |state: &str| -> BTreeSet<String> {
            let is = jobs.iter().filter(|job| job["state"] == state);
            is.map(|job| job["id"].as_str().expect("an id").to_owned()).collect()
        };
        assert_eq!((jobs.len(), of("done").len(), of("dead").len()), (done + dead, done, dead));
        let results: Vec<_> = (0..2).flat_map(|n| json_lines(&self.sandbox.read(&format!("out-{n}.jsonl")))).collect();
        let written: BTreeSet<String> =
            results.iter().map(|result| result["id"].as_str().expect("an id").to_owned()).collect();
        assert_eq!(written, of("done"), "every result is written, and none of a dead job");
    }

    /// While one is cut off, everything is settled by the other.
    fn assert_no_loss_by_the_other(&self) {
        let ledger = self.sandbox.ledger("default");
        assert_eq!((&ledger["done"], &ledger["dead"]), (&19.into(), &1.into()), "{ledger}");
        assert!(!self.said(1).contains("waiting for the store"), "the other never lost the server: {}", self.said(1));
    }
}

fn tasks(range: std::ops::Range<usize>, what: &str) -> String {
    range.fold(String::new(), |mut text, n| {
        let what = if n % 20 == 7 { "die" } else { what };
        writeln!(text, "{{\"n\":{n},\"do\":\"{what}\"}}").expect("written");
        text
    })
}

fn end(mut worker: Child) {
    let status = format!("/proc/{}/status", worker.id());
    eventually("it hears signals, if it was started a moment ago", || {
        let said = std::fs::read_to_string(&status).unwrap_or_default();
        let caught = said.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
        caught.is_some_and(|set| set & (1 << (Signal::TERM.as_raw() - 1)) != 0)
    });
    kill_process(Pid::from_child(&worker), Signal::TERM).expect("signalled");
    assert!(worker.wait().expect("waited").success());
}

#[test]
fn what_a_worker_had_that_is_cut_off_is_done_by_another_and_it_comes_back_by_itself() {
    let fleet = Fleet::new();
    fleet.push(&tasks(0..20, "slow"));
    let mut workers = [fleet.worker(0), fleet.worker(1)];
    eventually("both work", || fleet.ran(0) > 0 && fleet.ran(1) > 0);
    fleet.machines[0].cut_off(&fleet.hub);
    // Longer than its lease: the other does all that is left, also what it had.
    eventually("the other has done all", || fleet.is_drained());
    eventually("it says what it waits for", || fleet.said(0).contains("waiting for the store"));
    fleet.assert_no_loss_by_the_other();
    fleet.machines[0].reconnect(&fleet.hub);
    eventually("it is back", || fleet.said(0).contains("the store answers again"));
    let before = fleet.ran(0);
    fleet.push(&tasks(20..60, "slow"));
    eventually("it works again", || fleet.ran(0) > before);
    eventually("all is done", || fleet.is_drained());
    for worker in &mut workers {
        assert!(worker.try_wait().expect("asked").is_none(), "nobody was started again");
    }
    workers.into_iter().for_each(end);
    fleet.assert_nothing_is_missing(57, 3);
}

/// Workers are killed and the server is stopped at once, again and again, while tasks are pushed and worked on.
#[test]
fn workers_that_are_killed_and_a_server_that_is_stopped_at_once_lose_nothing() {
    let fleet = Fleet::new();
    let wanted = (kills_wanted() / 4).max(4);
    let mut workers = [fleet.worker(0), fleet.worker(1)];
    let size = 20;
    for turn in 0..wanted {
        fleet.push(&tasks(turn * size..(turn + 1) * size, "work"));
        std::thread::sleep(Duration::from_millis(fastrand::u64(1..400)));
        if turn % 2 == 0 {
            fleet.server.stop();
        } else {
            let victim = fastrand::usize(..2);
            let fresh = fleet.worker(victim);
            kill_after(std::mem::replace(&mut workers[victim], fresh), Duration::ZERO);
        }
    }
    eventually("all is done", || fleet.is_drained());
    for worker in &mut workers {
        assert!(worker.try_wait().expect("asked").is_none(), "nobody ended by itself");
    }
    workers.into_iter().for_each(end);
    let dead = wanted;
    fleet.assert_nothing_is_missing(wanted * size - dead, dead);
}
