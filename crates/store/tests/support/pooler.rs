//! A pooler for the tests, in a folder of its own, before a server of the tests.
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The pooler, as long as it is kept.
pub struct Pooler {
    folder: TempDir,
    process: Child,
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.end();
    }
}

impl Pooler {
    /// Starts a pooler before the server in a folder, which gives each transaction another connection, with more settings.
    pub fn start(server: &Path, settings: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (here, there) = (folder.path().display(), server.display());
        let users = format!("{here}/users");
        let text = format!(
            "[databases]\npostgres = host={there} dbname=postgres user=redrive\n[pgbouncer]\nlisten_port = 5432\n
             unix_socket_dir = {here}\nauth_type = trust\nauth_file = {users}\npool_mode = transaction\n
             default_pool_size = 6\nlogfile = {here}/log\n{settings}\n"
        );
        let text: String = text.lines().map(|line| format!("{}\n", line.trim())).collect();
        std::fs::write(folder.path().join("pooler.ini"), text).expect("written");
        std::fs::write(users, "\"redrive\" \"\"\n").expect("written");
        let process = launch(folder.path());
        Self { folder, process }
    }

    /// How the server is reached through it.
    pub fn address(&self) -> String {
        format!("host={} user=redrive dbname=postgres", self.folder.path().display())
    }

    /// Kills it and starts another in its place.
    pub fn restart(&mut self) {
        self.end();
        self.process = launch(self.folder.path());
    }

    fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(self.folder.path().join(".s.PGSQL.5432"));
    }
}

/// Starts it and waits until it answers. Like a server it does not run as root.
fn launch(folder: &Path) -> Child {
    let script = r#"
        as="setpriv --pdeathsig KILL"
        if [ "$(id -u)" = 0 ]; then
          if chown -R postgres: . 2>/dev/null && setpriv --reuid=postgres --regid=postgres --clear-groups true 2>/dev/null; then
            as="$as --reuid=postgres --regid=postgres --clear-groups"
          else
            as="$as unshare --user --map-user=1000 --map-group=1000"
          fi
        fi
        PATH=$PATH:/usr/sbin
        command -v pgbouncer >/dev/null || { echo "the tests need pgbouncer: install the package pgbouncer" >&2; exit 1; }
        exec $as pgbouncer -q pooler.ini"#;
    let mut process = Command::new("sh")
        .args(["-c", script])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("a pooler can be started");
    let since = Instant::now();
    while UnixStream::connect(folder.join(".s.PGSQL.5432")).is_err() {
        let ended = process.try_wait().expect("a process").is_some();
        assert!(!ended && since.elapsed() < Duration::from_secs(60), "the pooler did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    process
}
