//! Tries: rows of their own, that no letter, ledger or breaker knows of.

use async_trait::async_trait;
use redrive_core::ids::{JobId, PipelineName, TryId};
use redrive_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use super::SqliteStore;
use super::batch::Batch;
use super::conditions::Conditions;
use super::fault::Fault;
use super::rows::{self, RowResult};
use crate::contract::{
    LeaseTried, LetterToTry, ListTried, OpenInTry, OpenTry, Page, SettleTried, TriedCount, TriedLease, TriedLetter,
    TryStore, TryView,
};
use crate::error::{Result, StoreError};
use crate::lists;

/// Open letters among which a token is looked for that was used before: leases are given in the order of letters, so that what it has is among
/// the first.
const LOOKED_AT: u32 = 2_000;

/// What is read of a try.
const TRY_COLUMNS: &str = "uuid, actor, selection, edits, tried_with, created_at, finished_at, outcome";

#[async_trait]
impl TryStore for SqliteStore {
    async fn open_try(&self, params: OpenTry) -> Result<()> {
        self.write(move |batch| open(batch, &params)).await
    }

    async fn note_tried(&self, id: TryId, letters: Vec<TriedLetter>) -> Result<bool> {
        self.write(move |batch| note(batch, id, &letters)).await
    }

    async fn note_try(&self, id: TryId, outcome: Value) -> Result<bool> {
        self.write(move |batch| {
            let mut update = batch.statement("UPDATE try SET outcome = ?2 WHERE uuid = ?1 AND finished_at IS NULL")?;
            Ok(update.execute(params![id.as_bytes(), outcome.to_string()])? == 1)
        })
        .await
    }

    async fn add_to_try(&self, id: TryId, letters: Vec<LetterToTry>) -> Result<()> {
        self.write(move |batch| add(batch, id, &letters)).await
    }

    async fn lease_tried(&self, params: LeaseTried) -> Result<Vec<JobId>> {
        self.write(move |batch| lease(batch, &params)).await
    }

    async fn extend_tried(&self, leases: Vec<TriedLease>, until: Timestamp) -> Result<Vec<bool>> {
        self.write(move |batch| leases.iter().map(|lease| extend(batch, lease, until)).collect()).await
    }

    async fn settle_tried(&self, settled: Vec<SettleTried>) -> Result<Vec<bool>> {
        self.write(move |batch| settled.iter().map(|settled| settle(batch, settled)).collect()).await
    }

    async fn count_tried(&self, id: TryId) -> Result<Vec<TriedCount>> {
        self.read(move |conn| count(conn, id)).await
    }

    async fn open_in_try(&self, params: OpenInTry) -> Result<u64> {
        self.read(move |conn| count_open(conn, &params)).await
    }

    async fn end_try(&self, id: TryId, outcome: Value, now: Timestamp) -> Result<()> {
        self.write(move |batch| {
            let mut update = batch.statement(
                "UPDATE try SET outcome = ?2, finished_at = ?3 WHERE uuid = ?1 AND finished_at IS NULL RETURNING id",
            )?;
            let ended = update
                .query_row(params![id.as_bytes(), outcome.to_string(), now.as_millis()], |row| row.get::<_, i64>(0));
            if let Some(row) = ended.optional()? {
                batch.statement("DELETE FROM try_letter WHERE try = ?1 AND state <> 'tried'")?.execute([row])?;
            }
            Ok(())
        })
        .await
    }

    async fn get_try(&self, id: TryId) -> Result<Option<TryView>> {
        self.read(move |conn| {
            let mut select = conn.prepare_cached(&format!("SELECT {TRY_COLUMNS} FROM try WHERE uuid = ?1"))?;
            Ok(select.query_row([id.as_bytes()], |row| rows::try_view(row)).optional()?)
        })
        .await
    }

    async fn list_tries(&self, limit: u32) -> Result<Vec<TryView>> {
        self.read(move |conn| {
            let sql = format!("SELECT {TRY_COLUMNS} FROM try ORDER BY id DESC LIMIT {limit}");
            let mut select = conn.prepare_cached(&sql)?;
            Ok(select.query_map([], |row| rows::try_view(row))?.collect::<RowResult<_>>()?)
        })
        .await
    }

    async fn list_tried(&self, params: ListTried) -> Result<Page<TriedLetter>> {
        self.read(move |conn| letters(conn, &params)).await
    }

    async fn forget_tries(&self, before: Timestamp, limit: u32) -> Result<bool> {
        self.write(move |batch| forget(batch, before, limit)).await
    }
}

