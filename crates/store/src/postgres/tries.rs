//! Tries: rows of their own, that no letter, ledger or breaker knows of.

use async_trait::async_trait;
use redrive_core::ids::{JobId, PipelineName, TryId};
use redrive_core::time::Timestamp;
use serde_json::Value;

use super::batch::Batch;
use super::conditions::Conditions;
use super::fault::Fault;
use super::sql::{Conn, args};
use super::{PostgresStore, rows, run};
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
impl TryStore for PostgresStore {
    async fn open_try(&self, params: OpenTry) -> Result<()> {
        self.write(params, run!(open)).await
    }

    async fn note_tried(&self, id: TryId, letters: Vec<TriedLetter>) -> Result<bool> {
        self.write((id, letters), run!(note)).await
    }

    async fn note_try(&self, id: TryId, outcome: Value) -> Result<bool> {
        self.write((id, outcome), run!(renew)).await
    }

    async fn add_to_try(&self, id: TryId, letters: Vec<LetterToTry>) -> Result<()> {
        self.write((id, letters), run!(add)).await
    }

    async fn lease_tried(&self, params: LeaseTried) -> Result<Vec<JobId>> {
        self.write(params, run!(lease)).await
    }

    async fn extend_tried(&self, leases: Vec<TriedLease>, until: Timestamp) -> Result<Vec<bool>> {
        self.write((leases, until), run!(extend)).await
    }

    async fn settle_tried(&self, settled: Vec<SettleTried>) -> Result<Vec<bool>> {
        self.write(settled, run!(settle)).await
    }

    async fn count_tried(&self, id: TryId) -> Result<Vec<TriedCount>> {
        self.read(id, run!(count)).await
    }

    async fn open_in_try(&self, params: OpenInTry) -> Result<u64> {
        self.read(params, run!(count_open)).await
    }

    async fn end_try(&self, id: TryId, outcome: Value, now: Timestamp) -> Result<()> {
        self.write((id, outcome, now), run!(end)).await
    }

    async fn get_try(&self, id: TryId) -> Result<Option<TryView>> {
        self.read(id, run!(get)).await
    }

    async fn list_tries(&self, limit: u32) -> Result<Vec<TryView>> {
        self.read(limit, run!(list)).await
    }

    async fn list_tried(&self, params: ListTried) -> Result<Page<TriedLetter>> {
        self.read(params, run!(letters)).await
    }

    async fn forget_tries(&self, before: Timestamp, limit: u32) -> Result<bool> {
        self.write((before, limit), run!(forget)).await
    }
}

async fn open(batch: &mut Batch, params: &OpenTry) -> Result<(), Fault> {
    let sql = "INSERT INTO try (uuid, actor, via, selection, edits, tried_with, outcome, created_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING";
    let new = args![
        params.id,
        params.by.name,
        params.by.via.as_str(),
        serde_json::to_string(&params.selection)?,
        serde_json::to_string(&params.edits)?,
        serde_json::to_string(&params.tried_with)?,
        params.outcome.to_string(),
        params.now
    ];
    batch.conn().execute(sql, new).await?;
    Ok(())
}

/// The row of a try, if it is still there.
pub(super) async fn row(conn: &Conn, id: TryId) -> Result<Option<i64>, Fault> {
    conn.query_opt("SELECT id FROM try WHERE uuid = $1", args![id], |row| row.get(0)).await
}

/// The row of a try that has not ended, if it is still there.
async fn open_row(conn: &Conn, id: TryId) -> Result<Option<i64>, Fault> {
    conn.query_opt("SELECT id FROM try WHERE uuid = $1 AND finished_at IS NULL", args![id], |row| row.get(0)).await
}

async fn note(batch: &mut Batch, (id, letters): &(TryId, Vec<TriedLetter>)) -> Result<bool, Fault> {
    let Some(row) = open_row(batch.conn(), *id).await? else { return Ok(false) };
    for letter in letters {
        let TriedLetter { id, attempts, recovered, key, message, details } = letter;
        let sql =
            "INSERT INTO try_letter (try, job, attempts, recovered, key, message, details) VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (try, job) DO UPDATE SET attempts = excluded.attempts, recovered = excluded.recovered,
                 key = excluded.key, message = excluded.message, details = excluded.details, state = 'tried'";
        let details = lists::tried_details(details)?;
        batch.conn().execute(sql, args![row, id, attempts, recovered, key, message, details]).await?;
    }
    Ok(true)
}

