//! Giving bytes back as they were taken in, and checking that they are.

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use object_store::local::LocalFileSystem;
use object_store::{GetResult, ObjectStoreExt};
use redrive_core::payloads::{PayloadHash, PayloadPlace, Unreadable, UnreadableWhy};
use redrive_store::contract::PayloadAt;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::{Vault, VaultError};

/// Packed payloads up to this size are read at once, which takes fewer steps than a stream, in bytes.
const WHOLE_BYTES_MAX: u64 = 1024 * 1024;

impl Vault {
    /// Writes a payload out. It is an error if it is not there, or not what was kept; bytes that were wrong may have been
    /// written by then.
    pub async fn copy(&self, hash: PayloadHash, out: &mut (impl AsyncWrite + Unpin)) -> Result<u64, VaultError> {
        let found = self.object(hash).await?;
        let at = found.at.clone();
        let copied = self.unpack(found, out).await;
        self.note(&at, copied.as_ref().err()).await;
        copied
    }

    async fn unpack(&self, found: VaultObject, out: &mut (impl AsyncWrite + Unpin)) -> Result<u64, VaultError> {
        let mut unpacked = Unpacking::begin(found.at.place.hash)?;
        let mut stream = found.into_stream();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|error| self.objects_failed(error))?;
            let mut rest = InBuffer::around(&chunk);
            while let Some(bytes) = unpacked.next(&mut rest)? {
                out.write_all(bytes).await.map_err(|error| self.io_failed(error))?;
            }
        }
        out.flush().await.map_err(|error| self.io_failed(error))?;
        unpacked.finish()
    }

    /// A whole payload of that length. Shorter ways than [`copy`](Self::copy) for what is in memory anyway.
    pub async fn bytes(&self, hash: PayloadHash, size_bytes: u64) -> Result<Vec<u8>, VaultError> {
        if size_bytes > WHOLE_BYTES_MAX {
            let mut bytes = Vec::new();
            self.copy(hash, &mut bytes).await?;
            return Ok(bytes);
        }
        let VaultObject { at, object } = self.object(hash).await?;
        let packed = object.bytes().await.map_err(|error| self.objects_failed(error))?;
        let length = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        let bytes = zstd::bulk::decompress(&packed, length).ok();
        let whole = bytes.filter(|bytes| blake3::hash(bytes).as_bytes() == hash.as_bytes());
        let read = whole.ok_or_else(|| VaultError::Damaged(hash.to_string()));
        match &read {
            Ok(_) => self.note(&at, None).await,
            // The length may be wrong, which anybody may have reported: only the bytes say whether they are damaged.
            Err(_) => drop(self.verify(hash).await),
        }
        read
    }

    /// A payload as it lies in the vault, packed.
    pub(super) async fn object(&self, hash: PayloadHash) -> Result<VaultObject, VaultError> {
        let read = self.read_object(hash).await;
        self.counters.read(&read);
        self.note_reads(false).await;
        read
    }

    async fn read_object(&self, hash: PayloadHash) -> Result<VaultObject, VaultError> {
        let missing = || VaultError::Missing(hash.to_string());
        let mut at = self.store.place_of_payload(hash).await?.ok_or_else(missing)?;
        if at.spooled_on.is_some() {
            if let Some(object) = self.spooled(&at.place).await {
                return Ok(VaultObject { at, object });
            }
            // It may just have arrived.
            at = self.store.place_of_payload(hash).await?.ok_or_else(missing)?;
        }
        match (self.objects.get(&at.place.to_string().into()).await, at.spooled_on.clone()) {
            (Ok(object), spooled_on) => {
                if spooled_on.is_some() {
                    self.note_arrival(at.place).await;
                }
                Ok(VaultObject { at, object })
            }
            (Err(object_store::Error::NotFound { .. }), Some(host)) => {
                Err(VaultError::OnItsWay { hash: hash.to_string(), host })
            }
            (Err(error @ object_store::Error::NotFound { .. }), None) => match &self.folder {
                // Nothing is known of what is in a folder that is not mounted.
                Some(folder) if !folder.is_dir() => Err(self.objects_failed(error)),
                _ => {
                    let missing = missing();
                    self.note(&at, Some(&missing)).await;
                    Err(missing)
                }
            },
            (Err(error), _) => Err(self.objects_failed(error)),
        }
    }

    /// Notes on the row of a payload whether a read found its bytes, if the row says otherwise: plans and pages follow. A vault that
    /// failed says nothing. A store that cannot be written is told by the next read.
    async fn note(&self, at: &PayloadAt, error: Option<&VaultError>) {
        let why = match error {
            None => None,
            Some(VaultError::Missing(_)) => Some(UnreadableWhy::Missing),
            Some(VaultError::Damaged(_)) => Some(UnreadableWhy::Damaged),
            Some(_) => return,
        };
        if why == at.unreadable.map(|unreadable| unreadable.why) {
            return;
        }
        let unreadable = why.map(|why| Unreadable { why, since: self.clock.now() });
        if let Err(error) = self.store.note_readable(at.place, unreadable).await {
            tracing::debug!(place = %at.place, %error, "what a read of a payload found could not be noted");
        }
    }

    /// Notes that a payload is in the vault though its row says that it is on its way: whoever brought it had another row, in
    /// the store that this one was copied from. A store that cannot be written finds it there again the next time.
    async fn note_arrival(&self, place: PayloadPlace) {
        if let Err(error) = self.store.note_spooled(place, None).await {
            tracing::debug!(%place, %error, "a payload has arrived, which could not be noted");
        }
    }

    /// A payload as it waits in the spool of this machine.
    async fn spooled(&self, place: &PayloadPlace) -> Option<GetResult> {
        let folder = LocalFileSystem::new_with_prefix(self.spool.as_ref()?.folder()).ok()?;
        folder.get(&place.file_name().into()).await.ok()
    }

    /// Checks that a payload is there and what it was.
    pub async fn verify(&self, hash: PayloadHash) -> Result<(), VaultError> {
        self.copy(hash, &mut tokio::io::sink()).await.map(drop)
    }
}

