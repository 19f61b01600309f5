//! How much memory a process and its descendants use, and waiting until it is too much.

use std::fs;
use std::time::Duration;

/// How often a child is looked at. A child that ends before the first look costs nothing.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Returns, with what is used, once a process and its descendants use more than `limit` bytes together.
pub(super) async fn exceeded(pid: u32, limit: Option<u64>) -> u64 {
    let Some(limit) = limit else { return std::future::pending().await };
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let used = tree_bytes(pid);
        if used > limit {
            return used;
        }
    }
}

/// The memory of the whole machine.
pub(super) fn machine_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024)
}

fn tree_bytes(root: u32) -> u64 {
    let mut total = 0;
    let mut pids = vec![root];
    while let Some(pid) = pids.pop() {
        total += resident_bytes(pid).unwrap_or(0);
        pids.extend(children(pid));
    }
    total
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
        let used = tree_bytes(std::process::id());
        let machine = machine_bytes().expect("a machine has memory");
        assert!(used > 100_000 && used < machine, "{used} of {machine}");
    }
}
