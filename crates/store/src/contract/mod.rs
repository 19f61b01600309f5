//! The store contract: batch verbs of the domain, one file per noun, `now` always passed in.
//!
//! A backend implements the traits and is then a [`Store`]. Everything it must hold to is written down as a test in
//! the conformance suite.

pub mod activity;
pub mod alerts;
pub mod answers;
pub mod breakers;
pub mod causes;
pub mod changes;
pub mod clock;
pub mod copies;
pub mod counts;
pub mod dead;
pub mod definitions;
pub mod facets;
pub mod good;
pub mod history;
pub mod jobs;
pub mod leader;
pub mod leases;
pub mod ledger;
pub mod outcomes;
pub mod pages;
pub mod payloads;
pub mod pipelines;
pub mod replays;
pub mod results;
mod rounds;
pub mod sessions;
pub mod tasks;
pub mod tokens;
pub mod traffic;
pub mod tries;
pub mod uploads;
pub mod workers;

pub use activity::{ActivityStore, ActivityView, ListActivity};
pub use alerts::{
    AlertChange, AlertStore, AlertView, CareForAlert, ExpiringLetters, ForgetAlerts, PostNotices, Posted, SettleNotice,
    SinkView, TakeNotice, TakenNotice, Told, Watch, Watched,
};
pub use answers::{AnswerStore, BeginRequest, BegunRequest, HoldRequest, KeepAnswer, KeptAnswer, REQUEST_HELD};
pub use breakers::{BreakerStore, BreakersOf, TurnBreaker};
pub use causes::{
    AlikeCause, BusiestCauses, CauseChanged, CauseDetail, CauseHour, CauseKey, CauseNote, CauseStore, CauseView,
    ChangeCause, FindCause, ListCauses, ResolveLetters, ResolvedLetter, Unresolved, UnresolvedLetter,
};
pub use changes::{Bell, Change, ChangeStore, Changes, Topic};
pub use clock::{ClockStore, LookAtClock, LookedAtClock, MendDueTimes};
pub use copies::{
    Cell, CopyCounters, CopyCursor, CopyStore, EndCopy, PARTS, Part, ReadPart, Row, TakeCounters, WritePart,
};
pub use counts::{CountEvents, CountStore, EventCount, EventTotal, FoldCounts, Span};
pub use dead::{
    BroughtLetter, DeadFilter, DeadStore, DiscardDead, ExpireDead, ImportDead, ListDead, SearchDead, SearchedDead,
};
pub use definitions::{DefinitionStore, DefinitionView, NoteDefinitions};
pub use facets::{DoneIn, FacetStore};
pub use good::{FindGood, GoodStore, ReleaseGood};
pub use history::{ForgetHistory, ForgetRecords, HistoryStore};
pub use jobs::{
    CancelJobs, DiscardRecord, EnqueueJobs, EnqueuedJob, IDS_MAX, JobDetail, JobFilter, JobStore, LateSettlement,
    ListJobs, ListRetrying, RetryingJobs,
};
pub use leader::{ChoreView, Lead, LeaderStore, Led, NoteChore};
pub use leases::{
    AskOutlook, ClaimResults, FindLostLeases, Lane, LeaseJobs, LeaseStore, LeasedJobs, Listed, NoteProgress, Only,
    Outlook, SettleJobs, Settled, SettledJobs, StartJobs,
};
pub use ledger::{Audit, AuditedPipeline, Capabilities, Compact, Compacted, Health, LedgerStore, Tidied, Tidy};
pub use outcomes::{CountOutcomes, OutcomeStore};
pub(crate) use pages::Room;
pub use pages::{PAGE_BYTES_MAX, Page};
pub use payloads::{
    CountPayloadReads, ListPayloads, PayloadAt, PayloadStore, PayloadView, RegisterPayload, Registered, StoreIds,
    SweepPayloads, TouchPayload,
};
pub use pipelines::{ForgetPipeline, PipelineStore, SetPause};
pub use replays::{
    ClaimAutoReplay, ClaimLetters, ClaimedLetters, FindLetters, ForgetReplays, FoundLetter, ListPending, ListRefailed,
    ListReplayLetters, ListReplays, ListSent, NewReplay, OpenReplay, PendingDead, PendingLetter, ReleaseLetters,
    ReplayGroup, ReplayLetter, ReplayStore, ReplayView, RunningLetter, Selection, SendLetter, SendLetters, SentLetter,
    SetReplay, SurveyLetters, WithdrawLetter, WithdrawLetters,
};
pub use results::{ForgetResults, ListResults, ResultStore};
pub use rounds::{BeginRound, ListRounds, RoundStore, RoundView};
pub use sessions::{OpenSession, SessionStore};
pub use tasks::{FindTasks, KnownTask, TaskStore};
pub use tokens::{CreateToken, KnownToken, NoteTokensUsed, RevokeTokens, TokenCreated, TokenStore};
pub use traffic::{
    CountDead, CountTraffic, CoverageCount, DeadBy, DeadCount, ListTracked, TrackedCount, TrafficBy, TrafficCount,
    TrafficStore,
};
pub use tries::{
    LeaseTried, LetterToTry, ListTried, OpenInTry, OpenTry, SettleTried, TriedCount, TriedLease, TriedLetter, TryStore,
    TryView,
};
pub use uploads::{NoteUpload, Sha256, Upload, UploadStore};
pub use workers::{AttachWorker, Beat, WorkerStore, WorkerView};

/// All that a backend can do.
pub trait Store:
    JobStore
    + LeaseStore
    + DeadStore
    + CauseStore
    + DefinitionStore
    + ReplayStore
    + TryStore
    + TrafficStore
    + CountStore
    + CopyStore
    + HistoryStore
    + LedgerStore
    + WorkerStore
    + BreakerStore
    + PayloadStore
    + PipelineStore
    + ClockStore
    + ChangeStore
    + LeaderStore
    + ActivityStore
    + RoundStore
    + TaskStore
    + AlertStore
    + TokenStore
    + SessionStore
    + AnswerStore
    + UploadStore
    + OutcomeStore
    + FacetStore
    + GoodStore
    + ResultStore
    + Send
    + Sync
{
}

impl<T> Store for T where
    T: JobStore
        + LeaseStore
        + DeadStore
        + CauseStore
        + DefinitionStore
        + ReplayStore
        + TryStore
        + TrafficStore
        + CountStore
        + CopyStore
        + CopyStore
        + HistoryStore
        + LedgerStore
        + WorkerStore
        + BreakerStore
        + PayloadStore
        + PipelineStore
        + ClockStore
        + ChangeStore
        + LeaderStore
        + ActivityStore
        + RoundStore
        + TaskStore
        + AlertStore
        + TokenStore
        + SessionStore
        + AnswerStore
        + UploadStore
        + OutcomeStore
        + FacetStore
        + GoodStore
        + ResultStore
        + Send
        + Sync
{
}
