//! The last failures of queued jobs that have failed before.

use redrive_core::retrying::RetryingJob;
use rusqlite::{Connection, OptionalExtension, params};

use super::fault::Fault;
use super::lanes;
use super::rows::{self, RowResult};
use crate::contract::jobs::LANES_MAX;
use crate::contract::{ListRetrying, RetryingJobs};

pub(super) fn list(conn: &Connection, params: &ListRetrying) -> Result<RetryingJobs, Fault> {
    let mut select = conn.prepare_cached("SELECT id, retrying FROM pipeline WHERE name = ?1")?;
    let found = select.query_row([params.pipeline.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((pipeline, all)) = found.filter(|(_, all)| *all > 0) else { return Ok(RetryingJobs::default()) };
    let mut jobs = Vec::new();
    for lane in lanes_of(conn, pipeline)? {
        let left = params.limit as usize - jobs.len();
        jobs.extend(list_in(conn, lane, params.limit, left)?);
    }
    Ok(RetryingJobs { jobs, all })
}

/// Lanes in which most jobs are held, and the queue.
fn lanes_of(conn: &Connection, pipeline: i64) -> Result<Vec<i64>, Fault> {
    let mut select = conn.prepare_cached("SELECT id FROM lane WHERE pipeline = ?1 ORDER BY jobs DESC, id LIMIT ?2")?;
    let lanes = select.query_map([pipeline, LANES_MAX - 1], |row| row.get(0))?;
    Ok(lanes.chain([Ok(lanes::queue(pipeline))]).collect::<RowResult<_>>()?)
}

/// Jobs that failed before, of so many of a lane that are due last.
fn list_in(conn: &Connection, lane: i64, reach: u32, limit: usize) -> Result<Vec<RetryingJob>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT j.id, j.target, (SELECT f.failure FROM failure f WHERE f.job = j.id ORDER BY f.n DESC LIMIT 1)
         FROM (SELECT seq FROM place WHERE lane = ?1 ORDER BY due_at DESC, seq DESC LIMIT ?2) p
         CROSS JOIN job j ON j.seq = p.seq WHERE j.attempts > 0 OR j.crashes > 0 LIMIT ?3",
    )?;
    let rows = select.query_map(params![lane, reach, limit], |row| {
        let failure = rows::json_opt(row, 2)?;
        Ok((rows::job_id(row, 0)?, row.get(1)?, failure))
    })?;
    // A job that only took its process down may have no failure.
    let known = |row: RowResult<_>| match row {
        Ok((id, target, Some(failure))) => Some(Ok(RetryingJob { id, target, failure })),
        Ok((_, _, None)) => None,
        Err(error) => Some(Err(error)),
    };
    Ok(rows.filter_map(known).collect::<RowResult<_>>()?)
}
