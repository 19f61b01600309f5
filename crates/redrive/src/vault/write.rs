//! Writing packed bytes to their place in the vault. They are read from disk on threads of their own, so that a slow disk stops
//! nobody else; an upload in parts that does not come to its end, for whatever reason, is aborted.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use object_store::{MultipartUpload, ObjectStoreExt, PutPayload, UploadPart};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::capture::Packed;
use super::{Vault, VaultError};

/// How much of a file is in memory in one piece while it is uploaded, in bytes.
const PART_BYTES: usize = 5 * 1024 * 1024;

/// Parts that are on their way at once.
const PARTS_MAX: usize = 2;

impl Vault {
    /// Writes a payload to a place; larger ones in parts.
    pub(super) async fn write(&self, place: &str, packed: &Packed) -> Result<(), VaultError> {
        if packed.stored_bytes > PART_BYTES as u64 {
            return self.write_parts(place, packed).await;
        }
        let bytes = self.read_part(packed, 0).await?;
        let put = self.objects.put(&place.into(), PutPayload::from(bytes)).await;
        put.map(drop).map_err(|error| self.objects_failed(error))
    }

    async fn write_parts(&self, place: &str, packed: &Packed) -> Result<(), VaultError> {
        let begun = self.objects.put_multipart(&place.into()).await.map_err(|error| self.objects_failed(error))?;
        let mut upload = Upload(Some(begun));
        let (mut on_their_way, mut from) = (JoinSet::new(), 0);
        loop {
            let bytes = self.read_part(packed, from).await?;
            if bytes.is_empty() {
                break;
            }
            from += bytes.len() as u64;
            if on_their_way.len() >= PARTS_MAX {
                self.arrived(on_their_way.join_next().await)?;
            }
            if let Some(part) = upload.put(bytes) {
                on_their_way.spawn(part);
            }
        }
        while let Some(part) = on_their_way.join_next().await {
            self.arrived(Some(part))?;
        }
        upload.complete().await.map_err(|error| self.objects_failed(error))
    }

    fn arrived(
        &self,
        part: Option<Result<object_store::Result<()>, tokio::task::JoinError>>,
    ) -> Result<(), VaultError> {
        match part {
            Some(Ok(sent)) => sent.map_err(|error| self.objects_failed(error)),
            Some(Err(panic)) => Err(self.io_failed(io::Error::other(panic))),
            None => Ok(()),
        }
    }

    /// Reads the next part of a file. By its offset: whoever gave up waiting may have left a read under way.
    async fn read_part(&self, packed: &Packed, from: u64) -> Result<Vec<u8>, VaultError> {
        let file = packed.file.try_clone().map_err(|error| self.io_failed(error))?;
        let length = usize::try_from(packed.stored_bytes.saturating_sub(from)).unwrap_or(PART_BYTES).min(PART_BYTES);
        self.on_disk(move || read_at(&file, from, length)).await
    }

    /// Does something with the local disk, on a thread that may wait for it.
    pub(super) async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, VaultError> {
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|panic| Err(io::Error::other(panic))).map_err(|error| self.io_failed(error))
    }

    /// Waits so long for the vault and no longer.
    pub(super) async fn within<T>(
        &self,
        patience: Duration,
        work: impl Future<Output = Result<T, VaultError>>,
    ) -> Result<T, VaultError> {
        let done = tokio::time::timeout(patience, work).await;
        done.unwrap_or_else(|_| Err(VaultError::NoAnswer { address: self.address.to_string(), patience }))
    }
}

/// So many bytes from there; an error if the file has become shorter.
fn read_at(file: &File, from: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}

/// An upload in parts. If it is dropped before it is complete, because of an error or because nobody waits any longer, its
/// parts are removed from the vault. A process that is killed cannot do that: the bucket's own rule must.
struct Upload(Option<Box<dyn MultipartUpload>>);

impl Upload {
    fn put(&mut self, bytes: Vec<u8>) -> Option<UploadPart> {
        self.0.as_mut().map(|parts| parts.put_part(PutPayload::from(bytes)))
    }

    async fn complete(mut self) -> object_store::Result<()> {
        if let Some(parts) = &mut self.0 {
            parts.complete().await?;
        }
        self.0 = None;
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let (Some(mut parts), Ok(runtime)) = (self.0.take(), Handle::try_current()) else { return };
        runtime.spawn(async move {
            if let Err(error) = parts.abort().await {
                tracing::debug!(%error, "an upload in parts that was given up could not be aborted");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;
    use object_store::PutResult;

    use super::*;

    /// Parts that go nowhere; counts how often they were aborted.
    #[derive(Debug)]
    struct Parts(Arc<AtomicU32>);

    #[async_trait]
    impl MultipartUpload for Parts {
        fn put_part(&mut self, _: PutPayload) -> UploadPart {
            Box::pin(std::future::pending())
        }

        async fn complete(&mut self) -> object_store::Result<PutResult> {
            Ok(PutResult { e_tag: None, version: None, extensions: Default::default() })
        }

        async fn abort(&mut self) -> object_store::Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    #[tokio::test]
    async fn an_upload_that_nobody_waits_for_is_aborted() {
        let aborted = Arc::new(AtomicU32::new(0));
        let begin = || Upload(Some(Box::new(Parts(Arc::clone(&aborted)))));
        begin().complete().await.expect("complete");
        tokio::task::yield_now().await;
        assert_eq!(aborted.load(Ordering::Relaxed), 0, "it is where it should be");
        let mut stuck = begin();
        let waiting = async move {
            let part = stuck.put(vec![1]).expect("a part");
            part.await
        };
        tokio::time::timeout(Duration::from_millis(1), waiting).await.expect_err("given up");
        tokio::task::yield_now().await;
        assert_eq!(aborted.load(Ordering::Relaxed), 1);
    }
}
