//! What comes over, piece by piece: each is written together with where the copy goes on, so that it is written once.

use redrive_core::ids::CopyId;
use redrive_core::payloads::StoreId;
use redrive_store::contract::{CopyCursor, PARTS, Part, ReadPart, Row, WritePart};

use super::payloads::{Bringing, VAULT_PART};
use super::{CopiedPayloads, CopyProgress, Side};
use crate::error::Error;

/// At most so many rows of a piece.
const ROWS_MAX: u32 = 2_000;

/// A piece ends when it has so many bytes.
const BYTES_MAX: usize = 4 << 20;

/// Payloads of a piece: few, so that little is brought twice.
const PAYLOADS_MAX: u32 = 200;

/// A copy under way.
pub(super) struct Copying<'a> {
    id: CopyId,
    from: &'a Side,
    to: &'a Side,
    /// Where it goes on.
    cursor: CopyCursor,
    bringing: Bringing<'a>,
    /// Rows that have come over, of how many.
    done: u64,
    total: u64,
}

impl<'a> Copying<'a> {
    /// Goes on where the target says.
    pub(super) async fn new(id: CopyId, from: &'a Side, to: &'a Side, allow_missing: bool) -> Result<Self, Error> {
        let cursor = to.redrive.store.copy_cursor().await?;
        let total = from.redrive.store.count_parts().await?.iter().sum();
        let done = to.redrive.store.count_parts().await?.iter().sum();
        let own: StoreId = to.redrive.store.store_ids().await?.own;
        let payloads = serde_json::from_value(cursor.noted.clone()).unwrap_or_default();
        let resumed = cursor.pieces > 0;
        let of_vault = from.count(VAULT_PART).await?;
        let bringing = Bringing::new((from, to), (own, of_vault), payloads, (allow_missing, resumed))?;
        Ok(Self { id, from, to, cursor, bringing, done, total })
    }

    /// What became of the payloads so far.
    pub(super) fn payloads(&self) -> CopiedPayloads {
        self.bringing.counted.clone()
    }

    /// Whether payloads stay in the vault of the source.
    pub(super) const fn payloads_stay(&self) -> bool {
        self.bringing.stay
    }

    /// Copies what is left.
    pub(super) async fn run(&mut self, shown: &mut (impl FnMut(CopyProgress) + Send)) -> Result<(), Error> {
        while let Some(part) = PARTS.get(self.cursor.parts) {
            shown(CopyProgress::At { part: part.label, done: self.done, total: self.total });
            self.copy_piece(part).await?;
        }
        Ok(())
    }

    async fn copy_piece(&mut self, part: &'static Part) -> Result<(), Error> {
        let rows_max = if part.name == VAULT_PART { PAYLOADS_MAX } else { ROWS_MAX };
        let after = self.cursor.after.clone();
        let read = ReadPart { part, after, rows_max, bytes_max: BYTES_MAX };
        let mut rows = self.from.redrive.store.read_part(read).await?;
        if part.name == VAULT_PART {
            self.bringing.bring(part, &mut rows).await?;
        }
        let last: Option<Row> = rows.last().map(|row| row[..part.key_columns()].to_vec());
        let next = CopyCursor {
            pieces: self.cursor.pieces + 1,
            parts: self.cursor.parts + usize::from(last.is_none()),
            after: last,
            noted: serde_json::to_value(&self.bringing.counted).unwrap_or_default(),
        };
        self.done += rows.len() as u64;
        let write = WritePart { id: self.id, part, rows, next: next.clone() };
        self.to.redrive.store.write_part(write).await?;
        self.cursor = next;
        Ok(())
    }
}
