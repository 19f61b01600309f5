//! `redrive serve`: that it begins, works, and stops when told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Sandbox, eventually};

/// Starts a server; says where it listens.
fn serve(sandbox: &Sandbox, extra: &[&str]) -> (Child, String) {
    let mut command = sandbox.command();
    command.args(["serve", "--listen", "127.0.0.1:0"]).args(extra).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("redrive starts");
    let lines = BufReader::new(child.stderr.take().expect("an error stream")).lines();
    let mut lines = lines.map(|line| line.expect("read"));
    let address = lines.find_map(|line| Some(line.split_once("http://")?.1.to_owned())).expect("it says where");
    // What it says further is read, so that it never waits for us.
    std::thread::spawn(move || lines.count());
    (child, address)
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("read");
    answer
}

#[test]
fn it_answers_works_and_stops_when_told_to() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", "[pipeline.shop]\ncommand = [\"sh\", \"-c\", \"cat > /dev/null; echo 1\"]\n");
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    let (mut server, address) = serve(&sandbox, &["--work"]);
    assert!(get(&address, "/healthz").starts_with("HTTP/1.1 200"));
    sandbox.redrive("push tasks.jsonl").expect(0);
    eventually("all are done", || sandbox.ledger("shop")["done"] == 2);
    assert!(get(&address, "/api/v1/jobs").contains("\"done\""));
    kill_process(Pid::from_child(&server), Signal::TERM).expect("signalled");
    assert_eq!(server.wait().expect("waited").code(), Some(0));
    assert_eq!(sandbox.redrive("status --json").expect(0).json()["workers"], serde_json::json!([]));
    sandbox.assert_sound();
}

#[test]
fn it_is_not_reached_from_elsewhere_without_a_token() {
    let sandbox = Sandbox::new();
    sandbox.redrive("serve --listen 0.0.0.0:0").expect(1).complains("the store has no token");
}
