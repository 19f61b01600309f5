//! Where results go.
//!
//! A result is written before its job is settled: a kill in between repeats it, but never loses it.

mod json_lines;
mod last_lines;
mod results_file;

use async_trait::async_trait;

pub use json_lines::JsonLines;
pub use redrive_core::results::{JobResult, ResultForm};

use crate::error::Error;

/// A place for results.
#[async_trait]
pub trait Sink: Send + Sync {
    /// Writes results; when it returns they are safe. It may be asked to write the same ones again after it failed.
    async fn write(&self, results: &[JobResult]) -> Result<(), Error>;

    /// Returns whether it writes anything at all.
    fn writes(&self) -> bool {
        true
    }
}

/// Results are not kept.
#[derive(Clone, Copy, Debug)]
pub struct NoSink;

#[async_trait]
impl Sink for NoSink {
    async fn write(&self, _: &[JobResult]) -> Result<(), Error> {
        Ok(())
    }

    fn writes(&self) -> bool {
        false
    }
}

#[async_trait]
impl<S: Sink + ?Sized> Sink for Box<S> {
    async fn write(&self, results: &[JobResult]) -> Result<(), Error> {
        (**self).write(results).await
    }

    fn writes(&self) -> bool {
        (**self).writes()
    }
}

#[async_trait]
impl<S: Sink + ?Sized> Sink for std::sync::Arc<S> {
    async fn write(&self, results: &[JobResult]) -> Result<(), Error> {
        (**self).write(results).await
    }

    fn writes(&self) -> bool {
        (**self).writes()
    }
}
