//! Replays: choosing dead letters, sending them through their pipeline again, and what becomes of each.

use std::collections::BTreeMap;

use async_trait::async_trait;
use redrive_core::causes::CauseId;
use redrive_core::dead::DeadLetter;
use redrive_core::failures::Reason;
use redrive_core::ids::{JobId, PipelineName, ReplayId};
use redrive_core::jobs::Input;
use redrive_core::replays::{Advance, Exclusion, LetterState, Pacing, Progress, ReplayMode, ReplayState};
use redrive_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::dead::DeadFilter;
use super::pages::Page;
use crate::error::Result;

/// Replays. The row of a replay and its letters exist before anything happens to a letter.
#[async_trait]
pub trait ReplayStore {
    /// Says what a replay would send and what not; nothing happens.
    async fn plan_replay(&self, params: PlanReplay) -> Result<ReplayPlan>;

    /// A page of the letters that a plan would send, with their failures, newest first.
    async fn list_chosen(&self, params: ListChosen) -> Result<Page<DeadLetter>>;

    /// Chooses the letters and claims each: no other replay gets them. Letters that die later are not among them.
    async fn start_replay(&self, params: StartReplay) -> Result<ReplayPlan>;

    /// Sends the letters whose turn it is, pauses or finishes the replay, and says what was done.
    async fn advance_replay(&self, id: ReplayId, now: Timestamp) -> Result<Advance>;

    /// Replays, newest first.
    async fn list_replays(&self, params: ListReplays) -> Result<Page<ReplayView>>;

    /// A replay.
    async fn get_replay(&self, id: ReplayId) -> Result<Option<ReplayView>>;

    /// Letters that a replay's choice would find now and that died after it was made.
    async fn joined_since(&self, id: ReplayId) -> Result<u64>;

    /// The letters of a replay and what became of them, in their order.
    async fn list_replay_letters(&self, params: ListReplayLetters) -> Result<Page<ReplayLetter>>;

    /// Pauses, resumes or cancels a replay; says whether that was possible in the state it is in.
    async fn change_replay(&self, params: ChangeReplay) -> Result<bool>;

    /// Claims the turn to replay letters by themselves: true for one caller per interval.
    async fn claim_auto_replay(&self, params: ClaimAutoReplay) -> Result<bool>;
}

/// Which dead letters: all that a filter finds, or those with an id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// What they have in common.
    #[serde(flatten)]
    pub filter: DeadFilter,
    /// Which they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<JobId>,
}

impl Selection {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.filter.is_empty() && self.ids.is_empty()
    }
}

/// Asks what a replay would do.
#[derive(Clone, Debug)]
pub struct PlanReplay {
    /// Which letters.
    pub selection: Selection,
    /// What they are to be worked from.
    pub mode: ReplayMode,
    /// Whether letters that failed permanently go too.
    pub force: bool,
    /// The limits of a replay that nobody asked for.
    pub automatic: Option<Automatic>,
    /// The time.
    pub now: Timestamp,
    /// This machine: payloads that wait in the spool of another cannot be read here.
    pub host: String,
}

/// Asks for the letters that a plan would send.
#[derive(Clone, Debug)]
pub struct ListChosen {
    /// The plan.
    pub plan: PlanReplay,
    /// At most so many.
    pub limit: u32,
    /// Where to go on.
    pub cursor: Option<String>,
}

/// The limits of a replay that nobody asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Automatic {
    /// How often a letter may be replayed so.
    pub times_max: u32,
    /// How many letters at once.
    pub letters_max: u32,
}

/// What a replay would send, and what not.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReplayPlan {
    /// Letters that were found.
    pub matched: u64,
    /// Letters that would be sent.
    pub included: u64,
    /// Letters that would not, and why.
    pub excluded: BTreeMap<Exclusion, u64>,
    /// Letters that would be sent, by pipeline.
    pub pipelines: BTreeMap<PipelineName, u64>,
    /// Letters that would be sent, by gate.
    pub gates: BTreeMap<String, u64>,
    /// Letters that would be sent, by the reason they died for.
    pub reasons: BTreeMap<Reason, u64>,
    /// Letters that could be worked on from their saved payload.
    pub with_payload: u64,
}

