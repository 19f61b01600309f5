//! Answers that were given to requests which must not be done twice, by the key that came with them.

use std::time::Duration;

use async_trait::async_trait;
use redrive_core::time::Timestamp;

use crate::error::Result;

/// Time for which a process holds a request that it began, unless it asks for more.
pub const REQUEST_HELD: Duration = Duration::from_secs(3);

/// Answers, kept for a while.
#[async_trait]
pub trait AnswerStore {
    /// Records the key of a request before anything is done for it. Returns the request that was recorded under the key before, if it
    /// is not too old: with its answer, or without one if its process ended first. Another request takes the place of one without an answer that nobody holds.
    ///
    /// The caller holds the request for [`REQUEST_HELD`], unless another process holds its key.
    async fn begin_request(&self, params: BeginRequest) -> Result<BegunRequest>;

    /// Changes until when a request without an answer is held.
    async fn hold_request(&self, params: HoldRequest) -> Result<()>;

    /// Keeps the answer to a request that was begun. One that is kept already stays.
    async fn keep_answer(&self, params: KeepAnswer) -> Result<()>;

    /// Drops the bodies of the oldest answers of each of those whose answers have more bytes together, at most so many at once; says
    /// whether there may be more. Their keys stay: it is known that they were answered.
    async fn shorten_answers(&self, bytes_max: u64, limit: u32) -> Result<bool>;

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

/// Asks for a request to be held.
#[derive(Clone, Debug)]
pub struct HoldRequest {
    /// Who asked.
    pub who: String,
    /// The key.
    pub key: String,
    /// A hash of what is asked.
    pub request: String,
    /// Until when; a time that is over lets go of it.
    pub until: Timestamp,
}

/// A request that was begun, now or before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BegunRequest {
    /// When it was first begun.
    pub begun_at: Timestamp,
    /// Set if the caller holds it and must run it.
    pub is_held: bool,
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
    /// The answer itself; empty if it is no longer kept.
    pub body: Vec<u8>,
}
