//! Writing a backup while the store is in use: a snapshot of the store first, then the payloads that the snapshot knows.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redrive_core::payloads::PayloadPlace;
use redrive_core::time::Timestamp;
use redrive_store::contract::{ListPayloads, PayloadView};
use redrive_store::{Location, Options};
use tempfile::NamedTempFile;

use super::archive::{END, End, FORMAT, HEAD, Head, PAYLOADS, STORE};
use super::{BackedUp, BackupError, NAMED_MAX};
use crate::Redrive;
use crate::config::Setting;
use crate::error::Error;
use crate::vault::{Vault, VaultError};

/// Payloads that are listed at once.
const PAGE: u32 = 500;

impl Setting {
    /// Writes the store, and the payloads if the vault is a folder, to an archive. Others go on meanwhile; it has what was there when
    /// it began. `shown` hears how many payloads of how many are in it.
    pub async fn back_up(&self, to: &Path, force: bool, mut shown: impl FnMut(u64, u64)) -> Result<BackedUp, Error> {
        let not_in_a_file = || BackupError::NotInAFile { place: self.location.to_string() };
        self.location.file().ok_or_else(not_in_a_file)?;
        let taken =
            || BackupError::Taken { path: to.to_owned(), way_out: "name another file, or write over it with --force" };
        if !force && to.symlink_metadata().is_ok() {
            return Err(taken().into());
        }
        let source = self.redrive_existing().await?;
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let beside = || NamedTempFile::new_in(folder).map_err(BackupError::io("write to", folder));
        let snapshot = beside()?;
        // What the snapshot knows is there until the end.
        let _held = match self.vault(&source)? {
            Some(vault) => vault.hold_payloads().await?,
            None => None,
        };
        source.store().snapshot(snapshot.path()).await?;

        let vault = self.vault(&source)?;
        let elsewhere = vault.as_ref().filter(|vault| vault.folder().is_none()).map(|vault| vault.address().to_owned());
        let head = Head {
            format: FORMAT,
            redrive: env!("CARGO_PKG_VERSION").to_owned(),
            made_at: source.now(),
            vault: elsewhere.clone(),
        };
        let mut archive = Archive::begin(to, beside()?, head, snapshot.path()).await?;

        // What was copied is what is looked at: the archive has it already, as it was.
        let place = Location::sqlite(snapshot.path()).to_string();
        let copy = Redrive::over(redrive_store::open(&place, Options::default()).await?);
        let audit = copy.store().audit().await?;
        let tasks = audit.pipelines.iter().map(|audited| u64::try_from(audited.counted.accepted).unwrap_or(0)).sum();
        let (mut end, mut problems) = (End { tasks, ..End::default() }, audit.problems);
        if let Some(vault) = self.vault(&copy)?.filter(|_| elsewhere.is_none()) {
            let mut payloads = Payloads { vault, end: &mut end, problems: &mut problems };
            archive = payloads.add(&copy, archive, &mut shown).await?;
        }
        drop(copy);
        remove_beside(snapshot.path());
        let bytes = archive.finish(&end, force, taken).await?;
        Ok(BackedUp { tasks, payloads: end.payloads, bytes, vault: elsewhere, problems })
    }
}

/// An opened copy leaves files of its own beside it, which nobody else has.
fn remove_beside(snapshot: &Path) {
    for ending in ["-wal", "-shm", "-workers"] {
        let mut path = snapshot.as_os_str().to_owned();
        path.push(ending);
        let path = PathBuf::from(path);
        let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
    }
}

/// The payloads of a snapshot, on their way into the archive.
struct Payloads<'a> {
    vault: Vault,
    end: &'a mut End,
    problems: &'a mut Vec<String>,
}

impl Payloads<'_> {
    async fn add(
        &mut self,
        copy: &Redrive,
        mut archive: Archive,
        shown: &mut impl FnMut(u64, u64),
    ) -> Result<Archive, Error> {
        let of = count(copy).await?;
        let mut params = ListPayloads { prefix: None, limit: PAGE, cursor: None };
        loop {
            let page = copy.store().list_payloads(params.clone()).await?;
            let mut whole = Vec::with_capacity(page.items.len());
            for payload in page.items {
                whole.extend(self.look_at(&payload).await?);
            }
            let (written, (of_page, gone)) = archive.add(whole).await?;
            archive = written;
            self.end.payloads += of_page;
            for place in gone {
                self.note(removed_meanwhile(&place));
            }
            shown(self.end.payloads + self.end.broken, of);
            params.cursor = page.next;
            if params.cursor.is_none() {
                break;
            }
        }
        if let Some(more) = usize::try_from(self.end.broken).ok().and_then(|broken| broken.checked_sub(NAMED_MAX + 1)) {
            self.problems
                .push(format!("{} further payloads are not whole: `redrive payload verify` names them", more + 1));
        }
        Ok(archive)
    }

    /// Where the bytes of a payload are on this machine, if they are what was kept.
    async fn look_at(&mut self, payload: &PayloadView) -> Result<Option<(PayloadPlace, PathBuf)>, Error> {
        let why = match self.vault.verify(payload.hash).await {
            Ok(()) => match self.vault.file_at(&payload.place) {
                Some(path) => return Ok(Some((payload.place, path))),
                None => VaultError::Missing(payload.hash.to_string()),
            },
            Err(error @ (VaultError::Missing(_) | VaultError::Damaged(_) | VaultError::OnItsWay { .. })) => error,
            Err(error) => return Err(error.into()),
        };
        self.note(why.to_string());
        Ok(None)
    }

    /// Notes a payload that is not in the archive.
    fn note(&mut self, why: String) {
        self.end.broken += 1;
        if self.end.broken <= NAMED_MAX as u64 {
            self.problems.push(why);
        }
    }
}