async fn add(batch: &mut Batch, (id, letters): &(TryId, Vec<LetterToTry>)) -> Result<(), Fault> {
    let Some(row) = open_row(batch.conn(), *id).await? else { return Ok(()) };
    for LetterToTry { id, attempts, pipeline, group } in letters {
        let sql = "INSERT INTO try_letter (try, job, attempts, recovered, state, pipeline, part)
                   VALUES ($1, $2, $3, false, 'waiting', $4, $5) ON CONFLICT DO NOTHING";
        batch.conn().execute(sql, args![row, id, attempts, pipeline.as_str(), group]).await?;
    }
    Ok(())
}

async fn lease(batch: &mut Batch, params: &LeaseTried) -> Result<Vec<JobId>, Fault> {
    let Some(row) = open_row(batch.conn(), params.id).await? else { return Ok(Vec::new()) };
    let had = format!(
        "SELECT job FROM (SELECT job, token, state FROM try_letter
                          WHERE try = $1 AND state <> 'tried' ORDER BY job LIMIT {LOOKED_AT}) l
         WHERE token = $2 AND state = 'leased'"
    );
    let had = batch.conn().query(&had, args![row, params.token], |row| rows::job_id(row, 0)).await?;
    if !had.is_empty() {
        return Ok(had);
    }
    let names: Vec<&str> = params.pipelines.iter().map(PipelineName::as_str).collect();
    let sql = "UPDATE try_letter SET state = 'leased', token = $2, until = $3
               WHERE (try, job) IN (
                  SELECT try, job FROM try_letter
                  WHERE try = $1 AND state <> 'tried' AND (state = 'waiting' OR until <= $4)
                    AND pipeline IN (SELECT jsonb_array_elements_text($5::text::jsonb)) AND ($6::text IS NULL OR part = $6)
                  ORDER BY job LIMIT $7)
               RETURNING job";
    let names = serde_json::to_string(&names)?;
    let asked = args![row, params.token, params.until, params.now, names, params.group, params.limit];
    batch.conn().query(sql, asked, |row| rows::job_id(row, 0)).await
}

async fn extend(batch: &mut Batch, (leases, until): &(Vec<TriedLease>, Timestamp)) -> Result<Vec<bool>, Fault> {
    let mut held = Vec::with_capacity(leases.len());
    for TriedLease { id, job, token } in leases {
        let sql = "UPDATE try_letter SET until = $4 WHERE try = (SELECT id FROM try WHERE uuid = $1) AND job = $2
                   AND token = $3 AND state = 'leased'";
        held.push(batch.conn().execute(sql, args![id, job, token, until]).await? == 1);
    }
    Ok(held)
}

async fn settle(batch: &mut Batch, settled: &Vec<SettleTried>) -> Result<Vec<bool>, Fault> {
    let mut held = Vec::with_capacity(settled.len());
    for SettleTried { lease: TriedLease { id, job, token }, verdict } in settled {
        let changed = match verdict {
            None => {
                let sql = "UPDATE try_letter SET state = 'waiting', until = NULL
                           WHERE try = (SELECT id FROM try WHERE uuid = $1) AND job = $2 AND token = $3 AND state <> 'tried'";
                batch.conn().execute(sql, args![id, job, token]).await?
            }
            Some(TriedLetter { recovered, key, message, details, .. }) => {
                let sql = "UPDATE try_letter SET state = 'tried', until = NULL, recovered = $4, key = $5, message = $6, details = $7
                           WHERE try = (SELECT id FROM try WHERE uuid = $1) AND job = $2 AND token = $3
                             AND (state = 'leased' OR state = 'tried' AND recovered = $4)";
                let details = lists::tried_details(details)?;
                batch.conn().execute(sql, args![id, job, token, recovered, key, message, details]).await?
            }
        };
        held.push(changed == 1);
    }
    Ok(held)
}

