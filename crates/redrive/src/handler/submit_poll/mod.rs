//! `submit-poll`: send a request, read a task id, poll until it is ready, failed or out of time.
//!
//! Everything that differs between providers is configuration: the requests, where the id, the result and the code are
//! found, and the table of codes. The task id is on disk before the first poll and stays with the job, also when it dies:
//! a restarted worker, the next attempt and a replay go on polling instead of submitting, and paying, again.

pub mod codes;
mod reply;

use std::any::Any;
use std::time::Duration;

use async_trait::async_trait;
use redrive_core::failures::{FailureReport, Reason};
use redrive_core::jobs::{
    Input, TASK_ID_BYTES_MAX, TaskState, progress_of_task, progress_of_task_in, task_of_progress,
    task_state_of_progress,
};
use redrive_core::proxies::ProxyPolicy;
use redrive_core::secrets::Secrets;
use serde_json::Value;

use self::codes::Codes;
use self::reply::Said;
pub use self::reply::{Condition, Reading};
use super::http::line::{Line, Way};
use super::http::request::Request;
use super::http::{Transport, fault, fetch::Answer};
use super::{Handler, HandlerError, Job, Success};
use crate::export::HttpRequest;

/// The name by which the poll's templates know the task id.
pub const TASK_ID: &str = "task_id";

/// The code of a task that was not ready in all the time that it had.
const OUT_OF_POLLS: &str = "out_of_polls";

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

/// An answer and what it says; none if it was kept already because it could not be read whole.
struct Reply {
    said: Said,
    answer: Option<Answer>,
    proxy: Option<String>,
}

