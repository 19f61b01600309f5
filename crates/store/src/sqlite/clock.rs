//! The clock: the last look at it, and due times that were given while it was wrong.
//!
//! Candidates are found by reading beside the writer, through the index that leases use, and only among jobs that are due
//! further away than retries are; each is moved only if it is where it was when it was found.

use async_trait::async_trait;
use redrive_core::clock::{ClockSeen, Uptime};
use redrive_core::retry::Queued;
use redrive_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::time::Duration;

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use super::lanes;
use super::rows::{self, RowResult};
use crate::contract::{ClockStore, LookAtClock, LookedAtClock, MendDueTimes, Topic};
use crate::error::Result;

#[async_trait]
impl ClockStore for SqliteStore {
    async fn look_at_clock(&self, params: LookAtClock) -> Result<LookedAtClock> {
        self.write(move |batch| look(batch, params.now, params.uptime.as_ref())).await
    }

    async fn server_time(&self) -> Result<Option<Timestamp>> {
        Ok(None)
    }

    async fn mend_due_times(&self, params: MendDueTimes) -> Result<u64> {
        let asked = params.clone();
        let late = self.read(move |conn| find_late(conn, &asked)).await?;
        let sent = params.clone();
        let replayed = self.read(move |conn| find_replayed(conn, &sent)).await?;
        if late.is_empty() && replayed.is_empty() && !self.read(has_long_leases(&params)).await? {
            return Ok(0);
        }
        self.write_about(Topic::Jobs, move |batch| {
            let Some(pipeline) = batch.find_pipeline(&params.pipeline)? else { return Ok(0) };
            let mut mended = 0;
            for job in late.iter().chain(&replayed) {
                mended += u64::from(mend(batch, pipeline, job, &params)?);
            }
            shorten_leases(batch, pipeline, &params)?;
            Ok(mended)
        })
        .await
    }
}

