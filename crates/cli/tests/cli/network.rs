//! Commands that ask a server instead of a store: with the same output.
//!
//! Cases of other files run a second time with every command that can be asked of a server, by [`over_the_network!`].

use std::cell::Cell;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::harness::{Ran, Sandbox, eventually};
use crate::served::{self, answered};

/// Which commands are asked of a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// None: there is none.
    None,
    /// Those that work on nothing: that is done where the store is.
    ButWork,
    /// All that can be.
    All,
}

thread_local! {
    /// What is asked of the servers that sandboxes of this thread have.
    static ASKED: Cell<Asked> = const { Cell::new(Asked::None) };
}

/// Whether sandboxes that are made now have a server.
pub fn is_served() -> bool {
    ASKED.get() != Asked::None
}

/// Runs a case in which commands are asked of a server.
pub fn served(case: fn(), asked: Asked) {
    ASKED.set(asked);
    case();
}

/// Runs cases of a file a second time, over the network. `scripts/test` runs those under `kept`, `scripts/soak` the others. Cases under
/// `soak_but_work` run their jobs on the machine that has the store.
macro_rules! over_the_network {
    ($(kept: [$($kept:ident),* $(,)?],)?
     $(soak: [$($soak:ident),* $(,)?],)? $(soak_but_work: [$($soak_but_work:ident),* $(,)?],)?) => {
        mod over_the_network {
            use crate::network::{Asked, served};

            $($(#[test]
            fn $kept() {
                served(super::$kept, Asked::All);
            })*)?
            $($(#[test]
            #[ignore = "scripts/soak runs it"]
            fn $soak() {
                served(super::$soak, Asked::All);
            })*)?
            $($(#[test]
            #[ignore = "scripts/soak runs it"]
            fn $soak_but_work() {
                served(super::$soak_but_work, Asked::ButWork);
            })*)?
        }
    };
}
pub(crate) use over_the_network;

/// Whether a command is asked of a server: others are done where the store is.
pub fn is_asked_of_servers(args: &[&str]) -> bool {
    let here = ["serve", "init", "demo", "backup", "restore", "store", "doctor"];
    let works = ["run", "work", "retry"];
    let other_store = args.iter().any(|arg| ["--store", "--help"].contains(arg));
    let is_here = args.is_empty() || here.contains(&args[0]) || args.get(..2) == Some(&["token", "reset"]);
    !(is_here || other_store || (ASKED.get() == Asked::ButWork && works.contains(&args[0])))
}

/// A server, for as long as this is kept.
pub struct Serving {
    child: Child,
    pub address: String,
}

impl Serving {
    /// Starts one over the store of a sandbox.
    pub fn start(sandbox: &Sandbox, extra: &[&str]) -> Self {
        let mut command = sandbox.command();
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(extra);
        Self::of(command)
    }

    /// Starts one by a command.
    pub fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("redrive starts");
        let lines = BufReader::new(child.stderr.take().expect("an error stream")).lines();
        let mut lines = lines.map_while(Result::ok);
        let found = |line: String| {
            let (_, address) = line.split_once("http://").or_else(|| line.split_once("https://"))?;
            Some(address.to_owned())
        };
        let address = lines.find_map(found).expect("it says where");
        // What it says further is read, so that it never waits for us.
        std::thread::spawn(move || lines.count());
        served::remember(&command, &address);
        Self { child, address }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A store with three dead letters of two causes.
pub fn failed() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
    let script =
        r#"read task; case "$task" in *'"n":3'*) echo "no such page" >&2;; *) echo "boom 17" >&2;; esac; exit 1"#;
    sandbox.run(&["run", "tasks.jsonl", "--attempts", "1", "--", "sh", "-c", script]).expect(3);
    sandbox
}

pub fn at(sandbox: &Sandbox, url: &str, token: Option<&str>, line: &str) -> Ran {
    let mut command = sandbox.command();
    command.env("REDRIVE_SERVER", url).args(line.split_whitespace());
    // Without a token it is somebody of the server's machine, if its store has none.
    let local = url.strip_prefix("http://").map(served::local).filter(|local| !local.is_empty());
    command.envs(token.map(str::to_owned).or(local).map(|token| ("REDRIVE_TOKEN", token)));
    Ran::of(command.output().expect("redrive starts"))
}

