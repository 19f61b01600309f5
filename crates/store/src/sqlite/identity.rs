//! Identity of the files of a store: the database, its write-ahead log and the index of the log.
//!
//! A file that is removed or replaced while it is open goes on taking writes, but nobody will ever find them. So every transaction
//! checks, before it is answered, that the open files are the ones at their paths. SQLite finds the log by the name of the file, so
//! a file that has two names would have two logs, and a log stays behind when another file is moved to its place: both are refused.

use std::fs::Metadata;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};

use super::presence::WORKERS;
use super::view::{beside, has_log};
use crate::error::{Result, StoreError};

/// The files of a store as they were when it was opened. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Identity(Arc<[(PathBuf, Number)]>);

/// Device and inode.
type Number = (u64, u64);

impl Identity {
    /// Remembers the file, its log and the index of the log, all of which are open.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let files = [path.clone(), beside(&path, "-wal"), beside(&path, "-shm")];
        files.into_iter().map(numbered).collect::<io::Result<_>>().map(Self)
    }

    /// Remembers the file alone, of a store that is only read.
    pub(super) fn of_file(path: &Path) -> io::Result<Self> {
        Ok(Self([numbered(path.to_owned())?].into()))
    }

    /// For a store that has no file.
    pub(super) fn none() -> Self {
        Self([].into())
    }

    /// Returns an error if another file, or none, is at one of the paths by now.
    pub(super) fn check(&self) -> Result<()> {
        for (path, number) in self.0.iter() {
            match std::fs::metadata(path) {
                Ok(found) if number_of(&found) == *number => {}
                // A disk that is away for a moment is told by whoever reads or writes.
                Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
                _ => return Err(StoreError::Gone { place: path.display().to_string() }),
            }
        }
        Ok(())
    }
}

fn numbered(path: PathBuf) -> io::Result<(PathBuf, Number)> {
    let number = number_of(&std::fs::metadata(&path)?);
    Ok((path, number))
}

fn number_of(found: &Metadata) -> Number {
    (found.dev(), found.ino())
}

/// A connection to a store in a file.
///
/// SQLite copies the log into the file when the last connection closes. If one of the two was taken away, that would write over
/// whatever others have put there since, so such a connection leaves the file as it is.
pub(super) struct Guarded {
    conn: Connection,
    identity: Identity,
}

impl Guarded {
    pub(super) const fn new(conn: Connection, identity: Identity) -> Self {
        Self { conn, identity }
    }
}

impl Deref for Guarded {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.conn
    }
}

impl DerefMut for Guarded {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.conn
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if self.identity.check().is_err()
            && let Err(error) = self.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        {
            tracing::error!(%error, "a store whose files were taken away may be damaged when it is closed");
        }
    }
}

/// Refuses a file whose log could not be found by all who use it, or beside which the log of another file is.
pub(super) fn refuse(path: &Path) -> Result<()> {
    let Ok(found) = std::fs::metadata(path) else { return Ok(()) };
    let why = if found.nlink() > 1 {
        let names = found.nlink();
        format!("the file has {names} names (hard links), and each would have a log of its own: remove all but one")
    } else if is_mounted(path) {
        "the file is mounted without its folder, where its log goes: mount the folder, not the file".to_owned()
    } else if let Some(log) = foreign_log(path, &found) {
        format!("{} belongs to another file that was here before: move it away, or put that file back", log.display())
    } else {
        return Ok(());
    };
    Err(StoreError::Unsafe { place: path.display().to_string(), why })
}

/// Whether a file is a mount point itself. False where the system does not tell.
fn is_mounted(path: &Path) -> bool {
    let found = statx(CWD, path, AtFlags::empty(), StatxFlags::empty());
    found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Returns the log beside a file if it has anything in it and was last seen beside another file.
fn foreign_log(path: &Path, found: &Metadata) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    let log = beside(&path, "-wal");
    let (file, noted) = std::fs::read_to_string(note(&path)).ok().and_then(|text| parse_note(&text))?;
    let is_same_log = has_log(&path) && std::fs::metadata(&log).is_ok_and(|log| log.ino() == noted);
    (is_same_log && file != found.ino()).then_some(log)
}

/// Notes which log belongs to which file, both by their inodes, in the folder of its workers.
pub(super) fn note_log(path: &Path) -> io::Result<()> {
    let path = path.canonicalize()?;
    let folder = beside(&path, WORKERS);
    let (file, log) = (std::fs::metadata(&path)?.ino(), std::fs::metadata(beside(&path, "-wal"))?.ino());
    let (text, place) = (format!("{file} {log}\n"), note(&path));
    if std::fs::read_to_string(&place).is_ok_and(|noted| noted == text) {
        return Ok(());
    }
    std::fs::create_dir_all(&folder)?;
    let fresh = tempfile::NamedTempFile::new_in(folder)?;
    std::fs::write(fresh.path(), text)?;
    fresh.persist(place)?;
    Ok(())
}

fn note(path: &Path) -> PathBuf {
    beside(path, WORKERS).join("log")
}

fn parse_note(text: &str) -> Option<(u64, u64)> {
    let (file, log) = text.trim().split_once(' ')?;
    Some((file.parse().ok()?, log.parse().ok()?))
}
