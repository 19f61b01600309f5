//! Breakers, and what was said of their targets. Rows exist only for targets that gave trouble.

use async_trait::async_trait;
use redrive_core::breakers::{Breaker, BreakerChange, BreakerRow, BreakerState, BreakerView, Gates, NextBreaker, Said};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Conn, args};
use super::{PostgresStore, activity, rows, run};
use crate::contract::{BreakerStore, BreakersOf, Topic, TurnBreaker};
use crate::error::Result;

/// At most so much of what was said of a target is answered at once.
const PENDING_MAX: i64 = 1_000;

#[async_trait]
impl BreakerStore for PostgresStore {
    async fn list_breakers(&self) -> Result<Vec<BreakerView>> {
        self.read((), run!(list)).await
    }

    async fn breakers_of(&self, params: BreakersOf) -> Result<Vec<BreakerRow>> {
        self.read(params, run!(page)).await
    }

    async fn change_breakers(&self, changes: Vec<BreakerChange>) -> Result<Vec<BreakerRow>> {
        self.write(changes, |batch, changes| Box::pin(change(batch, changes, &[]))).await
    }

    async fn get_breaker(&self, pipeline: PipelineName, target: String) -> Result<BreakerRow> {
        self.read((pipeline, target), run!(get)).await
    }

    async fn turn_breaker(&self, params: TurnBreaker) -> Result<bool> {
        self.write(params, run!(turn)).await
    }
}

async fn list(conn: &Conn, (): &()) -> Result<Vec<BreakerView>, Fault> {
    let sql =
        "WITH waiting AS (SELECT pipeline, substr(name, strpos(name, 'h') + 1) AS target, sum(jobs)::bigint AS jobs,
                                       coalesce(sum(jobs) FILTER (WHERE name >= 'r'), 0)::bigint AS replayed
                                FROM lane WHERE jobs > 0 GROUP BY 1, 2)
         SELECT p.name, b.target, coalesce(w.jobs, 0), b.breaker, coalesce(w.replayed, 0)
         FROM breaker b JOIN pipeline p ON p.id = b.pipeline
         LEFT JOIN waiting w ON w.pipeline = b.pipeline AND w.target = b.target WHERE b.shut
         UNION ALL
         SELECT p.name, w.target, w.jobs, b.breaker, w.replayed
         FROM waiting w JOIN pipeline p ON p.id = w.pipeline
         LEFT JOIN breaker b ON b.pipeline = w.pipeline AND b.target = w.target WHERE NOT coalesce(b.shut, false)
         ORDER BY 1, 2";
    let closed = || Breaker::closed(Timestamp::from_millis(0));
    let views = conn.query(sql, args![], |row| {
        Ok(BreakerView {
            pipeline: rows::parsed(row, 0)?,
            target: row.get(1)?,
            held: row.get(2)?,
            held_of_replays: row.get(4)?,
            breaker: rows::json_opt(row, 3)?.unwrap_or_else(closed),
        })
    });
    views.await
}

async fn page(conn: &Conn, params: &BreakersOf) -> Result<Vec<BreakerRow>, Fault> {
    let sql = "SELECT t.target, p.id FROM pipeline p JOIN
                  (SELECT pipeline, target FROM breaker UNION SELECT pipeline, target FROM breaker_said) t ON t.pipeline = p.id
               WHERE p.name = $1 AND t.target > $2 ORDER BY t.target LIMIT $3";
    let after = params.after.as_deref().unwrap_or_default();
    let of = args![params.pipeline.as_str(), after, params.limit];
    let page = conn.query(sql, of, |row| Ok((row.get::<String>(0)?, row.get(1)?))).await?;
    let mut found = Vec::with_capacity(page.len());
    for (target, id) in page {
        found.push(find(conn, (&params.pipeline, id), &target, 0).await?);
    }
    Ok(found)
}

async fn get(conn: &Conn, (pipeline, target): &(PipelineName, String)) -> Result<BreakerRow, Fault> {
    let sql = "SELECT id FROM pipeline WHERE name = $1";
    let id = conn.query_opt(sql, args![pipeline.as_str()], |row| row.get(0)).await?;
    // No pipeline has the row 0: nothing is found of one that is not known.
    find(conn, (pipeline, id.unwrap_or(0)), target, 0).await
}

/// The breakers of a pipeline that are not closed.
pub(super) async fn gates(batch: &mut Batch, name: &PipelineName, pipeline: i64) -> Result<Gates, Fault> {
    let standing = batch.standing(pipeline).await?;
    let (version, as_of) = (standing.gates, standing.epoch);
    let sql = "SELECT target FROM breaker WHERE pipeline = $1 AND shut ORDER BY target";
    let targets: Vec<String> = batch.conn().query(sql, args![pipeline], |row| row.get(0)).await?;
    let mut rows = Vec::with_capacity(targets.len());
    for target in targets {
        rows.push(find(batch.conn(), (name, pipeline), &target, as_of).await?);
    }
    Ok(Gates { version, rows })
}

