//! Making a store of a backup: unpacked beside its place, payload by payload into the folder of the vault, and only then given its
//! name. Killed in the middle it leaves no store, and what it unpacked is written over the next time.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use redrive_core::actors::Actor;
use redrive_core::payloads::{PayloadPlace, StoreId};
use serde::de::DeserializeOwned;
use tar::{Archive, Entry};
use tempfile::NamedTempFile;

use super::archive::{END, End, FORMAT, HEAD, Head, PAYLOADS, STORE};
use super::{BackedUp, BackupError, NAMED_MAX};
use crate::config::Setting;
use crate::error::Error;
use crate::vault::Vault;

/// The longest of the texts in a backup, in bytes.
const TEXT_BYTES_MAX: u64 = 1024 * 1024;

const MIB: u64 = 1024 * 1024;

impl Setting {
    /// Makes the store that the setting names, and its payloads, of a backup. There must be no store yet. `shown` hears how many MiB of
    /// how many are read.
    pub async fn restore(
        &self,
        from: &Path,
        by: &Actor,
        shown: impl FnMut(u64, u64) + Send + 'static,
    ) -> Result<BackedUp, Error> {
        let not_in_a_file = || BackupError::NotInAFile { place: self.location.to_string() };
        let store = self.location.file().ok_or_else(not_in_a_file)?;
        refuse_taken(store)?;
        let vault = self.vault_place()?.ok_or_else(not_in_a_file)?;
        let unpack = Unpack {
            from: from.to_owned(),
            store: store.to_owned(),
            vault: vault.folder().map(Path::to_owned),
            shown_vault: vault.shown(),
        };
        let unpacked = tokio::task::spawn_blocking(move || unpack.run(shown)).await;
        let unpacked = unpacked.map_err(|error| Error::Internal(error.to_string()))??;

        let redrive = match self.redrive_existing().await {
            Ok(redrive) => redrive,
            Err(error) => {
                // What cannot be opened is not left where a store is looked for.
                let _ = fs::remove_file(store);
                return Err(error);
            }
        };
        let vault = self.vault(&redrive)?.ok_or_else(not_in_a_file)?;
        if unpacked.is_alone {
            vault.adopt(by).await?;
        }
        // Their workers were of another time.
        redrive.give_back_leases().await?;
        let audit = redrive.store().audit().await?;
        let tasks = audit.pipelines.iter().map(|audited| u64::try_from(audited.counted.accepted).unwrap_or(0)).sum();
        let mut restored = BackedUp {
            tasks,
            problems: audit.problems,
            bytes: unpacked.bytes,
            vault: unpacked.head.vault,
            ..BackedUp::default()
        };
        if tasks != unpacked.end.tasks {
            restored.problems.push(format!("the backup had {} tasks, {tasks} are restored", unpacked.end.tasks));
        }
        if restored.vault.is_none() {
            verify(&redrive, &vault, &unpacked.end, &mut restored).await?;
        }
        Ok(restored)
    }
}

async fn verify(redrive: &crate::Redrive, vault: &Vault, end: &End, restored: &mut BackedUp) -> Result<(), Error> {
    let mut named = Vec::new();
    let verified = redrive.verify_payloads(vault, &[], |error| {
        if named.len() < NAMED_MAX {
            named.push(error.to_string());
        }
    });
    let verified = verified.await?;
    let (broken, known) = (verified.broken + verified.elsewhere, end.broken);
    restored.payloads = verified.whole;
    restored.problems.append(&mut named);
    if broken > 0 {
        restored.problems.push(format!("{broken} payloads are not whole; {known} were not when the backup was made"));
    }
    Ok(())
}

fn refuse_taken(store: &Path) -> Result<(), BackupError> {
    let mut log = store.as_os_str().to_owned();
    log.push("-wal");
    let way_out = "move it away, or restore to another place with --store sqlite:PATH";
    match [store.to_owned(), log.into()].into_iter().find(|path: &PathBuf| path.symlink_metadata().is_ok()) {
        Some(path) => Err(BackupError::Taken { path, way_out }),
        None => Ok(()),
    }
}

/// What was read from a backup.
struct Unpacked {
    head: Head,
    end: End,
    bytes: u64,
    /// Whether the vault had nothing yet under the ids that the payloads lie under: no other store uses them.
    is_alone: bool,
}

/// A backup, and where what is in it goes.
struct Unpack {
    from: PathBuf,
    store: PathBuf,
    vault: Option<PathBuf>,
    shown_vault: String,
}

