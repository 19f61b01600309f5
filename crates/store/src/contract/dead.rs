//! Dead letters: looking at them, giving them up, carrying them between stores.

use std::sync::Arc;

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::causes::{CauseId, CauseRules, Print};
use redrive_core::dead::import::{Arrival, Way};
use redrive_core::dead::{DeadLetter, Gate, LetterSort};
use redrive_core::failures::Reason;
use redrive_core::ids::{JobId, PipelineName, RoundName};
use redrive_core::time::Timestamp;
use redrive_core::tokens::PipelinePattern;

use serde::{Deserialize, Serialize};

use super::leader::Led;
use super::pages::Page;
use crate::error::Result;

/// Dead letters.
#[async_trait]
pub trait DeadStore {
    /// A page of dead letters, newest first.
    async fn list_dead(&self, params: ListDead) -> Result<Page<DeadLetter>>;

    /// Looks through dead letters, newest first, as many of them as it is told to at most: none has to be looked at twice, and
    /// nobody waits until all of them are.
    async fn search_dead(&self, params: SearchDead) -> Result<SearchedDead>;

    /// One dead letter with all its failures.
    async fn get_dead(&self, id: JobId) -> Result<Option<DeadLetter>>;

    /// Discards dead letters, with a record; says which it discarded. More than [`IDS_MAX`](super::IDS_MAX) at once are refused.
    async fn discard_dead(&self, params: DiscardDead) -> Result<Vec<JobId>>;

    /// Discards dead letters that were kept (since they died, or were imported) for longer than they may be, oldest first, with a record; says how many.
    async fn expire_dead(&self, params: ExpireDead) -> Result<u64>;

    /// Takes in dead letters of another store, or that programs report, as `redrive_core::dead::import` decides; says what became of
    /// each. Taking in the same letters again changes nothing.
    async fn import_dead(&self, params: ImportDead) -> Result<Vec<Arrival>>;
}

/// Which dead letters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeadFilter {
    /// Only of this pipeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<PipelineName>,
    /// Only of the pipelines that one of these means; none means any. It is of who asks, and never kept.
    #[serde(skip)]
    pub within: Vec<PipelinePattern>,
    /// Only of this round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<RoundName>,
    /// Only those that died for this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Only with this code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Only of this target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Only of this cause; the beginning of its id is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<CauseId>,
    /// Only through this proxy, by its label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Only with this gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// Only those that died at or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Only those that died before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Only those with this text in their key, message or input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl DeadFilter {
    /// The part of it by which an index finds letters in their order. What it says besides is looked for in them, one by one.
    pub fn indexed(&self) -> Self {
        let by_time = Self { within: self.within.clone(), since: self.since, until: self.until, ..Self::default() };
        match self {
            Self { cause: Some(cause), .. } => Self { cause: Some(cause.clone()), ..by_time },
            Self { target: Some(target), .. } => Self { target: Some(target.clone()), ..by_time },
            Self { code: Some(code), .. } => Self { code: Some(code.clone()), ..by_time },
            Self { proxy: Some(proxy), .. } => Self { proxy: Some(proxy.clone()), ..by_time },
            Self { reason: Some(reason), .. } => Self { reason: Some(*reason), ..by_time },
            Self { pipeline, .. } => Self { pipeline: pipeline.clone(), ..by_time },
        }
    }

    /// Whether it lets everything through.
    pub const fn is_empty(&self) -> bool {
        self.pipeline.is_none()
            && self.within.is_empty()
            && self.round.is_none()
            && self.reason.is_none()
            && self.code.is_none()
            && self.target.is_none()
            && self.cause.is_none()
            && self.proxy.is_none()
            && self.gate.is_none()
            && self.since.is_none()
            && self.until.is_none()
            && self.text.is_none()
    }
}

/// Asks for a page of dead letters.
#[derive(Clone, Debug)]
pub struct ListDead {
    /// Which.
    pub filter: DeadFilter,
    /// Which come first.
    pub sort: LetterSort,
    /// At most so many.
    pub limit: u32,
    /// Where to go on.
    pub cursor: Option<String>,
    /// Whether each comes with all its failures.
    pub with_failures: bool,
}

impl ListDead {
    /// The newest letters, without their failures.
    pub const fn newest(filter: DeadFilter, limit: u32) -> Self {
        Self { filter, sort: LetterSort::Newest, limit, cursor: None, with_failures: false }
    }
}

/// Asks for some dead letters to be looked through.
#[derive(Clone, Debug)]
pub struct SearchDead {
    /// Which. By [a part of it](DeadFilter::indexed) they are found, and looked at for the rest.
    pub filter: DeadFilter,
    /// Which are looked at first.
    pub sort: LetterSort,
    /// At most so many are found.
    pub limit: u32,
    /// At most so many are looked at.
    pub look_at: u32,
    /// Where to go on.
    pub cursor: Option<String>,
}

/// What came of looking through some dead letters.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchedDead {
    /// Those that are like that, in that order.
    pub letters: Vec<DeadLetter>,
    /// How many were looked at.
    pub looked_at: u64,
    /// Where to go on; nothing if all were looked at.
    pub next: Option<String>,
}

/// Asks for dead letters to be discarded.
#[derive(Clone, Debug)]
pub struct DiscardDead {
    /// Which: at most [`IDS_MAX`](super::IDS_MAX).
    pub ids: Vec<JobId>,
    /// Who wants it.
    pub by: Actor,
    /// Why.
    pub why: String,
    /// The time.
    pub now: Timestamp,
}

/// Asks for old dead letters to be discarded.
#[derive(Clone, Debug)]
pub struct ExpireDead {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// Those that died, or were imported, before this time.
    pub before: Timestamp,
    /// At most so many.
    pub limit: u32,
    /// The right to do so, where it is for the leader to do.
    pub led: Option<Led>,
    /// The time.
    pub now: Timestamp,
}

/// Brings dead letters of another store or program.
#[derive(Clone, Debug)]
pub struct ImportDead {
    /// The letters, checked at the door and shared by the layers that they pass.
    pub letters: Arc<Vec<BroughtLetter>>,
    /// Who brings them.
    pub by: Actor,
    /// The time.
    pub now: Timestamp,
}

/// A dead letter of another store or program.
#[derive(Clone, Debug)]
pub struct BroughtLetter {
    /// The letter, with its failures.
    pub letter: DeadLetter,
    /// What it is recognised by here.
    pub print: Print,
    /// How it comes.
    pub way: Way,
    /// Fields of its input that the pipeline keeps count of, with their values. What was imported is not counted by them.
    pub tracked: Vec<(String, String)>,
}

impl BroughtLetter {
    /// An imported letter that says when it died, as the rules of this store recognise it; nothing if it has no failure to be recognised by.
    pub fn recognised(letter: DeadLetter, rules: &CauseRules) -> Option<Self> {
        let print = Print::of_letter(&letter, rules)?;
        Some(Self { letter, print, way: Way::Imported { dated: true }, tracked: Vec::new() })
    }
}