async fn count(conn: &Conn, id: &TryId) -> Result<Vec<TriedCount>, Fault> {
    let sql = "SELECT l.pipeline, l.part, count(*) FILTER (WHERE l.state = 'waiting'),
                      count(*) FILTER (WHERE l.state = 'leased'), count(*) FILTER (WHERE l.state = 'tried'),
                      count(*) FILTER (WHERE l.state = 'tried' AND l.recovered)
               FROM try t JOIN try_letter l ON l.try = t.id WHERE t.uuid = $1 GROUP BY l.pipeline, l.part
               ORDER BY l.pipeline NULLS FIRST, l.part NULLS FIRST";
    conn.query(sql, args![id], |row| rows::tried_count(row)).await
}

async fn count_open(conn: &Conn, params: &OpenInTry) -> Result<u64, Fault> {
    let sql = "SELECT count(*) FROM (
                  SELECT 1 FROM try t JOIN try_letter l ON l.try = t.id
                  WHERE t.uuid = $1 AND l.state <> 'tried' AND (cardinality($2::text[]) = 0 OR l.pipeline = ANY($2))
                    AND ($3::text IS NULL OR l.part = $3) LIMIT $4) o";
    let names: Vec<&str> = params.pipelines.iter().map(PipelineName::as_str).collect();
    conn.query_one(sql, args![params.id, names, params.group, params.limit], |row| row.get(0)).await
}

async fn renew(batch: &mut Batch, (id, outcome): &(TryId, Value)) -> Result<bool, Fault> {
    let sql = "UPDATE try SET outcome = $2 WHERE uuid = $1 AND finished_at IS NULL";
    Ok(batch.conn().execute(sql, args![id, outcome.to_string()]).await? == 1)
}

async fn end(batch: &mut Batch, (id, outcome, now): &(TryId, Value, Timestamp)) -> Result<(), Fault> {
    let sql = "WITH ended AS (UPDATE try SET outcome = $2, finished_at = $3
                              WHERE uuid = $1 AND finished_at IS NULL RETURNING id)
               DELETE FROM try_letter l USING ended WHERE l.try = ended.id AND l.state <> 'tried'";
    batch.conn().execute(sql, args![id, outcome.to_string(), now]).await?;
    Ok(())
}

async fn get(conn: &Conn, id: &TryId) -> Result<Option<TryView>, Fault> {
    let sql = format!("SELECT {TRY_COLUMNS} FROM try WHERE uuid = $1");
    conn.query_opt(&sql, args![id], |row| rows::try_view(row)).await
}

async fn list(conn: &Conn, limit: &u32) -> Result<Vec<TryView>, Fault> {
    let sql = format!("SELECT {TRY_COLUMNS} FROM try ORDER BY id DESC LIMIT $1");
    conn.query(&sql, args![limit], |row| rows::try_view(row)).await
}

async fn letters(conn: &Conn, params: &ListTried) -> Result<Page<TriedLetter>, Fault> {
    let Some(row) = row(conn, params.id).await? else { return Ok(Page { items: Vec::new(), next: None }) };
    let mut conditions = Conditions::default();
    conditions.equal("try", Some(row));
    conditions.equal("state", Some("tried".to_owned()));
    if let Some(cursor) = &params.cursor {
        let after: JobId = cursor.parse().map_err(|_| StoreError::InvalidCursor(cursor.clone()))?;
        conditions.more_than("job", Some(after));
    }
    let limit = params.limit.saturating_add(1);
    let sql = format!("SELECT {} FROM try_letter {conditions} ORDER BY job LIMIT {limit}", rows::TRIED_COLUMNS);
    let found = conn.query(&sql, conditions.values(), |row| rows::tried_letter(row));
    Ok(Page::cut(found.await?, params.limit, |letter| letter.id.to_string()))
}

async fn forget(batch: &mut Batch, (before, limit): &(Timestamp, u32)) -> Result<bool, Fault> {
    let sql = "DELETE FROM try_letter WHERE (try, job) IN
                  (SELECT l.try, l.job FROM try t JOIN try_letter l ON l.try = t.id WHERE t.created_at < $1 LIMIT $2)";
    if batch.conn().execute(sql, args![before, limit]).await? >= u64::from(*limit) {
        return Ok(true);
    }
    batch.conn().execute("DELETE FROM try WHERE created_at < $1", args![before]).await?;
    Ok(false)
}
