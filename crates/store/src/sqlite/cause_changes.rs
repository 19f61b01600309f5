//! What people do to causes: owner, notes, mute, resolve, merge and split. Each leaves a note of itself.

use redrive_core::causes::CauseId;
use redrive_core::time::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::batch::Batch;
use super::cause_keys::make_cause;
use super::causes::find;
use super::fault::Fault;
use super::rows::{self, RowResult};
use crate::contract::{CauseChange, ChangeCause, SplitBy};
use crate::error::StoreError;

pub(super) fn change(batch: &mut Batch<'_>, params: &ChangeCause) -> Result<CauseId, Fault> {
    batch.settle_tallies()?;
    let (cause, id) = find(batch.connection(), &params.id)?;
    let said = match &params.change {
        CauseChange::Assign(owner) => {
            batch.statement("UPDATE cause SET owner = ?2 WHERE id = ?1")?.execute(params![cause, owner])?;
            owner.as_ref().map_or_else(|| "assigned to nobody".to_owned(), |owner| format!("assigned to {owner}"))
        }
        CauseChange::Note(text) => text.clone(),
        CauseChange::Mute(mute) => {
            let text = serde_json::to_string(mute)?;
            batch.statement("UPDATE cause SET mute = ?2 WHERE id = ?1")?.execute(params![cause, text])?;
            let until = mute.until.map(|until| format!(" until {until}")).unwrap_or_default();
            let rate = mute.per_hour.map(|rate| format!(" until it kills {rate} jobs an hour")).unwrap_or_default();
            format!("muted{until}{rate}")
        }
        CauseChange::Unmute => {
            batch.statement("UPDATE cause SET mute = NULL WHERE id = ?1")?.execute([cause])?;
            "no longer muted".to_owned()
        }
        CauseChange::Resolve(why) => {
            resolve(batch, cause, params.now)?;
            batch.statement("UPDATE cause SET mute = NULL WHERE id = ?1")?.execute([cause])?;
            why.as_ref().map_or_else(|| "resolved".to_owned(), |why| format!("resolved: {why}"))
        }
        CauseChange::Reopen => {
            let mut update =
                batch.statement("UPDATE cause SET resolved_at = NULL, regressed_at = NULL WHERE id = ?1")?;
            update.execute([cause])?;
            "reopened".to_owned()
        }
        CauseChange::MergeInto(into) => return merge(batch, (cause, &id), into, params),
        CauseChange::Split(by) => return split(batch, (cause, &id), by, params),
    };
    note(batch, cause, params, &said)?;
    Ok(id)
}

/// Notes that a cause is over.
pub(super) fn resolve(batch: &Batch<'_>, cause: i64, now: Timestamp) -> Result<(), Fault> {
    let mut update = batch.statement("UPDATE cause SET resolved_at = ?2, regressed_at = NULL WHERE id = ?1")?;
    update.execute(params![cause, now.as_millis()])?;
    Ok(())
}

fn note(batch: &Batch<'_>, cause: i64, params: &ChangeCause, text: &str) -> Result<(), Fault> {
    add_note(batch, cause, params.now, &params.actor, text)
}

/// Writes down what was done to a cause.
pub(super) fn add_note(batch: &Batch<'_>, cause: i64, now: Timestamp, actor: &str, text: &str) -> Result<(), Fault> {
    let mut insert = batch.statement("INSERT INTO cause_note (cause, at, actor, text) VALUES (?1, ?2, ?3, ?4)")?;
    insert.execute(params![cause, now.as_millis(), actor, text])?;
    Ok(())
}

fn merge(
    batch: &Batch<'_>,
    (cause, id): (i64, &CauseId),
    into: &CauseId,
    params: &ChangeCause,
) -> Result<CauseId, Fault> {
    let (target, target_id) = find(batch.connection(), into)?;
    if cause == target || pipeline_of(batch, cause)? != pipeline_of(batch, target)? {
        let why = if cause == target { "it is the same cause" } else { "they belong to different pipelines" };
        return Err(StoreError::CannotMerge { from: id.to_string(), into: target_id.to_string(), why }.into());
    }
    batch.statement("UPDATE cause_key SET cause = ?2 WHERE cause = ?1")?.execute([cause, target])?;
    // What is not over does not become so by its name.
    batch
        .statement(
            "UPDATE cause SET resolved_at = NULL WHERE id = ?2 AND (SELECT resolved_at FROM cause WHERE id = ?1) IS NULL",
        )?
        .execute([cause, target])?;
    batch.statement("UPDATE cause SET merged_into = ?2 WHERE id = ?1 OR merged_into = ?1")?.execute([cause, target])?;
    note(batch, target, params, &format!("{id} merged into this one"))?;
    Ok(target_id)
}

