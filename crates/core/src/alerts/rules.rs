//! The thresholds above which something is told. Nothing stands for a condition that is not watched.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Condition;
use crate::ids::PipelineName;

/// The thresholds of one pipeline, or of all that have none of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Over how long shares are measured.
    pub window: Duration,
    /// The share of jobs that may die.
    pub rate: Option<f64>,
    /// Jobs that must have died in the window for a share to be told.
    pub died_min: u64,
    /// A second, longer window of `rate`, for pipelines that end few jobs in the first.
    pub long_window: Option<Duration>,
    /// Jobs that must have died in the long window for a share to be told.
    pub long_died_min: u64,
    /// How many times its usual share may die.
    pub jump: Option<f64>,
    /// Letters of a cause that is new, came back or escalates, within two hours.
    pub cause_letters: Option<u64>,
    /// The share of all that died meanwhile that these letters must be.
    pub cause_share: f64,
    /// How long jobs may wait for a failing target.
    pub breaker: Option<Duration>,
    /// Whether replays that paused themselves are told.
    pub replay: bool,
    /// How long jobs may be due while none comes to its end.
    pub stalled: Option<Duration>,
    /// By how much the share of records with a field may fall.
    pub coverage: Option<f64>,
    /// How long before they are discarded letters of unresolved causes are told of.
    pub expiry: Option<Duration>,
    /// Bytes that must be free on the disk of the store.
    pub disk: Option<u64>,
}

impl Rules {
    /// Whether they have a condition.
    pub const fn watch(&self, condition: Condition) -> bool {
        match condition {
            Condition::Rate => self.rate.is_some(),
            Condition::Jump => self.jump.is_some(),
            Condition::Cause => self.cause_letters.is_some(),
            Condition::Breaker => self.breaker.is_some(),
            Condition::Replay => self.replay,
            Condition::Stalled => self.stalled.is_some(),
            Condition::Coverage => self.coverage.is_some(),
            Condition::Expiry => self.expiry.is_some(),
            // The pipeline has the threshold.
            Condition::Letters => true,
            Condition::Disk => self.disk.is_some(),
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        Self {
            window: minutes(15),
            rate: Some(0.005),
            died_min: 5,
            long_window: Some(minutes(24 * 60)),
            long_died_min: 3,
            jump: Some(3.0),
            cause_letters: Some(10),
            cause_share: 0.1,
            breaker: Some(minutes(15)),
            replay: true,
            stalled: Some(minutes(30)),
            coverage: Some(0.2),
            expiry: Some(minutes(3 * 24 * 60)),
            disk: Some(1 << 30),
        }
    }
}

/// The thresholds of all pipelines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleBook {
    /// Of those that have none of their own, and of the store.
    pub all: Rules,
    /// Of those that have.
    pub pipelines: BTreeMap<PipelineName, Rules>,
    /// The pipelines that are judged by them; nothing if all are. Those of others are left alone: whoever knows them judges them. Those
    /// that nobody knows are judged by everybody.
    pub judged: Option<BTreeSet<PipelineName>>,
    /// What the file is known by that has them. An alert belongs to the files whose rules see it: another file neither ends it nor
    /// tells its sinks of it.
    pub file: String,
}

impl RuleBook {
    /// The thresholds of a pipeline.
    pub fn of(&self, pipeline: &PipelineName) -> &Rules {
        self.pipelines.get(pipeline).unwrap_or(&self.all)
    }

    /// Whether a pipeline is judged by them.
    pub fn judges(&self, pipeline: &PipelineName) -> bool {
        self.judged.as_ref().is_none_or(|judged| judged.contains(pipeline))
    }

    /// The longest of a time that rules have, of all pipelines.
    pub fn longest(&self, time: impl Fn(&Rules) -> Duration) -> Duration {
        self.pipelines.values().map(&time).fold(time(&self.all), Duration::max)
    }
}
