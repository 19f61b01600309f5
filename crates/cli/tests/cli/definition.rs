//! Versions of rules: a worker takes up a corrected file between jobs, and a replay goes only to who has the rules it was planned
//! with.

use std::fs;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Sandbox, eventually};
use crate::pages::Pages;

const PAGES: usize = 40;

/// A site whose prices are found by `.cost`, and tasks for all of its pages.
fn shop(sandbox: &Sandbox) -> Pages {
    let paths: Vec<&'static str> = (0..PAGES).map(|n| &*format!("/{n}").leak()).collect();
    let site = Pages::html(paths.iter().map(|path| (*path, format!("<b class=cost>{path}</b>"))));
    let tasks: String = paths.iter().map(|path| json!({"url": site.url(path)}).to_string() + "\n").collect();
    sandbox.write("tasks.jsonl", tasks);
    site
}

fn config(selector: &str, more: &str) -> String {
    format!(
        "[pipeline.p]\nhandler = \"http\"\nout = \"out.jsonl\"\n{more}\n[pipeline.p.extract.fields]\nprice = {selector:?}\n"
    )
}

/// A worker that logs to a file.
struct Worker(Child);

impl Worker {
    fn start(sandbox: &Sandbox, args: &[&str]) -> Self {
        let log = fs::File::options().create(true).append(true).open(sandbox.path("work.log")).expect("opened");
        let mut command = sandbox.command();
        command.env("REDRIVE_LOG", "info").args(["work"]).args(args).stdout(Stdio::null()).stderr(log);
        Self(command.spawn().expect("started"))
    }

    fn stop(mut self) {
        kill_process(Pid::from_child(&self.0), Signal::INT).expect("signalled");
        assert_eq!(self.0.wait().expect("waited").code(), Some(0));
    }
}

fn versions(sandbox: &Sandbox) -> Vec<Value> {
    let status = sandbox.redrive("status --json").expect(0).json();
    let workers = status["workers"].as_array().cloned().unwrap_or_default();
    workers.iter().map(|worker| worker["runs"][0]["definition"].clone()).collect()
}

/// The letters of a wrong selector recover by a worker that ran all the time, once the file is corrected.
#[test]
fn a_running_worker_takes_up_the_corrected_file() {
    let sandbox = Sandbox::new();
    let _site = shop(&sandbox);
    sandbox.write("redrive.toml", config(".price", ""));
    sandbox.redrive("push tasks.jsonl").expect(0);
    let worker = Worker::start(&sandbox, &[]);
    eventually("all die", || sandbox.ledger("p")["dead"] == PAGES);
    let wrong = versions(&sandbox);
    assert_eq!(sandbox.dead()[0]["definition"], wrong[0]);

    sandbox.write("redrive.toml", config(".cost", ""));
    let tried = sandbox.redrive("replay try --pipeline p").expect(0);
    assert!(tried.stdout.contains("40 of 40"), "{}", tried.stdout);
    let started = sandbox.redrive("replay start --pipeline p").expect(0);
    assert!(started.stderr.contains("recovered: 40 of 40"), "{}\n{}", started.stdout, started.stderr);
    eventually("the worker runs the corrected rules", || !versions(&sandbox).contains(&wrong[0]));
    assert_eq!(sandbox.ledger("p")["done"], PAGES);
    worker.stop();
    sandbox.assert_sound();
}

