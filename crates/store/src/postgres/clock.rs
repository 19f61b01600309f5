//! The clock: the last look at it, and due times that were given while it was wrong.
//!
//! Candidates are found by reading beside the writer, through the index that leases use, and only among jobs that are due
//! further away than retries are; each is moved only if it is where it was when it was found.

use std::time::Duration;

use async_trait::async_trait;
use redrive_core::clock::{ClockSeen, Uptime};
use redrive_core::failures::Failure;
use redrive_core::retry::Queued;
use redrive_core::time::Timestamp;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Conn, Row, args};
use super::{PostgresStore, lanes, rows, run};
use crate::contract::{ClockStore, LookAtClock, LookedAtClock, MendDueTimes, Topic};
use crate::error::Result;

#[async_trait]
impl ClockStore for PostgresStore {
    async fn look_at_clock(&self, params: LookAtClock) -> Result<LookedAtClock> {
        self.write(params, |batch, params| Box::pin(look(batch, params.now, params.uptime.as_ref()))).await
    }

    async fn server_time(&self) -> Result<Option<Timestamp>> {
        self.read((), |conn, (): &()| Box::pin(server_time(conn))).await.map(Some)
    }

    async fn mend_due_times(&self, params: MendDueTimes) -> Result<u64> {
        let late = self.read(params.clone(), run!(find_late)).await?;
        if late.is_empty() && !self.read(params.clone(), run!(has_long_leases)).await? {
            return Ok(0);
        }
        self.write_about(Topic::Jobs, (late, params), run!(mend_all)).await
    }
}

async fn server_time(conn: &Conn) -> Result<Timestamp, Fault> {
    conn.query_one("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint", args![], |row| rows::time(row, 0))
        .await
}

/// Takes in a look at the clock.
pub(super) async fn look(batch: &mut Batch, now: Timestamp, uptime: Option<&Uptime>) -> Result<LookedAtClock, Fault> {
    let before: Option<ClockSeen> =
        batch.conn().query_opt("SELECT seen FROM clock", args![], |row| rows::json(row, 0)).await?;
    let (seen, jumped) = ClockSeen::look(before, now, uptime.cloned());
    let sql = "INSERT INTO clock (id, seen) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET seen = excluded.seen";
    batch.conn().execute(sql, args![serde_json::to_string(&seen)?]).await?;
    Ok(LookedAtClock { seen, jumped })
}

/// A job whose due time is far away.
#[derive(Clone, Debug)]
struct Late {
    seq: i64,
    queued: Queued,
    /// The replay that sent it.
    replay: Option<i64>,
}

/// Candidates are read so many at a time, and only as many as are wanted.
const PAGE: i64 = 1_000;

/// The columns of [`late`], from `job j`. What a target asked for counts if it did so in the run under way.
const COLUMNS: &str = "j.seq, j.due_at, j.accepted_at, j.attempts + j.crashes > 0,
    CASE WHEN j.attempts > j.attempts_before
         THEN (SELECT f.failure FROM failure f WHERE f.job = j.id ORDER BY f.n DESC LIMIT 1) END,
    j.replay";

fn late(row: &Row<'_>) -> Result<Late, Fault> {
    let replay: Option<i64> = row.get(5)?;
    let failure: Option<Failure> = rows::json_opt(row, 4)?;
    let asked = failure.and_then(|failure| failure.retry_after_secs).filter(|secs| secs.is_finite() && *secs > 0.0);
    Ok(Late {
        seq: row.get(0)?,
        queued: Queued {
            due_at: rows::time(row, 1)?,
            asked_at: if row.get(3)? || replay.is_some() { None } else { Some(rows::time(row, 2)?) },
            retry_after: asked.map(|secs| Duration::from_secs_f64(secs.min(86_400.0))),
        },
        replay,
    })
}

