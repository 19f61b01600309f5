//! Writing what a transaction has to add to counters that many operations share: one statement a table, its rows in the order of
//! their keys, so that no two processes wait for each other. None is waited for: they go with the commit. Traffic is only added to, and
//! folded by `tidying`.

use redrive_core::failures::Reason;

use super::fault::Fault;
use super::sql::{Conn, args};
use super::{facets, good};
use crate::tallies::{KeyChange, Tallies};

/// Columns of rows that are written at once.
macro_rules! columns {
    ($rows:expr; $($column:ident: $row:pat => $value:expr),* $(,)?) => {
        $(let $column: Vec<_> = $rows.iter().map(|$row| $value).collect();)*
    };
}

/// Writes all of it but the traffic.
pub(super) async fn write(tallies: &Tallies, conn: &Conn) -> Result<(), Fault> {
    write_minutes(tallies, conn).await?;
    write_coverage(tallies, conn).await?;
    write_tracked(tallies, conn).await?;
    write_keys(tallies, conn).await?;
    write_key_counts(tallies, conn).await?;
    facets::write(tallies, conn).await?;
    good::write(tallies, conn).await?;
    write_replays(tallies, conn).await
}

fn reason_text(reason: Option<Reason>) -> &'static str {
    reason.map_or("", Reason::as_str)
}

async fn write_minutes(tallies: &Tallies, conn: &Conn) -> Result<(), Fault> {
    if tallies.minutes.is_empty() {
        return Ok(());
    }
    columns!(tallies.minutes; pipelines: ((pipeline, _, _), _) => *pipeline, minutes: ((_, minute, _), _) => *minute,
             events: ((_, _, delta), _) => delta.event.as_str(), reasons: ((_, _, delta), _) => reason_text(delta.reason),
             counts: (_, count) => *count);
    conn.send(
        "INSERT INTO minutely (pipeline, minute, event, reason, count)
         SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[]) ORDER BY 1, 2, 3, 4
         ON CONFLICT (pipeline, minute, event, reason) DO UPDATE SET count = minutely.count + excluded.count",
        args![pipelines, minutes, events, reasons, counts],
    )
    .await?;
    Ok(())
}

/// Adds attempts, and what is counted of those who were done.
pub(super) async fn write_traffic(tallies: &Tallies, conn: &Conn) -> Result<(), Fault> {
    facets::write_done(tallies, conn).await?;
    if tallies.traffic.is_empty() {
        return Ok(());
    }
    columns!(tallies.traffic; pipelines: (way, _) => way.0, hours: (way, _) => way.1, targets: (way, _) => way.2.as_str(),
             proxies: (way, _) => way.3.as_str(), reasons: (way, _) => reason_text(way.4), counts: (_, n) => n.0,
             ended: (_, n) => n.1);
    conn.send(
        "INSERT INTO traffic_delta (pipeline, hour, target, proxy, reason, count, ended)
         SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[])",
        args![pipelines, hours, targets, proxies, reasons, counts, ended],
    )
    .await?;
    Ok(())
}

async fn write_coverage(tallies: &Tallies, conn: &Conn) -> Result<(), Fault> {
    if tallies.coverage.is_empty() {
        return Ok(());
    }
    columns!(tallies.coverage; pipelines: (of, _) => of.0, versions: (of, _) => of.1.as_str(), hours: (of, _) => of.2,
             fields: (of, _) => of.3.as_str(), found: (_, n) => n.0, missing: (_, n) => n.1);
    conn.send(
        "INSERT INTO coverage (pipeline, version, hour, field, found, missing)
         SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[]) ORDER BY 1, 2, 3, 4
         ON CONFLICT (pipeline, version, hour, field)
            DO UPDATE SET found = coverage.found + excluded.found, missing = coverage.missing + excluded.missing",
        args![pipelines, versions, hours, fields, found, missing],
    )
    .await?;
    Ok(())
}

/// What a job is taken out of may be forgotten by now: no count is below zero.
async fn write_tracked(tallies: &Tallies, conn: &Conn) -> Result<(), Fault> {
    let mut rows: Vec<_> = tallies.tracked.iter().collect();
    rows.sort();
    for ((pipeline, field, value), (ok, failed, last)) in rows {
        conn.send(
            "INSERT INTO tracked (pipeline, field, value, ok, failed, last_at)
             VALUES ($1, $2, $3, greatest($4::bigint, 0), greatest($5::bigint, 0), $6)
             ON CONFLICT (pipeline, field, value)
                DO UPDATE SET ok = greatest(tracked.ok + $4, 0), failed = greatest(tracked.failed + $5, 0),
                              last_at = greatest(tracked.last_at, excluded.last_at)",
            args![pipeline, field, value, ok, failed, last],
        )
        .await?;
    }
    Ok(())
}

