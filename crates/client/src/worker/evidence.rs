//! What a job worked on, on its way to a server: with the settlement if it is short, else uploaded before it, under its SHA-256.

use std::path::Path;

use data_encoding::{BASE64, HEXLOWER};
use redrive::leases::{BroughtBytes, BroughtPayload};
use redrive::{Error, ErrorKind};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use crate::server::Server;

/// The longest payload that goes with a settlement, in bytes.
const INLINE_BYTES_MAX: u64 = 256 * 1024;

/// The most of a payload that a server takes, in bytes.
const UPLOAD_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What is read at once, in bytes.
const PIECE: usize = 256 * 1024;

/// What a job worked on, as it is told with its settlement. Nothing if a server cannot keep it: it has no vault.
pub(super) async fn told(server: &Server, payload: BroughtPayload) -> Result<Option<Value>, Error> {
    let BroughtPayload { bytes: BroughtBytes::Here(capture), response, total_bytes } = payload else {
        return Ok(None);
    };
    let unread = |error: std::io::Error| Error::Internal(format!("what a task worked on cannot be read: {error}"));
    let folder = tempfile::tempdir().map_err(unread)?;
    let path = folder.path().join("payload");
    let came = capture.write_to(path.clone()).await.map_err(unread)?;
    let kept = tokio::fs::metadata(&path).await.map_err(unread)?.len();
    let sent = kept.min(UPLOAD_BYTES_MAX);
    let total = Some(total_bytes.unwrap_or(0).max(came)).filter(|total| *total > sent);
    let mut told =
        json!({ "status": response.status, "headers": response.headers, "url": response.url, "total_bytes": total });
    if kept <= INLINE_BYTES_MAX {
        told["base64"] = BASE64.encode(&tokio::fs::read(&path).await.map_err(unread)?).into();
        return Ok(Some(told));
    }
    let sha256 = hashed(&path, sent).await.map_err(unread)?;
    match server.upload(&sha256, (&path, sent)).await {
        Ok(()) => {
            told["sha256"] = sha256.into();
            Ok(Some(told))
        }
        Err(error) if error.kind() == ErrorKind::Missing => {
            tracing::warn!(%error, "what a task worked on is not kept");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The SHA-256 of the beginning of a file, in hexadecimal digits.
async fn hashed(path: &Path, bytes: u64) -> std::io::Result<String> {
    let (mut file, mut hasher) = (File::open(path).await?.take(bytes), Sha256::new());
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece).await? {
            0 => return Ok(HEXLOWER.encode(&hasher.finalize())),
            read => hasher.update(&piece[..read]),
        }
    }
}