/// Says that a payload was there when the backup began, and not when it was to be copied.
fn removed_meanwhile(place: &PayloadPlace) -> String {
    format!("{place} was removed while the backup was made")
}

/// How many payloads a store has.
async fn count(copy: &Redrive) -> Result<u64, Error> {
    let mut params = ListPayloads { prefix: None, limit: PAGE, cursor: None };
    let mut counted = 0;
    loop {
        let page = copy.store().list_payloads(params.clone()).await?;
        counted += page.items.len() as u64;
        match page.next {
            Some(next) => params.cursor = Some(next),
            None => return Ok(counted),
        }
    }
}

/// An archive that is being written. All of it happens off the threads that others wait for.
struct Archive {
    tar: tar::Builder<BufWriter<NamedTempFile>>,
    to: Arc<Path>,
    made_at: Timestamp,
}

impl Archive {
    async fn begin(to: &Path, file: NamedTempFile, head: Head, snapshot: &Path) -> Result<Self, Error> {
        let archive = Self { tar: tar::Builder::new(BufWriter::new(file)), to: to.into(), made_at: head.made_at };
        let snapshot = snapshot.to_owned();
        let begin = move |archive: &mut Self| {
            archive.json(HEAD, &head)?;
            archive.file(STORE, &snapshot)
        };
        Ok(archive.run(begin).await?.0)
    }

    /// Adds payloads. Returns how many, and those whose files are gone by now.
    async fn add(self, payloads: Vec<(PayloadPlace, PathBuf)>) -> Result<(Self, (u64, Vec<PayloadPlace>)), Error> {
        let add = move |archive: &mut Self| {
            let (mut added, mut gone) = (0, Vec::new());
            for (place, path) in payloads {
                match File::open(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => gone.push(place),
                    opened => {
                        archive.opened(&format!("{PAYLOADS}{place}"), opened?)?;
                        added += 1;
                    }
                }
            }
            Ok((added, gone))
        };
        self.run(add).await
    }

    /// Writes the end, and gives the archive its name once all of it is on disk; says how long it is.
    async fn finish(self, end: &End, force: bool, taken: impl FnOnce() -> BackupError) -> Result<u64, Error> {
        let end = end.clone();
        let (archive, ()) = self.run(move |archive| archive.json(END, &end)).await?;
        let to = Arc::clone(&archive.to);
        let unwritten = |error| BackupError::io("write", &to)(error);
        let mut file = archive.tar.into_inner().and_then(|out| Ok(out.into_inner()?)).map_err(unwritten)?;
        let bytes =
            file.stream_position().and_then(|bytes| file.as_file().sync_all().map(|()| bytes)).map_err(unwritten)?;
        match force {
            true => drop(file.persist(&to).map_err(|failed| unwritten(failed.error))?),
            false => drop(file.persist_noclobber(&to).map_err(|failed| match failed.error.kind() {
                io::ErrorKind::AlreadyExists => taken(),
                _ => unwritten(failed.error),
            })?),
        }
        if let Some(folder) = to.parent() {
            // The name, too, is to survive a loss of power; some file systems cannot promise that.
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        }
        Ok(bytes)
    }

    async fn run<T: Send + 'static>(
        mut self,
        step: impl FnOnce(&mut Self) -> io::Result<T> + Send + 'static,
    ) -> Result<(Self, T), Error> {
        let to = Arc::clone(&self.to);
        let run = move || step(&mut self).map(|done| (self, done));
        let ran = tokio::task::spawn_blocking(run).await.map_err(|error| Error::Internal(error.to_string()))?;
        Ok(ran.map_err(BackupError::io("write", &to))?)
    }

    fn json(&mut self, name: &str, value: &impl serde::Serialize) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(value)?;
        self.entry(name, text.len() as u64, text.as_slice())
    }

    fn file(&mut self, name: &str, path: &Path) -> io::Result<()> {
        self.opened(name, File::open(path)?)
    }

    /// Adds as much of a file as it has now.
    fn opened(&mut self, name: &str, file: File) -> io::Result<()> {
        let bytes = file.metadata()?.len();
        self.entry(name, bytes, file.take(bytes))
    }

    fn entry(&mut self, name: &str, bytes: u64, from: impl Read) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes);
        // Only who made it may read what pages said.
        header.set_mode(0o600);
        header.set_mtime(u64::try_from(self.made_at.as_millis() / 1_000).unwrap_or(0));
        self.tar.append_data(&mut header, name, from)
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::payloads::PayloadHash;

    use super::*;

    /// Nothing holds payloads where there are no locks.
    #[tokio::test]
    async fn payload_that_is_removed_before_it_is_copied_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let place = |salt| PayloadPlace { store: None, hash: PayloadHash::from_bytes([7; 32]), salt };
        std::fs::write(path("page"), "page").expect("written");
        let file = NamedTempFile::new_in(folder.path()).expect("made");
        let head = Head { format: FORMAT, redrive: String::new(), made_at: Timestamp::from_millis(0), vault: None };
        let archive = Archive::begin(&path("now.tar"), file, head, &path("page")).await.expect("begun");
        let (_, added) = archive.add(vec![(place(1), path("gone")), (place(2), path("page"))]).await.expect("added");
        assert_eq!(added, (1, vec![place(1)]));
        let told = removed_meanwhile(&place(1));
        assert_eq!(told, format!("{} was removed while the backup was made", place(1)));
        assert!(told.contains(&"07".repeat(32)), "{told}");
    }
}
