//! Rounds: the ledger of each, written once per transaction beside that of its pipeline.

use async_trait::async_trait;
use serde_json::json;

use super::batch::Batch;
use super::conditions::Conditions;
use super::fault::Fault;
use super::rows;
use super::sql::{Conn, args};
use super::{PostgresStore, activity, run};
use crate::contract::{BeginRound, ListRounds, RoundStore, RoundView};
use crate::error::Result;
use crate::rounds::{Change, Rounds};

#[async_trait]
impl RoundStore for PostgresStore {
    async fn list_rounds(&self, params: ListRounds) -> Result<Vec<RoundView>> {
        self.read(params, run!(list)).await
    }

    async fn begin_round(&self, params: BeginRound) -> Result<bool> {
        self.write(params, run!(begin)).await
    }
}

async fn begin(batch: &mut Batch, params: &BeginRound) -> Result<bool, Fault> {
    let BeginRound { pipeline: name, round, by, now } = params;
    let pipeline = batch.pipeline(name).await?;
    // One that others began in this transaction is not written yet.
    if batch.rounds.is_changed(pipeline, round.as_str()) {
        return Ok(false);
    }
    let sql = "INSERT INTO round (pipeline, name, begun_at, grown_at) VALUES ($1, $2, $3, $3) ON CONFLICT DO NOTHING";
    let begun = batch.conn().execute(sql, args![pipeline, round.as_str(), now]).await? > 0;
    if begun {
        let detail = json!({"pipelines": [name]});
        activity::note(batch, by, ("begin", &format!("round {round}")), &detail, *now).await?;
    }
    Ok(begun)
}

/// Writes what a transaction changes about them, in the order of their keys.
pub(super) async fn write(rounds: &Rounds, conn: &Conn) -> Result<(), Fault> {
    let of_pipelines =
        rounds.0.iter().flat_map(|(pipeline, rounds)| rounds.iter().map(move |(name, of)| ((pipeline, name), of)));
    let mut changes: Vec<((&i64, &String), &Change)> = of_pipelines.collect();
    changes.sort_by_key(|(key, _)| *key);
    for ((pipeline, name), Change { ledger: l, accepted_at }) in changes {
        let sql = "INSERT INTO round (pipeline, name, begun_at, grown_at, accepted, queued, leased, done, dead, discarded,
                                forgotten_done, forgotten_discarded)
             VALUES ($1, $2, coalesce($3::bigint, 0), coalesce($3::bigint, 0), $4, $5, $6, $7, $8, $9, $10, $11)
             ON CONFLICT (pipeline, name) DO UPDATE SET grown_at = greatest(round.grown_at, excluded.grown_at),
                accepted = round.accepted + excluded.accepted, queued = round.queued + excluded.queued,
                leased = round.leased + excluded.leased, done = round.done + excluded.done, dead = round.dead + excluded.dead,
                discarded = round.discarded + excluded.discarded,
                forgotten_done = round.forgotten_done + excluded.forgotten_done,
                forgotten_discarded = round.forgotten_discarded + excluded.forgotten_discarded";
        let changed = args![
            pipeline,
            name,
            accepted_at,
            l.accepted,
            l.queued,
            l.leased,
            l.done,
            l.dead,
            l.discarded,
            l.forgotten.done,
            l.forgotten.discarded
        ];
        conn.send(sql, changed).await?;
    }
    Ok(())
}

async fn list(conn: &Conn, params: &ListRounds) -> Result<Vec<RoundView>, Fault> {
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
    conn.query(&sql, conditions.values(), |row| rows::round_view(row)).await
}
