//! The last failures of queued jobs that have failed before.

use redrive_core::retrying::RetryingJob;

use super::fault::Fault;
use super::rows;
use super::sql::{Conn, args};
use crate::contract::jobs::LANES_MAX;
use crate::contract::{ListRetrying, RetryingJobs};

/// Each inner query has a limit, so that it is answered from its index, whatever else is in the tables.
const LIST: &str = "
    SELECT j.id, j.target, f.failure
    FROM (SELECT $1::bigint AS id
          UNION ALL (SELECT id FROM lane WHERE pipeline = $1 ORDER BY jobs DESC, id LIMIT $2)) l
    CROSS JOIN LATERAL (SELECT seq FROM place WHERE lane = l.id ORDER BY due_at DESC, seq DESC LIMIT $3) p
    CROSS JOIN LATERAL (SELECT id, target FROM job
                        WHERE seq = p.seq AND (attempts > 0 OR crashes > 0) LIMIT 1) j
    CROSS JOIN LATERAL (SELECT failure FROM failure WHERE job = j.id ORDER BY n DESC LIMIT 1) f
    LIMIT $3";

pub(super) async fn list(conn: &Conn, params: &ListRetrying) -> Result<RetryingJobs, Fault> {
    let sql = "SELECT id, retrying FROM pipeline WHERE name = $1 AND retrying > 0";
    let found = conn.query_opt(sql, args![params.pipeline.as_str()], |row| Ok((row.get::<i64>(0)?, row.get(1)?)));
    let Some((pipeline, all)) = found.await? else { return Ok(RetryingJobs::default()) };
    let jobs = conn.query(LIST, args![pipeline, LANES_MAX - 1, i64::from(params.limit)], |row| {
        Ok(RetryingJob { id: rows::job_id(row, 0)?, target: row.get(1)?, failure: rows::json(row, 2)? })
    });
    Ok(RetryingJobs { jobs: jobs.await?, all })
}
