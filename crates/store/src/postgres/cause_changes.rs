//! What people do to causes: what a change is decided by, and writing what was decided.

use redrive_core::actors::Actor;
use redrive_core::causes::{CauseDeed, CauseEdit, CauseFacts, CauseId, CauseRule, CauseStep, KeyFacts, Likeness, Said};
use redrive_core::time::Timestamp;
use serde_json::{Value, json};

use super::batch::Batch;
use super::causes::find;
use super::fault::Fault;
use super::sql::{Conn, args};
use super::{activity, cause_rules, rows};
use crate::contract::{CauseChanged, ChangeCause, FindCause};

/// A cause as it is now.
pub(super) async fn facts(conn: &Conn, params: &FindCause) -> Result<CauseFacts, Fault> {
    let (row, _) = find(conn, &params.id).await?;
    let keys = keys(conn, row, params.like.as_ref()).await?;
    let sql = "SELECT c.name, c.version, p.name, c.owner, c.resolved_at, c.mute, coalesce(max(k.last_seen), 0),
                      coalesce(sum(k.dead), 0)::bigint
               FROM cause c JOIN pipeline p ON p.id = c.pipeline LEFT JOIN cause_key k ON k.cause = c.id WHERE c.id = $1
               GROUP BY c.id, p.name";
    let facts = conn.query_one(sql, args![row], |row| {
        Ok(CauseFacts {
            id: rows::parsed(row, 0)?,
            version: row.get(1)?,
            pipeline: rows::parsed(row, 2)?,
            said: Said { owner: row.get(3)?, resolved_at: rows::time_opt(row, 4)?, mute: rows::json_opt(row, 5)? },
            last_seen: rows::time(row, 6)?,
            dead: row.get(7)?,
            keys,
        })
    });
    facts.await
}

