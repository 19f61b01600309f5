//! What happened to jobs over time: by the minute for the last hours, by the hour before.

use async_trait::async_trait;
use redrive_core::counts::Event;
use redrive_core::failures::Reason;
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use serde::Serialize;

use super::leader::Led;
use crate::error::Result;

/// Counts of events. What is counted is decided by `redrive_core::counts`.
#[async_trait]
pub trait CountStore {
    /// How often what happened since a time, oldest first. Exact at every moment, folded or not.
    async fn counts(&self, params: CountEvents) -> Result<Vec<EventCount>>;

    /// How often what has happened since the store was made: forgotten or not, it only grows.
    async fn event_totals(&self) -> Result<Vec<EventTotal>>;

    /// Folds minutes before a time into their hours, so many rows at a time; says whether there are more.
    async fn fold_counts(&self, params: FoldCounts) -> Result<bool>;
}

/// Asks how often things happened.
#[derive(Clone, Debug)]
pub struct CountEvents {
    /// Only in this pipeline.
    pub pipeline: Option<PipelineName>,
    /// From the span on that this is in.
    pub since: Timestamp,
    /// Before the span that this is in, if there is an end.
    pub until: Option<Timestamp>,
    /// By which span of time.
    pub by: Span,
}

impl CountEvents {
    /// All of them since a time.
    pub const fn since(since: Timestamp, by: Span) -> Self {
        Self { pipeline: None, since, until: None, by }
    }

    /// Those of one pipeline.
    pub fn of(self, pipeline: PipelineName) -> Self {
        Self { pipeline: Some(pipeline), ..self }
    }

    /// The numbers of the first span and of the one after the last.
    pub(crate) fn spans(&self) -> (i64, i64) {
        let number = match self.by {
            Span::Minute => Timestamp::minute,
            Span::Hour => Timestamp::hour,
        };
        let end = self.until.unwrap_or(Timestamp::from_millis(i64::MAX));
        (number(self.since), number(end))
    }
}

/// A span of time by which events are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Minutes, as far as they are not folded.
    Minute,
    /// Hours.
    Hour,
}

/// How often something happened in a span of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventCount {
    /// The beginning of the span.
    pub at: Timestamp,
    /// The pipeline.
    pub pipeline: PipelineName,
    /// What happened.
    pub event: Event,
    /// For what reason, where there is one.
    pub reason: Option<Reason>,
    /// How often.
    pub count: i64,
}

impl EventCount {
    /// How many tasks it adds to those that were done, each once: what recovered came to its end before, when it died.
    pub const fn done_once(&self) -> i64 {
        match self.event {
            Event::Done => self.count,
            Event::Recovered => -self.count,
            _ => 0,
        }
    }

    /// How many tasks it adds to those that died, each once.
    pub const fn died_once(&self) -> i64 {
        if matches!(self.event, Event::Buried) { self.count } else { 0 }
    }
}

/// How often something has ever happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventTotal {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// What happened.
    pub event: Event,
    /// For what reason, where there is one.
    pub reason: Option<Reason>,
    /// How often.
    pub count: i64,
}

/// Asks for minutes to be folded.
#[derive(Clone, Debug)]
pub struct FoldCounts {
    /// Those before the hour that this is in.
    pub before: Timestamp,
    /// At most so many rows.
    pub limit: u32,
    /// The right to do so, where it is for the leader to do.
    pub led: Option<Led>,
}
