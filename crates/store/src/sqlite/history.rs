//! Forgetting. Receipts have no index by age, which would cost every job that succeeds: those whose ids are old enough are looked
//! through in the order of their ids, a piece at a time, once a day. So is what was counted.

use async_trait::async_trait;
use redrive_core::history::{OldIds, is_over, lap_is_due};
use redrive_core::ids::JobId;
use redrive_core::ledger::Forgotten;
use redrive_core::time::Timestamp;
use rusqlite::{OptionalExtension, Row, params};

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use super::leader;
use super::payloads;
use super::rows::{self, RowResult};
use crate::contract::{ForgetHistory, ForgetRecords, HistoryStore};
use crate::error::Result;

#[async_trait]
impl HistoryStore for SqliteStore {
    async fn forget_receipts(&self, params: ForgetHistory) -> Result<bool> {
        self.write(move |batch| {
            leader::check(batch, params.led.as_ref())?;
            let Some(pipeline) = batch.find_pipeline(&params.pipeline)? else { return Ok(false) };
            let done = look_through(batch, DONE, pipeline, &params)?;
            Ok(look_through(batch, DISCARDED, pipeline, &params)? || done)
        })
        .await
    }

    async fn forget_counts(&self, params: ForgetHistory) -> Result<bool> {
        self.write(move |batch| {
            leader::check(batch, params.led.as_ref())?;
            let Some(pipeline) = batch.find_pipeline(&params.pipeline)? else { return Ok(false) };
            counts(batch, pipeline, &params)
        })
        .await
    }

    async fn forget_records(&self, params: ForgetRecords) -> Result<bool> {
        self.write(move |batch| {
            leader::check(batch, params.led.as_ref())?;
            let mut more = false;
            for sql in [
                "DELETE FROM condemned WHERE place IN (SELECT place FROM condemned WHERE at < ?1 LIMIT ?2)",
                "DELETE FROM activity WHERE rowid IN (SELECT rowid FROM activity WHERE at < ?1 LIMIT ?2)",
                // What came after its job was forgotten.
                "DELETE FROM late WHERE rowid IN
                    (SELECT rowid FROM late WHERE at < ?1 AND NOT EXISTS (SELECT 1 FROM job j WHERE j.id = late.job)
                     AND NOT EXISTS (SELECT 1 FROM dead d WHERE d.id = late.job)
                     AND NOT EXISTS (SELECT 1 FROM done x WHERE x.job = late.job)
                     AND NOT EXISTS (SELECT 1 FROM discarded x WHERE x.job = late.job) LIMIT ?2)",
            ] {
                let forgotten = batch.statement(sql)?.execute(params![params.before.as_millis(), params.limit])?;
                more |= forgotten == params.limit as usize;
            }
            Ok(more)
        })
        .await
    }
}

/// What was counted about a pipeline by the hour: `?2` is the first hour that is kept. All of them find their rows by an index.
const BY_HOUR: &[&str] = &[
    "DELETE FROM hourly_count WHERE (pipeline, hour, event, reason) IN
        (SELECT pipeline, hour, event, reason FROM hourly_count WHERE pipeline = ?1 AND hour < ?2 LIMIT ?3)",
    "DELETE FROM minutely WHERE (pipeline, minute, event, reason) IN
        (SELECT pipeline, minute, event, reason FROM minutely WHERE pipeline = ?1 AND minute < ?2 * 60 LIMIT ?3)",
    "DELETE FROM traffic WHERE (pipeline, hour, target, proxy, reason) IN
        (SELECT pipeline, hour, target, proxy, reason FROM traffic WHERE pipeline = ?1 AND hour < ?2 LIMIT ?3)",
    "DELETE FROM done_facet WHERE (pipeline, hour, kind, value) IN
        (SELECT pipeline, hour, kind, value FROM done_facet WHERE pipeline = ?1 AND hour < ?2 LIMIT ?3)",
    // From one version to the next: there are few.
    "DELETE FROM coverage WHERE (pipeline, version, hour, field) IN
        (WITH RECURSIVE known(version) AS (
            SELECT min(version) FROM coverage WHERE pipeline = ?1
            UNION ALL SELECT (SELECT min(version) FROM coverage WHERE pipeline = ?1 AND version > known.version)
            FROM known WHERE known.version IS NOT NULL)
         SELECT c.pipeline, c.version, c.hour, c.field FROM known
         CROSS JOIN coverage c ON c.pipeline = ?1 AND c.version = known.version AND c.hour < ?2 LIMIT ?3)",
    // Of a pipeline there are few, and one goes when all of its jobs are forgotten.
    "DELETE FROM round WHERE (pipeline, name) IN
        (SELECT pipeline, name FROM round WHERE pipeline = ?1 AND grown_at < ?2 * 3600000
         AND accepted = forgotten_done + forgotten_discarded LIMIT ?3)",
    "DELETE FROM dead_count WHERE (pipeline, by, value, reason) IN
        (SELECT pipeline, by, value, reason FROM dead_count INDEXED BY dead_count_none
         WHERE pipeline = ?1 AND count = 0 AND ?2 = ?2 LIMIT ?3)",
];