async fn keys(conn: &Conn, cause: i64, like: Option<&Likeness>) -> Result<Vec<KeyFacts>, Fault> {
    let sql = "SELECT k.key, CASE WHEN o.merged_into = k.cause THEN o.name END, k.retired,
                      $2 AND EXISTS (SELECT 1 FROM dead d WHERE d.cause_key = k.id
                                     AND (d.target = $3 OR strpos(lower(d.message), lower($4::text COLLATE \"C\")) > 0))
               FROM cause_key k LEFT JOIN cause o ON o.id = k.origin WHERE k.cause = $1 ORDER BY k.id";
    let (target, text) = columns(like);
    let keys = conn.query(sql, args![cause, like.is_some(), target, text], |row| {
        Ok(KeyFacts { key: row.get(0)?, origin: rows::parsed_opt(row, 1)?, retired: row.get(2)?, fits: row.get(3)? })
    });
    keys.await
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
pub(super) async fn change(batch: &mut Batch, params: &ChangeCause) -> Result<CauseChanged, Fault> {
    let ChangeCause { edit, by, now } = params;
    if let Some(refused) = refused(batch, edit).await? {
        return Ok(refused);
    }
    for (cause, _) in &edit.was {
        batch.conn().execute("UPDATE cause SET version = version + 1 WHERE name = $1", args![cause.as_str()]).await?;
    }
    if edit.rules.is_some() {
        batch.conn().execute("UPDATE cause_rules SET version = version + 1", args![]).await?;
    }
    for step in &edit.steps {
        write(batch, step, by, *now).await?;
    }
    if let Some(CauseDeed { verb, cause, pipeline, note }) = &edit.deed {
        let (object, detail) = (format!("cause {cause}"), json!({"pipelines": [pipeline], "note": note}));
        activity::note(batch, by, (verb, &object), &detail, *now).await?;
    }
    Ok(CauseChanged::Applied)
}

/// Why nothing may be written.
async fn refused(batch: &Batch, edit: &CauseEdit) -> Result<Option<CauseChanged>, Fault> {
    for (cause, version) in &edit.was {
        let sql = "SELECT 1 FROM cause WHERE name = $1 AND version = $2 AND merged_into IS NULL";
        if !batch.conn().exists(sql, args![cause.as_str(), version]).await? {
            return Ok(Some(CauseChanged::Stale));
        }
    }
    if let Some(rules) = edit.rules
        && cause_rules::version(batch.conn()).await? != rules
    {
        return Ok(Some(CauseChanged::Stale));
    }
    for step in &edit.steps {
        if let CauseStep::Make(cause, _) = step
            && batch.conn().exists("SELECT 1 FROM cause WHERE name = $1", args![cause.as_str()]).await?
        {
            return Ok(Some(CauseChanged::NameTaken));
        }
    }
    Ok(None)
}

async fn write(batch: &Batch, step: &CauseStep, by: &Actor, now: Timestamp) -> Result<(), Fault> {
    let conn = batch.conn();
    match step {
        CauseStep::Say(cause, said) => {
            let mute = said.mute.as_ref().map(serde_json::to_string).transpose()?;
            let sql = "UPDATE cause SET owner = $2, resolved_at = $3, mute = $4 WHERE name = $1";
            conn.execute(sql, args![cause.as_str(), said.owner, said.resolved_at, mute]).await?;
        }
        CauseStep::Make(cause, pipeline) => {
            let sql = "INSERT INTO cause (name, pipeline) SELECT $1, id FROM pipeline WHERE name = $2";
            conn.execute(sql, args![cause.as_str(), pipeline.as_str()]).await?;
        }
        CauseStep::Join(cause, None) => {
            conn.execute("UPDATE cause SET merged_into = NULL WHERE name = $1", args![cause.as_str()]).await?;
        }
        CauseStep::Join(cause, Some(into)) => {
            let (cause, into) = (row_of(conn, cause).await?, row_of(conn, into).await?);
            let sql = "UPDATE cause SET merged_into = $2 WHERE id = $1 OR merged_into = $1";
            conn.execute(sql, args![cause, into]).await?;
        }
        CauseStep::Give(keys, cause) => {
            let sql = "UPDATE cause_key SET cause = $1 WHERE key = ANY($2)";
            conn.execute(sql, args![row_of(conn, cause).await?, keys]).await?;
        }
        CauseStep::Rule(rule, cause) => add_rule(conn, rule, row_of(conn, cause).await?).await?,
        CauseStep::Unrule(rule) => remove_rule(conn, rule).await?,
        CauseStep::Note(cause, text) => {
            let sql = "INSERT INTO cause_note (cause, at, actor, via, text) VALUES ($1, $2, $3, $4, $5)";
            conn.execute(sql, args![row_of(conn, cause).await?, now, by.name, by.via.as_str(), text]).await?;
        }
    }
    Ok(())
}

async fn row_of(conn: &Conn, cause: &CauseId) -> Result<i64, Fault> {
    conn.query_one("SELECT id FROM cause WHERE name = $1", args![cause.as_str()], |row| row.get(0)).await
}

/// Makes the part's key, or has it found again, and the rule that leads to it. The letters of both are looked through.
async fn add_rule(conn: &Conn, rule: &CauseRule, cause: i64) -> Result<(), Fault> {
    let label = rule.like.label();
    let sql = "SELECT parts FROM cause_key WHERE key = $1";
    let parts: Option<Vec<Value>> = conn.query_opt(sql, args![rule.key], |row| rows::json(row, 0)).await?;
    let mut parts = parts.unwrap_or_default();
    parts.push(json!({"name": "split", "value": label}));
    let sql = "INSERT INTO cause_key (key, cause, origin, parent, template, reason, code, status, parts, sample, first_seen,
                                      last_seen)
               SELECT $2, $3, $3, id, template || ' [' || $5 || ']', reason, code, status, $4, sample, first_seen, first_seen
               FROM cause_key WHERE key = $1
               ON CONFLICT (key) DO UPDATE SET cause = excluded.cause, retired = false";
    conn.execute(sql, args![rule.key, rule.into, cause, serde_json::to_string(&parts)?, label]).await?;
    let (target, text) = columns(Some(&rule.like));
    let sql = "INSERT INTO cause_rule (key, target, text, into_key)
               SELECT k.id, $3, $4, i.id FROM cause_key k, cause_key i WHERE k.key = $1 AND i.key = $2";
    conn.execute(sql, args![rule.key, rule.into, target, text]).await?;
    look_through(conn, rule).await
}

/// Takes a rule back: no failure finds its part any more.
async fn remove_rule(conn: &Conn, rule: &CauseRule) -> Result<(), Fault> {
    let sql = "DELETE FROM cause_rule WHERE key = (SELECT id FROM cause_key WHERE key = $1)
               AND into_key = (SELECT id FROM cause_key WHERE key = $2)";
    conn.execute(sql, args![rule.key, rule.into]).await?;
    conn.execute("UPDATE cause_key SET retired = true WHERE key = $1", args![rule.into]).await?;
    look_through(conn, rule).await
}

/// Has the letters of both keys of a rule looked through: they may belong to the other.
async fn look_through(conn: &Conn, rule: &CauseRule) -> Result<(), Fault> {
    let sql = "UPDATE cause_key SET rules = (SELECT version FROM cause_rules), resolving = '' WHERE key IN ($1, $2)";
    conn.execute(sql, args![rule.key, rule.into]).await?;
    Ok(())
}
