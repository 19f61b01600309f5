//! What people do to causes: what a change is decided by, and writing what was decided.

use redrive_core::actors::Actor;
use redrive_core::causes::{CauseDeed, CauseEdit, CauseFacts, CauseId, CauseRule, CauseStep, KeyFacts, Likeness, Said};
use redrive_core::time::Timestamp;
use rusqlite::{Connection, params};
use serde_json::json;

use super::activity;
use super::batch::Batch;
use super::cause_rules;
use super::causes::find;
use super::fault::Fault;
use super::rows::{self, RowResult};
use crate::contract::{CauseChanged, ChangeCause, FindCause};

/// A cause as it is now.
pub(super) fn facts(conn: &Connection, params: &FindCause) -> Result<CauseFacts, Fault> {
    let (row, _) = find(conn, &params.id)?;
    let mut select = conn.prepare_cached(
        "SELECT c.name, c.version, p.name, c.owner, c.resolved_at, c.mute, ifnull(max(k.last_seen), 0), ifnull(sum(k.dead), 0)
         FROM cause c JOIN pipeline p ON p.id = c.pipeline LEFT JOIN cause_key k ON k.cause = c.id WHERE c.id = ?1",
    )?;
    let keys = keys(conn, row, params.like.as_ref())?;
    Ok(select.query_row([row], |row| {
        Ok(CauseFacts {
            id: rows::parsed(row, 0)?,
            version: row.get(1)?,
            pipeline: rows::parsed(row, 2)?,
            said: Said { owner: row.get(3)?, resolved_at: rows::time_opt(row, 4)?, mute: rows::json_opt(row, 5)? },
            last_seen: rows::time(row, 6)?,
            dead: row.get(7)?,
            keys,
        })
    })?)
}

fn keys(conn: &Connection, cause: i64, like: Option<&Likeness>) -> Result<Vec<KeyFacts>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT k.key, iif(o.merged_into = k.cause, o.name, NULL), k.retired,
                ?2 AND EXISTS (SELECT 1 FROM dead d WHERE d.cause_key = k.id
                               AND (d.target = ?3 OR instr(lower(d.message), lower(?4)) > 0))
         FROM cause_key k LEFT JOIN cause o ON o.id = k.origin WHERE k.cause = ?1 ORDER BY k.id",
    )?;
    let (target, text) = columns(like);
    let rows = select.query_map(params![cause, like.is_some(), target, text], |row| {
        Ok(KeyFacts { key: row.get(0)?, origin: rows::parsed_opt(row, 1)?, retired: row.get(2)?, fits: row.get(3)? })
    })?;
    Ok(rows.collect::<RowResult<_>>()?)
}

/// What a likeness is in columns: a target, or a text.
fn columns(like: Option<&Likeness>) -> (Option<&str>, Option<&str>) {
    match like {
        Some(Likeness::Target(target)) => (Some(target), None),
        Some(Likeness::Text(text)) => (None, Some(text)),
        None => (None, None),
    }
}

/// Writes a change, if everything is still as it was when it was decided.
pub(super) fn change(batch: &mut Batch<'_>, params: &ChangeCause) -> Result<CauseChanged, Fault> {
    let ChangeCause { edit, by, now } = params;
    if let Some(refused) = refused(batch, edit)? {
        return Ok(refused);
    }
    for (cause, _) in &edit.was {
        let mut update = batch.statement("UPDATE cause SET version = version + 1 WHERE name = ?1")?;
        update.execute([cause.as_str()])?;
    }
    if edit.rules.is_some() {
        batch.statement("UPDATE cause_rules SET version = version + 1")?.execute([])?;
    }
    for step in &edit.steps {
        write(batch, step, by, *now)?;
    }
    if let Some(CauseDeed { verb, cause, pipeline, note }) = &edit.deed {
        let (object, detail) = (format!("cause {cause}"), json!({"pipelines": [pipeline], "note": note}));
        activity::note(batch, by, (verb, &object), &detail, *now)?;
    }
    Ok(CauseChanged::Applied)
}

/// Why nothing may be written.
fn refused(batch: &Batch<'_>, edit: &CauseEdit) -> Result<Option<CauseChanged>, Fault> {
    let mut same = batch.statement("SELECT 1 FROM cause WHERE name = ?1 AND version = ?2 AND merged_into IS NULL")?;
    for (cause, version) in &edit.was {
        if !same.exists(params![cause.as_str(), version])? {
            return Ok(Some(CauseChanged::Stale));
        }
    }
    if let Some(rules) = edit.rules
        && cause_rules::version(batch.connection())? != rules
    {
        return Ok(Some(CauseChanged::Stale));
    }
    let mut taken = batch.statement("SELECT 1 FROM cause WHERE name = ?1")?;
    for step in &edit.steps {
        if let CauseStep::Make(cause, _) = step
            && taken.exists([cause.as_str()])?
        {
            return Ok(Some(CauseChanged::NameTaken));
        }
    }
    Ok(None)
}

