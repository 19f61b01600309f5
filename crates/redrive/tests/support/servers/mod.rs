//! Real servers, each a process of its own on free ports of loopback, in a folder of its own, as the user who runs the
//! tests. `scripts/test` installs what is missing.

#![allow(dead_code, reason = "each test binary needs a part of it")]

pub mod authority;
pub mod nginx;
pub mod squid;

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server process. Dropping it kills it.
pub struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How often other ports are tried, when somebody else has taken one of them meanwhile.
const TRIES: usize = 5;

/// How long a server may take until it listens, or has noted what it answered.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a server on so many free ports. `command` writes its configuration for them and says how it is started.
fn start<const N: usize>(folder: &Path, command: impl Fn([u16; N]) -> Command) -> (Process, [u16; N]) {
    for _ in 0..TRIES {
        let ports = free_ports();
        let mut command = command(ports);
        let errors = std::fs::File::create(folder.join("stderr")).expect("a file");
        // Debian keeps servers where only root looks.
        command.env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn();
        let mut process =
            Process(child.unwrap_or_else(|error| panic!("{program} (scripts/test installs it): {error}")));
        if listens(&mut process, &ports) {
            return (process, ports);
        }
    }
    panic!("it does not start: {}", std::fs::read_to_string(folder.join("stderr")).unwrap_or_default());
}

/// What a server noted, once that is all: it answers first and takes notes later.
fn noted(log: &Path, is_all: impl Fn(&str) -> bool) -> String {
    let begun = Instant::now();
    loop {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        if is_all(&text) || begun.elapsed() > PATIENCE {
            return text;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Ports that nobody has now.
fn free_ports<const N: usize>() -> [u16; N] {
    let held = [(); N].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port"));
    held.map(|listener| listener.local_addr().expect("an address").port())
}

/// Waits until all ports are listened on; false if the server ends instead.
fn listens(process: &mut Process, ports: &[u16]) -> bool {
    let begun = Instant::now();
    for port in ports {
        while TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).is_err() {
            if process.0.try_wait().expect("asked").is_some() || begun.elapsed() > PATIENCE {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    true
}