/// What is printed, without times that go by between two looks.
fn steady(ran: &Ran) -> String {
    let is_time = |word: &str| {
        let is_of_clock = |c: char| c.is_ascii_digit() || ":-TZ,".contains(c);
        let is_clock = word.contains(':') && word.chars().all(is_of_clock);
        is_clock || word.starts_with("ago") || word.trim_matches(['(', ')', ',', 's', 'm']).parse::<u32>().is_ok()
    };
    let line = |line: &str| line.split_whitespace().filter(|word| !is_time(word)).collect::<Vec<_>>().join(" ");
    ran.stdout.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn commands_print_the_same_of_a_server_as_of_its_store() {
    let sandbox = failed();
    let serving = Serving::start(&sandbox, &[]);
    let cause = sandbox.redrive("cause list --json").json_lines()[0]["id"].as_str().expect("an id").to_owned();
    for line in [
        "cause list",
        "cause list --json",
        &format!("cause show {cause}"),
        &format!("cause show {cause} --json"),
        "dead list",
        "dead list --json",
        "dead list --reason handler_error --limit 2",
        "dead show 1",
        "dead show 1 --json",
        "dead top --by reason",
        "dead top --by input.n --json",
        "dead export",
        "job list",
        "job list --json --state dead",
        "job show 2 --json",
        "pipeline list",
        "pipeline show default",
        "breaker list",
        "round list",
        "replay list",
        "replay plan --reason handler_error",
        "replay plan --pipeline default --json",
        "replay plan 1 2",
        "replay plan 99",
        "replay plan",
        "replay try --show",
        "replay resume last",
        "retry 99 -- true",
        "retry --reason timeout -- true",
        "payload verify",
        "payload verify 1",
        "payload gc",
        "activity",
        "audit --json",
        "alert list",
        "alert list --state firing",
        "alert list --state ended",
        "alert check --dry-run",
        "alert ack rate/nobody",
        "alert snooze rate/nobody --until 2h",
        "replay rate last 5/s",
        "replay rate last fast",
        "cause resolve beefbeef",
        "cause assign beefbeef 3f9a1c2e --to ada",
        "cause assign beefbeef 3f9a1c2e ada",
        "token list",
        "report --json --since 2h",
        "dead show 99",
        "dead show 4444-4444",
        "job show 99",
        "cause show beefbeef",
        "replay show last",
        "replay show abcd",
        "pipeline show nobody",
        "breaker close nowhere.example",
        "dead list --cursor nonsense",
        "dead discard --why x",
    ] {
        let (here, there) = (sandbox.redrive(line), at(&sandbox, &serving.url(), None, line));
        assert_eq!(here.code, there.code, "{line}\n{}\n{}", here.stderr, there.stderr);
        if line.starts_with("report") {
            assert_eq!(here.json()["reasons"], there.json()["reasons"]);
        } else {
            assert_eq!(steady(&here), steady(&there), "{line}");
        }
        let place = serving.url();
        let said = |ran: &Ran| ran.stderr.replace("sqlite:.redrive/redrive.db", "STORE").replace(&place, "STORE");
        assert_eq!(said(&here), said(&there), "{line}");
    }
}

#[test]
fn what_is_changed_at_a_server_is_changed_in_its_store() {
    let sandbox = failed();
    let serving = Serving::start(&sandbox, &[]);
    let there = |line: &str| at(&sandbox, &serving.url(), None, line);
    let cause = there("cause list --json").expect(0).json_lines()[0]["id"].as_str().expect("an id").to_owned();
    assert!(there(&format!("cause assign {cause} ada")).expect(0).stdout.contains("is assigned to ada"));
    assert_eq!(sandbox.redrive("cause list --json").json_lines()[0]["owner"], "ada");
    let both = there(&format!("cause assign {cause} {cause} --to bob")).expect(0).stdout;
    assert_eq!(both.matches("is assigned to bob").count(), 2, "{both}");
    assert!(there("pipeline pause default --why maintenance").expect(0).stdout.contains("is paused for every worker"));
    assert!(sandbox.redrive("status").stdout.contains("maintenance"));
    let until = there("pipeline pause default --until 2h").expect(0).stdout;
    assert!(until.contains("for every worker until 2"), "{until}");
    assert!(sandbox.redrive("pipeline list --json").json_lines()[0]["paused"]["until"].is_string());
    there("pipeline pause nobody").expect(1).complains("no pipeline nobody: there are default");
    assert!(there("pipeline resume default").expect(0).stdout.contains("goes on, 0 queued; it was paused"));
    there("dead discard --pipeline default").expect(2);
    assert_eq!(there("dead discard 1 --why old").expect(0).stdout, "1 discarded\n");
    assert_eq!(sandbox.ledger("default")["dead"], 2);
    sandbox.write("more.jsonl", "{\"n\":9}\n");
    sandbox.redrive("push more.jsonl -p default").expect(0);
    assert_eq!(there("job cancel 4 --why wrong").expect(0).stdout, "1 cancelled\n");
    there("job cancel 4 --why again").expect(1).complains("is discarded: only tasks that are queued or running");
    let tasks: String = (100..110).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    sandbox.write("more.jsonl", tasks);
    sandbox.redrive("run more.jsonl --attempts 1 -- false").expect(3);
    // What is judged without a file that says anything is kept nowhere.
    sandbox.write("redrive.toml", "[pipeline.default]\ncommand = [\"false\"]\n");
    sandbox.redrive("alert check").expect(3);
    assert!(there("alert ack rate/default").expect(0).stdout.contains("is acknowledged by "));
    assert!(there("alert snooze rate/default --until 2h").expect(0).stdout.contains("is snoozed until "));
    assert!(sandbox.redrive("alert list").stdout.contains("snoozed until "));
    for state in ["firing", "snoozed", "ended"] {
        let line = format!("alert list --state {state} --json");
        let (here, told) = (sandbox.redrive(&line).json(), there(&line).json());
        let keys = |list: &serde_json::Value| {
            list["alerts"].as_array().expect("a list").iter().map(|one| one["key"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(keys(&here), keys(&told), "{state}");
        assert_eq!(keys(&here).contains(&"rate/default".into()), state == "snoozed", "{state}: {here}");
    }
    there("alert wake rate/default").expect(0);
    there("alert wake rate/default").expect(1).complains("it is not snoozed");
    sandbox.redrive("replay start --pipeline default --detach --rate 1/h").expect(0);
    assert!(there("replay rate last 5/s").expect(0).stdout.contains("goes at 5 letters a second at most"));
    assert_eq!(sandbox.redrive("replay list --json").json_lines()[0]["pacing"]["per_second"], 5.0);
    there("replay cancel last").expect(0);
    sandbox.assert_sound();
}

#[test]
fn tasks_run_here_for_a_server_as_they_do_for_a_store() {
    let sandbox = Sandbox::new();
    let serving = Serving::start(&sandbox, &[]);
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\nbroken\n{\"n\":3}\n");
    let script =
        r#"read task; case "$task" in *'"n":3'*) echo "no such page" >&2; exit 1;; *) echo "{\"got\":1}";; esac"#;
    let run = |url: &str| {
        let mut command = sandbox.command();
        command.env("REDRIVE_SERVER", url).args(["run", "tasks.jsonl", "--attempts", "1", "--out", "out.jsonl"]);
        Ran::of(command.args(["--", "sh", "-c", script]).output().expect("redrive starts"))
    };
    let ran = run(&serving.url()).expect(3).complains("done: 2").complains("no such page");
    assert!(ran.stderr.contains("broken lines: 1"), "{}", ran.stderr);
    assert_eq!(sandbox.read("out.jsonl").lines().count(), 2);
    let ledger = sandbox.ledger("default");
    assert_eq!((&ledger["done"], &ledger["dead"]), (&2.into(), &1.into()), "{ledger}");
    let letter = &sandbox.dead()[0];
    assert_eq!((&letter["attempts"], &letter["input"]["n"]), (&1.into(), &3.into()), "{letter}");
    let again = run(&serving.url()).expect(3);
    assert!(again.stderr.contains("2 done before"), "{}", again.stderr);
    sandbox.assert_sound();
}

#[test]
fn a_worker_for_a_server_retries_hands_on_and_ends_when_nothing_is_left() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "redrive.toml",
        "[pipeline.list]\ncommand = [\"sh\", \"-c\", \"cat >/dev/null; test -e again || { touch again; exit 1; }; echo 7\"]\n",
    );
    let serving = Serving::start(&sandbox, &[]);
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    assert_eq!(
        at(&sandbox, &serving.url(), None, "push tasks.jsonl").expect(0).stdout,
        "pipeline list: 2 accepted, 0 known already, 0 broken\n"
    );
    let ran = at(&sandbox, &serving.url(), None, "work --drain --out out.jsonl").expect(0);
    ran.complains(&format!("working on list in {}", serving.url()));
    let ledger = sandbox.ledger("list");
    assert_eq!((&ledger["done"], &ledger["queued"]), (&2.into(), &0.into()), "{ledger}");
    assert_eq!(sandbox.read("out.jsonl").lines().count(), 2);
    let tried = sandbox.redrive("job list --json").expect(0).json_lines();
    assert!(tried.iter().any(|job| job["attempts"] == 2), "{tried:?}");
    sandbox.assert_sound();
}

#[test]
fn lists_of_a_server_are_whole_however_long_they_are() {
    let sandbox = Sandbox::new();
    let pipelines: String = (0..60).map(|n| format!("[pipeline.p{n}]\ncommand = [\"true\"]\n")).collect();
    sandbox.write("redrive.toml", pipelines);
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.redrive("push tasks.jsonl -p p1").expect(0);
    let admin = sandbox.redrive("token create t0 --role admin --json").expect(0).json();
    let token = admin["secret"].as_str().expect("a secret");
    let serving = Serving::start(&sandbox, &[]);
    for n in 1..60 {
        for (request, body) in [
            ("POST /tokens", json!({ "name": format!("t{n}"), "role": "viewer" })),
            ("POST /breakers/hold", json!({ "target": format!("{n}.example"), "pipeline": "p1" })),
            ("POST /rounds", json!({ "pipeline": "p1" })),
        ] {
            answered(&serving.address, token, request, &body);
        }
    }
    let there = |line: &str| at(&sandbox, &serving.url(), Some(token), line).expect(0).stdout.lines().count();
    for (line, least) in [
        ("pipeline list --json", 60),
        ("token list --json", 60),
        ("breaker list --json", 59),
        ("round list --limit 2000 --json", 59),
        ("cause list --limit 2000", 0),
        ("dead top --limit 2000", 0),
    ] {
        let (here, there) = (sandbox.redrive(line).expect(0).stdout.lines().count(), there(line));
        assert!(here >= least && here == there, "{line}: {there} of {here}");
    }
}

#[test]
fn sinks_are_those_of_the_server_and_it_is_the_server_that_tells_them() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "redrive.toml",
        "[pipeline.p]\ncommand = [\"true\"]\n[alerts.sink.team]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"cat > told\"]\n",
    );
    let serving = Serving::start(&sandbox, &[]);
    let elsewhere = Sandbox::new();
    let ran = at(&elsewhere, &serving.url(), None, "alert test").expect(0);
    assert!(ran.stdout.contains("team (command) was told"), "{}", ran.stdout);
    assert!(sandbox.path("told").exists() && !elsewhere.path("told").exists());
    assert_eq!(at(&elsewhere, &serving.url(), None, "alert test team --json").expect(0).json()[0]["sink"], "team");
    at(&elsewhere, &serving.url(), None, "alert test nobody").expect(2).complains("no sink nobody (there are: team)");
    sandbox.write("redrive.toml", "[pipeline.p]\ncommand = [\"true\"]\n");
    eventually("it has no sink any more", || {
        at(&elsewhere, &serving.url(), None, "alert test").stderr.contains("redrive.toml of the server")
    });
}