/// Takes in a look at the clock.
pub(super) fn look(batch: &Batch<'_>, now: Timestamp, uptime: Option<&Uptime>) -> Result<LookedAtClock, Fault> {
    let mut select = batch.statement("SELECT seen FROM clock")?;
    let before: Option<ClockSeen> = select.query_row([], |row| rows::json(row, 0)).optional()?;
    let (seen, jumped) = ClockSeen::look(before, now, uptime.cloned());
    batch
        .statement("INSERT INTO clock (id, seen) VALUES (1, ?1) ON CONFLICT DO UPDATE SET seen = excluded.seen")?
        .execute([serde_json::to_string(&seen)?])?;
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

/// The columns of [`late`], from `job j`. What a target asked for counts if it did so in the run under way.
const COLUMNS: &str = "j.seq, j.due_at, j.accepted_at, j.attempts + j.crashes > 0,
    iif(j.attempts > j.attempts_before,
        (SELECT f.failure ->> 'retry_after_secs' FROM failure f WHERE f.job = j.id ORDER BY f.n DESC LIMIT 1), NULL),
    j.replay";

fn late(row: &Row<'_>) -> RowResult<Late> {
    let replay: Option<i64> = row.get(5)?;
    let asked = row.get::<_, Option<f64>>(4)?.filter(|secs| secs.is_finite() && *secs > 0.0);
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

fn from(params: &MendDueTimes) -> i64 {
    (params.now + params.retry.longest()).as_millis()
}

/// Jobs of the queue that are due later than they can be.
fn find_late(conn: &Connection, params: &MendDueTimes) -> Result<Vec<Late>, Fault> {
    let sql = format!(
        "SELECT {COLUMNS} FROM place q JOIN job j ON j.seq = q.seq
         WHERE q.lane = (SELECT id FROM pipeline WHERE name = ?1) AND q.due_at > ?2 ORDER BY q.due_at"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map(params![params.pipeline.as_str(), from(params)], late)?;
    first_late(rows, params)
}

/// The first of them that are due later than they can be.
fn first_late(rows: impl Iterator<Item = RowResult<Late>>, params: &MendDueTimes) -> Result<Vec<Late>, Fault> {
    let is_late = |job: &RowResult<Late>| {
        job.as_ref().map_or(true, |job| params.retry.due_instead(&job.queued, params.now).is_some())
    };
    Ok(rows.filter(is_late).take(params.limit as usize).collect::<RowResult<_>>()?)
}

/// Letters on their way that are due later than they can be.
fn find_replayed(conn: &Connection, params: &MendDueTimes) -> Result<Vec<Late>, Fault> {
    let sql = format!(
        "SELECT {COLUMNS} FROM replay r INDEXED BY replay_open
         CROSS JOIN lane n ON n.pipeline = (SELECT id FROM pipeline WHERE name = ?1) AND n.name = 'r' || r.id
         CROSS JOIN place q ON q.lane = n.id AND q.due_at > ?2
         JOIN job j ON j.seq = q.seq WHERE r.finished_at IS NULL"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map(params![params.pipeline.as_str(), from(params)], late)?;
    first_late(rows, params)
}

/// Gives a job the due time that it should have, if it is where it was.
fn mend(batch: &mut Batch<'_>, pipeline: i64, late: &Late, params: &MendDueTimes) -> Result<bool, Fault> {
    let Some(due_at) = params.retry.due_instead(&late.queued, params.now) else { return Ok(false) };
    let Some(lane) = lanes::find_home(batch, pipeline, late.replay)? else { return Ok(false) };
    if !lanes::pull(batch, lane, late.queued.due_at, late.seq)? {
        return Ok(false);
    }
    // A job that was accepted in the future would be pulled in again the next time.
    batch.statement("UPDATE job SET due_at = ?2, accepted_at = min(accepted_at, ?3) WHERE seq = ?1")?.execute([
        late.seq,
        due_at.as_millis(),
        params.now.as_millis(),
    ])?;
    lanes::push(batch, lane, due_at, late.seq)?;
    Ok(true)
}

/// Who works from elsewhere says itself for how long it needs its leases.
const NOT_REMOTE: &str = "NOT EXISTS (SELECT 1 FROM worker w WHERE w.id = lease.worker AND w.remote = 1)";

/// Leases last this long at most; whoever has one extends it every second or so, to its own length.
fn lease_end(params: &MendDueTimes) -> Timestamp {
    params.now + params.lease
}

fn has_long_leases(params: &MendDueTimes) -> impl Fn(&Connection) -> Result<bool, Fault> + use<> {
    let end = (lease_end(params) + redrive_core::clock::UNEVEN_MAX).as_millis();
    let sql = format!("SELECT 1 FROM lease WHERE until > ?1 AND {NOT_REMOTE}");
    move |conn| Ok(conn.prepare_cached(&sql)?.exists([end])?)
}

fn shorten_leases(batch: &Batch<'_>, pipeline: i64, params: &MendDueTimes) -> Result<(), Fault> {
    let sql = format!(
        "UPDATE lease SET until = ?2
         WHERE until > ?2 AND EXISTS (SELECT 1 FROM job j WHERE j.seq = lease.seq AND j.pipeline = ?1) AND {NOT_REMOTE}"
    );
    batch.statement(&sql)?.execute([pipeline, lease_end(params).as_millis()])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_core::retry::RetryPolicy;

    /// A letter that waits because its target asked for it does not hide one whose due time is wrong.
    #[test]
    fn of_letters_under_way_only_those_that_are_due_too_late_are_found() {
        let mut conn = Connection::open_in_memory().expect("opened");
        super::super::schema::migrate(&mut conn, std::path::Path::new("memory:")).expect("made");
        conn.execute_batch(
            "INSERT INTO pipeline (id, name) VALUES (1, 'p');
             INSERT INTO replay (id, uuid, name, actor, mode, state, automatic, selection, pipelines, pacing, edits, excluded,
                                 created_at, total, pending)
             VALUES (7, x'07', 'r', 'ada', 'suited', 'running', 0, '{}', '[]', '{}', '{}', '{}', 0, 2, 0);
             INSERT INTO job (seq, id, pipeline, accepted_at, due_at, attempts, input, replay)
             VALUES (1, x'01', 1, 0, 7000000, 1, '{}', 7), (2, x'02', 1, 0, 7100000, 1, '{}', 7);
             INSERT INTO lane VALUES (-1, 1, 'r7', 0);
             INSERT INTO place VALUES (-1, 7000000, 1), (-1, 7100000, 2);
             INSERT INTO failure VALUES (x'01', 1, '{\"retry_after_secs\": 7200.0}');",
        )
        .expect("filled");
        let params = MendDueTimes {
            pipeline: "p".parse().expect("a name"),
            retry: RetryPolicy::default(),
            lease: Duration::from_secs(30),
            limit: 1,
            now: Timestamp::from_millis(0),
        };
        let found: Vec<i64> = find_replayed(&conn, &params).expect("found").iter().map(|late| late.seq).collect();
        assert_eq!(found, [2]);
    }
}
