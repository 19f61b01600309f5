//! The server under measurement, as a process of its own: what it takes of memory and processors is what the system counts for it.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::command::binary;

/// How long it may take to begin.
const BEGINS_WITHIN: Duration = Duration::from_secs(30);

/// Ticks of the clock in which the system counts a process's time.
const TICKS_A_SECOND: f64 = 100.0;

/// `redrive serve`, which ends with this value.
pub struct Server {
    process: Child,
    /// Where it listens.
    pub address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// Starts it on a store, with what it says in a file beside it.
    pub fn start(store: &Path) -> Result<Self> {
        let folder = store.parent().context("the store is in a folder")?;
        let said = folder.join("served.log");
        let process = Command::new(binary()?)
            .args(["serve", "--listen", "127.0.0.1:0", "--store", &format!("sqlite:{}", store.display())])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&said)?)
            .spawn()?;
        let mut server = Self { process, address: String::new() };
        let begun = Instant::now();
        while begun.elapsed() < BEGINS_WITHIN {
            let text = std::fs::read_to_string(&said)?;
            if let Some((_, rest)) = text.split_once("http://") {
                let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ':').unwrap_or(rest.len());
                server.address = rest[..end].to_owned();
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("the server did not begin: {}", std::fs::read_to_string(&said)?)
    }

    fn proc(&self, file: &str) -> Result<String> {
        Ok(std::fs::read_to_string(format!("/proc/{}/{file}", self.process.id()))?)
    }

    /// What it has in memory, in MiB.
    pub fn memory_mib(&self) -> Result<f64> {
        let status = self.proc("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("memory is counted")?;
        let kib: f64 = line.split_whitespace().next().context("a number")?.parse()?;
        Ok(kib / 1_024.0)
    }

    /// The time it has had of processors, in seconds.
    pub fn busy_secs(&self) -> Result<f64> {
        busy_secs(&self.proc("stat")?)
    }
}

/// The time that this process has had of processors, in seconds.
pub fn own_busy_secs() -> Result<f64> {
    busy_secs(&std::fs::read_to_string("/proc/self/stat")?)
}

fn busy_secs(stat: &str) -> Result<f64> {
    let (_, fields) = stat.rsplit_once(')').context("a name in brackets")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // The 14th and 15th of all, of which two are before the bracket.
    let ticks: f64 =
        fields.get(11).context("user time")?.parse::<f64>()? + fields.get(12).context("system time")?.parse::<f64>()?;
    Ok(ticks / TICKS_A_SECOND)
}
