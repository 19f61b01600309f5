//! Claims: while results of jobs are written for one request, another request that settles the same jobs waits, at this server or another.

use std::convert::Infallible;
use std::time::Duration;

use redrive_core::ids::JobId;
use redrive_core::jobs::Lease;
use redrive_core::time::Timestamp;
use redrive_store::contract::ClaimResults;

use crate::engine::Redrive;
use crate::error::Error;

/// Time for which a claim holds unless it is renewed. A server that is killed leaves its claims behind for so long.
const CLAIMED_FOR: Duration = Duration::from_secs(3);

/// Time between two looks whether the other request is done.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The right to write the results of jobs. It ends when they are settled.
pub(super) struct Claim<'a> {
    redrive: &'a Redrive,
    leases: Vec<Lease>,
    until: Timestamp,
}

impl Redrive {
    /// Waits until no other request writes results of these jobs, then claims those whose leases hold.
    pub(super) async fn claim_results(&self, leases: Vec<Lease>) -> Result<Claim<'_>, Error> {
        loop {
            let now = self.now();
            let until = now + CLAIMED_FOR;
            let params = ClaimResults { leases: leases.clone(), renewed: None, until, now };
            if let Some(leases) = self.store.claim_results(params).await? {
                return Ok(Claim { redrive: self, leases, until });
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

impl Claim<'_> {
    /// Returns whether the lease of a job still held.
    pub(super) fn has(&self, job: JobId) -> bool {
        self.leases.iter().any(|lease| lease.job == job)
    }

    /// Writes results, and renews the claim meanwhile.
    pub(super) async fn hold<T>(&mut self, write: impl Future<Output = T>) -> T {
        tokio::select! {
            written = write => written,
            never = self.keep() => match never {},
        }
    }

    async fn keep(&mut self) -> Infallible {
        loop {
            tokio::time::sleep(CLAIMED_FOR / 3).await;
            self.renew(self.redrive.now() + CLAIMED_FOR).await;
        }
    }

    /// Lets another request write the results: this one could not.
    pub(super) async fn give_up(mut self) {
        self.renew(Timestamp::from_millis(0)).await;
    }

    async fn renew(&mut self, until: Timestamp) {
        let (leases, renewed, now) = (self.leases.clone(), Some(self.until), self.redrive.now());
        match self.redrive.store.claim_results(ClaimResults { leases, renewed, until, now }).await {
            Ok(Some(_)) => self.until = until,
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "a claim on results could not be renewed"),
        }
    }
}
