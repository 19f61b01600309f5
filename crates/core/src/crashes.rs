//! Who is to blame when a process dies.
//!
//! Blame is earned. A job with a process of its own answers for that process. Jobs that share a worker become suspects
//! when it dies and run again alone, in a process of their own where there is a command for it, else inside a worker: a crash
//! in isolation convicts, any other end acquits. A job that was leased but never started inside the worker is returned as it
//! was: if it had a process of its own, the worker's death says nothing about it.

use crate::breakers::Signal;
use crate::dead::Gate;
use crate::failures::{FailureReport, Reason};
use crate::ids::WorkerId;
use crate::jobs::{LeasedJob, Tally};
use crate::policy::Policy;
use crate::settlements::{Decision, Destination, Ending, record};
use crate::traffic::Facts;

/// A lease whose worker died or fell silent.
#[derive(Clone, Debug, PartialEq)]
pub struct LostLease {
    /// The job, with the lease that settles it.
    pub job: LeasedJob,
    /// The worker that had it.
    pub worker: WorkerId,
    /// Whether the worker had begun to run it inside its own process. It is never set for jobs that have a process of their
    /// own.
    pub started: bool,
    /// Whether the worker's process is known to be gone, rather than just silent.
    pub worker_gone: bool,
}

/// Decides what becomes of a job whose worker was lost.
pub fn judge(policy: &Policy, lost: &LostLease, ending: Ending) -> Decision {
    judge_asked(policy, lost, ending).of(&lost.job, ending)
}

fn judge_asked(policy: &Policy, lost: &LostLease, ending: Ending) -> Decision {
    let job = &lost.job;
    // A worker that is only silent has not died: its jobs are run again, and nobody is blamed.
    let died_in_it = lost.started && lost.worker_gone;
    if died_in_it && job.tally.suspect {
        let message = format!("worker {} died while it ran this task alone", lost.worker);
        let report = FailureReport::message(message).with_code("worker_died");
        return convict(policy, job, report, ending);
    }
    Decision {
        destination: Destination::Queue { due_at: ending.at },
        tally: Tally { suspect: job.tally.suspect || died_in_it, ..job.tally },
        failure: None,
        signal: Signal::Silent,
        kept: None,
        facts: Facts::default(),
    }
}

/// What of jobs that were leased at once may run together in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// All of them.
    All,
    /// Only the one in this place: it is a suspect, and runs alone.
    Alone(usize),
    /// None of them: a suspect is among them, and waits until what runs there already has ended.
    Nothing,
}

/// Decides which of jobs may run together in a process that has `held` others already. A suspect comes before what would run beside it:
/// one that had to wait for an idle process might wait for ever.
pub fn together(jobs: &[LeasedJob], held: u64) -> Together {
    match jobs.iter().position(|job| job.tally.suspect) {
        None => Together::All,
        Some(_) if held > 0 => Together::Nothing,
        Some(place) => Together::Alone(place),
    }
}

/// Counts a crash against a job that is proven to have caused it, and quarantines it when it was the last straw. Until then it
/// runs alone.
pub(crate) fn convict(policy: &Policy, job: &LeasedJob, report: FailureReport, ending: Ending) -> Decision {
    let tally = Tally { crashes: job.tally.crashes.saturating_add(1), suspect: true, ..job.tally };
    let poison = tally.crashes >= policy.crashes_max;
    let reason = if poison { Reason::PoisonPill } else { Reason::HandlerError };
    let mut failure = record(job, report, reason, ending);
    failure.crash = true;
    let destination = if poison {
        Destination::bury(Gate::Review, None)
    } else {
        Destination::Queue { due_at: ending.at + policy.retry.delay(tally.crashes, None, ending.chance) }
    };
    Decision {
        destination,
        tally,
        failure: Some(failure),
        signal: Signal::Answered,
        kept: None,
        facts: Facts::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settlements::tests::{ending, job};
    use crate::settlements::{Outcome, decide};
    use crate::time::Timestamp;

    fn lost(tally: Tally, started: bool) -> LostLease {
        let worker = WorkerId::new(Timestamp::from_millis(0), 9);
        LostLease { job: job(tally), worker, started, worker_gone: true }
    }

    #[test]
    fn three_crashes_are_a_poison_pill() {
        let policy = Policy::default();
        let mut tally = Tally::default();
        for crashes in 1..=3 {
            let decision = decide(&policy, &job(tally), Outcome::Crashed(FailureReport::message("SIGSEGV")), ending());
            tally = decision.tally;
            assert_eq!((tally.crashes, tally.attempts), (crashes, 0), "crashes are counted apart");
            let dead = matches!(decision.destination, Destination::Dead { gate: Gate::Review, .. });
            assert_eq!(dead, crashes == 3);
            let failure = decision.failure.expect("a crash leaves a failure");
            assert!(failure.crash);
            assert_eq!(failure.reason == Reason::PoisonPill, dead);
            assert!(tally.suspect, "it goes on running alone");
        }
    }

    #[test]
    fn jobs_that_never_started_are_not_blamed() {
        let decision = judge(&Policy::default(), &lost(Tally::default(), false), ending());
        assert_eq!((decision.tally, decision.failure), (Tally::default(), None));
    }

    #[test]
    fn sharing_a_worker_makes_a_suspect_and_only_isolation_convicts() {
        let policy = Policy::default();
        let suspected = judge(&policy, &lost(Tally::default(), true), ending());
        assert_eq!((suspected.tally.suspect, suspected.tally.crashes), (true, 0));
        assert_eq!(suspected.failure, None);

        let acquitted = decide(&policy, &job(suspected.tally), Outcome::Done, ending());
        assert!(!acquitted.tally.suspect);

        let mut tally = suspected.tally;
        for crashes in 1..=3 {
            let convicted = judge(&policy, &lost(tally, true), ending());
            assert_eq!(convicted.tally.crashes, crashes);
            assert!(convicted.tally.suspect, "it goes on running alone");
            assert_eq!(matches!(convicted.destination, Destination::Dead { .. }), crashes == 3);
            tally = convicted.tally;
        }
    }

    #[test]
    fn silence_is_no_crash() {
        let suspect = Tally { suspect: true, ..Tally::default() };
        for tally in [Tally::default(), suspect] {
            let silent = LostLease { worker_gone: false, ..lost(tally, true) };
            let decision = judge(&Policy::default(), &silent, ending());
            assert_eq!((decision.tally, decision.failure), (tally, None));
        }
    }

    #[test]
    fn a_suspect_runs_with_nothing_beside_it() {
        let suspect = job(Tally { suspect: true, ..Tally::default() });
        let plain = job(Tally::default());
        let (none, some) = (vec![plain.clone(), plain.clone()], vec![plain, suspect.clone(), suspect]);
        assert_eq!(
            (together(&none, 0), together(&none, 7), together(&[], 1)),
            (Together::All, Together::All, Together::All)
        );
        assert_eq!((together(&some, 0), together(&some, 1)), (Together::Alone(1), Together::Nothing));
    }

    #[test]
    fn a_suspect_that_was_not_started_again_stays_one() {
        let tally = Tally { suspect: true, ..Tally::default() };
        assert_eq!(judge(&Policy::default(), &lost(tally, false), ending()).tally, tally);
    }
}
