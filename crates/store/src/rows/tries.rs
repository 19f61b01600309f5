//! Tries.

use redrive_core::ids::TryId;

use super::{Columns, job_id, json, json_opt, parsed_opt, time, time_opt};
use crate::contract::{TriedCount, TriedLetter, TryView};

pub(crate) fn try_view<R: Columns>(row: &R) -> Result<TryView, R::Fault> {
    Ok(TryView {
        id: row.get(0).map(TryId::from_bytes)?,
        actor: row.get(1)?,
        selection: json(row, 2)?,
        edits: json(row, 3)?,
        tried_with: json(row, 4)?,
        created_at: time(row, 5)?,
        finished_at: time_opt(row, 6)?,
        outcome: json_opt(row, 7)?.unwrap_or_default(),
    })
}

/// What is read of a letter that was tried.
pub(crate) const TRIED_COLUMNS: &str = "job, attempts, recovered, key, message, details";

pub(crate) fn tried_letter<R: Columns>(row: &R) -> Result<TriedLetter, R::Fault> {
    Ok(TriedLetter {
        id: job_id(row, 0)?,
        attempts: row.get(1)?,
        recovered: row.get(2)?,
        key: row.get(3)?,
        message: row.get(4)?,
        details: json_opt(row, 5)?.unwrap_or_default(),
    })
}

/// The letters of a group: its pipeline and name, then how many wait, are leased, were tried, and would recover.
pub(crate) fn tried_count<R: Columns>(row: &R) -> Result<TriedCount, R::Fault> {
    Ok(TriedCount {
        pipeline: parsed_opt(row, 0)?,
        group: row.get(1)?,
        waiting: row.get(2)?,
        leased: row.get(3)?,
        tried: row.get(4)?,
        recovered: row.get(5)?,
    })
}
