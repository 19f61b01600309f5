//! What a letter is after it was taken back from a replay that was cancelled: as it was, with what happened to it meanwhile.

use crate::dead::Gate;
use crate::failures::Failure;
use crate::jobs::Tally;

/// A letter that a replay had sent and that nobody works on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent<'a> {
    /// What has happened to it, with the replay counted.
    pub tally: Tally,
    /// Whether an attempt had begun that came to no verdict, because its worker was lost or stopped.
    pub begun: bool,
    /// Whether that attempt ran inside a worker that is gone, and may have taken it down.
    pub in_worker: bool,
    /// The gate it had.
    pub gate: Gate,
    /// What was said of it.
    pub verdict: Option<&'a str>,
    /// Its last failure in this replay, if any attempt of it came to a verdict.
    pub failure: Option<&'a Failure>,
}

/// What it is then. Its reason, code, message and status are those of its last failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdrawn {
    /// Its attempts.
    pub attempts: u32,
    /// Its replays.
    pub replays: u32,
    /// Whether the replay counts: something of it had begun.
    pub counts: bool,
    /// Whether it must run alone when it is replayed.
    pub suspect: bool,
    /// Its gate.
    pub gate: Gate,
    /// What is to be said of it.
    pub verdict: Option<String>,
}

/// Decides what becomes of a letter that is taken back. An attempt that had begun counts, also if nobody saw its end. With
/// as many attempts as its pipeline allows over all replays, it is not replayed by itself any more.
pub fn withdrawn(sent: Sent<'_>, attempts_total_max: u32) -> Withdrawn {
    let Sent { tally, begun, in_worker, gate, verdict, failure } = sent;
    let counts = begun || failure.is_some();
    let attempts = tally.attempts.saturating_add(u32::from(begun));
    let counted = Tally { attempts, ..tally }.counted();
    let cut_short = || format!("attempt {attempts} was cut short, and then the replay was cancelled");
    let failed_gate = failure.map_or(gate, |failure| stricter(gate, failure.reason.defaults().1));
    Withdrawn {
        attempts,
        replays: tally.replays.saturating_sub(u32::from(!counts)),
        counts,
        suspect: tally.suspect || in_worker,
        gate: if counts && counted >= attempts_total_max { stricter(failed_gate, Gate::Review) } else { failed_gate },
        verdict: verdict.map(str::to_owned).or_else(|| begun.then(cut_short)),
    }
}

const fn stricter(one: Gate, other: Gate) -> Gate {
    match (one, other) {
        (Gate::Never, _) | (_, Gate::Never) => Gate::Never,
        (Gate::Review, _) | (_, Gate::Review) => Gate::Review,
        (Gate::Auto, Gate::Auto) => Gate::Auto,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failures::{FailureReport, Reason};
    use crate::settlements::record;
    use crate::settlements::tests::{ending, job};

    fn sent() -> Sent<'static> {
        let tally = Tally { attempts: 4, attempts_before: 4, replays: 1, ..Tally::default() };
        Sent { tally, begun: false, in_worker: false, gate: Gate::Auto, verdict: None, failure: None }
    }

    #[test]
    fn what_was_not_begun_is_as_it_was() {
        let letter = withdrawn(sent(), 6);
        assert_eq!((letter.attempts, letter.replays, letter.counts), (4, 0, false));
        assert_eq!((letter.gate, letter.verdict), (Gate::Auto, None));
    }

    #[test]
    fn what_had_begun_counts() {
        let letter = withdrawn(Sent { begun: true, ..sent() }, 6);
        assert_eq!((letter.attempts, letter.replays, letter.gate), (5, 1, Gate::Auto));
        assert!(letter.verdict.expect("said").contains("attempt 5 was cut short"));
        assert!(!letter.suspect && withdrawn(Sent { begun: true, in_worker: true, ..sent() }, 6).suspect);
        let said = Sent { begun: true, verdict: Some("permanently failed"), gate: Gate::Never, ..sent() };
        assert_eq!(withdrawn(said, 6).verdict.as_deref(), Some("permanently failed"));
    }

    #[test]
    fn what_is_worn_out_is_not_replayed_by_itself() {
        let tally = Tally { attempts: 5, ..sent().tally };
        let letter = withdrawn(Sent { tally, begun: true, ..sent() }, 6);
        assert_eq!((letter.attempts, letter.gate), (6, Gate::Review));
        assert!(!letter.verdict.expect("said").contains("worker"), "a held pipeline gives attempts back, too");
        let strict = withdrawn(Sent { begun: true, ..sent() }, 5);
        assert_eq!((strict.attempts, strict.gate), (5, Gate::Review), "its pipeline allows fewer");
        let untouched = Tally { attempts: 6, attempts_before: 6, ..sent().tally };
        assert_eq!(withdrawn(Sent { tally: untouched, ..sent() }, 6).gate, Gate::Auto, "as it was");
    }

    #[test]
    fn a_failure_of_the_replay_keeps_the_stricter_gate() {
        let failed = |reason| record(&job(sent().tally), FailureReport::message("no"), reason, ending());
        let (blocked, slow) = (failed(Reason::Blocked), failed(Reason::Timeout));
        let tally = Tally { attempts: 5, ..sent().tally };
        let letter = withdrawn(Sent { tally, failure: Some(&blocked), ..sent() }, 6);
        assert_eq!((letter.attempts, letter.replays, letter.gate), (5, 1, Gate::Review));
        let never = Sent { tally, gate: Gate::Never, failure: Some(&slow), ..sent() };
        assert_eq!(withdrawn(never, 6).gate, Gate::Never);
    }
}
