//! `exec`: any command is a handler.
//!
//! The job goes to the command's standard input as JSON, its result comes back on standard output, and the exit code
//! says how it went. Each child is the leader of a process group of its own, with a memory limit and a deadline; when
//! its job is over, or dropped, the whole group is killed.
//!
//! - `process`: one process per job
//! - `persistent`: processes that take one job after the other
//! - `answer`: from exit codes and output to a result or a failure
//! - `child`: starting and killing; `memory`: what a child and its children use; `tail`: the end of a stream
//! - `scratch`: the files that commands write and are given
//! - [`orphans`]: children that outlived their worker

pub(super) mod answer;
pub(super) mod child;
pub(super) mod memory;
pub mod orphans;
mod persistent;
mod process;
pub(super) mod scratch;
pub(super) mod tail;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use redrive_core::payloads::Response;
use redrive_core::secrets::Secrets;
use serde_json::Value;

use self::persistent::Persistent;
pub(crate) use self::scratch::sweep as sweep_files;
use self::scratch::{Purpose, ScratchFile};
use super::{Handler, HandlerError, Isolation, Job, Success};

/// The most a command may print as its result, in bytes.
pub const OUTPUT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How the command is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A process per job: the job on standard input, the result on standard output.
    #[default]
    Process,
    /// A process for many jobs: a line in, a line out.
    Persistent,
}

/// A command and how it is run.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program and its arguments.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables added to its environment.
    pub env: Vec<(OsString, OsString)>,
    /// The folder it runs in; by default the worker's own.
    pub folder: Option<PathBuf>,
    /// The most memory it and its children may use together, in bytes.
    pub memory_bytes_max: Option<u64>,
    /// What must not get out of what it prints when it fails.
    pub secrets: Secrets,
    /// Whether, given a saved payload, it works from that alone: no network, no other effect.
    pub pure: bool,
}

impl Command {
    /// A command of a program and its arguments, with the default memory limit.
    pub fn new(program: impl Into<OsString>, args: impl IntoIterator<Item = OsString>) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().collect(),
            env: Vec::new(),
            folder: None,
            memory_bytes_max: default_memory_bytes_max(),
            secrets: Secrets::default(),
            pure: false,
        }
    }

    /// Says what is wrong if the program cannot be found, before any job is touched.
    pub fn check(&self) -> Result<(), String> {
        let name = Path::new(&self.program);
        if let Some(folder) = self.folder.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(format!("the folder {} does not exist", folder.display()));
        }
        if name.components().count() > 1 {
            let path = self.folder.as_ref().map_or_else(|| name.to_owned(), |folder| folder.join(name));
            return match path.is_file() {
                true => Ok(()),
                false => Err(format!("the command {} does not exist", path.display())),
            };
        }
        let paths = std::env::var_os("PATH").unwrap_or_default();
        match std::env::split_paths(&paths).any(|folder| folder.join(name).is_file()) {
            true => Ok(()),
            false => {
                Err(format!("the command {:?} is not in PATH: check its spelling, or give its path", name.display()))
            }
        }
    }
}

/// The key of a result by which a command says which proxy it used.
const PROXY_KEY: &str = "_proxy";

/// Takes the label of the proxy out of a result, where a command put it.
fn without_proxy(mut result: Value, job: &Job, secrets: &Secrets) -> Value {
    if let Some(Value::String(label)) = result.as_object_mut().and_then(|fields| fields.shift_remove(PROXY_KEY)) {
        job.notes.proxy(&secrets.mask(&label));
    }
    result
}

/// Half of the machine's memory: enough for any honest job, too little to take the machine down.
fn default_memory_bytes_max() -> Option<u64> {
    memory::machine_bytes().map(|total| total / 2)
}

/// A job as a command reads it, in either mode, and where its raw response may be written. A process for many jobs cannot be told
/// that by its environment.
fn job_line(job: &Job, payload: &Path) -> Vec<u8> {
    #[derive(serde::Serialize)]
    struct Line<'a> {
        #[serde(flatten)]
        job: &'a Job,
        payload_file: &'a Path,
    }
    let mut text = serde_json::to_vec(&Line { job, payload_file: payload }).unwrap_or_default();
    text.push(b'\n');
    text
}

/// The handler that runs a command.
#[derive(Debug)]
pub struct Exec {
    command: Command,
    persistent: Option<Persistent>,
    /// Set once a command printed more than its result, so that this is said once.
    has_logged: AtomicBool,
}

impl Exec {
    /// A handler for a command.
    pub fn new(command: Command, mode: Mode) -> Self {
        let persistent = (mode == Mode::Persistent).then(Persistent::default);
        Self { command, persistent, has_logged: AtomicBool::new(false) }
    }

    /// Masks what a command printed before its result, and warns of the first.
    fn log(&self, job: &Job, log: &str) -> String {
        if !self.has_logged.swap(true, Ordering::Relaxed) {
            let (pipeline, job) = (&job.pipeline, &job.id);
            tracing::warn!(
                %pipeline, %job,
                "the command printed other lines before its result: only the last line is the result; print logs to standard error"
            );
        }
        self.command.secrets.mask(log)
    }
}

#[async_trait]
impl Handler for Exec {
    async fn run(&self, mut job: Job) -> Result<Success, HandlerError> {
        let payload = Arc::new(ScratchFile::of(&job, Purpose::Payload)?);
        let _saved = ScratchFile::for_saved(&mut job).await?;
        let answer = match &self.persistent {
            None => process::run(&self.command, &job, &payload.path()).await,
            Some(pool) => pool.run(&self.command, &job, &payload.path()).await,
        };
        let answer = answer.map_err(|error| error.masked(&self.command.secrets));
        let answer = payload.keep(&job, answer, Response::default(), None).await?;
        let log = answer.log.map(|log| self.log(&job, &log));
        Ok(Success { result: without_proxy(answer.result, &job, &self.command.secrets), log, ..answer })
    }

    fn isolation(&self) -> Isolation {
        Isolation::OwnProcess
    }

    fn secrets(&self) -> Option<&Secrets> {
        Some(&self.command.secrets)
    }

    fn works_from_saved(&self, _edited: bool) -> bool {
        self.command.pure
    }
}
