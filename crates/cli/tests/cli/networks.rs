//! Networks of a test's own: a hub, and machines that reach it by a cable each, which can be pulled.
//!
//! They are namespaces without names, kept by a process each and gone with it. Making them needs root, or a user namespace in which the
//! tests run: `scripts/test` makes one where it is allowed to.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A network, which everything that is started by [`Network::enter`] is in.
pub struct Network {
    keeper: Child,
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

impl Network {
    /// A network in which nothing is reached but itself.
    pub fn alone() -> Self {
        let script = "ip link set lo up && echo up && exec sleep 3600";
        let mut keeper = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("setpriv is installed");
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().expect("piped")).read_line(&mut line).expect("read");
        assert_eq!(line, "up\n", "a network needs the right to make one, and iproute2: run scripts/test, or as root");
        Self { keeper }
    }

    /// A command that runs another in this network, as the same process.
    pub fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.keeper.id()));
        command
    }

    #[track_caller]
    fn ip(&self, line: &str) {
        let status = self.enter().arg("ip").args(line.split(' ')).status().expect("nsenter is installed");
        assert!(status.success(), "ip {line}");
    }
}

/// A machine with a cable to a hub.
pub struct Machine {
    pub network: Network,
    /// Which it is, from 1.
    number: u8,
}

impl Machine {
    /// A machine with a cable to a hub.
    pub fn beside(hub: &Network, number: u8) -> Self {
        let network = Network::alone();
        let pid = network.keeper.id();
        hub.ip(&format!("link add c{number} type veth peer name eth0 netns {pid}"));
        hub.ip(&format!("addr add 10.77.{number}.1/24 dev c{number}"));
        hub.ip(&format!("link set c{number} up"));
        network.ip(&format!("addr add 10.77.{number}.2/24 dev eth0"));
        network.ip("link set eth0 up");
        Self { network, number }
    }

    /// The address by which it reaches the hub.
    pub fn hub_address(&self) -> String {
        format!("10.77.{}.1", self.number)
    }

    /// Pulls its cable: nothing arrives on either side, and nobody is told.
    pub fn cut_off(&self, hub: &Network) {
        hub.ip(&format!("link set c{} down", self.number));
    }

    /// Puts its cable back.
    pub fn reconnect(&self, hub: &Network) {
        hub.ip(&format!("link set c{} up", self.number));
    }
}
