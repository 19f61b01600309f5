//! Rounds: the ledger of each, written once per transaction beside that of its pipeline.

use async_trait::async_trait;
use redrive_core::time::Timestamp;
use rusqlite::{Connection, params};
use serde_json::json;

use super::SqliteStore;
use super::activity;
use super::batch::Batch;
use super::conditions::Conditions;
use super::fault::Fault;
use super::rows::{self, RowResult};
use crate::contract::{BeginRound, ListRounds, RoundStore, RoundView};
use crate::error::Result;
use crate::rounds::{Change, Rounds};

#[async_trait]
impl RoundStore for SqliteStore {
    async fn list_rounds(&self, params: ListRounds) -> Result<Vec<RoundView>> {
        self.read(move |conn| list(conn, &params)).await
    }

    async fn begin_round(&self, params: BeginRound) -> Result<bool> {
        self.write(move |batch| begin(batch, &params)).await
    }
}

fn begin(batch: &mut Batch<'_>, BeginRound { pipeline: name, round, by, now }: &BeginRound) -> Result<bool, Fault> {
    let pipeline = batch.pipeline(name)?;
    // One that others began in this transaction is not written yet.
    if batch.rounds.is_changed(pipeline, round.as_str()) {
        return Ok(false);
    }
    let mut insert = batch.statement(
        "INSERT INTO round (pipeline, name, begun_at, grown_at) VALUES (?1, ?2, ?3, ?3) ON CONFLICT DO NOTHING",
    )?;
    let begun = insert.execute(params![pipeline, round.as_str(), now.as_millis()])? > 0;
    if begun {
        activity::note(batch, by, ("begin", &format!("round {round}")), &json!({"pipelines": [name]}), *now)?;
    }
    Ok(begun)
}

/// Writes all of it.
pub(super) fn write(rounds: &Rounds, conn: &Connection) -> Result<(), Fault> {
    let mut upsert = conn.prepare_cached(
        "INSERT INTO round (pipeline, name, begun_at, grown_at, accepted, queued, leased, done, dead, discarded,
                            forgotten_done, forgotten_discarded)
         VALUES (?1, ?2, ifnull(?3, 0), ifnull(?3, 0), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
         ON CONFLICT DO UPDATE SET grown_at = max(grown_at, excluded.grown_at), accepted = accepted + excluded.accepted,
            queued = queued + excluded.queued, leased = leased + excluded.leased, done = done + excluded.done,
            dead = dead + excluded.dead, discarded = discarded + excluded.discarded,
            forgotten_done = forgotten_done + excluded.forgotten_done,
            forgotten_discarded = forgotten_discarded + excluded.forgotten_discarded",
    )?;
    for (pipeline, of_pipeline) in &rounds.0 {
        for (name, Change { ledger: l, accepted_at }) in of_pipeline {
            upsert.execute(params![
                pipeline,
                name,
                accepted_at.map(Timestamp::as_millis),
                l.accepted,
                l.queued,
                l.leased,
                l.done,
                l.dead,
                l.discarded,
                l.forgotten.done,
                l.forgotten.discarded
            ])?;
        }
    }
    Ok(())
}

fn list(conn: &Connection, params: &ListRounds) -> Result<Vec<RoundView>, Fault> {
    let mut conditions = Conditions::default();
    conditions.equal("p.name", params.pipeline.as_ref().map(|name| name.as_str().to_owned()));
    conditions.within("p.name", &params.within);
    let sql = format!(
        "SELECT p.name, r.name, r.begun_at, r.grown_at, r.accepted, r.queued, r.leased, r.done, r.dead, r.discarded,
                r.forgotten_done + r.forgotten_discarded
         FROM round r JOIN pipeline p ON p.id = r.pipeline {conditions}
         ORDER BY r.begun_at DESC, p.name, r.name DESC LIMIT {}",
        params.limit
    );
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map(conditions.values(), |row| rows::round_view(row))?;
    Ok(rows.collect::<RowResult<_>>()?)
}
