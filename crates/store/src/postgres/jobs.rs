//! Jobs: listing and showing them. How they are accepted is in `enqueuing`, how they are cancelled in `job_cancels`.

use async_trait::async_trait;
use redrive_core::ids::{JobId, JobRef};
use redrive_core::jobs::{JobView, NewJob, json_bytes};
use redrive_core::state::JobState;

use super::conditions::Conditions;
use super::enqueuing::{self, Enqueue};
use super::fault::Fault;
use super::sql::{Conn, Row, args};
use super::{PostgresStore, job_cancels, job_refs, results, retrying, rows, run};
use crate::contract::{
    CancelJobs, DiscardRecord, EnqueueJobs, EnqueuedJob, JobDetail, JobFilter, JobStore, LateSettlement, ListJobs,
    ListRetrying, Page, RetryingJobs, Room,
};
use crate::error::{Result, StoreError};

#[async_trait]
impl JobStore for PostgresStore {
    async fn enqueue(&self, params: EnqueueJobs) -> Result<Vec<EnqueuedJob>> {
        let written = |job: &NewJob| serde_json::to_string(&job.input).expect("a JSON object can be written");
        let inputs: Vec<String> = params.jobs.iter().map(written).collect();
        // A bound is exact if nobody else enqueues meanwhile.
        match params.bounds.is_empty() {
            true => self.writer.enqueue(Enqueue { params, inputs }).await,
            false => self.write(Enqueue { params, inputs }, run!(enqueuing::enqueue)).await,
        }
    }

    async fn list_jobs(&self, params: ListJobs) -> Result<Page<JobView>> {
        self.read(params, run!(list)).await
    }

    async fn get_job(&self, id: JobId) -> Result<Option<JobDetail>> {
        self.read(id, run!(get)).await
    }

    async fn find_jobs(&self, named: JobRef) -> Result<Vec<JobId>> {
        self.read(named, run!(job_refs::find)).await
    }

    async fn cancel_jobs(&self, params: CancelJobs) -> Result<Vec<JobId>> {
        self.write(params, run!(job_cancels::cancel)).await
    }

    async fn retrying_jobs(&self, params: ListRetrying) -> Result<RetryingJobs> {
        self.read(params, run!(retrying::list)).await
    }
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
        state: "CASE WHEN l.job IS NULL THEN 'queued' ELSE 'leased' END",
        columns: "j.key, j.target, j.input, j.attempts, j.crashes, j.replays, j.accepted_at,
                  CASE WHEN l.job IS NULL THEN j.due_at END, n.id IS NOT NULL, NULL::bigint, j.reason, j.code,
                  j.seq, j.round, j.origin",
        // Of the lanes below zero those of replays count no jobs.
        tables: "job j LEFT JOIN lease l ON l.job = j.id LEFT JOIN place h ON h.seq = j.seq
                 LEFT JOIN lane n ON n.id = h.lane AND n.jobs > 0",
        text: &["j.key", "j.target", "j.input"],
    },
    Source {
        states: &[JobState::Done],
        id: "j.job",
        state: "'done'",
        columns: "j.key, j.target, NULL, j.attempts, j.crashes, j.replays, j.accepted_at, NULL::bigint, false, j.done_at, NULL, NULL,
                  j.number, j.round, j.origin",
        tables: "done j",
        text: &["j.key", "j.target"],
    },
    Source {
        states: &[JobState::Dead],
        id: "j.id",
        state: "'dead'",
        columns: "j.key, j.target, j.input, j.attempts, j.crashes, j.replays, j.accepted_at, NULL::bigint, false, j.died_at, j.reason,
                  j.code, j.seq, j.round, j.origin",
        tables: "dead j",
        text: &["j.key", "j.target", "j.input", "j.message"],
    },
    Source {
        states: &[JobState::Discarded],
        id: "j.job",
        state: "'discarded'",
        columns: "j.key, j.target, NULL, j.attempts, j.crashes, j.replays, j.accepted_at, NULL::bigint, false, j.discarded_at,
                  j.reason, j.code, j.number, j.round, j.origin",
        tables: "discarded j",
        text: &["j.key", "j.target"],
    },
];