fn split(
    batch: &Batch<'_>,
    (cause, id): (i64, &CauseId),
    by: &SplitBy,
    params: &ChangeCause,
) -> Result<CauseId, Fault> {
    let (what, split_cause) = match by {
        SplitBy::Key(key) => (format!("key {key}"), split_key(batch, (cause, id), key)?),
        SplitBy::Target(target) => {
            (format!("target {target}"), split_letters(batch, (cause, id), Some(target), None, params.now)?)
        }
        SplitBy::Text(text) => (format!("{text:?}"), split_letters(batch, (cause, id), None, Some(text), params.now)?),
    };
    let name: CauseId = batch
        .statement("SELECT name FROM cause WHERE id = ?1")?
        .query_row([split_cause], |row| rows::parsed(row, 0))?;
    note(batch, cause, params, &format!("{name} split off: {what}"))?;
    note(batch, split_cause, params, &format!("split off from {id}: {what}"))?;
    Ok(name)
}

/// A key becomes a cause of its own: a merge taken back.
fn split_key(batch: &Batch<'_>, (cause, id): (i64, &CauseId), key: &str) -> Result<i64, Fault> {
    let refuse = |why| StoreError::CannotSplit { cause: id.to_string(), why };
    let mut select = batch.statement("SELECT id, origin FROM cause_key WHERE cause = ?1 AND key = ?2")?;
    let found =
        select.query_row(params![cause, key], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).optional()?;
    let (key_row, origin) = found.ok_or_else(|| refuse("it has no such key: `redrive cause show` lists them"))?;
    let keys: i64 =
        batch.statement("SELECT count(*) FROM cause_key WHERE cause = ?1")?.query_row([cause], |row| row.get(0))?;
    if keys < 2 {
        return Err(refuse("it has one key only: split it by --target or --text").into());
    }
    // The cause that the key was made for is there again, with all that was said about it.
    let revive = "UPDATE cause SET merged_into = NULL WHERE id = ?1 AND merged_into = ?2";
    let new = match batch.statement(revive)?.execute([origin, cause])? {
        0 => make_cause(batch, pipeline_of(batch, cause)?, key)?,
        _ => origin,
    };
    batch.statement("UPDATE cause_key SET cause = ?2 WHERE id = ?1")?.execute([key_row, new])?;
    Ok(new)
}

fn pipeline_of(batch: &Batch<'_>, cause: i64) -> Result<i64, Fault> {
    Ok(batch.statement("SELECT pipeline FROM cause WHERE id = ?1")?.query_row([cause], |row| row.get(0))?)
}

