//! Dead letters, for who holds a [`Redrive`](crate::Redrive): taking in those of other stores.
//!
//! - `import`: letters of another store, checked at the door

mod import;

pub use self::import::{ImportNote, Imported};

use std::io;

use crate::error::ErrorKind;

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
}

impl DeadError {
    /// What it means to who asked.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Unreadable { .. } => ErrorKind::Failed,
        }
    }
}
