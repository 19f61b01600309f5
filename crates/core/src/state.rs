//! The five states of a job and every move between them, as a table.
//!
//! A move that is not in the table does not exist: stores look each one up here before they write it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Where an accepted job is. It is always in exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Waiting for a worker: new, due for a retry later, or held by a breaker.
    Queued,
    /// In the hands of a worker.
    Leased,
    /// Processed successfully.
    Done,
    /// No longer tried; kept with its failures.
    Dead,
    /// Given up by a person or by retention, with a record of it.
    Discarded,
}

/// What moves a job from one state to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// A worker takes the job.
    Lease,
    /// The attempt succeeded.
    Complete,
    /// The job goes back to the queue: a retry, or returned without blame.
    Requeue,
    /// The job is no longer tried.
    Bury,
    /// A dead letter is sent through its pipeline again.
    Replay,
    /// A replay that had sent the job takes it back.
    Withdraw,
    /// A person or retention gives the job up.
    Discard,
}

impl JobState {
    /// All states, in the order of the ledger.
    pub const ALL: [Self; 5] = [Self::Queued, Self::Leased, Self::Done, Self::Dead, Self::Discarded];

    /// The name in text for people.
    pub const fn said(self) -> &'static str {
        match self {
            Self::Leased => "running",
            Self::Dead => "died",
            Self::Queued | Self::Done | Self::Discarded => self.as_str(),
        }
    }

    /// The name in JSON and columns.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Leased => "leased",
            Self::Done => "done",
            Self::Dead => "dead",
            Self::Discarded => "discarded",
        }
    }

    /// The state after `step`, if that is possible from here.
    pub fn after(self, step: Move) -> Result<Self, IllegalMove> {
        TRANSITIONS
            .iter()
            .find(|(from, by, _)| (*from, *by) == (self, step))
            .map(|(_, _, to)| *to)
            .ok_or(IllegalMove { from: self, step })
    }
}

impl FromStr for JobState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is not the state of a task"))
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Move {
    /// All moves.
    pub const ALL: [Self; 7] =
        [Self::Lease, Self::Complete, Self::Requeue, Self::Bury, Self::Replay, Self::Withdraw, Self::Discard];
}

/// Every move there is. A cancelled job is discarded from the queue or from under its worker, whose late settlement
/// then finds its lease stale.
pub const TRANSITIONS: &[(JobState, Move, JobState)] = &[
    (JobState::Queued, Move::Lease, JobState::Leased),
    (JobState::Queued, Move::Withdraw, JobState::Dead),
    (JobState::Queued, Move::Discard, JobState::Discarded),
    (JobState::Leased, Move::Complete, JobState::Done),
    (JobState::Leased, Move::Requeue, JobState::Queued),
    (JobState::Leased, Move::Bury, JobState::Dead),
    (JobState::Leased, Move::Discard, JobState::Discarded),
    (JobState::Dead, Move::Replay, JobState::Queued),
    (JobState::Dead, Move::Discard, JobState::Discarded),
];

/// A move that the table does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a task that is {from} cannot be moved by {step:?}")]
pub struct IllegalMove {
    /// The state the job is in.
    pub from: JobState,
    /// The move that was asked for.
    pub step: Move,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pair of state and move, decided by hand: `None` means refused.
    #[test]
    fn the_table_is_complete() {
        use JobState::*;
        let expected = |from: JobState, step: Move| match (from, step) {
            (Queued, Move::Lease) => Some(Leased),
            (Queued, Move::Withdraw) => Some(Dead),
            (Queued, Move::Complete | Move::Requeue | Move::Bury | Move::Replay) => None,
            (Leased, Move::Complete) => Some(Done),
            (Leased, Move::Requeue) => Some(Queued),
            (Leased, Move::Bury) => Some(Dead),
            (Leased, Move::Lease | Move::Replay | Move::Withdraw) => None,
            (Dead, Move::Replay) => Some(Queued),
            (Dead, Move::Lease | Move::Complete | Move::Requeue | Move::Bury | Move::Withdraw) => None,
            (Queued | Leased | Dead, Move::Discard) => Some(Discarded),
            (Done | Discarded, _) => None,
        };
        for from in JobState::ALL {
            for step in Move::ALL {
                assert_eq!(from.after(step).ok(), expected(from, step), "{from} {step:?}");
            }
        }
        let possible = JobState::ALL.iter().flat_map(|from| Move::ALL.map(|step| from.after(step)));
        assert_eq!(possible.filter(Result::is_ok).count(), TRANSITIONS.len(), "no pair stands twice");
    }

    #[test]
    fn the_end_states_are_final_and_the_rest_is_reachable() {
        let leaves = |state| TRANSITIONS.iter().any(|(from, _, _)| *from == state);
        let reached = |state| TRANSITIONS.iter().any(|(_, _, to)| *to == state);
        assert!(!leaves(JobState::Done) && !leaves(JobState::Discarded));
        assert!(JobState::ALL.into_iter().all(reached));
    }
}
