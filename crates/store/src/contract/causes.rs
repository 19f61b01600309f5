//! Causes: groups of dead letters, by impact, and what people say about them.

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::causes::{CauseEdit, CauseFacts, CauseId, CauseRules, CauseSort, CauseState, Likeness, Mute, Trend};
use redrive_core::dead::DeadLetter;
use redrive_core::failures::Reason;
use redrive_core::fingerprint::Part;
use redrive_core::ids::{JobId, PipelineName, ReplayId};
use redrive_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// Causes. They come into being when a job is buried, in the same transaction.
#[async_trait]
pub trait CauseStore {
    /// Causes by impact: those with the most dead letters first. Nothing is counted, only read.
    async fn list_causes(&self, params: ListCauses) -> Result<Vec<CauseView>>;

    /// A cause, by its id or the beginning of it, with everything known of it.
    async fn get_cause(&self, id: CauseId, now: Timestamp) -> Result<CauseDetail>;

    /// The causes that keys belong to, in the order asked, as far as they are known.
    async fn recognise(&self, keys: Vec<String>) -> Result<Vec<Option<CauseId>>>;

    /// The rules that people made by splitting causes. Failures are resolved by them before they are handed over.
    async fn cause_rules(&self) -> Result<CauseRules>;

    /// Letters that may belong to another key than theirs, because the rules changed since they were filed; nothing if there are
    /// none.
    async fn unresolved_letters(&self, limit: u32) -> Result<Option<Unresolved>>;

    /// Brings letters to the keys that they belong to. Says no, and does nothing, if the rules or the key's letters were changed
    /// by somebody else since they were read.
    async fn resolve_letters(&self, params: ResolveLetters) -> Result<bool>;

    /// The causes that killed most since a time, the worst first. What was imported did not die here.
    async fn busiest_causes(&self, params: BusiestCauses) -> Result<Vec<CauseId>>;

    /// How often each of some causes killed a job in each hour since a time.
    async fn cause_hours(&self, ids: Vec<CauseId>, since: Timestamp) -> Result<Vec<CauseHour>>;

    /// A cause, by its id or the beginning of it, as a change of it is decided by.
    async fn cause_facts(&self, params: FindCause) -> Result<CauseFacts>;

    /// Writes a change of causes, if they are as they were when it was decided.
    async fn change_cause(&self, params: ChangeCause) -> Result<CauseChanged>;

    /// The causes that letters of a replay recovered from.
    async fn recovered_causes(&self, replay: ReplayId) -> Result<Vec<CauseId>>;
}

/// Letters of one key that are to be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// The key that they have.
    pub key: String,
    /// How far its letters were looked at before.
    pub was: String,
    /// How far they are when these are; nothing if there are no more.
    pub next: Option<String>,
    /// The letters.
    pub letters: Vec<UnresolvedLetter>,
}

/// What decides which key a letter has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnresolvedLetter {
    /// Which.
    pub id: JobId,
    /// Its target.
    pub target: Option<String>,
    /// The message of its last failure.
    pub message: String,
}

/// Letters of one key that were looked at.
#[derive(Clone, Debug)]
pub struct ResolveLetters {
    /// The key that they had.
    pub key: String,
    /// How far its letters had been looked at.
    pub was: String,
    /// How far they are now; nothing if all were.
    pub next: Option<String>,
    /// The version of the rules that decided.
    pub rules: u64,
    /// The letters.
    pub letters: Vec<ResolvedLetter>,
}

/// A letter that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedLetter {
    /// Which.
    pub id: JobId,
    /// The key that it belongs to, if it is another.
    pub into: Option<String>,
}

/// Asks for the causes that killed most.
#[derive(Clone, Debug)]
pub struct BusiestCauses {
    /// Only of this pipeline.
    pub pipeline: Option<PipelineName>,
    /// Since this time.
    pub since: Timestamp,
    /// At most so many.
    pub limit: u32,
}

/// Asks for causes.
#[derive(Clone, Debug)]
pub struct ListCauses {
    /// Only these; none means any.
    pub ids: Vec<CauseId>,
    /// Only of these pipelines; none means any.
    pub pipelines: Vec<PipelineName>,
    /// Only in one of these states; none means any.
    pub states: Vec<CauseState>,
    /// Only those that [need somebody](CauseState::needs_somebody).
    pub needy: bool,
    /// Only of this owner.
    pub owner: Option<String>,
    /// Whether causes without a dead letter are listed too.
    pub with_empty: bool,
    /// In which order.
    pub sort: CauseSort,
    /// At most so many.
    pub limit: u32,
    /// The time.
    pub now: Timestamp,
}

