//! Replays: making, listing and changing them. What is to happen is decided elsewhere, on a version of the replay.

use std::collections::BTreeSet;

use async_trait::async_trait;
use redrive_core::causes::CauseId;
use redrive_core::ids::{JobId, PipelineName, ReplayId};
use redrive_core::jobs::Lease;
use redrive_core::replays::{LetterFacts, LetterState, NextReplay, ReplayState, StepChange, is_turn};
use redrive_core::time::Timestamp;
use serde_json::json;

use super::batch::Batch;
use super::conditions::Conditions;
use super::fault::Fault;
use super::rows::REPLAY_COLUMNS;
use super::sql::{Conn, args};
use super::{
    PostgresStore, activity, causes, dead, lanes, leader, replay_choices, replay_letters, replay_withdrawals, rows, run,
};
use crate::contract::{
    ClaimAutoReplay, ClaimLetters, ClaimedLetters, FindLetters, ForgetReplays, FoundLetter, ListPending, ListRefailed,
    ListReplayLetters, ListReplays, ListSent, OpenReplay, Page, PendingLetter, ReleaseLetters, ReplayGroup,
    ReplayLetter, ReplayStore, ReplayView, RunningLetter, SendLetters, SentLetter, SetReplay, SurveyLetters, Topic,
    WithdrawLetters,
};
use crate::error::{Result, StoreError};
use crate::lists;

#[async_trait]
impl ReplayStore for PostgresStore {
    async fn survey_letters(&self, params: SurveyLetters) -> Result<Vec<(LetterFacts, u64)>> {
        self.read(params, run!(replay_choices::survey)).await
    }

    async fn find_letters(&self, params: FindLetters) -> Result<Page<FoundLetter>> {
        self.read(params, run!(replay_choices::find)).await
    }

    async fn open_replay(&self, params: OpenReplay) -> Result<ReplayView> {
        self.write_about(Topic::Replays, params, run!(open)).await
    }

    async fn claim_letters(&self, params: ClaimLetters) -> Result<Option<ClaimedLetters>> {
        self.write_about(Topic::Replays, params, run!(replay_choices::claim)).await
    }

    async fn set_replay(&self, params: SetReplay) -> Result<bool> {
        self.write_about(Topic::Replays, params, run!(set)).await
    }

    async fn drop_replay(&self, id: ReplayId, was: u64, now: Timestamp) -> Result<bool> {
        self.write_about(Topic::Replays, (id, was, now), run!(drop_empty)).await
    }

    async fn list_pending(&self, params: ListPending) -> Result<Vec<PendingLetter>> {
        self.read(params, run!(replay_letters::pending)).await
    }

    async fn send_letters(&self, params: SendLetters) -> Result<bool> {
        self.write_about(Topic::Replays, params, run!(replay_letters::send)).await
    }

    async fn release_letters(&self, params: ReleaseLetters) -> Result<u64> {
        self.write_about(Topic::Replays, params, run!(replay_letters::release)).await
    }

    async fn list_sent(&self, params: ListSent) -> Result<Vec<SentLetter>> {
        self.read(params, run!(replay_withdrawals::list)).await
    }

    async fn withdraw_letters(&self, params: WithdrawLetters) -> Result<u64> {
        self.write_about(Topic::Replays, params, run!(replay_withdrawals::withdraw)).await
    }

    async fn list_replays(&self, params: ListReplays) -> Result<Page<ReplayView>> {
        self.read(params, run!(list)).await
    }

    async fn get_replay(&self, id: ReplayId) -> Result<Option<ReplayView>> {
        let found = self.read(id, |conn, id| Box::pin(find(conn, *id))).await?;
        Ok(found.map(|(_, view)| view))
    }

    async fn left_in_replay(&self, id: ReplayId) -> Result<BTreeSet<PipelineName>> {
        self.read(id, run!(replay_letters::left)).await
    }

    async fn replay_groups(&self, id: ReplayId, limit: u32) -> Result<Vec<ReplayGroup>> {
        self.read((id, limit), run!(replay_letters::groups)).await
    }

    async fn note_processed(&self, leases: Vec<Lease>) -> Result<Vec<bool>> {
        self.write_about(Topic::Replays, leases, run!(replay_letters::note_processed)).await
    }

    async fn joined_since(&self, id: ReplayId) -> Result<u64> {
        self.read(id, run!(joined_since)).await
    }

    async fn replays_of(&self, job: JobId, limit: u32) -> Result<Vec<ReplayView>> {
        self.read((job, limit), run!(of_job)).await
    }

