//! Processes that take one job after the other: a line in, a line out.
//!
//! A process works on one job at a time, so its death is that job's. A process that answers nonsense, or not in time, is
//! killed and the next job gets a fresh one. So is one that said something before it was given a job: that line answers
//! nothing, and would be taken for the answer. Once a command has answered with the id of its job, lines without one are not
//! answers.

use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use redrive_core::failures::{FailureReport, Reason};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use super::answer::{self, Exit};
use super::child::{self, Pipes, Running};
use super::tail::Tail;
use super::{Command, OUTPUT_BYTES_MAX, job_line, memory};
use crate::handler::{HandlerError, Job, SILENT_AFTER, Success};

/// How long a process that closed its output, or was killed, may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// How long what a process said unasked may take to be read.
const READ_WITHIN: Duration = Duration::from_secs(1);

/// From when on silence is told also to who did not ask for more: many commands take their time.
const SILENT_FOR_LONG: Duration = Duration::from_secs(60);

/// How much of a line that answers nothing is shown, in characters.
const LOGGED_CHARS: usize = 200;

/// The processes of a command.
#[derive(Debug, Default)]
pub(super) struct Persistent {
    /// Those that wait for a job.
    idle: Mutex<Vec<Process>>,
    /// Whether the command was seen to answer with the id of its job.
    gives_ids: AtomicBool,
}

#[derive(Debug)]
struct Process {
    running: Running,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    stderr: Tail,
}

/// How an exchange with a process ended.
enum Reply {
    Line(String),
    /// It closed its output: it has ended, or is about to.
    Closed,
    TooLong,
    OutOfTime,
    OutOfMemory(u64),
}

impl Persistent {
    pub(super) async fn run(&self, command: &Command, job: &Job, payload: &Path) -> Result<Success, HandlerError> {
        if let Some(mut idle) = self.take(command).await {
            let reply = idle.exchange(command, job, payload, &self.gives_ids).await;
            // It may have ended of its own accord before it saw the job, which is then not to blame.
            if !(matches!(reply, Reply::Closed) && idle.has_ended_well().await) {
                return self.conclude(idle, reply, command, job).await;
            }
        }
        let mut fresh = Process::start(command, job).await?;
        if let Some(line) = fresh.unasked(command).await {
            let message = format!("the command printed a line before it was given a task: {line}");
            return Err(FailureReport::new(Reason::HandlerError, message).with_code("bad_answer").into());
        }
        let reply = fresh.exchange(command, job, payload, &self.gives_ids).await;
        self.conclude(fresh, reply, command, job).await
    }

    async fn conclude(
        &self,
        mut process: Process,
        reply: Reply,
        command: &Command,
        job: &Job,
    ) -> Result<Success, HandlerError> {
        let (answer, healthy) = process.conclude(reply, command, job).await;
        if healthy {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(process);
        }
        answer
    }

    /// A process that waits, still lives and has said nothing since its last answer.
    async fn take(&self, command: &Command) -> Option<Process> {
        loop {
            let mut process = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            if !process.has_output() {
                return Some(process);
            }
            if let Some(line) = process.unasked(command).await {
                tracing::warn!(
                    %line,
                    "a command printed a line that no task asked for, and is started again; it must print one line per task"
                );
            }
        }
    }
}

impl Process {
    /// Whether there is something to read from it, or its output is closed. The system is asked: what the runtime knows of a
    /// pipe may be late.
    fn has_output(&self) -> bool {
        let mut pipe = [PollFd::new(self.stdout.get_ref(), PollFlags::IN)];
        !self.stdout.buffer().is_empty() || !matches!(poll(&mut pipe, Some(&Timespec::default())), Ok(0))
    }

    /// What it said without having been given a job, masked and made fit for a log. It is not to be trusted with another job.
    async fn unasked(&mut self, command: &Command) -> Option<String> {
        if !self.has_output() {
            return None;
        }
        let said = tokio::time::timeout(READ_WITHIN, self.stdout.fill_buf()).await.ok()?.ok()?;
        let line = String::from_utf8_lossy(said.split(|byte| *byte == b'\n').next()?).into_owned();
        let line: String = command.secrets.mask(&line).chars().take(LOGGED_CHARS).collect();
        (!said.is_empty()).then(|| format!("{line:?}"))
    }

    async fn has_ended_well(&mut self) -> bool {
        let ended = tokio::time::timeout(ENDS_WITHIN, self.running.wait()).await;
        matches!(ended, Ok(Ok(status)) if status.success())
    }

    async fn start(command: &Command, job: &Job) -> Result<Self, HandlerError> {
        let (running, Pipes { stdin, stdout, stderr }) = child::start(command, job, None).await?;
        let tail = Tail::default();
        let filled = tail.clone();
        tokio::spawn(async move { filled.fill(stderr).await });
        Ok(Self { running, stdin, stdout: BufReader::new(stdout), stderr: tail })
    }

