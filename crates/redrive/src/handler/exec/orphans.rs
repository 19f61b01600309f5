//! Children that outlived their job or their worker.
//!
//! A worker that is killed cannot kill its children, and a child may leave its process group. Each has its worker's id and
//! its job's in its environment, by which it can be found and ended.

use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

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
    scan().into_iter().filter(|(of, _)| *of == worker).map(|(_, child)| child).collect()
}

/// The processes that were started for a job, as of half a second ago at most: all jobs that ask share one look.
pub(super) fn of_job(worker: WorkerId, job: JobId) -> Vec<u32> {
    static RECENT: Mutex<Option<(Instant, Vec<Marked>)>> = Mutex::new(None);
    let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    if recent.as_ref().is_none_or(|(seen, _)| seen.elapsed() > Duration::from_millis(500)) {
        *recent = Some((Instant::now(), scan()));
    }
    let found = recent.iter().flat_map(|(_, marked)| marked);
    let of_job = found.filter(|(of, child)| *of == worker && child.job == Some(job));
    of_job.filter_map(|(_, child)| u32::try_from(child.pid.as_raw_nonzero().get()).ok()).collect()
}

/// A process and the worker it belongs to.
type Marked = (WorkerId, Child);

/// Every process of the machine that belongs to any worker.
fn scan() -> Vec<Marked> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let pids = processes.flatten().filter_map(|process| process.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| *pid != own).filter_map(marked).collect()
}

fn marked(pid: i32) -> Option<Marked> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = |name: &str| {
        let entry = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(name.as_bytes()))?;
        std::str::from_utf8(entry.strip_prefix(b"=")?).ok()
    };
    let worker = value(WORKER_VARIABLE)?.parse().ok()?;
    Some((worker, Child { pid: Pid::from_raw(pid)?, job: value(JOB_VARIABLE).and_then(|job| job.parse().ok()) }))
}

/// Kills all children of a worker; says how many there were.
pub fn kill(worker: WorkerId) -> usize {
    let found = children(worker);
    found.iter().for_each(Child::kill);
    found.len()
}

/// Children of this process that have ended and were not waited for.
pub fn dead_children() -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let own = std::process::id().to_string();
    let pids = processes.flatten().filter_map(|process| process.file_name().to_str()?.parse::<i32>().ok());
    let is_dead_child = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        fields.next() == Some("Z") && fields.next() == Some(own.as_str())
    };
    pids.filter(is_dead_child).filter_map(Pid::from_raw).collect()
}