#[test]
fn a_replay_is_left_to_who_leases_it_by_somebody_who_knows_no_pipeline() {
    let sandbox = failed();
    let (serving, elsewhere) = (Serving::start(&sandbox, &[]), Sandbox::new());
    let there = |line: &str| at(&elsewhere, &serving.url(), None, line);
    let started = there("replay start --pipeline default --detach").expect(0).stdout;
    assert!(started.contains("3 letters") && started.contains("replay watch"), "{started}");
    eventually("the first step is on its way", || sandbox.ledger("default")["dead"] == 2);
    let replay = there("replay show last --json").expect(0).json();
    assert_eq!(replay["state"], "running", "{replay}");
    let cancelled = there("replay cancel last").expect(0).stdout;
    eventually("it is as it was", || sandbox.ledger("default")["dead"] == 3);
    assert!(cancelled.contains("cancel"), "{cancelled}");
    there("replay start --pipeline default").expect(2).complains("replay start --detach");
    there("retry 1").expect(2).complains("pipeline default has no command here");
    sandbox.assert_sound();
}

#[test]
fn what_is_done_to_a_store_itself_says_so() {
    let sandbox = failed();
    for line in [
        "backup all.tar",
        "restore all.tar",
        "store migrate",
        "serve",
        "doctor --compact",
        "token reset",
        "init",
        "demo",
    ] {
        at(&sandbox, "http://127.0.0.1:1", None, line).expect(2).complains("on the machine that has the store");
    }
    for line in ["codes", "completions bash"] {
        at(&sandbox, "http://127.0.0.1:1", None, line).expect(0);
    }
}