fn open(batch: &Batch<'_>, params: &OpenTry) -> Result<(), Fault> {
    let mut insert = batch.statement(
        "INSERT OR IGNORE INTO try (uuid, actor, via, selection, edits, tried_with, outcome, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    insert.execute(params![
        params.id.as_bytes(),
        params.by.name,
        params.by.via.as_str(),
        serde_json::to_string(&params.selection)?,
        serde_json::to_string(&params.edits)?,
        serde_json::to_string(&params.tried_with)?,
        params.outcome.to_string(),
        params.now.as_millis()
    ])?;
    Ok(())
}

/// The row of a try, if it is still there.
pub(super) fn row(conn: &Connection, id: TryId) -> Result<Option<i64>, Fault> {
    let mut select = conn.prepare_cached("SELECT id FROM try WHERE uuid = ?1")?;
    Ok(select.query_row([id.as_bytes()], |row| row.get(0)).optional()?)
}

/// The row of a try that has not ended, if it is still there.
fn open_row(batch: &Batch<'_>, id: TryId) -> Result<Option<i64>, Fault> {
    let mut select = batch.statement("SELECT id FROM try WHERE uuid = ?1 AND finished_at IS NULL")?;
    Ok(select.query_row([id.as_bytes()], |row| row.get(0)).optional()?)
}

fn note(batch: &Batch<'_>, id: TryId, letters: &[TriedLetter]) -> Result<bool, Fault> {
    let Some(row) = open_row(batch, id)? else { return Ok(false) };
    let mut insert = batch.statement(
        "INSERT OR REPLACE INTO try_letter (try, job, attempts, recovered, key, message, details)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for letter in letters {
        let TriedLetter { id, attempts, recovered, key, message, details } = letter;
        let details = lists::tried_details(details)?;
        insert.execute(params![row, id.as_bytes(), attempts, recovered, key, message, details])?;
    }
    Ok(true)
}

fn add(batch: &Batch<'_>, id: TryId, letters: &[LetterToTry]) -> Result<(), Fault> {
    let Some(row) = open_row(batch, id)? else { return Ok(()) };
    let mut insert = batch.statement(
        "INSERT OR IGNORE INTO try_letter (try, job, attempts, recovered, state, pipeline, part)
         VALUES (?1, ?2, ?3, 0, 'waiting', ?4, ?5)",
    )?;
    for LetterToTry { id, attempts, pipeline, group } in letters {
        insert.execute(params![row, id.as_bytes(), attempts, pipeline.as_str(), group])?;
    }
    Ok(())
}

fn lease(batch: &Batch<'_>, params: &LeaseTried) -> Result<Vec<JobId>, Fault> {
    let Some(row) = open_row(batch, params.id)? else { return Ok(Vec::new()) };
    let token = params.token.as_bytes();
    let mut has = batch.statement(&format!(
        "SELECT job FROM (SELECT job, token, state FROM try_letter INDEXED BY try_letter_open
                          WHERE try = ?1 AND state <> 'tried' ORDER BY job LIMIT {LOOKED_AT})
         WHERE token = ?2 AND state = 'leased'"
    ))?;
    let had = has.query_map(params![row, token], |row| rows::job_id(row, 0))?.collect::<RowResult<Vec<_>>>()?;
    if !had.is_empty() {
        return Ok(had);
    }
    let names: Vec<&str> = params.pipelines.iter().map(PipelineName::as_str).collect();
    let mut update = batch.statement(
        "UPDATE try_letter SET state = 'leased', token = ?2, until = ?3
         WHERE (try, job) IN (
            SELECT try, job FROM try_letter INDEXED BY try_letter_open
            WHERE try = ?1 AND state <> 'tried' AND (state = 'waiting' OR until <= ?4)
              AND pipeline IN (SELECT value FROM json_each(?5)) AND (?6 IS NULL OR part = ?6)
            ORDER BY job LIMIT ?7)
         RETURNING job",
    )?;
    let (until, now, names) = (params.until.as_millis(), params.now.as_millis(), serde_json::to_string(&names)?);
    let leased = update
        .query_map(params![row, token, until, now, names, params.group, params.limit], |row| rows::job_id(row, 0))?;
    Ok(leased.collect::<RowResult<_>>()?)
}

fn extend(batch: &Batch<'_>, lease: &TriedLease, until: Timestamp) -> Result<bool, Fault> {
    let Some(row) = row(batch.connection(), lease.id)? else { return Ok(false) };
    let mut update = batch.statement(
        "UPDATE try_letter SET until = ?4 WHERE try = ?1 AND job = ?2 AND token = ?3 AND state = 'leased'",
    )?;
    let job = lease.job.as_bytes();
    Ok(update.execute(params![row, job, lease.token.as_bytes(), until.as_millis()])? == 1)
}

