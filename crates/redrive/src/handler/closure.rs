//! Any async function of a job is a handler.

use async_trait::async_trait;
use redrive_core::failures::FailureReport;
use serde_json::Value;

use super::{Handler, HandlerError, Job};

#[async_trait]
impl<F, Fut> Handler for F
where
    F: Fn(Job) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Value, FailureReport>> + Send,
{
    async fn run(&self, job: Job) -> Result<Value, HandlerError> {
        Ok(self(job).await?)
    }
}