impl Unpack {
    fn run(&self, mut shown: impl FnMut(u64, u64)) -> Result<Unpacked, BackupError> {
        let unread = |error| BackupError::io("read", &self.from)(error);
        let file = File::open(&self.from).map_err(unread)?;
        let bytes = file.metadata().map_err(unread)?.len();
        let mut archive = Archive::new(BufReader::new(file));
        let mut entries = archive.entries().map_err(unread)?;
        let mut next = || match entries.next().transpose() {
            Ok(entry) => Ok(entry),
            Err(error) => Err(self.not_whole(&error.to_string())),
        };

        let head = next()?.ok_or_else(|| self.not_whole("it is empty"))?;
        let head: Head = self.text(head, HEAD)?;
        if head.format > FORMAT {
            return Err(self.not_whole(&format!("redrive {} made it, which is newer: upgrade", head.redrive)));
        }
        let cut = || self.not_whole("its end is missing");
        let folder = self.folder()?;
        let mut store = NamedTempFile::new_in(&folder).map_err(BackupError::io("write to", &folder))?;
        let mut entry = next()?.ok_or_else(cut)?;
        self.expect(&entry, STORE)?;
        self.copy(&mut entry, store.as_file_mut(), &self.store)?;

        let (mut ids, mut is_alone) = (BTreeSet::new(), true);
        let end = loop {
            let mut entry = next()?.ok_or_else(cut)?;
            let name = self.name(&entry)?;
            let Some(place) = name.strip_prefix(PAYLOADS) else { break self.text(entry, END)? };
            let place: PayloadPlace = place.parse().map_err(|error| self.not_whole(&format!("{error}")))?;
            let vault =
                self.vault.clone().ok_or_else(|| BackupError::VaultNotAFolder { vault: self.shown_vault.clone() })?;
            if ids.insert(place.store) && is_there(&vault, place.store) {
                is_alone = false;
            }
            self.payload(&mut entry, &vault.join(place.to_string()))?;
            shown(entry.raw_file_position() / MIB, bytes / MIB);
        };
        self.keep(store)?;
        Ok(Unpacked { head, end, bytes, is_alone })
    }

    /// The folder that the store is made in.
    fn folder(&self) -> Result<PathBuf, BackupError> {
        let folder = self.store.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(BackupError::io("make", folder))?;
        Ok(folder.to_owned())
    }

    /// Unpacks a payload. It may be there: then it is the same, or was not finished.
    fn payload(&self, entry: &mut Entry<'_, impl Read>, to: &Path) -> Result<(), BackupError> {
        let folder = to.parent().unwrap_or(to);
        fs::create_dir_all(folder).map_err(BackupError::io("make", folder))?;
        let mut file = NamedTempFile::new_in(folder).map_err(BackupError::io("write to", folder))?;
        self.copy(entry, file.as_file_mut(), to)?;
        file.persist(to).map_err(|failed| BackupError::io("write", to)(failed.error))?;
        Ok(())
    }

    /// Gives the store its name, once all that it refers to is on disk.
    fn keep(&self, store: NamedTempFile) -> Result<(), BackupError> {
        let unwritten = |error: io::Error| BackupError::io("write", &self.store)(error);
        if let Some(vault) = self.vault.as_deref().filter(|vault| vault.is_dir()) {
            let sync = File::open(vault).and_then(|folder| Ok(rustix::fs::syncfs(&folder)?));
            sync.map_err(BackupError::io("write to", vault))?;
        }
        store.as_file().sync_all().map_err(unwritten)?;
        match store.persist_noclobber(&self.store) {
            Ok(_) => {}
            Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => return refuse_taken(&self.store),
            Err(failed) => return Err(unwritten(failed.error)),
        }
        let folder = self.folder()?;
        File::open(&folder).and_then(|folder| folder.sync_all()).map_err(BackupError::io("write to", &folder))
    }

    /// Reads all of an entry into a file; what is cut short is an error.
    fn copy(&self, entry: &mut Entry<'_, impl Read>, file: &mut File, to: &Path) -> Result<(), BackupError> {
        let bytes = entry.size();
        let mut read = Remembering { from: entry, failed: None };
        match io::copy(&mut read, file) {
            Ok(copied) if copied == bytes => Ok(()),
            Ok(_) => Err(self.not_whole("it ends in the middle")),
            Err(error) => Err(match read.failed {
                Some(why) => self.not_whole(&why),
                None => BackupError::io("write", to)(error),
            }),
        }
    }

    fn text<T: DeserializeOwned>(&self, entry: Entry<'_, impl Read>, name: &str) -> Result<T, BackupError> {
        self.expect(&entry, name)?;
        serde_json::from_reader(entry.take(TEXT_BYTES_MAX)).map_err(|error| self.not_whole(&format!("{name}: {error}")))
    }

    fn expect(&self, entry: &Entry<'_, impl Read>, name: &str) -> Result<(), BackupError> {
        let found = self.name(entry)?;
        match found == name {
            true => Ok(()),
            false => Err(self.not_whole(&format!("{name} is expected, and {found:?} is there"))),
        }
    }

    /// The name of an entry, which must be a file.
    fn name(&self, entry: &Entry<'_, impl Read>) -> Result<String, BackupError> {
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        match entry.header().entry_type().is_file() {
            true => Ok(name),
            false => Err(self.not_whole(&format!("{name:?} is not a file"))),
        }
    }

    fn not_whole(&self, why: &str) -> BackupError {
        BackupError::NotWhole { path: self.from.clone(), why: why.to_owned() }
    }
}

/// Whether a vault has anything under the id of a store.
fn is_there(vault: &Path, store: Option<StoreId>) -> bool {
    store.is_none_or(|store| vault.join(store.to_string()).symlink_metadata().is_ok())
}

/// Remembers that it was reading that failed, not writing.
struct Remembering<R> {
    from: R,
    failed: Option<String>,
}

impl<R: Read> Read for Remembering<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.from.read(buffer).inspect_err(|error| self.failed = Some(error.to_string()))
    }
}
