//! Stores around a store: each verb passes through a [`Layer`], which may call it again, count it or delay it. A decorated store is a
//! store itself.

mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::breakers::*;
use redrive_core::causes::*;
use redrive_core::copies::{Copies, CopyNote};
use redrive_core::crashes::LostLease;
use redrive_core::dead::DeadLetter;
use redrive_core::dead::import::Arrival;
use redrive_core::definitions::DefinitionVersion;
use redrive_core::facets::FacetCount;
use redrive_core::good::GoodPage;
use redrive_core::holds::Hold;
use redrive_core::ids::*;
use redrive_core::jobs::*;
use redrive_core::ledger::Ledger;
use redrive_core::payloads::*;
use redrive_core::pipelines::{Contents, Pause};
use redrive_core::replays::*;
use redrive_core::results::JobResult;
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;
use redrive_core::tokens::TokenHash;
use redrive_core::workers::LastBeat;
use serde_json::Value;

pub use self::rows::Rows;
use crate::contract::*;
use crate::error::{Result, StoreError};

/// What every verb of a decorated store passes through.
pub trait Layer: Send + Sync + 'static {
    /// Calls the verb, as often as it likes, and answers.
    fn around<T, F, R>(&self, verb: &'static str, call: F) -> impl Future<Output = Result<T>> + Send
    where
        T: Rows + Send,
        F: Fn() -> R + Send + Sync,
        R: Future<Output = Result<T>> + Send;
}

/// A store with a layer around it.
pub struct Decorated<L> {
    inner: Arc<dyn Store>,
    layer: Arc<L>,
}

impl<L: Layer> Decorated<L> {
    /// Puts a layer around a store.
    pub fn around(inner: Arc<dyn Store>, layer: &Arc<L>) -> Arc<dyn Store> {
        Arc::new(Self { inner, layer: Arc::clone(layer) })
    }
}

macro_rules! decorate {
    ($($noun:ident { $($verb:ident($($param:ident: $kind:ty),*) -> $answer:ty;)* })*) => {
        $(#[async_trait]
        impl<L: Layer> $noun for Decorated<L> {
            $(async fn $verb(&self $(, $param: $kind)*) -> Result<$answer> {
                self.layer.around(stringify!($verb), || self.inner.$verb($($param.clone()),*)).await
            })*
        })*
    };
}

impl<L: Layer> ChangeStore for Decorated<L> {
    fn changes(&self) -> Changes {
        self.inner.changes()
    }
}

#[async_trait]
impl<L: Layer> LedgerStore for Decorated<L> {
    async fn ledgers(&self) -> Result<BTreeMap<PipelineName, Ledger>> {
        self.layer.around("ledgers", || self.inner.ledgers()).await
    }

    async fn audit(&self) -> Result<Audit> {
        self.layer.around("audit", || self.inner.audit()).await
    }

    async fn health(&self) -> Result<Health> {
        self.layer.around("health", || self.inner.health()).await
    }

    async fn compact(&self, params: Compact) -> Result<Compacted> {
        self.layer.around("compact", || self.inner.compact(params.clone())).await
    }

