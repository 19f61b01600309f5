//! An empty file is a new store, unless something is left of an old one: then it was cut to nothing, by a disk or by hand,
//! and to begin anew would destroy the rest. SQLite itself deletes the write-ahead log of an empty file.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use redrive_core::payloads::PayloadPlace;

use super::presence::WORKERS;
use super::schema;
use super::view::{beside, has_log};
use crate::error::{Result, StoreError};
use crate::location;

/// Entries of a vault that are looked at.
const LOOKED_AT_MAX: usize = 10_000;

/// How deep in a vault payloads lie.
const DEPTH_MAX: usize = 3;

/// It is an error if the file is empty, or not there, and something is left of the store that it was.
pub(super) fn refuse(path: &Path) -> Result<()> {
    let (state, left) = match std::fs::metadata(path) {
        Ok(found) if found.is_file() && found.len() == 0 => {
            ("empty", log(path).or_else(|| workers(path)).or_else(|| vault(path)))
        }
        // Whoever removes a store to begin anew may keep its payloads.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => ("missing", log(path)),
        _ => return Ok(()),
    };
    match left {
        Some(left) => Err(StoreError::Emptied {
            way_out: way_out(path, &left),
            place: path.display().to_string(),
            state,
            left: left.display().to_string(),
        }),
        None => Ok(()),
    }
}

/// A file that is not there is a new store unless it has a log: without the empty file there is nothing in the way.
fn way_out(path: &Path, left: &Path) -> &'static str {
    match left == beside(path, "-wal") {
        true => "move the rest away",
        false => "remove the empty file to begin anew beside what is left",
    }
}

fn log(path: &Path) -> Option<PathBuf> {
    has_log(path).then(|| beside(path, "-wal"))
}

fn workers(path: &Path) -> Option<PathBuf> {
    Some(beside(path, WORKERS)).filter(|folder| folder.is_dir())
}

/// The folder of payloads beside the store, if it has any and no other store beside it can have put them there.
fn vault(path: &Path) -> Option<PathBuf> {
    if has_neighbour(path) {
        return None;
    }
    let folder = location::payloads_beside(path);
    let mut looked_at = 0;
    has_payload(&folder, DEPTH_MAX, &mut looked_at).then_some(folder)
}

/// Whether there is another store in the same folder: their payloads lie in the same one.
fn has_neighbour(path: &Path) -> bool {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let is_file = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    entries.flatten().take(LOOKED_AT_MAX).any(|entry| is_file(&entry) && schema::is_marked(&entry.path()))
}

fn has_payload(folder: &Path, depth: usize, looked_at: &mut usize) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        *looked_at += 1;
        let within = *looked_at <= LOOKED_AT_MAX;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        within
            && if is_folder {
                depth > 1 && has_payload(&entry.path(), depth - 1, looked_at)
            } else {
                is_payload(&entry.path())
            }
    })
}

/// Whether a file is where payloads are put, and named as they are.
fn is_payload(path: &Path) -> bool {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = path.parent().map(name).unwrap_or_default();
    PayloadPlace::in_folders(None, &folder, &name(path)).is_some()
}
