//! What a process knows of the breakers of one pipeline, and the changes that it hands to the store.
//!
//! Nothing that was said is lost when two processes meet: a change holds for the version that it was made from. If the breaker is
//! another by then, the store keeps what was said, and whoever changes the breaker next folds it in.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Admission, Breaker, BreakerPolicy, BreakerState, Said, TargetFailure, fold};
use crate::ids::PipelineName;
use crate::time::Timestamp;

/// When to look whether a probe has come back, if nobody says so.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How the jobs of a target may be leased while its breaker is not closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The target.
    pub target: String,
    /// So many of its jobs may be out as probes at once; the others are held.
    pub probes: u32,
}

/// A target whose held jobs have waited for too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// The target.
    pub target: String,
    /// Those that were accepted by then have.
    pub accepted_by: Timestamp,
    /// What the target last failed with.
    pub last: TargetFailure,
}

/// The breakers of a pipeline that are not closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    /// Changes whenever one of them does.
    pub version: u64,
    /// Each with its target.
    pub rows: Vec<BreakerRow>,
}

/// A breaker as a store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerRow {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// The target.
    pub target: String,
    /// Its version; nothing if the target has given no trouble that is remembered.
    pub version: Option<u64>,
    /// The breaker of that version.
    pub breaker: Option<Breaker>,
    /// What was said of the target and is not folded in, oldest first.
    pub pending: Vec<Said>,
    /// The place of the last of it.
    pub pending_to: i64,
    /// Grows with every change of any breaker of the pipeline: of two rows the one with the greater number is the later.
    pub as_of: u64,
}

impl BreakerRow {
    /// The change that tidies it, if there is one: what was said of its target and nobody folded in is folded in, and it is forgotten
    /// if nothing is lost by that, because it is closed and its window is long over.
    pub fn tidied(&self, policy: &BreakerPolicy, now: Timestamp) -> Option<BreakerChange> {
        let folded = fold(self.breaker.as_ref(), &self.pending, policy);
        let breaker = folded.filter(|breaker| !breaker.is_stale(policy, now));
        if self.pending.is_empty() && breaker.is_some() == self.breaker.is_some() {
            return None;
        }
        let (pipeline, target) = (self.pipeline.clone(), self.target.clone());
        let next = NextBreaker { was: self.version, breaker, folded_to: self.pending_to };
        Some(BreakerChange { pipeline, target, heard: Vec::new(), next: Some(next) })
    }

    fn is_shut(&self) -> bool {
        self.breaker.as_ref().is_some_and(|breaker| breaker.state != BreakerState::Closed)
    }
}

/// Something that was said, and by which settlement of the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The place of the settlement: what it says counts only if it is applied.
    pub by: usize,
    /// What it said.
    pub said: Said,
}

/// What is to become of a breaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerChange {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// The target.
    pub target: String,
    /// What was said. It is kept, to be folded in by whoever comes next, if `next` cannot be written.
    pub heard: Vec<Heard>,
    /// The breaker with all of that folded in; nothing if somebody else is about to change it.
    pub next: Option<NextBreaker>,
}

impl BreakerChange {
    /// Whether it is under way until it is released: a target that gave no trouble has nothing to wait for.
    pub fn is_begun(&self) -> bool {
        let idle = NextBreaker { was: None, breaker: None, folded_to: 0 };
        self.next.as_ref().is_some_and(|next| *next != idle)
    }
}

/// A breaker that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextBreaker {
    /// The version that it was made from: it is written only if that is still the one.
    pub was: Option<u64>,
    /// The breaker; nothing if it is to be forgotten.
    pub breaker: Option<Breaker>,
    /// What was pending up to here is folded in.
    pub folded_to: i64,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    version: Option<u64>,
    breaker: Option<Breaker>,
    pending: Vec<Said>,
    pending_to: i64,
    as_of: u64,
    /// Whether a change of it is under way.
    busy: bool,
}

/// The breakers of one pipeline, as far as this process knows.
#[derive(Clone, Debug)]
pub struct Known {
    pipeline: PipelineName,
    seen: Option<u64>,
    targets: BTreeMap<String, Entry>,
    /// How late the latest is of what was known and is not any more.
    tidied_as_of: u64,
}