/// How asking for a task ended.
enum End {
    Ready(Value),
    /// The provider is done with it: asking again is of no use.
    Spent(Reply),
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
        let line = Line::new(config.transport.clone(), &[&config.submit, &config.poll])?;
        Ok(Self { config, line })
    }

    /// Asks for a task that an earlier attempt left, if there is one; only when the provider is done with it, or when there
    /// is none, is one submitted, at most once per attempt.
    async fn attempt(&self, job: &Job) -> Result<Value, HandlerError> {
        let way = self.line.way(job);
        if let Some(result) = self.poll_left_task(way, job).await? {
            return Ok(result);
        }
        // What the poll request lacks must show before anything is paid for.
        self.config.poll.fill(&with_task(&job.input, "0"))?;
        let task = self.submit(way, job).await?;
        match self.poll(&task, way, job).await.map_err(|error| about_task(error, &task))? {
            End::Ready(result) => Ok(result),
            End::Spent(reply) => Err(about_task(self.refuse(reply, "poll", Some(&task), job).await, &task)),
        }
    }

    /// Asks for the task that an earlier attempt left at the provider, if there is one. Returns nothing if another one is to be
    /// submitted.
    async fn poll_left_task(&self, way: Way, job: &Job) -> Result<Option<Value>, HandlerError> {
        let Some(progress) = job.progress.value() else { return Ok(None) };
        let Some(task) = task_of_progress(progress) else { return Ok(None) };
        let end = match task_state_of_progress(progress) {
            TaskState::Open => self.poll(task, way, job).await,
            TaskState::Stuck => self.poll_once(task, way, job).await,
            TaskState::Spent => return Ok(None),
        };
        match end.map_err(|error| about_task(error, task))? {
            End::Ready(result) => Ok(Some(result)),
            End::Spent(_) => Ok(None),
        }
    }

    /// Asks once for a task that was not ready in all the time that it had. If it is not ready now, it counts as spent.
    async fn poll_once(&self, task: &str, way: Way, job: &Job) -> Result<End, HandlerError> {
        let input = with_task(&job.input, task);
        let mut reply = self.ask(way, (&self.config.poll, &self.config.poll_reading), &input, job).await?;
        match &mut reply.said {
            Said::Value(result) => Ok(End::Ready(result.take())),
            Said::Code { code, .. } if self.config.codes.is_spent(code) => Ok(End::Spent(reply)),
            Said::Pending | Said::Unreadable(_) | Said::Unexpected(_) => Ok(End::Spent(reply)),
            Said::Code { .. } | Said::Status => Err(self.refuse(reply, "poll", Some(task), job).await),
        }
    }

    async fn submit(&self, way: Way, job: &Job) -> Result<String, HandlerError> {
        let mut reply = self.ask(way, (&self.config.submit, &self.config.submit_reading), &job.input, job).await?;
        let id = match &reply.said {
            Said::Value(Value::String(id)) => Some(id.clone()),
            Said::Value(id) => Some(id.to_string()),
            _ => None,
        };
        match id {
            Some(id) if self.is_sound(&id) => {
                job.progress.note(Some(progress_of_task(&id))).await?;
                Ok(id)
            }
            Some(_) => {
                let why = format!("the task id is longer than {TASK_ID_BYTES_MAX} bytes, or has a secret in it");
                reply.said = Said::Unexpected(why);
                Err(self.refuse(reply, "submit", None, job).await)
            }
            None => {
                // No task was made as far as is known: the provider may be well again the next time.
                if let Said::Unexpected(why) = reply.said {
                    reply.said = Said::Unreadable(why);
                }
                Err(self.refuse(reply, "submit", None, job).await)
            }
        }
    }

    /// Whether an id may be kept: it is stored, shown and exported as it came.
    fn is_sound(&self, id: &str) -> bool {
        id.len() <= TASK_ID_BYTES_MAX && !self.line.secrets().is_in(id)
    }

    /// Asks for the result until it is there, or the id is spent and forgotten. What goes wrong on the way leaves the task as
    /// it is: an answer that cannot be used costs a poll, any other failure the attempt, and the next attempt, or a replay,
    /// asks for the same task.
    async fn poll(&self, task: &str, way: Way, job: &Job) -> Result<End, HandlerError> {
        let input = with_task(&job.input, task);
        let (mut bad, mut bad_is_last) = (None, false);
        for _ in 0..self.config.polls_max {
            tokio::time::sleep(self.config.every).await;
            let mut reply = self.ask(way, (&self.config.poll, &self.config.poll_reading), &input, job).await?;
            match &mut reply.said {
                Said::Value(result) => return Ok(End::Ready(result.take())),
                Said::Pending => bad_is_last = false,
                Said::Unreadable(_) | Said::Unexpected(_) => (bad, bad_is_last) = (Some(reply), true),
                Said::Code { code, .. } if self.config.codes.is_spent(code) => {
                    job.progress.note(Some(progress_of_task_in(task, TaskState::Spent))).await?;
                    return Ok(End::Spent(reply));
                }
                Said::Code { .. } | Said::Status => return Err(self.refuse(reply, "poll", Some(task), job).await),
            }
        }
        match bad {
            Some(reply) if bad_is_last => Err(self.refuse(reply, "poll", Some(task), job).await),
            earlier => Err(self.out_of_polls(task, earlier, job).await),
        }
    }

    async fn out_of_polls(&self, task: &str, bad: Option<Reply>, job: &Job) -> HandlerError {
        if let Some(answer) = bad.and_then(|reply| reply.answer)
            && let Err(error) = self.keep(&answer, job).await
        {
            return error;
        }
        let state = if self.config.codes.is_spent(OUT_OF_POLLS) { TaskState::Spent } else { TaskState::Stuck };
        if let Err(error) = job.progress.note(Some(progress_of_task_in(task, state))).await {
            return error;
        }
        let secs = (self.config.every * self.config.polls_max).as_secs_f64();
        let message = format!("task {task} timed out: not ready after {} polls in {secs} s", self.config.polls_max);
        match self.config.codes.knows(OUT_OF_POLLS) {
            true => {
                let report = self.config.codes.report(OUT_OF_POLLS);
                FailureReport { message, stage: Some("poll".to_owned()), ..report }.into()
            }
            false => fault::report(Reason::Timeout, OUT_OF_POLLS, message, "poll").into(),
        }
    }

    /// Sends a request and reads the answer. One that is too long or badly packed is an answer that cannot be read.
    async fn ask(
        &self,
        way: Way,
        (request, reading): (&Request, &Reading),
        input: &Input,
        job: &Job,
    ) -> Result<Reply, HandlerError> {
        let request = self.line.fill(request, input, job)?;
        let target = job.target.clone().unwrap_or_else(|| request.host());
        match self.line.ask(way, request, &target, job).await {
            Ok((answer, proxy)) => Ok(Reply { said: reading.read(&answer), answer: Some(answer), proxy }),
            Err(HandlerError::Failed(report)) if report.reason == Some(Reason::MalformedPayload) => {
                Ok(Reply { said: Said::Unreadable(report.message), answer: None, proxy: report.proxy })
            }
            Err(other) => Err(other),
        }
    }

    async fn keep(&self, answer: &Answer, job: &Job) -> Result<(), HandlerError> {
        match job.evidence.is_wanted(true) {
            true => self.line.keep(answer, job).await,
            false => Ok(()),
        }
    }

    /// The failure of an attempt whose last answer was this.
    async fn refuse(&self, reply: Reply, stage: &str, task: Option<&str>, job: &Job) -> HandlerError {
        let Reply { said, answer, proxy } = reply;
        if let Some(answer) = &answer
            && let Err(error) = self.keep(answer, job).await
        {
            return error;
        }
        let about = task.map(|task| format!(" (task {task})")).unwrap_or_default();
        let report = match said {
            Said::Code { code, message } => {
                let message = message.map_or_else(|| code.clone(), |message| format!("{code}: {message}"));
                FailureReport { message: format!("{message}{about}"), ..self.config.codes.report(&code) }
            }
            Said::Status => answer.as_ref().map(|answer| fault::of_status(answer, "")).unwrap_or_default(),
            Said::Unreadable(why) => fault::report(Reason::ServerError, "bad_answer", format!("{why}{about}"), stage),
            Said::Unexpected(why) => {
                fault::report(Reason::MalformedPayload, "bad_answer", format!("{why}{about}"), stage)
            }
            Said::Value(_) | Said::Pending => fault::report(Reason::HandlerError, "bad_answer", about, stage),
        };
        let http_status = answer.map(|answer| answer.status.as_u16());
        FailureReport { stage: Some(stage.to_owned()), proxy, http_status, ..report }.into()
    }
}

