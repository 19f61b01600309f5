//! Jobs: accepting, listing and showing them. How they are cancelled is in `job_cancels`.

use async_trait::async_trait;
use redrive_core::counts::{Delta, Event};
use redrive_core::ids::{JobId, JobRef, RoundName};
use redrive_core::jobs::{JobView, NewJob, json_bytes};
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;
use rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE;
use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteStore;
use super::batch::Batch;
use super::conditions::Conditions;
use super::fault::Fault;
use super::job_cancels::cancel;
use super::job_refs;
use super::lanes;
use super::results;
use super::retrying;
use super::rows::{self, RowResult};
use crate::contract::{
    CancelJobs, DiscardRecord, EnqueueJobs, EnqueuedJob, JobDetail, JobFilter, JobStore, LateSettlement, ListJobs,
    ListRetrying, Page, RetryingJobs, Room,
};
use crate::error::{Result, StoreError};

#[async_trait]
impl JobStore for SqliteStore {
    async fn enqueue(&self, params: EnqueueJobs) -> Result<Vec<EnqueuedJob>> {
        // Written out here, not by the one thread that all callers share.
        let written = |job: &NewJob| serde_json::to_string(&job.input).expect("a JSON object can be written");
        let inputs: Vec<String> = params.jobs.iter().map(written).collect();
        self.write(move |batch| enqueue(batch, &params, &inputs)).await
    }

    async fn list_jobs(&self, params: ListJobs) -> Result<Page<JobView>> {
        self.read(move |conn| list(conn, &params)).await
    }

    async fn get_job(&self, id: JobId) -> Result<Option<JobDetail>> {
        self.read(move |conn| get(conn, id)).await
    }

    async fn find_jobs(&self, named: JobRef) -> Result<Vec<JobId>> {
        self.read(move |conn| job_refs::find(conn, &named)).await
    }

    async fn cancel_jobs(&self, params: CancelJobs) -> Result<Vec<JobId>> {
        self.write(move |batch| cancel(batch, &params)).await
    }

    async fn retrying_jobs(&self, params: ListRetrying) -> Result<RetryingJobs> {
        self.read(move |conn| retrying::list(conn, &params)).await
    }
}

fn enqueue(batch: &mut Batch<'_>, params: &EnqueueJobs, inputs: &[String]) -> Result<Vec<EnqueuedJob>, Fault> {
    let pipeline = match params.bounds.is_empty() {
        true => batch.pipeline(&params.pipeline)?,
        false => room_for(batch, params)?,
    };
    let jobs = params.jobs.iter().zip(inputs);
    jobs.map(|(job, input)| accept(batch, pipeline, job, input, params.now)).collect()
}

