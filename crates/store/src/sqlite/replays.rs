//! Replays: making, listing and changing them. What is to happen is decided elsewhere, on a version of the replay.

use std::collections::BTreeSet;

use async_trait::async_trait;
use redrive_core::causes::CauseId;
use redrive_core::ids::{JobId, PipelineName, ReplayId};
use redrive_core::jobs::Lease;
use redrive_core::replays::{LetterFacts, LetterState, NextReplay, ReplayState, StepChange, is_turn};
use redrive_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;

use super::SqliteStore;
use super::activity;
use super::batch::Batch;
use super::conditions::Conditions;
use super::fault::Fault;
use super::rows::{self, REPLAY_COLUMNS, RowResult};
use super::{causes, dead, lanes, leader, replay_choices, replay_letters, replay_withdrawals};
use crate::contract::{
    ClaimAutoReplay, ClaimLetters, ClaimedLetters, FindLetters, ForgetReplays, FoundLetter, ListPending, ListRefailed,
    ListReplayLetters, ListReplays, ListSent, OpenReplay, Page, PendingLetter, ReleaseLetters, ReplayGroup,
    ReplayLetter, ReplayStore, ReplayView, RunningLetter, SendLetters, SentLetter, SetReplay, SurveyLetters, Topic,
    WithdrawLetters,
};
use crate::error::{Result, StoreError};
use crate::lists;

#[async_trait]
impl ReplayStore for SqliteStore {
    async fn survey_letters(&self, params: SurveyLetters) -> Result<Vec<(LetterFacts, u64)>> {
        self.read(move |conn| replay_choices::survey(conn, &params)).await
    }

    async fn find_letters(&self, params: FindLetters) -> Result<Page<FoundLetter>> {
        self.read(move |conn| replay_choices::find(conn, &params)).await
    }

    async fn open_replay(&self, params: OpenReplay) -> Result<ReplayView> {
        self.write_about(Topic::Replays, move |batch| open(batch, &params)).await
    }

    async fn claim_letters(&self, params: ClaimLetters) -> Result<Option<ClaimedLetters>> {
        self.write_about(Topic::Replays, move |batch| replay_choices::claim(batch, &params)).await
    }

    async fn set_replay(&self, params: SetReplay) -> Result<bool> {
        self.write_about(Topic::Replays, move |batch| set(batch, &params)).await
    }

    async fn drop_replay(&self, id: ReplayId, was: u64, now: Timestamp) -> Result<bool> {
        self.write_about(Topic::Replays, move |batch| {
            // Its row stays: letters know by its number that they died after it was opened.
            let mut update = batch.statement(
                "UPDATE replay SET version = version + 1, state = 'done', finished_at = ?3, forgotten = 1
                 WHERE uuid = ?1 AND version = ?2 AND total = 0 AND finished_at IS NULL",
            )?;
            Ok(update.execute(params![id.as_bytes(), was, now.as_millis()])? == 1)
        })
        .await
    }

    async fn list_pending(&self, params: ListPending) -> Result<Vec<PendingLetter>> {
        self.read(move |conn| replay_letters::pending(conn, &params)).await
    }

    async fn send_letters(&self, params: SendLetters) -> Result<bool> {
        self.write_about(Topic::Replays, move |batch| replay_letters::send(batch, &params)).await
    }

    async fn release_letters(&self, params: ReleaseLetters) -> Result<u64> {
        self.write_about(Topic::Replays, move |batch| replay_letters::release(batch, &params)).await
    }

    async fn list_sent(&self, params: ListSent) -> Result<Vec<SentLetter>> {
        // What a dead worker held is nobody's, and can be taken back.
        self.bury_workers().await?;
        self.read(move |conn| replay_withdrawals::list(conn, &params)).await
    }

    async fn withdraw_letters(&self, params: WithdrawLetters) -> Result<u64> {
        self.write_about(Topic::Replays, move |batch| replay_withdrawals::withdraw(batch, &params)).await
    }

    async fn list_replays(&self, params: ListReplays) -> Result<Page<ReplayView>> {
        self.read(move |conn| list(conn, &params)).await
    }

    async fn get_replay(&self, id: ReplayId) -> Result<Option<ReplayView>> {
        self.read(move |conn| Ok(find(conn, id)?.map(|(_, view)| view))).await
    }