#[test]
fn a_command_that_was_run_for_a_server_is_known_here_and_not_there() {
    let sandbox = Sandbox::new();
    let serving = Serving::start(&sandbox, &[]);
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    sandbox.write("work.sh", "cat > /dev/null; test -e fixed || { echo broken >&2; exit 65; }; echo 1");
    at(&sandbox, &serving.url(), None, "run tasks.jsonl -- sh work.sh").expect(3);
    assert!(!sandbox.redrive("pipeline show default").stdout.contains("work.sh"), "commands do not get there");
    sandbox.write("fixed", "");
    let retried = at(&sandbox, &serving.url(), None, "retry 1").expect(0);
    assert!(retried.stderr.contains("1  recovered"), "{}", retried.stderr);
    let started = at(&sandbox, &serving.url(), None, "replay start --pipeline default -- sh work.sh").expect(0);
    assert!(started.stdout.contains("1 letter, anew (1 request)"), "{}", started.stdout);
    assert_eq!(sandbox.ledger("default")["recovered"], 2);
    sandbox.assert_sound();
}

#[test]
fn what_a_server_works_on_itself_is_not_taken_from_who_gave_a_command() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", "[pipeline.shop]\ncommand = [\"false\"]\n[pipeline.shop.retry]\nattempts = 1\n");
    let serving = Serving::start(&sandbox, &["--work"]);
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    at(&sandbox, &serving.url(), None, "push tasks.jsonl").expect(0);
    eventually("it died there", || sandbox.ledger("shop")["dead"] == 1);
    let retried = at(&sandbox, &serving.url(), None, "retry --pipeline shop -- echo 1").expect(0);
    assert!(retried.stderr.contains("recovered"), "{}", retried.stderr);
    sandbox.assert_sound();
}

