//! Payloads.

use redrive_core::payloads::{PayloadHash, PayloadReads};

use super::{Columns, json_opt, parsed, time, time_opt};
use crate::contract::{PayloadAt, PayloadView};

/// The columns of [`payload_at`].
pub(crate) const PAYLOAD_AT: &str = "place, spooled_on, unreadable";

pub(crate) fn payload_at<R: Columns>(row: &R) -> Result<PayloadAt, R::Fault> {
    Ok(PayloadAt { place: parsed(row, 0)?, spooled_on: row.get(1)?, unreadable: json_opt(row, 2)? })
}

/// Counts reads of payloads: the columns of [`payload_reads`].
pub(crate) const PAYLOAD_READS: &str = "SELECT found, missing, since, (SELECT count(*) FROM payload WHERE unreadable IS NOT NULL) FROM
    (SELECT CAST(coalesce(sum(found), 0) AS bigint) AS found, CAST(coalesce(sum(missing), 0) AS bigint) AS missing, min(since) AS since
     FROM payload_reads) r";

pub(crate) fn payload_reads<R: Columns>(row: &R) -> Result<PayloadReads, R::Fault> {
    Ok(PayloadReads { found: row.get(0)?, missing: row.get(1)?, since: time_opt(row, 2)?, unreadable: row.get(3)? })
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
