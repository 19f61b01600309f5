//! How far the steps of a replay are, and when it will be through, for who watches it.

use std::time::Duration;

use redrive_core::replays::{LetterState, Pacing, Progress, ReplayState};
use redrive_core::time::Timestamp;
use redrive_store::contract::{ListReplayLetters, ReplayView};

use crate::engine::Redrive;
use crate::error::Error;

/// Letters that are looked at one by one; what comes after them is one step.
const LOOKED_AT_MAX: u32 = 1_000;

/// Letters that must have settled before it is said how long the others will take.
const SETTLED_MIN: u64 = 5;

/// A step of a replay: letters that follow each other in the order of its choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepLine {
    /// How many letters it has.
    pub letters: u64,
    /// Those whose turn has not come.
    pub pending: u64,
    /// Those that are under way.
    pub running: u64,
    /// Those that recovered.
    pub recovered: u64,
    /// Those that failed again.
    pub failed: u64,
    /// Those that were gone, or let go of, before their turn.
    pub gone: u64,
}

impl StepLine {
    /// Letters that were sent.
    pub const fn sent(&self) -> u64 {
        self.running + self.recovered + self.failed
    }

    const fn count(&mut self, state: LetterState) {
        self.letters += 1;
        match state {
            LetterState::Pending => self.pending += 1,
            LetterState::Running => self.running += 1,
            LetterState::Recovered => self.recovered += 1,
            LetterState::Failed => self.failed += 1,
            LetterState::Gone | LetterState::Cancelled => self.gone += 1,
        }
    }

    const fn without(self, other: &Self) -> Self {
        Self {
            letters: self.letters.saturating_sub(other.letters),
            pending: self.pending.saturating_sub(other.pending),
            running: self.running.saturating_sub(other.running),
            recovered: self.recovered.saturating_sub(other.recovered),
            failed: self.failed.saturating_sub(other.failed),
            gone: self.gone.saturating_sub(other.gone),
        }
    }
}

impl Redrive {
    /// The steps of a replay that have letters, each with what became of them.
    pub async fn replay_steps(&self, replay: &ReplayView) -> Result<Vec<StepLine>, Error> {
        let looked_at = replay.pacing.ramp.iter().fold(0_u32, |sum, letters| sum.saturating_add((*letters).max(1)));
        let limit = looked_at.min(LOOKED_AT_MAX);
        let states = match limit {
            0 => Vec::new(),
            limit => {
                let params = ListReplayLetters { id: replay.id, state: None, limit, cursor: None };
                let first = self.store.list_replay_letters(params).await?;
                first.items.into_iter().map(|letter| letter.state).collect()
            }
        };
        Ok(steps(&replay.pacing, &replay.progress, &states))
    }
}

/// The steps of a replay, by what became of its first letters and of all.
fn steps(pacing: &Pacing, progress: &Progress, first: &[LetterState]) -> Vec<StepLine> {
    let mut left = StepLine {
        letters: progress.total,
        pending: progress.pending,
        running: progress.running,
        recovered: progress.recovered,
        failed: progress.failed,
        gone: progress.gone + progress.cancelled(),
    };
    let (mut steps, mut first) = (Vec::new(), first);
    for letters in &pacing.ramp {
        let size = usize::try_from((*letters).max(1)).unwrap_or(usize::MAX).min(first.len());
        let is_whole = size as u64 == u64::from((*letters).max(1)) || size as u64 == left.letters;
        if size == 0 || !is_whole {
            break;
        }
        let (now, later) = first.split_at(size);
        let mut step = StepLine::default();
        now.iter().for_each(|state| step.count(*state));
        left = left.without(&step);
        steps.push(step);
        first = later;
    }
    if left.letters > 0 {
        steps.push(left);
    }
    steps
}

/// How long a replay will take from now on, as it went until now; nothing where that says nothing.
pub fn ready_in(replay: &ReplayView, now: Timestamp) -> Option<Duration> {
    let progress = &replay.progress;
    let (left, settled) = (progress.pending + progress.running, progress.recovered + progress.failed);
    if replay.state != ReplayState::Running || left == 0 || settled < SETTLED_MIN {
        return None;
    }
    let by_pace = now.since(replay.created_at).as_secs_f64() * left as f64 / settled as f64;
    let by_rate = replay.pacing.per_second.map_or(0.0, |rate| progress.pending as f64 / rate.max(f64::MIN_POSITIVE));
    Duration::try_from_secs_f64(by_pace.max(by_rate)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use LetterState::{Failed, Pending, Recovered, Running};

    fn sizes(steps: &[StepLine]) -> Vec<u64> {
        steps.iter().map(|step| step.letters).collect()
    }

    #[test]
    fn a_step_has_what_became_of_its_letters() {
        let pacing = Pacing { ramp: vec![1, 2, 4], ..Pacing::default() };
        let first = [Recovered, Recovered, Failed, Running, Pending, Pending, Pending];
        let progress = Progress { total: 10, pending: 6, running: 1, recovered: 2, failed: 1, ..Progress::default() };
        let steps = steps(&pacing, &progress, &first);
        assert_eq!(sizes(&steps), [1, 2, 4, 3]);
        assert_eq!((steps[1].recovered, steps[1].failed, steps[1].sent()), (1, 1, 2));
        assert_eq!((steps[2].running, steps[2].pending, steps[2].sent()), (1, 3, 1));
        assert_eq!((steps[3].pending, steps[3].sent()), (3, 0));
    }

    #[test]
    fn steps_without_letters_are_none() {
        let progress = Progress { total: 3, recovered: 3, ..Progress::default() };
        let all = [Recovered; 3];
        assert_eq!(sizes(&steps(&Pacing::default(), &progress, &all)), [1, 2], "the second has what is left");
        assert_eq!(sizes(&steps(&Pacing { ramp: Vec::new(), ..Pacing::default() }, &progress, &[])), [3]);
        assert_eq!(sizes(&steps(&Pacing::default(), &Progress::default(), &[])), Vec::<u64>::new());
    }

    #[test]
    fn what_is_not_looked_at_one_by_one_is_one_step() {
        let pacing = Pacing { ramp: vec![2, 5_000], ..Pacing::default() };
        let progress = Progress { total: 9_000, pending: 8_998, recovered: 2, ..Progress::default() };
        let first: Vec<_> = [Recovered; 2].into_iter().chain(std::iter::repeat_n(Pending, 998)).collect();
        assert_eq!(sizes(&steps(&pacing, &progress, &first)), [2, 8_998]);
    }
}
