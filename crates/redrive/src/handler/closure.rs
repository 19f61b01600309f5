//! Any async function of a job is a handler.

use async_trait::async_trait;
use redrive_core::failures::FailureReport;
use serde_json::Value;

use super::{Handler, HandlerError, Job, Success};

#[async_trait]
impl<F, Fut> Handler for F
where
    F: Fn(Job) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Value, FailureReport>> + Send,
{
    async fn run(&self, job: Job) -> Result<Success, HandlerError> {
        Ok(self(job).await?.into())
    }
}

/// An async function that hands on jobs with its result.
#[derive(Clone, Copy, Debug)]
pub struct HandsOn<F>(pub F);

#[async_trait]
impl<F, Fut> Handler for HandsOn<F>
where
    F: Fn(Job) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Success, FailureReport>> + Send,
{
    async fn run(&self, job: Job) -> Result<Success, HandlerError> {
        Ok(self.0(job).await?)
    }
}
