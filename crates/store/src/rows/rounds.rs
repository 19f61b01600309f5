//! Rounds.

use super::{Columns, parsed, time};
use crate::contract::RoundView;

pub(crate) fn round_view<R: Columns>(row: &R) -> Result<RoundView, R::Fault> {
    Ok(RoundView {
        pipeline: parsed(row, 0)?,
        round: parsed(row, 1)?,
        begun_at: time(row, 2)?,
        grown_at: time(row, 3)?,
        accepted: row.get(4)?,
        queued: row.get(5)?,
        leased: row.get(6)?,
        done: row.get(7)?,
        dead: row.get(8)?,
        discarded: row.get(9)?,
        forgotten: row.get(10)?,
    })
}
