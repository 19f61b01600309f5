//! Where results go.
//!
//! A result is written before its job is settled: a kill in between repeats it, but never loses it.

mod json_lines;
mod results_file;

use async_trait::async_trait;
use redrive_core::hidden::escape_json;
use redrive_core::ids::{JobId, PipelineName, RoundName};
use redrive_core::jobs::Input;
use redrive_core::results::is_empty;
use serde::Serialize;
use serde_json::Value;

pub use json_lines::JsonLines;

use crate::error::Error;

/// The result of a job.
#[derive(Clone, Debug, Serialize)]
pub struct JobResult {
    /// The job.
    pub id: JobId,
    /// Its pipeline.
    pub pipeline: PipelineName,
    /// The round it belongs to, if there are rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<RoundName>,
    /// Its key, if it has one.
    pub key: Option<String>,
    /// What it was about.
    pub input: Input,
    /// What its handler gave.
    pub result: Value,
}

/// What is written of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultForm {
    /// All of it: whose it is, what that was about, and what came of it.
    #[default]
    Whole,
    /// Only what came of it; nothing if nothing did.
    Bare,
}

impl JobResult {
    /// Whether nothing came of the job.
    pub fn is_empty(&self) -> bool {
        is_empty(&self.result)
    }

    /// What is written of it, as JSON on one line without its end; nothing for one that is bare and empty.
    pub fn line(&self, form: ResultForm) -> serde_json::Result<Option<String>> {
        let text = match form {
            ResultForm::Whole => serde_json::to_string(self)?,
            ResultForm::Bare if self.is_empty() => return Ok(None),
            ResultForm::Bare => serde_json::to_string(&self.result)?,
        };
        Ok(Some(escape_json(&text).into_owned()))
    }
}

/// A place for results.
#[async_trait]
pub trait Sink: Send + Sync {
    /// Writes results; when it returns they are safe. It may be asked to write the same ones again after it failed.
    async fn write(&self, results: &[JobResult]) -> Result<(), Error>;
}

/// Results are not kept.
#[derive(Clone, Copy, Debug)]
pub struct NoSink;

#[async_trait]
impl Sink for NoSink {
    async fn write(&self, _: &[JobResult]) -> Result<(), Error> {
        Ok(())
    }
}

#[async_trait]
impl<S: Sink + ?Sized> Sink for Box<S> {
    async fn write(&self, results: &[JobResult]) -> Result<(), Error> {
        (**self).write(results).await
    }
}

#[async_trait]
impl<S: Sink + ?Sized> Sink for std::sync::Arc<S> {
    async fn write(&self, results: &[JobResult]) -> Result<(), Error> {
        (**self).write(results).await
    }
}
