//! The workers in Python and JavaScript that ship as examples, on machines of their own: one is killed half-way, one is cut off for
//! longer than its leases last. What they had is done by others, nobody is blamed, and who was cut off comes back by itself.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::docs::document;
use crate::harness::{Sandbox, eventually};
use crate::networks::{Machine, Network};
use crate::served::Served;

/// How long leases last, in seconds: as short as they may be.
const TTL: &str = "5";

/// A server on a hub, and machines with a cable to it each.
struct Site {
    workers: Vec<Child>,
    _server: Served,
    machines: Vec<Machine>,
    hub: Network,
    sandbox: Sandbox,
}

impl Drop for Site {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

impl Site {
    fn new(machines: u8) -> Self {
        let hub = Network::alone();
        let machines: Vec<_> = (1..=machines).map(|number| Machine::beside(&hub, number)).collect();
        let sandbox = Sandbox::new();
        sandbox.write("redrive.toml", "[pipeline.shop]\nhandler = \"remote\"\n");
        sandbox.redrive("token create ops --role admin").expect(0);
        // The examples as they are, but that the work takes a moment.
        let slower = |name: &str, slow: &str, from: &str, to: &str| {
            let text = document(&format!("examples/remote/{name}"));
            assert!(text.contains(from), "{name}");
            sandbox.write(slow, text.replace(from, to));
        };
        slower("worker.py", "worker.py", "    return {\"title\"", "    time.sleep(0.5)\n    return {\"title\"");
        slower("worker.py", "fast.py", "    return {\"title\"", "    time.sleep(0.02)\n    return {\"title\"");
        let handle = "async (job) => ({ title: job.input.title.toUpperCase() });";
        slower(
            "worker.mjs",
            "worker.mjs",
            handle,
            &format!("(job) => sleep(3).then({}", handle.replace(");", "));").replace("async (job)", "()")),
        );
        let mut command = hub.enter();
        command.arg(env!("CARGO_BIN_EXE_redrive")).current_dir(sandbox.path(""));
        // The machines count as proxies, so that no certificate is needed.
        let server = Served::start_as(command, "0.0.0.0:7171", &["--proxy", "10.77.0.0/16"]);
        Self { workers: Vec::new(), _server: server, machines, hub, sandbox }
    }

    /// Starts a worker on a machine, under a token of its own.
    fn start(&mut self, machine: usize, program: &str, file: &str) {
        let name = format!("worker-{machine}");
        let token =
            self.sandbox.redrive(&format!("token create {name} --role worker --pipeline shop")).expect(0).stdout;
        let at = &self.machines[machine];
        let mut command: Command = at.network.enter();
        command.arg(program).arg(self.sandbox.path(file)).arg("shop").current_dir(Path::new("/")).stdin(Stdio::null());
        command.env("REDRIVE_SERVER", format!("http://{}:7171", at.hub_address())).env("TTL", TTL);
        command.env("REDRIVE_TOKEN", token.trim()).stdout(Stdio::null());
        self.workers.push(command.spawn().unwrap_or_else(|error| panic!("{program} is needed: {error}")));
    }

    fn push(&self, numbers: std::ops::Range<u32>) {
        let tasks: String = numbers.map(|n| format!("{{\"title\":\"title {n}\"}}\n")).collect();
        self.sandbox.write("tasks.jsonl", tasks);
        self.sandbox.redrive("push tasks.jsonl --pipeline shop").expect(0);
    }

    /// The leases of the worker on a machine.
    fn leases(&self, machine: usize) -> u64 {
        let status = self.sandbox.redrive("status --json").expect(0).json();
        let name = Value::from(format!("worker-{machine}"));
        let its = status["workers"].as_array().expect("workers").iter().filter(|worker| worker["host"] == name);
        its.filter_map(|worker| worker["leases"].as_u64()).sum()
    }

    fn done(&self) -> u64 {
        self.sandbox.ledger("shop")["done"].as_u64().unwrap_or(0)
    }
}

#[test]
fn who_is_killed_or_cut_off_loses_its_leases_to_others_and_nobody_is_blamed() {
    let mut site = Site::new(3);
    site.push(0..100);
    site.start(0, "python3", "worker.py");
    site.start(1, "node", "worker.mjs");
    eventually("both work", || site.done() > 0 && (0..2).all(|machine| site.leases(machine) > 0));
    site.workers[0].kill().expect("killed");
    site.machines[1].cut_off(&site.hub);
    site.start(2, "python3", "fast.py");
    // Longer than its leases: the third does all that is left, also what they had.
    eventually("the third has done all", || site.done() == 100);
    assert_eq!((site.leases(0), site.leases(1)), (0, 0));
    site.machines[1].reconnect(&site.hub);
    site.workers[2].kill().expect("killed");
    site.push(100..120);
    eventually("who was cut off goes on by itself", || site.done() == 120);
    let ledger = site.sandbox.ledger("shop");
    assert_eq!((&ledger["dead"], &ledger["accepted"]), (&Value::from(0), &Value::from(120)), "{ledger}");
    let jobs = site.sandbox.redrive("job list --all --json").expect(0).json_lines();
    assert!(jobs.iter().all(|job| job["crashes"] == 0), "{jobs:?}");
    assert!(site.workers[1].try_wait().expect("asked").is_none(), "it was not started again");
    site.sandbox.assert_sound();
}
