//! Tries.

use redrive_core::ids::TryId;

use super::{Columns, json, json_opt, time, time_opt};
use crate::contract::TryView;

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
