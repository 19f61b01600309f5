//! Idempotency keys. A request that is sent again with its key gets the first response.
//!
//! The key is recorded before the request runs. If the process ends before the response is recorded, the request runs again with the
//! ids and the time of the first run, so that the store finds what was written then and does not write it twice.
//!
//! While it runs, its process holds it in the store: another process that gets the same request waits for the response.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redrive_core::time::Timestamp;
use redrive_store::contract::{BeginRequest, BegunRequest, HoldRequest, KeepAnswer, KeptAnswer, REQUEST_HELD};

use crate::engine::Redrive;
use crate::error::Error;

/// How long an answer is kept.
pub const ANSWERS_KEPT: Duration = Duration::from_secs(24 * 3_600);

/// The most that is kept of the answers to one caller, in bytes: of more the oldest are dropped, and their keys stay.
pub const ANSWERS_BYTES_MAX: u64 = 64 << 20;

/// Answers that are forgotten in one transaction.
const PIECE: u32 = 500;

/// Time between two looks of a process that waits for another one's response.
const LOOK_EVERY: Duration = Duration::from_millis(100);

tokio::task_local! {
    static REQUEST: Request;
}

/// The state of a request with an idempotency key.
pub enum KeyedRequest {
    /// It ran, and this is its response.
    Answered(KeptAnswer),
    /// It has no response yet and must run.
    Open(Box<Request>),
}

/// A request that must run. It creates the same ids each time it runs.
pub struct Request {
    redrive: Redrive,
    held: HoldRequest,
    begun_at: Timestamp,
    /// True if it was recorded before without a response.
    is_again: bool,
    seed: blake3::Hash,
    /// Number of ids created so far.
    ids: AtomicU64,
}

impl Request {
    /// Runs the request, holds it meanwhile, and keeps its answer. Without an answer to keep, the request may run again at once.
    pub async fn run<T, E: From<Error>>(
        self,
        work: impl Future<Output = Result<(T, Option<KeptAnswer>), E>>,
    ) -> Result<T, E> {
        let (redrive, held) = (self.redrive.clone(), self.held.clone());
        let answering = async {
            let (value, answer) = REQUEST.scope(self, work).await?;
            match answer {
                Some(answer) => redrive.keep_answer(&held, answer).await?,
                None => redrive.let_go_of_request(&held).await,
            }
            Ok(value)
        };
        let done = tokio::select! {
            done = answering => done,
            never = redrive.keep_holding(&held) => match never {},
        };
        if done.is_err() {
            redrive.let_go_of_request(&held).await;
        }
        done
    }
}

/// Returns when the current request was first recorded and whether it runs again. `None` if it has no key.
pub(crate) fn first_begun_at() -> Option<(Timestamp, bool)> {
    REQUEST.try_with(|request| (request.begun_at, request.is_again)).ok()
}

impl Redrive {
    /// Returns the time at which the current request came first: what it says of times means the same when it comes again.
    pub fn asked_at(&self) -> Timestamp {
        first_begun_at().map_or_else(|| self.now(), |(begun_at, _)| begun_at)
    }

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
        let seed = blake3::hash(serde_json::json!([who, key, request]).to_string().as_bytes());
        let (who, key, request) = (who.to_owned(), key.to_owned(), request.to_owned());
        let held = HoldRequest { who, key, request, until: Timestamp::from_millis(0) };
        loop {
            let (now, HoldRequest { who, key, request, .. }) = (self.now(), held.clone());
            let params = BeginRequest { who, key, request, since: now - ANSWERS_KEPT, now };
            let BegunRequest { begun_at, is_held, answer } = self.store.begin_request(params).await?;
            if let Some(answer) = answer {
                return Ok(KeyedRequest::Answered(answer));
            }
            if is_held {
                let (redrive, is_again, ids) = (self.clone(), begun_at != now, AtomicU64::new(0));
                let request = Request { redrive, held, begun_at, is_again, seed, ids };
                return Ok(KeyedRequest::Open(Box::new(request)));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn let_go_of_request(&self, held: &HoldRequest) {
        self.hold_request(HoldRequest { until: Timestamp::from_millis(0), ..held.clone() }).await;
    }

    async fn hold_request(&self, held: HoldRequest) {
        if let Err(error) = self.store.hold_request(held).await {
            tracing::debug!(%error, "it could not be changed until when a request is held");
        }
    }

    async fn keep_holding(&self, held: &HoldRequest) -> Infallible {
        loop {
            tokio::time::sleep(REQUEST_HELD / 3).await;
            let until = self.now() + REQUEST_HELD;
            self.hold_request(HoldRequest { until, ..held.clone() }).await;
        }
    }

    async fn keep_answer(&self, held: &HoldRequest, answer: KeptAnswer) -> Result<(), Error> {
        self.forget_answers().await?;
        let HoldRequest { who, key, .. } = held.clone();
        Ok(self.store.keep_answer(KeepAnswer { who, key, answer, now: self.now() }).await?)
    }

    /// Drops a piece of the answers that are too long together; says whether there is more.
    pub(crate) async fn shorten_answers(&self) -> Result<bool, Error> {
        Ok(self.store.shorten_answers(ANSWERS_BYTES_MAX, PIECE).await?)
    }

    /// Forgets a piece of what is too old; says whether there is more.
    pub async fn forget_answers(&self) -> Result<bool, Error> {
        Ok(self.store.forget_answers(self.now() - ANSWERS_KEPT, PIECE).await?)
    }
}