    async fn list_replay_letters(&self, params: ListReplayLetters) -> Result<Page<ReplayLetter>> {
        self.read((params, None), run!(letters)).await
    }

    async fn list_refailed(&self, params: ListRefailed) -> Result<Page<ReplayLetter>> {
        let ListRefailed { id, same_cause, limit, cursor } = params;
        let failed = ListReplayLetters { id, state: Some(LetterState::Failed), limit, cursor };
        let clause = if same_cause { "k.cause = m.cause" } else { "k.cause IS DISTINCT FROM m.cause" };
        self.read((failed, Some(clause)), run!(letters)).await
    }

    async fn other_causes(&self, id: ReplayId, limit: u32) -> Result<Vec<(CauseId, u64)>> {
        self.read((id, limit), run!(replay_letters::other_causes)).await
    }

    async fn oldest_running(&self, id: ReplayId) -> Result<Option<RunningLetter>> {
        self.read(id, run!(replay_letters::oldest)).await
    }

    async fn forget_replays(&self, params: ForgetReplays) -> Result<bool> {
        self.write(params, run!(forget)).await
    }

    async fn claim_auto_replay(&self, params: ClaimAutoReplay) -> Result<bool> {
        self.write_about(Topic::Replays, params, run!(claim_turn)).await
    }
}

async fn claim_turn(batch: &mut Batch, params: &ClaimAutoReplay) -> Result<bool, Fault> {
    let Some(pipeline) = batch.find_pipeline(&params.pipeline).await? else { return Ok(false) };
    let turn = params.turn.as_str();
    let sql = "SELECT last_at FROM auto_replay WHERE pipeline = $1 AND reason = $2";
    let last = batch.conn().query_opt(sql, args![pipeline, turn], |row| rows::time(row, 0)).await?;
    let is_turn = is_turn(last, params.every, params.now);
    if is_turn {
        let sql = "INSERT INTO auto_replay (pipeline, reason, last_at) VALUES ($1, $2, $3)
                   ON CONFLICT (pipeline, reason) DO UPDATE SET last_at = excluded.last_at";
        batch.conn().execute(sql, args![pipeline, turn, params.now]).await?;
    }
    Ok(is_turn)
}

async fn drop_empty(batch: &mut Batch, (id, was, now): &(ReplayId, u64, Timestamp)) -> Result<bool, Fault> {
    // Its row stays: letters know by its number that they died after it was opened.
    let sql = "UPDATE replay SET version = version + 1, state = 'done', finished_at = $3, forgotten = true
               WHERE uuid = $1 AND version = $2 AND total = 0 AND finished_at IS NULL";
    Ok(batch.conn().execute(sql, args![id, was, now]).await? == 1)
}

async fn open(batch: &mut Batch, params: &OpenReplay) -> Result<ReplayView, Fault> {
    if let Some((_, view)) = find(batch.conn(), params.id).await? {
        return Ok(view);
    }
    let new = &params.new;
    let mut selection = new.selection.clone();
    if let Some(cause) = &mut selection.filter.cause {
        // Whatever is called so later, it is this one that is meant.
        *cause = causes::find(batch.conn(), cause).await?.1;
    }
    let sql = "INSERT INTO replay (uuid, name, actor, via, mode, state, force_why, automatic, selection, pacing, edits, excluded,
                                   created_at, pipelines, wish, pins)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, '{}', $12, $13, $14, $15)";
    let row = args![
        params.id,
        new.name,
        new.by.name,
        new.by.via.as_str(),
        new.wish.mode.as_str(),
        ReplayState::Preparing.as_str(),
        new.force_why,
        new.wish.automatic.is_some(),
        serde_json::to_string(&selection)?,
        serde_json::to_string(&new.pacing)?,
        serde_json::to_string(&new.edits)?,
        params.now,
        serde_json::to_string(&params.pipelines)?,
        serde_json::to_string(&new.wish)?,
        serde_json::to_string(&new.pins)?
    ];
    batch.conn().execute(sql, row).await?;
    let (object, pipelines) = (format!("replay {}", params.id), &params.pipelines);
    let mut detail = json!({"name": new.name, "pipelines": pipelines});
    if let Some(why) = &new.force_why {
        detail["why"] = json!(why);
    }
    activity::note(batch, &new.by, ("start", &object), &detail, params.now).await?;
    Ok(get(batch.conn(), params.id).await?.1)
}