/// Jobs of the queue, and letters on their way, that are due later than they can be.
async fn find_late(conn: &Conn, params: &MendDueTimes) -> Result<Vec<Late>, Fault> {
    let from = (params.now + params.retry.longest()).as_millis();
    let sql = format!(
        "SELECT {COLUMNS} FROM place q JOIN job j ON j.seq = q.seq
         WHERE q.lane = $1 AND (q.due_at, q.seq) > ($2, $3) ORDER BY q.due_at, q.seq LIMIT {PAGE}"
    );
    let mut found = Vec::new();
    for lane in lanes_of(conn, params).await? {
        let (mut in_lane, mut after) = (Vec::new(), (from, i64::MAX));
        loop {
            let page = conn.query(&sql, args![lane, after.0, after.1], late).await?;
            let Some(last) = page.last() else { break };
            after = (last.queued.due_at.as_millis(), last.seq);
            let is_late = |job: &Late| params.retry.due_instead(&job.queued, params.now).is_some();
            in_lane.extend(page.into_iter().filter(is_late));
            if in_lane.len() >= params.limit as usize {
                break;
            }
        }
        in_lane.truncate(params.limit as usize);
        found.extend(in_lane);
    }
    Ok(found)
}

/// The lanes in which jobs of a pipeline wait and are not held.
async fn lanes_of(conn: &Conn, params: &MendDueTimes) -> Result<Vec<i64>, Fault> {
    let sql = "SELECT id FROM pipeline WHERE name = $1
               UNION ALL SELECT n.id FROM replay r JOIN lane n ON n.name = 'r' || r.id
                         WHERE r.finished_at IS NULL AND n.pipeline = (SELECT id FROM pipeline WHERE name = $1)";
    conn.query(sql, args![params.pipeline.as_str()], |row| row.get(0)).await
}

async fn mend_all(batch: &mut Batch, (late, params): &(Vec<Late>, MendDueTimes)) -> Result<u64, Fault> {
    let Some(pipeline) = batch.find_pipeline(&params.pipeline).await? else { return Ok(0) };
    let mut mended = 0;
    for job in late {
        mended += u64::from(mend(batch, pipeline, job, params).await?);
    }
    shorten_leases(batch, pipeline, params).await?;
    Ok(mended)
}

/// Gives a job the due time that it should have, if it is where it was.
async fn mend(batch: &Batch, pipeline: i64, late: &Late, params: &MendDueTimes) -> Result<bool, Fault> {
    let Some(due_at) = params.retry.due_instead(&late.queued, params.now) else { return Ok(false) };
    let Some(lane) = lanes::find_home(batch, pipeline, late.replay).await? else { return Ok(false) };
    let times = (late.queued.due_at.as_millis(), due_at.as_millis());
    if !lanes::postpone(batch, lane, times, late.seq).await? {
        return Ok(false);
    }
    // A job that was accepted in the future would be pulled in again the next time.
    let sql = "UPDATE job SET due_at = $2, accepted_at = least(accepted_at, $3) WHERE seq = $1";
    batch.conn().execute(sql, args![late.seq, due_at, params.now]).await?;
    Ok(true)
}

/// Who works from elsewhere says itself for how long it needs its leases.
const NOT_REMOTE: &str = "NOT EXISTS (SELECT 1 FROM worker w WHERE w.id = lease.worker AND w.remote)";

/// Leases last this long at most; whoever has one extends it every second or so, to its own length.
fn lease_end(params: &MendDueTimes) -> Timestamp {
    params.now + params.lease
}

async fn has_long_leases(conn: &Conn, params: &MendDueTimes) -> Result<bool, Fault> {
    let end = lease_end(params) + redrive_core::clock::UNEVEN_MAX;
    conn.exists(&format!("SELECT 1 FROM lease WHERE until > $1 AND {NOT_REMOTE} LIMIT 1"), args![end]).await
}

async fn shorten_leases(batch: &Batch, pipeline: i64, params: &MendDueTimes) -> Result<(), Fault> {
    let sql = format!(
        "UPDATE lease SET until = $2
         WHERE until > $2 AND EXISTS (SELECT 1 FROM job j WHERE j.seq = lease.seq AND j.pipeline = $1) AND {NOT_REMOTE}"
    );
    batch.conn().execute(&sql, args![pipeline, lease_end(params)]).await?;
    Ok(())
}
