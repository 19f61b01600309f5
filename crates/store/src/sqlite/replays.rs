//! Replays: making, listing, advancing, pausing and ending them.

use async_trait::async_trait;
use redrive_core::dead::DeadLetter;
use redrive_core::ids::ReplayId;
use redrive_core::replays::{Advance, Progress, ReplayState, Step, next, resumed};
use redrive_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::SqliteStore;
use super::batch::Batch;
use super::conditions::Conditions;
use super::fault::Fault;
use super::replay_letters::send;
use super::replay_plans::{self, Choice};
use super::replay_withdrawals::withdraw;
use super::rows::{self, RowResult};
use super::{causes, dead};
use crate::contract::{
    ChangeReplay, ClaimAutoReplay, ListChosen, ListReplayLetters, ListReplays, Page, PlanReplay, ReplayChange,
    ReplayLetter, ReplayPlan, ReplayStore, ReplayView, StartReplay, Topic,
};
use crate::error::{Result, StoreError};

#[async_trait]
impl ReplayStore for SqliteStore {
    async fn plan_replay(&self, params: PlanReplay) -> Result<ReplayPlan> {
        self.read(move |conn| replay_plans::plan(conn, &params)).await
    }

    async fn list_chosen(&self, params: ListChosen) -> Result<Page<DeadLetter>> {
        self.read(move |conn| replay_plans::list(conn, &params)).await
    }

    async fn start_replay(&self, params: StartReplay) -> Result<ReplayPlan> {
        self.write_about(Topic::Replays, move |batch| start(batch, &params)).await
    }

    async fn advance_replay(&self, id: ReplayId, now: Timestamp) -> Result<Advance> {
        self.write_about(Topic::Replays, move |batch| advance(batch, id, now)).await
    }

    async fn list_replays(&self, params: ListReplays) -> Result<Page<ReplayView>> {
        self.read(move |conn| list(conn, &params)).await
    }

    async fn get_replay(&self, id: ReplayId) -> Result<Option<ReplayView>> {
        self.read(move |conn| Ok(find(conn, id)?.map(|(_, view)| view))).await
    }

    async fn joined_since(&self, id: ReplayId) -> Result<u64> {
        self.read(move |conn| joined_since(conn, id)).await
    }

    async fn list_replay_letters(&self, params: ListReplayLetters) -> Result<Page<ReplayLetter>> {
        self.read(move |conn| letters(conn, &params)).await
    }

    async fn change_replay(&self, params: ChangeReplay) -> Result<bool> {
        // What a dead worker held is nobody's, and can be taken back.
        self.bury_workers().await?;
        self.write_about(Topic::Replays, move |batch| change(batch, &params)).await
    }

    async fn claim_auto_replay(&self, params: ClaimAutoReplay) -> Result<bool> {
        self.write_about(Topic::Replays, move |batch| {
            let Some(pipeline) = batch.find_pipeline(&params.pipeline)? else { return Ok(false) };
            let mut claim = batch.statement(
                "INSERT INTO auto_replay (pipeline, reason, last_at) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET last_at = excluded.last_at
                 -- A turn that was had further ahead than a turn lasts was had while the clock was ahead.
                 WHERE last_at <= ?4 OR last_at - ?3 > ?3 - ?4",
            )?;
            let reason = params.reason.map_or("", |reason| reason.as_str());
            let (now, before) = (params.now.as_millis(), params.before.as_millis());
            Ok(claim.execute(params![pipeline, reason, now, before])? == 1)
        })
        .await
    }
}

fn start(batch: &mut Batch<'_>, params: &StartReplay) -> Result<ReplayPlan, Fault> {
    let StartReplay { id, name, actor, plan: asked, force_why, pacing, edits } = params;
    let mut asked = asked.clone();
    if let Some(cause) = &mut asked.selection.filter.cause {
        // Whatever is called so later, it is this one that is meant.
        *cause = causes::find(batch.connection(), cause)?.1;
    }
    // What nobody asked for need not be counted before it is known how much of it goes.
    let mut plan = match asked.automatic {
        None => replay_plans::plan(batch.connection(), &asked)?,
        Some(_) => ReplayPlan::default(),
    };
    if asked.automatic.is_none() && plan.included == 0 {
        return Ok(plan);
    }
    let mut insert = batch.statement(
        "INSERT INTO replay (uuid, name, actor, mode, state, force_why, automatic, selection, pacing, edits, excluded,
                             created_at, pipelines, total, pending)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, '[]', 0, 0)",
    )?;
    insert.execute(params![
        id.as_bytes(),
        name,
        actor,
        asked.mode.as_str(),
        ReplayState::Running.as_str(),
        force_why,
        asked.automatic.is_some(),
        serde_json::to_string(&asked.selection)?,
        serde_json::to_string(pacing)?,
        serde_json::to_string(edits)?,
        serde_json::to_string(&plan.excluded)?,
        asked.now.as_millis()
    ])?;
    let replay = batch.connection().last_insert_rowid();
    let claimed = Choice::of(batch.connection(), &asked)?.claim(batch.connection(), replay)?;
    if claimed == 0 {
        batch.statement("DELETE FROM replay WHERE id = ?1")?.execute([replay])?;
        return Ok(plan);
    }
    if asked.automatic.is_some() {
        (plan.matched, plan.included) = (claimed, claimed);
        plan.pipelines = asked.selection.filter.pipeline.iter().map(|name| (name.clone(), claimed)).collect();
    }
    let pipelines: Vec<_> = plan.pipelines.keys().collect();
    batch.statement("UPDATE replay SET total = ?2, pending = ?2, pipelines = ?3 WHERE id = ?1")?.execute(params![
        replay,
        claimed,
        serde_json::to_string(&pipelines)?
    ])?;
    Ok(plan)
}