/// Whether jobs are here already, in whatever state, so that they are sent again because their answer was lost.
fn are_known(batch: &Batch<'_>, jobs: &[NewJob]) -> Result<bool, Fault> {
    for job in jobs {
        if place_of(batch.connection(), job.id)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Refuses the batch if its new jobs do not fit. Nothing is written before that is known.
fn room_for(batch: &mut Batch<'_>, params: &EnqueueJobs) -> Result<i64, Fault> {
    let found = batch.find_pipeline(&params.pipeline)?;
    let standing = found.map(|pipeline| batch.queued_and_dead(pipeline)).transpose()?.unwrap_or_default();
    let mut new = 0;
    for job in params.jobs.iter() {
        let known = match (found, &job.key) {
            (Some(pipeline), Some(key)) => key_owner(batch, pipeline, job.round.as_ref(), key)?.is_some(),
            _ => false,
        };
        new += u64::from(!known);
    }
    if let Some(exceeded) = params.bounds.exceeded(new, standing)
        && !are_known(batch, &params.jobs)?
    {
        return Err(StoreError::exceeded(&params.pipeline, exceeded).into());
    }
    batch.pipeline(&params.pipeline)
}

/// The job that has a key of a round.
pub(super) fn key_owner(
    batch: &Batch<'_>,
    pipeline: i64,
    round: Option<&RoundName>,
    key: &str,
) -> Result<Option<JobId>, Fault> {
    let mut select =
        batch.statement("SELECT job FROM identity WHERE pipeline = ?1 AND key = ?3 AND round = ifnull(?2, '')")?;
    Ok(select.query_row(params![pipeline, rows::round_text(round), key], |row| rows::job_id(row, 0)).optional()?)
}

/// The job that has a key that a run met: it is not forgotten for a while. Written at most once a day.
fn meet_key(
    batch: &Batch<'_>,
    pipeline: i64,
    (round, key): (Option<&RoundName>, &str),
    now: Timestamp,
) -> Result<Option<JobId>, Fault> {
    let round = rows::round_text(round);
    let mut select = batch
        .statement("SELECT job, met_on FROM identity WHERE pipeline = ?1 AND key = ?3 AND round = ifnull(?2, '')")?;
    let found =
        select.query_row(params![pipeline, round, key], |row| Ok((rows::job_id(row, 0)?, row.get::<_, i64>(1)?)));
    let Some((job, met_on)) = found.optional()? else { return Ok(None) };
    if met_on < now.day() {
        batch
            .statement("UPDATE identity SET met_on = ?4 WHERE pipeline = ?1 AND key = ?3 AND round = ifnull(?2, '')")?
            .execute(params![pipeline, round, key, now.day()])?;
    }
    Ok(Some(job))
}

/// Gives a key of a round to a job; says whether nobody had it.
pub(super) fn claim_key(
    batch: &mut Batch<'_>,
    pipeline: i64,
    (round, key): (Option<&RoundName>, &str),
    job: JobId,
    now: Timestamp,
) -> Result<bool, Fault> {
    let claim = batch.hot(
        "INSERT OR IGNORE INTO identity (pipeline, round, key, job, met_on) VALUES (?1, ifnull(?2, ''), ?3, ?4, ?5)",
    )?;
    Ok(claim.execute(params![pipeline, rows::round_text(round), key, job.as_bytes(), now.day()])? > 0)
}

/// Accepts a job, unless its key is known.
pub(super) fn accept(
    batch: &mut Batch<'_>,
    pipeline: i64,
    job: &NewJob,
    input: &str,
    now: Timestamp,
) -> Result<EnqueuedJob, Fault> {
    if let Some(key) = &job.key {
        let round = job.round.as_ref();
        if !claim_key(batch, pipeline, (round, key), job.id, now)? {
            let owner = meet_key(batch, pipeline, (round, key), now)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
            if owner == job.id {
                // It was sent again, because its answer was lost.
                return Ok(EnqueuedJob::Accepted(owner));
            }
            let (state, ended_at) = place_of(batch.connection(), owner)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
            return Ok(EnqueuedJob::Known { id: owner, state, ended_at });
        }
    }
    // A key would have told that it was sent again.
    if batch.may_be_known(job.id)? && job.key.is_none() && place_of(batch.connection(), job.id)?.is_some() {
        return Ok(EnqueuedJob::Accepted(job.id));
    }
    let seq = batch.next_number()?;
    let inserted = batch
        .hot(
            "INSERT INTO job (seq, id, pipeline, round, key, target, accepted_at, due_at, input, origin)
             VALUES (?1, ?2, ?3, ifnull(?4, ''), ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            seq,
            job.id.as_bytes(),
            pipeline,
            rows::round_text(job.round.as_ref()),
            job.key,
            job.target,
            now.as_millis(),
            job.due_at.as_millis(),
            input,
            job.origin.as_ref().map(serde_json::to_string).transpose()?
        ]);
    match inserted {
        Ok(_) => {}
        // It was sent again, because its answer was lost. (`ON CONFLICT` would cost every job more.)
        Err(rusqlite::Error::SqliteFailure(error, _)) if error.extended_code == SQLITE_CONSTRAINT_UNIQUE => {
            return Ok(EnqueuedJob::Accepted(job.id));
        }
        Err(error) => return Err(error.into()),
    }
    lanes::push(batch, lanes::queue(pipeline), job.due_at, seq)?;
    let ledger = batch.ledger(pipeline);
    ledger.accepted += 1;
    ledger.queued += 1;
    if let Some(ledger) = batch.rounds.add(pipeline, rows::round_text(job.round.as_ref()).unwrap_or_default(), now) {
        ledger.queued += 1;
    }
    batch.count(pipeline, now, Delta::of(Event::Accepted));
    Ok(EnqueuedJob::Accepted(job.id))
}

/// The state of a job, told by the table that has it, and when it came to its end.
pub(super) fn place_of(conn: &Connection, id: JobId) -> Result<Option<(JobState, Option<Timestamp>)>, Fault> {
    for (state, sql) in [
        (JobState::Leased, "SELECT NULL FROM lease WHERE job = ?1"),
        (JobState::Queued, "SELECT NULL FROM job WHERE id = ?1"),
        (JobState::Done, "SELECT done_at FROM done WHERE job = ?1"),
        (JobState::Dead, "SELECT died_at FROM dead WHERE id = ?1"),
        (JobState::Discarded, "SELECT discarded_at FROM discarded WHERE job = ?1"),
    ] {
        let found = conn.prepare_cached(sql)?.query_row([id.as_bytes()], |row| rows::time_opt(row, 0)).optional()?;
        if let Some(ended_at) = found {
            return Ok(Some((state, ended_at)));
        }
    }
    Ok(None)
}

/// The state of a job.
pub(super) fn state_of(conn: &Connection, id: JobId) -> Result<Option<JobState>, Fault> {
    Ok(place_of(conn, id)?.map(|(state, _)| state))
}

/// A table that has jobs, in one shape with the others.
struct Source {
    states: &'static [JobState],
    id: &'static str,
    state: &'static str,
    /// After id, pipeline and state: key, target, input, attempts, crashes, replays, accepted_at, due_at, held,
    /// ended_at, reason, code, number, round, origin.
    columns: &'static str,
    tables: &'static str,
    text: &'static [&'static str],
}

/// Where jobs are, hot ones first.
const SOURCES: [Source; 4] = [
    Source {
        states: &[JobState::Queued, JobState::Leased],
        id: "j.id",
        state: "iif(l.job IS NULL, 'queued', 'leased')",
        columns: "j.key, j.target, j.input, j.attempts, j.crashes, j.replays, j.accepted_at,
                  iif(l.job IS NULL, j.due_at, NULL), h.seq IS NOT NULL, NULL, j.reason, j.code,
                  j.seq, j.round, j.origin",
        tables: "job j LEFT JOIN lease l ON l.job = j.id
                 LEFT JOIN lane n ON n.pipeline = j.pipeline AND n.name = ifnull('r' || j.replay, '') || 'h' || j.target
                 LEFT JOIN place h ON h.lane = n.id AND h.due_at = j.due_at AND h.seq = j.seq",
        text: &["j.key", "j.target", "j.input"],
    },
    Source {
        states: &[JobState::Done],
        id: "j.job",
        state: "'done'",
        columns: "j.key, j.target, NULL, j.attempts, j.crashes, j.replays, j.accepted_at, NULL, 0, j.done_at, NULL, NULL,
                  j.number, j.round, j.origin",
        tables: "done j",
        text: &["j.key", "j.target"],
    },
    Source {
        states: &[JobState::Dead],
        id: "j.id",
        state: "'dead'",
        columns: "j.key, j.target, j.input, j.attempts, j.crashes, j.replays, j.accepted_at, NULL, 0, j.died_at, j.reason, j.code,
                  j.seq, j.round, j.origin",
        tables: "dead j",
        text: &["j.key", "j.target", "j.input", "j.message"],
    },
    Source {
        states: &[JobState::Discarded],
        id: "j.job",
        state: "'discarded'",
        columns: "j.key, j.target, NULL, j.attempts, j.crashes, j.replays, j.accepted_at, NULL, 0, j.discarded_at, j.reason, j.code,
                  j.number, j.round, j.origin",
        tables: "discarded j",
        text: &["j.key", "j.target"],
    },
];

impl Source {
    fn select(&self, conn: &Connection, conditions: &Conditions, limit: u32) -> Result<Vec<JobView>, Fault> {
        let Self { id, state, columns, tables, .. } = self;
        let sql = format!(
            "SELECT {id}, p.name, {state}, {columns} FROM {tables} JOIN pipeline p ON p.id = j.pipeline
             {conditions} ORDER BY {id} DESC LIMIT {limit}"
        );
        let mut select = conn.prepare_cached(&sql)?;
        let rows = select.query_map(conditions.values(), |row| rows::job_view(row))?;
        Ok(Room::fill(rows, json_bytes)?)
    }

    /// Whether the source has no reason and code to filter by.
    fn lacks_reason(&self) -> bool {
        self.states == [JobState::Done]
    }
}

fn list(conn: &Connection, params: &ListJobs) -> Result<Page<JobView>, Fault> {
    let filter = &params.filter;
    let invalid = |cursor: &String| StoreError::InvalidCursor(cursor.clone());
    let before =
        params.cursor.as_ref().map(|cursor| cursor.parse::<JobId>().map_err(|_| invalid(cursor))).transpose()?;
    let wanted = |source: &&Source| filter.states.is_empty() || source.states.iter().any(|s| filter.states.contains(s));
    let mut jobs = Vec::new();
    for source in SOURCES.iter().filter(wanted) {
        if source.lacks_reason() && (filter.reason.is_some() || filter.code.is_some()) {
            continue;
        }
        jobs.extend(source.select(conn, &conditions(source, filter, before), params.limit.saturating_add(1))?);
    }
    jobs.sort_unstable_by_key(|job| std::cmp::Reverse(job.id));
    Ok(Page::fit(jobs, params.limit, json_bytes, |job| job.id.to_string()))
}

fn conditions(source: &Source, filter: &JobFilter, before: Option<JobId>) -> Conditions {
    let mut conditions = Conditions::default();
    conditions.less_than(source.id, before.map(|id| id.as_bytes().to_vec()));
    conditions.equal("p.name", filter.pipeline.as_ref().map(|name| name.as_str().to_owned()));
    conditions.within("p.name", &filter.within);
    if !source.lacks_reason() {
        conditions.equal("j.reason", filter.reason.map(|reason| reason.as_str().to_owned()));
        conditions.equal("j.code", filter.code.clone());
    }
    conditions.equal("j.target", filter.target.clone());
    conditions.at_least("j.accepted_at", filter.since.map(Timestamp::as_millis));
    conditions.less_than("j.accepted_at", filter.until.map(Timestamp::as_millis));
    conditions.contains(source.text, filter.text.as_deref());
    conditions.one_of(source.state, filter.states.iter().map(|state| state.as_str()));
    conditions
}

fn get(conn: &Connection, id: JobId) -> Result<Option<JobDetail>, Fault> {
    for source in &SOURCES {
        let mut conditions = Conditions::default();
        conditions.equal(source.id, Some(id.as_bytes().to_vec()));
        if let Some(job) = source.select(conn, &conditions, 1)?.pop() {
            let failures = rows::failures(conn, id)?;
            let kept = results::find(conn, id)?.map(|kept| (kept.result, kept.log));
            let (result, log) = kept.map_or((None, None), |(result, log)| (Some(result), log));
            let (late, discard) = (late(conn, id)?, discard_record(conn, id)?);
            return Ok(Some(JobDetail { job, failures, late, discard, result, log }));
        }
    }
    Ok(None)
}

fn late(conn: &Connection, id: JobId) -> Result<Vec<LateSettlement>, Fault> {
    let mut select =
        conn.prepare_cached("SELECT at, worker, epoch, destination, failure FROM late WHERE job = ?1 ORDER BY at")?;
    let rows = select.query_map([id.as_bytes()], |row| {
        Ok(LateSettlement {
            at: rows::time(row, 0)?,
            worker: rows::worker_id(row, 1)?,
            epoch: row.get(2)?,
            destination: row.get(3)?,
            failure: rows::json_opt(row, 4)?,
        })
    })?;
    Ok(rows.collect::<RowResult<_>>()?)
}

fn discard_record(conn: &Connection, id: JobId) -> Result<Option<DiscardRecord>, Fault> {
    let mut select =
        conn.prepare_cached("SELECT discarded_at, actor, why, was, reason, died_at FROM discarded WHERE job = ?1")?;
    let record = select.query_row([id.as_bytes()], |row| {
        Ok(DiscardRecord {
            at: rows::time(row, 0)?,
            actor: row.get(1)?,
            why: row.get(2)?,
            was: rows::parsed(row, 3)?,
            reason: rows::parsed_opt(row, 4)?,
            died_at: rows::time_opt(row, 5)?,
        })
    });
    Ok(record.optional()?)
}
