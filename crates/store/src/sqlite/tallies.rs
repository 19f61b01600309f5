//! Writing what a transaction has to add to counters that many operations share.

use redrive_core::counts::Delta;
use redrive_core::failures::Reason;
use rusqlite::{CachedStatement, Connection, params};

use super::fault::Fault;
use super::{facets, good};
use crate::tallies::{KeyChange, ReplayCounts, Tallies};

/// Writes all of it.
pub(super) fn write(tallies: &Tallies, conn: &Connection) -> Result<(), Fault> {
    let statement = |sql: &str| -> Result<CachedStatement<'_>, Fault> { Ok(conn.prepare_cached(sql)?) };
    let mut upsert = statement(
        "INSERT INTO minutely (pipeline, minute, event, reason, count) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET count = count + excluded.count",
    )?;
    for ((pipeline, minute, Delta { event, reason }), count) in &tallies.minutes {
        upsert.execute(params![pipeline, minute, event.as_str(), reason.map_or("", Reason::as_str), count])?;
    }
    let mut upsert = statement(
        "INSERT INTO traffic (pipeline, hour, target, proxy, reason, count, ended) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT DO UPDATE SET count = count + excluded.count, ended = ended + excluded.ended",
    )?;
    for ((pipeline, hour, target, proxy, reason), (count, ended)) in &tallies.traffic {
        upsert.execute(params![pipeline, hour, target, proxy, reason.map_or("", Reason::as_str), count, ended])?;
    }
    write_fields(tallies, conn)?;
    write_causes(tallies, conn)?;
    facets::write(tallies, conn)?;
    good::write(tallies, conn)?;
    write_replays(tallies, conn)
}

fn write_fields(tallies: &Tallies, conn: &Connection) -> Result<(), Fault> {
    let mut upsert = conn.prepare_cached(
        "INSERT INTO coverage (pipeline, version, hour, field, found, missing) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT DO UPDATE SET found = found + excluded.found, missing = missing + excluded.missing",
    )?;
    for ((pipeline, version, hour, field), (found, missing)) in &tallies.coverage {
        upsert.execute(params![pipeline, version, hour, field, found, missing])?;
    }
    let mut upsert = conn.prepare_cached(
        // What a job is taken out of may be forgotten by now: no count is below zero.
        "INSERT INTO tracked (pipeline, field, value, ok, failed, last_at)
         VALUES (?1, ?2, ?3, max(?4, 0), max(?5, 0), ?6)
         ON CONFLICT DO UPDATE SET ok = max(ok + ?4, 0), failed = max(failed + ?5, 0),
                                   last_at = max(last_at, excluded.last_at)",
    )?;
    for ((pipeline, field, value), (ok, failed, last)) in &tallies.tracked {
        upsert.execute(params![pipeline, field, value, ok, failed, last])?;
    }
    Ok(())
}

fn write_causes(tallies: &Tallies, conn: &Connection) -> Result<(), Fault> {
    let mut update = conn.prepare_cached(
        "UPDATE cause_key SET total = total + ?2, dead = dead + ?3, recovered = recovered + ?4,
                              discarded = discarded + ?5, refailed = refailed + ?8,
                              first_seen = ifnull(iif(total + refailed = 0, ?6, min(first_seen, ?6)), first_seen),
                              last_seen = ifnull(iif(total + refailed = 0, ?7, max(last_seen, ?7)), last_seen)
         WHERE id = ?1",
    )?;
    for (key, change) in &tallies.keys {
        let KeyChange { total, refailed, dead, recovered, discarded, seen } = change;
        let (first, last) = seen.map(|(first, last)| (first.as_millis(), last.as_millis())).unzip();
        update.execute(params![key, total, dead, recovered, discarded, first, last, refailed])?;
    }
    let mut upsert = conn.prepare_cached(
        "INSERT INTO cause_hour (key, hour, count, imported) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET count = count + excluded.count, imported = imported + excluded.imported",
    )?;
    for ((key, hour), (count, imported)) in &tallies.key_hours {
        upsert.execute(params![key, hour, count, imported])?;
    }
    let mut upsert = conn.prepare_cached(
        "INSERT INTO cause_target (key, target, count, last_seen) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET count = count + excluded.count, last_seen = max(last_seen, excluded.last_seen)",
    )?;
    for ((key, target), (count, last)) in &tallies.key_targets {
        upsert.execute(params![key, target, count, last])?;
    }
    Ok(())
}

fn write_replays(tallies: &Tallies, conn: &Connection) -> Result<(), Fault> {
    let mut update = conn.prepare_cached(
        "UPDATE replay SET running = running - ?2, recovered = recovered + ?3, failed = failed + ?4,
                same_cause = same_cause + ?5, gone = gone + ?6, step_settled = step_settled + ?7,
                step_failed = step_failed + ?4, moved_at = max(moved_at, ?8)
         WHERE id = ?1",
    )?;
    for (replay, change) in &tallies.replays {
        let ReplayCounts { recovered, failed, same_cause, gone, processed, ended_at } = change;
        let ended = recovered + failed + gone;
        let settled = ended - processed;
        update.execute(params![replay, ended, recovered, failed, same_cause, gone, settled, ended_at])?;
    }
    Ok(())
}
