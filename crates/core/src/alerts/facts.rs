//! What is judged: numbers that a store has without counting.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::bounds::Share;
use crate::causes::{CauseId, CauseState};
use crate::ids::{PipelineName, ReplayId};
use crate::time::Timestamp;

/// Everything that alerts are judged by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// What is known of each pipeline.
    pub pipelines: BTreeMap<PipelineName, PipelineFacts>,
    /// Pipelines that no file and no command defines: they are known only from what programs report.
    pub undefined: BTreeSet<PipelineName>,
    /// The causes that killed most lately.
    pub causes: Vec<CauseFacts>,
    /// Targets whose breakers are not closed.
    pub breakers: Vec<BreakerFacts>,
    /// Replays that paused themselves.
    pub replays: Vec<ReplayFacts>,
    /// Replays with letters that no worker takes.
    pub untaken: Vec<UntakenReplay>,
    /// How often fields were found.
    pub fields: Vec<FieldFacts>,
    /// Bytes that are free on the disk of the store, where that can be told.
    pub free_bytes: Option<u64>,
}

/// What is known of a pipeline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PipelineFacts {
    /// Of the jobs that came to their end, those that died: by the minute, at least as far back as the window goes.
    pub minutes: Vec<(Timestamp, Share)>,
    /// The same by the hour, for the time before.
    pub hours: Vec<(Timestamp, Share)>,
    /// When a job last came to its end, as far back as minutes go.
    pub ended_at: Option<Timestamp>,
    /// Since when the first job of its queue is due; nothing if none is.
    pub due_since: Option<Timestamp>,
    /// Jobs that are queued.
    pub queued: u64,
    /// How long one attempt may take.
    pub deadline: Duration,
    /// Letters of unresolved causes that will soon be too old.
    pub expiring: Option<Expiring>,
    /// Dead letters.
    pub letters: u64,
    /// Dead letters at which an enqueue is refused.
    pub letters_max: Option<u64>,
}

/// Letters that will soon be discarded for their age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiring {
    /// How many, counted up to a limit.
    pub letters: u64,
    /// Whether there are more than were counted.
    pub more: bool,
    /// When the first goes.
    pub first: Timestamp,
}

/// What is known of a cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CauseFacts {
    /// Which.
    pub id: CauseId,
    /// Its pipeline.
    pub pipeline: PipelineName,
    /// Where it stands.
    pub state: CauseState,
    /// The message of its letters.
    pub title: String,
    /// Letters that died of it in this hour and the one before.
    pub letters: u64,
    /// All letters of its pipeline that died in that time.
    pub died: u64,
}

/// What is known of a target that is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerFacts {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// The target.
    pub target: String,
    /// Since when it is not closed.
    pub since: Timestamp,
    /// Jobs that wait for it.
    pub held: u64,
    /// What opened it.
    pub why: Option<String>,
}

/// A replay that paused itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayFacts {
    /// Which.
    pub id: ReplayId,
    /// What it is called.
    pub name: String,
    /// Why it paused.
    pub why: String,
    /// Letters that failed again.
    pub failed: u64,
}

/// A replay with letters that no worker takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntakenReplay {
    /// Which.
    pub id: ReplayId,
    /// What it is called.
    pub name: String,
    /// The pipelines of which no worker takes letters.
    pub pipelines: BTreeSet<PipelineName>,
    /// When a letter of it was last sent or came to its end, or a person last changed it.
    pub since: Timestamp,
    /// Letters that have not come to their end.
    pub left: u64,
}

/// How often a field of a record was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFacts {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// The field.
    pub field: String,
    /// In this hour and the one before.
    pub recent: Share,
    /// In the day before that.
    pub earlier: Share,
}
