//! What a transaction changes about the ledgers of rounds: written once, at its end.

use std::collections::HashMap;

use redrive_core::ledger::Ledger;
use redrive_core::time::Timestamp;

/// What a transaction changes about rounds.
#[derive(Default)]
pub(crate) struct Rounds(pub(crate) HashMap<i64, HashMap<String, Change>>);

/// What it changes about one of them.
#[derive(Default)]
pub(crate) struct Change {
    pub(crate) ledger: Ledger,
    /// When a job was last added to it, if one was.
    pub(crate) accepted_at: Option<Timestamp>,
}

impl Rounds {
    fn change(&mut self, pipeline: i64, round: &str) -> &mut Change {
        let rounds = self.0.entry(pipeline).or_default();
        // A key is made only for the first job of a round.
        if !rounds.contains_key(round) {
            rounds.insert(round.to_owned(), Change::default());
        }
        rounds.get_mut(round).expect("it was put there")
    }

    /// Whether anything is changed about a round.
    pub(crate) fn is_changed(&self, pipeline: i64, round: &str) -> bool {
        self.0.get(&pipeline).is_some_and(|rounds| rounds.contains_key(round))
    }

    /// The change to a round's ledger, so far; none if the round is none.
    pub(crate) fn ledger(&mut self, pipeline: i64, round: &str) -> Option<&mut Ledger> {
        (!round.is_empty()).then(|| &mut self.change(pipeline, round).ledger)
    }

    /// The same, of a round to which a job is added.
    pub(crate) fn add(&mut self, pipeline: i64, round: &str, at: Timestamp) -> Option<&mut Ledger> {
        if round.is_empty() {
            return None;
        }
        let change = self.change(pipeline, round);
        change.accepted_at = Some(change.accepted_at.map_or(at, |before| before.max(at)));
        change.ledger.accepted += 1;
        Some(&mut change.ledger)
    }
}
