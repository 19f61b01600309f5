//! Replays: choosing dead letters, sending them through their pipeline again, and what becomes of each.
//!
//! What is to happen is decided by `redrive_core::replays` on what was read before, and carried here with the version of the
//! replay that it was decided on (`was`). If the replay has another version by then, nothing is written. Each verb that could be
//! long works on a bounded number of letters.

mod letters;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::causes::CauseId;
use redrive_core::definitions::Pins;
use redrive_core::ids::{JobId, PipelineName, ReplayId};
use redrive_core::jobs::{Input, Lease};
use redrive_core::replays::{
    Exclusion, LetterFacts, LetterState, NextReplay, Pacing, Progress, ReplayMode, ReplayState, Wish, paused_itself,
    per_minute,
};
use redrive_core::time::Timestamp;
use redrive_core::tokens::PipelinePattern;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::letters::{
    ClaimLetters, ClaimedLetters, FindLetters, FoundLetter, ListPending, ListSent, PendingDead, PendingLetter,
    ReleaseLetters, SendLetter, SendLetters, SentLetter, SurveyLetters, WithdrawLetter, WithdrawLetters,
};
use super::dead::DeadFilter;
use super::leader::Led;
use super::pages::Page;
use crate::error::Result;

/// Replays. The row of a replay and its letters exist before anything happens to a letter.
#[async_trait]
pub trait ReplayStore {
    /// Counts letters by what is known of them.
    async fn survey_letters(&self, params: SurveyLetters) -> Result<Vec<(LetterFacts, u64)>>;

    /// A page of letters, oldest first, each with what is known of it.
    async fn find_letters(&self, params: FindLetters) -> Result<Page<FoundLetter>>;

    /// Makes a replay that has no letters yet. Letters that die from now on are not found for it. A replay with this id that is
    /// there already is left as it is.
    async fn open_replay(&self, params: OpenReplay) -> Result<ReplayView>;

    /// Claims letters for a replay that is being prepared: no other replay gets them. Nothing if the replay has moved on.
    async fn claim_letters(&self, params: ClaimLetters) -> Result<Option<ClaimedLetters>>;

    /// Changes where a replay is; says whether it was still as it had been.
    async fn set_replay(&self, params: SetReplay) -> Result<bool>;

    /// Forgets a replay that has no letters; says whether it was still as it had been.
    async fn drop_replay(&self, id: ReplayId, was: u64, now: Timestamp) -> Result<bool>;

    /// Letters whose turn has not come, in their order, with all that must be known to send them.
    async fn list_pending(&self, params: ListPending) -> Result<Vec<PendingLetter>>;

    /// Sends letters through their pipeline again. Those that are no longer dead are gone. Says whether the replay was still as
    /// it had been.
    async fn send_letters(&self, params: SendLetters) -> Result<bool>;

    /// Lets go of letters whose turn has not come, of a replay that is being cancelled; says how many there were.
    async fn release_letters(&self, params: ReleaseLetters) -> Result<u64>;

    /// Letters that a replay sent and that nobody works on.
    async fn list_sent(&self, params: ListSent) -> Result<Vec<SentLetter>>;

    /// Takes back letters that were sent: they are dead as was decided. Those that somebody works on by now, or to which
    /// something has happened since, are left where they are. Says how many were taken back.
    async fn withdraw_letters(&self, params: WithdrawLetters) -> Result<u64>;

    /// Replays, newest first.
    async fn list_replays(&self, params: ListReplays) -> Result<Page<ReplayView>>;

    /// A replay.
    async fn get_replay(&self, id: ReplayId) -> Result<Option<ReplayView>>;

    /// The pipelines of a replay that have letters which have not come to their end.
    async fn left_in_replay(&self, id: ReplayId) -> Result<BTreeSet<PipelineName>>;

    /// The groups that open letters of a replay are of, and how many each has, of so many letters at most.
    async fn replay_groups(&self, id: ReplayId, limit: u32) -> Result<Vec<ReplayGroup>>;

    /// Notes that leased jobs were processed while what came of that is not durable yet: their leases stay, and their replay goes on as
    /// if they were settled. Says which leases hold, in the order asked. To note it twice changes nothing.
    async fn note_processed(&self, leases: Vec<Lease>) -> Result<Vec<bool>>;