    async fn left_in_replay(&self, id: ReplayId) -> Result<BTreeSet<PipelineName>> {
        self.read(move |conn| replay_letters::left(conn, id)).await
    }

    async fn replay_groups(&self, id: ReplayId, limit: u32) -> Result<Vec<ReplayGroup>> {
        self.read(move |conn| replay_letters::groups(conn, id, limit)).await
    }

    async fn note_processed(&self, leases: Vec<Lease>) -> Result<Vec<bool>> {
        self.write_about(Topic::Replays, move |batch| {
            leases.iter().map(|lease| replay_letters::note_processed(batch, lease)).collect()
        })
        .await
    }

    async fn joined_since(&self, id: ReplayId) -> Result<u64> {
        self.read(move |conn| joined_since(conn, id)).await
    }

    async fn replays_of(&self, job: JobId, limit: u32) -> Result<Vec<ReplayView>> {
        self.read(move |conn| of_job(conn, job, limit)).await
    }

    async fn list_replay_letters(&self, params: ListReplayLetters) -> Result<Page<ReplayLetter>> {
        self.read(move |conn| letters(conn, &params, None)).await
    }

    async fn list_refailed(&self, params: ListRefailed) -> Result<Page<ReplayLetter>> {
        let ListRefailed { id, same_cause, limit, cursor } = params;
        let failed = ListReplayLetters { id, state: Some(LetterState::Failed), limit, cursor };
        let clause = if same_cause { "k.cause = m.cause" } else { "k.cause IS NOT m.cause" };
        self.read(move |conn| letters(conn, &failed, Some(clause))).await
    }

    async fn other_causes(&self, id: ReplayId, limit: u32) -> Result<Vec<(CauseId, u64)>> {
        self.read(move |conn| replay_letters::other_causes(conn, id, limit)).await
    }

    async fn oldest_running(&self, id: ReplayId) -> Result<Option<RunningLetter>> {
        self.read(move |conn| replay_letters::oldest(conn, id)).await
    }

    async fn forget_replays(&self, params: ForgetReplays) -> Result<bool> {
        self.write(move |batch| forget(batch, &params)).await
    }

    async fn claim_auto_replay(&self, params: ClaimAutoReplay) -> Result<bool> {
        self.write_about(Topic::Replays, move |batch| {
            let Some(pipeline) = batch.find_pipeline(&params.pipeline)? else { return Ok(false) };
            let turn = params.turn.as_str();
            let mut select = batch.statement("SELECT last_at FROM auto_replay WHERE pipeline = ?1 AND reason = ?2")?;
            let last = select.query_row(params![pipeline, turn], |row| rows::time(row, 0)).optional()?;
            let is_turn = is_turn(last, params.every, params.now);
            if is_turn {
                let put = "INSERT OR REPLACE INTO auto_replay (pipeline, reason, last_at) VALUES (?1, ?2, ?3)";
                batch.statement(put)?.execute(params![pipeline, turn, params.now.as_millis()])?;
            }
            Ok(is_turn)
        })
        .await
    }
}

fn open(batch: &mut Batch<'_>, params: &OpenReplay) -> Result<ReplayView, Fault> {
    if let Some((_, view)) = find(batch.connection(), params.id)? {
        return Ok(view);
    }
    let new = &params.new;
    let mut selection = new.selection.clone();
    if let Some(cause) = &mut selection.filter.cause {
        // Whatever is called so later, it is this one that is meant.
        *cause = causes::find(batch.connection(), cause)?.1;
    }
    let mut insert = batch.statement(
        "INSERT INTO replay (uuid, name, actor, via, mode, state, force_why, automatic, selection, pacing, edits, excluded,
                             created_at, pipelines, wish, pins, total, pending)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, '{}', ?12, ?13, ?14, ?15, 0, 0)",
    )?;
    insert.execute(params![
        params.id.as_bytes(),
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
        params.now.as_millis(),
        serde_json::to_string(&params.pipelines)?,
        serde_json::to_string(&new.wish)?,
        serde_json::to_string(&new.pins)?
    ])?;
    let (object, pipelines) = (format!("replay {}", params.id), &params.pipelines);
    let mut detail = json!({"name": new.name, "pipelines": pipelines});
    if let Some(why) = &new.force_why {
        detail["why"] = json!(why);
    }
    activity::note(batch, &new.by, ("start", &object), &detail, params.now)?;
    Ok(get(batch.connection(), params.id)?.1)
}

