//! The ledger: counters that are read without counting, and the audit that counts.

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::ids::PipelineName;
use redrive_core::ledger::Ledger;
use redrive_core::servers::ServerFacts;
use redrive_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::leader::Led;
use crate::error::{Result, StoreError};

/// Counters and their proof.
#[async_trait]
pub trait LedgerStore {
    /// The ledger of every pipeline.
    async fn ledgers(&self) -> Result<BTreeMap<PipelineName, Ledger>>;

    /// Recounts everything and says what does not add up.
    async fn audit(&self) -> Result<Audit>;

    /// Looks at the store itself.
    async fn health(&self) -> Result<Health>;

    /// Gives space that is no longer used back to the disk; says how many bytes the store had before and has now. Refused if there
    /// is no room to do it. That somebody did it is noted once it is done.
    async fn compact(&self, params: Compact) -> Result<Compacted>;

    /// Does what the database wants done now and then, a piece at a time: counts that were only added up so far are folded, and the
    /// remains of rows that were often written are cleared away. Nothing is left to do where the database does that itself.
    async fn tidy(&self, params: Tidy) -> Result<Tidied>;

    /// Writes the whole store, as it is at one moment, to an empty file, which is a store of its own then; others go on meanwhile.
    /// [`Unsupported`](crate::StoreError::Unsupported) where the store is not in a file.
    async fn snapshot(&self, to: &Path) -> Result<()>;

    /// What this backend can do beyond the contract.
    fn capabilities(&self) -> Capabilities;

    /// What keeps the store from answering calls that it has taken and can neither finish nor refuse, if anything does: a commit was
    /// sent, and whether it took place is known only when it answers again. Calls that it has not begun are refused instead.
    fn trouble(&self) -> Option<StoreError> {
        None
    }
}

/// Gives space back.
#[derive(Clone, Debug)]
pub struct Compact {
    /// Who wants it.
    pub by: Actor,
    /// The time.
    pub now: Timestamp,
}

/// Tidies up.
#[derive(Clone, Debug, Default)]
pub struct Tidy {
    /// At most so many rows are folded.
    pub limit: u32,
    /// The right to do it; none if it is not a chore.
    pub led: Option<Led>,
}

/// What was tidied up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tidied {
    /// Tables that were cleared of the remains of rows.
    pub cleared: Vec<String>,
    /// What was to be done and may not be, in words.
    pub refused: Vec<String>,
    /// Whether there is more to fold.
    pub more: bool,
}

/// What became smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Compacted {
    /// Bytes before.
    pub before_bytes: u64,
    /// Bytes now.
    pub after_bytes: u64,
}

/// The result of an audit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Audit {
    /// Each pipeline's ledger beside its recount.
    pub pipelines: Vec<AuditedPipeline>,
    /// All that does not add up; empty if the store is sound.
    pub problems: Vec<String>,
}

impl Audit {
    /// Adds a pipeline, with what does not add up of it.
    pub(crate) fn add(&mut self, audited: AuditedPipeline) {
        let AuditedPipeline { pipeline, ledger, counted } = &audited;
        if !ledger.balances() {
            let found = format!("pipeline {pipeline}: accepted is not the sum of the states: {}", show(ledger));
            self.problems.push(found);
        }
        if counted != ledger {
            let found = format!("pipeline {pipeline}: the ledger says {}, counted {}", show(ledger), show(counted));
            self.problems.push(found);
        }
        self.pipelines.push(audited);
    }
}

fn show(l: &Ledger) -> String {
    format!(
        "accepted {} = queued {} + leased {} + done {} + dead {} + discarded {} (retrying {}, recovered {}, replaying {})",
        l.accepted, l.queued, l.leased, l.done, l.dead, l.discarded, l.retrying, l.recovered, l.replaying
    )
}

/// A pipeline's ledger beside what was counted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditedPipeline {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// What the ledger says.
    pub ledger: Ledger,
    /// What was counted.
    pub counted: Ledger,
}

/// What a backend can do beyond what all of them can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Whether an audit sees the whole store at one moment.
    pub snapshot: bool,
    /// Whether a search for text is answered from an index.
    pub text_index: bool,
    /// Whether the death of a worker's process is proven at once, where the two share a machine.
    pub instant_presence: bool,
}

/// The state of the store itself.
#[derive(Clone, Debug, Serialize)]
pub struct Health {
    /// Where it is.
    pub location: String,
    /// What it runs on.
    pub engine: String,
    /// The version of its schema.
    pub schema_version: i64,
    /// Bytes on disk.
    pub size_bytes: u64,
    /// Bytes free on that disk, where that can be told.
    pub free_bytes: Option<u64>,
    /// What is known of the server that it is on, if it is on one.
    pub server: Option<ServerFacts>,
    /// What is wrong with it.
    pub problems: Vec<String>,
}