fn joined_since(conn: &Connection, id: ReplayId) -> Result<u64, Fault> {
    let (row, view) = get(conn, id)?;
    let mut filter = view.selection.filter;
    if !view.selection.ids.is_empty() {
        return Ok(0);
    }
    filter.since = filter.since.max(Some(view.created_at));
    let conditions = match dead::conditions(conn, &filter, None) {
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

const COLUMNS: &str = "r.id, r.uuid, r.name, r.actor, r.state, r.why, r.mode, r.force_why, r.automatic, r.selection, r.pacing,
    r.edits, r.excluded, r.created_at, r.finished_at, r.total, r.pending, r.running, r.recovered, r.failed, r.same_cause,
    r.gone, r.step, r.step_sent, r.step_settled, r.step_failed, r.free_at, r.pipelines";

fn view(row: &Row<'_>) -> RowResult<(i64, ReplayView)> {
    let step = Step { number: row.get(22)?, sent: row.get(23)?, settled: row.get(24)?, failed: row.get(25)? };
    let progress = Progress {
        total: row.get(15)?,
        pending: row.get(16)?,
        running: row.get(17)?,
        recovered: row.get(18)?,
        failed: row.get(19)?,
        same_cause: row.get(20)?,
        gone: row.get(21)?,
        step,
        free_at: rows::time(row, 26)?,
    };
    let view = ReplayView {
        id: row.get(1).map(ReplayId::from_bytes)?,
        name: row.get(2)?,
        actor: row.get(3)?,
        state: rows::parsed(row, 4)?,
        why: row.get(5)?,
        mode: rows::parsed(row, 6)?,
        force_why: row.get(7)?,
        automatic: row.get(8)?,
        selection: rows::json(row, 9)?,
        pacing: rows::json(row, 10)?,
        edits: rows::json(row, 11)?,
        excluded: rows::json(row, 12)?,
        progress,
        pipelines: rows::json(row, 27)?,
        created_at: rows::time(row, 13)?,
        finished_at: rows::time_opt(row, 14)?,
    };
    Ok((row.get(0)?, view))
}

fn find(conn: &Connection, id: ReplayId) -> Result<Option<(i64, ReplayView)>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM replay r WHERE r.uuid = ?1");
    Ok(conn.prepare_cached(&sql)?.query_row([id.as_bytes()], view).optional()?)
}

/// The row of a replay that must be there, and the replay.
fn get(conn: &Connection, id: ReplayId) -> Result<(i64, ReplayView), Fault> {
    Ok(find(conn, id)?.ok_or_else(|| StoreError::NoReplay(id.to_string()))?)
}

fn list(conn: &Connection, params: &ListReplays) -> Result<Page<ReplayView>, Fault> {
    let mut conditions = Conditions::default();
    conditions.less_than("r.id", rows::row_cursor(params.cursor.as_deref())?);
    if params.open_only {
        conditions.holds("r.finished_at IS NULL");
    }
    let limit = params.limit.saturating_add(1);
    let index = if params.open_only { "INDEXED BY replay_open" } else { "" };
    let sql = format!("SELECT {COLUMNS} FROM replay r {index} {conditions} ORDER BY r.id DESC LIMIT {limit}");
    let mut select = conn.prepare_cached(&sql)?;
    let found = select.query_map(conditions.values(), view)?.collect::<RowResult<Vec<_>>>()?;
    let page = Page::cut(found, params.limit, |(row, _)| row.to_string());
    Ok(Page { items: page.items.into_iter().map(|(_, view)| view).collect(), next: page.next })
}

fn letters(conn: &Connection, params: &ListReplayLetters) -> Result<Page<ReplayLetter>, Fault> {
    let (replay, _) = get(conn, params.id)?;
    let mut conditions = Conditions::default();
    conditions.equal("l.replay", Some(replay));
    conditions.equal("l.state", params.state.map(|state| state.as_str().to_owned()));
    conditions.at_least("l.n", rows::row_cursor(params.cursor.as_deref())?.map(|after| after + 1));
    let limit = params.limit.saturating_add(1);
    let sql = format!(
        "SELECT l.n, l.job, p.name, l.state, c.name, a.name, l.ended_at FROM replay_letter l
         JOIN pipeline p ON p.id = l.pipeline
         LEFT JOIN cause_key k ON k.id = l.cause_key LEFT JOIN cause c ON c.id = k.cause
         LEFT JOIN cause_key m ON m.id = l.after_key LEFT JOIN cause a ON a.id = m.cause
         {conditions} ORDER BY l.n LIMIT {limit}"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map(conditions.values(), |row| {
        let letter = ReplayLetter {
            id: rows::job_id(row, 1)?,
            pipeline: rows::parsed(row, 2)?,
            state: rows::parsed(row, 3)?,
            cause: rows::parsed_opt(row, 4)?,
            cause_after: rows::parsed_opt(row, 5)?,
            ended_at: rows::time_opt(row, 6)?,
        };
        Ok((row.get::<_, i64>(0)?, letter))
    })?;
    let page = Page::cut(rows.collect::<RowResult<Vec<_>>>()?, params.limit, |(n, _)| n.to_string());
    Ok(Page { items: page.items.into_iter().map(|(_, letter)| letter).collect(), next: page.next })
}