fn joined_since(conn: &Connection, id: ReplayId) -> Result<u64, Fault> {
    let (row, view) = get(conn, id)?;
    let mut filter = view.selection.filter;
    if !view.selection.ids.is_empty() {
        return Ok(0);
    }
    filter.since = filter.since.max(Some(view.created_at));
    let conditions = match dead::conditions(conn, &filter) {
        // The cause has become part of another.
        Err(Fault::Store(StoreError::NoCause(_))) => return Ok(0),
        conditions => conditions?,
    };
    let sql = format!(
        "SELECT count(*) FROM dead d {conditions}
         AND NOT EXISTS (SELECT 1 FROM replay_letter r WHERE r.job = d.id AND r.replay = {row})"
    );
    Ok(conn.prepare_cached(&sql)?.query_row(conditions.values(), |row| row.get(0))?)
}

fn find(conn: &Connection, id: ReplayId) -> Result<Option<(i64, ReplayView)>, Fault> {
    let sql = format!("SELECT {REPLAY_COLUMNS} FROM replay r WHERE r.uuid = ?1 AND r.forgotten = 0");
    Ok(conn.prepare_cached(&sql)?.query_row([id.as_bytes()], |row| rows::replay_view(row)).optional()?)
}

/// The row of a replay that must be there, and the replay.
pub(super) fn get(conn: &Connection, id: ReplayId) -> Result<(i64, ReplayView), Fault> {
    Ok(find(conn, id)?.ok_or_else(|| StoreError::NoReplay(id.to_string()))?)
}

fn list(conn: &Connection, params: &ListReplays) -> Result<Page<ReplayView>, Fault> {
    let mut conditions = Conditions::default();
    conditions.less_than("r.id", lists::row(params.cursor.as_deref())?);
    conditions.each_within("r.pipelines", &params.within);
    conditions.holds(if params.open_only { "r.finished_at IS NULL" } else { "r.forgotten = 0" });
    let limit = params.limit.saturating_add(1);
    let index = if params.open_only { "INDEXED BY replay_open" } else { "" };
    let sql = format!("SELECT {REPLAY_COLUMNS} FROM replay r {index} {conditions} ORDER BY r.id DESC LIMIT {limit}");
    let mut select = conn.prepare_cached(&sql)?;
    let found = select.query_map(conditions.values(), |row| rows::replay_view(row))?.collect::<RowResult<Vec<_>>>()?;
    let page = Page::cut(found, params.limit, |(row, _)| row.to_string());
    Ok(Page { items: page.items.into_iter().map(|(_, view)| view).collect(), next: page.next })
}

/// The replays that are open, the newest first.
pub(super) fn list_open(conn: &Connection, limit: u32) -> Result<Vec<ReplayView>, Fault> {
    match limit {
        0 => Ok(Vec::new()),
        limit => Ok(list(conn, &ListReplays::open(limit))?.items),
    }
}

