//! The pace of a replay. Its progress is a small value, and [`next`] says what is to happen then. Whoever asks carries the answer
//! to the store together with the version of the replay that it was made for: of any number of processes that drive one
//! replay, one is heard.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ReplayState;
use crate::time::Timestamp;

/// Letters that are under way at once, at most: enough to keep workers busy, few enough to be stopped.
pub const IN_FLIGHT_MAX: u32 = 500;

/// Letters that must have failed before a replay stops by itself: one may be unlucky.
const FAILED_MIN: u64 = 2;

/// Settled letters below which the share that failed again says nothing, once the ramp is over.
const SETTLED_MIN: u64 = 20;

/// Settled letters after which the share is counted afresh, once the ramp is over: what went well long ago must not hide
/// what goes wrong now.
const SETTLED_WINDOW: u64 = 200;

/// How far a rate may run ahead, so that letters go in small groups rather than one by one.
const AHEAD: Duration = Duration::from_millis(100);

/// How fast a replay goes, and when it stops by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pacing {
    /// Letters per step; each step waits for the one before. After the last, all that is left goes.
    pub ramp: Vec<u32>,
    /// The share of letters that may fail again.
    pub refail_max: f64,
    /// Letters per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
}

/// Letters that are a handful: a person waits for them, and sees what becomes of each.
pub const HANDFUL: u64 = 20;

impl Pacing {
    /// The pace at which a person has letters tried again: a handful at once, whatever becomes of it; more in steps.
    pub fn of_retry(letters: u64) -> Self {
        match letters {
            0..=HANDFUL => Self { ramp: Vec::new(), refail_max: 1.0, per_second: None },
            _ => Self::default(),
        }
    }
}

impl Default for Pacing {
    fn default() -> Self {
        Self { ramp: vec![1, 5, 20, 100], refail_max: 0.25, per_second: None }
    }
}

/// How far a replay is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Letters that were chosen.
    pub total: u64,
    /// Letters that wait for their turn.
    pub pending: u64,
    /// Letters that were sent and have not come to their end.
    pub running: u64,
    /// Of those: letters that were processed while what came of them is not durable yet. They are counted, and not waited for.
    #[serde(default, skip_serializing_if = "is_none")]
    pub processed: u64,
    /// Letters that were processed successfully.
    pub recovered: u64,
    /// Letters that failed again.
    pub failed: u64,
    /// Of those: letters that failed for the same cause as before.
    pub same_cause: u64,
    /// Letters that were discarded meanwhile.
    pub gone: u64,
    /// Letters that had failed when a person last let it go on.
    pub forgiven: u64,
    /// The step of the ramp.
    pub step: Step,
    /// When the rate lets the next letter go.
    #[serde(skip)]
    pub free_at: Timestamp,
}

const fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Progress {
    /// Letters whose turn never came, because the replay was cancelled.
    pub const fn cancelled(&self) -> u64 {
        self.total - (self.pending + self.running + self.recovered + self.failed + self.gone)
    }
}

/// Letters per minute that came to their end; `None` if none did.
pub fn per_minute(settled: u64, time: Duration) -> Option<f64> {
    (settled > 0).then(|| settled as f64 * 60.0 / time.as_secs_f64().max(1.0))
}

/// A throughput in letters per minute: `412/min`, `2.5/min`.
pub fn throughput(per_minute: f64) -> String {
    let digits = usize::from(per_minute < 10.0);
    format!("{per_minute:.digits$}/min")
}

/// How far a step of the ramp is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Which one, from 0; beyond the last, all that is left goes.
    pub number: u32,
    /// Letters that were sent in it.
    pub sent: u64,
    /// Letters of it that have come to their end.
    pub settled: u64,
    /// Of those: letters that failed again.
    pub failed: u64,
}

/// What is to happen next.
#[derive(Clone, Debug, PartialEq)]
pub enum Advance {
    /// Choose the next letters.
    Choose,
    /// Send so many letters.
    Send {
        /// How many, at most.
        letters: u32,
        /// The step they belong to, without them.
        step: Step,
    },
    /// Let go of letters whose turn has not come.
    Release,
    /// Take back the letters that were sent and that nobody works on, if there are any.
    Withdraw,
    /// Nothing, until a letter comes to its end, or until then.
    Wait(Option<Timestamp>),
    /// Stop: too many fail again.
    Pause(String),
    /// Every letter has come to its end.
    Finish,
}