/// Asks for a replay to be made.
#[derive(Clone, Debug)]
pub struct StartReplay {
    /// Its id.
    pub id: ReplayId,
    /// What it is called.
    pub name: String,
    /// Who wants it.
    pub actor: String,
    /// Which letters, and from what.
    pub plan: PlanReplay,
    /// Why letters that failed permanently go too.
    pub force_why: Option<String>,
    /// How fast.
    pub pacing: Pacing,
    /// Fields of the input to change before each letter is sent.
    pub edits: Input,
}

/// Which replays to list.
#[derive(Clone, Debug, Default)]
pub struct ListReplays {
    /// Only those that have not come to their end.
    pub open_only: bool,
    /// At most so many.
    pub limit: u32,
    /// Where to go on.
    pub cursor: Option<String>,
}

/// A replay as others see it.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayView {
    /// Its id.
    pub id: ReplayId,
    /// What it is called.
    pub name: String,
    /// Who wanted it.
    pub actor: String,
    /// Where it is.
    pub state: ReplayState,
    /// Why it is paused or was cancelled.
    pub why: Option<String>,
    /// What letters are worked on from.
    pub mode: ReplayMode,
    /// Why letters that failed permanently go too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_why: Option<String>,
    /// Whether nobody asked for it.
    pub automatic: bool,
    /// How the letters were chosen.
    pub selection: Selection,
    /// How fast it goes.
    pub pacing: Pacing,
    /// What is changed in each input.
    pub edits: Input,
    /// Letters that were found and left out, and why.
    pub excluded: BTreeMap<Exclusion, u64>,
    /// How far it is.
    pub progress: Progress,
    /// The pipelines of its letters.
    pub pipelines: Vec<PipelineName>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it came to its end.
    pub finished_at: Option<Timestamp>,
}

impl ReplayView {
    /// Whether workers have something to do for it.
    pub const fn is_open(&self) -> bool {
        self.finished_at.is_none()
    }
}

/// Asks for the letters of a replay.
#[derive(Clone, Debug)]
pub struct ListReplayLetters {
    /// Which replay.
    pub id: ReplayId,
    /// Only with this outcome.
    pub state: Option<LetterState>,
    /// At most so many.
    pub limit: u32,
    /// Where to go on.
    pub cursor: Option<String>,
}

/// A letter of a replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayLetter {
    /// The job.
    pub id: JobId,
    /// Its pipeline.
    pub pipeline: PipelineName,
    /// What became of it.
    pub state: LetterState,
    /// The cause it was dead of.
    pub cause: Option<CauseId>,
    /// The cause it failed for then.
    pub cause_after: Option<CauseId>,
    /// When it came to its end.
    pub ended_at: Option<Timestamp>,
}

/// Asks for a replay to be paused, resumed or cancelled.
#[derive(Clone, Debug)]
pub struct ChangeReplay {
    /// Which.
    pub id: ReplayId,
    /// What.
    pub change: ReplayChange,
    /// Who wants it.
    pub actor: String,
    /// The time.
    pub now: Timestamp,
}

/// What can be done to a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayChange {
    /// Nothing is sent and nothing that was sent is worked on until it is resumed.
    Pause,
    /// It goes on, and what has failed so far is forgiven.
    Resume,
    /// Nothing more is sent.
    Cancel,
}

/// Claims the turn to replay letters by themselves.
#[derive(Clone, Debug)]
pub struct ClaimAutoReplay {
    /// Of this pipeline.
    pub pipeline: PipelineName,
    /// Which died for this reason; none means any.
    pub reason: Option<Reason>,
    /// If the last turn was before this.
    pub before: Timestamp,
    /// The time.
    pub now: Timestamp,
}
