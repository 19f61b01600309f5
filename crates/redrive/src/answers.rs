//! Idempotency keys. A request that is sent again with its key gets the first response.
//!
//! The key is recorded before the request runs. If the process ends before the response is recorded, the request runs again with the
//! ids and the time of the first run, so that the store finds what was written then and does not write it twice.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redrive_core::time::Timestamp;
use redrive_store::contract::{BeginRequest, BegunRequest, KeepAnswer, KeptAnswer};

use crate::engine::Redrive;
use crate::error::Error;

/// How long an answer is kept.
pub const ANSWERS_KEPT: Duration = Duration::from_secs(24 * 3_600);

/// Answers that are forgotten in one transaction.
const PIECE: u32 = 500;

tokio::task_local! {
    static REQUEST: Request;
}

/// The state of a request with an idempotency key.
pub enum KeyedRequest {
    /// It ran, and this is its response.
    Answered(KeptAnswer),
    /// It has no response yet and must run.
    Open(Request),
}

/// A request that must run. It creates the same ids each time it runs.
pub struct Request {
    begun_at: Timestamp,
    /// True if it was recorded before without a response.
    is_again: bool,
    seed: blake3::Hash,
    /// Number of ids created so far.
    ids: AtomicU64,
}

impl Request {
    /// Runs the request.
    pub async fn run<T>(self, work: impl Future<Output = T>) -> T {
        REQUEST.scope(self, work).await
    }
}

/// Returns when the current request was first recorded and whether it runs again. `None` if it has no key.
pub(crate) fn first_begun_at() -> Option<(Timestamp, bool)> {
    REQUEST.try_with(|request| (request.begun_at, request.is_again)).ok()
}

impl Redrive {
    /// Returns the time and the random bits of a new id.
    pub(crate) fn new_id(&self) -> (Timestamp, u128) {
        let of_request = |request: &Request| {
            let number = request.ids.fetch_add(1, Ordering::Relaxed).to_be_bytes();
            let hash = blake3::keyed_hash(request.seed.as_bytes(), &number);
            let bits = hash.as_bytes().iter().take(16).fold(0, |bits, byte| bits << 8 | u128::from(*byte));
            (request.begun_at, bits)
        };
        REQUEST.try_with(of_request).unwrap_or_else(|_| (self.now(), self.chance.bits()))
    }

    /// Records a request before it runs. `request` is a hash of its content.
    pub async fn begin_request(&self, who: &str, key: &str, request: &str) -> Result<KeyedRequest, Error> {
        let named = serde_json::json!([who, key, request]).to_string();
        let now = self.now();
        let (who, key, request) = (who.to_owned(), key.to_owned(), request.to_owned());
        let params = BeginRequest { who, key, request, since: now - ANSWERS_KEPT, now };
        let BegunRequest { begun_at, answer } = self.store.begin_request(params).await?;
        Ok(match answer {
            Some(answer) => KeyedRequest::Answered(answer),
            None => KeyedRequest::Open(Request {
                begun_at,
                is_again: begun_at != now,
                seed: blake3::hash(named.as_bytes()),
                ids: AtomicU64::new(0),
            }),
        })
    }

    /// Keeps the answer to a request that was begun.
    pub async fn keep_answer(&self, who: &str, key: &str, answer: KeptAnswer) -> Result<(), Error> {
        self.forget_answers().await?;
        let now = self.now();
        Ok(self.store.keep_answer(KeepAnswer { who: who.to_owned(), key: key.to_owned(), answer, now }).await?)
    }

    /// Forgets a piece of what is too old; says whether there is more.
    pub async fn forget_answers(&self) -> Result<bool, Error> {
        Ok(self.store.forget_answers(self.now() - ANSWERS_KEPT, PIECE).await?)
    }
}
