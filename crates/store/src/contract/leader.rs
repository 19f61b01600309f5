//! The leader: one worker at a time does what is to be done once.

use async_trait::async_trait;
use redrive_core::ids::WorkerId;
use redrive_core::time::Timestamp;

use crate::error::Result;

/// Who does the chores.
#[async_trait]
pub trait LeaderStore {
    /// Takes the lead, as `redrive_core::leader::term` decides. Says by which term, in the order asked; nothing where another leads.
    async fn lead(&self, params: Lead) -> Result<Vec<Option<u64>>>;

    /// When the chores of what is led were last begun.
    async fn list_chores(&self, led: String) -> Result<Vec<ChoreView>>;

    /// Notes that a chore begins; says whether it is the caller's to do: not if it leads no more, or another was faster.
    async fn note_chore(&self, params: NoteChore) -> Result<bool>;
}

/// Asks to lead.
#[derive(Clone, Debug)]
pub struct Lead {
    /// What is led.
    pub names: Vec<String>,
    /// Who asks. It is on the list of workers.
    pub holder: WorkerId,
    /// Until when it leads then.
    pub until: Timestamp,
    /// The time.
    pub now: Timestamp,
}

/// A chore that was begun before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoreView {
    /// Its name.
    pub name: String,
    /// When it was last begun.
    pub last_run: Timestamp,
}

/// The right to do a chore: if somebody else has come to lead since, nothing of it is done any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Led {
    /// What is led.
    pub name: String,
    /// By which term.
    pub term: u64,
}

/// Notes that a chore begins.
#[derive(Clone, Debug)]
pub struct NoteChore {
    /// What is led.
    pub led: String,
    /// By which term.
    pub term: u64,
    /// The chore.
    pub name: String,
    /// When it was last begun, as far as the caller knows.
    pub was: Option<Timestamp>,
    /// The time.
    pub now: Timestamp,
}
