//! A folder of its own for each test, and the real `redrive` in it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::network::{self, Serving};
use crate::networks::Machine;

/// A fresh folder in which `redrive` runs.
pub struct Sandbox {
    folder: TempDir,
    /// The store of its commands, if it is not the one in the folder.
    store: Option<String>,
    /// The server that its commands ask, if they ask one.
    served: Option<OnceLock<Serving>>,
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// What came of a command.
    pub fn of(output: Output) -> Self {
        ran(output)
    }

    /// Asserts the exit code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Demands that it prints a text.
    pub fn prints(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "{text:?} is missing in:\n{}", self.stdout);
        self
    }

    /// Asserts that the error output contains a text.
    #[track_caller]
    pub fn complains(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "expected {text:?} in:\n{}", self.stderr);
        self
    }

    /// The output as JSON Lines.
    pub fn json_lines(&self) -> Vec<Value> {
        json_lines(&self.stdout)
    }

    /// The output as one JSON document.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in:\n{}", self.stdout))
    }
}

impl Ran {
    /// The output as one JSON document; null if the command failed.
    pub fn json_or_null(&self) -> Value {
        if self.code == Some(0) { self.json() } else { Value::Null }
    }
}

/// Text as JSON Lines; every line must be whole.
pub fn json_lines(text: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in: {line}"));
    text.lines().map(parse).collect()
}

impl Sandbox {
    pub fn new() -> Self {
        let served = network::is_served().then(OnceLock::new);
        Self { folder: tempfile::tempdir().expect("a temporary folder"), store: None, served }
    }

    /// One whose commands have another store.
    pub fn with_store(store: String) -> Self {
        Self { store: Some(store), ..Self::new() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), content).expect("written");
        self.path(name)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// `redrive`, ready to be given arguments.
    pub fn command(&self) -> Command {
        self.furnish(Command::new(env!("CARGO_BIN_EXE_redrive")))
    }

    /// The same, on a machine of its own.
    pub fn command_on(&self, machine: &Machine) -> Command {
        let mut command = machine.network.enter();
        command.arg(env!("CARGO_BIN_EXE_redrive"));
        self.furnish(command)
    }

    /// Limits the number of open files.
    pub fn command_with_files(&self, files: u32) -> Command {
        let mut command = Command::new("sh");
        let limited = format!("ulimit -n {files} && exec \"$@\"");
        command.args(["-c", &limited, "sh", env!("CARGO_BIN_EXE_redrive")]);
        self.furnish(command)
    }

    fn furnish(&self, mut command: Command) -> Command {
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        for name in ["REDRIVE_STORE", "REDRIVE_CONFIG", "REDRIVE_LOG", "REDRIVE_SERVER", "REDRIVE_TOKEN"] {
            command.env_remove(name);
        }
        command.env("XDG_STATE_HOME", self.folder.path().join("state"));
        command.envs(self.store.iter().map(|store| ("REDRIVE_STORE", store)));
        command
    }

    /// Runs `redrive` with arguments separated by spaces.
    pub fn redrive(&self, line: &str) -> Ran {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs `redrive` with arguments.
    pub fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.command();
        if let Some(served) = self.served.as_ref().filter(|_| network::is_asked_of_servers(args)) {
            let serving = served.get_or_init(|| Serving::start(self, &[]));
            command.env("REDRIVE_SERVER", serving.url());
        }
        ran(command.args(args).output().expect("redrive starts"))
    }

    /// Starts `redrive` with its output thrown away.
    pub fn spawn(&self, args: &[&str]) -> Child {
        let quiet = || Stdio::null();
        self.command().args(args).stdout(quiet()).stderr(quiet()).spawn().expect("redrive starts")
    }

    /// Starts `redrive` with what it says written to a file, and its results thrown away.
    pub fn spawn_saying(&self, file: &str, args: &[&str]) -> Child {
        let said = fs::File::create(self.path(file)).expect("made");
        self.command().args(args).stdout(Stdio::null()).stderr(said).spawn().expect("redrive starts")
    }

    /// The ledger of a pipeline.
    pub fn ledger(&self, pipeline: &str) -> Value {
        self.redrive("status --json").expect(0).json()["pipelines"][pipeline].clone()
    }

    /// All dead letters with their failures.
    pub fn dead(&self) -> Vec<Value> {
        self.redrive("dead export").expect(0).json_lines()
    }

    /// Asserts that an audit finds nothing.
    pub fn assert_sound(&self) {
        self.redrive("audit").expect(0);
    }
}

fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Lets a process live for a moment and kills it. Says whether it was still alive.
pub fn kill_after(mut child: Child, moment: Duration) -> bool {
    std::thread::sleep(moment);
    let alive = child.try_wait().expect("asked").is_none();
    child.kill().expect("killed");
    child.wait().expect("waited");
    alive
}

/// Signals a process twice: it returns what runs at once. The second signal waits until the first one was answered in the file that
/// has what the process says, since two of one kind that are on their way are one.
#[track_caller]
pub fn stop_at_once(sandbox: &Sandbox, child: &Child, said: &str) {
    kill_process(Pid::from_child(child), Signal::TERM).expect("signalled");
    eventually("it is told to stop", || sandbox.read(said).contains("stopping: "));
    kill_process(Pid::from_child(child), Signal::TERM).expect("signalled");
}

/// How often a test that kills should do so: a few times in `scripts/test`, hundreds of times in `scripts/soak`.
pub fn kills_wanted() -> usize {
    std::env::var("REDRIVE_TEST_KILLS").map_or(10, |text| text.parse().expect("REDRIVE_TEST_KILLS is a number"))
}

/// The folder that `scripts/test` installs tools into.
pub fn tools() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_redrive"));
    binary.ancestors().nth(2).expect("the target folder").join("test-tools")
}

/// Runs a Python script in the sandbox, with what `scripts/test` installs for it.
#[track_caller]
pub fn python(sandbox: &Sandbox, script: &str) {
    let mut command = Command::new("python3");
    command.args(["-c", script]).current_dir(sandbox.path("")).env("PYTHONPATH", tools().join("python"));
    let ran = ran(command.output().expect("python3 starts"));
    assert_eq!(ran.code, Some(0), "scripts/test installs what is missing here\n{}{}", ran.stdout, ran.stderr);
}

/// The demo's site, as a process of its own.
pub struct DemoSite {
    child: Child,
    /// Host and port.
    pub address: String,
}

impl DemoSite {
    pub fn start(sandbox: &Sandbox) -> Self {
        let mut child = sandbox.command().args(["demo", "--serve"]).stdout(Stdio::piped()).spawn().expect("started");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("an address");
        let address = line.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
        Self { child, address }
    }

    /// The address of a path of it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// How often a path was asked for.
    pub fn count(&self, path: &str) -> u64 {
        let mut stream = TcpStream::connect(&self.address).expect("connected");
        write!(stream, "GET /counts HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("asked");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("answered");
        let body = text.split("\r\n\r\n").nth(1).expect("a body");
        serde_json::from_str::<Value>(body).expect("JSON")[path].as_u64().unwrap_or(0)
    }
}

impl Drop for DemoSite {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something holds, or fails after two minutes: a busy machine takes its time.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(120), "never happened: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Processes that have a text in their command line or environment.
pub fn processes_with(text: &str) -> Vec<u32> {
    let contains = |path: PathBuf| fs::read(path).is_ok_and(|bytes| find(&bytes, text.as_bytes()));
    let found = fs::read_dir("/proc").expect("/proc").flatten().filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let folder = entry.path();
        (contains(folder.join("cmdline")) || contains(folder.join("environ"))).then_some(pid)
    });
    found.filter(|pid| *pid != std::process::id()).collect()
}

fn find(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

/// Children of a process that have ended and were not waited for.
pub fn zombies_of(pid: u32) -> usize {
    let stat = |path: &Path| fs::read_to_string(path.join("stat")).unwrap_or_default();
    let is_zombie = |text: String| {
        let after_name = text.rsplit(") ").next().unwrap_or_default().to_owned();
        let mut fields = after_name.split(' ');
        fields.next() == Some("Z") && fields.next() == Some(&pid.to_string())
    };
    fs::read_dir("/proc").expect("/proc").flatten().filter(|entry| is_zombie(stat(&entry.path()))).count()
}

/// Runs `redrive` and gives the most memory it used, as the shell's own account of its children has it.
pub fn peak_kib(sandbox: &Sandbox, args: &[&str], code: i32) -> u64 {
    let script = "import resource, subprocess, sys\ncode = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode\nprint(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";
    let mut command = Command::new("python3");
    command.args(["-c", script, env!("CARGO_BIN_EXE_redrive")]).args(args).current_dir(sandbox.path(""));
    let output = command.output().expect("python3 is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut words = text.split_whitespace().map(|word| word.parse::<u64>().expect("a number"));
    assert_eq!(words.next(), Some(code as u64), "{text}");
    words.next().expect("a peak")
}
