//! Rounds: repetitions of the same tasks, each with a ledger of its own.

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::ids::{PipelineName, RoundName};
use redrive_core::time::Timestamp;
use redrive_core::tokens::PipelinePattern;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// Rounds.
#[async_trait]
pub trait RoundStore {
    /// Rounds with their ledgers, those that began last first. Jobs of no round are not among them.
    async fn list_rounds(&self, params: ListRounds) -> Result<Vec<RoundView>>;

    /// Begins a round that has no jobs yet; says whether it did. A round that is there already, whoever began it, is left as it is: of
    /// two who want the same name one gets it.
    async fn begin_round(&self, params: BeginRound) -> Result<bool>;
}

/// A round that is to begin.
#[derive(Clone, Debug)]
pub struct BeginRound {
    /// Its pipeline.
    pub pipeline: PipelineName,
    /// Its name.
    pub round: RoundName,
    /// Who begins it.
    pub by: Actor,
    /// The time.
    pub now: Timestamp,
}

/// Asks for rounds.
#[derive(Clone, Debug)]
pub struct ListRounds {
    /// Only of this pipeline.
    pub pipeline: Option<PipelineName>,
    /// Only of the pipelines that one of these means; none means any.
    pub within: Vec<PipelinePattern>,
    /// At most so many.
    pub limit: u32,
}

/// A round and where its jobs are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundView {
    /// Its pipeline.
    pub pipeline: PipelineName,
    /// Its name.
    pub round: RoundName,
    /// When its first job was accepted.
    pub begun_at: Timestamp,
    /// When its last job was accepted.
    pub grown_at: Timestamp,
    /// Jobs ever accepted.
    pub accepted: i64,
    /// Waiting, whether due or not.
    pub queued: i64,
    /// In the hands of a worker.
    pub leased: i64,
    /// Processed successfully.
    pub done: i64,
    /// No longer tried.
    pub dead: i64,
    /// Given up, with a record.
    pub discarded: i64,
    /// Of the done and discarded: those of which nothing more is known, because they ended too long ago.
    pub forgotten: i64,
}

impl RoundView {
    /// Whether every accepted job is in exactly one state.
    pub const fn balances(&self) -> bool {
        self.accepted == self.queued + self.leased + self.done + self.dead + self.discarded
    }
}
