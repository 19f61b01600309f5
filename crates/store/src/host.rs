//! The host this process runs on, as far as others must tell hosts apart.

use std::fs;
use std::sync::OnceLock;

/// The name of this host.
pub fn host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| {
        let read = |path: &str| fs::read_to_string(path).ok();
        let named = [read("/proc/sys/kernel/hostname"), read("/etc/hostname"), std::env::var("HOSTNAME").ok()];
        let name = named.into_iter().flatten().map(|name| name.trim().to_owned()).find(|name| !name.is_empty());
        name.unwrap_or_else(|| "localhost".to_owned())
    })
}

/// The running system: the same for all processes that share its locks, also in containers, until the next boot. Empty where that
/// cannot be told.
pub(crate) fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let read = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        read.map(|id| id.trim().to_owned()).unwrap_or_default()
    })
}
