//! Starts the process of an isolated job, does what it asks for, and judges its end.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redrive_core::failures::{FailureReport, Reason};
use redrive_core::payloads::Response;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use super::wire::{Ended, Said, SavedFile, Task};
use crate::handler::exec::answer::{self, Exit};
use crate::handler::exec::child::{self, Pipes, Running};
use crate::handler::exec::scratch::{Purpose, ScratchFile};
use crate::handler::exec::tail::Tail;
use crate::handler::exec::{Command, memory};
use crate::handler::{Handler, HandlerError, Isolation, Job, Success};
use crate::vault::Keep;

/// The longest line that is read from the process, in bytes: a result, which is at most a page with everything escaped.
const LINE_BYTES_MAX: u64 = 512 << 20;

/// How long a process that closed its output may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Runs a handler's jobs in processes of their own.
pub(crate) struct Isolated {
    command: Command,
    definition: Value,
    /// The handler as it runs in this process: whose turn it is with a target is known here.
    inner: Arc<dyn Handler>,
}

impl Isolated {
    pub(crate) fn new(command: Command, definition: Value, inner: Arc<dyn Handler>) -> Self {
        Self { command, definition, inner }
    }

    fn task(&self, job: &Job, payload: &ScratchFile) -> Task {
        let keep = match (job.evidence.is_wanted(false), job.evidence.is_wanted(true)) {
            (true, _) => Keep::Always,
            (false, true) => Keep::Failed,
            (false, false) => Keep::Never,
        };
        let saved = job.saved.as_ref().and_then(|saved| Some(SavedFile::of(saved, saved.file.clone()?)));
        Task {
            definition: self.definition.clone(),
            id: job.id,
            pipeline: job.pipeline.clone(),
            round: job.round.clone(),
            key: job.key.clone(),
            target: job.target.clone(),
            input: job.input.clone(),
            attempt: job.attempt,
            crashes: job.crashes,
            replays: job.replays,
            tried: job.tried.clone(),
            worker: job.worker,
            deadline: job.deadline,
            progress: job.progress.value().cloned(),
            saved,
            keep,
            from_network: job.from_network,
            edited: job.edited,
            payload: (payload.path(), job.evidence.cap_bytes()),
        }
    }

    fn masked(&self, error: HandlerError) -> HandlerError {
        let error = error.masked(&self.command.secrets);
        match self.inner.secrets() {
            Some(secrets) => error.masked(secrets),
            None => error,
        }
    }

    /// Has the job run by a process, to its end.
    async fn converse(&self, job: &Job, payload: &ScratchFile) -> (Result<Success, HandlerError>, Option<Brought>) {
        let started = child::start(&self.command, job, Some(&payload.path())).await;
        let (mut running, Pipes { stdin, stdout, stderr }) = match started {
            Ok(started) => started,
            Err(error) => return (Err(error), None),
        };
        let tail = Tail::default();
        let filled = tail.clone();
        let filling = tokio::spawn(async move { filled.fill(stderr).await });
        let mut talk =
            Talk { job, inner: &*self.inner, stdin, stdout: BufReader::new(stdout), turn: None, brought: None };
        let memory = memory::exceeded(running.pid, None, self.command.memory_bytes_max);
        let answer = tokio::select! {
            answer = talk.hold(self.task(job, payload)) => answer,
            used = memory => Err(HandlerError::crashed(answer::out_of_memory(used, &self.command))),
        };
        let brought = talk.brought;
        let answer = match answer {
            Ok(Some(ended)) => {
                job.notes.set(ended.facts);
                ended.answer.map_err(HandlerError::from)
            }
            Ok(None) => Err(died(&mut running, filling, &tail).await),
            Err(error) => Err(error),
        };
        (answer, brought)
    }
}

/// A process that ended without an answer. If it died, its job is to blame.
async fn died(running: &mut Running, filling: tokio::task::JoinHandle<()>, tail: &Tail) -> HandlerError {
    let status = tokio::time::timeout(ENDS_WITHIN, running.wait()).await;
    let _ = tokio::time::timeout(ENDS_WITHIN, filling).await;
    let stderr = answer::non_empty(&tail.text());
    let (message, code) = match status {
        Ok(Ok(status)) => match Exit::of(status) {
            Exit::Signal(signal) => {
                let name = answer::signal_name(signal);
                let report = FailureReport::message(format!("its process died by {name} while it ran alone"));
                return HandlerError::crashed(FailureReport { stderr, ..report.with_code(name) });
            }
            Exit::Code(code) => (format!("its process ended with exit code {code} and no answer"), "no_answer"),
        },
        _ => ("its process closed its output without an answer".to_owned(), "no_answer"),
    };
    FailureReport { stderr, ..FailureReport::new(Reason::HandlerError, message).with_code(code) }.into()
}