    /// Letters that a replay's choice would find now and that died after it was made.
    async fn joined_since(&self, id: ReplayId) -> Result<u64>;

    /// The replays that had a job among their letters and are not forgotten, the newest first, at most so many.
    async fn replays_of(&self, job: JobId, limit: u32) -> Result<Vec<ReplayView>>;

    /// The letters of a replay and what became of them, in their order.
    async fn list_replay_letters(&self, params: ListReplayLetters) -> Result<Page<ReplayLetter>>;

    /// The letters of a replay that failed again, for the same cause or for another, in their order.
    async fn list_refailed(&self, params: ListRefailed) -> Result<Page<ReplayLetter>>;

    /// The causes that letters of a replay failed for and had not died of, with how many, most first: at most so many. A bounded number of
    /// letters is looked at.
    async fn other_causes(&self, id: ReplayId, limit: u32) -> Result<Vec<(CauseId, u64)>>;

    /// The letter of a replay that has been under way for the longest time.
    async fn oldest_running(&self, id: ReplayId) -> Result<Option<RunningLetter>>;

    /// Forgets replays that ended before a time, with their letters; says whether there are more.
    async fn forget_replays(&self, params: ForgetReplays) -> Result<bool>;

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

/// A replay that is wanted.
#[derive(Clone, Debug)]
pub struct NewReplay {
    /// What it is called.
    pub name: String,
    /// Who wants it.
    pub by: Actor,
    /// Which letters.
    pub selection: Selection,
    /// What is wanted of it.
    pub wish: Wish,
    /// Why letters that failed permanently go too, if they do.
    pub force_why: Option<String>,
    /// How fast.
    pub pacing: Pacing,
    /// Fields of the input to change before each letter is sent.
    pub edits: Input,
    /// The versions of its pipelines that it is planned with: only workers that have them work on it.
    pub pins: Pins,
}

/// Asks for a replay to be made.
#[derive(Clone, Debug)]
pub struct OpenReplay {
    /// Its id.
    pub id: ReplayId,
    /// What is wanted.
    pub new: NewReplay,
    /// The pipelines that its letters belong to, as far as they are known.
    pub pipelines: BTreeSet<PipelineName>,
    /// The time.
    pub now: Timestamp,
}

/// Changes where a replay is.
#[derive(Clone, Debug)]
pub struct SetReplay {
    /// Which.
    pub id: ReplayId,
    /// The version of it that this was decided on.
    pub was: u64,
    /// What it is to be.
    pub next: NextReplay,
    /// Letters that were found and left out, if that is known by now.
    pub excluded: Option<BTreeMap<Exclusion, u64>>,
    /// Who wants it.
    pub by: Actor,
    /// The time.
    pub now: Timestamp,
}

impl SetReplay {
    /// What the record says besides, of the replay that it changes.
    pub(crate) fn detail(&self, replay: &ReplayView) -> Value {
        let NextReplay { state, why, pins, pacing, .. } = &self.next;
        let mut detail = json!({ "name": replay.name, "pipelines": replay.pipelines });
        if let Some(pins) = pins {
            detail["pins"] = json!(pins);
        }
        if let Some(pacing) = pacing {
            detail["per_second"] = json!(pacing.per_second);
        }
        // Of what a person paused it is known who did.
        if paused_itself(*state, why.as_deref()) {
            detail["why"] = json!(why);
        }
        detail
    }
}

/// Which replays to list.
#[derive(Clone, Debug, Default)]
pub struct ListReplays {
    /// Only those that have not come to their end.
    pub open_only: bool,
    /// Only those all of whose pipelines one of these means; none means any.
    pub within: Vec<PipelinePattern>,
    /// At most so many.
    pub limit: u32,
    /// Where to go on.
    pub cursor: Option<String>,
}

impl ListReplays {
    /// Asks for the newest replays.
    pub const fn newest(limit: u32) -> Self {
        Self { open_only: false, within: Vec::new(), limit, cursor: None }
    }

