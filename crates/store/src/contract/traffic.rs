//! Attempts by target, proxy and hour; dead letters by whatever they have in common; which fields records had.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use redrive_core::failures::Reason;
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use serde::Serialize;

use super::dead::DeadFilter;
use crate::error::Result;

/// Counts for analysis. All but [`count_dead`](TrafficStore::count_dead) are read as they were written.
#[async_trait]
pub trait TrafficStore {
    /// Attempts by what they have in common and how they ended.
    async fn traffic(&self, params: CountTraffic) -> Result<Vec<TrafficCount>>;

    /// Dead letters by what they have in common, most first.
    async fn count_dead(&self, params: CountDead) -> Result<Vec<DeadCount>>;

    /// How often each field of a record was found in each hour since a time, in one pipeline or in all.
    async fn coverage(&self, pipeline: Option<PipelineName>, since: Timestamp) -> Result<Vec<CoverageCount>>;

    /// How jobs ended by the value of an input field that their pipeline keeps count of, most failures first.
    async fn tracked(&self, params: ListTracked) -> Result<Vec<TrackedCount>>;

    /// When the oldest dead letter of each pipeline died.
    async fn oldest_dead(&self) -> Result<Vec<(PipelineName, Timestamp)>>;
}

/// Asks for attempts to be counted.
#[derive(Clone, Debug)]
pub struct CountTraffic {
    /// Only of this pipeline.
    pub pipeline: Option<PipelineName>,
    /// Only from this hour on.
    pub since: Timestamp,
    /// By what.
    pub by: TrafficBy,
}

/// What attempts are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficBy {
    /// The target.
    Target,
    /// The proxy's label.
    Proxy,
    /// The hour of the day (UTC).
    Hour,
}

/// Attempts that have something in common and ended in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrafficCount {
    /// What they have in common.
    pub value: String,
    /// Why they failed; none if they did not.
    pub reason: Option<Reason>,
    /// How many.
    pub count: i64,
    /// Those by which a job came to its end for the first time: it was done, or it died.
    pub ended: i64,
}

/// What dead letters are counted by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadBy {
    /// The pipeline.
    Pipeline,
    /// The reason.
    Reason,
    /// The code.
    Code,
    /// The HTTP status.
    Status,
    /// The target.
    Target,
    /// The proxy's label.
    Proxy,
    /// The cause.
    Cause,
    /// The hour of the day (UTC) and the reason.
    Hour,
    /// A field of the input, by JSON pointer.
    Input(String),
}

impl DeadBy {
    /// Those that have a name of their own.
    const NAMED: [(&'static str, Self); 8] = [
        ("pipeline", Self::Pipeline),
        ("reason", Self::Reason),
        ("code", Self::Code),
        ("status", Self::Status),
        ("target", Self::Target),
        ("proxy", Self::Proxy),
        ("cause", Self::Cause),
        ("hour", Self::Hour),
    ];
}

impl fmt::Display for DeadBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, Self::NAMED.iter().find(|(_, by)| by == self)) {
            (Self::Input(pointer), _) if pointer.starts_with('/') => f.write_str(pointer),
            (Self::Input(field), _) => write!(f, "input.{field}"),
            (_, named) => f.write_str(named.map_or("", |(name, _)| name)),
        }
    }
}

impl FromStr for DeadBy {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if let Some((_, by)) = Self::NAMED.into_iter().find(|(name, _)| *name == text) {
            return Ok(by);
        }
        let field = text.strip_prefix("input.").filter(|field| !field.is_empty());
        let pointer = Some(text).filter(|text| text.starts_with('/'));
        let known = "pipeline, reason, code, status, target, proxy, cause, hour or input.FIELD";
        let unknown = || format!("dead letters are not counted by {text:?}: expected {known}");
        field.or(pointer).map(|field| Self::Input(field.to_owned())).ok_or_else(unknown)
    }
}

/// Asks for dead letters to be counted.
#[derive(Clone, Debug)]
pub struct CountDead {
    /// Which.
    pub filter: DeadFilter,
    /// By what.
    pub by: DeadBy,
    /// At most so many rows.
    pub limit: u32,
}

/// Dead letters that have something in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeadCount {
    /// What; none if they lack it.
    pub value: Option<String>,
    /// The reason, where it is counted apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// How many.
    pub count: i64,
    /// How many were counted in all, those that the limit left out among them.
    pub of: i64,
}

/// How often a field was found in an hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CoverageCount {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// The version of its rules.
    pub version: String,
    /// The beginning of the hour.
    pub hour: Timestamp,
    /// The field.
    pub field: String,
    /// Records that had it.
    pub found: i64,
    /// Records that did not.
    pub missing: i64,
}

/// Asks how jobs ended by the value of an input field.
#[derive(Clone, Debug)]
pub struct ListTracked {
    /// Only of this pipeline.
    pub pipeline: Option<PipelineName>,
    /// The field.
    pub field: String,
    /// At most so many.
    pub limit: u32,
}

/// How jobs with one value of an input field ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrackedCount {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// The value.
    pub value: String,
    /// Jobs that are done.
    pub ok: i64,
    /// Jobs that died and were not brought back since.
    pub failed: i64,
}
