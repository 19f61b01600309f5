//! The spool: payloads on their way to a vault that is away. A folder beside the store, readable by its owner only; each file
//! is flushed, and its folder too, before it counts as kept.
//!
//! A file has the name that it will have in the vault, `HASH-SALT.zst`. `uploader` empties it.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use redrive_core::payloads::PayloadPlace;
use redrive_core::time::Timestamp;

/// What it may hold unless something else is said, in bytes.
pub const SPOOL_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// How long a count of what it holds is believed; other processes fill and empty it, too.
const COUNT_LASTS: Duration = Duration::from_secs(2);

/// How long a file that could not be brought to the vault for a reason of its own is left alone.
const BAD_LASTS: Duration = Duration::from_secs(60);

/// The ending of a file that is being written.
const UNFINISHED: &str = ".part";

/// A spool. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Spool {
    folder: Arc<Path>,
    bytes_max: u64,
    counted: Arc<Mutex<Option<(Instant, u64)>>>,
    /// Files that could not be brought to the vault for a reason of their own, and when.
    bad: Arc<Mutex<HashMap<PathBuf, Instant>>>,
}

/// What waits in a spool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spooled {
    /// Payloads.
    pub payloads: u64,
    /// What they take, packed.
    pub bytes: u64,
}

/// A file of the spool.
#[derive(Debug)]
pub(super) struct SpoolFile {
    pub(super) path: PathBuf,
    /// Where it will lie, but for the store, which its row knows; nothing for one that was not finished.
    pub(super) place: Option<PayloadPlace>,
    pub(super) bytes: u64,
    pub(super) written: SystemTime,
}

impl SpoolFile {
    pub(super) fn written_at(&self) -> Timestamp {
        let since = self.written.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(0) + since
    }
}

/// Why a payload could not be spooled.
#[derive(Debug)]
pub(super) enum Refused {
    /// There is no room for it.
    Full { bytes: u64 },
    /// The disk said no.
    Io(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Spool {
    /// The spool of the store in this file: the folder `FILE-spool`.
    pub fn beside(store: &Path, bytes_max: u64) -> Self {
        let store = store.canonicalize().unwrap_or_else(|_| store.to_owned());
        let mut folder = store.into_os_string();
        folder.push("-spool");
        Self { folder: PathBuf::from(folder).into(), bytes_max, counted: Arc::default(), bad: Arc::default() }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it may hold, in bytes.
    pub const fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// What waits in it.
    pub fn waiting(&self) -> io::Result<Spooled> {
        let files = self.files()?;
        let bytes = files.iter().map(|file| file.bytes).sum();
        Ok(Spooled { payloads: files.iter().filter(|file| file.place.is_some()).count() as u64, bytes })
    }

    pub(super) fn path(&self, place: &PayloadPlace) -> PathBuf {
        self.folder.join(place.file_name())
    }

    /// Takes a packed payload in. When this returns it survives a loss of power.
    pub(super) fn put(&self, place: &PayloadPlace, mut packed: &File, bytes: u64) -> Result<(), Refused> {
        let held = self.held()?;
        if held.saturating_add(bytes) > self.bytes_max {
            return Err(Refused::Full { bytes: held });
        }
        self.make_folder()?;
        let path = self.path(place);
        let unfinished = self.folder.join(place.file_name() + UNFINISHED);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        packed.seek(SeekFrom::Start(0))?;
        let written = io::copy(&mut packed, &mut file).and_then(|_| file.sync_all());
        let named = written.and_then(|()| fs::rename(&unfinished, &path)).and_then(|()| sync_folder(&self.folder));
        if let Err(error) = named {
            let _ = fs::remove_file(&unfinished);
            return Err(error.into());
        }
        self.note(bytes);
        Ok(())
    }

    /// Removes a payload that is in the vault, or that nobody wants.
    pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => {
                *self.counted.lock().unwrap_or_else(PoisonError::into_inner) = None;
                Ok(())
            }
        }
    }

    /// All files that a spool writes, oldest first.
    pub(super) fn files(&self) -> io::Result<Vec<SpoolFile>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            let whole = name.strip_suffix(UNFINISHED).unwrap_or(&name);
            let Some(place) = PayloadPlace::in_folders(None, whole.get(..2).unwrap_or_default(), whole) else {
                continue;
            };
            // One that has gone meanwhile is nothing to complain about.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_file() {
                let place = (whole == name).then_some(place);
                files.push(SpoolFile {
                    path: entry.path(),
                    place,
                    bytes: metadata.len(),
                    written: metadata.modified()?,
                });
            }
        }
        files.sort_by_key(|file| file.written);
        Ok(files)
    }

    pub(super) fn is_bad(&self, file: &SpoolFile) -> bool {
        let bad = self.bad.lock().unwrap_or_else(PoisonError::into_inner);
        bad.get(&file.path).is_some_and(|since| since.elapsed() < BAD_LASTS)
    }

    /// Notes that a file cannot be brought to the vault.
    pub(super) fn note_bad(&self, file: &SpoolFile) {
        self.bad.lock().unwrap_or_else(PoisonError::into_inner).insert(file.path.clone(), Instant::now());
    }

    /// The right to empty it, which one process has at a time; the operating system takes it back however that one ends.
    pub(super) fn lock(&self) -> io::Result<Option<File>> {
        let path = self.folder.join("upload.lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        Ok(file.try_lock().is_ok().then_some(file))
    }

    /// What it holds, as far as that was counted lately.
    fn held(&self) -> io::Result<u64> {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        match *counted {
            Some((at, bytes)) if at.elapsed() < COUNT_LASTS => Ok(bytes),
            _ => {
                let bytes = self.files()?.iter().map(|file| file.bytes).sum();
                *counted = Some((Instant::now(), bytes));
                Ok(bytes)
            }
        }
    }

    fn note(&self, added: u64) {
        if let Some((_, bytes)) = self.counted.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            *bytes += added;
        }
    }

    fn make_folder(&self) -> io::Result<()> {
        if self.folder.is_dir() {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        self.folder.parent().map_or(Ok(()), sync_folder)
    }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