    async fn tidy(&self, params: Tidy) -> Result<Tidied> {
        self.layer.around("tidy", || self.inner.tidy(params.clone())).await
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        self.layer.around("snapshot", || self.inner.snapshot(to)).await
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn trouble(&self) -> Option<StoreError> {
        self.inner.trouble()
    }
}

decorate! {
    ActivityStore {
        list_activity(params: ListActivity) -> Page<ActivityView>;
    }
    AlertStore {
        list_alerts() -> Vec<AlertView>;
        change_alerts(changes: Vec<AlertChange>) -> Vec<bool>;
        care_for_alert(params: CareForAlert) -> bool;
        post_notices(params: PostNotices) -> u64;
        take_notice(params: TakeNotice) -> Option<TakenNotice>;
        settle_notice(params: SettleNotice) -> bool;
        list_sinks() -> Vec<SinkView>;
        watch(params: Watch) -> Watched;
        forget_alerts(params: ForgetAlerts) -> bool;
    }
    BreakerStore {
        list_breakers() -> Vec<BreakerView>;
        breakers_of(params: BreakersOf) -> Vec<BreakerRow>;
        change_breakers(changes: Vec<BreakerChange>) -> Vec<BreakerRow>;
        get_breaker(pipeline: PipelineName, target: String) -> BreakerRow;
        turn_breaker(params: TurnBreaker) -> bool;
    }
    CauseStore {
        list_causes(params: ListCauses) -> Vec<CauseView>;
        get_cause(id: CauseId, now: Timestamp) -> CauseDetail;
        recognise(keys: Vec<String>) -> Vec<Option<CauseId>>;
        cause_rules() -> CauseRules;
        unresolved_letters(limit: u32) -> Option<Unresolved>;
        resolve_letters(params: ResolveLetters) -> bool;
        busiest_causes(params: BusiestCauses) -> Vec<CauseId>;
        cause_hours(ids: Vec<CauseId>, since: Timestamp) -> Vec<CauseHour>;
        cause_facts(params: FindCause) -> CauseFacts;
        change_cause(params: ChangeCause) -> CauseChanged;
        recovered_causes(replay: ReplayId) -> Vec<CauseId>;
    }
    ClockStore {
        look_at_clock(params: LookAtClock) -> LookedAtClock;
        server_time() -> Option<Timestamp>;
        mend_due_times(params: MendDueTimes) -> u64;
    }
    CopyStore {
        copies() -> Copies;
        begin_copy_from(note: CopyNote) -> ();
        begin_copy_to(note: CopyNote) -> ();
        read_part(params: ReadPart) -> Vec<Row>;
        copy_cursor() -> CopyCursor;
        write_part(params: WritePart) -> ();
        count_parts() -> Vec<u64>;
        copy_counters() -> CopyCounters;
        take_counters(params: TakeCounters) -> ();
        end_copy_from(params: EndCopy) -> ();
        end_copy_to(params: EndCopy) -> ();
    }
    CountStore {
        event_totals() -> Vec<EventTotal>;
        counts(params: CountEvents) -> Vec<EventCount>;
        fold_counts(params: FoldCounts) -> bool;
    }
    DeadStore {
        list_dead(params: ListDead) -> Page<DeadLetter>;
        search_dead(params: SearchDead) -> SearchedDead;
        get_dead(id: JobId) -> Option<DeadLetter>;
        discard_dead(params: DiscardDead) -> Vec<JobId>;
        expire_dead(params: ExpireDead) -> u64;
        import_dead(params: ImportDead) -> Vec<Arrival>;
    }
    DefinitionStore {
        note_definitions(params: NoteDefinitions) -> ();
        list_definitions(pipeline: Option<PipelineName>) -> Vec<DefinitionView>;
        list_tried_versions(letters: Selection) -> Vec<Option<DefinitionVersion>>;
    }
    FacetStore {
        cause_facets(cause: CauseId) -> Vec<FacetCount>;
        done_facets(params: DoneIn) -> Vec<FacetCount>;
    }
    GoodStore {
        good_pages(params: FindGood) -> Vec<GoodPage>;
        release_good(params: ReleaseGood) -> bool;
    }
    JobStore {
        enqueue(params: EnqueueJobs) -> Vec<EnqueuedJob>;
        list_jobs(params: ListJobs) -> Page<JobView>;
        get_job(id: JobId) -> Option<JobDetail>;
        find_jobs(named: JobRef) -> Vec<JobId>;
        cancel_jobs(params: CancelJobs) -> Vec<JobId>;
        retrying_jobs(params: ListRetrying) -> RetryingJobs;
    }
    LeaderStore {
        lead(params: Lead) -> Vec<Option<u64>>;
        list_chores(led: String) -> Vec<ChoreView>;
        note_chore(params: NoteChore) -> bool;
    }
    LeaseStore {
        lease(params: LeaseJobs) -> LeasedJobs;
        start(params: StartJobs) -> ();
        note_progress(params: NoteProgress) -> bool;
        settle(params: SettleJobs) -> SettledJobs;
        leased(leases: Vec<Lease>) -> Vec<LeasedJob>;
        claim_results(params: ClaimResults) -> Option<Vec<Lease>>;
        settled(leases: Vec<Lease>) -> Vec<Option<JobState>>;
        outlook(params: AskOutlook) -> Outlook;
        lost_leases(params: FindLostLeases) -> Vec<LostLease>;
    }
    PayloadStore {
        touch_payload(params: TouchPayload) -> Option<PayloadAt>;
        place_of_payload(hash: PayloadHash) -> Option<PayloadAt>;
        register_payload(params: RegisterPayload) -> Registered;
        note_spooled(place: PayloadPlace, on: Option<String>) -> bool;
        note_readable(place: PayloadPlace, unreadable: Option<Unreadable>) -> ();
        count_payload_reads(params: CountPayloadReads) -> ();
        payload_reads() -> PayloadReads;
        list_payloads(params: ListPayloads) -> Page<PayloadView>;
        payloads_of(job: JobId) -> Vec<Payload>;
        jobs_with_payload(hash: PayloadHash, limit: u32) -> Vec<JobId>;
        pipelines_with_payload(hash: PayloadHash) -> Vec<PipelineName>;
        sweep_payloads(params: SweepPayloads) -> Vec<PayloadPlace>;
        known_places(places: Vec<PayloadPlace>) -> Vec<bool>;
        condemn_places(places: Vec<PayloadPlace>, now: Timestamp) -> Vec<PayloadPlace>;
        store_ids() -> StoreIds;
        adopt_payloads(by: Actor, now: Timestamp) -> ();
    }
    PipelineStore {
        pauses() -> BTreeMap<PipelineName, Pause>;
        set_pause(params: SetPause) -> bool;
        all_pipelines() -> BTreeSet<PipelineName>;
        forget_pipeline(params: ForgetPipeline) -> Contents;
    }
    ReplayStore {
        survey_letters(params: SurveyLetters) -> Vec<(LetterFacts, u64)>;
        find_letters(params: FindLetters) -> Page<FoundLetter>;
        open_replay(params: OpenReplay) -> ReplayView;
        claim_letters(params: ClaimLetters) -> Option<ClaimedLetters>;
        set_replay(params: SetReplay) -> bool;
        drop_replay(id: ReplayId, was: u64, now: Timestamp) -> bool;
        list_pending(params: ListPending) -> Vec<PendingLetter>;
        send_letters(params: SendLetters) -> bool;
        release_letters(params: ReleaseLetters) -> u64;
        list_sent(params: ListSent) -> Vec<SentLetter>;
        withdraw_letters(params: WithdrawLetters) -> u64;
        list_replays(params: ListReplays) -> Page<ReplayView>;
        get_replay(id: ReplayId) -> Option<ReplayView>;
        left_in_replay(id: ReplayId) -> BTreeSet<PipelineName>;
        replay_groups(id: ReplayId, limit: u32) -> Vec<ReplayGroup>;
        note_processed(leases: Vec<Lease>) -> Vec<bool>;
        joined_since(id: ReplayId) -> u64;
        replays_of(job: JobId, limit: u32) -> Vec<ReplayView>;
        list_replay_letters(params: ListReplayLetters) -> Page<ReplayLetter>;
        list_refailed(params: ListRefailed) -> Page<ReplayLetter>;
        other_causes(id: ReplayId, limit: u32) -> Vec<(CauseId, u64)>;
        oldest_running(id: ReplayId) -> Option<RunningLetter>;
        forget_replays(params: ForgetReplays) -> bool;
        claim_auto_replay(params: ClaimAutoReplay) -> bool;
    }
    ResultStore {
        list_results(params: ListResults) -> Page<JobResult>;
        forget_results(params: ForgetResults) -> bool;
    }
    RoundStore {
        list_rounds(params: ListRounds) -> Vec<RoundView>;
        begin_round(params: BeginRound) -> bool;
    }
    TaskStore {
        known_tasks(params: FindTasks) -> Vec<Option<KnownTask>>;
        task_files(pipeline: PipelineName) -> Vec<String>;
    }
    HistoryStore {
        forget_receipts(params: ForgetHistory) -> bool;
        forget_counts(params: ForgetHistory) -> bool;
        forget_records(params: ForgetRecords) -> bool;
    }
    TokenStore {
        list_tokens() -> Vec<KnownToken>;
        create_token(params: CreateToken) -> TokenCreated;
        revoke_tokens(params: RevokeTokens) -> Vec<TokenName>;
        note_tokens_used(params: NoteTokensUsed) -> ();
    }
    SessionStore {
        open_session(params: OpenSession) -> ();
        find_session(session: TokenHash, now: Timestamp) -> Option<TokenHash>;
        end_session(session: TokenHash) -> ();
        forget_sessions(before: Timestamp, limit: u32) -> bool;
    }
    AnswerStore {
        begin_request(params: BeginRequest) -> BegunRequest;
        hold_request(params: HoldRequest) -> ();
        keep_answer(params: KeepAnswer) -> ();
        shorten_answers(bytes_max: u64, limit: u32) -> bool;
        forget_answers(before: Timestamp, limit: u32) -> bool;
    }
    UploadStore {
        note_upload(params: NoteUpload) -> ();
        find_upload(sha256: Sha256) -> Option<Upload>;
    }
    OutcomeStore {
        count_outcomes(params: CountOutcomes) -> bool;
    }
    TrafficStore {
        traffic(params: CountTraffic) -> Vec<TrafficCount>;
        count_dead(params: CountDead) -> Vec<DeadCount>;
        coverage(pipeline: Option<PipelineName>, since: Timestamp) -> Vec<CoverageCount>;
        tracked(params: ListTracked) -> Vec<TrackedCount>;
        oldest_dead() -> Vec<(PipelineName, Timestamp)>;
    }
    TryStore {
        open_try(params: OpenTry) -> ();
        note_try(id: TryId, outcome: Value) -> bool;
        note_tried(id: TryId, letters: Vec<TriedLetter>) -> bool;
        add_to_try(id: TryId, letters: Vec<LetterToTry>) -> ();
        lease_tried(params: LeaseTried) -> Vec<JobId>;
        extend_tried(leases: Vec<TriedLease>, until: Timestamp) -> Vec<bool>;
        settle_tried(settled: Vec<SettleTried>) -> Vec<bool>;
        count_tried(id: TryId) -> Vec<TriedCount>;
        open_in_try(params: OpenInTry) -> u64;
        end_try(id: TryId, outcome: Value, now: Timestamp) -> ();
        get_try(id: TryId) -> Option<TryView>;
        list_tries(limit: u32) -> Vec<TryView>;
        list_tried(params: ListTried) -> Page<TriedLetter>;
        forget_tries(before: Timestamp, limit: u32) -> bool;
    }
    WorkerStore {
        beat(params: Beat) -> Vec<Lease>;
        attach_worker(params: AttachWorker) -> LookedAtClock;
        detach_worker(worker: WorkerId) -> ();
        forget_workers(silent: Vec<LastBeat>) -> ();
        note_holds(worker: WorkerId, holds: Vec<Hold>) -> ();
        list_workers() -> Vec<WorkerView>;
    }
}