/// What is to happen next in a replay.
pub fn next(state: ReplayState, pacing: &Pacing, progress: &Progress, now: Timestamp) -> Advance {
    match state {
        ReplayState::Preparing => Advance::Choose,
        ReplayState::Running => advance(pacing, progress, now),
        ReplayState::Cancelling if progress.pending > 0 => Advance::Release,
        ReplayState::Cancelling if progress.running > 0 => Advance::Withdraw,
        ReplayState::Cancelling => Advance::Finish,
        ReplayState::Paused if progress.pending + progress.running == 0 => Advance::Finish,
        ReplayState::Paused | ReplayState::Cancelled | ReplayState::Done => Advance::Wait(None),
    }
}

/// What is to happen next in a replay that runs.
pub fn advance(pacing: &Pacing, progress: &Progress, now: Timestamp) -> Advance {
    if progress.pending == 0 && progress.running == 0 {
        return Advance::Finish;
    }
    let mut step = progress.step;
    if let Some(why) = trouble(pacing, progress) {
        return Advance::Pause(why);
    }
    if quota(pacing, &step).is_some_and(|quota| step.settled >= quota) {
        step = Step { number: step.number + 1, ..Step::default() };
    } else if quota(pacing, &step).is_none() && step.settled >= SETTLED_WINDOW {
        step = Step { number: step.number, sent: progress.running, ..Step::default() };
    }
    let left_in_step = quota(pacing, &step).map_or(u64::MAX, |quota| quota.saturating_sub(step.sent));
    let room = u64::from(IN_FLIGHT_MAX).saturating_sub(progress.running.saturating_sub(progress.processed));
    let (by_rate, next_free) = allowed(pacing, progress.free_at, now);
    let letters = progress.pending.min(left_in_step).min(room).min(by_rate);
    if letters == 0 {
        let rate_is_what_holds = progress.pending.min(left_in_step).min(room) > 0;
        return Advance::Wait(rate_is_what_holds.then_some(next_free));
    }
    Advance::Send { letters: u32::try_from(letters).unwrap_or(u32::MAX), step }
}

/// The step with letters that were sent in it, and when the rate lets the next one go.
pub fn sent(pacing: &Pacing, progress: &Progress, step: Step, letters: u64, now: Timestamp) -> (Step, Timestamp) {
    (Step { sent: step.sent + letters, ..step }, after(pacing, progress.free_at, letters, now))
}

/// The step as it is when a person says that the replay is to go on: what failed is forgiven.
pub const fn resumed(progress: &Progress) -> Step {
    Step { number: progress.step.number, sent: progress.running, settled: 0, failed: 0 }
}

/// How many letters a step has; none if it is the last, which has all that is left.
fn quota(pacing: &Pacing, step: &Step) -> Option<u64> {
    pacing.ramp.get(usize::try_from(step.number).unwrap_or(usize::MAX)).map(|letters| u64::from(*letters).max(1))
}

/// Why a replay is to stop, if too many letters of the step have failed again, and more than one since it began or a person let
/// it go on.
fn trouble(pacing: &Pacing, progress: &Progress) -> Option<String> {
    let step = &progress.step;
    if progress.failed.saturating_sub(progress.forgiven) < FAILED_MIN {
        return None;
    }
    let whole = match quota(pacing, step) {
        Some(quota) => quota,
        None if step.settled < SETTLED_MIN => return None,
        None => step.settled,
    };
    let share = step.failed as f64 / whole as f64;
    (share > pacing.refail_max).then(|| {
        let limit = pacing.refail_max * 100.0;
        format!("{} of {} letters failed again, more than {limit:.0} %", step.failed, step.settled)
    })
}

fn interval_millis(pacing: &Pacing) -> Option<f64> {
    pacing.per_second.filter(|rate| *rate > 0.0).map(|rate| 1_000.0 / rate)
}

/// How many letters the rate lets go now, and when it lets the next one go.
fn allowed(pacing: &Pacing, free_at: Timestamp, now: Timestamp) -> (u64, Timestamp) {
    let Some(interval) = interval_millis(pacing) else { return (u64::MAX, now) };
    let free_at = believable(interval, free_at, now);
    let from = free_at.max(now);
    if from > now && from.since(now) >= AHEAD {
        return (0, free_at - AHEAD.mul_f64(0.5));
    }
    let room = AHEAD.saturating_sub(from.since(now)).as_secs_f64() * 1_000.0;
    ((room / interval).floor() as u64 + 1, free_at)
}