fn write(batch: &Batch<'_>, step: &CauseStep, by: &Actor, now: Timestamp) -> Result<(), Fault> {
    match step {
        CauseStep::Say(cause, said) => {
            let mute = said.mute.as_ref().map(serde_json::to_string).transpose()?;
            let mut update =
                batch.statement("UPDATE cause SET owner = ?2, resolved_at = ?3, mute = ?4 WHERE name = ?1")?;
            update.execute(params![cause.as_str(), said.owner, said.resolved_at.map(Timestamp::as_millis), mute])?;
        }
        CauseStep::Make(cause, pipeline) => {
            let mut insert =
                batch.statement("INSERT INTO cause (name, pipeline) SELECT ?1, id FROM pipeline WHERE name = ?2")?;
            insert.execute([cause.as_str(), pipeline.as_str()])?;
        }
        CauseStep::Join(cause, None) => {
            batch.statement("UPDATE cause SET merged_into = NULL WHERE name = ?1")?.execute([cause.as_str()])?;
        }
        CauseStep::Join(cause, Some(into)) => {
            let (cause, into) = (row_of(batch, cause)?, row_of(batch, into)?);
            let mut update = batch.statement("UPDATE cause SET merged_into = ?2 WHERE id = ?1 OR merged_into = ?1")?;
            update.execute([cause, into])?;
        }
        CauseStep::Give(keys, cause) => {
            let mut update =
                batch.statement("UPDATE cause_key SET cause = ?1 WHERE key IN (SELECT value FROM json_each(?2))")?;
            update.execute(params![row_of(batch, cause)?, serde_json::to_string(keys)?])?;
        }
        CauseStep::Rule(rule, cause) => add_rule(batch, rule, row_of(batch, cause)?)?,
        CauseStep::Unrule(rule) => remove_rule(batch, rule)?,
        CauseStep::Note(cause, text) => note(batch, row_of(batch, cause)?, (by, text), now)?,
    }
    Ok(())
}

fn row_of(batch: &Batch<'_>, cause: &CauseId) -> Result<i64, Fault> {
    let mut select = batch.statement("SELECT id FROM cause WHERE name = ?1")?;
    Ok(select.query_row([cause.as_str()], |row| row.get(0))?)
}

fn note(batch: &Batch<'_>, cause: i64, (by, text): (&Actor, &str), now: Timestamp) -> Result<(), Fault> {
    let mut insert =
        batch.statement("INSERT INTO cause_note (cause, at, actor, via, text) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    insert.execute(params![cause, now.as_millis(), by.name, by.via.as_str(), text])?;
    Ok(())
}

/// Makes the part's key, or has it found again, and the rule that leads to it. The letters of both are looked through.
fn add_rule(batch: &Batch<'_>, rule: &CauseRule, cause: i64) -> Result<(), Fault> {
    let label = rule.like.label();
    let part = serde_json::json!({"name": "split", "value": label});
    batch
        .statement(
            "INSERT INTO cause_key (key, cause, origin, parent, template, reason, code, status, parts, sample, first_seen,
                                    last_seen)
             SELECT ?2, ?3, ?3, id, template || ' [' || ?5 || ']', reason, code, status, json_insert(parts, '$[#]', json(?4)),
                    sample, first_seen, first_seen
             FROM cause_key WHERE key = ?1
             ON CONFLICT (key) DO UPDATE SET cause = excluded.cause, retired = 0",
        )?
        .execute(params![rule.key, rule.into, cause, part.to_string(), label])?;
    let (target, text) = columns(Some(&rule.like));
    batch
        .statement(
            "INSERT INTO cause_rule (key, target, text, into_key)
             SELECT k.id, ?3, ?4, i.id FROM cause_key k, cause_key i WHERE k.key = ?1 AND i.key = ?2",
        )?
        .execute(params![rule.key, rule.into, target, text])?;
    look_through(batch, rule)
}

/// Takes a rule back: no failure finds its part any more.
fn remove_rule(batch: &Batch<'_>, rule: &CauseRule) -> Result<(), Fault> {
    batch
        .statement(
            "DELETE FROM cause_rule WHERE key = (SELECT id FROM cause_key WHERE key = ?1)
             AND into_key = (SELECT id FROM cause_key WHERE key = ?2)",
        )?
        .execute(params![rule.key, rule.into])?;
    batch.statement("UPDATE cause_key SET retired = 1 WHERE key = ?1")?.execute([&rule.into])?;
    look_through(batch, rule)
}

/// Has the letters of both keys of a rule looked through: they may belong to the other.
fn look_through(batch: &Batch<'_>, rule: &CauseRule) -> Result<(), Fault> {
    let mut update = batch.statement(
        "UPDATE cause_key SET rules = (SELECT version FROM cause_rules), resolving = '' WHERE key IN (?1, ?2)",
    )?;
    update.execute(params![rule.key, rule.into])?;
    Ok(())
}