/// Forgets a piece of what was counted about a pipeline, once a day; says whether there is more.
fn counts(batch: &mut Batch<'_>, pipeline: i64, params: &ForgetHistory) -> Result<bool, Fault> {
    let by_hour = piece(batch, &format!("counts {pipeline}"), params.now, |batch, _| {
        let mut more = false;
        for sql in BY_HOUR {
            let forgotten = batch.statement(sql)?.execute(params![pipeline, params.before.hour(), params.limit])?;
            more |= forgotten == params.limit as usize;
        }
        Ok(more.then(Vec::new))
    })?;
    let causes = piece(batch, &format!("causes {pipeline}"), params.now, |batch, cursor| {
        forget_of_causes(batch, pipeline, cursor, params)
    })?;
    let tracked = piece(batch, &format!("tracked {pipeline}"), params.now, |batch, cursor| {
        forget_tracked(batch, pipeline, cursor, params)
    })?;
    Ok(by_hour || causes || tracked)
}

/// Does a piece of a lap, if one is under way or due. The piece says where the next one begins, if there is one.
fn piece(
    batch: &mut Batch<'_>,
    name: &str,
    now: Timestamp,
    run: impl FnOnce(&mut Batch<'_>, &[u8]) -> Result<Option<Vec<u8>>, Fault>,
) -> Result<bool, Fault> {
    let Some(cursor) = lap(batch, name, now)? else { return Ok(false) };
    let next = run(batch, &cursor)?;
    batch.statement("UPDATE lap SET cursor = ?2 WHERE name = ?1")?.execute(params![name, next])?;
    Ok(next.is_some())
}

/// Forgets old counts of the next causes: by hour, and of targets of which no letter is dead any more.
fn forget_of_causes(
    batch: &Batch<'_>,
    pipeline: i64,
    cursor: &[u8],
    params: &ForgetHistory,
) -> Result<Option<Vec<u8>>, Fault> {
    let after: i64 = if cursor.is_empty() { 0 } else { serde_json::from_slice(cursor)? };
    let mut select = batch.statement(
        "SELECT k.id FROM cause_key k JOIN cause c ON c.id = k.cause WHERE k.id > ?2 AND c.pipeline = ?1 ORDER BY k.id",
    )?;
    let keys = select.query_map([pipeline, after], |row| row.get::<_, i64>(0))?;
    let keys = keys.take(params.limit as usize).collect::<RowResult<Vec<_>>>()?;
    let mut hours = batch.statement("DELETE FROM cause_hour WHERE key = ?1 AND hour < ?2")?;
    let mut targets = batch.statement(
        "DELETE FROM cause_target WHERE key = ?1 AND last_seen < ?2 AND NOT EXISTS
            (SELECT 1 FROM dead d INDEXED BY dead_by_target
             WHERE d.target = cause_target.target AND d.cause_key = cause_target.key)",
    )?;
    for key in &keys {
        hours.execute([*key, params.before.hour()])?;
        targets.execute([*key, params.before.as_millis()])?;
    }
    let more = keys.len() == params.limit as usize;
    Ok(keys.last().filter(|_| more).map(serde_json::to_vec).transpose()?)
}

/// Forgets those of the next values of tracked fields that were last counted long ago.
fn forget_tracked(
    batch: &Batch<'_>,
    pipeline: i64,
    cursor: &[u8],
    params: &ForgetHistory,
) -> Result<Option<Vec<u8>>, Fault> {
    let after: (String, String) = if cursor.is_empty() { Default::default() } else { serde_json::from_slice(cursor)? };
    let mut select = batch.statement(
        "SELECT field, value, last_at FROM tracked WHERE pipeline = ?1 AND (field, value) > (?2, ?3) ORDER BY field, value",
    )?;
    let rows = select.query_map(params![pipeline, after.0, after.1], |row| {
        Ok(((row.get::<_, String>(0)?, row.get::<_, String>(1)?), rows::time(row, 2)?))
    })?;
    let rows = rows.take(params.limit as usize).collect::<RowResult<Vec<_>>>()?;
    let mut delete = batch.statement("DELETE FROM tracked WHERE pipeline = ?1 AND field = ?2 AND value = ?3")?;
    for ((field, value), _) in rows.iter().filter(|(_, last_at)| *last_at < params.before) {
        delete.execute(params![pipeline, field, value])?;
    }
    let more = rows.len() == params.limit as usize;
    Ok(rows.last().filter(|_| more).map(|(place, _)| serde_json::to_vec(place)).transpose()?)
}

/// A table of receipts.
#[derive(Clone, Copy)]
struct Receipts {
    /// The name of the lap through it.
    name: &'static str,
    select: &'static str,
    delete: &'static str,
}

const DONE: Receipts = Receipts {
    name: "done",
    select: "SELECT job, pipeline, round, key, done_at, replays > 0 FROM done WHERE job > ?1 AND job < ?2 ORDER BY job",
    delete: "DELETE FROM done WHERE job = ?1",
};
const DISCARDED: Receipts = Receipts {
    name: "discarded",
    select: "SELECT job, pipeline, round, key, discarded_at, 0 FROM discarded WHERE job > ?1 AND job < ?2 ORDER BY job",
    delete: "DELETE FROM discarded WHERE job = ?1",
};

struct Receipt {
    job: JobId,
    pipeline: i64,
    round: String,
    key: Option<String>,
    ended_at: Timestamp,
    recovered: bool,
}

fn receipt(row: &Row<'_>) -> RowResult<Receipt> {
    Ok(Receipt {
        job: rows::job_id(row, 0)?,
        pipeline: row.get(1)?,
        round: row.get(2)?,
        key: row.get(3)?,
        ended_at: rows::time(row, 4)?,
        recovered: row.get(5)?,
    })
}

/// Looks at the next receipts that may be old enough; says whether there are more in this lap.
fn look_through(
    batch: &mut Batch<'_>,
    receipts: Receipts,
    pipeline: i64,
    params: &ForgetHistory,
) -> Result<bool, Fault> {
    piece(batch, &format!("{} {pipeline}", receipts.name), params.now, |batch, cursor| {
        let found = next_receipts(batch, receipts, cursor, params)?;
        for receipt in found.iter().filter(|receipt| receipt.pipeline == pipeline && receipt.ended_at < params.before) {
            if is_over(receipt.ended_at, met_on(batch, receipt)?, params.before) {
                forget(batch, receipts, receipt)?;
            }
        }
        let more = found.len() == params.limit as usize;
        Ok(found.last().filter(|_| more).map(|receipt| receipt.job.as_bytes().to_vec()))
    })
}

fn next_receipts(
    batch: &Batch<'_>,
    receipts: Receipts,
    cursor: &[u8],
    params: &ForgetHistory,
) -> Result<Vec<Receipt>, Fault> {
    let old = OldIds::of(params.before, params.now);
    let mut select = batch.statement(receipts.select)?;
    let mut found = Vec::new();
    // No id is as long as the bytes that end the second range.
    for (from, to) in [(&[][..], &old.below.as_bytes()[..]), (&old.above.as_bytes()[..], &[0xff; 17][..])] {
        let room = (params.limit as usize).saturating_sub(found.len());
        let rows = select.query_map(params![cursor.max(from), to], receipt)?;
        found.extend(rows.take(room).collect::<RowResult<Vec<_>>>()?);
    }
    Ok(found)
}

/// Where to go on; nothing if all was looked at not long ago.
fn lap(batch: &Batch<'_>, name: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Fault> {
    let mut select = batch.statement("SELECT cursor, begun_at FROM lap WHERE name = ?1")?;
    let kept: Option<(Option<Vec<u8>>, Timestamp)> =
        select.query_row([name], |row| Ok((row.get(0)?, rows::time(row, 1)?))).optional()?;
    match kept {
        Some((Some(cursor), _)) => return Ok(Some(cursor)),
        Some((None, begun_at)) if !lap_is_due(begun_at, now) => return Ok(None),
        _ => {}
    }
    batch
        .statement(
            "INSERT INTO lap (name, begun_at) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET begun_at = excluded.begun_at",
        )?
        .execute(params![name, now.as_millis()])?;
    Ok(Some(Vec::new()))
}

/// When a run last met the key of a job, if the job still has it.
fn met_on(batch: &Batch<'_>, receipt: &Receipt) -> Result<Option<i64>, Fault> {
    let Some(key) = &receipt.key else { return Ok(None) };
    let mut select =
        batch.statement("SELECT met_on FROM identity WHERE pipeline = ?1 AND round = ?2 AND key = ?3 AND job = ?4")?;
    let found =
        select.query_row(params![receipt.pipeline, receipt.round, key, receipt.job.as_bytes()], |row| row.get(0));
    Ok(found.optional()?)
}

/// Forgets a job, and counts it as forgotten: jobs that are queued, leased or dead have no receipt and keep their key.
fn forget(batch: &mut Batch<'_>, receipts: Receipts, receipt: &Receipt) -> Result<(), Fault> {
    let job = receipt.job.as_bytes();
    batch.statement(receipts.delete)?.execute([job])?;
    if let Some(key) = &receipt.key {
        batch
            .statement("DELETE FROM identity WHERE pipeline = ?1 AND round = ?2 AND key = ?3 AND job = ?4")?
            .execute(params![receipt.pipeline, receipt.round, key, job])?;
    }
    batch.statement("DELETE FROM late WHERE job = ?1")?.execute([job])?;
    batch.statement("DELETE FROM failure WHERE job = ?1")?.execute([job])?;
    payloads::let_go(batch, receipt.job, None)?;
    let is_done = receipts.name == DONE.name;
    let add = |forgotten: &mut Forgotten| {
        *(if is_done { &mut forgotten.done } else { &mut forgotten.discarded }) += 1;
        forgotten.recovered += i64::from(receipt.recovered);
    };
    add(&mut batch.ledger(receipt.pipeline).forgotten);
    if let Some(ledger) = batch.rounds.ledger(receipt.pipeline, &receipt.round) {
        add(&mut ledger.forgotten);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use rusqlite::Connection;

    use super::super::steps::counted;
    use super::*;

    const DAY: i64 = 86_400_000;

    /// A store with so many receipts of today, three of long ago, and one with an id of no time.
    fn filled(new: u32) -> Connection {
        let mut conn = Connection::open_in_memory().expect("opened");
        super::super::schema::migrate(&mut conn, std::path::Path::new("memory:")).expect("made");
        conn.execute_batch("INSERT INTO pipeline (id, name) VALUES (1, 'p');").expect("made");
        let mut insert = conn
            .prepare(
                "INSERT INTO done (job, pipeline, accepted_at, done_at, attempts, crashes, replays) VALUES (?1, 1, 0, ?2, 1, 0, 0)",
            )
            .expect("prepared");
        let mut add = |id: JobId, at: i64| {
            insert.execute(params![id.as_bytes(), at]).expect("added");
        };
        let id = |at: i64, n: u32| JobId::new(Timestamp::from_millis(at), u128::from(n));
        (0..new).for_each(|n| add(id(200 * DAY, n), 200 * DAY));
        (0..3).for_each(|n| add(id(DAY, n), 2 * DAY));
        add(JobId::from_bytes([0xf3; 16]), 2 * DAY);
        drop(insert);
        conn
    }

    /// The steps that it takes to forget what is over, and how many receipts are left.
    fn steps(new: u32) -> (u64, i64) {
        let mut conn = filled(new);
        let (pipeline, now) = ("p".parse().expect("a name"), Timestamp::from_millis(200 * DAY));
        let before = Timestamp::from_millis(110 * DAY);
        let params = ForgetHistory { pipeline, before, limit: 100, led: None, now };
        let ((), taken) = counted(&mut conn, |conn| {
            let mut pipelines = HashMap::new();
            let mut batch = Batch::new(conn, &mut pipelines);
            while look_through(&mut batch, DONE, 1, &params).expect("looked through") {}
            batch.finish().expect("written");
        });
        let left = conn.query_row("SELECT count(*) FROM done", [], |row| row.get(0)).expect("counted");
        (taken, left)
    }

    /// However many receipts are not old enough, looking for those that are does not read them.
    #[test]
    fn what_is_too_young_by_its_id_is_not_looked_at() {
        let (few, many) = (steps(10), steps(5_000));
        assert_eq!((few.1, many.1), (10, 5_000), "those of long ago are gone, whatever their ids");
        assert!(many.0 <= few.0 + 5, "{} steps instead of {}", many.0, few.0);
    }
}
