//! The audit, in one view of the database.

use super::fault::Fault;
use super::ledger::ledgers;
use super::sql::{Conn, args};
use crate::audit::{COUNT, Tables, contradictions, counted, note};
use crate::contract::{Audit, AuditedPipeline};

const TABLES: Tables = Tables {
    dead_counts: "dead_sum",
    saved_counts: "cause_saved_sum",
    last_number: "(SELECT last_value FROM job_number)",
};

pub(super) async fn audit(conn: &Conn, (): &()) -> Result<Audit, Fault> {
    let mut audit = Audit::default();
    for (id, pipeline, ledger) in ledgers(conn, "TRUE").await? {
        let counted = conn.query_one(COUNT, args![id], |row| counted(row, ledger)).await?;
        audit.add(AuditedPipeline { pipeline, ledger, counted });
    }
    audit.pipelines.sort_by(|a, b| a.pipeline.cmp(&b.pipeline));
    for (meaning, sql) in contradictions(&TABLES) {
        note(&mut audit, meaning, conn.query_one(&sql, args![], |row| row.get(0)).await?);
    }
    Ok(audit)
}
