//! Answers that were given to requests which must not be done twice, by the key that came with them.

use async_trait::async_trait;
use redrive_core::time::Timestamp;

use crate::error::Result;

/// Answers, kept for a while.
#[async_trait]
pub trait AnswerStore {
    /// Records the key of a request before anything is done for it. Returns the request that was recorded under the key before, if it
    /// is not too old: with its answer, or without one if its process ended first. Another request takes the place of one without an answer.
    async fn begin_request(&self, params: BeginRequest) -> Result<BegunRequest>;

    /// Keeps the answer to a request that was begun. One that is kept already stays.
    async fn keep_answer(&self, params: KeepAnswer) -> Result<()>;

    /// Forgets some of the answers that were kept before a time; says whether there may be more.
    async fn forget_answers(&self, before: Timestamp, limit: u32) -> Result<bool>;
}

/// A request that is to be done once.
#[derive(Clone, Debug)]
pub struct BeginRequest {
    /// Who asks: keys of others are other keys.
    pub who: String,
    /// The key.
    pub key: String,
    /// A hash of what is asked.
    pub request: String,
    /// What was begun before this time is too old.
    pub since: Timestamp,
    /// The time.
    pub now: Timestamp,
}

/// A request that was begun, now or before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BegunRequest {
    /// When it was first begun.
    pub begun_at: Timestamp,
    /// Its answer, if it has one.
    pub answer: Option<KeptAnswer>,
}

/// Asks for an answer to be kept.
#[derive(Clone, Debug)]
pub struct KeepAnswer {
    /// Who asked.
    pub who: String,
    /// The key.
    pub key: String,
    /// The answer.
    pub answer: KeptAnswer,
    /// The time.
    pub now: Timestamp,
}

/// An answer that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptAnswer {
    /// A hash of what was asked: the same key with something else is a mistake.
    pub request: String,
    /// The status of the answer.
    pub status: u16,
    /// The answer itself.
    pub body: Vec<u8>,
}
