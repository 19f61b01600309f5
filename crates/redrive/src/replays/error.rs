//! Why a replay is refused.

use redrive_core::ids::{IdEnding, PipelineName, ReplayId, TryId};
use redrive_core::replays::{ReplayChange, ReplayState};
use redrive_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::ErrorKind;

/// Why a replay cannot be found, planned or changed as was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ReplayError {
    /// There is none with this id.
    #[error("no replay {0}")]
    Unknown(ReplayId),
    /// No id ends so.
    #[error("no replay's id ends with {0}")]
    NoEnding(IdEnding),
    /// Several ids end so.
    #[error("the ids of several replays end with {0}: give more of it")]
    Ambiguous(IdEnding),
    /// There is none at all.
    #[error("there are no replays")]
    None,
    /// There are some, and none to which that can be done.
    #[error("there is no replay that can be {}: the last, {last}, is {state}", .change.participle())]
    NoneFor {
        /// What was to be done.
        change: ReplayChange,
        /// The newest.
        last: ReplayId,
        /// Where that is.
        state: ReplayState,
    },
    /// It is not in a state in which that can be done.
    #[error("replay {id} is {state}")]
    InState {
        /// The replay.
        id: ReplayId,
        /// Where it is.
        state: ReplayState,
    },
    /// Nothing could be sent at this rate.
    #[error("{0} letters a second are no rate: it must be more than nothing")]
    NoRate(String),
    /// Others changed how fast it goes since it was seen.
    #[error("the rate of replay {0} was changed by others since you looked: look again")]
    SeenOtherwise(ReplayId),
    /// The saved payloads of a pipeline cannot be worked from.
    #[error("pipeline {pipeline} cannot work from saved payloads{}", if *.edited { ": they are those of the inputs as they were" } else { "" })]
    SavedUnusable {
        /// The pipeline.
        pipeline: PipelineName,
        /// Whether it could, were no inputs changed.
        edited: bool,
    },
    /// Nobody has tried these letters.
    #[error("these letters were not tried in the last 24 hours")]
    NoTry,
    /// There is no such try, or it was forgotten.
    #[error("no try {0}: tries are kept for 24 hours")]
    NoSuchTry(TryId),
    /// They were tried too long ago.
    #[error("these letters were last tried at {0}, which is more than 24 hours ago")]
    TryTooOld(Timestamp),
    /// They were tried with another definition of their pipeline.
    #[error("pipeline {0} is defined otherwise now than when its letters were tried")]
    TriedOtherwise(PipelineName),
}

impl ReplayError {
    /// What it means to who asked.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Unknown(_) | Self::NoSuchTry(_) | Self::NoEnding(_) | Self::None | Self::NoneFor { .. } => {
                ErrorKind::Missing
            }
            Self::InState { .. }
            | Self::NoTry
            | Self::TryTooOld(_)
            | Self::TriedOtherwise(_)
            | Self::SeenOtherwise(_) => ErrorKind::Refused,
            Self::SavedUnusable { .. } | Self::Ambiguous(_) | Self::NoRate(_) => ErrorKind::Invalid,
        }
    }
}
