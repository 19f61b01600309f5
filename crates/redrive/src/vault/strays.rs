//! Finding what lies under the id of a store, page by page: only names that Redrive writes, and nothing behind a link.
//!
//! Folders are walked here rather than by the object store, which follows links out of the vault and hides what an upload
//! that was killed left behind (`NAME#1`).

use std::collections::VecDeque;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use futures_util::stream::{BoxStream, StreamExt};
use object_store::ObjectMeta;
use redrive_core::payloads::{PayloadPlace, StoreId};
use redrive_core::time::Timestamp;

use super::{Vault, VaultError};

/// Objects in a page of a listing.
const PAGE: usize = 500;

/// Some of what was found, each with when it was last written to.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// Whole files with the name of a payload.
    pub(super) places: Vec<(PayloadPlace, Timestamp)>,
    /// Files of uploads that did not come to their end.
    pub(super) unfinished: Vec<(PathBuf, Timestamp)>,
}

/// What lies under an id; without one, in the layout before stores had ids.
pub(super) struct Strays<'v> {
    vault: &'v Vault,
    store: Option<StoreId>,
    source: Source,
}

enum Source {
    /// Folders that are still to be looked into: one page each.
    Folders(VecDeque<PathBuf>),
    /// Prefixes that are still to be listed, and the listing under way.
    Objects(VecDeque<String>, Option<BoxStream<'static, object_store::Result<ObjectMeta>>>),
}

impl Vault {
    pub(super) fn strays(&self, store: Option<StoreId>) -> Strays<'_> {
        let first_two = || (0..=255_u8).map(|byte| format!("{byte:02x}"));
        let source = match (&self.folder, store) {
            (Some(folder), Some(store)) => {
                let own = folder.join(store.to_string());
                let own = is_real_folder(&own).then_some(own);
                Source::Folders(own.iter().flat_map(|own| first_two().map(move |name| own.join(name))).collect())
            }
            (Some(folder), None) => Source::Folders(first_two().map(|name| folder.join(name)).collect()),
            (None, Some(store)) => Source::Objects([store.to_string()].into(), None),
            (None, None) => Source::Objects(first_two().collect(), None),
        };
        Strays { vault: self, store, source }
    }
}

impl Strays<'_> {
    /// The next page, which may be empty; nothing at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Page>, VaultError> {
        let (vault, store) = (self.vault, self.store);
        match &mut self.source {
            Source::Folders(folders) => {
                let Some(folder) = folders.pop_front() else { return Ok(None) };
                let read = tokio::task::spawn_blocking(move || read_folder(store, &folder)).await;
                let page = read.unwrap_or_else(|error| Err(io::Error::other(error)));
                page.map(Some).map_err(|error| vault.io_failed(error))
            }
            Source::Objects(prefixes, listing) => {
                if listing.is_none() {
                    let Some(prefix) = prefixes.pop_front() else { return Ok(None) };
                    *listing = Some(vault.objects.list(Some(&prefix.into())));
                }
                let mut page = Page::default();
                while let Some(objects) = listing {
                    match objects.next().await.transpose().map_err(|error| vault.objects_failed(error))? {
                        Some(object) => page.places.extend(of_store(store, &object)),
                        None => *listing = None,
                    }
                    if page.places.len() >= PAGE {
                        break;
                    }
                }
                Ok(Some(page))
            }
        }
    }
}

fn of_store(store: Option<StoreId>, object: &ObjectMeta) -> Option<(PayloadPlace, Timestamp)> {
    let place: PayloadPlace = object.location.as_ref().parse().ok()?;
    let written_at = Timestamp::from_millis(object.last_modified.timestamp_millis());
    (place.store == store).then_some((place, written_at))
}

fn is_real_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

fn read_folder(store: Option<StoreId>, folder: &Path) -> io::Result<Page> {
    let mut page = Page::default();
    if !is_real_folder(folder) {
        return Ok(page);
    }
    let inside = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Some(written_at) = written_at(&entry) else { continue };
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let (name, unfinished) = match name.split_once('#') {
            Some((name, digits)) if digits.bytes().all(|digit| digit.is_ascii_digit()) => (name, true),
            Some(_) => continue,
            None => (name.as_str(), false),
        };
        match PayloadPlace::in_folders(store, inside, name) {
            Some(_) if unfinished => page.unfinished.push((entry.path(), written_at)),
            Some(place) => page.places.push((place, written_at)),
            None => {}
        }
    }
    Ok(page)
}

/// When a file was last written to; nothing of what is not a file, or has gone.
fn written_at(entry: &DirEntry) -> Option<Timestamp> {
    let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
    let since = metadata.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}
