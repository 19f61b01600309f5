//! A PostgreSQL server that is not there: commands say what they wait for and give up, workers wait.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Sandbox, eventually};
use crate::postgres_server::{OwnServer, url_in};

/// A server of the test's own, and a folder whose commands have their store there.
fn served() -> (OwnServer, Sandbox) {
    let server = OwnServer::start();
    let sandbox = Sandbox::with_store(url_in(server.folder(), "redrive"));
    (server, sandbox)
}

/// Stops the server and keeps it down.
fn take_down(server: &OwnServer) {
    server.hold(true);
    server.stop();
    eventually("it is down", || !server.answers());
}

fn put_back(server: &OwnServer) {
    server.hold(false);
    eventually("it is up", || server.answers());
}

fn terminate(child: &Child) {
    kill_process(Pid::from_child(child), Signal::TERM).expect("signalled");
}

/// Waits until a process has ended, and gives its code.
#[track_caller]
fn ended(mut child: Child) -> Option<i32> {
    let mut code = None;
    eventually("it ends", || {
        code = child.try_wait().expect("asked");
        code.is_some()
    });
    code.and_then(|status| status.code())
}

#[test]
fn a_command_says_soon_what_it_waits_for_and_gives_up_after_half_a_minute() {
    let sandbox = Sandbox::with_store("postgres://redrive:pl4nted-s3cret@127.0.0.1:1/jobs".to_owned());
    let begun = Instant::now();
    let status = sandbox.spawn_saying("said", &["status"]);
    eventually("it says what it waits for", || sandbox.read("said").contains("waiting for the store"));
    assert!(begun.elapsed() < Duration::from_secs(25), "before it gives up");
    assert_eq!(ended(status), Some(1));
    assert!(begun.elapsed() >= Duration::from_secs(30), "{:?}", begun.elapsed());
    let said = sandbox.read("said");
    for text in ["PostgreSQL at 127.0.0.1", "database jobs", "onnection refused", "run the same command again"] {
        assert!(said.contains(text), "{text}: {said}");
    }
    assert_eq!(said.matches("waiting for the store").count(), 1, "once: {said}");
    assert!(!said.contains("pl4nted"), "{said}");
}

#[test]
fn a_worker_waits_for_a_server_that_is_down_before_it_begins_and_while_it_works() {
    let (server, sandbox) = served();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    sandbox.redrive("push tasks.jsonl").expect(0);
    take_down(&server);
    let args = ["work", "--out", "out.jsonl", "--", "sh", "handler.sh"];
    sandbox.write(
        "handler.sh",
        "cat > /dev/null; echo x >> began; until [ -e go ]; do sleep 0.1; done; echo '{\"ok\":1}'",
    );
    let worker = sandbox.spawn_saying("said", &args);
    eventually("it says what it waits for", || sandbox.read("said").contains("waiting for the store"));
    put_back(&server);
    eventually("both run", || sandbox.read("began").lines().count() == 2);
    assert!(sandbox.read("said").contains("the store answers again"), "{}", sandbox.read("said"));
    take_down(&server);
    eventually("it says it again", || sandbox.read("said").matches("waiting for the store").count() == 2);
    // They end while nobody can be told.
    sandbox.write("go", "");
    put_back(&server);
    eventually("both are settled", || sandbox.ledger("default")["done"] == 2);
    assert_eq!(sandbox.read("out.jsonl").lines().count(), 2, "each result is written once");
    assert_eq!(sandbox.read("began").lines().count(), 2, "and nothing was run again");
    terminate(&worker);
    assert_eq!(ended(worker), Some(0), "{}", sandbox.read("said"));
    sandbox.assert_sound();
}

#[test]
fn a_worker_that_is_stopped_while_it_waits_says_what_is_done_again() {
    let (server, sandbox) = served();
    sandbox.write("redrive.toml", "[pipeline.default]\ncommand = [\"sh\", \"handler.sh\"]\nlease = \"5s\"\n");
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    sandbox.write(
        "handler.sh",
        "cat > /dev/null; echo x >> began; until [ -e go ]; do sleep 0.1; done; echo '{\"ok\":1}'",
    );
    sandbox.redrive("push tasks.jsonl").expect(0);
    let worker = sandbox.spawn_saying("said", &["work", "--out", "out.jsonl"]);
    eventually("both run", || sandbox.read("began").lines().count() == 2);
    take_down(&server);
    eventually("it says what it waits for", || sandbox.read("said").contains("waiting for the store"));
    let begun = Instant::now();
    terminate(&worker);
    eventually("it is told to stop", || sandbox.read("said").contains("stopping: "));
    terminate(&worker);
    assert_eq!(ended(worker), Some(0), "{}", sandbox.read("said"));
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    let said = sandbox.read("said");
    assert!(said.contains("these tasks are done again") && said.contains("jobs=2"), "{said}");
    put_back(&server);
    sandbox.write("go", "");
    sandbox.redrive("work --drain --out out.jsonl").expect(0);
    assert_eq!(sandbox.ledger("default")["done"], 2);
    assert_eq!(sandbox.read("out.jsonl").lines().count(), 2);
    sandbox.assert_sound();
}

#[test]
fn a_run_that_is_interrupted_while_it_waits_ends() {
    let (server, sandbox) = served();
    sandbox.redrive("push /dev/null").expect(0);
    take_down(&server);
    let mut command = sandbox.command();
    let said = std::fs::File::create(sandbox.path("said")).expect("made");
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    command.args(["run", "tasks.jsonl", "--", "true"]).stdout(Stdio::null()).stderr(said);
    let run = command.spawn().expect("started");
    eventually("it says what it waits for", || sandbox.read("said").contains("waiting for the store"));
    terminate(&run);
    assert_eq!(ended(run), None, "it was ended by the signal: it had nothing yet");
}