/// A replay that is left to workers waits until one has the rules it was planned with, and says so.
#[test]
fn a_replay_waits_for_a_worker_with_its_rules() {
    let sandbox = Sandbox::new();
    let _site = shop(&sandbox);
    sandbox.write("redrive.toml", config(".price", ""));
    sandbox.write("other.toml", config(".price", ""));
    sandbox.redrive("run tasks.jsonl").expect(3);
    let worker = Worker::start(&sandbox, &["--config", "other.toml"]);
    eventually("the worker is there", || versions(&sandbox).len() == 1);
    sandbox.write("redrive.toml", config(".cost", ""));
    let started = sandbox.redrive("replay start --pipeline p --detach").expect(0).stdout;
    assert!(started.contains("it waits for a worker with version"), "{started}");
    let log = fs::File::create(sandbox.path("watch.log")).expect("created");
    let mut watch = sandbox.command();
    let mut watch = watch.args(["replay", "watch", "last"]).stdout(Stdio::null()).stderr(log).spawn().expect("started");
    eventually("who watches is told", || sandbox.read("watch.log").contains("it waits for a worker with version"));
    watch.kill().expect("killed");
    watch.wait().expect("waited");
    let shown = sandbox.redrive("replay show last").expect(0).stdout;
    assert!(shown.contains("for a worker with version"), "{shown}");
    assert!(sandbox.redrive("status").expect(0).stdout.contains("waits for a worker with version"));
    let replay = sandbox.redrive("replay show last --json").expect(0).json();
    assert_eq!((&replay["progress"]["pending"], &replay["progress"]["failed"]), (&json!(PAGES), &json!(0)));

    sandbox.write("other.toml", config(".cost", "concurrency = 3"));
    eventually("all recover", || sandbox.ledger("p")["done"] == PAGES);
    worker.stop();
    sandbox.assert_sound();
}

/// Who resumes a replay after the rules changed again goes on with those, and is told.
#[test]
fn resuming_pins_a_replay_anew() {
    let sandbox = Sandbox::new();
    let _site = shop(&sandbox);
    sandbox.write("redrive.toml", config(".price", ""));
    sandbox.redrive("run tasks.jsonl").expect(3);
    sandbox.write("redrive.toml", config(".cst", ""));
    sandbox.redrive("replay start --pipeline p").expect(6);
    sandbox.write("redrive.toml", config(".cost", ""));
    let resumed = sandbox.redrive("replay resume last").expect(3);
    assert!(resumed.stdout.contains("it was planned with version"), "{}", resumed.stdout);
    assert!(sandbox.ledger("p")["done"].as_u64().is_some_and(|done| done >= PAGES as u64 - 6));
    sandbox.assert_sound();
}

/// A file that is broken is told of once, and the one before stays; a pipeline that is added is worked on.
#[test]
fn a_broken_file_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", "[pipeline.a]\ncommand = [\"sh\", \"-c\", \"cat > /dev/null; echo a >> ran.log\"]\n");
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    let worker = Worker::start(&sandbox, &[]);
    sandbox.redrive("push tasks.jsonl --pipeline a").expect(0);
    eventually("both are done", || sandbox.ledger("a")["done"] == 2);
    let good = sandbox.read("redrive.toml");
    sandbox.write("redrive.toml", "[pipeline.a]\ncomand = []\n");
    let told = || sandbox.read("work.log").matches("cannot be used").count();
    eventually("it is told of", || told() == 1);
    sandbox.write(
        "redrive.toml",
        good + "[pipeline.b]\ncommand = [\"sh\", \"-c\", \"cat > /dev/null; echo b >> ran.log\"]\n",
    );
    eventually("the added one is there", || {
        let status = sandbox.redrive("status --json").expect(0).json();
        status["workers"][0]["runs"].as_array().is_some_and(|runs| runs.len() == 2)
    });
    assert_eq!(told(), 1, "once");
    sandbox.redrive("push tasks.jsonl --pipeline b").expect(0);
    eventually("they are done", || sandbox.ledger("b")["done"] == 2);
    worker.stop();
    sandbox.assert_sound();
}

/// A job that runs when the file changes ends by the rules it began with, and its place is not given away twice.
#[test]
fn what_runs_ends_as_it_began() {
    let sandbox = Sandbox::new();
    let config = |word: &str| {
        let script =
            format!("read -r job; touch begun; while [ ! -e go ]; do sleep 0.05; done; echo {word} >> ran.log");
        format!("[pipeline.p]\nconcurrency = 1\ncommand = [\"sh\", \"-c\", {script:?}]\n")
    };
    sandbox.write("redrive.toml", config("old"));
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    sandbox.redrive("push tasks.jsonl").expect(0);
    let worker = Worker::start(&sandbox, &[]);
    eventually("the first runs", || sandbox.path("begun").exists());
    let before = versions(&sandbox);
    sandbox.write("redrive.toml", config("new"));
    eventually("both generations are there", || versions(&sandbox).len() == 2);
    assert!(versions(&sandbox).contains(&before[0]), "the old one waits for its job");
    assert_eq!(sandbox.read("ran.log"), "");
    sandbox.write("go", "");
    eventually("both are done", || sandbox.ledger("p")["done"] == 2);
    assert_eq!(sandbox.read("ran.log"), "old\nnew\n");
    eventually("the old one is gone", || versions(&sandbox).len() == 1);
    worker.stop();
    sandbox.assert_sound();
}

