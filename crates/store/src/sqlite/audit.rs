//! The audit, in one view of the file, and what is wrong with the file itself.

use rusqlite::Connection;

use super::fault::Fault;
use super::ledger::ledgers;
use crate::audit::{COUNT, Tables, contradictions, counted, note};
use crate::contract::{Audit, AuditedPipeline};

const TABLES: Tables = Tables {
    dead_counts: "dead_count",
    saved_counts: "cause_saved",
    last_number: "(SELECT value FROM counter WHERE name = 'number')",
};

pub(super) fn audit(conn: &Connection) -> Result<Audit, Fault> {
    let mut audit = Audit::default();
    for (id, pipeline, ledger) in ledgers(conn, "TRUE")? {
        let counted = conn.query_row(COUNT, [id], |row| counted(row, ledger))?;
        audit.add(AuditedPipeline { pipeline, ledger, counted });
    }
    audit.pipelines.sort_by(|a, b| a.pipeline.cmp(&b.pipeline));
    for (meaning, sql) in contradictions(&TABLES) {
        note(&mut audit, meaning, conn.query_row(&sql, [], |row| row.get(0))?);
    }
    Ok(audit)
}

/// What is wrong with the file itself. Read apart from the counting, which should not be long.
pub(super) fn damage(conn: &Connection) -> Result<Option<String>, Fault> {
    let check: String = conn.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    Ok((check != "ok").then(|| format!("the database is damaged: {check}")))
}
