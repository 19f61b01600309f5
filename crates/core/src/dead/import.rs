//! Taking in dead letters of another store, or that programs report as their jobs fail: what is refused at the door, and what
//! becomes of a letter whose id or key is known here already. A job is worked on once: a known key never becomes a second letter, and
//! the same letters taken in again change nothing.

use std::time::Duration;

use super::{DeadLetter, Gate};
use crate::failures::Failure;
use crate::ids::JobId;
use crate::jobs::{ORIGIN_BYTES_MAX, Origin, TASK_ID_BYTES_MAX, UnfitKey, check_key, kept_name};
use crate::state::JobState;
use crate::time::Timestamp;

/// The most attempts, crashes or replays that a letter may have had elsewhere.
pub const COUNT_MAX: u32 = 1_000_000;

/// How long it is known which failures were reported of which job: what was reported waits in the spools of clients for days at most.
const REPORTS_KEPT: Duration = Duration::from_secs(30 * 86_400);

/// The most failures that are kept of a job that programs report again and again: its first, and its last ones.
pub const FAILURES_MAX: u32 = 100;

/// How far the clock of another machine may be ahead.
const AHEAD_MAX: Duration = Duration::from_secs(86_400);

/// Why a letter is not taken in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A letter of a plain list has lost its failures, and would look as if it never failed.
    #[error("it has no failures: only a whole export can be taken in, not a list")]
    NoFailures,
    /// A key that no job here could have.
    #[error("key {0}")]
    Key(UnfitKey),
    /// A task id that no attempt here could have left.
    #[error("task_id is longer than {TASK_ID_BYTES_MAX} bytes")]
    TaskIdTooLong,
    /// More about where it came from than is kept.
    #[error("origin is longer than {ORIGIN_BYTES_MAX} bytes")]
    OriginTooLong,
    /// A key that says nothing.
    #[error("key is empty: leave it out, or give one")]
    KeyEmpty,
    /// A number that cannot be a count of one job.
    #[error("{field} is {found}: at most {COUNT_MAX} is believed")]
    TooMany {
        /// Which.
        field: &'static str,
        /// The number.
        found: u32,
    },
    /// A death that has not happened.
    #[error("died_at is {0}, which is in the future")]
    DiesLater(Timestamp),
}

impl Unfit {
    /// The field that is wrong, if one is.
    pub const fn field(&self) -> Option<&'static str> {
        match self {
            Self::NoFailures => None,
            Self::Key(_) | Self::KeyEmpty => Some("key"),
            Self::TaskIdTooLong => Some("task_id"),
            Self::OriginTooLong => Some("origin"),
            Self::TooMany { field, .. } => Some(field),
            Self::DiesLater(_) => Some("died_at"),
        }
    }
}

/// Checks a letter at the door.
pub fn check(letter: &DeadLetter, now: Timestamp) -> Result<(), Unfit> {
    if letter.failures.as_ref().is_none_or(Vec::is_empty) {
        return Err(Unfit::NoFailures);
    }
    match letter.key.as_deref() {
        Some("") => return Err(Unfit::KeyEmpty),
        Some(key) => check_key(key).map_err(Unfit::Key)?,
        None => {}
    }
    if letter.task_id.as_ref().is_some_and(|id| id.len() > TASK_ID_BYTES_MAX) {
        return Err(Unfit::TaskIdTooLong);
    }
    if letter.origin.as_ref().is_some_and(|origin| serde_json::json!(origin).to_string().len() > ORIGIN_BYTES_MAX) {
        return Err(Unfit::OriginTooLong);
    }
    let counts = [("attempts", letter.attempts), ("crashes", letter.crashes), ("replays", letter.replays)];
    if let Some((field, found)) = counts.into_iter().find(|(_, found)| *found > COUNT_MAX) {
        return Err(Unfit::TooMany { field, found });
    }
    if letter.died_at.since(now) > AHEAD_MAX {
        return Err(Unfit::DiesLater(letter.died_at));
    }
    Ok(())
}