impl Known {
    /// Nothing is known yet.
    pub const fn new(pipeline: PipelineName) -> Self {
        Self { pipeline, seen: None, targets: BTreeMap::new(), tidied_as_of: 0 }
    }

    /// Whether nothing is known of any target.
    pub fn is_blank(&self) -> bool {
        self.targets.is_empty()
    }

    /// The version of the gates that are known, if any are.
    pub const fn seen(&self) -> Option<u64> {
        self.seen
    }

    /// Takes in the breakers that are not closed.
    pub fn learn_gates(&mut self, gates: Gates) {
        let Gates { version, rows } = gates;
        self.seen = self.seen.max(Some(version));
        let listed = |target: &String| rows.iter().any(|row| row.target == *target);
        for (target, entry) in &mut self.targets {
            if !listed(target) && entry.as_of < version && entry.is_shut() {
                // It is closed by now, and perhaps forgotten; its next change will tell.
                *entry = Entry { busy: entry.busy, as_of: version, ..Entry::default() };
            }
        }
        rows.into_iter().for_each(|row| self.learn(row));
    }

    /// Takes in a breaker, unless something later is known of it. What may be older than something that was known and is not any
    /// more shuts nothing: the gates are asked for anew.
    pub fn learn(&mut self, row: BreakerRow) {
        if row.is_shut() && row.as_of < self.tidied_as_of && !self.targets.contains_key(&row.target) {
            self.seen = None;
            return;
        }
        let entry = self.targets.entry(row.target.clone()).or_default();
        if row.as_of >= entry.as_of {
            let BreakerRow { version, breaker, pending, pending_to, as_of, .. } = row;
            *entry = Entry { version, breaker, pending, pending_to, as_of, busy: entry.busy };
        }
        self.tidy(&row.target);
    }

    /// Forgets what need not be known.
    fn tidy(&mut self, target: &str) {
        let needless = |entry: &Entry| !entry.busy && entry.breaker.is_none() && entry.pending.is_empty();
        if self.targets.get(target).is_some_and(needless)
            && let Some(entry) = self.targets.remove(target)
        {
            self.tidied_as_of = self.tidied_as_of.max(entry.as_of);
        }
    }

    /// How jobs may be leased now: the targets whose breaker is not closed.
    pub fn gates(&self, now: Timestamp) -> Vec<Gate> {
        let gate = |(target, entry): (&String, &Entry)| {
            let probes = match entry.breaker.as_ref()?.admission(now) {
                Admission::All => return None,
                Admission::Probes(probes) => probes,
                Admission::NotBefore(_) => 0,
            };
            Some(Gate { target: target.clone(), probes })
        };
        self.targets.iter().filter_map(gate).collect()
    }

    /// Whether a target's breaker lets nothing through but probes, or nothing at all.
    pub fn is_shut(&self, target: &str) -> bool {
        self.targets.get(target).is_some_and(Entry::is_shut)
    }

    /// The targets whose breakers are not closed.
    pub fn shut(&self) -> Vec<String> {
        self.targets.iter().filter(|(_, entry)| entry.is_shut()).map(|(target, _)| target.clone()).collect()
    }

    /// Whether a target's jobs may be leased, and when if not.
    pub fn admission(&self, target: &str, now: Timestamp) -> Admission {
        let breaker = self.targets.get(target).and_then(|entry| entry.breaker.as_ref());
        breaker.map_or(Admission::All, |breaker| breaker.admission(now))
    }

    /// Of the targets of which jobs are held, those that are held for nothing.
    pub fn freed(&self, held: &BTreeMap<String, u64>, now: Timestamp) -> Vec<String> {
        held.keys().filter(|target| self.admission(target, now) == Admission::All).cloned().collect()
    }

    /// When the next job may be leased, if the first that is not held is due then.
    pub fn next_due(&self, due: Option<Timestamp>, held: &BTreeMap<String, u64>, now: Timestamp) -> Option<Timestamp> {
        let held = held.keys().map(|target| match self.admission(target, now) {
            Admission::All => now,
            // All that may be out are: the next one goes when one of them has come back.
            Admission::Probes(_) => now + LOOK_AGAIN,
            Admission::NotBefore(due) => due,
        });
        held.chain(due).min()
    }