    async fn exchange(&mut self, command: &Command, job: &Job, payload: &Path, gives_ids: &AtomicBool) -> Reply {
        self.stderr.clear();
        let _awaited = job.notes.await_answer();
        let memory = memory::exceeded(self.running.pid, None, command.memory_bytes_max);
        let (stdin, stdout) = (&mut self.stdin, &mut self.stdout);
        let talk = async {
            let line = job_line(job, payload);
            // If it is gone, its closed output says so.
            let (_, reply) = tokio::join!(stdin.write_all(&line), read_answer(stdout, command, job, gives_ids));
            reply
        };
        tokio::select! {
            reply = talk => reply,
            never = tell_of_silence(job) => match never {},
            used = memory => Reply::OutOfMemory(used),
            () = tokio::time::sleep(job.deadline) => Reply::OutOfTime,
        }
    }

    /// What the reply means, and whether the process can take another job.
    async fn conclude(&mut self, reply: Reply, command: &Command, job: &Job) -> (Result<Success, HandlerError>, bool) {
        if let Reply::Line(line) = &reply
            && let Some(answer) = answer::of_line(line, job, &self.stderr.text(), &command.secrets)
        {
            return (answer, true);
        }
        if !matches!(reply, Reply::Closed) {
            self.running.kill();
        }
        let status = tokio::time::timeout(ENDS_WITHIN, self.running.wait()).await;
        let stderr = self.stderr.text();
        let with_stderr = |report: FailureReport| FailureReport { stderr: answer::non_empty(&stderr), ..report };
        let broken = |message: String, code: &str| {
            HandlerError::from(with_stderr(FailureReport::new(Reason::HandlerError, message).with_code(code)))
        };
        let error = match (reply, status) {
            (Reply::Closed, Ok(Ok(status))) => answer::of_end(Exit::of(status), &stderr, &command.secrets),
            (Reply::Closed, _) => broken("the command closed its output without an answer".into(), "no_answer"),
            (Reply::OutOfTime, _) => with_stderr(answer::out_of_time(job)).into(),
            (Reply::OutOfMemory(used), _) => HandlerError::crashed(with_stderr(answer::out_of_memory(used, command))),
            (Reply::TooLong, _) => {
                broken(format!("the command answered with more than {OUTPUT_BYTES_MAX} bytes"), "output_too_large")
            }
            (Reply::Line(line), _) => {
                let head: String = command.secrets.mask(&line).chars().take(LOGGED_CHARS).collect();
                broken(format!("the command's answer is not JSON, or another task's: {head}"), "bad_answer")
            }
        };
        (Err(error), false)
    }
}

/// Says for how long a command has not answered, each time after twice as long: whether it works or hangs cannot be seen otherwise.
async fn tell_of_silence(job: &Job) -> Infallible {
    let (begun, mut wait) = (Instant::now(), SILENT_AFTER);
    loop {
        tokio::time::sleep(wait).await;
        let silent = begun.elapsed();
        let (secs, pipeline, id) = (silent.as_secs(), &job.pipeline, &job.id);
        match silent >= SILENT_FOR_LONG {
            true => tracing::warn!(%pipeline, job = %id, "the command has not answered for {secs} s"),
            false => tracing::info!(%pipeline, job = %id, "the command has not answered for {secs} s"),
        }
        wait = Duration::from_secs(secs.max(1));
    }
}

/// Reads the line that answers a job. Lines without an id are passed over, and logged, if the command gives ids.
async fn read_answer(
    stdout: &mut BufReader<ChildStdout>,
    command: &Command,
    job: &Job,
    gives_ids: &AtomicBool,
) -> Reply {
    loop {
        let reply = read_line(stdout).await;
        let Reply::Line(line) = &reply else { return reply };
        if answer::has_id(line, job) {
            gives_ids.store(true, Ordering::Relaxed);
        } else if gives_ids.load(Ordering::Relaxed) {
            let line: String = command.secrets.mask(line).chars().take(LOGGED_CHARS).collect();
            tracing::warn!(?line, "a command that answers with ids printed a line without one, which answers nothing");
            continue;
        }
        return reply;
    }
}

async fn read_line(stdout: &mut BufReader<ChildStdout>) -> Reply {
    let mut line = Vec::new();
    let read = stdout.take(OUTPUT_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line).await;
    match read {
        Ok(_) if line.last() == Some(&b'\n') => Reply::Line(String::from_utf8_lossy(&line).trim().to_owned()),
        Ok(read) if read > OUTPUT_BYTES_MAX => Reply::TooLong,
        _ => Reply::Closed,
    }
}