/// A payload that is there, packed, with where its row says it is.
pub(super) struct VaultObject {
    at: PayloadAt,
    object: GetResult,
}

impl VaultObject {
    /// Its bytes as they lie there.
    pub(super) fn into_stream(self) -> BoxStream<'static, object_store::Result<Bytes>> {
        match self.object.meta.size <= WHOLE_BYTES_MAX {
            true => stream::once(self.object.bytes()).boxed(),
            false => self.object.into_stream(),
        }
    }
}

/// A payload on its way out: unpacked piece by piece, however much a piece becomes, and hashed.
pub(super) struct Unpacking {
    hash: PayloadHash,
    decoder: Decoder<'static>,
    buffer: Vec<u8>,
    hasher: blake3::Hasher,
    size_bytes: u64,
}

impl Unpacking {
    pub(super) fn begin(hash: PayloadHash) -> Result<Self, VaultError> {
        let decoder = Decoder::new().map_err(|_| VaultError::Damaged(hash.to_string()))?;
        Ok(Self { hash, decoder, buffer: vec![0; 128 * 1024], hasher: blake3::Hasher::new(), size_bytes: 0 })
    }

    /// The next bytes that come of what is packed; nothing when all of it is used up.
    pub(super) fn next(&mut self, packed: &mut InBuffer<'_>) -> Result<Option<&[u8]>, VaultError> {
        let mut unpacked = OutBuffer::around(self.buffer.as_mut_slice());
        self.decoder.run(packed, &mut unpacked).map_err(|_| VaultError::Damaged(self.hash.to_string()))?;
        let written = unpacked.pos();
        if written == 0 && packed.pos() >= packed.src.len() {
            return Ok(None);
        }
        let bytes = &self.buffer[..written];
        self.hasher.update(bytes);
        self.size_bytes += bytes.len() as u64;
        Ok(Some(bytes))
    }

    pub(super) fn finish(self) -> Result<u64, VaultError> {
        match self.hasher.finalize().as_bytes() == self.hash.as_bytes() {
            true => Ok(self.size_bytes),
            false => Err(VaultError::Damaged(self.hash.to_string())),
        }
    }
}
