//! Workers: what they run, and when one that sends no more heartbeats is taken for gone.
//!
//! Silence is measured by whoever looks, in time that it has watched itself: no clock of another machine is compared, and time in
//! which nobody could look (the store did not answer, the machine slept) does not count.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::definitions::DefinitionVersion;
use crate::ids::{PipelineName, ReplayId, WorkerId};
use crate::time::Timestamp;

/// How often a worker shows that it lives.
pub const BEAT_EVERY: Duration = Duration::from_secs(5);

/// After how long without a heartbeat a worker is taken for gone, unless its process is proven to live.
pub const SILENT_AFTER: Duration = Duration::from_secs(15);

/// After how long without a word a worker that lives elsewhere, or of whose process nothing is known, is not waited for any more.
pub const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

/// At most so much counts between two looks, which are as far apart as heartbeats where many share a server: a longer time was not watched.
const PASSED_MAX: Duration = Duration::from_secs(7);

/// What is known of a worker's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// It lives, as far as is known.
    Alive,
    /// Nothing proves that it lives, and it has sent no heartbeat for too long.
    Silent,
    /// It is gone: the next worker takes over from it.
    Gone,
    /// It is reached through another process.
    Elsewhere,
}

impl Presence {
    /// Decides it, of a worker that is not known to be gone or is, and of its last heartbeat if nothing else proves that it lives.
    pub fn of(alive: bool, remote: bool, unproven: Option<LastBeat>, now: Timestamp) -> Self {
        match (alive, remote) {
            (false, _) => Self::Gone,
            (true, true) => Self::Elsewhere,
            (true, false) if unproven.is_some_and(|beat| now.since(beat.seen_at) > SILENT_AFTER) => Self::Silent,
            (true, false) => Self::Alive,
        }
    }

    /// The name in JSON and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Silent => "silent",
            Self::Gone => "gone",
            Self::Elsewhere => "elsewhere",
        }
    }
}

/// Names the replays that a worker takes letters of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakesReplays {
    /// All of its pipelines. Workers of earlier versions do not say otherwise.
    #[default]
    All,
    /// One.
    One {
        /// Which.
        replay: ReplayId,
    },
    /// None: only their queues.
    None,
}

impl TakesReplays {
    /// Returns true if letters of a replay are among them.
    pub fn takes(self, id: ReplayId) -> bool {
        match self {
            Self::All => true,
            Self::One { replay } => replay == id,
            Self::None => false,
        }
    }

    fn is_all(&self) -> bool {
        *self == Self::All
    }
}

/// A pipeline that a worker works on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// The version of its definition that the worker has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionVersion>,
    /// Set if its jobs wait without end for a target that stays away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_forever: bool,
    /// The replays that the worker takes letters of.
    #[serde(default, skip_serializing_if = "TakesReplays::is_all")]
    pub replays: TakesReplays,
}

/// A worker and its last heartbeat, by the clock of whoever wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastBeat {
    /// The worker.
    pub worker: WorkerId,
    /// When it last showed that it lives.
    pub seen_at: Timestamp,
}

impl LastBeat {
    /// Whether it was so long ago that its worker is not waited for any more, by a clock that need not be the one it was written by.
    pub fn is_forgotten(&self, now: Timestamp) -> bool {
        now.since(self.seen_at) >= FORGOTTEN_AFTER
    }
}

/// How long each worker has been silent, as far as it was watched.
#[derive(Clone, Debug)]
pub struct Silences {
    seen: BTreeMap<WorkerId, (Timestamp, Duration)>,
    after: Duration,
}

impl Default for Silences {
    fn default() -> Self {
        Self::of(SILENT_AFTER)
    }
}

impl Silences {
    /// Silences that count after so long.
    pub const fn of(after: Duration) -> Self {
        Self { seen: BTreeMap::new(), after }
    }

