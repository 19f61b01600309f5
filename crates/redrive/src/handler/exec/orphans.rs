//! Children that outlived their worker.
//!
//! A worker that is killed cannot kill its children. Each child has its worker's id in its environment, so whoever takes
//! over the worker's jobs can find them and end them before the jobs run again.

use std::fs;

use redrive_core::ids::WorkerId;
use rustix::process::{Pid, Signal, kill_process};

/// The environment variable by which children are known.
pub const WORKER_VARIABLE: &str = "REDRIVE_WORKER";

/// Kills the children of a worker that is gone; says how many there were.
pub fn kill(worker: WorkerId) -> usize {
    kill_marked(&format!("{WORKER_VARIABLE}={worker}"))
}

/// Kills every process that has an entry in its environment; says how many there were.
pub(super) fn kill_marked(entry: &str) -> usize {
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let own = std::process::id();
    let pids = processes.flatten().filter_map(|process| process.file_name().to_str()?.parse().ok());
    let marked = pids.filter(|pid: &i32| u32::try_from(*pid) != Ok(own) && has_entry(*pid, entry));
    marked.filter_map(Pid::from_raw).filter(|pid| kill_process(*pid, Signal::KILL).is_ok()).count()
}

fn has_entry(pid: i32, entry: &str) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    environment.split(|byte| *byte == 0).any(|found| found == entry.as_bytes())
}