impl ListCauses {
    /// All causes, also those without a dead letter, those with the most letters first: at most so many.
    pub const fn all(limit: u32, now: Timestamp) -> Self {
        Self {
            ids: Vec::new(),
            pipelines: Vec::new(),
            states: Vec::new(),
            needy: false,
            owner: None,
            with_empty: true,
            sort: CauseSort::Dead,
            limit,
            now,
        }
    }

    /// These causes.
    pub fn these(ids: Vec<CauseId>, now: Timestamp) -> Self {
        let limit = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        Self { ids, ..Self::all(limit, now) }
    }

    /// Whether it is known of a cause that it is wanted only when its state is.
    pub(crate) const fn is_by_state(&self) -> bool {
        self.needy || !self.states.is_empty()
    }

    /// Whether a cause is wanted, by its state.
    pub(crate) fn wants(&self, cause: &CauseView) -> bool {
        (self.states.is_empty() || self.states.contains(&cause.state))
            && (!self.needy || cause.state.needs_somebody(cause.owner.is_some()))
    }
}

/// A cause in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CauseView {
    /// Its id.
    pub id: CauseId,
    /// Where it stands.
    pub state: CauseState,
    /// Its pipeline.
    pub pipeline: PipelineName,
    /// The reason of its letters.
    pub reason: Reason,
    /// Their code, where they have one.
    pub code: Option<String>,
    /// The HTTP status they came with, where there was one.
    pub http_status: Option<u16>,
    /// Their message without what varies.
    pub title: String,
    /// Letters that are dead of it now.
    pub dead: u64,
    /// Those of them that can be worked on from their saved payloads.
    #[serde(default)]
    pub saved: u64,
    /// How many jobs have died of it. Each counts once, by its first death.
    pub total: u64,
    /// How often a dead letter failed of it again, in a replay or elsewhere.
    pub refailed: u64,
    /// Letters that were replayed successfully.
    pub recovered: u64,
    /// Letters that were discarded.
    pub discarded: u64,
    /// How many jobs died of it in each of the last hours; what failed again or was imported is not among them.
    pub trend: Trend,
    /// The targets it hit most, at most three.
    pub targets: Vec<String>,
    /// How many targets it hit.
    pub targets_count: u64,
    /// The address that its newest letter is about, if its input has one (`url`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// When it was first seen.
    pub first_seen: Timestamp,
    /// When it was last seen.
    pub last_seen: Timestamp,
    /// Who looks after it.
    pub owner: Option<String>,
}

/// How often a cause killed a job in an hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CauseHour {
    /// The cause.
    pub cause: CauseId,
    /// The beginning of the hour.
    pub hour: Timestamp,
    /// How often.
    pub count: i64,
    /// Those among them that were imported: they did not die here.
    pub imported: i64,
}

/// All that is known of a cause.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CauseDetail {
    /// The cause.
    #[serde(flatten)]
    pub cause: CauseView,
    /// What its letters have in common, for each of its keys.
    pub keys: Vec<CauseKey>,
    /// Until when it is muted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mute: Option<Mute>,
    /// The newest of its letters.
    pub samples: Vec<DeadLetter>,
    /// What people did and said.
    pub notes: Vec<CauseNote>,
    /// Causes that look alike; whether they are one, a person decides.
    pub alike: Vec<AlikeCause>,
}

/// A key of a cause: what its letters are recognised by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CauseKey {
    /// The key.
    pub key: String,
    /// The parts it was made of.
    pub parts: Vec<Part>,
    /// The message it was first seen with.
    pub sample: String,
    /// Letters that are dead of it now.
    pub dead: u64,
    /// How many jobs have died of it.
    pub total: u64,
}

/// Something that was done to a cause, or said about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CauseNote {
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub by: Actor,
    /// What.
    pub text: String,
}

/// A cause that looks like another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlikeCause {
    /// Which.
    pub id: CauseId,
    /// How much alike, up to 1.
    pub similarity: f64,
    /// Its message without what varies.
    pub title: String,
}

/// Asks for what a change of a cause is decided by.
#[derive(Clone, Debug)]
pub struct FindCause {
    /// Which; the beginning of its id is enough.
    pub id: CauseId,
    /// Which of its keys have letters like that.
    pub like: Option<Likeness>,
}

/// A change of causes that was decided.
#[derive(Clone, Debug)]
pub struct ChangeCause {
    /// What is written, and the guard under which it is.
    pub edit: CauseEdit,
    /// Who wants it.
    pub by: Actor,
    /// The time.
    pub now: Timestamp,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CauseChanged {
    /// It is written.
    Applied,
    /// Somebody else changed the same meanwhile: nothing is written.
    Stale,
    /// The name of a new cause is taken: nothing is written.
    NameTaken,
}
