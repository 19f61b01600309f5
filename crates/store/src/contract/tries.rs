//! Tries: what was found out about letters without settling anything, kept for a while.

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::ids::{JobId, LeaseToken, PipelineName, TryId};
use redrive_core::jobs::Input;
use redrive_core::replays::{TriedDetails, TriedWith};
use redrive_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::pages::Page;
use super::replays::Selection;
use crate::error::Result;

/// Tries. They change nothing but themselves.
#[async_trait]
pub trait TryStore {
    /// Makes a try without letters.
    async fn open_try(&self, params: OpenTry) -> Result<()>;

    /// Notes what letters came to; what was noted of them before is replaced. Says whether the try goes on: of one that has ended nothing
    /// more is noted.
    async fn note_tried(&self, id: TryId, letters: Vec<TriedLetter>) -> Result<bool>;

    /// Replaces what is known of a try that has not ended; says whether it goes on.
    async fn note_try(&self, id: TryId, outcome: Value) -> Result<bool>;

    /// Adds letters to a try, for whoever leases them to try; those that it has already stay as they are. One that has ended gets none.
    async fn add_to_try(&self, id: TryId, letters: Vec<LetterToTry>) -> Result<()>;

    /// Leases letters of a try that has not ended: those that nobody has, and those whose lease ran out. A token that was used a
    /// moment before is answered with what it has.
    async fn lease_tried(&self, params: LeaseTried) -> Result<Vec<JobId>>;

    /// Extends leases of letters of tries; says which of them hold, in the order asked.
    async fn extend_tried(&self, leases: Vec<TriedLease>, until: Timestamp) -> Result<Vec<bool>>;

    /// Notes what leased letters came to, or that they are to be leased again; says which leases held, in the order asked. What was
    /// noted before by the same lease is answered so again, and has no second effect.
    async fn settle_tried(&self, settled: Vec<SettleTried>) -> Result<Vec<bool>>;

    /// Counts the letters of a try, by pipeline and group.
    async fn count_tried(&self, id: TryId) -> Result<Vec<TriedCount>>;

    /// How many letters of a try have no verdict yet. None are counted above a limit, so that asking costs the same however many there are.
    async fn open_in_try(&self, params: OpenInTry) -> Result<u64>;

    /// Ends a try, with what came of all of it. Letters that have no verdict by then are no longer part of it. One that has ended stays as
    /// it is.
    async fn end_try(&self, id: TryId, outcome: Value, now: Timestamp) -> Result<()>;

    /// A try, if it is still there.
    async fn get_try(&self, id: TryId) -> Result<Option<TryView>>;

    /// Tries, newest first.
    async fn list_tries(&self, limit: u32) -> Result<Vec<TryView>>;

    /// A page of the letters of a try.
    async fn list_tried(&self, params: ListTried) -> Result<Page<TriedLetter>>;

    /// Forgets tries that were made before a time, with their letters, at most so many; says whether there are more.
    async fn forget_tries(&self, before: Timestamp, limit: u32) -> Result<bool>;
}

/// Asks for a try to be made.
#[derive(Clone, Debug)]
pub struct OpenTry {
    /// Its id.
    pub id: TryId,
    /// Who wants it.
    pub by: Actor,
    /// Which letters.
    pub selection: Selection,
    /// Fields of the input that were changed.
    pub edits: Input,
    /// The definitions it is made with.
    pub tried_with: TriedWith,
    /// What is known of it before any letter was tried; what comes of it takes its place.
    pub outcome: Value,
    /// The time.
    pub now: Timestamp,
}

/// What a letter came to in a try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriedLetter {
    /// Which.
    pub id: JobId,
    /// Its attempts at that time: if it was tried since, this says nothing of it.
    pub attempts: u32,
    /// Whether it would recover.
    pub recovered: bool,
    /// What its failure is recognised by, if it would fail.
    pub key: Option<String>,
    /// What it would say then.
    pub message: Option<String>,
    /// What else is known of it.
    pub details: TriedDetails,
}

/// A letter that is to be tried by whoever leases it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LetterToTry {
    /// Which.
    pub id: JobId,
    /// Its attempts.
    pub attempts: u32,
    /// Its pipeline.
    pub pipeline: PipelineName,
    /// What it belongs to in the system that handed it over.
    pub group: Option<String>,
}

/// Asks how many letters of a try are open.
#[derive(Clone, Debug)]
pub struct OpenInTry {
    /// Of which try.
    pub id: TryId,
    /// Only of these pipelines; of any if none is named.
    pub pipelines: Vec<PipelineName>,
    /// Only of this group.
    pub group: Option<String>,
    /// At most so many are counted.
    pub limit: u32,
}

/// Asks for letters to try.
#[derive(Clone, Debug)]
pub struct LeaseTried {
    /// Of which try.
    pub id: TryId,
    /// Only of these pipelines.
    pub pipelines: Vec<PipelineName>,
    /// Only of this group, if one is named.
    pub group: Option<String>,
    /// The token the leases will have.
    pub token: LeaseToken,
    /// At most so many.
    pub limit: u32,
    /// When the leases run out.
    pub until: Timestamp,
    /// The time.
    pub now: Timestamp,
}

/// A right to say what a letter came to in a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TriedLease {
    /// The try.
    pub id: TryId,
    /// The letter.
    pub job: JobId,
    /// Known to the holder only.
    pub token: LeaseToken,
}

/// Says what a leased letter came to.
#[derive(Clone, Debug)]
pub struct SettleTried {
    /// The right to do so.
    pub lease: TriedLease,
    /// What it came to; none if it is to be leased again.
    pub verdict: Option<TriedLetter>,
}

/// How many letters of a group are where in a try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TriedCount {
    /// Their pipeline; none where it was not noted, because they were tried here.
    pub pipeline: Option<PipelineName>,
    /// What they belong to in the system that handed them over.
    pub group: Option<String>,
    /// Those that nobody has.
    pub waiting: u64,
    /// Those that somebody has.
    pub leased: u64,
    /// Those that were tried.
    pub tried: u64,
    /// Of those: would recover.
    pub recovered: u64,
}

/// A try as others see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TryView {
    /// Its id.
    pub id: TryId,
    /// Who wanted it.
    pub actor: String,
    /// Which letters.
    pub selection: Selection,
    /// What was changed in each input.
    pub edits: Input,
    /// The definitions it was made with.
    pub tried_with: TriedWith,
    /// When it was begun.
    pub created_at: Timestamp,
    /// When it ended; none if it did not.
    pub finished_at: Option<Timestamp>,
    /// What came of it; before it ended, what is known of it from the beginning.
    pub outcome: Value,
}

/// Asks for the letters of a try.
#[derive(Clone, Debug)]
pub struct ListTried {
    /// Which try.
    pub id: TryId,
    /// At most so many.
    pub limit: u32,
    /// Where to go on.
    pub cursor: Option<String>,
}