/// Part of each key becomes a key of a new cause: the letters that are there move, and those to come follow.
fn split_letters(
    batch: &Batch<'_>,
    (cause, id): (i64, &CauseId),
    target: Option<&str>,
    text: Option<&str>,
    now: Timestamp,
) -> Result<i64, Fault> {
    let mut select = batch.statement("SELECT id, key FROM cause_key WHERE cause = ?1")?;
    let rows = select.query_map([cause], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let keys = rows.collect::<RowResult<Vec<(i64, String)>>>()?;
    let by = target.map_or_else(|| format!("text={}", text.unwrap_or_default()), |target| format!("target={target}"));
    let mut taken = batch.statement("SELECT 1 FROM cause_key WHERE key = ?1")?;
    let mut whole = Vec::new();
    for (key, text_key) in keys {
        let part = format!("{text_key}/{by}");
        if !taken.exists([&part])? {
            whole.push((key, part));
        }
    }
    let refuse = |why| StoreError::CannotSplit { cause: id.to_string(), why };
    let Some((_, first)) = whole.first() else { return Err(refuse("that was split off already").into()) };
    let mut fits = batch.statement(
        "SELECT 1 FROM dead WHERE cause_key = ?1 AND (target = ?2 OR instr(lower(message), lower(?3)) > 0)",
    )?;
    let fitting =
        whole.iter().map(|(key, _)| fits.exists(params![key, target, text])).collect::<RowResult<Vec<_>>>()?;
    if !fitting.contains(&true) {
        return Err(refuse("none of its letters is like that").into());
    }
    let new = make_cause(batch, pipeline_of(batch, cause)?, first)?;
    for (key, part) in whole {
        let into = part_key(batch, key, (&part, &by), new, now)?;
        move_letters(batch, key, into, (target, text))?;
    }
    Ok(new)
}

/// A key like another, for part of what that one recognises.
fn part_key(
    batch: &Batch<'_>,
    key: i64,
    (new_key, by): (&str, &str),
    cause: i64,
    now: Timestamp,
) -> Result<i64, Fault> {
    let part = serde_json::json!({"name": "split", "value": by});
    batch
        .statement(
            "INSERT INTO cause_key (key, cause, origin, template, reason, code, status, parts, sample, first_seen, last_seen)
             SELECT ?2, ?3, ?3, template || ' [' || ?6 || ']', reason, code, status, json_insert(parts, '$[#]', json(?4)),
                    sample, ?5, ?5
             FROM cause_key WHERE id = ?1",
        )?
        .execute(params![key, new_key, cause, part.to_string(), now.as_millis(), by])?;
    Ok(batch.connection().last_insert_rowid())
}

/// Moves the letters of a key that fit from one key to another, now and in the future. What is counted with them is what
/// the letters that are there make.
fn move_letters(
    batch: &Batch<'_>,
    key: i64,
    into: i64,
    (target, text): (Option<&str>, Option<&str>),
) -> Result<(), Fault> {
    batch
        .statement("INSERT INTO cause_rule (key, target, text, into_key) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![key, target, text, into])?;
    batch.statement("UPDATE cause_rules SET version = version + 1")?.execute([])?;
    batch
        .statement("UPDATE cause_key SET rules = (SELECT version FROM cause_rules) WHERE id IN (?1, ?2)")?
        .execute([key, into])?;
    let moved = batch
        .statement(
            "UPDATE dead SET cause_key = ?4
             WHERE cause_key = ?1 AND (target = ?2 OR instr(lower(message), lower(?3)) > 0)",
        )?
        .execute(params![key, target, text, into])?;
    for sql in [
        "INSERT INTO cause_hour (key, hour, count)
         SELECT ?2, died_at / 3600000, count(*) FROM dead WHERE cause_key = ?2 AND ?1 = ?1 GROUP BY 2",
        "INSERT INTO cause_target (key, target, count, last_seen)
         SELECT ?2, target, count(*), max(died_at) FROM dead WHERE cause_key = ?2 AND target IS NOT NULL AND ?1 = ?1
         GROUP BY 2",
        "UPDATE cause_hour SET count = cause_hour.count - n.count FROM cause_hour n
         WHERE cause_hour.key = ?1 AND n.key = ?2 AND n.hour = cause_hour.hour",
        "UPDATE cause_target SET count = cause_target.count - n.count FROM cause_target n
         WHERE cause_target.key = ?1 AND n.key = ?2 AND n.target = cause_target.target",
        "DELETE FROM cause_target WHERE key = ?1 AND count <= 0 AND ?2 = ?2",
        "UPDATE cause_key SET first_seen = ifnull((SELECT min(died_at) FROM dead WHERE cause_key = ?2), first_seen),
                              last_seen = ifnull((SELECT max(died_at) FROM dead WHERE cause_key = ?2), last_seen)
         WHERE id = ?2 AND ?1 = ?1",
    ] {
        batch.statement(sql)?.execute([key, into])?;
    }
    let moved = i64::try_from(moved).unwrap_or(0);
    for (key, change) in [(key, -moved), (into, moved)] {
        let mut update = batch.statement("UPDATE cause_key SET total = total + ?2, dead = dead + ?2 WHERE id = ?1")?;
        update.execute([key, change])?;
    }
    Ok(())
}