    /// Returns the targets whose held jobs have waited for too long, since this time at the earliest.
    pub fn overdue(
        &self,
        held: &BTreeMap<String, u64>,
        (hold_max, since): (Duration, Timestamp),
        now: Timestamp,
    ) -> Vec<Overdue> {
        let overdue = |target: &String| {
            let breaker = self.targets.get(target)?.breaker.as_ref()?;
            let accepted_by = breaker.overdue_by(hold_max, since, now)?;
            Some(Overdue { target: target.clone(), accepted_by, last: breaker.last.clone()? })
        };
        held.keys().filter_map(overdue).collect()
    }

    /// Takes back to now what changed at a time that has not come, and says how that is to be written.
    pub fn rewind(&mut self, now: Timestamp) -> Vec<BreakerChange> {
        let pipeline = self.pipeline.clone();
        let rewound = |(target, entry): (&String, &mut Entry)| {
            let breaker = entry.breaker.as_mut()?;
            if !breaker.rewind(now) || entry.busy {
                return None;
            }
            let next = NextBreaker { was: entry.version, breaker: Some(breaker.clone()), folded_to: 0 };
            let (pipeline, target) = (pipeline.clone(), target.clone());
            Some(BreakerChange { pipeline, target, heard: Vec::new(), next: Some(next) })
        };
        self.targets.iter_mut().filter_map(rewound).collect()
    }

    /// The change that a batch of settlements makes to the breaker of a target; nothing if what they say cannot move it. Until
    /// [`Self::release`] it is under way, and others only leave word.
    pub fn change(&mut self, target: &str, mut heard: Vec<Heard>, policy: &BreakerPolicy) -> Option<BreakerChange> {
        heard.retain(|heard| heard.said.counts());
        if heard.is_empty() {
            return None;
        }
        let (pipeline, entry) = (self.pipeline.clone(), self.targets.get_mut(target));
        let next = match entry {
            Some(entry) if entry.busy => None,
            Some(entry) => {
                entry.busy = true;
                let said = entry.pending.iter().chain(heard.iter().map(|heard| &heard.said));
                let breaker = fold(entry.breaker.as_ref(), said, policy);
                Some(NextBreaker { was: entry.version, breaker, folded_to: entry.pending_to })
            }
            None => {
                let breaker = fold(None, heard.iter().map(|heard| &heard.said), policy);
                if breaker.is_some() {
                    self.targets.insert(target.to_owned(), Entry { busy: true, ..Entry::default() });
                }
                Some(NextBreaker { was: None, breaker, folded_to: 0 })
            }
        };
        Some(BreakerChange { pipeline, target: target.to_owned(), heard, next })
    }

    /// The change that folds in what others left word of; nothing if there is none, or somebody is at it.
    pub fn catch_up(&mut self, target: &str, policy: &BreakerPolicy) -> Option<BreakerChange> {
        let entry = self.targets.get_mut(target).filter(|entry| !entry.busy && !entry.pending.is_empty())?;
        entry.busy = true;
        let breaker = fold(entry.breaker.as_ref(), &entry.pending, policy);
        let next = NextBreaker { was: entry.version, breaker, folded_to: entry.pending_to };
        let (pipeline, target) = (self.pipeline.clone(), target.to_owned());
        Some(BreakerChange { pipeline, target, heard: Vec::new(), next: Some(next) })
    }

    /// Notes that a change is no longer under way.
    pub fn release(&mut self, target: &str) {
        if let Some(entry) = self.targets.get_mut(target) {
            entry.busy = false;
        }
        self.tidy(target);
    }
}

impl Entry {
    fn is_shut(&self) -> bool {
        self.breaker.as_ref().is_some_and(|breaker| breaker.state != BreakerState::Closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breakers::Signal;

    const fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1_000)
    }

    fn heard(signal: Signal) -> Vec<Heard> {
        vec![Heard { by: 0, said: Said { signal, probe: false, at: at(1), took_ms: None, why: None } }]
    }

    fn known() -> Known {
        Known::new("p".parse().expect("a name"))
    }

    fn row(version: Option<u64>, breaker: Option<Breaker>, as_of: u64) -> BreakerRow {
        let pipeline = "p".parse().expect("a name");
        BreakerRow { pipeline, target: "t".into(), version, breaker, pending: Vec::new(), pending_to: 0, as_of }
    }