/// A letter as it is taken in: it says that it came from elsewhere, unless it says from where. Names are as long as those of jobs that
/// failed here.
pub fn received(letter: DeadLetter) -> DeadLetter {
    let elsewhere = || Origin::here("import");
    let uncounted = letter.uncounted.min(letter.attempts);
    let mut letter = DeadLetter { uncounted, origin: Some(letter.origin.clone().unwrap_or_else(elsewhere)), ..letter };
    let failures = letter.failures.iter_mut().flatten();
    let names = failures.flat_map(|failure| [&mut failure.code, &mut failure.target, &mut failure.proxy]);
    for name in names.chain([&mut letter.code, &mut letter.target, &mut letter.proxy]) {
        *name = name.take().map(kept_name);
    }
    letter
}

/// How a letter comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From another store, or a file of another program: it did not die here, and may be known for long.
    Imported {
        /// Whether it says when it died.
        dated: bool,
    },
    /// A program reports it as its job fails: each letter is one failure, and its id is that failure's own.
    Reported,
}

/// The job that has a letter's id, or else its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its id.
    pub id: JobId,
    /// Whether the letter is the job itself, or was reported of it before.
    pub is_same: bool,
    /// Where it is.
    pub state: JobState,
    /// When it came to its end, if it did.
    pub ended_at: Option<Timestamp>,
}

/// What becomes of a letter that arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is taken in.
    New,
    /// The letter that is here failed once more since.
    FailedAgain(JobId),
    /// The job that has its key waits or runs here, or died later than this: its history has one failure more.
    FailedBesides(JobId),
    /// It is here already, and nothing of it is news.
    Known(JobId),
    /// Its key belongs to another job: it is passed over.
    KeyTaken {
        /// That job.
        id: JobId,
        /// Where it is.
        state: JobState,
    },
}

/// Decides what becomes of a letter.
pub fn arrival(letter: &DeadLetter, way: Way, holder: Option<&Holder>) -> Arrival {
    let Some(holder) = holder else { return Arrival::New };
    match way {
        Way::Imported { dated } => arrival_of_import(letter, dated, holder),
        Way::Reported => arrival_of_report(letter, holder),
    }
}

/// One that does not say when it died is no news of a letter that is here.
fn arrival_of_import(letter: &DeadLetter, dated: bool, holder: &Holder) -> Arrival {
    let Holder { id, state, ended_at, is_same } = *holder;
    if dated && state == JobState::Dead && ended_at.is_some_and(|died_at| letter.died_at > died_at) {
        return Arrival::FailedAgain(id);
    }
    if is_same { Arrival::Known(id) } else { Arrival::KeyTaken { id, state } }
}

/// Who reports knows what happened: a job that came to its end here has failed in another life, and its key is the new letter's.
fn arrival_of_report(letter: &DeadLetter, holder: &Holder) -> Arrival {
    let Holder { id, state, ended_at, is_same } = *holder;
    match state {
        _ if is_same => Arrival::Known(id),
        JobState::Dead if ended_at.is_none_or(|died_at| letter.died_at >= died_at) => Arrival::FailedAgain(id),
        JobState::Dead | JobState::Queued | JobState::Leased => Arrival::FailedBesides(id),
        JobState::Done | JobState::Discarded => Arrival::New,
    }
}

/// Of failures that were reported before this time it is no longer known.
pub fn forget_reports_before(now: Timestamp) -> Timestamp {
    now - REPORTS_KEPT
}

/// What a letter says after it failed again elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Grown<'a> {
    /// What is added to its history.
    pub failures: Vec<&'a Failure>,
    /// Its attempts then.
    pub attempts: u32,
    /// Of those, the ones that do not count towards the cap.
    pub uncounted: u32,
    /// Its crashes then.
    pub crashes: u32,
    /// Its replays then.
    pub replays: u32,
    /// Its gate then: what may be done only by force stays so.
    pub gate: Gate,
    /// What is to be said of it then.
    pub verdict: Option<&'a str>,
}

