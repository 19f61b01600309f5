//! The ledger: counters per pipeline that must add up at every moment.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::ids::PipelineName;
use crate::state::JobState;

/// How many jobs of a pipeline are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Jobs ever accepted.
    pub accepted: i64,
    /// Waiting, whether due or not.
    pub queued: i64,
    /// In the hands of a worker.
    pub leased: i64,
    /// Processed successfully.
    pub done: i64,
    /// No longer tried.
    pub dead: i64,
    /// Given up, with a record.
    pub discarded: i64,
    /// Of the queued: those that have failed before.
    pub retrying: i64,
    /// Of the done: those that were dead before.
    pub recovered: i64,
    /// Of the queued and leased: those that a replay sent.
    #[serde(default)]
    pub replaying: i64,
    /// Of the done and discarded: those of which nothing more is known, because they ended too long ago.
    #[serde(default)]
    pub forgotten: Forgotten,
    /// Of the done: those whose results the store keeps.
    #[serde(default)]
    pub results: KeptResults,
}

/// Returns the letters that are dead of one pipeline, or of all: what the share of a cause is of.
pub fn dead_letters(ledgers: &BTreeMap<PipelineName, Ledger>, of: Option<&PipelineName>) -> u64 {
    let dead = |(_, ledger): (_, &Ledger)| u64::try_from(ledger.dead).unwrap_or(0);
    ledgers.iter().filter(|(name, _)| of.is_none_or(|of| of == *name)).map(dead).sum()
}

/// Results that the store keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeptResults {
    /// Number of results.
    pub kept: i64,
    /// Stored size, in bytes.
    pub bytes: i64,
    /// Results that were removed before their time, because there were more bytes than the pipeline keeps.
    pub dropped: i64,
}

impl AddAssign for KeptResults {
    fn add_assign(&mut self, change: Self) {
        self.kept += change.kept;
        self.bytes += change.bytes;
        self.dropped += change.dropped;
    }
}

/// Jobs that are counted and of which nothing more is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Forgotten {
    /// Of the done.
    pub done: i64,
    /// Of the recovered.
    pub recovered: i64,
    /// Of the discarded.
    pub discarded: i64,
}

impl Ledger {
    /// Whether every accepted job is in exactly one state.
    pub const fn balances(&self) -> bool {
        self.accepted == self.queued + self.leased + self.done + self.dead + self.discarded
    }

    /// The counter of a state.
    pub const fn count_mut(&mut self, state: JobState) -> &mut i64 {
        match state {
            JobState::Queued => &mut self.queued,
            JobState::Leased => &mut self.leased,
            JobState::Done => &mut self.done,
            JobState::Dead => &mut self.dead,
            JobState::Discarded => &mut self.discarded,
        }
    }

    /// Moves one job from a state to another.
    pub const fn shift(&mut self, from: JobState, to: JobState) {
        *self.count_mut(from) -= 1;
        *self.count_mut(to) += 1;
    }

    /// Jobs that are neither done, dead nor discarded.
    pub const fn open(&self) -> i64 {
        self.queued + self.leased
    }

    /// The same without those that a replay sent.
    pub const fn open_by_itself(&self) -> i64 {
        self.open() - self.replaying
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::TRANSITIONS;

    #[test]
    fn no_move_unbalances_it() {
        let mut ledger = Ledger { accepted: 1, queued: 1, ..Ledger::default() };
        for (from, _, to) in TRANSITIONS {
            ledger.shift(*from, *to);
            assert!(ledger.balances(), "{from} to {to}");
        }
        assert!(!Ledger { accepted: 1, ..Ledger::default() }.balances());
    }
}