fn change(batch: &mut Batch<'_>, params: &ChangeReplay) -> Result<bool, Fault> {
    batch.settle_tallies()?;
    let (replay, view) = get(batch.connection(), params.id)?;
    let by = format!("by {}", params.actor);
    match (params.change, view.state) {
        (ReplayChange::Pause, ReplayState::Running) => set_state(batch, replay, ReplayState::Paused, Some(&by))?,
        (ReplayChange::Resume, ReplayState::Paused) => {
            set_state(batch, replay, ReplayState::Running, None)?;
            set_step(batch, replay, resumed(&view.progress), view.progress.free_at)?;
        }
        (ReplayChange::Cancel, ReplayState::Running | ReplayState::Paused) => {
            set_state(batch, replay, ReplayState::Cancelled, Some(&by))?;
            batch
                .statement(
                    "UPDATE replay_letter SET state = 'cancelled', claimed = 0, ended_at = ?2
                     WHERE replay = ?1 AND state = 'pending'",
                )?
                .execute(params![replay, params.now.as_millis()])?;
            batch.statement("UPDATE replay SET pending = 0 WHERE id = ?1")?.execute([replay])?;
            let withdrawn = withdraw(batch, replay, params.now)?;
            if view.progress.running == withdrawn {
                finish(batch, replay, ReplayState::Cancelled, params.now)?;
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn set_state(batch: &Batch<'_>, replay: i64, state: ReplayState, why: Option<&str>) -> Result<(), Fault> {
    let mut update = batch.statement("UPDATE replay SET state = ?2, why = ?3 WHERE id = ?1")?;
    update.execute(params![replay, state.as_str(), why])?;
    Ok(())
}

fn set_step(batch: &Batch<'_>, replay: i64, step: Step, free_at: Timestamp) -> Result<(), Fault> {
    let mut update = batch.statement(
        "UPDATE replay SET step = ?2, step_sent = ?3, step_settled = ?4, step_failed = ?5, free_at = ?6 WHERE id = ?1",
    )?;
    update.execute(params![replay, step.number, step.sent, step.settled, step.failed, free_at.as_millis()])?;
    Ok(())
}

fn advance(batch: &mut Batch<'_>, id: ReplayId, now: Timestamp) -> Result<Advance, Fault> {
    // What other operations of this transaction counted belongs to the progress.
    batch.settle_tallies()?;
    let (replay, view) = get(batch.connection(), id)?;
    if !view.is_open() {
        return Ok(Advance::Wait(None));
    }
    let advance = next(view.state, &view.pacing, &view.progress, now);
    match &advance {
        Advance::Send { letters, step, free_at } => {
            set_step(batch, replay, *step, *free_at)?;
            send(batch, replay, &view, *letters, now)?;
        }
        Advance::Pause(why) => set_state(batch, replay, ReplayState::Paused, Some(why))?,
        Advance::Finish if view.state == ReplayState::Cancelled => finish(batch, replay, ReplayState::Cancelled, now)?,
        Advance::Finish => {
            finish(batch, replay, ReplayState::Done, now)?;
        }
        Advance::Wait(_) => {}
    }
    Ok(advance)
}

fn finish(batch: &Batch<'_>, replay: i64, state: ReplayState, now: Timestamp) -> Result<(), Fault> {
    let mut update = batch.statement("UPDATE replay SET state = ?2, finished_at = ?3 WHERE id = ?1")?;
    update.execute(params![replay, state.as_str(), now.as_millis()])?;
    Ok(())
}
