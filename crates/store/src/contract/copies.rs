//! Copies of a whole store: read and written table by table, as plain values, in pieces that are written once.
//!
//! While a store is copied it is marked, and whatever else would write to it is refused; so is a target that is not finished.
//! [`PARTS`] says which tables come over, and in which order.

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::copies::{Copies, CopyNote};
use redrive_core::ids::CopyId;
use redrive_core::payloads::StoreId;
use redrive_core::time::Timestamp;
use serde::{Deserialize, Serialize};

pub use crate::copies::{LEFT_OUT, PARTS, Part};
use crate::error::Result;

/// Copying all that a store has.
#[async_trait]
pub trait CopyStore {
    /// The copies that this store takes part in.
    async fn copies(&self) -> Result<Copies>;

    /// Marks this store as the source of a copy: from now on nothing else is written to it. Refused while anything is leased.
    async fn begin_copy_from(&self, note: CopyNote) -> Result<()>;

    /// Marks this store as the target of a copy: only what is copied is written to it until that is finished. Refused if it has
    /// anything of its own.
    async fn begin_copy_to(&self, note: CopyNote) -> Result<()>;

    /// The next rows of a part, in the order of its key.
    async fn read_part(&self, params: ReadPart) -> Result<Vec<Row>>;

    /// Where the copy that fills this store goes on.
    async fn copy_cursor(&self) -> Result<CopyCursor>;

    /// Writes rows of a part and where the copy goes on then, unless another was faster.
    async fn write_part(&self, params: WritePart) -> Result<()>;

    /// How many rows each part has, in the order of [`PARTS`].
    async fn count_parts(&self) -> Result<Vec<u64>>;

    /// What is in no row, and yet must not begin anew.
    async fn copy_counters(&self) -> Result<CopyCounters>;

    /// Takes these counters over, once all parts are written: no number is given twice.
    async fn take_counters(&self, params: TakeCounters) -> Result<()>;

    /// Takes the mark away from the source, whatever came of the copy. Nothing happens if it is not marked.
    async fn end_copy_from(&self, params: EndCopy) -> Result<()>;

    /// Says that all has come over: from now on the target is a store like any other.
    async fn end_copy_to(&self, params: EndCopy) -> Result<()>;
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cell {
    /// None.
    Null,
    /// A number, a time, or whether something holds.
    Int(i64),
    /// Text.
    Text(String),
    /// Bytes: an id, a hash.
    Bytes(Vec<u8>),
}

impl Cell {
    /// How much it takes, about, in bytes.
    pub const fn size_bytes(&self) -> usize {
        match self {
            Self::Null | Self::Int(_) => 8,
            Self::Text(text) => text.len() + 8,
            Self::Bytes(bytes) => bytes.len() + 8,
        }
    }
}

/// A row, in the order of its part's columns. The key is at the beginning.
pub type Row = Vec<Cell>;

/// Asks for rows of a part.
#[derive(Clone, Debug)]
pub struct ReadPart {
    /// Which part.
    pub part: &'static Part,
    /// Those after this key; from the beginning if there is none.
    pub after: Option<Row>,
    /// At most so many.
    pub rows_max: u32,
    /// No more once they have so many bytes.
    pub bytes_max: usize,
}

/// Where a copy goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyCursor {
    /// How many pieces were written: whoever writes the next one has seen the last.
    pub pieces: u64,
    /// How many parts are done.
    pub parts: usize,
    /// After this key of the part that is next; from its beginning if there is none.
    pub after: Option<Row>,
    /// What whoever copies wants to know again.
    pub noted: serde_json::Value,
}

/// Writes rows of a part.
#[derive(Clone, Debug)]
pub struct WritePart {
    /// The copy.
    pub id: CopyId,
    /// Which part.
    pub part: &'static Part,
    /// The rows.
    pub rows: Vec<Row>,
    /// Where the copy goes on then; its pieces are one more than those that were there.
    pub next: CopyCursor,
}

/// Numbers that a store gives, or gave, and that never repeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyCounters {
    /// The last number that was given to a job.
    pub number: i64,
    /// The last epoch of a lease or of a breaker's change.
    pub epoch: i64,
    /// The version of the rules by which letters are put to causes.
    pub rules: i64,
}

/// Hands counters over.
#[derive(Clone, Debug)]
pub struct TakeCounters {
    /// The copy.
    pub id: CopyId,
    /// The counters.
    pub counters: CopyCounters,
    /// The ids of the source, if payloads stay where it has them: this store reads them and never removes them.
    pub inherited: Vec<StoreId>,
    /// The same for payloads that were kept before stores had ids.
    pub inherits_older: bool,
}

/// Ends a copy.
#[derive(Clone, Debug)]
pub struct EndCopy {
    /// Which.
    pub id: CopyId,
    /// What is noted of it among what people did.
    pub detail: serde_json::Value,
    /// Who did it.
    pub by: Actor,
    /// The time.
    pub now: Timestamp,
}
