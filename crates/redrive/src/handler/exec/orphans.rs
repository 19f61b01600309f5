//! Children that outlived their job or their worker.
//!
//! A worker that is killed cannot kill its children, and a child may leave its process group. Each has its worker's id and
//! its job's in its environment, by which it can be found and ended.

use std::fs;

use redrive_core::ids::{JobId, WorkerId};
use rustix::process::{Pid, Signal, kill_process};

/// The environment variables by which children are known.
pub const WORKER_VARIABLE: &str = "REDRIVE_WORKER";
/// See [`WORKER_VARIABLE`].
pub const JOB_VARIABLE: &str = "REDRIVE_JOB";

/// A process that a worker started, or that such a process started.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    pid: Pid,
    /// The job it was started for, unless it is for many.
    pub job: Option<JobId>,
}

impl Child {
    /// Kills it.
    pub fn kill(&self) {
        // It may have ended meanwhile, which is as good.
        let _ = kill_process(self.pid, Signal::KILL);
    }
}

/// The processes that a worker, or any of its children, started.
pub fn children(worker: WorkerId) -> Vec<Child> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let pids = processes.flatten().filter_map(|process| process.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| *pid != own).filter_map(|pid| child(pid, worker)).collect()
}

fn child(pid: i32, worker: WorkerId) -> Option<Child> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = |name: &str| {
        let entry = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(name.as_bytes()))?;
        std::str::from_utf8(entry.strip_prefix(b"=")?).ok()
    };
    if value(WORKER_VARIABLE)?.parse() != Ok(worker) {
        return None;
    }
    Some(Child { pid: Pid::from_raw(pid)?, job: value(JOB_VARIABLE).and_then(|job| job.parse().ok()) })
}

/// Kills all children of a worker; says how many there were.
pub fn kill(worker: WorkerId) -> usize {
    let found = children(worker);
    found.iter().for_each(Child::kill);
    found.len()
}
