//! A server that is killed again and again under load: what was answered is there, nothing is settled twice, and no client has to be
//! started again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Sandbox, eventually};
use crate::served::{Served, answered, free_address};

const WORKERS: usize = 8;
const REPORTERS: usize = 4;

/// How often the server is killed: ten times, and hundreds of times in `scripts/soak`.
fn kills() -> u64 {
    std::env::var("REDRIVE_TEST_KILLS").map_or(5, |text| text.parse().expect("REDRIVE_TEST_KILLS is a number"))
}

/// What was answered.
#[derive(Default)]
struct Answered {
    letters: Mutex<BTreeSet<String>>,
    keys: Mutex<BTreeSet<String>>,
    /// The leases by which each job was settled.
    settled: Mutex<BTreeMap<String, BTreeSet<String>>>,
    is_over: AtomicBool,
    is_drained: AtomicBool,
}

impl Answered {
    /// Reports letters and enqueues jobs, until it is over.
    fn report(&self, address: &str, who: usize) {
        for round in 0.. {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let numbers = round * 5..round * 5 + 5;
            let id = |n: u64| format!("01890a5d-{who:04x}-7000-8000-{n:012x}");
            let letter = |n: u64| json!({ "id": id(n), "pipeline": "reports", "input": { "who": who, "n": n }, "message": "no" });
            let letters: Vec<_> = numbers.clone().map(letter).collect();
            let told = answered(address, "", "POST /letters", &json!(letters));
            for letter in told["letters"].as_array().expect("letters") {
                assert!(["new", "known"].contains(&letter["result"].as_str().expect("a result")), "{letter}");
                self.letters.lock().expect("locked").insert(letter["id"].as_str().expect("an id").to_owned());
            }
            let key = |n: u64| format!("{who}-{n}");
            let jobs: Vec<_> =
                numbers.clone().map(|n| json!({ "key": key(n), "input": { "who": who, "n": n } })).collect();
            answered(address, "", "POST /jobs", &json!({ "pipeline": "jobs", "jobs": jobs }));
            self.keys.lock().expect("locked").extend(numbers.map(key));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Leases and settles jobs, until there are none.
    fn work(&self, address: &str) {
        let mut worker = Value::Null;
        while !self.is_drained.load(Ordering::Relaxed) {
            let mut asked = json!({ "pipelines": ["jobs"], "max": 5, "wait": 1, "ttl": 5 });
            if !worker.is_null() {
                asked["worker"] = worker.clone();
            }
            let leased = answered(address, "", "POST /leases", &asked);
            worker = leased["worker"].clone();
            let leases = leased["leases"].as_array().expect("leases");
            if leases.is_empty() {
                continue;
            }
            let jobs: Vec<_> =
                leases.iter().map(|lease| json!({ "lease": lease["lease"], "verdict": "done" })).collect();
            let settled = answered(address, "", "POST /leases/settle", &json!({ "worker": worker, "jobs": jobs }));
            let mut all = self.settled.lock().expect("locked");
            for (lease, told) in leases.iter().zip(settled["jobs"].as_array().expect("jobs")) {
                assert_eq!(lease["lease"], told["lease"]);
                if told["result"] == "ok" {
                    let id = lease["id"].as_str().expect("an id").to_owned();
                    all.entry(id).or_default().insert(lease["lease"].to_string());
                }
            }
        }
    }
}

#[test]
fn a_server_that_is_killed_under_load_loses_nothing_and_settles_nothing_twice() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", "[pipeline.jobs]\nhandler = \"remote\"\n");
    let (address, all) = (free_address(), Answered::default());
    // Its token file is known before anybody asks.
    Served::start(&sandbox, &address, &[]).kill();
    std::thread::scope(|scope| {
        let reporters: Vec<_> = (0..REPORTERS)
            .map(|who| {
                scope.spawn({
                    let (all, address) = (&all, &address);
                    move || all.report(address, who)
                })
            })
            .collect();
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(|| all.work(&address))).collect();
        for kill in 0..kills() {
            let server = Served::start(&sandbox, &address, &[]);
            std::thread::sleep(Duration::from_millis(150 + kill * 137 % 600));
            server.kill();
        }
        let server = Served::start(&sandbox, &address, &[]);
        let before = all.keys.lock().expect("locked").len();
        eventually("clients go on by themselves", || all.keys.lock().expect("locked").len() > before);
        all.is_over.store(true, Ordering::Relaxed);
        reporters.into_iter().for_each(|reporter| reporter.join().expect("no reporter failed"));
        let is_drained = || {
            let ledger = sandbox.ledger("jobs");
            ledger["queued"] == 0 && ledger["leased"] == 0
        };
        eventually("all jobs are done", is_drained);
        all.is_drained.store(true, Ordering::Relaxed);
        workers.into_iter().for_each(|worker| worker.join().expect("no worker failed"));
        server.stop();
    });
    let (letters, keys) = (all.letters.into_inner().expect("ended"), all.keys.into_inner().expect("ended"));
    let dead: BTreeSet<_> =
        sandbox.dead().iter().map(|letter| letter["id"].as_str().expect("an id").to_owned()).collect();
    assert_eq!(dead, letters, "each letter that was answered is there, once");
    let ledger = sandbox.ledger("jobs");
    assert_eq!((&ledger["accepted"], &ledger["done"]), (&json!(keys.len()), &json!(keys.len())), "{ledger}");
    let settled = all.settled.into_inner().expect("ended");
    let twice: Vec<_> = settled.iter().filter(|(_, leases)| leases.len() > 1).collect();
    assert!(twice.is_empty(), "settled twice: {twice:?}");
    assert!(settled.len() <= keys.len() && !settled.is_empty());
    sandbox.assert_sound();
}