/// Changes breakers, by what was said in settlements by which jobs moved. Answers with those that there are.
pub(super) async fn change(
    batch: &mut Batch,
    changes: &[BreakerChange],
    moved: &[bool],
) -> Result<Vec<BreakerRow>, Fault> {
    let mut rows = Vec::new();
    for change in changes {
        let Some(pipeline) = batch.find_pipeline(&change.pipeline).await? else { continue };
        let applied = |by: usize| moved.get(by) == Some(&true);
        let heard: Vec<&Said> = change.heard.iter().filter(|h| applied(h.by)).map(|h| &h.said).collect();
        let is_whole = heard.len() == change.heard.len();
        let next = change.next.as_ref().filter(|_| is_whole);
        let idle = next.is_some_and(|next| next.was.is_none() && next.breaker.is_none());
        if idle && !batch.standing(pipeline).await?.is_troubled {
            continue;
        }
        if !write(batch, (pipeline, &change.target), next).await? {
            keep_said(batch, (pipeline, &change.target), &heard).await?;
        }
        let as_of = batch.standing(pipeline).await?.epoch;
        let row = find(batch.conn(), (&change.pipeline, pipeline), &change.target, as_of).await?;
        if !idle || row.version.is_some() || !row.pending.is_empty() {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Writes a breaker that a person turned.
async fn turn(batch: &mut Batch, params: &TurnBreaker) -> Result<bool, Fault> {
    let pipeline = batch.pipeline(&params.pipeline).await?;
    let written = write(batch, (pipeline, &params.target), Some(&params.next)).await?;
    if written {
        let object = format!("breaker {}", params.target);
        activity::note(batch, &params.by, (params.verb, &object), &params.detail(), params.now).await?;
    }
    Ok(written)
}

/// Writes a breaker, if it is still the one that it was made from.
async fn write(batch: &mut Batch, (pipeline, target): (i64, &str), next: Option<&NextBreaker>) -> Result<bool, Fault> {
    let Some(next) = next else { return Ok(false) };
    let sql = "SELECT version, shut FROM breaker WHERE pipeline = $1 AND target = $2";
    let now: Option<(u64, bool)> =
        batch.conn().query_opt(sql, args![pipeline, target], |row| Ok((row.get(0)?, row.get(1)?))).await?;
    if now.map(|(version, _)| version) != next.was {
        return Ok(false);
    }
    if now.is_some() || next.breaker.is_some() {
        let was_shut = now.is_some_and(|(_, shut)| shut);
        put(batch, (pipeline, target), next.breaker.as_ref(), was_shut).await?;
    }
    if next.folded_to > 0 {
        let sql = "DELETE FROM breaker_said WHERE pipeline = $1 AND target = $2 AND id <= $3";
        batch.conn().execute(sql, args![pipeline, target, next.folded_to]).await?;
    }
    Ok(true)
}

async fn put(
    batch: &mut Batch,
    (pipeline, target): (i64, &str),
    breaker: Option<&Breaker>,
    was_shut: bool,
) -> Result<(), Fault> {
    let shut = breaker.is_some_and(|breaker| breaker.state != BreakerState::Closed);
    if shut || was_shut {
        // Nobody waits for one that is closed and stays so.
        batch.touch(Topic::Breakers);
    }
    let version = batch.begin_epoch(pipeline, shut || was_shut).await?;
    match breaker {
        Some(breaker) => {
            let sql = "INSERT INTO breaker (pipeline, target, version, shut, breaker) VALUES ($1, $2, $3, $4, $5)
                       ON CONFLICT (pipeline, target)
                          DO UPDATE SET version = excluded.version, shut = excluded.shut, breaker = excluded.breaker";
            let text = serde_json::to_string(breaker)?;
            batch.conn().execute(sql, args![pipeline, target, version, shut, text]).await?
        }
        None => {
            let sql = "DELETE FROM breaker WHERE pipeline = $1 AND target = $2";
            batch.conn().execute(sql, args![pipeline, target]).await?
        }
    };
    Ok(())
}

/// Keeps what was said for who changes the breaker next.
async fn keep_said(batch: &mut Batch, (pipeline, target): (i64, &str), heard: &[&Said]) -> Result<(), Fault> {
    if heard.is_empty() {
        return Ok(());
    }
    let said: Vec<String> = heard.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    let sql = "INSERT INTO breaker_said (pipeline, target, said)
               SELECT $1, $2, u.said FROM unnest($3::text[]) WITH ORDINALITY AS u(said, n) ORDER BY u.n";
    // Whoever is answered with this is later than who was answered without.
    batch.begin_epoch(pipeline, false).await?;
    batch.conn().execute(sql, args![pipeline, target, said]).await?;
    Ok(())
}

/// The breaker of a target, and what is to be folded into it.
async fn find(
    conn: &Conn,
    (name, pipeline): (&PipelineName, i64),
    target: &str,
    as_of: u64,
) -> Result<BreakerRow, Fault> {
    let sql = "SELECT version, breaker FROM breaker WHERE pipeline = $1 AND target = $2";
    let found: Option<(u64, Breaker)> =
        conn.query_opt(sql, args![pipeline, target], |row| Ok((row.get(0)?, rows::json(row, 1)?))).await?;
    let sql = "SELECT id, said FROM breaker_said WHERE pipeline = $1 AND target = $2 ORDER BY id LIMIT $3";
    let said: Vec<(i64, Said)> =
        conn.query(sql, args![pipeline, target, PENDING_MAX], |row| Ok((row.get(0)?, rows::json(row, 1)?))).await?;
    let pending_to = said.last().map_or(0, |(id, _)| *id);
    let (version, breaker) = found.unzip();
    Ok(BreakerRow {
        pipeline: name.clone(),
        target: target.to_owned(),
        version,
        breaker,
        pending: said.into_iter().map(|(_, said)| said).collect(),
        pending_to,
        as_of: as_of.max(version.unwrap_or_default()),
    })
}