fn settle(batch: &Batch<'_>, settled: &SettleTried) -> Result<bool, Fault> {
    let SettleTried { lease, verdict } = settled;
    let Some(row) = row(batch.connection(), lease.id)? else { return Ok(false) };
    let (job, token) = (lease.job.as_bytes(), lease.token.as_bytes());
    let Some(TriedLetter { recovered, key, message, details, .. }) = verdict else {
        let mut update = batch.statement(
            "UPDATE try_letter SET state = 'waiting', until = NULL
             WHERE try = ?1 AND job = ?2 AND token = ?3 AND state <> 'tried'",
        )?;
        return Ok(update.execute(params![row, job, token])? == 1);
    };
    let mut update = batch.statement(
        "UPDATE try_letter SET state = 'tried', until = NULL, recovered = ?4, key = ?5, message = ?6, details = ?7
         WHERE try = ?1 AND job = ?2 AND token = ?3 AND (state = 'leased' OR state = 'tried' AND recovered = ?4)",
    )?;
    let details = lists::tried_details(details)?;
    Ok(update.execute(params![row, job, token, recovered, key, message, details])? == 1)
}

fn count(conn: &Connection, id: TryId) -> Result<Vec<TriedCount>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT l.pipeline, l.part, sum(l.state = 'waiting'), sum(l.state = 'leased'), sum(l.state = 'tried'),
                sum(l.state = 'tried' AND l.recovered)
         FROM try t JOIN try_letter l ON l.try = t.id WHERE t.uuid = ?1 GROUP BY l.pipeline, l.part
         ORDER BY l.pipeline, l.part",
    )?;
    let counts = select.query_map([id.as_bytes()], |row| rows::tried_count(row))?;
    Ok(counts.collect::<RowResult<_>>()?)
}

fn count_open(conn: &Connection, params: &OpenInTry) -> Result<u64, Fault> {
    let Some(row) = row(conn, params.id)? else { return Ok(0) };
    let mut select = conn.prepare_cached(
        "SELECT count(*) FROM (SELECT 1 FROM try_letter INDEXED BY try_letter_open
                               WHERE try = ?1 AND state <> 'tried' AND (?2 IS NULL OR pipeline IN (SELECT value FROM json_each(?2)))
                                 AND (?3 IS NULL OR part = ?3) LIMIT ?4)",
    )?;
    let names: Vec<&str> = params.pipelines.iter().map(PipelineName::as_str).collect();
    let names = (!names.is_empty()).then(|| serde_json::to_string(&names)).transpose()?;
    Ok(select.query_row(params![row, names, params.group, params.limit], |row| row.get(0))?)
}

fn letters(conn: &Connection, params: &ListTried) -> Result<Page<TriedLetter>, Fault> {
    let Some(row) = row(conn, params.id)? else { return Ok(Page { items: Vec::new(), next: None }) };
    let mut conditions = Conditions::default();
    conditions.equal("try", Some(row));
    conditions.equal("state", Some("tried".to_owned()));
    if let Some(cursor) = &params.cursor {
        let after: redrive_core::ids::JobId = cursor.parse().map_err(|_| StoreError::InvalidCursor(cursor.clone()))?;
        conditions.more_than("job", Some(after.as_bytes().to_vec()));
    }
    let limit = params.limit.saturating_add(1);
    let sql = format!("SELECT {} FROM try_letter {conditions} ORDER BY job LIMIT {limit}", rows::TRIED_COLUMNS);
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map(conditions.values(), |row| rows::tried_letter(row))?;
    Ok(Page::cut(rows.collect::<RowResult<Vec<_>>>()?, params.limit, |letter| letter.id.to_string()))
}

fn forget(batch: &Batch<'_>, before: Timestamp, limit: u32) -> Result<bool, Fault> {
    let mut letters = batch.statement(
        "DELETE FROM try_letter WHERE (try, job) IN
            (SELECT l.try, l.job FROM try t CROSS JOIN try_letter l ON l.try = t.id WHERE t.created_at < ?1 LIMIT ?2)",
    )?;
    if letters.execute(params![before.as_millis(), limit])? >= usize::try_from(limit).unwrap_or(usize::MAX) {
        return Ok(true);
    }
    batch.statement("DELETE FROM try WHERE created_at < ?1")?.execute([before.as_millis()])?;
    Ok(false)
}
