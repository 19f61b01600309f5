//! Payloads.

use redrive_core::payloads::PayloadHash;

use super::{Columns, parsed, time};
use crate::contract::PayloadView;

pub(crate) fn payload_view<R: Columns>(row: &R) -> Result<PayloadView, R::Fault> {
    Ok(PayloadView {
        hash: PayloadHash::from_bytes(row.get(0)?),
        place: parsed(row, 1)?,
        size_bytes: row.get(2)?,
        stored_bytes: row.get(3)?,
        created_at: time(row, 4)?,
        uses: row.get(5)?,
        spooled_on: row.get(6)?,
    })
}
