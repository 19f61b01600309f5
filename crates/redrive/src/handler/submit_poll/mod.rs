//! `submit-poll`: send a request, read a task id, poll until it is ready, failed or out of time.
//!
//! Everything that differs between providers is configuration: the requests, where the id, the result and the code are
//! found, and the table of codes. The task id is on disk before the first poll, so a restarted worker goes on polling
//! instead of submitting, and paying, again.

pub mod codes;
mod reply;

use std::time::Duration;

use async_trait::async_trait;
use redrive_core::failures::{FailureReport, Reason};
use redrive_core::jobs::Input;
use serde_json::{Value, json};

use self::codes::Codes;
use self::reply::Said;
pub use self::reply::{Condition, Reading};
use super::http::line::Line;
use super::http::request::Request;
use super::http::{Transport, fault, fetch::Answer};
use super::{Handler, HandlerError, Job};
use crate::export::HttpRequest;

/// The name by which the poll's templates know the task id.
pub const TASK_ID: &str = "task_id";

/// How tasks are submitted and polled.
#[derive(Debug)]
pub struct SubmitPollConfig {
    /// How requests are sent.
    pub transport: Transport,
    /// The request that submits a task.
    pub submit: Request,
    /// How its answer is read; the value is the task id.
    pub submit_reading: Reading,
    /// The request that asks for the result; `{task_id}` stands for the id.
    pub poll: Request,
    /// How its answer is read; the value is the result.
    pub poll_reading: Reading,
    /// The time between two polls, and before the first.
    pub every: Duration,
    /// Polls after which a task is out of time.
    pub polls_max: u32,
    /// What the provider's codes mean.
    pub codes: Codes,
}

/// The handler that submits and polls.
#[derive(Debug)]
pub struct SubmitPoll {
    config: SubmitPollConfig,
    line: Line,
}

impl SubmitPoll {
    /// A handler; says what is wrong if it cannot be set up.
    pub fn new(config: SubmitPollConfig) -> Result<Self, String> {
        let line = Line::new(config.transport.clone())?;
        Ok(Self { config, line })
    }

    async fn attempt(&self, job: &Job) -> Result<Value, HandlerError> {
        let noted = job.progress.value().and_then(|progress| progress[TASK_ID].as_str().map(str::to_owned));
        let task = match noted {
            Some(task) => task,
            None => self.submit(job).await?,
        };
        let mut input = job.input.clone();
        input.insert(TASK_ID.into(), task.as_str().into());
        for _ in 0..self.config.polls_max {
            tokio::time::sleep(self.config.every).await;
            // What goes wrong on the way leaves the task as it is: the next attempt polls it again.
            let (answer, proxy) = self.ask(&self.config.poll, &input, job).await?;
            match self.config.poll_reading.read(&answer) {
                Said::Value(result) => return Ok(result),
                Said::Pending => {}
                said => return Err(self.give_up(said, &answer, proxy, &task, job).await),
            }
        }
        job.progress.note(None).await?;
        let secs = (self.config.every * self.config.polls_max).as_secs_f64();
        let message = format!("task {task} timed out: not ready after {} polls in {secs} s", self.config.polls_max);
        Err(fault::report(Reason::Timeout, "out_of_polls", message, "poll").into())
    }

    async fn submit(&self, job: &Job) -> Result<String, HandlerError> {
        let (answer, proxy) = self.ask(&self.config.submit, &job.input, job).await?;
        let said = self.config.submit_reading.read(&answer);
        let Said::Value(id) = said else { return Err(self.refuse(said, &answer, proxy, "submit", None, job).await) };
        let id = match id {
            Value::String(id) => id,
            other => other.to_string(),
        };
        job.progress.note(Some(json!({ TASK_ID: id }))).await?;
        Ok(id)
    }

    async fn ask(&self, request: &Request, input: &Input, job: &Job) -> Result<(Answer, Option<String>), HandlerError> {
        let request = request.fill(input)?;
        let target = job.target.clone().unwrap_or_else(|| request.host());
        self.line.ask(request, &target, job).await
    }

    /// The provider is done with the task, one way or another: the next attempt submits anew.
    async fn give_up(&self, said: Said, answer: &Answer, proxy: Option<String>, task: &str, job: &Job) -> HandlerError {
        if matches!(said, Said::Code { .. })
            && let Err(error) = job.progress.note(None).await
        {
            return error;
        }
        self.refuse(said, answer, proxy, "poll", Some(task), job).await
    }

    async fn refuse(
        &self,
        said: Said,
        answer: &Answer,
        proxy: Option<String>,
        stage: &str,
        task: Option<&str>,
        job: &Job,
    ) -> HandlerError {
        if job.evidence.is_wanted(true)
            && let Err(error) = self.line.keep(answer, job).await
        {
            return error;
        }
        let about = task.map(|task| format!(" (task {task})")).unwrap_or_default();
        let report = match said {
            Said::Code { code, message } => {
                let message = message.map_or_else(|| code.clone(), |message| format!("{code}: {message}"));
                FailureReport { message: format!("{message}{about}"), ..self.config.codes.report(&code) }
            }
            Said::Status => fault::of_status(answer, ""),
            Said::Nonsense(why) => {
                fault::report(Reason::MalformedPayload, "bad_answer", format!("{why}{about}"), stage)
            }
            Said::Value(_) | Said::Pending => fault::report(Reason::HandlerError, "bad_answer", about, stage),
        };
        FailureReport { stage: Some(stage.to_owned()), proxy, http_status: Some(answer.status.as_u16()), ..report }
            .into()
    }
}

#[async_trait]
impl Handler for SubmitPoll {
    async fn run(&self, job: Job) -> Result<Value, HandlerError> {
        self.attempt(&job).await.map_err(|error| error.masked(self.line.secrets()))
    }

    fn request(&self, input: &Input) -> Option<HttpRequest> {
        Some(self.config.submit.fill(input).ok()?.masked(self.line.secrets()))
    }
}