/// The letter that is here, after the one that arrived. If it is the same letter, its own counts hold and all that is new of
/// its history is added; if another job elsewhere had its key, that job's last failure is one failure more.
pub fn grown<'a>(here: &'a DeadLetter, arrived: &'a DeadLetter) -> Grown<'a> {
    let same = here.id == arrived.id;
    let history = arrived.failures.as_deref().unwrap_or_default();
    let mut failures: Vec<_> = history.iter().filter(|failure| same && failure.at > here.died_at).collect();
    if failures.is_empty() {
        failures.extend(history.last());
    }
    let crashed = failures.last().is_some_and(|last| last.crash);
    let (attempts, crashes) = match same {
        true => (arrived.attempts.max(here.attempts), arrived.crashes.max(here.crashes)),
        false => (here.attempts.saturating_add(u32::from(!crashed)), here.crashes.saturating_add(u32::from(crashed))),
    };
    let source = if here.gate == Gate::Never { here } else { arrived };
    Grown {
        failures,
        attempts,
        uncounted: if same { arrived.uncounted.max(here.uncounted) } else { here.uncounted },
        crashes,
        replays: if same { arrived.replays.max(here.replays) } else { here.replays },
        gate: source.gate,
        verdict: source.verdict.as_deref(),
    }
}

