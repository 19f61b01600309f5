//! Rounds, for who holds a [`Redrive`]: which there are, and what the next one is called.

use redrive_core::actors::Actor;
use redrive_core::ids::{PipelineName, RoundName};
use redrive_core::rounds::next_name;
use redrive_store::contract::{BeginRound, ListRounds, RoundView};

use crate::answers::first_begun_at;
use crate::engine::Redrive;
use crate::error::Error;

impl Redrive {
    /// Rounds with their ledgers, those that began last first; of one pipeline, or of all.
    pub async fn rounds(&self, pipeline: Option<&PipelineName>, limit: u32) -> Result<Vec<RoundView>, Error> {
        Ok(self.store.list_rounds(ListRounds { pipeline: pipeline.cloned(), limit, within: Vec::new() }).await?)
    }

    /// What a round of a pipeline would be called that begins now.
    pub async fn next_round(&self, pipeline: &PipelineName) -> Result<RoundName, Error> {
        let taken = self.rounds(Some(pipeline), u32::MAX).await?;
        Ok(next_name(self.now(), |name| taken.iter().any(|round| round.round == *name)))
    }

    /// Begins a round of a pipeline, and says its name: nobody else who begins one gets the same.
    pub async fn begin_round(&self, pipeline: &PipelineName, by: &Actor) -> Result<RoundName, Error> {
        let (now, is_again) = first_begun_at().unwrap_or_else(|| (self.now(), false));
        if is_again {
            let known = self.rounds(Some(pipeline), u32::MAX).await?;
            if let Some(begun) = known.into_iter().find(|round| round.begun_at == now) {
                return Ok(begun.round);
            }
        }
        loop {
            let pipeline = pipeline.clone();
            let round = self.next_round(&pipeline).await?;
            if self.store.begin_round(BeginRound { pipeline, round: round.clone(), by: by.clone(), now }).await? {
                return Ok(round);
            }
        }
    }
}
