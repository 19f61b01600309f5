//! squid: a proxy that asks for a user and a password.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use tempfile::TempDir;

use super::{Process, noted, start};

/// The user that it knows.
pub const USER: &str = "scraper";
/// The user's password.
pub const PASSWORD: &str = "Pr0xy-pa55word";

/// A running squid.
pub struct Squid {
    process: Option<Process>,
    folder: TempDir,
    port: u16,
}

impl Squid {
    /// Starts it.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        // Started by root, it goes on as another user, who writes here.
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("permissions");
        let check = format!(
            "while read -r user password; do\n\
             if [ \"$user $password\" = '{USER} {PASSWORD}' ]; then echo OK; else echo ERR; fi\ndone\n"
        );
        fs::write(path.join("check.sh"), check).expect("written");
        let (process, [port]) = start(path, |[port]| {
            fs::write(path.join("squid.conf"), configuration(path.to_str().expect("a text"), port)).expect("written");
            let mut command = program();
            // In the foreground, as one process, with a name of its own for what it shares.
            command.args(["-N", "-n", &service(port), "-f"]).arg(path.join("squid.conf")).current_dir(path);
            command
        });
        Self { process: Some(process), folder, port }
    }

    /// Its address with credentials.
    pub fn url(&self, user: &str, password: &str) -> String {
        format!("http://{user}:{password}@127.0.0.1:{}", self.port)
    }

    /// What it noted about each request. A text that is not all is waited with.
    pub fn log(&self, is_all: impl Fn(&str) -> bool) -> String {
        noted(&self.folder.path().join("access.log"), is_all)
    }
}

impl Drop for Squid {
    fn drop(&mut self) {
        drop(self.process.take());
        // A process that is killed leaves what it shared.
        for file in fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
            if file.file_name().to_string_lossy().starts_with(&format!("{}-", service(self.port))) {
                let _ = fs::remove_file(file.path());
            }
        }
    }
}

/// The name that what it shares goes under.
fn service(port: u16) -> String {
    format!("redrivetest{port}")
}

/// squid refuses to work as root, and as root of a user namespace it can become nobody else: there it gets a namespace
/// of its own, in which it is not root.
fn program() -> Command {
    let is_root = fs::metadata("/proc/self").expect("/proc").uid() == 0;
    let ids = fs::read_to_string("/proc/self/uid_map").expect("/proc");
    let users: u64 = ids.split_whitespace().nth(2).and_then(|count| count.parse().ok()).expect("a count");
    if !is_root || users > 1 {
        return Command::new("squid");
    }
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-user=1", "--map-group=1", "squid"]);
    command
}

fn configuration(folder: &str, port: u16) -> String {
    format!(
        "http_port 127.0.0.1:{port}\n\
         visible_hostname localhost\n\
         pid_filename none\n\
         access_log stdio:{folder}/access.log\n\
         cache_log {folder}/cache.log\n\
         coredump_dir {folder}\n\
         cache deny all\n\
         cache_mem 8 MB\n\
         pinger_enable off\n\
         shutdown_lifetime 0 seconds\n\
         auth_param basic program /bin/sh {folder}/check.sh\n\
         auth_param basic children 1\n\
         auth_param basic realm test\n\
         acl known proxy_auth REQUIRED\n\
         http_access allow known\n\
         http_access deny all\n"
    )
}