/// Adds the provider's task to a failure.
fn about_task(mut error: HandlerError, task: &str) -> HandlerError {
    if let HandlerError::Failed(report) | HandlerError::Crashed(report) = &mut error {
        report.task_id = Some(task.to_owned());
    }
    error
}

/// The input of a poll: that of the job, with the task's id.
fn with_task(input: &Input, task: &str) -> Input {
    let mut input = input.clone();
    input.insert(TASK_ID.into(), task.into());
    input
}

#[async_trait]
impl Handler for SubmitPoll {
    async fn run(&self, job: Job) -> Result<Success, HandlerError> {
        self.attempt(&job).await.map(Success::from).map_err(|error| error.masked(self.line.secrets()))
    }

    async fn turn(&self, target: &str) -> Option<Box<dyn Any + Send>> {
        self.line.turn(target).await
    }

    fn proxies(&self) -> ProxyPolicy {
        self.line.proxies().clone()
    }

    fn secrets(&self) -> Option<&Secrets> {
        Some(self.line.secrets())
    }

    fn request(&self, input: &Input, task: Option<&str>) -> Option<HttpRequest> {
        let filled = match task {
            Some(task) => self.config.poll.fill(&with_task(input, task)),
            None => self.config.submit.fill(input),
        };
        Some(filled.ok()?.masked(self.line.secrets()))
    }
}
