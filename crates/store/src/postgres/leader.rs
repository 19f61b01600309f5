//! The leader: a row per thing that is led, taken by comparing and setting.

use async_trait::async_trait;
use redrive_core::leader::{Leading, term};

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Conn, Row, args};
use super::{PostgresStore, rows, run};
use crate::contract::{ChoreView, Lead, LeaderStore, Led, NoteChore};
use crate::error::{Result, StoreError};

#[async_trait]
impl LeaderStore for PostgresStore {
    async fn lead(&self, params: Lead) -> Result<Vec<Option<u64>>> {
        self.write(params, run!(lead)).await
    }

    async fn list_chores(&self, led: String) -> Result<Vec<ChoreView>> {
        self.read(led, run!(chores)).await
    }

    async fn note_chore(&self, params: NoteChore) -> Result<bool> {
        self.write(params, run!(note)).await
    }
}

async fn chores(conn: &Conn, led: &str) -> Result<Vec<ChoreView>, Fault> {
    let sql = "SELECT name, last_run FROM chore WHERE led = $1 ORDER BY name";
    conn.query(sql, args![led], |row| Ok(ChoreView { name: row.get(0)?, last_run: rows::time(row, 1)? })).await
}

async fn lead(batch: &mut Batch, params: &Lead) -> Result<Vec<Option<u64>>, Fault> {
    let select = "SELECT holder, term, until, EXISTS (SELECT 1 FROM worker w WHERE w.id = leader.holder) FROM leader WHERE name = $1";
    let put = "INSERT INTO leader (name, holder, term, until) VALUES ($1, $2, $3, $4)
               ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, term = excluded.term, until = excluded.until";
    let mut terms = Vec::with_capacity(params.names.len());
    for name in &params.names {
        let leads = batch.conn().query_opt(select, args![name], leading).await?;
        let term = term(leads.as_ref(), params.holder, params.now);
        if let Some(term) = term {
            batch.conn().execute(put, args![name, params.holder, term, params.until]).await?;
        }
        terms.push(term);
    }
    Ok(terms)
}

fn leading(row: &Row<'_>) -> Result<Leading, Fault> {
    let (holder, until) = (rows::worker_id(row, 0)?, rows::time(row, 2)?);
    Ok(Leading { holder, term: row.get(1)?, until, is_listed: row.get(3)? })
}

async fn leads(batch: &Batch, name: &str, term: u64) -> Result<bool, Fault> {
    batch.conn().exists("SELECT 1 FROM leader WHERE name = $1 AND term = $2", args![name, term]).await
}

/// Refuses what is no longer for its caller to do.
pub(super) async fn check(batch: &Batch, led: Option<&Led>) -> Result<(), Fault> {
    let Some(Led { name, term }) = led else { return Ok(()) };
    match leads(batch, name, *term).await? {
        true => Ok(()),
        false => Err(StoreError::Conflict { what: format!("who leads {name}") }.into()),
    }
}

async fn note(batch: &mut Batch, params: &NoteChore) -> Result<bool, Fault> {
    if !leads(batch, &params.led, params.term).await? {
        return Ok(false);
    }
    let noted = match params.was {
        Some(was) => {
            let sql = "UPDATE chore SET last_run = $3 WHERE led = $1 AND name = $2 AND last_run = $4";
            batch.conn().execute(sql, args![params.led, params.name, params.now, was]).await?
        }
        None => {
            let sql = "INSERT INTO chore (led, name, last_run) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
            batch.conn().execute(sql, args![params.led, params.name, params.now]).await?
        }
    };
    Ok(noted == 1)
}
