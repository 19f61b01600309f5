//! Payloads that programs uploaded before the letters that refer to them, by the hash that those know.

use async_trait::async_trait;
use redrive_core::ids::PipelineName;
use redrive_core::payloads::PayloadHash;
use redrive_core::time::Timestamp;

use crate::error::Result;

/// Uploads, with who brought them and which pipelines use them: a hash must not tell anybody what others have.
#[async_trait]
pub trait UploadStore {
    /// Notes under which hash somebody knows a payload that is registered, and forgets what was noted long ago.
    async fn note_upload(&self, params: NoteUpload) -> Result<()>;

    /// The payload that was uploaded under a hash, if it is still registered.
    async fn find_upload(&self, sha256: Sha256) -> Result<Option<Upload>>;
}

/// A hash as other programs make it.
pub type Sha256 = [u8; 32];

/// Notes an upload.
#[derive(Clone, Debug)]
pub struct NoteUpload {
    /// Who brought it.
    pub who: String,
    /// The hash by which they know it.
    pub sha256: Sha256,
    /// The payload.
    pub hash: PayloadHash,
    /// What was noted before this time is forgotten.
    pub forget_before: Timestamp,
    /// The time.
    pub now: Timestamp,
}

/// A payload that was uploaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// The payload.
    pub hash: PayloadHash,
    /// Its length.
    pub size_bytes: u64,
    /// Who brought it lately.
    pub brought_by: Vec<String>,
    /// The pipelines of the jobs that refer to it.
    pub used_by: Vec<PipelineName>,
}