    /// Takes in a look at the last heartbeats, so long after the look before it; says who has been silent for too long.
    pub fn look(&mut self, beats: impl IntoIterator<Item = LastBeat>, passed: Duration) -> Vec<LastBeat> {
        let before = std::mem::take(&mut self.seen);
        let mut silent = Vec::new();
        for beat in beats {
            let since = match before.get(&beat.worker) {
                Some((seen_at, since)) if *seen_at == beat.seen_at => *since + passed.min(PASSED_MAX),
                _ => Duration::ZERO,
            };
            self.seen.insert(beat.worker, (beat.seen_at, since));
            if since >= self.after {
                silent.push(beat);
            }
        }
        silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn beat(n: u128, seen_at: i64) -> LastBeat {
        let seen_at = Timestamp::from_millis(seen_at);
        LastBeat { worker: WorkerId::new(Timestamp::from_millis(0), n), seen_at }
    }

    #[test]
    fn who_is_silent_for_fifteen_seconds_is_gone() {
        let mut silences = Silences::default();
        for _ in 0..15 {
            assert_eq!(silences.look([beat(1, 7)], SECOND), []);
        }
        assert_eq!(silences.look([beat(1, 7)], SECOND), [beat(1, 7)]);
        assert_eq!(silences.look([beat(1, 8)], SECOND), [], "a heartbeat, at whatever time by whatever clock");
    }

    #[test]
    fn who_is_not_proven_to_live_is_silent_after_fifteen_seconds() {
        let seen = |secs: i64| Presence::of(true, false, Some(beat(1, 0)), Timestamp::from_millis(secs * 1_000));
        assert_eq!((seen(15), seen(16)), (Presence::Alive, Presence::Silent));
        let late = Timestamp::from_millis(60_000);
        assert_eq!(Presence::of(true, false, None, late), Presence::Alive, "its process is proven to live");
        assert_eq!(Presence::of(true, true, None, late), Presence::Elsewhere);
        assert_eq!(Presence::of(false, true, Some(beat(1, 0)), late), Presence::Gone);
    }

    #[test]
    fn who_lives_elsewhere_has_ten_minutes() {
        let mut silences = Silences::of(FORGOTTEN_AFTER);
        for _ in 0..600 {
            assert_eq!(silences.look([beat(1, 7)], SECOND), []);
        }
        assert_eq!(silences.look([beat(1, 7)], SECOND), [beat(1, 7)]);
        let after = |secs: u64| beat(1, 0).is_forgotten(Timestamp::from_millis(0) + Duration::from_secs(secs));
        assert!(!after(599) && after(600));
        assert!(!beat(1, 9_000).is_forgotten(Timestamp::from_millis(0)), "its clock is ahead");
    }

    #[test]
    fn time_that_nobody_watched_does_not_count() {
        let mut silences = Silences::default();
        silences.look([beat(1, 7)], SECOND);
        assert_eq!(silences.look([beat(1, 7)], Duration::from_secs(3_600)), [], "the machine slept");
        assert_eq!(silences.look([beat(1, 7)], Duration::from_secs(60)), []);
        assert_eq!(silences.look([beat(1, 7)], Duration::from_secs(60)), [beat(1, 7)]);
    }

    #[test]
    fn who_is_looked_at_every_five_seconds_is_gone_after_fifteen_too() {
        let mut silences = Silences::default();
        for _ in 0..3 {
            assert_eq!(silences.look([beat(1, 7)], BEAT_EVERY), []);
        }
        assert_eq!(silences.look([beat(1, 7)], BEAT_EVERY), [beat(1, 7)]);
    }

    #[test]
    fn who_comes_back_begins_anew() {
        let mut silences = Silences::default();
        (0..15).for_each(|_| drop(silences.look([beat(1, 7), beat(2, 7)], SECOND)));
        silences.look([beat(2, 7)], SECOND);
        assert_eq!(silences.look([beat(1, 7)], SECOND), [], "it was off the list meanwhile");
    }
}
