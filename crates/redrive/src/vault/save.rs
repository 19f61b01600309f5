//! Keeping what was captured: in the vault, or in the spool while the vault is away, and registered in the store. Then a
//! settlement may point at it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStoreExt;
use redrive_core::failures::with_sources;
use redrive_core::ids::JobId;
use redrive_core::payloads::{Payload, PayloadPlace, Response};
use redrive_store::contract::{PayloadAt, RegisterPayload, Registered, TouchPayload};
use tokio::sync::OwnedSemaphorePermit;

use super::capture::{Capture, Packed};
use super::counts::Put;
use super::spool::{Refused, Spool};
use super::{Vault, VaultError};
use redrive_store::host;

/// How long an attempt waits for the vault to take a small payload, if there is a spool.
const PATIENCE: Duration = Duration::from_secs(3);

/// What an upload must at least bring in a second, in bytes.
const BYTES_PER_SEC_MIN: u64 = 1024 * 1024;

/// Who wants a payload to be kept, and the place that is registered for it but cannot be relied on.
#[derive(Clone, Copy)]
struct Want {
    by: Option<JobId>,
    instead_of: Option<PayloadPlace>,
}

/// A payload that was kept, with its bytes at hand where there was room, until somebody refers to it.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) payload: Payload,
    at_hand: Option<(Packed, OwnedSemaphorePermit)>,
}

impl Kept {
    /// A payload of which there is nothing at hand.
    pub(crate) const fn elsewhere(payload: Payload) -> Self {
        Self { payload, at_hand: None }
    }
}

impl Vault {
    /// Keeps a payload: when this returns it is in the vault, or flushed in the spool while the vault is away, and registered:
    /// a settlement may point at it. `total_bytes` is how long it is said to be, where that is known.
    pub async fn save(
        &self,
        capture: Capture,
        response: Response,
        total_bytes: Option<u64>,
    ) -> Result<Payload, VaultError> {
        Ok(self.save_for((None, true), capture, response, total_bytes).await?.payload)
    }

    /// The same of bytes that are at hand.
    pub async fn save_bytes(&self, bytes: &[u8]) -> Result<Payload, VaultError> {
        let written = Capture::begin(u64::MAX).and_then(|mut capture| capture.write(bytes).map(|()| capture));
        self.save(written.map_err(|error| self.io_failed(error))?, Response::default(), None).await
    }

    /// The same for the attempt of a job: it is not collected while the job is leased. A payload that need not be kept is
    /// told to be lost if it cannot be.
    pub(crate) async fn save_for(
        &self,
        (job, required): (Option<JobId>, bool),
        capture: Capture,
        response: Response,
        total_bytes: Option<u64>,
    ) -> Result<Kept, VaultError> {
        let finished = tokio::task::spawn_blocking(move || capture.finish(response, total_bytes)).await;
        let packed = finished.unwrap_or_else(|error| Err(io::Error::other(error)));
        let packed = packed.map_err(|error| self.io_failed(error))?;
        let mut payload = packed.payload.clone();
        match self.put(&packed, job).await {
            Ok(()) => {}
            Err(error) if required || matches!(error, VaultError::Store(_)) => return Err(error),
            Err(error) => {
                payload.lost = Some(with_sources(&error));
                return Ok(Kept::elsewhere(payload));
            }
        }
        let at_hand = Arc::clone(&self.at_hand).try_acquire_owned().ok().map(|room| (packed, room));
        Ok(Kept { payload, at_hand })
    }

    /// Keeps a payload once more that was collected before anybody referred to it; says whether its bytes were at hand.
    pub(crate) async fn save_again(&self, kept: &Kept, job: JobId) -> Result<bool, VaultError> {
        let Some((packed, _)) = &kept.at_hand else { return Ok(false) };
        self.put(packed, Some(job)).await?;
        Ok(true)
    }

    async fn put(&self, packed: &Packed, wanted_by: Option<JobId>) -> Result<(), VaultError> {
        let put = self.put_somewhere(packed, wanted_by).await;
        self.counters.put(&put);
        put.map(drop)
    }

