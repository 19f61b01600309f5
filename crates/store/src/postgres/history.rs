//! Forgetting. Receipts have no index by age, which would cost every job that succeeds: those whose ids are old enough are looked
//! through in the order of their ids, a piece at a time, once a day. So is what was counted.

use async_trait::async_trait;
use redrive_core::history::{OldIds, is_over, lap_is_due};
use redrive_core::ids::JobId;
use redrive_core::ledger::Forgotten;
use redrive_core::time::Timestamp;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Bytes, Row, args};
use super::{PostgresStore, leader, payloads, rows, run, tidying};
use crate::contract::{ForgetHistory, ForgetRecords, HistoryStore};
use crate::error::Result;

#[async_trait]
impl HistoryStore for PostgresStore {
    async fn forget_receipts(&self, params: ForgetHistory) -> Result<bool> {
        self.write(params, run!(receipts)).await
    }

    async fn forget_counts(&self, params: ForgetHistory) -> Result<bool> {
        self.write(params, run!(counts)).await
    }

    async fn forget_records(&self, params: ForgetRecords) -> Result<bool> {
        self.write(params, run!(records)).await
    }
}

async fn records(batch: &mut Batch, params: &ForgetRecords) -> Result<bool, Fault> {
    leader::check(batch, params.led.as_ref()).await?;
    let mut more = false;
    for sql in [
        "DELETE FROM condemned WHERE place IN (SELECT place FROM condemned WHERE at < $1 LIMIT $2)",
        "DELETE FROM activity WHERE id IN (SELECT id FROM activity WHERE at < $1 LIMIT $2)",
        // What came after its job was forgotten.
        "DELETE FROM late WHERE id IN
            (SELECT l.id FROM late l WHERE l.at < $1 AND NOT EXISTS (SELECT 1 FROM job j WHERE j.id = l.job)
             AND NOT EXISTS (SELECT 1 FROM dead d WHERE d.id = l.job)
             AND NOT EXISTS (SELECT 1 FROM done x WHERE x.job = l.job)
             AND NOT EXISTS (SELECT 1 FROM discarded x WHERE x.job = l.job) LIMIT $2)",
    ] {
        more |= batch.conn().execute(sql, args![params.before, params.limit]).await? == u64::from(params.limit);
    }
    Ok(more)
}

/// What was counted about a pipeline by the hour: `$2` is the first hour that is kept. All of them find their rows by an index.
const BY_HOUR: &[&str] = &[
    "DELETE FROM hourly_count WHERE (pipeline, hour, event, reason) IN
        (SELECT pipeline, hour, event, reason FROM hourly_count WHERE pipeline = $1 AND hour < $2 LIMIT $3)",
    "DELETE FROM minutely WHERE (pipeline, minute, event, reason) IN
        (SELECT pipeline, minute, event, reason FROM minutely WHERE pipeline = $1 AND minute < $2::bigint * 60 LIMIT $3)",
    "DELETE FROM traffic WHERE (pipeline, hour, target, proxy, reason) IN
        (SELECT pipeline, hour, target, proxy, reason FROM traffic WHERE pipeline = $1 AND hour < $2 LIMIT $3)",
    "DELETE FROM done_facet WHERE (pipeline, hour, kind, value) IN
        (SELECT pipeline, hour, kind, value FROM done_facet WHERE pipeline = $1 AND hour < $2 LIMIT $3)",
    // From one version to the next: there are few.
    "DELETE FROM coverage WHERE (pipeline, version, hour, field) IN
        (WITH RECURSIVE known(version) AS (
            SELECT min(version) FROM coverage WHERE pipeline = $1
            UNION ALL SELECT (SELECT min(c.version) FROM coverage c WHERE c.pipeline = $1 AND c.version > known.version)
            FROM known WHERE known.version IS NOT NULL)
         SELECT c.pipeline, c.version, c.hour, c.field FROM known
         JOIN coverage c ON c.pipeline = $1 AND c.version = known.version AND c.hour < $2 LIMIT $3)",
    // Of a pipeline there are few, and one goes when all of its jobs are forgotten.
    "DELETE FROM round WHERE (pipeline, name) IN
        (SELECT pipeline, name FROM round WHERE pipeline = $1 AND grown_at < $2::bigint * 3600000
         AND accepted = forgotten_done + forgotten_discarded LIMIT $3)",
    "DELETE FROM dead_count WHERE (pipeline, by, value, reason) IN
        (SELECT pipeline, by, value, reason FROM dead_count WHERE pipeline = $1 AND count = 0 AND $2::bigint IS NOT NULL LIMIT $3)",
];

