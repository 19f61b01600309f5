//! Taking payloads over from the vault of another store, as they lie there: checked on their way, never whole in memory.

use std::fs::File;
use std::io::{self, Write};

use futures_util::StreamExt;
use object_store::ObjectStoreExt;
use redrive_core::payloads::{Payload, PayloadPlace};
use zstd::stream::raw::InBuffer;

use super::capture::Packed;
use super::read::Unpacking;
use super::{Vault, VaultError};

/// A payload that was brought.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brought {
    /// What it takes in the vault.
    pub(crate) bytes: u64,
}

impl Vault {
    /// Whether so many bytes lie at a place.
    pub(crate) async fn has(&self, place: &PayloadPlace, stored_bytes: u64) -> Result<bool, VaultError> {
        match self.objects.head(&place.to_string().into()).await {
            Ok(found) => Ok(found.size == stored_bytes),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.objects_failed(error)),
        }
    }

    /// Brings a payload of another vault to a place in this one. Nothing is written unless its bytes are what they were.
    pub(crate) async fn take_over(&self, from: &Self, to: &PayloadPlace) -> Result<Brought, VaultError> {
        let mut stream = from.object(to.hash).await?.into_stream();
        let mut unpacked = Unpacking::begin(to.hash)?;
        let (mut file, mut bytes) = (self.on_disk(tempfile::tempfile).await?, 0);
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|error| from.objects_failed(error))?;
            let mut rest = InBuffer::around(&chunk);
            while unpacked.next(&mut rest)?.is_some() {}
            bytes += chunk.len() as u64;
            file = self.on_disk(move || append(file, &chunk)).await?;
        }
        unpacked.finish()?;
        let packed = Packed { payload: Payload::bare(to.hash, 0), stored_bytes: bytes, file };
        self.write(&to.to_string(), &packed).await?;
        Ok(Brought { bytes })
    }
}

fn append(mut file: File, bytes: &[u8]) -> io::Result<File> {
    file.write_all(bytes)?;
    Ok(file)
}