    async fn put_somewhere(&self, packed: &Packed, wanted_by: Option<JobId>) -> Result<Put, VaultError> {
        let touch = TouchPayload { hash: packed.payload.hash, wanted_by, now: self.clock.now() };
        let registered = self.store.touch_payload(touch).await?;
        if let Some(at) = &registered
            && self.can_rely_on(at).await?
        {
            return Ok(Put::Known);
        }
        let want = Want { by: wanted_by, instead_of: registered.map(|at| at.place) };
        let Some(spool) = &self.spool else { return self.upload(packed, want).await.map(|()| Put::Saved) };
        if !self.away.is_away() {
            let patience = PATIENCE + Duration::from_secs(packed.stored_bytes / BYTES_PER_SEC_MIN);
            match self.within(patience, self.upload(packed, want)).await {
                Err(error) if error.is_of_the_vault() => self.away.note(&self.address, &error),
                Ok(()) => {
                    self.away.clear(&self.address);
                    return Ok(Put::Saved);
                }
                Err(error) => return Err(error),
            }
        }
        self.put_aside(spool, packed, want).await.map(|()| Put::Spooled)
    }

    /// Whether equal bytes that are registered already are there, and this store's own: what it inherited belongs to the store
    /// that it was copied from, which may collect it at any time. What a read found to be gone or damaged is written again. A vault
    /// that cannot be asked now is believed.
    async fn can_rely_on(&self, at: &PayloadAt) -> Result<bool, VaultError> {
        let place = &at.place;
        if at.unreadable.is_some() {
            return Ok(false);
        }
        if place.store.is_some() && place.store != Some(self.store_id().await?) {
            return Ok(false);
        }
        if self.away.is_away() || self.spool.as_ref().is_some_and(|spool| spool.path(place).exists()) {
            return Ok(true);
        }
        let path = place.to_string().into();
        let found = tokio::time::timeout(PATIENCE, self.objects.head(&path)).await;
        Ok(!matches!(found, Ok(Err(object_store::Error::NotFound { .. }))))
    }

    /// Writes the bytes to the spool, and registers them with the place they will have in the vault. As in `upload`, the place
    /// of another who was faster counts, and a place that was condemned is given up for the next one.
    async fn put_aside(&self, spool: &Spool, packed: &Packed, want: Want) -> Result<(), VaultError> {
        loop {
            let place = self.spool_at(spool, packed).await?;
            let Packed { payload: Payload { size_bytes, .. }, stored_bytes, .. } = *packed;
            let (now, spooled_on) = (self.clock.now(), Some(host().to_owned()));
            let Want { by: wanted_by, instead_of } = want;
            let params = RegisterPayload { place, size_bytes, stored_bytes, spooled_on, instead_of, wanted_by, now };
            let registered = self.store.register_payload(params).await?;
            if registered == Registered::At(place) {
                return Ok(());
            }
            let (removing, path) = (spool.clone(), spool.path(&place));
            self.on_disk(move || removing.remove(&path)).await?;
            if registered != Registered::Condemned {
                return Ok(());
            }
        }
    }

    /// Writes the bytes to the spool, under a name of their own.
    async fn spool_at(&self, spool: &Spool, packed: &Packed) -> Result<PayloadPlace, VaultError> {
        let (hash, stored_bytes) = (packed.payload.hash, packed.stored_bytes);
        let place = PayloadPlace { store: Some(self.store_id().await?), hash, salt: fastrand::u32(..) };
        let file = packed.file.try_clone().map_err(|error| self.io_failed(error))?;
        let taking = spool.clone();
        let taken = tokio::task::spawn_blocking(move || taking.put(&place, &file, stored_bytes)).await;
        taken.unwrap_or_else(|error| Err(io::Error::other(error).into())).map_err(|refused| match refused {
            Refused::Io(error) => VaultError::Io { address: spool.folder().display().to_string(), source: error },
            Refused::Full { bytes } => VaultError::SpoolFull {
                address: self.address.to_string(),
                folder: spool.folder().to_owned(),
                bytes,
                bytes_max: spool.bytes_max(),
            },
        })?;
        Ok(place)
    }

    /// Writes the bytes to a place of their own, and registers it. If another was faster, his place counts and ours is
    /// removed; if ours was condemned meanwhile, the bytes go to the next one.
    async fn upload(&self, packed: &Packed, want: Want) -> Result<(), VaultError> {
        let Packed { payload: Payload { hash, size_bytes, .. }, stored_bytes, .. } = *packed;
        loop {
            let place = PayloadPlace { store: Some(self.store_id().await?), hash, salt: fastrand::u32(..) };
            self.write(&place.to_string(), packed).await?;
            let now = self.clock.now();
            let Want { by: wanted_by, instead_of } = want;
            let spooled_on = None;
            let params = RegisterPayload { place, size_bytes, stored_bytes, spooled_on, instead_of, wanted_by, now };
            match self.store.register_payload(params).await? {
                Registered::At(counts) if counts == place => return Ok(()),
                Registered::At(_) => return self.delete(&place).await,
                Registered::Condemned => tracing::debug!(%place, "collected before it was registered; written again"),
            }
        }
    }
}