/// Forgets a piece of what was counted about a pipeline, once a day; says whether there is more.
async fn counts(batch: &mut Batch, params: &ForgetHistory) -> Result<bool, Fault> {
    leader::check(batch, params.led.as_ref()).await?;
    let Some(pipeline) = batch.find_pipeline(&params.pipeline).await? else { return Ok(false) };
    let mut more = false;
    if let Some(lap) = Lap::of(batch, format!("counts {pipeline}"), params.now).await? {
        // What was added and not folded yet would stay.
        tidying::fold_all(batch).await?;
        let mut full = false;
        for sql in BY_HOUR {
            let forgotten = batch.conn().execute(sql, args![pipeline, params.before.hour(), params.limit]).await?;
            full |= forgotten == u64::from(params.limit);
        }
        more |= lap.go_on(batch, full.then(Vec::new)).await?;
    }
    if let Some(lap) = Lap::of(batch, format!("causes {pipeline}"), params.now).await? {
        let next = forget_of_causes(batch, pipeline, &lap.cursor, params).await?;
        more |= lap.go_on(batch, next).await?;
    }
    if let Some(lap) = Lap::of(batch, format!("tracked {pipeline}"), params.now).await? {
        let next = forget_tracked(batch, pipeline, &lap.cursor, params).await?;
        more |= lap.go_on(batch, next).await?;
    }
    Ok(more)
}

/// A look through all rows of a kind, a piece at a time.
struct Lap {
    name: String,
    /// Where to go on.
    cursor: Vec<u8>,
}

impl Lap {
    /// The lap that is under way or due; nothing if all was looked at not long ago.
    async fn of(batch: &Batch, name: String, now: Timestamp) -> Result<Option<Self>, Fault> {
        let sql = "SELECT cursor, begun_at FROM lap WHERE name = $1";
        let kept: Option<(Option<Vec<u8>>, Timestamp)> =
            batch.conn().query_opt(sql, args![name], |row| Ok((row.get(0)?, rows::time(row, 1)?))).await?;
        match kept {
            Some((Some(cursor), _)) => return Ok(Some(Self { name, cursor })),
            Some((None, begun_at)) if !lap_is_due(begun_at, now) => return Ok(None),
            _ => {}
        }
        let sql = "INSERT INTO lap (name, begun_at) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET begun_at = excluded.begun_at";
        batch.conn().execute(sql, args![name, now]).await?;
        Ok(Some(Self { name, cursor: Vec::new() }))
    }

    /// Notes where the next piece begins, if there is one; says whether there is.
    async fn go_on(self, batch: &Batch, next: Option<Vec<u8>>) -> Result<bool, Fault> {
        let sql = "UPDATE lap SET cursor = $2 WHERE name = $1";
        batch.conn().execute(sql, args![self.name, next.as_deref().map(Bytes)]).await?;
        Ok(next.is_some())
    }
}

/// Forgets old counts of the next causes: by hour, and of targets of which no letter is dead any more.
async fn forget_of_causes(
    batch: &Batch,
    pipeline: i64,
    cursor: &[u8],
    params: &ForgetHistory,
) -> Result<Option<Vec<u8>>, Fault> {
    let after: i64 = if cursor.is_empty() { 0 } else { serde_json::from_slice(cursor)? };
    let sql = "SELECT k.id FROM cause_key k JOIN cause c ON c.id = k.cause WHERE k.id > $2 AND c.pipeline = $1
               ORDER BY k.id LIMIT $3";
    let keys: Vec<i64> = batch.conn().query(sql, args![pipeline, after, params.limit], |row| row.get(0)).await?;
    let sql = "DELETE FROM cause_hour WHERE key = ANY($1) AND hour < $2";
    batch.conn().execute(sql, args![keys, params.before.hour()]).await?;
    let sql = "DELETE FROM cause_target t WHERE t.key = ANY($1) AND t.last_seen < $2 AND NOT EXISTS
                  (SELECT 1 FROM dead d WHERE d.target = t.target AND d.cause_key = t.key)";
    batch.conn().execute(sql, args![keys, params.before]).await?;
    let more = keys.len() == params.limit as usize;
    Ok(keys.last().filter(|_| more).map(serde_json::to_vec).transpose()?)
}

/// Forgets those of the next values of tracked fields that were last counted long ago.
async fn forget_tracked(
    batch: &Batch,
    pipeline: i64,
    cursor: &[u8],
    params: &ForgetHistory,
) -> Result<Option<Vec<u8>>, Fault> {
    let after: (String, String) = if cursor.is_empty() { Default::default() } else { serde_json::from_slice(cursor)? };
    let sql = "SELECT field, value, last_at FROM tracked WHERE pipeline = $1 AND (field, value) > ($2, $3)
               ORDER BY field, value LIMIT $4";
    let rows: Vec<((String, String), Timestamp)> = batch
        .conn()
        .query(sql, args![pipeline, after.0, after.1, params.limit], |row| {
            Ok(((row.get(0)?, row.get(1)?), rows::time(row, 2)?))
        })
        .await?;
    for ((field, value), _) in rows.iter().filter(|(_, last_at)| *last_at < params.before) {
        let sql = "DELETE FROM tracked WHERE pipeline = $1 AND field = $2 AND value = $3";
        batch.conn().execute(sql, args![pipeline, field, value]).await?;
    }
    let more = rows.len() == params.limit as usize;
    Ok(rows.last().filter(|_| more).map(|(place, _)| serde_json::to_vec(place)).transpose()?)
}

