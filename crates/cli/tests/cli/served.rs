//! `redrive serve` as a process of a test, and asking it by nothing but a socket.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::Sandbox;

/// How long an answer is waited for: longer than any request may wait for jobs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that runs.
pub struct Served {
    child: Child,
    pub address: String,
}

impl Served {
    /// Starts a server and waits until it listens.
    pub fn start(sandbox: &Sandbox, listen: &str, extra: &[&str]) -> Self {
        Self::start_as(sandbox.command(), listen, extra)
    }

    /// The same of a command that runs `redrive` somewhere.
    pub fn start_as(mut command: Command, listen: &str, extra: &[&str]) -> Self {
        command.args(["serve", "--listen", listen]).args(extra).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("redrive starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let mut said = Vec::new();
        let address = lines.by_ref().find_map(|line| {
            let found = line.split_once("http://").map(|(_, address)| address.to_owned());
            said.push(line);
            found
        });
        // What it says further is read, so that it never waits for us.
        std::thread::spawn(move || lines.count());
        let address = address.unwrap_or_else(|| panic!("it does not listen: {said:?}"));
        remember(&command, &address);
        Self { child, address }
    }

    /// The most that it has had in memory since it started, in bytes.
    pub fn memory_peak(&self) -> u64 {
        self.memory_of("VmHWM:")
    }

    /// Returns what it has in memory, in bytes.
    pub fn memory(&self) -> u64 {
        self.memory_of("VmRSS:")
    }

    fn memory_of(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let size = status.lines().find_map(|line| line.strip_prefix(name)).expect("a size");
        size.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }

    /// Ends it at once.
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("waited");
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("signalled");
    }

    /// Tells it to stop, and waits until it has.
    pub fn stop(self) {
        self.signal(Signal::TERM);
        self.wait();
    }

    /// Waits until it has ended, which it was told to.
    pub fn wait(mut self) {
        assert!(self.child.wait().expect("waited").success(), "told to stop, it ends well");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address on this machine that nobody listens on.
pub fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").to_string()
}

/// Tokens in the token files of servers whose stores have no tokens, by their addresses.
static LOCAL: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// Remembers by what requests are let in at a server that a command started.
pub fn remember(command: &Command, address: &str) {
    let state = command.get_envs().find_map(|(name, value)| value.filter(|_| name == "XDG_STATE_HOME"));
    let port = address.rsplit(':').next().unwrap_or_default();
    let file = Path::new(state.unwrap_or_default()).join("redrive/servers").join(port);
    if let Ok(token) = std::fs::read_to_string(file) {
        LOCAL.lock().expect("unpoisoned").insert(address.to_owned(), token.trim().to_owned());
    }
}

/// Reads the token file of a server.
pub fn local(address: &str) -> String {
    LOCAL.lock().expect("unpoisoned").get(address).cloned().unwrap_or_default()
}

/// Asks a server, without a token as somebody of its machine; nothing if no whole answer came.
pub fn ask(address: &str, token: &str, request: &str, body: Option<&Value>) -> Option<(u16, Value)> {
    let token = if token.is_empty() { local(address) } else { token.to_owned() };
    let (method, path) = request.split_once(' ').expect("a method and a path");
    let text = body.map(ToString::to_string).unwrap_or_default();
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let head = format!(
        "{method} /api/v1{path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(text.as_bytes())).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    // A body that was cut off is no JSON.
    Some((status, serde_json::from_str(body).ok()?))
}

/// Asks until there is an answer, as every client does: also while the server is away.
pub fn answered(address: &str, token: &str, request: &str, body: &Value) -> Value {
    for _ in 0..6_000 {
        match ask(address, token, request, Some(body)) {
            Some((200..300, answer)) => return answer,
            None | Some((429 | 503, _)) => std::thread::sleep(Duration::from_millis(20)),
            Some((status, answer)) => panic!("{request} {body}: {status} {answer}"),
        }
    }
    panic!("{request} is never answered")
}