/// A rate never runs further ahead than its first letters: a later time was noted while the clock was ahead.
fn believable(interval: f64, free_at: Timestamp, now: Timestamp) -> Timestamp {
    let longest = AHEAD + Duration::from_secs_f64(interval * 2.0 / 1_000.0);
    if free_at.since(now) > longest { now } else { free_at }
}

/// When the next letter may go after so many have gone now.
fn after(pacing: &Pacing, free_at: Timestamp, letters: u64, now: Timestamp) -> Timestamp {
    let Some(interval) = interval_millis(pacing) else { return now };
    believable(interval, free_at, now).max(now) + Duration::from_secs_f64(interval * letters as f64 / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn progress(total: u64) -> Progress {
        Progress { total, pending: total, ..Progress::default() }
    }

    /// Sends letters and ends them all, failing those that `fails` names; says how it ended and the sizes of the groups.
    fn drive(pacing: &Pacing, total: u64, fails: impl Fn(u64) -> bool) -> (Advance, Vec<u32>, Progress) {
        let (mut progress, mut groups, mut n) = (progress(total), Vec::new(), 0);
        let mut now = NOW;
        loop {
            match advance(pacing, &progress, now) {
                Advance::Send { letters, step } => {
                    groups.push(letters);
                    progress.pending -= u64::from(letters);
                    (progress.step, progress.free_at) = sent(pacing, &progress, step, letters.into(), now);
                    for _ in 0..letters {
                        let failed = u64::from(fails(n));
                        n += 1;
                        progress.step.settled += 1;
                        progress.step.failed += failed;
                        progress.failed += failed;
                        progress.recovered += 1 - failed;
                    }
                }
                Advance::Wait(Some(at)) => {
                    assert!(at > now, "time goes on");
                    now = at;
                }
                end => return (end, groups, progress),
            }
        }
    }

    #[test]
    fn steps_grow_while_letters_recover() {
        let (end, sent, progress) = drive(&Pacing::default(), 1_204, |_| false);
        assert_eq!(end, Advance::Finish);
        assert_eq!(sent, [1, 5, 20, 100, 500, 500, 78]);
        assert_eq!(progress.recovered, 1_204);
    }

    #[test]
    fn it_stops_when_letters_fail_again() {
        let (end, sent, _) = drive(&Pacing::default(), 100, |_| true);
        assert!(matches!(end, Advance::Pause(why) if why.contains("5 of 5 letters failed again, more than 25 %")));
        assert_eq!(sent, [1, 5]);
        let (end, sent, _) = drive(&Pacing::default(), 100, |n| n > 5 && n % 2 == 0);
        assert!(matches!(end, Advance::Pause(_)), "ten of twenty");
        assert_eq!(sent, [1, 5, 20]);
        let (end, ..) = drive(&Pacing::default(), 1_204, |n| n % 70 == 69);
        assert_eq!(end, Advance::Finish, "few enough");
        let (end, ..) = drive(&Pacing { ramp: Vec::new(), ..Pacing::default() }, 2_000, |n| n > 300);
        assert!(matches!(end, Advance::Pause(_)), "also without a ramp");
        let (end, _, progress) = drive(&Pacing { ramp: Vec::new(), ..Pacing::default() }, 100_000, |n| n > 60_000);
        assert!(matches!(end, Advance::Pause(_)), "also after much has gone well");
        assert!(progress.failed < 1_500, "{progress:?}");
    }

    #[test]
    fn one_unlucky_letter_stops_nothing() {
        let (end, _, progress) = drive(&Pacing::default(), 200, |n| n == 0);
        assert_eq!((end, progress.recovered), (Advance::Finish, 199));
        let step = Step { number: 1, sent: 5, settled: 2, failed: 2 };
        let failing = Progress { total: 9, pending: 3, running: 3, failed: 3, step, ..Progress::default() };
        assert!(matches!(advance(&Pacing::default(), &failing, NOW), Advance::Pause(_)));
        let forgiven = Progress { forgiven: 2, ..failing };
        assert_eq!(advance(&Pacing::default(), &forgiven, NOW), Advance::Wait(None), "one since it was resumed");
    }

    #[test]
    fn what_is_cancelled_is_taken_back_bit_by_bit() {
        let state = ReplayState::Cancelling;
        let at = |pending, running| next(state, &Pacing::default(), &Progress { pending, running, ..progress(9) }, NOW);
        assert_eq!((at(5, 3), at(0, 3), at(0, 0)), (Advance::Release, Advance::Withdraw, Advance::Finish));
    }

    #[test]
    fn a_person_may_let_it_go_on() {
        let pacing = Pacing::default();
        let (end, _, mut progress) = drive(&pacing, 100, |_| true);
        assert!(matches!(end, Advance::Pause(_)));
        progress.step = resumed(&progress);
        progress.forgiven = progress.failed;
        assert!(matches!(advance(&pacing, &progress, NOW), Advance::Send { letters: 5, .. }), "the same step again");
    }

    #[test]
    fn a_step_waits_for_the_one_before() {
        let mut progress = progress(100);
        let Advance::Send { letters: 1, step } = advance(&Pacing::default(), &progress, NOW) else { panic!("one") };
        let (step, _) = sent(&Pacing::default(), &progress, step, 1, NOW);
        progress = Progress { pending: 99, running: 1, step, ..progress };
        assert_eq!(advance(&Pacing::default(), &progress, NOW), Advance::Wait(None));
    }

    #[test]
    fn what_was_processed_and_is_not_durable_yet_is_not_waited_for() {
        let pacing = Pacing { ramp: Vec::new(), ..Pacing::default() };
        let full = Progress { total: 2_000, pending: 1_000, running: 1_000, ..Progress::default() };
        assert_eq!(advance(&pacing, &full, NOW), Advance::Wait(None));
        let processed = Progress { processed: 900, ..full };
        assert!(matches!(advance(&pacing, &processed, NOW), Advance::Send { letters: 400, .. }));
        let step = Step { number: 0, sent: 1, settled: 1, failed: 0 };
        let first = Progress { total: 9, pending: 8, running: 1, processed: 1, step, ..Progress::default() };
        assert!(matches!(advance(&Pacing::default(), &first, NOW), Advance::Send { letters: 5, .. }), "the next step");
    }

    #[test]
    fn a_rate_is_kept() {
        let pacing = Pacing { ramp: Vec::new(), per_second: Some(20.0), ..Pacing::default() };
        let (mut progress, mut now, mut all) = (progress(200), NOW, 0);
        while progress.pending > 0 {
            match advance(&pacing, &progress, now) {
                Advance::Send { letters, step } => {
                    assert!(letters <= 3, "small groups: {letters}");
                    all += u64::from(letters);
                    progress.pending -= u64::from(letters);
                    progress.free_at = sent(&pacing, &progress, step, letters.into(), now).1;
                }
                Advance::Wait(Some(at)) => {
                    assert!(at > now, "time goes on");
                    now = at;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(all, 200);
        let secs = now.since(NOW).as_secs_f64();
        assert!((9.5..10.5).contains(&secs), "200 letters at 20 a second took {secs} s");
    }

    proptest! {
        /// Whatever the pace, every letter goes once or the replay says why not.
        #[test]
        fn it_always_ends(ramp in prop::collection::vec(0_u32..50, 0..5), total in 1_u64..2_000, every in 1_u64..20,
                          rate in prop::option::of(1.0_f64..5_000.0)) {
            let pacing = Pacing { ramp, refail_max: 0.1, per_second: rate };
            let (end, sent, progress) = drive(&pacing, total, |n| n % every == every - 1);
            let all: u64 = sent.iter().map(|n| u64::from(*n)).sum();
            prop_assert_eq!(all + progress.pending, total);
            match end {
                Advance::Finish => prop_assert_eq!(all, total),
                Advance::Pause(why) => prop_assert!(why.contains("failed again")),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn a_rate_does_not_wait_for_a_clock_that_was_ahead() {
        let pacing = Pacing { ramp: Vec::new(), per_second: Some(2.0), ..Pacing::default() };
        let progress = Progress { free_at: NOW + Duration::from_secs(10_800), ..progress(5) };
        assert!(matches!(advance(&pacing, &progress, NOW), Advance::Send { .. }));
    }
}