/// A table of receipts.
#[derive(Clone, Copy)]
struct Receipts {
    /// The name of the lap through it, which is that of the table.
    name: &'static str,
    /// After job, pipeline, round and key: when the job ended, and whether it had been dead.
    columns: &'static str,
}

const DONE: Receipts = Receipts { name: "done", columns: "done_at, replays > 0" };
const DISCARDED: Receipts = Receipts { name: "discarded", columns: "discarded_at, false" };

struct Receipt {
    job: JobId,
    pipeline: i64,
    round: String,
    key: Option<String>,
    ended_at: Timestamp,
    recovered: bool,
}

fn receipt(row: &Row<'_>) -> Result<Receipt, Fault> {
    Ok(Receipt {
        job: rows::job_id(row, 0)?,
        pipeline: row.get(1)?,
        round: row.get(2)?,
        key: row.get(3)?,
        ended_at: rows::time(row, 4)?,
        recovered: row.get(5)?,
    })
}

async fn receipts(batch: &mut Batch, params: &ForgetHistory) -> Result<bool, Fault> {
    leader::check(batch, params.led.as_ref()).await?;
    let Some(pipeline) = batch.find_pipeline(&params.pipeline).await? else { return Ok(false) };
    let done = look_through(batch, DONE, pipeline, params).await?;
    Ok(look_through(batch, DISCARDED, pipeline, params).await? || done)
}

/// Looks at the next receipts that may be old enough; says whether there are more in this lap.
async fn look_through(
    batch: &mut Batch,
    receipts: Receipts,
    pipeline: i64,
    params: &ForgetHistory,
) -> Result<bool, Fault> {
    let Some(lap) = Lap::of(batch, format!("{} {pipeline}", receipts.name), params.now).await? else {
        return Ok(false);
    };
    let found = next_receipts(batch, receipts, &lap.cursor, params).await?;
    for receipt in found.iter().filter(|receipt| receipt.pipeline == pipeline && receipt.ended_at < params.before) {
        if is_over(receipt.ended_at, met_on(batch, receipt).await?, params.before) {
            forget(batch, receipts, receipt).await?;
        }
    }
    let more = found.len() == params.limit as usize;
    let next = found.last().filter(|_| more).map(|receipt| receipt.job.as_bytes().to_vec());
    lap.go_on(batch, next).await
}

async fn next_receipts(
    batch: &Batch,
    receipts: Receipts,
    cursor: &[u8],
    params: &ForgetHistory,
) -> Result<Vec<Receipt>, Fault> {
    let old = OldIds::of(params.before, params.now);
    let Receipts { name, columns } = receipts;
    let after: Option<JobId> = cursor.try_into().ok().map(JobId::from_bytes);
    let mut found = Vec::new();
    // Ids that are too small to be young, and those that are too great to have come about by time.
    for range in ["job < $2", "job > $2"] {
        let room = (params.limit as usize).saturating_sub(found.len());
        let sql = format!(
            "SELECT job, pipeline, round, key, {columns} FROM {name} WHERE ($1::uuid IS NULL OR job > $1) AND {range}
             ORDER BY job LIMIT $3"
        );
        let bound = if range == "job < $2" { old.below } else { old.above };
        found.extend(batch.conn().query(&sql, args![after, bound, room], receipt).await?);
    }
    Ok(found)
}

/// When a run last met the key of a job, if the job still has it.
async fn met_on(batch: &Batch, receipt: &Receipt) -> Result<Option<i64>, Fault> {
    let Some(key) = &receipt.key else { return Ok(None) };
    let sql = "SELECT met_on FROM identity WHERE pipeline = $1 AND round = $2 AND key = $3 AND job = $4";
    batch.conn().query_opt(sql, args![receipt.pipeline, receipt.round, key, receipt.job], |row| row.get(0)).await
}

/// Forgets a job, and counts it as forgotten: jobs that are queued, leased or dead have no receipt and keep their key.
async fn forget(batch: &mut Batch, receipts: Receipts, receipt: &Receipt) -> Result<(), Fault> {
    let job = receipt.job;
    batch.conn().execute(&format!("DELETE FROM {} WHERE job = $1", receipts.name), args![job]).await?;
    if let Some(key) = &receipt.key {
        let sql = "DELETE FROM identity WHERE pipeline = $1 AND round = $2 AND key = $3 AND job = $4";
        batch.conn().execute(sql, args![receipt.pipeline, receipt.round, key, job]).await?;
    }
    batch.conn().execute("DELETE FROM late WHERE job = $1", args![job]).await?;
    batch.conn().execute("DELETE FROM failure WHERE job = $1", args![job]).await?;
    payloads::let_go(batch, &[job]).await?;
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