#[test]
fn letters_go_to_an_archive_and_into_a_store_over_the_network() {
    let (sandbox, other) = (failed(), Sandbox::new());
    let (serving, there) = (Serving::start(&sandbox, &[]), Serving::start(&other, &[]));
    let ran = at(&sandbox, &serving.url(), None, "dead export --warc there.warc.gz").expect(0);
    ran.complains("3 dead letters archived");
    sandbox.redrive("dead export --warc here.warc.gz").expect(0);
    let length = |name: &str| std::fs::metadata(sandbox.path(name)).expect("written").len();
    assert!(length("there.warc.gz").abs_diff(length("here.warc.gz")) < 16, "they differ in their date");
    let exported = at(&sandbox, &serving.url(), None, "dead export").expect(0).stdout;
    other.write("letters.jsonl", format!("{exported}nonsense\n"));
    let told = at(&other, &there.url(), None, "dead import letters.jsonl --dry-run").expect(4);
    assert!(told.stdout.contains("3 would be imported"), "{}", told.stdout);
    let doubled: String = other.read("letters.jsonl").repeat(800);
    other.write("doubled.jsonl", doubled);
    let told = at(&other, &there.url(), None, "dead import doubled.jsonl --dry-run").expect(4);
    assert!(told.stdout.contains("3 would be imported, 2397 known already"), "in several pieces: {}", told.stdout);
    let taken = at(&other, &there.url(), None, "dead import letters.jsonl").expect(4);
    assert_eq!(taken.stdout, "3 imported, 0 known already, 1 broken\n");
    taken.complains("letters.jsonl:4: not a dead letter");
    let letter = other.dead().remove(0);
    assert_eq!((&letter["origin"]["kind"], &letter["origin"]["over_network"]), (&"import".into(), &true.into()));
    let again = at(&other, &there.url(), None, "dead import letters.jsonl").expect(4);
    assert_eq!(again.stdout, "0 imported, 3 known already, 1 broken\n");
    other.assert_sound();
}
