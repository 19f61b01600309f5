//! What to look at first: what needs somebody, and where each pipeline stands. All of it is read from roll-ups, so that it costs the
//! same however many letters are dead.
//!
//! - `look`: its parts, each read by itself, and what stands in the head of every page; `gather`: what they are made of

mod gather;
mod look;

use std::time::Duration;

use redrive_core::alerts::{AlertKey, Share};
use redrive_core::ids::PipelineName;
use redrive_core::ledger::Ledger;
use redrive_core::pipelines::{Pause, Standing};
use redrive_core::time::Timestamp;
use redrive_store::contract::{AlertView, CauseView, ReplayView};

pub use self::look::Look;

/// The window of the headline.
pub const LATELY: Duration = Duration::from_secs(10 * 60);

/// How long before they are discarded for their age letters are spoken of.
pub const EXPIRY_AHEAD: Duration = Duration::from_secs(48 * 3_600);

/// What stands in the head of every page.
#[derive(Clone, Debug, Default)]
pub struct Glance {
    /// The pipelines there are.
    pub pipelines: Vec<PipelineName>,
    /// Causes that need somebody; no more than are counted.
    pub causes: usize,
    /// Whether there are more of them.
    pub more_causes: bool,
    /// Replays that have not ended.
    pub replays: usize,
    /// Alerts that fire.
    pub alerts: usize,
    /// Pipelines whose counters do not add up.
    pub unbalanced: Vec<PipelineName>,
    /// Pipelines that people have rest.
    pub paused: Vec<(PipelineName, Pause)>,
}

/// What died lately.
#[derive(Clone, Debug)]
pub struct Lately {
    /// Of all tasks that came to their end lately, those that died.
    pub died: Share,
    /// Letters that recovered lately, whenever they died.
    pub recovered: u64,
    /// The worst of it, if any did.
    pub worst: Option<Worst>,
}

/// What needs somebody.
#[derive(Clone, Debug)]
pub struct Needs {
    /// All of it, the most urgent first.
    pub needs: Vec<Need>,
    /// Causes that need somebody and are not among those; no more than are counted.
    pub other_causes: usize,
    /// Whether there are more of them.
    pub more_causes: bool,
}

/// The pipeline of which most tasks died lately, and of what.
#[derive(Clone, Debug)]
pub struct Worst {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// Of its tasks that came to their end lately, those that died.
    pub died: Share,
    /// Letters of it that recovered lately, whenever they died.
    pub recovered: u64,
    /// The cause that killed most tasks lately.
    pub cause: Option<MainCause>,
}

/// The cause that killed most tasks of a pipeline lately.
#[derive(Clone, Debug)]
pub struct MainCause {
    /// The cause.
    pub cause: CauseView,
    /// Of the tasks that died since `since`, those that died of it.
    pub died: Share,
    /// The first death of the cause. Causes are counted by the hour: the beginning of an hour, if the first death was before that.
    pub since: Timestamp,
}

impl MainCause {
    /// Whether all of its deaths are counted.
    pub fn is_whole(&self) -> bool {
        self.since == self.cause.first_seen
    }
}

/// Something that needs somebody.
#[derive(Clone, Debug)]
pub enum Need {
    /// An alert fires.
    Alert(Box<AlertView>),
    /// A cause is new, came back, escalates, or has no owner.
    Cause(Box<CauseView>),
    /// A replay paused itself.
    Replay(Box<ReplayView>),
    /// Letters of causes that are not resolved will soon be discarded for their age.
    Expiring {
        /// The pipeline.
        pipeline: PipelineName,
        /// How many, of those that were looked at.
        letters: u64,
        /// Whether not all were looked at.
        more: bool,
        /// When the first goes.
        first: Timestamp,
        /// They died before this.
        before: Timestamp,
    },
}

/// A replay that paused itself.
#[derive(Clone, Debug)]
pub struct SelfPaused {
    /// The replay.
    pub replay: ReplayView,
    /// Its alert, by which somebody can say that they have seen it: nothing where that is not watched.
    pub alert: Option<AlertKey>,
}

/// A pipeline in a line.
#[derive(Clone, Debug)]
pub struct PipelineLine {
    /// Its name.
    pub name: PipelineName,
    /// Where it stands.
    pub standing: Standing,
    /// Tasks that were done in each of the last 24 hours, the present one last.
    pub done: Vec<i64>,
    /// Of the tasks that came to their end in the last hour, those that died.
    pub died: Share,
    /// The same in the hour of the clock that this one is, a week ago.
    pub last_week: Share,
    /// Where its tasks are.
    pub ledger: Ledger,
    /// Since when the first of its queue is due.
    pub due_since: Option<Timestamp>,
    /// Workers that are there for it.
    pub workers: usize,
    /// Those among them that cannot work on it for now.
    pub held_workers: usize,
    /// Its pause, if somebody paused it.
    pub pause: Option<Pause>,
}
