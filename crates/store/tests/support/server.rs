//! A PostgreSQL server for the tests: one that all test processes share, in a folder of its own, never one that runs already.
//!
//! Each process holds a lock while it lives. `postgres.sh` watches that lock, and ends the server and removes its folder when nobody
//! has had it for ten seconds, however the tests ended. The tests of every crate take this file by its path.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::fs::{File, OpenOptions};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Where the locks are, and the name of the folder.
const STATE: &str = env!("CARGO_TARGET_TMPDIR");

/// The socket of a server that listens to nothing else.
const SOCKET: &str = ".s.PGSQL.5432";

/// The folder of the server, which runs as long as this process does.
pub fn server() -> &'static Path {
    static SERVER: OnceLock<(PathBuf, File)> = OnceLock::new();
    let (folder, _) = SERVER.get_or_init(|| {
        let in_use = open("postgres.lock");
        in_use.lock_shared().expect("a lock");
        // One process starts it, the others find it.
        let starting = open("postgres.starting");
        starting.lock().expect("a lock");
        (running().unwrap_or_else(start_shared), in_use)
    });
    folder
}

fn open(name: &str) -> File {
    let path = Path::new(STATE).join(name);
    OpenOptions::new().create(true).append(true).open(path).expect("a file for a lock")
}

/// Whether a server takes connections, and lets in who comes.
fn answers(folder: &Path) -> bool {
    let noted = std::fs::read_to_string(folder.join("data/postmaster.pid")).unwrap_or_default();
    let is_ready = noted.lines().last().is_some_and(|state| state.trim() == "ready");
    is_ready && UnixStream::connect(folder.join(SOCKET)).is_ok()
}

/// The folder of a server that runs. What is left of one whose watchdog was killed is removed.
fn running() -> Option<PathBuf> {
    let folder = PathBuf::from(std::fs::read_to_string(Path::new(STATE).join("postgres.folder")).ok()?);
    if !answers(&folder) {
        let _ = std::fs::remove_dir_all(&folder);
        return None;
    }
    Some(folder)
}

/// Where the programs of the newest server are.
fn programs() -> PathBuf {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&on_path).collect();
    let mut installed: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    installed.sort();
    folders.extend(installed.into_iter().rev());
    let whole = |folder: &PathBuf| folder.join("initdb").exists() && folder.join("postgres").exists();
    folders.into_iter().find(whole).expect("the tests need a PostgreSQL server: install the package postgresql")
}

/// Starts the server that all share.
fn start_shared() -> PathBuf {
    let folder = start(&Path::new(STATE).join("postgres.lock"), (Command::new("env"), ""), None);
    std::fs::write(Path::new(STATE).join("postgres.folder"), folder.as_os_str().as_encoded_bytes()).expect("noted");
    folder
}

/// Starts a server that runs as long as anybody holds the lock, by a command that is given another; it listens at these addresses, beside
/// its socket, and may be the standby of another.
#[expect(clippy::zombie_processes, reason = "the server outlives this process, for those that come after it")]
fn start(lock: &Path, (mut within, addresses): (Command, &str), primary: Option<&OwnServer>) -> PathBuf {
    let folder = tempfile::Builder::new().prefix("redrive-postgres-").tempdir().expect("a folder").keep();
    let log = File::create(folder.join("log")).expect("a log");
    let mut watchdog = within
        .args(["setsid", "sh", "-c", include_str!("postgres.sh"), "postgres.sh"])
        .args([folder.as_path(), &programs(), lock])
        .arg(addresses)
        .args(primary.map(OwnServer::folder))
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a log"))
        .stderr(log)
        .spawn()
        .expect("a server can be started");
    let since = Instant::now();
    while !answers(&folder) {
        let ended = watchdog.try_wait().expect("a process").is_some();
        if ended || since.elapsed() > Duration::from_secs(120) {
            let said = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
            panic!("the PostgreSQL server did not start: {said}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    folder
}

/// A server of one test's own, which may be stopped at once and comes back.
pub struct OwnServer {
    folder: PathBuf,
    _lock: tempfile::NamedTempFile,
}

impl OwnServer {
    /// Starts it.
    pub fn start() -> Self {
        Self::start_within(Command::new("env"), "")
    }

    /// Starts it by a command that is given another, such as one that enters a network of its own, where it listens at some addresses.
    pub fn start_within(within: Command, addresses: &str) -> Self {
        Self::begin((within, addresses), None)
    }

    /// Starts a standby of this one, which follows it and can be read.
    pub fn standby(&self) -> Self {
        Self::begin((Command::new("env"), ""), Some(self))
    }

    fn begin(within: (Command, &str), primary: Option<&Self>) -> Self {
        let lock = tempfile::NamedTempFile::new().expect("a file for a lock");
        lock.as_file().lock_shared().expect("a lock");
        Self { folder: start(lock.path(), within, primary), _lock: lock }
    }

    /// Keeps it from coming back once it is stopped, or no longer does.
    pub fn hold(&self, is_held: bool) {
        let held = self.folder.join("held");
        match is_held {
            true => drop(File::create(held).expect("held")),
            false => std::fs::remove_file(held).expect("let go"),
        }
    }

    /// Whether it takes connections.
    pub fn answers(&self) -> bool {
        answers(&self.folder)
    }

    /// How it is reached.
    pub fn address(&self) -> String {
        address_in(&self.folder)
    }

    /// Its folder; what it keeps is in `data` there.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stops it at once, whatever it is doing.
    pub fn stop(&self) {
        let Ok(text) = std::fs::read_to_string(self.folder.join("data/postmaster.pid")) else { return };
        let pid = text.lines().next().unwrap_or_default();
        Command::new("kill").args(["-QUIT", pid]).status().expect("stopped");
    }
}

/// How the server is reached.
pub fn address() -> String {
    address_in(server())
}

/// How a server in a folder is reached.
pub fn address_in(folder: &Path) -> String {
    format!("host={} user=redrive dbname=postgres", folder.display())
}

/// How the store in a schema of the server is named, for whoever opens it by its address.
pub fn url(schema: &str) -> String {
    url_in(server(), schema)
}

/// The same of a server in a folder.
pub fn url_in(folder: &Path, schema: &str) -> String {
    format!("postgres://redrive@/postgres?host={}&schema={schema}", folder.display())
}

/// A schema that nobody else has.
pub fn schema() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_micros();
    format!("test_{since}_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}
