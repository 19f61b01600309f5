//! How much memory a process and its descendants use, and waiting until it is too much.

use std::fs;
use std::time::Duration;

use super::orphans;
use crate::handler::Job;

/// How often a child is looked at. A child that ends before the first look costs nothing.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Every so many looks, those that left the child's family are looked for too, which costs more.
const LOOK_WIDELY: u32 = 10;

/// Returns, with what is used, once a process, its descendants and whatever else its job started use more than `limit`
/// bytes together.
pub(in crate::handler) async fn exceeded(pid: u32, job: Option<&Job>, limit: Option<u64>) -> u64 {
    let Some(limit) = limit else { return std::future::pending().await };
    for look in 1_u32.. {
        tokio::time::sleep(LOOK_EVERY).await;
        let family = family(pid);
        let mut used: u64 = family.iter().filter_map(|pid| resident_bytes(*pid)).sum();
        if let Some(job) = job.filter(|_| look.is_multiple_of(LOOK_WIDELY)) {
            let strangers = orphans::of_job(job.worker, job.id).into_iter().filter(|pid| !family.contains(pid));
            used += strangers.filter_map(resident_bytes).sum::<u64>();
        }
        if used > limit {
            return used;
        }
    }
    std::future::pending().await
}

/// The memory of the whole machine.
pub(in crate::handler) fn machine_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// A process and its descendants.
fn family(root: u32) -> Vec<u32> {
    let mut pids = vec![root];
    let mut next = 0;
    while let Some(pid) = pids.get(next) {
        let found = children(*pid);
        pids.extend(found);
        next += 1;
    }
    pids
}

fn resident_bytes(pid: u32) -> Option<u64> {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_some_memory() {
        let used: u64 = family(std::process::id()).into_iter().filter_map(resident_bytes).sum();
        let machine = machine_bytes().expect("a machine has memory");
        assert!(used > 100_000 && used < machine, "{used} of {machine}");
    }
}