/// What is known of the payload that the process wrote.
struct Brought {
    response: Response,
    total_bytes: Option<u64>,
}

/// What is said between the two.
struct Talk<'a> {
    job: &'a Job,
    inner: &'a dyn Handler,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// The request that is under way.
    turn: Option<Box<dyn Any + Send>>,
    brought: Option<Brought>,
}

impl Talk<'_> {
    /// Does what the process asks for until it says how the job ended; nothing if it does not.
    async fn hold(&mut self, task: Task) -> Result<Option<Box<Ended>>, HandlerError> {
        let task = serde_json::to_vec(&task)
            .map_err(|error| HandlerError::Unavailable(format!("the task cannot be handed over: {error}")))?;
        if self.send(&task).await.is_err() {
            return Ok(None);
        }
        drop(task);
        while let Some(said) = self.hear().await? {
            match said {
                Said::Progress(progress) => {
                    self.job.progress.note(progress).await?;
                    // If it is gone, its closed output says so.
                    let _ = self.send(b"").await;
                }
                Said::Turn(target) => {
                    self.turn = self.inner.turn(&target).await;
                    let _ = self.send(b"").await;
                }
                Said::TurnOver => self.turn = None,
                Said::Payload { response, total_bytes } => {
                    self.brought = Some(Brought { response, total_bytes });
                    let _ = self.send(b"").await;
                }
                Said::Ended(ended) => return Ok(Some(ended)),
            }
        }
        Ok(None)
    }

    async fn send(&mut self, line: &[u8]) -> io::Result<()> {
        self.stdin.write_all(line).await?;
        self.stdin.write_all(b"\n").await
    }

    /// The next thing it says; nothing if it has closed its output. Lines that are nothing we know are somebody's debugging.
    async fn hear(&mut self) -> Result<Option<Said>, HandlerError> {
        loop {
            let mut line = Vec::new();
            let read = (&mut self.stdout).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await;
            match read {
                Ok(_) if line.last() == Some(&b'\n') => {}
                Ok(read) if read as u64 >= LINE_BYTES_MAX => {
                    let message = format!("the result is longer than {LINE_BYTES_MAX} bytes");
                    let report = FailureReport::new(Reason::HandlerError, message);
                    return Err(report.with_code("output_too_large").into());
                }
                _ => return Ok(None),
            }
            if let Ok(said) = serde_json::from_slice(&line) {
                return Ok(Some(said));
            }
        }
    }
}

#[async_trait]
impl Handler for Isolated {
    async fn run(&self, mut job: Job) -> Result<Success, HandlerError> {
        let payload = Arc::new(ScratchFile::of(&job, Purpose::Payload)?);
        let _saved = ScratchFile::for_saved(&mut job).await?;
        let (answer, brought) = self.converse(&job, &payload).await;
        // What the process said before it died was masked by nobody.
        let answer = answer.map_err(|error| self.masked(error));
        let Some(Brought { response, total_bytes }) = brought else { return answer };
        payload.keep(&job, answer, response, total_bytes).await
    }

    fn isolation(&self) -> Isolation {
        Isolation::OwnProcess
    }

    fn works_from_saved(&self, edited: bool) -> bool {
        self.inner.works_from_saved(edited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_core::secrets::Secrets;

    struct Knowing(Secrets);

    #[async_trait]
    impl Handler for Knowing {
        async fn run(&self, _job: Job) -> Result<Success, HandlerError> {
            Ok(Success::default())
        }

        fn secrets(&self) -> Option<&Secrets> {
            Some(&self.0)
        }
    }

    #[test]
    fn what_a_dead_process_said_is_masked_with_what_its_handler_knows() {
        let mut inner = Knowing(Secrets::default());
        inner.0.add_value("s3cret-of-handler");
        let mut command = Command::new("true", []);
        command.secrets.add_value("s3cret-of-command");
        let isolated = Isolated::new(command, Value::Null, Arc::new(inner));
        let stderr = Some("s3cret-of-handler, s3cret-of-command".to_owned());
        let died = HandlerError::crashed(FailureReport { stderr, ..FailureReport::message("died") });
        let HandlerError::Crashed(report) = isolated.masked(died) else { panic!("it crashed") };
        assert_eq!(report.stderr.as_deref(), Some("***, ***"));
    }
}
