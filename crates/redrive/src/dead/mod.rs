//! Dead letters, for who holds a [`Redrive`]: counting them, giving them up, carrying them to other stores and
//! tools.
//!
//! - `top`: by what they have in common
//! - `died`: what died since a time, by cause
//! - `discard`: giving them up; `search`: looking through them for a text
//! - `export`: as JSON Lines or as a web archive; `requests`: what they are about; `import`: those of another store or
//!   program; `read`: their files; `foretell`: what would come of one; `reported`: those that
//!   programs report as they fail; `withheld`: jobs from the network that lack something

mod died;
mod discard;
mod evidence;
mod export;
mod foretell;
mod import;
mod read;
mod reported;
mod requests;
mod search;
mod top;
mod withheld;

use std::io;

use redrive_core::dead::DeadLetter;
use redrive_core::ids::JobId;
use redrive_core::state::JobState;
use redrive_store::contract::{ListDead, Page, Selection};
use serde::{Deserialize, Serialize};

pub use self::died::{CauseDied, Died, Groups};
pub use self::discard::Discarded;
pub use self::export::{Archive, Archived, write_letter};
pub use self::foretell::{Foretold, ForetoldCause, ForetoldLetter, foretell_import};
pub use self::import::{Batches, ImportNote, Imported};
pub use self::read::{Written, WrittenLetter};
pub use self::reported::{NotReported, Reported, Reporting};
pub use self::requests::{LOGGED_BYTES_MAX, Requests, logged_bodies};
pub use self::search::{FoundLetters, SearchAsked};
pub use self::top::{Top, TopLine, TopOutcome};
pub use self::withheld::Accepted;
pub(crate) use self::withheld::Withheld;
use crate::engine::Redrive;
use crate::error::{Error, ErrorKind};

/// Why something that was asked about dead letters cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum DeadError {
    /// A file of letters cannot be read.
    #[error("cannot read {place}")]
    Unreadable {
        /// The file.
        place: String,
        /// Why.
        source: io::Error,
    },
    /// What was exported cannot be written.
    #[error("the export cannot be written")]
    Unwritten(#[source] io::Error),
    /// A job was taken for a dead letter.
    #[error(transparent)]
    NotDead(#[from] NotDead),
}

/// A job that was taken for a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}", match .state { Some(state) => format!("task {id} is {}, not dead", state.said()), None => format!("no dead letter {id}") })]
pub struct NotDead {
    /// The job.
    pub id: JobId,
    /// Where it is, if it is anywhere.
    pub state: Option<JobState>,
}

impl DeadError {
    /// What it means to who asked.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Unreadable { .. } | Self::Unwritten(_) => ErrorKind::Failed,
            Self::NotDead(NotDead { state: None, .. }) => ErrorKind::Missing,
            Self::NotDead(_) => ErrorKind::Refused,
        }
    }
}

/// Refuses a choice of nothing in particular, which would be everything, and one by ids and by filter at once.
pub(crate) fn check(selection: &Selection) -> Result<(), Error> {
    match (selection.is_empty(), selection.ids.is_empty() || selection.filter.is_empty()) {
        (true, _) => Err(Error::NothingChosen),
        (_, false) => Err(Error::ChosenTwice),
        _ => Ok(()),
    }
}

impl Redrive {
    /// A dead letter with all its failures.
    pub async fn dead_letter(&self, id: JobId) -> Result<DeadLetter, Error> {
        match self.get_dead(id).await? {
            Some(letter) => Ok(letter),
            None => Err(DeadError::NotDead(self.not_dead(id).await?).into()),
        }
    }

    /// Returns it, if it is one.
    pub async fn get_dead(&self, id: JobId) -> Result<Option<DeadLetter>, Error> {
        let mut letter = self.store.get_dead(id).await?;
        self.locate(&mut letter);
        Ok(letter)
    }

    /// A page of dead letters.
    pub async fn list_dead(&self, params: ListDead) -> Result<Page<DeadLetter>, Error> {
        let mut page = self.store.list_dead(params).await?;
        self.locate(&mut page.items);
        Ok(page)
    }

    /// Says of letters where their payloads are.
    pub(crate) fn locate<'a>(&self, letters: impl IntoIterator<Item = &'a mut DeadLetter>) {
        let Some(vault) = &self.vault_address else { return };
        for letter in letters {
            letter.payload_address = letter.payload_place.map(|place| place.within(vault));
        }
    }

    /// The first of these jobs that is not a dead letter, and where it is instead.
    pub async fn find_not_dead(&self, ids: &[JobId]) -> Result<Option<NotDead>, Error> {
        for id in ids.iter().copied() {
            if self.store.get_dead(id).await?.is_none() {
                return Ok(Some(self.not_dead(id).await?));
            }
        }
        Ok(None)
    }

    async fn not_dead(&self, id: JobId) -> Result<NotDead, Error> {
        Ok(NotDead { id, state: self.store.get_job(id).await?.map(|detail| detail.job.state) })
    }
}