    #[test]
    fn while_a_change_is_under_way_others_leave_word_and_it_is_folded_in_then() {
        let (mut known, policy) = (known(), BreakerPolicy::default());
        let first = known.change("t", heard(Signal::Failed), &policy).and_then(|change| change.next).expect("a change");
        assert_eq!((first.was, first.breaker.as_ref().map(|breaker| breaker.failures)), (None, Some(1)));
        let second = known.change("t", heard(Signal::Failed), &policy).expect("a change");
        assert_eq!((second.heard.len(), second.next), (1, None));
        let pending = vec![second.heard[0].said.clone()];
        known.learn(BreakerRow { pending, pending_to: 7, ..row(Some(3), first.breaker, 3) });
        assert_eq!(known.catch_up("t", &policy), None, "the first is still at it");
        known.release("t");
        let next = known.catch_up("t", &policy).and_then(|change| change.next).expect("a change");
        assert_eq!((next.was, next.folded_to, next.breaker.map(|breaker| breaker.failures)), (Some(3), 7, Some(2)));
    }

    #[test]
    fn a_target_that_answers_is_asked_for_and_not_remembered() {
        let (mut known, policy) = (known(), BreakerPolicy::default());
        let change = known.change("t", heard(Signal::Answered), &policy).expect("somebody else may know it");
        assert_eq!(change.next, Some(NextBreaker { was: None, breaker: None, folded_to: 0 }));
        assert_eq!(known.change("t", heard(Signal::Silent), &policy), None);
        assert!(known.targets.is_empty());
    }

    #[test]
    fn a_breaker_that_was_forgotten_is_not_shut_by_what_is_older() {
        let mut known = known();
        let open = || Breaker { state: BreakerState::Open, open_until: at(30), ..Breaker::closed(at(1)) };
        known.learn_gates(Gates { version: 5, rows: vec![row(Some(5), Some(open()), 5)] });
        known.learn(row(None, None, 9));
        assert!(known.gates(at(2)).is_empty(), "it was closed and forgotten");
        known.learn(row(Some(7), Some(open()), 7));
        assert!(known.gates(at(2)).is_empty(), "an answer that was long on its way");
        assert_eq!(known.seen(), None, "the gates are asked for, to be sure");
        known.learn_gates(Gates { version: 8, rows: vec![row(Some(8), Some(open()), 9)] });
        assert_eq!(known.gates(at(2)).len(), 1, "what is no older is believed");
        assert_eq!(known.seen(), Some(8));
    }

    #[test]
    fn what_was_said_and_nobody_folded_in_is_tidied_up() {
        let policy = BreakerPolicy::default();
        let said = |signal| Said { signal, probe: false, at: at(1), took_ms: None, why: None };
        let spoken_of = |signal| BreakerRow { pending: vec![said(signal)], pending_to: 7, ..row(None, None, 3) };
        let change = spoken_of(Signal::Failed).tidied(&policy, at(2)).and_then(|change| change.next).expect("a change");
        assert_eq!((change.was, change.folded_to, change.breaker.map(|breaker| breaker.failures)), (None, 7, Some(1)));
        let change = spoken_of(Signal::Failed).tidied(&policy, at(999_999)).and_then(|change| change.next);
        assert_eq!(
            change,
            Some(NextBreaker { was: None, breaker: None, folded_to: 7 }),
            "nothing of it matters any more"
        );
        let closed = |at| row(Some(3), Some(Breaker::closed(at)), 3);
        assert_eq!(closed(at(1)).tidied(&policy, at(2)), None);
        assert!(closed(at(1)).tidied(&policy, at(999_999)).is_some(), "its window is long over");
        assert_eq!(row(None, None, 3).tidied(&policy, at(999_999)), None);
    }

    #[test]
    fn what_is_older_than_what_is_known_is_passed_over() {
        let mut known = known();
        let open = Breaker { state: BreakerState::Open, open_until: at(30), ..Breaker::closed(at(1)) };
        known.learn(row(Some(5), Some(open.clone()), 5));
        known.learn(row(None, None, 4));
        known.learn_gates(Gates { version: 4, rows: Vec::new() });
        assert_eq!(known.gates(at(2)), [Gate { target: "t".into(), probes: 0 }]);
        assert_eq!(known.gates(at(30)), [Gate { target: "t".into(), probes: 1 }]);
        known.learn_gates(Gates { version: 6, rows: Vec::new() });
        assert!(known.gates(at(2)).is_empty() && known.seen() == Some(6));
    }
}
