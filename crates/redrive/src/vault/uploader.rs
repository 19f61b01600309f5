//! Bringing what waits in the spool to the vault: one process at a time, oldest first, until the vault fails again. A file that
//! cannot be read on this machine, or is damaged, is told and passed over: the others do not wait for it.
//!
//! Being killed in the middle costs nothing: a payload is written to the same place once more, and its file goes only after
//! its row says that it has arrived.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use redrive_core::failures::with_sources;
use redrive_core::payloads::{Payload, PayloadHash, PayloadPlace};

use super::capture::Packed;
use super::spool::{Spool, SpoolFile};
use super::{Vault, VaultError};
use redrive_store::host;

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
        if self.away.is_away() {
            return Ok(0);
        }
        let looking = spool.clone();
        let Some((_turn, files)) = self.on_disk(move || take_turn(&looking)).await? else { return Ok(0) };
        let mut arrived = 0;
        for file in files.iter().filter(|file| !spool.is_bad(file)) {
            match self.bring(spool, file).await {
                Ok(true) => arrived += 1,
                Ok(false) => {}
                Err(error @ (VaultError::Io { .. } | VaultError::Damaged(_))) => {
                    let (path, error) = (file.path.display(), with_sources(&error));
                    tracing::warn!(file = %path, error, "a file of the spool cannot be brought to the vault");
                    spool.note_bad(file);
                }
                Err(error) => {
                    if error.is_of_the_vault() {
                        self.away.note(&self.address, &error);
                    }
                    return Err(error);
                }
            }
        }
        if arrived > 0 {
            self.away.clear(&self.address);
        }
        Ok(arrived)
    }

    /// Brings one file to where its row says; says whether it arrived.
    async fn bring(&self, spool: &Spool, file: &SpoolFile) -> Result<bool, VaultError> {
        let old = self.clock.now().since(file.written_at()) > STRAY_GRACE;
        let Some(name) = file.place else {
            // Whoever wrote it was killed.
            return if old { self.forget(spool, file).await.map(|()| false) } else { Ok(false) };
        };
        let at = self.store.place_of_payload(name.hash).await?;
        match at.filter(|at| at.place.salt == name.salt) {
            Some(at) if at.spooled_on.is_none() => self.forget(spool, file).await.map(|()| false),
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
                if condemned.is_empty() { Ok(false) } else { self.forget(spool, file).await.map(|()| false) }
            }
        }
    }

    async fn bring_to(&self, spool: &Spool, file: &SpoolFile, place: &PayloadPlace) -> Result<bool, VaultError> {
        let path = file.path.clone();
        let hash = place.hash;
        let Some((opened, whole)) = self.on_disk(move || open(&path, hash)).await? else { return Ok(false) };
        if !whole {
            return Err(VaultError::Damaged(hash.to_string()));
        }
        let packed = Packed { payload: Payload::bare(hash, 0), stored_bytes: file.bytes, file: opened };
        let patience = PATIENCE + Duration::from_secs(file.bytes / BYTES_PER_SEC_MIN);
        self.within(patience, self.write(&place.to_string(), &packed)).await?;
        if !self.store.note_spooled(*place, None).await? {
            // It was collected meanwhile.
            self.delete(place).await?;
        }
        self.forget(spool, file).await.map(|()| true)
    }

    async fn forget(&self, spool: &Spool, file: &SpoolFile) -> Result<(), VaultError> {
        let (spool, path) = (spool.clone(), file.path.clone());
        self.on_disk(move || spool.remove(&path)).await
    }
}

/// What waits, and the right to bring it; nothing if nothing waits or another process is at it.
fn take_turn(spool: &Spool) -> io::Result<Option<(File, Vec<SpoolFile>)>> {
    let files = spool.files()?;
    match files.is_empty() {
        true => Ok(None),
        false => Ok(spool.lock()?.map(|turn| (turn, files))),
    }
}

/// Opens a file of the spool and says whether its bytes are those that were put there. One that has gone was brought, or
/// collected, by somebody else.
fn open(path: &Path, hash: PayloadHash) -> io::Result<Option<(File, bool)>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut hasher = blake3::Hasher::new();
    let unpacked = zstd::stream::copy_decode(&file, &mut hasher);
    let whole = unpacked.is_ok() && hasher.finalize().as_bytes() == hash.as_bytes();
    Ok(Some((file, whole)))
}