async fn write_keys(tallies: &Tallies, conn: &Conn) -> Result<(), Fault> {
    if tallies.keys.is_empty() {
        return Ok(());
    }
    let first = |change: &KeyChange| change.seen.map(|(first, _)| first);
    let last = |change: &KeyChange| change.seen.map(|(_, last)| last);
    columns!(tallies.keys; keys: (key, _) => *key, totals: (_, n) => n.total, dead: (_, n) => n.dead,
             recovered: (_, n) => n.recovered, discarded: (_, n) => n.discarded, refailed: (_, n) => n.refailed,
             firsts: (_, n) => first(n), lasts: (_, n) => last(n));
    // Locked in their order, whatever order they are updated in.
    conn.send(
        "WITH locked AS MATERIALIZED (SELECT id FROM cause_key WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE)
         UPDATE cause_key k SET total = k.total + u.total, dead = k.dead + u.dead, recovered = k.recovered + u.recovered,
                discarded = k.discarded + u.discarded, refailed = k.refailed + u.refailed,
                first_seen = coalesce(CASE WHEN k.total + k.refailed = 0 OR u.first IS NULL THEN u.first
                                           ELSE least(k.first_seen, u.first) END, k.first_seen),
                last_seen = coalesce(CASE WHEN k.total + k.refailed = 0 OR u.last IS NULL THEN u.last
                                          ELSE greatest(k.last_seen, u.last) END, k.last_seen)
         FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
              AS u(id, total, dead, recovered, discarded, refailed, first, last)
         WHERE k.id = u.id AND k.id = ANY(ARRAY(SELECT id FROM locked))",
        args![keys, totals, dead, recovered, discarded, refailed, firsts, lasts],
    )
    .await?;
    Ok(())
}

async fn write_key_counts(tallies: &Tallies, conn: &Conn) -> Result<(), Fault> {
    if !tallies.key_hours.is_empty() {
        columns!(tallies.key_hours; keys: ((key, _), _) => *key, hours: ((_, hour), _) => *hour, counts: (_, n) => n.0,
                 imported: (_, n) => n.1);
        conn.send(
            "INSERT INTO cause_hour (key, hour, count, imported)
             SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) ORDER BY 1, 2
             ON CONFLICT (key, hour)
                DO UPDATE SET count = cause_hour.count + excluded.count, imported = cause_hour.imported + excluded.imported",
            args![keys, hours, counts, imported],
        )
        .await?;
    }
    if !tallies.key_targets.is_empty() {
        columns!(tallies.key_targets; keys: ((key, _), _) => *key, targets: ((_, target), _) => target.as_str(),
                 counts: (_, n) => n.0, lasts: (_, n) => n.1);
        conn.send(
            "INSERT INTO cause_target (key, target, count, last_seen)
             SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[]) ORDER BY 1, 2
             ON CONFLICT (key, target) DO UPDATE SET count = cause_target.count + excluded.count,
                                                     last_seen = greatest(cause_target.last_seen, excluded.last_seen)",
            args![keys, targets, counts, lasts],
        )
        .await?;
    }
    Ok(())
}

async fn write_replays(tallies: &Tallies, conn: &Conn) -> Result<(), Fault> {
    let mut replays: Vec<_> = tallies.replays.iter().collect();
    replays.sort_by_key(|(replay, _)| **replay);
    for (replay, n) in replays {
        let ended = n.recovered + n.failed + n.gone;
        conn.send(
            "UPDATE replay SET running = running - $2, recovered = recovered + $3, failed = failed + $4,
                    same_cause = same_cause + $5, gone = gone + $6, step_settled = step_settled + $7,
                    step_failed = step_failed + $4, moved_at = greatest(moved_at, $8)
             WHERE id = $1",
            args![replay, ended, n.recovered, n.failed, n.same_cause, n.gone, ended - n.processed, n.ended_at],
        )
        .await?;
    }
    Ok(())
}
