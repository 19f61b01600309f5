//! The letters of replays: finding, claiming, sending and taking them back, always a bounded number at once.

use std::collections::{BTreeMap, BTreeSet};

use redrive_core::causes::Print;
use redrive_core::dead::{DeadLetter, Gate};
use redrive_core::failures::{Failure, Reason};
use redrive_core::ids::{JobId, PipelineName, ReplayId, TryId};
use redrive_core::jobs::{Input, Lease, Origin, Tally};
use redrive_core::replays::{Exclusion, LetterFacts, StepChange, Withdrawn};
use redrive_core::time::Timestamp;

use super::Selection;

/// Asks for letters to be counted by what is known of them.
#[derive(Clone, Debug)]
pub struct SurveyLetters {
    /// Which letters.
    pub selection: Selection,
    /// The reasons whose letters' payloads matter, and are looked up. Those of the others are said to be gone.
    pub closely: Vec<Reason>,
    /// Whether it matters how often letters were replayed by themselves, and whether their targets' breakers are closed.
    pub automatic: bool,
    /// The try of which it matters whether it recovered letters.
    pub tried: Option<TryId>,
    /// Whether it matters which fields of their inputs letters lack that may not be replayed.
    pub lacking: bool,
    /// This machine: payloads that wait in the spool of another cannot be read here.
    pub host: String,
}

/// Asks for a page of letters with what is known of each.
#[derive(Clone, Debug)]
pub struct FindLetters {
    /// Which letters.
    pub selection: Selection,
    /// Only those that were dead when this replay was opened.
    pub opened: Option<ReplayId>,
    /// The try of which it matters whether it recovered letters.
    pub tried: Option<TryId>,
    /// This machine.
    pub host: String,
    /// Whether each comes whole, with all its failures.
    pub whole: bool,
    /// At most so many.
    pub limit: u32,
    /// Where to go on.
    pub cursor: Option<String>,
}

/// A letter and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundLetter {
    /// Which.
    pub id: JobId,
    /// What is known of it.
    pub facts: LetterFacts,
    /// The letter, where it was asked for.
    pub letter: Option<DeadLetter>,
    /// Where to go on after it.
    pub cursor: String,
}

/// Claims letters for a replay.
#[derive(Clone, Debug)]
pub struct ClaimLetters {
    /// Which replay.
    pub id: ReplayId,
    /// The version of it that this was decided on.
    pub was: u64,
    /// The letters, and whether each is worked on from its saved payload.
    pub letters: Vec<(JobId, bool)>,
    /// The pipelines of all letters so far.
    pub pipelines: BTreeSet<PipelineName>,
    /// Letters that were found and left out so far, and why.
    pub excluded: BTreeMap<Exclusion, u64>,
    /// Where choosing goes on.
    pub cursor: Option<String>,
}

/// What came of claiming letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedLetters {
    /// The replay's version now.
    pub version: u64,
    /// How many were claimed.
    pub claimed: u64,
    /// Letters that another replay has by now, or that are no longer dead.
    pub refused: u64,
}

/// Asks for letters whose turn has not come.
#[derive(Clone, Debug)]
pub struct ListPending {
    /// Of which replay.
    pub id: ReplayId,
    /// Only of these pipelines.
    pub pipelines: BTreeSet<PipelineName>,
    /// At most so many.
    pub limit: u32,
}

/// Asks for letters that were sent and that nobody works on.
#[derive(Clone, Debug)]
pub struct ListSent {
    /// Of which replay.
    pub id: ReplayId,
    /// Only of these pipelines; of all if none are named.
    pub pipelines: Option<BTreeSet<PipelineName>>,
    /// At most so many.
    pub limit: u32,
}

/// A letter whose turn has not come.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingLetter {
    /// Which.
    pub job: JobId,
    /// Whether it is worked on from its saved payload.
    pub saved: bool,
    /// The dead letter; none if it is no longer there.
    pub dead: Option<PendingDead>,
}

/// What must be known of a dead letter to send it.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingDead {
    /// Its input.
    pub input: Input,
    /// Its target.
    pub target: Option<String>,
    /// How often it took its process down.
    pub crashes: u32,
    /// Whether it may have.
    pub suspect: bool,
    /// Where it came from, if another system handed it over.
    pub origin: Option<Origin>,
}

/// Sends letters.
#[derive(Clone, Debug)]
pub struct SendLetters {
    /// Of which replay.
    pub id: ReplayId,
    /// The version of it that this was decided on.
    pub was: u64,
    /// Which letters, and how.
    pub letters: Vec<SendLetter>,
    /// Letters that cannot be sent: they are gone.
    pub gone: Vec<JobId>,
    /// The step of the ramp with them.
    pub step: StepChange,
    /// When the rate lets the next one go.
    pub free_at: Timestamp,
    /// The time.
    pub now: Timestamp,
}

/// A letter that is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct SendLetter {
    /// Which.
    pub job: JobId,
    /// Its input, if it was changed.
    pub input: Option<Input>,
    /// Its target.
    pub target: Option<String>,
    /// Whether it is worked on from its saved payload.
    pub saved: bool,
    /// Whether it goes on where its last attempt was: with the task that was left at a provider.
    pub goes_on: bool,
    /// Whether it runs alone.
    pub suspect: bool,
    /// Where it came from, if that is no longer what it was.
    pub origin: Option<Origin>,
}

/// Lets go of letters whose turn has not come.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseLetters {
    /// Of which replay.
    pub id: ReplayId,
    /// At most so many.
    pub limit: u32,
    /// The time.
    pub now: Timestamp,
}

/// A letter that was sent and that nobody works on.
#[derive(Clone, Debug, PartialEq)]
pub struct SentLetter {
    /// Which.
    pub job: JobId,
    /// Its pipeline.
    pub pipeline: PipelineName,
    /// Its target.
    pub target: Option<String>,
    /// What has happened to it, with the replay counted.
    pub tally: Tally,
    /// The lease of a worker that is gone, if one had it.
    pub lost: Option<Lease>,
    /// Whether an attempt had begun that came to no verdict.
    pub begun: bool,
    /// Whether that attempt ran inside the worker that is gone.
    pub in_worker: bool,
    /// The gate it had.
    pub gate: Gate,
    /// What was said of it.
    pub verdict: Option<String>,
    /// Its last failure in this replay.
    pub failure: Option<Failure>,
}

/// Takes back letters that were sent.
#[derive(Clone, Debug)]
pub struct WithdrawLetters {
    /// Of which replay.
    pub id: ReplayId,
    /// Which letters.
    pub letters: Vec<WithdrawLetter>,
    /// The time.
    pub now: Timestamp,
}

/// A letter that is taken back.
#[derive(Clone, Debug)]
pub struct WithdrawLetter {
    /// The letter as it was found.
    pub sent: SentLetter,
    /// What it is to be.
    pub withdrawn: Withdrawn,
    /// What its last failure in this replay is recognised by, if it has one.
    pub print: Option<Print>,
}