impl Source {
    async fn select(&self, conn: &Conn, conditions: &Conditions, limit: u32) -> Result<Vec<JobView>, Fault> {
        let Self { id, state, columns, tables, .. } = self;
        let sql = format!(
            "SELECT {id}, p.name, {state}, {columns} FROM {tables} JOIN pipeline p ON p.id = j.pipeline
             {conditions} ORDER BY {id} DESC LIMIT {limit}"
        );
        let mut room = Room::default();
        let read = |row: &Row<'_>| {
            let job = rows::job_view(row)?;
            let fits = room.take(json_bytes(&job));
            Ok((job, fits))
        };
        conn.query_until(&sql, conditions.values(), read).await
    }

    /// Whether the source has no reason and code to filter by.
    fn lacks_reason(&self) -> bool {
        self.states == [JobState::Done]
    }
}

async fn list(conn: &Conn, params: &ListJobs) -> Result<Page<JobView>, Fault> {
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
        let conditions = conditions(source, filter, before);
        jobs.extend(source.select(conn, &conditions, params.limit.saturating_add(1)).await?);
    }
    jobs.sort_unstable_by_key(|job| std::cmp::Reverse(job.id));
    Ok(Page::fit(jobs, params.limit, json_bytes, |job| job.id.to_string()))
}

fn conditions(source: &Source, filter: &JobFilter, before: Option<JobId>) -> Conditions {
    let mut conditions = Conditions::default();
    conditions.less_than(source.id, before);
    conditions.equal("p.name", filter.pipeline.as_ref().map(|name| name.as_str()));
    conditions.within("p.name", &filter.within);
    if !source.lacks_reason() {
        conditions.equal("j.reason", filter.reason.map(|reason| reason.as_str()));
        conditions.equal("j.code", filter.code.as_deref());
    }
    conditions.equal("j.target", filter.target.as_deref());
    conditions.at_least("j.accepted_at", filter.since);
    conditions.less_than("j.accepted_at", filter.until);
    conditions.contains(source.text, filter.text.as_deref());
    conditions.one_of(source.state, filter.states.iter().map(|state| state.as_str()));
    conditions
}

async fn get(conn: &Conn, id: &JobId) -> Result<Option<JobDetail>, Fault> {
    let id = *id;
    for source in &SOURCES {
        let mut conditions = Conditions::default();
        conditions.equal(source.id, Some(id));
        if let Some(job) = source.select(conn, &conditions, 1).await?.pop() {
            let (failures, late) = (rows::failures(conn, id).await?, late(conn, id).await?);
            let kept = results::find(conn, id).await?.map(|kept| (kept.result, kept.log));
            let (result, log) = kept.map_or((None, None), |(result, log)| (Some(result), log));
            let discard = discard_record(conn, id).await?;
            return Ok(Some(JobDetail { job, failures, late, discard, result, log }));
        }
    }
    Ok(None)
}

async fn late(conn: &Conn, id: JobId) -> Result<Vec<LateSettlement>, Fault> {
    let sql = "SELECT at, worker, epoch, destination, failure FROM late WHERE job = $1 ORDER BY at, id";
    let late = conn.query(sql, args![id], |row| {
        Ok(LateSettlement {
            at: rows::time(row, 0)?,
            worker: rows::worker_id(row, 1)?,
            epoch: row.get(2)?,
            destination: row.get(3)?,
            failure: rows::json_opt(row, 4)?,
        })
    });
    late.await
}

async fn discard_record(conn: &Conn, id: JobId) -> Result<Option<DiscardRecord>, Fault> {
    let sql = "SELECT discarded_at, actor, why, was, reason, died_at FROM discarded WHERE job = $1";
    let record = conn.query_opt(sql, args![id], |row| {
        Ok(DiscardRecord {
            at: rows::time(row, 0)?,
            actor: row.get(1)?,
            why: row.get(2)?,
            was: rows::parsed(row, 3)?,
            reason: rows::parsed_opt(row, 4)?,
            died_at: rows::time_opt(row, 5)?,
        })
    });
    record.await
}