    /// Asks for the newest replays that have not come to their end.
    pub const fn open(limit: u32) -> Self {
        Self { open_only: true, within: Vec::new(), limit, cursor: None }
    }
}

/// What is wanted of a replay is not told to others: to them it is what it usually is.
fn suited() -> Wish {
    Wish::of(ReplayMode::Suited)
}

/// A replay as others see it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplayView {
    /// Its id.
    pub id: ReplayId,
    /// Counts the decisions about it; letters that come to their end do not change it.
    pub version: u64,
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
    /// Letters that are worked on from their saved payloads.
    pub saved: u64,
    /// Why letters that failed permanently go too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_why: Option<String>,
    /// Whether nobody asked for it.
    pub automatic: bool,
    /// How the letters were chosen.
    pub selection: Selection,
    /// What is wanted.
    #[serde(skip, default = "suited")]
    pub wish: Wish,
    /// Where choosing goes on, while it is prepared.
    #[serde(skip)]
    pub cursor: Option<String>,
    /// How fast it goes.
    pub pacing: Pacing,
    /// What is changed in each input.
    pub edits: Input,
    /// Letters that were found and left out, and why.
    pub excluded: BTreeMap<Exclusion, u64>,
    /// How far it is.
    pub progress: Progress,
    /// The pipelines of its letters.
    pub pipelines: BTreeSet<PipelineName>,
    /// The versions of their definitions that it was planned with: only workers that have them work on it.
    pub pins: Pins,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it came to its end.
    pub finished_at: Option<Timestamp>,
    /// When a letter of it was last sent or came to its end, or a person last changed it.
    #[serde(default)]
    pub moved_at: Timestamp,
    /// When the oldest of its letters died that have not come to their end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Timestamp>,
}

impl ReplayView {
    /// Letters that came to their end per minute, from when it was made until it ended, was paused, or now. `None` if none did.
    pub fn per_minute(&self, now: Timestamp) -> Option<f64> {
        let until = match self.state {
            ReplayState::Paused => self.moved_at,
            _ => self.finished_at.unwrap_or(now),
        };
        per_minute(self.progress.recovered + self.progress.failed, until.since(self.created_at))
    }

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

/// Asks for the letters of a replay that failed again.
#[derive(Clone, Debug)]
pub struct ListRefailed {
    /// Which replay.
    pub id: ReplayId,
    /// Whether those that failed for the cause they had died of; else the others.
    pub same_cause: bool,
    /// At most so many.
    pub limit: u32,
    /// Where to go on.
    pub cursor: Option<String>,
}

/// A letter of a replay that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningLetter {
    /// The job.
    pub id: JobId,
    /// Its short number.
    pub number: i64,
    /// Since when it could be worked on: when it was sent, or was due again after an attempt.
    pub since: Timestamp,
}

/// A letter of a replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayLetter {
    /// The job.
    pub id: JobId,
    /// Its short number, as long as anything is known of the job.
    pub number: Option<i64>,
    /// Its pipeline.
    pub pipeline: PipelineName,
    /// What became of it.
    pub state: LetterState,
    /// Whether it is worked on from its saved payload.
    pub saved: bool,
    /// The cause it was dead of.
    pub cause: Option<CauseId>,
    /// The cause it failed for then.
    pub cause_after: Option<CauseId>,
    /// When it came to its end.
    pub ended_at: Option<Timestamp>,
}

/// Open letters of a replay that belong together in the system that handed them over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayGroup {
    /// Their pipeline.
    pub pipeline: PipelineName,
    /// What they belong to, if that was said.
    pub group: Option<String>,
    /// How many have not come to their end.
    pub open: u64,
}

/// Asks for old replays to be forgotten.
#[derive(Clone, Debug)]
pub struct ForgetReplays {
    /// Those that ended before this time.
    pub before: Timestamp,
    /// At most so many letters and replays.
    pub limit: u32,
    /// The right to do so, where it is for the leader to do.
    pub led: Option<Led>,
}

/// Claims the turn to replay letters by themselves.
#[derive(Clone, Debug)]
pub struct ClaimAutoReplay {
    /// Of this pipeline.
    pub pipeline: PipelineName,
    /// Which turn: the reason that its letters died for, or nothing for any.
    pub turn: String,
    /// How often it is somebody's turn.
    pub every: Duration,
    /// The time.
    pub now: Timestamp,
}
