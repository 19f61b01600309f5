//! Taking bytes in: hashed and compressed as they come, into a temporary file, up to a cap. What lies beyond it is counted,
//! not kept.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use bytes::Bytes;
use object_store::{ObjectStoreExt, PutPayload, WriteMultipart};
use redrive_core::payloads::{Payload, PayloadHash, Response};
use redrive_store::contract::RegisterPayload;

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
            let (_, compressed) = self.finish()?;
            let mut options = File::options();
            let file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
            zstd::stream::copy_decode(compressed, file)
        };
        tokio::task::spawn_blocking(write).await.unwrap_or_else(|panic| Err(io::Error::other(panic)))?;
        Ok(seen_bytes)
    }

    fn finish(self) -> io::Result<(PayloadHash, File)> {
        let mut file = self.compressed.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        Ok((PayloadHash::from_bytes(*self.hasher.finalize().as_bytes()), file))
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
        let (size_bytes, seen_bytes) = (capture.kept_bytes, capture.seen_bytes);
        let total = seen_bytes.max(total_bytes.unwrap_or(0));
        let finished =
            tokio::task::spawn_blocking(move || capture.finish()).await.unwrap_or_else(|e| Err(io::Error::other(e)));
        let (hash, file) = finished.map_err(|error| self.io_failed(error))?;
        if self.store.touch_payload(hash, self.clock.now()).await?.is_none() {
            self.upload(hash, size_bytes, file).await?;
        }
        let truncated = total > size_bytes;
        Ok(Payload { hash, size_bytes, truncated, total_bytes: truncated.then_some(total), response })
    }

    /// Writes the bytes to a place of their own, and registers it. If another was faster, his place counts and ours is
    /// removed.
    async fn upload(&self, hash: PayloadHash, size_bytes: u64, mut file: File) -> Result<(), VaultError> {
        let stored_bytes = file.metadata().map_err(|error| self.io_failed(error))?.len();
        let text = hash.to_string();
        let place = format!("{}/{text}-{:08x}.zst", &text[..2], fastrand::u32(..));
        if stored_bytes <= PART_BYTES as u64 {
            let mut bytes = Vec::with_capacity(stored_bytes as usize);
            file.read_to_end(&mut bytes).map_err(|error| self.io_failed(error))?;
            let put = self.objects.put(&place.as_str().into(), PutPayload::from(bytes)).await;
            put.map_err(|error| self.objects_failed(error))?;
        } else {
            self.upload_parts(&place, &mut file).await?;
        }
        let now = self.clock.now();
        let registered = RegisterPayload { hash, place: place.clone(), size_bytes, stored_bytes, now };
        if self.store.register_payload(registered).await? != place {
            self.delete(&place).await?;
        }
        Ok(())
    }

    async fn upload_parts(&self, place: &str, file: &mut File) -> Result<(), VaultError> {
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
