//! Where results go.
//!
//! A result is written before its job is settled: a kill in between repeats it, but never loses it.

mod json_lines;
mod results_file;

use async_trait::async_trait;
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::jobs::Input;
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
    /// Its key, if it has one.
    pub key: Option<String>,
    /// What it was about.
    pub input: Input,
    /// What its handler gave.
    pub result: Value,
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