/// A script that fails until a file is there, and three tasks that died of it.
fn broken_script(sandbox: &Sandbox, more: &[&str]) -> String {
    sandbox.write("solve.sh", "read -r job; test -e fixed || exit 64; echo '{\"ok\":true}'\n");
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
    let ran = sandbox.run(&[&["run", "tasks.jsonl", "--", "sh", "solve.sh"], more].concat()).expect(3);
    sandbox.write("fixed", "");
    ran.stderr
}

/// What was given after `--` need not be repeated to bring its letters back, from whichever folder.
#[test]
fn a_command_that_you_ran_need_not_be_repeated() {
    let sandbox = Sandbox::new();
    broken_script(&sandbox, &[]);
    let number = sandbox.dead()[0]["number"].to_string();
    sandbox.run(&["retry", &number]).expect(0);
    assert_eq!(sandbox.ledger("default")["done"], 1, "one letter, now");
    let started = sandbox.redrive("replay start --pipeline default --ramp 1").expect(0);
    assert!(started.stderr.contains("recovered: 2 of 2"), "{}\n{}", started.stdout, started.stderr);
    sandbox.assert_sound();

    let sandbox = Sandbox::new();
    broken_script(&sandbox, &[]);
    fs::create_dir(sandbox.path("elsewhere")).expect("made");
    let store = format!("sqlite:{}", sandbox.path(".redrive/redrive.db").display());
    let mut command = sandbox.command();
    command.current_dir(sandbox.path("elsewhere")).args([
        "--store",
        &store,
        "replay",
        "start",
        "--pipeline",
        "default",
    ]);
    assert_eq!(command.output().expect("started").status.code(), Some(0), "it runs where it ran");
    assert_eq!(sandbox.ledger("default")["done"], 3);
}

