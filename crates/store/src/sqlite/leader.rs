//! The leader: a row per thing that is led, taken by comparing and setting.

use async_trait::async_trait;
use rusqlite::{OptionalExtension, params};

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use super::rows::{self, RowResult};
use crate::contract::{ChoreView, Lead, LeaderStore, NoteChore};
use crate::error::Result;

#[async_trait]
impl LeaderStore for SqliteStore {
    async fn lead(&self, params: Lead) -> Result<Vec<Option<u64>>> {
        self.write(move |batch| lead(batch, &params)).await
    }

    async fn list_chores(&self, led: String) -> Result<Vec<ChoreView>> {
        self.read(move |conn| {
            let mut select = conn.prepare_cached("SELECT name, last_run FROM chore WHERE led = ?1 ORDER BY name")?;
            let rows =
                select.query_map([&led], |row| Ok(ChoreView { name: row.get(0)?, last_run: rows::time(row, 1)? }))?;
            Ok(rows.collect::<RowResult<_>>()?)
        })
        .await
    }

    async fn note_chore(&self, params: NoteChore) -> Result<bool> {
        self.write(move |batch| note(batch, &params)).await
    }
}

fn lead(batch: &Batch<'_>, params: &Lead) -> Result<Vec<Option<u64>>, Fault> {
    let mut upsert = batch.statement(
        "INSERT INTO leader (name, holder, term, until) VALUES (?1, ?2, 1, ?3)
         ON CONFLICT DO UPDATE SET term = term + (holder <> excluded.holder), holder = excluded.holder, until = excluded.until
         WHERE holder = excluded.holder OR until <= ?4 OR until > ?5
            OR NOT EXISTS (SELECT 1 FROM worker w WHERE w.id = leader.holder)
         RETURNING term",
    )?;
    let [until, now, believed] = [params.until, params.now, params.believed_until].map(|time| time.as_millis());
    let take = |name: &String| {
        upsert.query_row(params![name, params.holder.as_bytes(), until, now, believed], |row| row.get(0)).optional()
    };
    Ok(params.names.iter().map(take).collect::<RowResult<_>>()?)
}

fn note(batch: &Batch<'_>, params: &NoteChore) -> Result<bool, Fault> {
    let mut leads = batch.statement("SELECT 1 FROM leader WHERE name = ?1 AND term = ?2")?;
    if !leads.exists(params![params.led, params.term])? {
        return Ok(false);
    }
    let now = params.now.as_millis();
    let noted = match params.was {
        Some(was) => batch
            .statement("UPDATE chore SET last_run = ?3 WHERE led = ?1 AND name = ?2 AND last_run = ?4")?
            .execute(params![params.led, params.name, now, was.as_millis()])?,
        None => batch
            .statement("INSERT OR IGNORE INTO chore (led, name, last_run) VALUES (?1, ?2, ?3)")?
            .execute(params![params.led, params.name, now])?,
    };
    Ok(noted == 1)
}
