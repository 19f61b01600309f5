//! Stands in for `s3` in a build without it: buckets are refused.

use object_store::local::LocalFileSystem;

use super::objects::{Patience, VaultPlace};

/// Refuses the bucket.
pub(super) fn open(_: &url::Url, _: &VaultPlace, _: Patience) -> Result<LocalFileSystem, String> {
    Err("this build has no S3; rebuild with --features s3".to_owned())
}
