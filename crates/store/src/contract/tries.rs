//! Tries: what was found out about letters without settling anything, kept for a while.

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::ids::{JobId, TryId};
use redrive_core::jobs::Input;
use redrive_core::replays::TriedWith;
use redrive_core::time::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::pages::Page;
use super::replays::Selection;
use crate::error::Result;

/// Tries. They change nothing but themselves.
#[async_trait]
pub trait TryStore {
    /// Makes a try without letters.
    async fn open_try(&self, params: OpenTry) -> Result<()>;

    /// Notes what letters came to; what was noted of them before is replaced.
    async fn note_tried(&self, id: TryId, letters: Vec<TriedLetter>) -> Result<()>;

    /// Ends a try, with what came of all of it.
    async fn end_try(&self, id: TryId, outcome: Value, now: Timestamp) -> Result<()>;

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
    /// The time.
    pub now: Timestamp,
}

/// What a letter came to in a try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
}

/// A try as others see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    /// What came of it.
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
