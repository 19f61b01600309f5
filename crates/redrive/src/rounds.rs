//! Rounds, for who holds a [`Redrive`]: which there are, and what the next one is called.

use redrive_core::ids::{PipelineName, RoundName};
use redrive_core::rounds::next_name;
use redrive_store::contract::{ListRounds, RoundView};

use crate::engine::Redrive;
use crate::error::Error;

impl Redrive {
    /// Rounds with their ledgers, those that began last first; of one pipeline, or of all.
    pub async fn rounds(&self, pipeline: Option<&PipelineName>, limit: u32) -> Result<Vec<RoundView>, Error> {
        Ok(self.store.list_rounds(ListRounds { pipeline: pipeline.cloned(), limit }).await?)
    }

    /// The name of a round of a pipeline that begins now. It begins with its first job.
    pub async fn next_round(&self, pipeline: &PipelineName) -> Result<RoundName, Error> {
        let taken = self.rounds(Some(pipeline), u32::MAX).await?;
        Ok(next_name(self.now(), |name| taken.iter().any(|round| round.round == *name)))
    }
}