fn of_job(conn: &Connection, job: JobId, limit: u32) -> Result<Vec<ReplayView>, Fault> {
    let sql = format!(
        "SELECT {REPLAY_COLUMNS} FROM replay r
         WHERE r.id IN (SELECT replay FROM replay_letter WHERE job = ?1) AND r.forgotten = 0
         ORDER BY r.id DESC LIMIT ?2"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let found = select.query_map(params![job.as_bytes(), limit], |row| rows::replay_view(row))?;
    Ok(found.map(|row| row.map(|(_, view)| view)).collect::<RowResult<_>>()?)
}

/// Letters of a replay, those of which a clause holds if there is one.
fn letters(conn: &Connection, params: &ListReplayLetters, clause: Option<&str>) -> Result<Page<ReplayLetter>, Fault> {
    let (replay, _) = get(conn, params.id)?;
    let mut conditions = Conditions::default();
    conditions.equal("l.replay", Some(replay));
    conditions.equal("l.state", params.state.map(|state| state.as_str().to_owned()));
    conditions.at_least("l.n", lists::row(params.cursor.as_deref())?.map(|after| after.saturating_add(1)));
    clause.into_iter().for_each(|clause| conditions.holds(clause));
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
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map(conditions.values(), |row| {
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
        Ok((row.get::<_, i64>(0)?, letter))
    })?;
    let page = Page::cut(rows.collect::<RowResult<Vec<_>>>()?, params.limit, |(n, _)| n.to_string());
    Ok(Page { items: page.items.into_iter().map(|(_, letter)| letter).collect(), next: page.next })
}

/// Changes where a replay is, if it is still as it was. Of its step only the difference is written, since letters may have
/// settled meanwhile.
fn set(batch: &mut Batch<'_>, params: &SetReplay) -> Result<bool, Fault> {
    let NextReplay { state, why, step, forgiven, pins, pacing, verb } = &params.next;
    let mut update = batch.statement(
        "UPDATE replay SET version = version + 1, state = ?3, why = ?4, forgiven = ?5, excluded = ifnull(?6, excluded),
                finished_at = ?7, pins = ifnull(?8, pins), pacing = ifnull(?9, pacing), moved_at = ?10
         WHERE uuid = ?1 AND version = ?2 AND finished_at IS NULL",
    )?;
    let excluded = params.excluded.as_ref().map(serde_json::to_string).transpose()?;
    let finished_at = state.is_over().then_some(params.now.as_millis());
    let id = params.id.as_bytes();
    let written = pins.as_ref().map(serde_json::to_string).transpose()?;
    let paced = pacing.as_ref().map(serde_json::to_string).transpose()?;
    let (was, moved_at) = (params.was, params.now.as_millis());
    let next = params![id, was, state.as_str(), why, forgiven, excluded, finished_at, written, paced, moved_at];
    if update.execute(next)? == 0 {
        return Ok(false);
    }
    if step.is_none() && verb.is_none() {
        return Ok(true);
    }
    let (replay, view) = get(batch.connection(), params.id)?;
    if let Some(change) = step {
        set_step(batch, replay, change)?;
    }
    if let Some(verb) = verb {
        let object = format!("replay {}", params.id);
        activity::note(batch, &params.by, (verb, &object), &params.detail(&view), params.now)?;
    }
    Ok(true)
}

/// Writes how a step changes.
pub(super) fn set_step(batch: &Batch<'_>, replay: i64, change: &StepChange) -> Result<(), Fault> {
    let StepChange { from, to } = change;
    let by = |from: u64, to: u64| i64::try_from(to).unwrap_or(i64::MAX) - i64::try_from(from).unwrap_or(i64::MAX);
    let mut update = batch.statement(
        "UPDATE replay SET step = ?2, step_sent = step_sent + ?3, step_settled = step_settled + ?4,
                           step_failed = step_failed + ?5
         WHERE id = ?1",
    )?;
    update.execute(params![
        replay,
        to.number,
        by(from.sent, to.sent),
        by(from.settled, to.settled),
        by(from.failed, to.failed)
    ])?;
    Ok(())
}

fn forget(batch: &mut Batch<'_>, params: &ForgetReplays) -> Result<bool, Fault> {
    leader::check(batch, params.led.as_ref())?;
    let (before, limit) = (params.before.as_millis(), params.limit);
    // The audit must not miss letters of a replay that is half forgotten.
    batch
        .statement("UPDATE replay INDEXED BY replay_ended SET forgotten = 1 WHERE finished_at < ?1 AND forgotten = 0")?
        .execute([before])?;
    let mut letters = batch.statement(
        "DELETE FROM replay_letter WHERE (replay, n) IN
            (SELECT l.replay, l.n FROM replay r INDEXED BY replay_ended CROSS JOIN replay_letter l ON l.replay = r.id
             WHERE r.finished_at < ?1 LIMIT ?2)",
    )?;
    let full = usize::try_from(limit).unwrap_or(usize::MAX);
    if letters.execute(params![before, limit])? >= full {
        return Ok(true);
    }
    // The newest stays, so that its number is not given again.
    let mut replays = batch.statement(
        "DELETE FROM replay WHERE id IN
            (SELECT id FROM replay INDEXED BY replay_ended WHERE finished_at < ?1 LIMIT ?2)
         AND id < (SELECT max(id) FROM replay)",
    )?;
    let forgotten = replays.execute(params![before, limit])?;
    lanes::forget(batch)?;
    Ok(forgotten >= full)
}
