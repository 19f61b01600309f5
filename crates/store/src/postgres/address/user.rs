//! Who is asking: the user of the operating system, whose name a server is told if no other is.

use std::fs;

/// The name of the user that this process runs as, if it has one.
pub(super) fn name() -> Option<String> {
    let id = rustix::process::geteuid().as_raw().to_string();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let listed = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    });
    listed.or_else(|| std::env::var("USER").ok()).filter(|name| !name.is_empty())
}
