//! Taking bytes in: hashed and compressed as they come, into a temporary file, up to a cap. What lies beyond it is counted,
//! not kept.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use object_store::{ObjectStoreExt, PutPayload, WriteMultipart};
use redrive_core::ids::JobId;
use redrive_core::payloads::{Payload, PayloadHash, PayloadPlace, Response};
use redrive_store::contract::{RegisterPayload, Registered, TouchPayload};
use tokio::sync::OwnedSemaphorePermit;

use super::{Vault, VaultError};

/// How much of the temporary file is in memory while it is uploaded, in bytes.
const PART_BYTES: usize = 5 * 1024 * 1024;

/// zstd's own default: most of what the higher levels save, at the speed of a disk.
const LEVEL: i32 = 1;

/// A payload on its way in.
pub struct Capture {
    hasher: blake3::Hasher,
    compressed: zstd::stream::write::Encoder<'static, BufWriter<File>>,
    cap_bytes: u64,
    kept_bytes: u64,
    seen_bytes: u64,
}

impl Capture {
    /// Begins; at most `cap_bytes` are kept.
    pub fn begin(cap_bytes: u64) -> io::Result<Self> {
        let file = BufWriter::with_capacity(64 * 1024, tempfile::tempfile()?);
        let compressed = zstd::stream::write::Encoder::new(file, LEVEL)?;
        Ok(Self { hasher: blake3::Hasher::new(), compressed, cap_bytes, kept_bytes: 0, seen_bytes: 0 })
    }

    /// Takes in more bytes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = usize::try_from(self.cap_bytes - self.kept_bytes).unwrap_or(usize::MAX);
        let kept = &bytes[..bytes.len().min(room)];
        self.hasher.update(kept);
        self.compressed.write_all(kept)?;
        self.kept_bytes += kept.len() as u64;
        self.seen_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Whether more came than is kept.
    pub const fn is_full(&self) -> bool {
        self.seen_bytes > self.kept_bytes
    }

    /// Takes in a file from its beginning; of what lies beyond the cap only the length is read. What is added to it meanwhile
    /// is left out: somebody may write faster than we read.
    pub fn read_file(&mut self, file: &mut File) -> io::Result<()> {
        let total = file.metadata()?.len();
        let mut file = file.take(total);
        let mut block = vec![0; 256 * 1024];
        while !self.is_full() {
            match file.read(&mut block)? {
                0 => break,
                read => self.write(&block[..read])?,
            }
        }
        self.seen_bytes = self.seen_bytes.max(total);
        Ok(())
    }

    /// Writes what was kept to a file, as it came; says how much came.
    pub(super) async fn write_to(self, path: PathBuf) -> io::Result<u64> {
        let seen_bytes = self.seen_bytes;
        let write = move || {
            let mut packed = self.finish(Response::default(), None)?.file;
            packed.seek(SeekFrom::Start(0))?;
            let mut options = File::options();
            let file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
            zstd::stream::copy_decode(packed, file)
        };
        tokio::task::spawn_blocking(write).await.unwrap_or_else(|panic| Err(io::Error::other(panic)))?;
        Ok(seen_bytes)
    }

    /// Packs what was taken in. `total_bytes` is how long it is said to be, where that is known.
    fn finish(self, response: Response, total_bytes: Option<u64>) -> io::Result<Packed> {
        let size_bytes = self.kept_bytes;
        let total = self.seen_bytes.max(total_bytes.unwrap_or(0));
        let truncated = total > size_bytes;
        let file = self.compressed.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        let payload = Payload {
            hash: PayloadHash::from_bytes(*self.hasher.finalize().as_bytes()),
            size_bytes,
            truncated,
            total_bytes: truncated.then_some(total),
            lost: None,
            response,
        };
        Ok(Packed { payload, stored_bytes: file.metadata()?.len(), file })
    }
}

/// A payload that is packed into a temporary file.
#[derive(Debug)]
struct Packed {
    payload: Payload,
    stored_bytes: u64,
    file: File,
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
    /// Keeps a payload: when this returns it is in the vault and registered, and a settlement may point at it. `total_bytes` is
    /// how long it is said to be, where that is known.
    pub async fn save(
        &self,
        capture: Capture,
        response: Response,
        total_bytes: Option<u64>,
    ) -> Result<Payload, VaultError> {
        Ok(self.save_for(None, capture, response, total_bytes).await?.payload)
    }

    /// The same for the attempt of a job: it is not collected while the job is leased.
    pub(crate) async fn save_for(
        &self,
        job: Option<JobId>,
        capture: Capture,
        response: Response,
        total_bytes: Option<u64>,
    ) -> Result<Kept, VaultError> {
        let finished = tokio::task::spawn_blocking(move || capture.finish(response, total_bytes)).await;
        let packed = finished.unwrap_or_else(|error| Err(io::Error::other(error)));
        let packed = packed.map_err(|error| self.io_failed(error))?;
        self.put(&packed, job).await?;
        let payload = packed.payload.clone();
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
        let touch = TouchPayload { hash: packed.payload.hash, wanted_by, now: self.clock.now() };
        match self.store.touch_payload(touch).await? {
            Some(_) => Ok(()),
            None => self.upload(packed, wanted_by).await,
        }
    }

    /// Writes the bytes to a place of their own, and registers it. If another was faster, his place counts and ours is
    /// removed; if ours was condemned meanwhile, the bytes go to the next one.
    async fn upload(&self, packed: &Packed, wanted_by: Option<JobId>) -> Result<(), VaultError> {
        let Packed { payload: Payload { hash, size_bytes, .. }, stored_bytes, .. } = *packed;
        loop {
            let place = PayloadPlace { store: Some(self.store_id().await?), hash, salt: fastrand::u32(..) };
            self.write(&place.to_string(), packed).await?;
            let now = self.clock.now();
            let params = RegisterPayload { place, size_bytes, stored_bytes, wanted_by, now };
            match self.store.register_payload(params).await? {
                Registered::At(counts) if counts == place => return Ok(()),
                Registered::At(_) => return self.delete(&place).await,
                Registered::Condemned => tracing::debug!(%place, "collected before it was registered; written again"),
            }
        }
    }

    async fn write(&self, place: &str, packed: &Packed) -> Result<(), VaultError> {
        let mut file = &packed.file;
        file.seek(SeekFrom::Start(0)).map_err(|error| self.io_failed(error))?;
        if packed.stored_bytes > PART_BYTES as u64 {
            return self.write_parts(place, file).await;
        }
        let mut bytes = Vec::with_capacity(packed.stored_bytes as usize);
        file.read_to_end(&mut bytes).map_err(|error| self.io_failed(error))?;
        let put = self.objects.put(&place.into(), PutPayload::from(bytes)).await;
        put.map(drop).map_err(|error| self.objects_failed(error))
    }

    async fn write_parts(&self, place: &str, mut file: &File) -> Result<(), VaultError> {
        let parts = self.objects.put_multipart(&place.into()).await.map_err(|error| self.objects_failed(error))?;
        let mut upload = WriteMultipart::new_with_chunk_size(parts, PART_BYTES);
        let mut block = vec![0; 1024 * 1024];
        loop {
            let read = file.read(&mut block).map_err(|error| self.io_failed(error))?;
            if read == 0 {
                break;
            }
            // At most two parts are on their way at once.
            upload.wait_for_capacity(2).await.map_err(|error| self.objects_failed(error))?;
            upload.put(Bytes::copy_from_slice(&block[..read]));
        }
        upload.finish().await.map_err(|error| self.objects_failed(error))?;
        Ok(())
    }
}
