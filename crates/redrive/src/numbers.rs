//! The numbers that monitoring reads: what the store counts, which only grows where it says so, and what this process has measured.

use std::collections::BTreeMap;

use redrive_core::ids::PipelineName;
use redrive_core::servers::ServerFacts;
use redrive_core::time::Timestamp;
use redrive_store::contract::{EventTotal, Watch};

use crate::engine::Redrive;
use crate::error::Error;
use crate::status::Status;
use crate::times::Durations;
use crate::vault::{Spooled, Vault, VaultCounts};

/// What monitoring reads.
#[derive(Debug)]
pub struct Numbers {
    /// Where everything stands.
    pub status: Status,
    /// How often what has ever happened: these only grow.
    pub totals: Vec<EventTotal>,
    /// When the oldest dead letter of each pipeline died.
    pub oldest_dead: Vec<(PipelineName, Timestamp)>,
    /// Since when the first job of each queue is due, of queues that have one.
    pub due_since: BTreeMap<PipelineName, Timestamp>,
    /// Bytes that are free on the disk of the store, where that can be told.
    pub free_bytes: Option<u64>,
    /// What is known of the server that the store is on, if it is on one.
    pub server: Option<ServerFacts>,
    /// What was counted of the vault in this process, if there is one.
    pub vault: Option<VaultCounts>,
    /// What waits in the spool of this machine, if there is one.
    pub spooled: Option<Spooled>,
    /// How long calls to the store took in this process, by what was asked.
    pub store_times: BTreeMap<&'static str, Durations>,
    /// The time.
    pub now: Timestamp,
}

impl Redrive {
    /// The numbers that monitoring reads. A server that keeps the store is asked how it is, which takes a moment, where there is one.
    pub async fn numbers(&self, vault: Option<&Vault>, has_server: bool) -> Result<Numbers, Error> {
        let now = self.now();
        let watched = self.store.watch(Watch { expiring: Vec::new(), limit: 0, now }).await?;
        let server = if has_server { self.store.health().await?.server } else { None };
        let spooled = match vault {
            Some(vault) => vault.waiting().await,
            None => None,
        };
        Ok(Numbers {
            status: self.status().await?,
            totals: self.store.event_totals().await?,
            oldest_dead: self.store.oldest_dead().await?,
            due_since: watched.due_since,
            free_bytes: watched.free_bytes,
            server,
            vault: vault.map(Vault::counts),
            spooled,
            store_times: self.reach.times.read(),
            now,
        })
    }
}
