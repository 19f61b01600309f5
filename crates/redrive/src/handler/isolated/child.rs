//! What runs in the process of an isolated job.
//!
//! One thread reads from the worker: when there is nothing more to read, the worker is gone, and the process ends at once,
//! whatever a parser is at. Another writes to it.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;

use redrive_core::failures::{FailureReport, Reason};
use redrive_core::payloads::{Payload, Response};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::wire::{Ended, Failed, Said, SavedFile, Task};
use crate::handler::{Handler, HandlerError, Job, Notes, Progress, Saved, Success, panic_report};
use crate::vault::Evidence;

/// The exit code of a process whose worker is gone, or never was.
const NO_PARENT: i32 = 69;

/// The worker, as the process of an isolated job sees it.
#[derive(Clone, Debug)]
pub(crate) struct Parent {
    said: UnboundedSender<Said>,
    done: Arc<Mutex<UnboundedReceiver<()>>>,
}

impl Parent {
    pub(crate) async fn note_progress(&self, progress: Option<Value>) {
        self.ask(Said::Progress(progress)).await;
    }

    /// Returns when a request to a target may go; it is over when what this gives back is dropped.
    pub(crate) async fn turn(&self, target: &str) -> Turn {
        self.ask(Said::Turn(target.to_owned())).await;
        Turn(self.clone())
    }

    /// Hands over the payload that was written to its file: the worker knows of it when this returns, whatever happens next.
    pub(crate) async fn hand_payload(&self, response: Response, total_bytes: Option<u64>) {
        self.ask(Said::Payload { response, total_bytes }).await;
    }

    /// Asks for something and waits until it is done. If it cannot be done, the worker ends this process.
    async fn ask(&self, said: Said) {
        let mut done = self.done.lock().await;
        self.say(said);
        done.recv().await;
    }

    fn say(&self, said: Said) {
        // The writing thread lives as long as the process.
        let _ = self.said.send(said);
    }
}

/// A request that is under way.
pub(crate) struct Turn(Parent);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.say(Said::TurnOver);
    }
}

/// Runs the one job that a worker hands to this process on standard input, with the handler that `build` makes of the
/// definition, and ends the process. It returns only if there is no job, and says why.
pub async fn serve(build: impl FnOnce(Value) -> Result<Arc<dyn Handler>, String>) -> String {
    let (said, saying) = unbounded_channel();
    let (doing, done) = unbounded_channel();
    let (hand, handed) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || read(hand, &doing));
    let task = match handed.await {
        Ok(Ok(task)) => task,
        Ok(Err(why)) => return why,
        Err(_) => return "nothing to run: redrive starts this itself, for a task that a worker died with".to_owned(),
    };
    // What a panic says comes back with the failure; it may have secrets in it that only the handler knows.
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::spawn(move || write(saying));
    let parent = Parent { said, done: Arc::new(Mutex::new(done)) };
    let (job, notes, definition) = task.into_job(parent.clone());
    let answer = match build(definition) {
        Ok(handler) => run(handler, job).await,
        Err(why) => Err(HandlerError::Unavailable(why)),
    };
    let ended = Ended { answer: answer.map_err(Failed::from), facts: notes.take() };
    parent.say(Said::Ended(Box::new(ended)));
    // The writing thread ends the process when that is written.
    std::future::pending().await
}

async fn run(handler: Arc<dyn Handler>, job: Job) -> Result<Success, HandlerError> {
    match tokio::spawn(async move { handler.run(job).await }).await {
        Ok(answer) => answer,
        Err(ended) => Err(panic_report(ended).unwrap_or_default().into()),
    }
}

/// Hands the first line on as the task, and every other as a sign that something was done.
fn read(hand: tokio::sync::oneshot::Sender<Result<Box<Task>, String>>, doing: &UnboundedSender<()>) {
    let mut lines = std::io::stdin().lock();
    let mut line = String::new();
    if !matches!(lines.read_line(&mut line), Ok(1..)) {
        return;
    }
    let task = serde_json::from_str(&line).map_err(|error| format!("what came is no job: {error}"));
    let understood = task.is_ok();
    let _ = hand.send(task);
    if !understood {
        return;
    }
    loop {
        line.clear();
        match lines.read_line(&mut line) {
            Ok(1..) => drop(doing.send(())),
            _ => std::process::exit(NO_PARENT),
        }
    }
}

/// Writes what is said; ends the process after the last word, or if nobody listens.
fn write(mut saying: UnboundedReceiver<Said>) {
    let mut out = std::io::stdout().lock();
    while let Some(said) = saying.blocking_recv() {
        let last = matches!(said, Said::Ended(_));
        let mut line = serde_json::to_vec(&said).unwrap_or_else(|error| unsayable(&error));
        line.push(b'\n');
        if out.write_all(&line).and_then(|()| out.flush()).is_err() {
            std::process::exit(NO_PARENT);
        }
        if last {
            std::process::exit(0);
        }
    }
}

fn unsayable(error: &serde_json::Error) -> Vec<u8> {
    let report = FailureReport::new(Reason::HandlerError, format!("the result cannot be written as JSON: {error}"));
    let answer = Err(Failed::Reported { report: Box::new(report), body: None });
    let ended = Said::Ended(Box::new(Ended { answer, facts: redrive_core::traffic::Facts::default() }));
    serde_json::to_vec(&ended).unwrap_or_default()
}

impl Task {
    fn into_job(self, parent: Parent) -> (Job, Notes, Value) {
        let notes = Notes::default();
        let (path, cap_bytes) = self.payload;
        let job = Job {
            id: self.id,
            pipeline: self.pipeline,
            round: self.round,
            key: self.key,
            target: self.target,
            input: self.input,
            attempt: self.attempt,
            crashes: self.crashes,
            replays: self.replays,
            // What runs isolated is built in, and asks nobody who would want it.
            traceparent: None,
            tried: self.tried,
            saved: self.saved.map(SavedFile::into_saved),
            worker: self.worker,
            deadline: self.deadline,
            evidence: Evidence::handed(path, self.keep, cap_bytes, parent.clone()),
            progress: Progress::handed(self.progress, parent.clone()),
            notes: notes.clone(),
            from_network: self.from_network,
            edited: self.edited,
            parent: Some(parent),
        };
        (job, notes, self.definition)
    }
}

impl SavedFile {
    pub(super) fn of(saved: &Saved, file: PathBuf) -> Self {
        let Payload { hash, size_bytes, truncated, total_bytes, lost: _, response } = saved.payload.clone();
        Self { hash, size_bytes, truncated, total_bytes, response, file }
    }

    fn into_saved(self) -> Saved {
        let Self { hash, size_bytes, truncated, total_bytes, response, file } = self;
        Saved::in_file(Payload { hash, size_bytes, truncated, total_bytes, lost: None, response }, file)
    }
}
