//! Errors that a server tells in a form from which who asked makes them again, so that they say the same as where the store is: those
//! to which a way out is added by who speaks to people.

use redrive_core::ids::PipelineName;
use redrive_store::StoreError;
use serde::{Deserialize, Serialize};

use crate::dead::{DeadError, NotDead};
use crate::error::Error;
use crate::jobs::JobError;
use crate::pipelines::PipelineError;
use crate::replays::ReplayError;

/// What exactly went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// See [`Error::Job`].
    Job(JobError),
    /// See [`DeadError::NotDead`].
    NotDead(NotDead),
    /// See [`Error::Pipeline`].
    Pipeline(PipelineError),
    /// See [`Error::Replay`].
    Replay(ReplayError),
    /// See [`StoreError::NoCause`].
    NoCause(String),
    /// See [`StoreError::NoReplay`].
    NoReplay(String),
    /// See [`StoreError::QueueFull`].
    QueueFull {
        /// The pipeline.
        pipeline: PipelineName,
        /// Jobs queued now.
        queued: u64,
        /// Jobs that may be queued.
        max: u64,
    },
    /// See [`StoreError::LettersFull`].
    LettersFull {
        /// The pipeline.
        pipeline: PipelineName,
        /// Dead letters now.
        letters: u64,
        /// Dead letters at which an enqueue is refused.
        max: u64,
    },
    /// See [`StoreError::InvalidCursor`].
    InvalidCursor(String),
    /// See [`Error::NothingChosen`].
    NothingChosen,
    /// See [`Error::ChosenTwice`].
    ChosenTwice,
}

impl Detail {
    /// What is told of an error, if more is than its message.
    pub fn of(error: &Error) -> Option<Self> {
        Some(match error {
            Error::Job(error) => Self::Job(*error),
            Error::Dead(DeadError::NotDead(error)) => Self::NotDead(*error),
            Error::Pipeline(error) => Self::Pipeline(error.clone()),
            Error::Replay(error) => Self::Replay(error.clone()),
            Error::Store(error) => return Self::of_store(error),
            Error::NothingChosen => Self::NothingChosen,
            Error::ChosenTwice => Self::ChosenTwice,
            _ => return None,
        })
    }

    /// The same of an error of the store.
    pub fn of_store(error: &StoreError) -> Option<Self> {
        Some(match error {
            StoreError::NoCause(id) => Self::NoCause(id.clone()),
            StoreError::NoReplay(id) => Self::NoReplay(id.clone()),
            StoreError::InvalidCursor(text) => Self::InvalidCursor(text.clone()),
            StoreError::QueueFull { pipeline, queued, max } => {
                Self::QueueFull { pipeline: pipeline.clone(), queued: *queued, max: *max }
            }
            StoreError::LettersFull { pipeline, letters, max } => {
                Self::LettersFull { pipeline: pipeline.clone(), letters: *letters, max: *max }
            }
            _ => return None,
        })
    }
}

impl From<Detail> for Error {
    fn from(detail: Detail) -> Self {
        match detail {
            Detail::Job(error) => error.into(),
            Detail::NotDead(error) => DeadError::from(error).into(),
            Detail::Pipeline(error) => error.into(),
            Detail::Replay(error) => error.into(),
            Detail::NoCause(id) => StoreError::NoCause(id).into(),
            Detail::NoReplay(id) => StoreError::NoReplay(id).into(),
            Detail::QueueFull { pipeline, queued, max } => StoreError::QueueFull { pipeline, queued, max }.into(),
            Detail::LettersFull { pipeline, letters, max } => StoreError::LettersFull { pipeline, letters, max }.into(),
            Detail::InvalidCursor(text) => StoreError::InvalidCursor(text).into(),
            Detail::NothingChosen => Self::NothingChosen,
            Detail::ChosenTwice => Self::ChosenTwice,
        }
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::ids::{IdEnding, JobId};
    use redrive_core::state::JobState;
    use redrive_core::time::Timestamp;

    use super::*;

    #[test]
    fn an_error_that_was_told_says_what_it_said() {
        let id = JobId::new(Timestamp::from_millis(1), 7);
        let ending = IdEnding::new("00ab").expect("an ending");
        let errors: [Error; 9] = [
            JobError::NoNumber(5).into(),
            JobError::Ended { id, state: JobState::Done }.into(),
            JobError::NoEnding(ending).into(),
            DeadError::from(NotDead { id, state: Some(JobState::Queued) }).into(),
            PipelineError::Unknown { name: "a".parse().expect("a name"), known: Vec::new() }.into(),
            ReplayError::Ambiguous(ending).into(),
            StoreError::QueueFull { pipeline: "a".parse().expect("a name"), queued: 5, max: 5 }.into(),
            StoreError::LettersFull { pipeline: "a".parse().expect("a name"), letters: 5, max: 5 }.into(),
            Error::NothingChosen,
        ];
        for error in errors {
            let told = serde_json::to_string(&Detail::of(&error)).expect("JSON");
            let again: Option<Detail> = serde_json::from_str(&told).expect("a detail");
            let again = Error::from(again.expect("it is told"));
            assert_eq!((again.to_string(), again.kind()), (error.to_string(), error.kind()), "{told}");
        }
    }
}