/// Whether a letter that failed again elsewhere takes the payload of its last failure there: not one whose bytes are not here, if it
/// has another.
pub fn takes_payload(here: &DeadLetter, is_here: bool) -> bool {
    is_here || here.payload.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn letter(n: u128, died_at: i64) -> DeadLetter {
        let time = |secs: i64| Timestamp::from_millis(secs * 1_000);
        let failure = json!({"at": time(died_at), "attempt": 1, "replay": 0, "reason": "timeout", "message": "slow"});
        serde_json::from_value(json!({
            "id": JobId::new(time(0), n), "pipeline": "p", "key": "k", "input": {}, "reason": "timeout", "message": "slow",
            "attempts": 4, "crashes": 1, "replays": 0, "gate": "auto", "accepted_at": time(0), "died_at": time(died_at),
            "failures": [failure],
        }))
        .expect("a letter")
    }

    /// The job that is found for a letter.
    fn holder(of: &DeadLetter, here: &DeadLetter, state: JobState) -> Holder {
        Holder { id: here.id, is_same: of.id == here.id, state, ended_at: Some(here.died_at) }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let now = Timestamp::from_millis(10_000);
        assert_eq!(check(&letter(1, 5), now), Ok(()));
        let long = DeadLetter { key: Some("x".repeat(513)), ..letter(1, 5) };
        assert_eq!(check(&long, now), Err(Unfit::Key(UnfitKey::TooLong)));
        let zero = DeadLetter { key: Some("k\0".to_owned()), ..letter(1, 5) };
        assert_eq!(check(&zero, now), Err(Unfit::Key(UnfitKey::Zero)));
        assert_eq!(check(&DeadLetter { key: Some(String::new()), ..letter(1, 5) }, now), Err(Unfit::KeyEmpty));
        let task_id = Some("x".repeat(TASK_ID_BYTES_MAX + 1));
        assert_eq!(check(&DeadLetter { task_id, ..letter(1, 5) }, now), Err(Unfit::TaskIdTooLong));
        let origin = serde_json::from_value(json!({"kind": "x", "more": "x".repeat(ORIGIN_BYTES_MAX)})).ok();
        assert_eq!(check(&DeadLetter { origin, ..letter(1, 5) }, now), Err(Unfit::OriginTooLong));
        assert_eq!(check(&DeadLetter { failures: Some(Vec::new()), ..letter(1, 5) }, now), Err(Unfit::NoFailures));
        let worn = DeadLetter { replays: u32::MAX, ..letter(1, 5) };
        assert_eq!(check(&worn, now), Err(Unfit::TooMany { field: "replays", found: u32::MAX }));
        assert!(matches!(check(&letter(1, 86_400 * 3), now), Err(Unfit::DiesLater(_))));
    }

    #[test]
    fn a_letter_says_that_it_came_from_elsewhere() {
        assert_eq!(received(letter(1, 5)).origin.map(|origin| origin.kind).as_deref(), Some("import"));
        let origin = serde_json::from_value(json!({"kind": "celery", "group": "q"})).ok();
        let told = DeadLetter { origin: origin.clone(), ..letter(1, 5) };
        assert_eq!(received(told).origin, origin, "it knows better");
    }

    #[test]
    fn a_known_key_never_becomes_a_second_letter() {
        let (old, new) = (letter(1, 5), letter(2, 9));
        let arrives = |letter: &DeadLetter, here: &DeadLetter, dated, state| {
            arrival(letter, Way::Imported { dated }, Some(&holder(letter, here, state)))
        };
        assert_eq!(arrival(&new, Way::Imported { dated: true }, None), Arrival::New);
        assert_eq!(arrives(&new, &old, true, JobState::Dead), Arrival::FailedAgain(old.id));
        assert_eq!(arrives(&letter(1, 9), &old, false, JobState::Dead), Arrival::Known(old.id));
        let taken = |state| Arrival::KeyTaken { id: new.id, state };
        assert_eq!(arrives(&old, &new, true, JobState::Dead), taken(JobState::Dead));
        for state in [JobState::Queued, JobState::Leased, JobState::Done, JobState::Discarded] {
            assert_eq!(arrives(&letter(3, 99), &new, true, state), taken(state), "{state}");
        }
        assert_eq!(arrives(&old, &old, true, JobState::Dead), Arrival::Known(old.id));
    }

    #[test]
    fn each_report_is_a_failure_more_and_a_job_that_ended_is_another_one() {
        let (old, new) = (letter(1, 5), letter(2, 9));
        let arrives = |letter: &DeadLetter, state| arrival(letter, Way::Reported, Some(&holder(letter, &old, state)));
        assert_eq!(arrival(&new, Way::Reported, None), Arrival::New);
        assert_eq!(arrives(&new, JobState::Dead), Arrival::FailedAgain(old.id));
        assert_eq!(arrives(&letter(3, 4), JobState::Dead), Arrival::FailedBesides(old.id), "it comes late");
        for state in [JobState::Queued, JobState::Leased] {
            assert_eq!(arrives(&new, state), Arrival::FailedBesides(old.id), "{state}");
        }
        for state in [JobState::Done, JobState::Discarded] {
            assert_eq!(arrives(&new, state), Arrival::New, "{state}");
            assert_eq!(arrives(&old, state), Arrival::Known(old.id), "{state}");
        }
    }

    #[test]
    fn a_payload_that_is_here_is_not_given_up_for_one_that_is_not() {
        let (bare, mut kept) = (letter(1, 5), letter(1, 5));
        kept.payload = Some(crate::payloads::PayloadHash::from_bytes([1; 32]));
        assert!(takes_payload(&bare, false) && takes_payload(&bare, true) && takes_payload(&kept, true));
        assert!(!takes_payload(&kept, false));
    }

    #[test]
    fn counts_saturate_and_force_stays_needed() {
        let here = DeadLetter { attempts: u32::MAX, gate: Gate::Never, ..letter(1, 5) };
        let arrived = letter(2, 9);
        let grown = grown(&here, &arrived);
        assert_eq!((grown.attempts, grown.crashes, grown.gate), (u32::MAX, 1, Gate::Never));
        assert_eq!(grown.failures.len(), 1);
    }

    #[test]
    fn the_same_letter_brings_all_that_is_new_of_it() {
        let here = letter(1, 5);
        let mut later = letter(1, 9);
        let failures = [5, 7, 9].map(|secs| letter(1, secs).failures.expect("failures").remove(0));
        later.failures = Some(failures.to_vec());
        later.attempts = 6;
        let grown = grown(&here, &later);
        assert_eq!((grown.failures.len(), grown.attempts), (2, 6));
    }
}
