//! Payloads.

use redrive_core::payloads::PayloadHash;

use super::{Columns, json_opt, parsed, time};
use crate::contract::{PayloadAt, PayloadView};

/// The columns of [`payload_at`].
pub(crate) const PAYLOAD_AT: &str = "place, spooled_on, unreadable";

pub(crate) fn payload_at<R: Columns>(row: &R) -> Result<PayloadAt, R::Fault> {
    Ok(PayloadAt { place: parsed(row, 0)?, spooled_on: row.get(1)?, unreadable: json_opt(row, 2)? })
}

pub(crate) fn payload_view<R: Columns>(row: &R) -> Result<PayloadView, R::Fault> {
    Ok(PayloadView {
        hash: PayloadHash::from_bytes(row.get(0)?),
        place: parsed(row, 1)?,
        size_bytes: row.get(2)?,
        stored_bytes: row.get(3)?,
        created_at: time(row, 4)?,
        uses: row.get(5)?,
        spooled_on: row.get(6)?,
        unreadable: json_opt(row, 7)?,
    })
}