/// A store may come from anywhere: a command in it that somebody else ran is shown, and not run unless that is wanted.
#[test]
fn a_command_that_somebody_else_ran_is_not_run() {
    let sandbox = Sandbox::new();
    broken_script(&sandbox, &[]);
    let somebody = |args: &[&str]| {
        let mut command = sandbox.command();
        command
            .env("XDG_STATE_HOME", sandbox.path("another"))
            .args(["replay", "start", "--pipeline", "default"])
            .args(args);
        let output = command.output().expect("started");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = somebody(&[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("sh solve.sh") && said.contains("--trust-stored"), "{said}");
    assert_eq!(sandbox.ledger("default")["dead"], 3, "nothing happened");
    let (code, said) = somebody(&["--trust-stored"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(sandbox.ledger("default")["done"], 3);

    let sandbox = Sandbox::new();
    broken_script(&sandbox, &[]);
    sandbox.redrive("dead export --pipeline default letters.jsonl").expect(0);
    sandbox.redrive("--store sqlite:other.db dead import letters.jsonl").expect(0);
    let refused = sandbox.redrive("--store sqlite:other.db replay start --pipeline default --trust-stored").expect(2);
    assert!(refused.stderr.contains("has no command"), "letters bring no command: {}", refused.stderr);
}

/// An argument that looks secret is told of, is not in the store, and has to be given again.
#[test]
fn a_secret_in_a_command_is_told_of_and_not_kept() {
    let sandbox = Sandbox::new();
    let said = broken_script(&sandbox, &["--api-key", "sk-live-4711"]);
    assert!(said.contains("looks secret") && !said.contains("sk-live-4711"), "{said}");
    for entry in fs::read_dir(sandbox.path(".redrive")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let bytes = if path.is_file() { fs::read(&path).expect("read") } else { Vec::new() };
        assert!(!bytes.windows(12).any(|part| part == b"sk-live-4711"), "{}", path.display());
    }
    let refused = sandbox.redrive("replay start --pipeline default").expect(2);
    assert!(refused.stderr.contains("secrets that were not kept"), "{}", refused.stderr);
    sandbox.run(&["replay", "start", "--pipeline", "default", "--", "sh", "solve.sh", "--api-key", "x"]).expect(0);
}

/// Whatever may be a password is in no file of the store, and the command has to be given again.
#[test]
fn passwords_in_a_command_are_not_in_the_store() {
    for more in [
        &["-u", "bob:hunter2"][..],
        &["--proxy", "10.0.0.1:80:bob:hunter2"],
        &["-p", "hunter2"],
        &["--credentials", "hunter2"],
        &["--client-key", "hunter2"],
        &["--password", "-hunter2"],
    ] {
        let sandbox = Sandbox::new();
        let said = broken_script(&sandbox, more);
        assert!(said.contains("looks secret") && !said.contains("hunter2"), "{said}");
        for entry in fs::read_dir(sandbox.path(".redrive")).expect("a folder") {
            let path = entry.expect("an entry").path();
            let bytes = if path.is_file() { fs::read(&path).expect("read") } else { Vec::new() };
            assert!(!bytes.windows(7).any(|part| part == b"hunter2"), "{more:?} in {}", path.display());
        }
        let refused = sandbox.redrive("retry --pipeline default").expect(2);
        assert!(refused.stderr.contains("secrets that were not kept") && refused.stderr.contains("repeat it after --"));
    }
}

/// All that is run without a name shares a pipeline: a letter goes through the command that it died of, not the newest.
#[test]
fn letters_go_through_the_command_that_they_died_of() {
    let sandbox = Sandbox::new();
    broken_script(&sandbox, &[]);
    sandbox.write("other.sh", "read -r job; test -e mended || exit 64; echo '{\"other\":true}'\n");
    sandbox.write("others.jsonl", "{\"m\":1}\n");
    sandbox.redrive("run others.jsonl -- sh other.sh").expect(3);
    sandbox.write("mended", "");
    let first = sandbox.dead().into_iter().find(|letter| letter["input"]["n"] == 1).expect("a letter");
    let ran = sandbox.run(&["retry", &first["number"].to_string()]).expect(0);
    assert!(ran.stdout.contains("\"ok\":true") && !ran.stdout.contains("other"), "{}", ran.stdout);

    let refused = sandbox.redrive("retry --pipeline default").expect(2).complains("more than one command");
    for said in ["sh solve.sh", "sh other.sh", "-- CMD"] {
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
    assert_eq!(sandbox.ledger("default")["dead"], 3, "nothing happened");
    sandbox.redrive("retry --pipeline default -- sh solve.sh").expect(0);
    sandbox.assert_sound();
}

/// The same words do something else in another folder.
#[test]
fn a_command_that_ran_in_two_folders_runs_in_neither() {
    let sandbox = Sandbox::new();
    broken_script(&sandbox, &[]);
    fs::create_dir(sandbox.path("elsewhere")).expect("made");
    sandbox.write("elsewhere/solve.sh", "exit 64\n");
    sandbox.write("elsewhere/tasks.jsonl", "{\"m\":1}\n");
    let store = format!("sqlite:{}", sandbox.path(".redrive/redrive.db").display());
    let mut command = sandbox.command();
    command.current_dir(sandbox.path("elsewhere"));
    command.args(["--store", &store, "run", "tasks.jsonl", "--", "sh", "solve.sh"]);
    assert_eq!(command.output().expect("started").status.code(), Some(3));
    let refused = sandbox.redrive("retry --pipeline default").expect(2).complains("more than one command");
    assert!(refused.stderr.contains("elsewhere"), "{}", refused.stderr);
    assert_eq!(sandbox.ledger("default")["dead"], 4, "nothing happened");
}

/// What a run demands of its results is demanded of its letters, too.
#[test]
fn a_letter_without_a_result_does_not_recover_without_one() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.write("price.sh", "read -r job; test -e fixed && echo '{\"price\":1}'; exit 0\n");
    sandbox.redrive("run tasks.jsonl --require-result --attempts 1 -- sh price.sh").expect(3);
    sandbox.redrive("retry --pipeline default").expect(3).complains("died again");
    sandbox.write("fixed", "");
    sandbox.redrive("retry --pipeline default").expect(0).complains("recovered");
}