async fn joined_since(conn: &Conn, id: &ReplayId) -> Result<u64, Fault> {
    let (row, view) = get(conn, *id).await?;
    let mut filter = view.selection.filter;
    if !view.selection.ids.is_empty() {
        return Ok(0);
    }
    filter.since = filter.since.max(Some(view.created_at));
    let mut conditions = match dead::conditions(conn, &filter).await {
        // The cause has become part of another.
        Err(Fault::Store(StoreError::NoCause(_))) => return Ok(0),
        conditions => conditions?,
    };
    let replay = conditions.bind(row);
    conditions.holds(&format!("NOT EXISTS (SELECT 1 FROM replay_letter r WHERE r.job = d.id AND r.replay = {replay})"));
    conn.query_one(&format!("SELECT count(*) FROM dead d {conditions}"), conditions.values(), |row| row.get(0)).await
}

async fn find(conn: &Conn, id: ReplayId) -> Result<Option<(i64, ReplayView)>, Fault> {
    let sql = format!("SELECT {REPLAY_COLUMNS} FROM replay r WHERE r.uuid = $1 AND NOT r.forgotten");
    conn.query_opt(&sql, args![id], |row| rows::replay_view(row)).await
}

/// The row of a replay that must be there, and the replay.
pub(super) async fn get(conn: &Conn, id: ReplayId) -> Result<(i64, ReplayView), Fault> {
    Ok(find(conn, id).await?.ok_or_else(|| StoreError::NoReplay(id.to_string()))?)
}

async fn list(conn: &Conn, params: &ListReplays) -> Result<Page<ReplayView>, Fault> {
    let mut conditions = Conditions::default();
    conditions.less_than("r.id", lists::row(params.cursor.as_deref())?);
    conditions.each_within("r.pipelines", &params.within);
    conditions.holds(if params.open_only { "r.finished_at IS NULL" } else { "NOT r.forgotten" });
    let limit = params.limit.saturating_add(1);
    let sql = format!("SELECT {REPLAY_COLUMNS} FROM replay r {conditions} ORDER BY r.id DESC LIMIT {limit}");
    let found = conn.query(&sql, conditions.values(), |row| rows::replay_view(row)).await?;
    let page = Page::cut(found, params.limit, |(row, _)| row.to_string());
    Ok(Page { items: page.items.into_iter().map(|(_, view)| view).collect(), next: page.next })
}

/// The replays that are open, the newest first.
pub(super) async fn list_open(conn: &Conn, limit: u32) -> Result<Vec<ReplayView>, Fault> {
    match limit {
        0 => Ok(Vec::new()),
        limit => Ok(list(conn, &ListReplays::open(limit)).await?.items),
    }
}

async fn of_job(conn: &Conn, (job, limit): &(JobId, u32)) -> Result<Vec<ReplayView>, Fault> {
    let sql = format!(
        "SELECT {REPLAY_COLUMNS} FROM replay r
         WHERE r.id IN (SELECT replay FROM replay_letter WHERE job = $1) AND NOT r.forgotten
         ORDER BY r.id DESC LIMIT {limit}"
    );
    let found = conn.query(&sql, args![*job], |row| rows::replay_view(row)).await?;
    Ok(found.into_iter().map(|(_, view)| view).collect())
}

