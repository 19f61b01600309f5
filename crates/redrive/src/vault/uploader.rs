//! Bringing what waits in the spool to the vault: one process at a time, oldest first, until the vault fails again.
//!
//! Being killed in the middle costs nothing: a payload is written to the same place once more, and its file goes only after
//! its row says that it has arrived.

use std::fs::File;
use std::time::{Duration, SystemTime};

use redrive_core::payloads::{Payload, PayloadPlace};

use super::away::Away;
use super::capture::Packed;
use super::spool::{Spool, SpoolFile, host};
use super::{Vault, VaultError};

/// How long files that no row knows are spared: whoever wrote them may be about to register them.
const STRAY_GRACE: Duration = Duration::from_secs(3_600);

/// How long the upload of a small payload may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What an upload must at least bring in a second, in bytes.
const BYTES_PER_SEC_MIN: u64 = 128 * 1024;

impl Vault {
    /// Brings what waits in the spool to the vault and says how many payloads arrived. None if the vault is known to be
    /// away, or another process is at it.
    pub async fn upload_spooled(&self) -> Result<u64, VaultError> {
        let Some(spool) = &self.spool else { return Ok(0) };
        let files = spool.files().map_err(|error| self.io_failed(error))?;
        if files.is_empty() || self.away.is_away() {
            return Ok(0);
        }
        let Some(_turn) = spool.lock().map_err(|error| self.io_failed(error))? else { return Ok(0) };
        let mut arrived = 0;
        for file in files {
            match self.bring(spool, &file).await {
                Ok(true) => arrived += 1,
                Ok(false) => {}
                Err(error) => {
                    if !matches!(error, VaultError::Store(_)) {
                        self.away.note(&self.address, &error);
                    }
                    return Err(error);
                }
            }
        }
        if arrived > 0 {
            self.away.clear();
        }
        Ok(arrived)
    }

    /// Brings one file to where its row says; says whether it arrived.
    async fn bring(&self, spool: &Spool, file: &SpoolFile) -> Result<bool, VaultError> {
        let old = SystemTime::now().duration_since(file.written).is_ok_and(|age| age > STRAY_GRACE);
        let Some(name) = file.place else {
            // Whoever wrote it was killed.
            return if old { self.forget(spool, file).map(|()| false) } else { Ok(false) };
        };
        let at = self.store.place_of_payload(name.hash).await?;
        match at.filter(|at| at.place.salt == name.salt) {
            Some(at) if at.spooled_on.is_none() => self.forget(spool, file).map(|()| false),
            Some(at) => {
                if at.spooled_on.as_deref() != Some(host()) {
                    self.store.note_spooled(at.place, Some(host().to_owned())).await?;
                }
                self.bring_to(spool, file, &at.place).await
            }
            None if !old => Ok(false),
            None => {
                let place = PayloadPlace { store: Some(self.store_id().await?), ..name };
                let condemned = self.store.condemn_places(vec![place], self.clock.now()).await?;
                if condemned.is_empty() { Ok(false) } else { self.forget(spool, file).map(|()| false) }
            }
        }
    }

    async fn bring_to(&self, spool: &Spool, file: &SpoolFile, place: &PayloadPlace) -> Result<bool, VaultError> {
        // A file that has gone was brought, or collected, by somebody else.
        let Ok(opened) = File::open(&file.path) else { return Ok(false) };
        let packed = Packed { payload: Payload::bare(place.hash, 0), stored_bytes: file.bytes, file: opened };
        let patience = PATIENCE + Duration::from_secs(file.bytes / BYTES_PER_SEC_MIN);
        let written = tokio::time::timeout(patience, self.write(&place.to_string(), &packed)).await;
        written.unwrap_or_else(|_| Err(Away::timed_out(&self.address, patience)))?;
        if !self.store.note_spooled(*place, None).await? {
            // It was collected meanwhile.
            self.delete(place).await?;
        }
        self.forget(spool, file).map(|()| true)
    }

    fn forget(&self, spool: &Spool, file: &SpoolFile) -> Result<(), VaultError> {
        spool.remove(&file.path).map_err(|error| self.io_failed(error))
    }
}
