//! Answers that were given to requests which must not be done twice, by the key that came with them.

use async_trait::async_trait;
use redrive_core::time::Timestamp;

use crate::error::Result;

/// Answers, kept for a while.
#[async_trait]
pub trait AnswerStore {
    /// The answer that was kept for a key.
    async fn find_answer(&self, params: FindAnswer) -> Result<Option<KeptAnswer>>;

    /// Keeps an answer. One that is kept already stays.
    async fn keep_answer(&self, params: KeepAnswer) -> Result<()>;

    /// Forgets some of the answers that were kept before a time; says whether there may be more.
    async fn forget_answers(&self, before: Timestamp, limit: u32) -> Result<bool>;
}

/// Asks for an answer.
#[derive(Clone, Debug)]
pub struct FindAnswer {
    /// Who asks: keys of others are other keys.
    pub who: String,
    /// The key.
    pub key: String,
    /// Only one that was kept at or after this time.
    pub since: Timestamp,
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