/// Letters of a replay, those of which a clause holds if there is one.
async fn letters(
    conn: &Conn,
    (params, clause): &(ListReplayLetters, Option<&'static str>),
) -> Result<Page<ReplayLetter>, Fault> {
    let (replay, _) = get(conn, params.id).await?;
    let mut conditions = Conditions::default();
    conditions.equal("l.replay", Some(replay));
    conditions.equal("l.state", params.state.map(|state| state.as_str()));
    conditions.more_than("l.n", lists::row(params.cursor.as_deref())?);
    clause.iter().for_each(|clause| conditions.holds(clause));
    let limit = params.limit.saturating_add(1);
    let sql = format!(
        "SELECT l.n, l.job, p.name, l.state, c.name, a.name, l.ended_at, l.saved,
                coalesce((SELECT seq FROM dead WHERE id = l.job), (SELECT seq FROM job WHERE id = l.job),
                         (SELECT number FROM done WHERE job = l.job), (SELECT number FROM discarded WHERE job = l.job))
         FROM replay_letter l
         JOIN pipeline p ON p.id = l.pipeline
         LEFT JOIN cause_key k ON k.id = l.cause_key LEFT JOIN cause c ON c.id = k.cause
         LEFT JOIN cause_key m ON m.id = l.after_key LEFT JOIN cause a ON a.id = m.cause
         {conditions} ORDER BY l.n LIMIT {limit}"
    );
    let found = conn.query(&sql, conditions.values(), |row| {
        let letter = ReplayLetter {
            id: rows::job_id(row, 1)?,
            number: row.get(8)?,
            pipeline: rows::parsed(row, 2)?,
            state: rows::parsed(row, 3)?,
            saved: row.get(7)?,
            cause: rows::parsed_opt(row, 4)?,
            cause_after: rows::parsed_opt(row, 5)?,
            ended_at: rows::time_opt(row, 6)?,
        };
        Ok((row.get::<i64>(0)?, letter))
    });
    let page = Page::cut(found.await?, params.limit, |(n, _)| n.to_string());
    Ok(Page { items: page.items.into_iter().map(|(_, letter)| letter).collect(), next: page.next })
}

/// Changes where a replay is, if it is still as it was. Of its step only the difference is written, since letters may have
/// settled meanwhile.
async fn set(batch: &mut Batch, params: &SetReplay) -> Result<bool, Fault> {
    let NextReplay { state, why, step, forgiven, pins, pacing, verb } = &params.next;
    let sql = "UPDATE replay SET version = version + 1, state = $3, why = $4, forgiven = $5, excluded = coalesce($6, excluded),
                      finished_at = $7, pins = coalesce($8, pins), pacing = coalesce($9, pacing), moved_at = $10
               WHERE uuid = $1 AND version = $2 AND finished_at IS NULL";
    let excluded = params.excluded.as_ref().map(serde_json::to_string).transpose()?;
    let finished_at = state.is_over().then_some(params.now);
    let written = pins.as_ref().map(serde_json::to_string).transpose()?;
    let paced = pacing.as_ref().map(serde_json::to_string).transpose()?;
    let (id, was, now) = (params.id, params.was, params.now);
    let next = args![id, was, state.as_str(), why, forgiven, excluded, finished_at, written, paced, now];
    if batch.conn().execute(sql, next).await? == 0 {
        return Ok(false);
    }
    if step.is_none() && verb.is_none() {
        return Ok(true);
    }
    let (replay, view) = get(batch.conn(), params.id).await?;
    if let Some(change) = step {
        set_step(batch, replay, change).await?;
    }
    if let Some(verb) = verb {
        let object = format!("replay {}", params.id);
        activity::note(batch, &params.by, (verb, &object), &params.detail(&view), params.now).await?;
    }
    Ok(true)
}

/// Writes how a step changes.
pub(super) async fn set_step(batch: &Batch, replay: i64, change: &StepChange) -> Result<(), Fault> {
    let StepChange { from, to } = change;
    let by = |from: u64, to: u64| i64::try_from(to).unwrap_or(i64::MAX) - i64::try_from(from).unwrap_or(i64::MAX);
    let sql = "UPDATE replay SET step = $2, step_sent = step_sent + $3, step_settled = step_settled + $4,
                                 step_failed = step_failed + $5
               WHERE id = $1";
    let step =
        args![replay, to.number, by(from.sent, to.sent), by(from.settled, to.settled), by(from.failed, to.failed)];
    batch.conn().execute(sql, step).await?;
    Ok(())
}

async fn forget(batch: &mut Batch, params: &ForgetReplays) -> Result<bool, Fault> {
    leader::check(batch, params.led.as_ref()).await?;
    let (before, limit) = (params.before, params.limit);
    // The audit must not miss letters of a replay that is half forgotten.
    let sql = "UPDATE replay SET forgotten = true WHERE finished_at < $1 AND NOT forgotten";
    batch.conn().execute(sql, args![before]).await?;
    let sql = "DELETE FROM replay_letter WHERE (replay, n) IN
                  (SELECT l.replay, l.n FROM replay r JOIN replay_letter l ON l.replay = r.id
                   WHERE r.finished_at < $1 LIMIT $2)";
    if batch.conn().execute(sql, args![before, limit]).await? >= u64::from(limit) {
        return Ok(true);
    }
    // The newest stays: letters know by its number that they died after it was opened.
    let sql = "DELETE FROM replay WHERE id IN (SELECT id FROM replay WHERE finished_at < $1 LIMIT $2)
               AND id < (SELECT max(id) FROM replay)";
    let forgotten = batch.conn().execute(sql, args![before, limit]).await?;
    lanes::forget(batch).await?;
    Ok(forgotten >= u64::from(limit))
}
