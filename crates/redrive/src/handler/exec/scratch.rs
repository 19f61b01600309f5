//! The folder for the files that commands write (payloads) and are given (saved payloads).
//!
//! A command can put anything in the place of its file: a FIFO, a device, a symlink, a mount; it can even rename the folder and
//! leave a symlink there. None of that may block the worker or lead it out of the folder, so the folder is held open, every
//! file is reached through that descriptor, no symlink or mount is followed, and only a regular file is read.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use redrive_core::payloads::Response;
use rustix::fs::{self as sys, AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::handler::{HandlerError, Job, Success};

/// How old a file must be to have been left behind by a kill.
const LEFT_BEHIND: Duration = Duration::from_secs(3_600);

/// What a file is for; also how its name ends.
#[derive(Clone, Copy, Debug)]
pub(in crate::handler) enum Purpose {
    /// The command may write its raw response to it.
    Payload,
    /// The command finds the saved payload in it that it is to work from.
    Saved,
}

impl Purpose {
    const ALL: [Self; 2] = [Self::Payload, Self::Saved];

    const fn ending(self) -> &'static str {
        match self {
            Self::Payload => ".payload",
            Self::Saved => ".saved",
        }
    }
}

/// The folder, held open.
#[derive(Debug)]
struct Scratch {
    path: PathBuf,
    folder: OwnedFd,
}

impl Scratch {
    /// The folder in use; another one if somebody removed it or put something else in its place.
    fn current() -> io::Result<Arc<Self>> {
        static CURRENT: Mutex<Option<Arc<Scratch>>> = Mutex::new(None);
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(scratch) = current.as_ref().filter(|scratch| scratch.is_in_place()) {
            return Ok(Arc::clone(scratch));
        }
        let fresh = Arc::new(Self::make()?);
        *current = Some(Arc::clone(&fresh));
        Ok(fresh)
    }

    fn make() -> io::Result<Self> {
        let shared = std::env::temp_dir().join(format!("redrive-{}", rustix::process::getuid().as_raw()));
        // It is there already but for the first time.
        let _ = std::fs::DirBuilder::new().mode(0o700).create(&shared);
        match Self::open(shared) {
            Ok(scratch) => Ok(scratch),
            // Something else has the name.
            Err(_) => Self::open(tempfile::Builder::new().prefix("redrive-").tempdir()?.keep()),
        }
    }

    fn open(path: PathBuf) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = sys::open(&path, flags, Mode::empty())?;
        if sys::fstat(&folder)?.st_uid != rustix::process::getuid().as_raw() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        sys::fchmod(&folder, Mode::RWXU)?;
        Ok(Self { path, folder })
    }

    /// Whether the path still leads to the folder that is held, and we may use it.
    fn is_in_place(&self) -> bool {
        let (Ok(held), Ok(there)) = (sys::fstat(&self.folder), sys::lstat(&self.path)) else { return false };
        let usable = Mode::from_raw_mode(held.st_mode).contains(Mode::RWXU);
        usable && (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)
    }

    /// Opens what has a name in the folder, and nothing beyond it: neither a symlink nor a mount is followed.
    fn open_file(&self, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        match sys::openat2(&self.folder, name, flags, Mode::empty(), resolve) {
            // An old kernel, or a sandbox that does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => sys::openat(&self.folder, name, flags, Mode::empty()),
            opened => opened,
        }
    }

    /// Removes what has a name in the folder, whatever it is; a symlink goes, not what it points at.
    fn remove(&self, name: &str) {
        let removed = match sys::unlinkat(&self.folder, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => sys::unlinkat(&self.folder, name, AtFlags::REMOVEDIR),
            other => other,
        };
        // Most commands never write their file. A folder with something in it is left: it may be of any size.
        if let Err(error) = removed
            && error != Errno::NOENT
        {
            tracing::warn!(path = %self.path.join(name).display(), %error, "what a command left cannot be removed");
        }
    }
}

/// A file of one attempt. It is gone when this is dropped.
#[derive(Debug)]
pub(in crate::handler) struct ScratchFile {
    scratch: Arc<Scratch>,
    name: String,
}

impl ScratchFile {
    /// A name for a file of a job's attempt; there is no file yet.
    pub(in crate::handler) fn of(job: &Job, purpose: Purpose) -> Result<Self, HandlerError> {
        let no_folder = |error| HandlerError::Unavailable(format!("there is no folder for payloads: {error}"));
        let scratch = Scratch::current().map_err(no_folder)?;
        Ok(Self { scratch, name: format!("{}-{}-{}{}", job.id, job.attempt, job.worker, purpose.ending()) })
    }

    /// A file with the saved payload that a job is to work from, if it has one; the job knows of it then.
    pub(in crate::handler) async fn for_saved(job: &mut Job) -> Result<Option<Self>, HandlerError> {
        if job.saved.is_none() {
            return Ok(None);
        }
        let file = Self::of(job, Purpose::Saved)?;
        if let Some(saved) = &mut job.saved {
            saved.write(file.create(), &file.path()).await?;
            saved.file = Some(file.path());
        }
        Ok(Some(file))
    }

    /// Keeps what was written to the file as the payload of an attempt that ended so, if it is wanted. What cannot be kept is
    /// said in the log and beside the failure.
    pub(in crate::handler) async fn keep(
        self: Arc<Self>,
        job: &Job,
        answer: Result<Success, HandlerError>,
        response: Response,
        total_bytes: Option<u64>,
    ) -> Result<Success, HandlerError> {
        if !job.evidence.is_wanted(answer.is_err()) {
            return answer;
        }
        let opened = tokio::task::spawn_blocking(move || self.open()).await;
        match opened.unwrap_or_else(|panic| Err(panic.to_string())) {
            Ok(Some(file)) => job.evidence.save_file(file, response, total_bytes).await?,
            Ok(None) => {}
            Err(why) => {
                tracing::warn!(pipeline = %job.pipeline, job = %job.id, why, "the payload was not kept");
                return answer.map_err(|error| error.noting(&format!("redrive: the payload was not kept: {why}")));
            }
        }
        answer
    }

    /// Where it is, for the command.
    pub(in crate::handler) fn path(&self) -> PathBuf {
        self.scratch.path.join(&self.name)
    }

    /// Makes the file, in place of whatever has its name.
    fn create(&self) -> io::Result<File> {
        self.scratch.remove(&self.name);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(sys::openat(&self.scratch.folder, &self.name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Opens what the command wrote, if it wrote anything; says what is wrong with it if it is not a file that can be read.
    fn open(&self) -> Result<Option<File>, String> {
        // Looked at before it is opened: to open a device may already do something.
        let found = match self.scratch.open_file(&self.name, OFlags::PATH) {
            Err(Errno::NOENT) => return Ok(None),
            found => found.map_err(refused)?,
        };
        regular(&found)?;
        let file =
            self.scratch.open_file(&self.name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).map_err(refused)?;
        // It may have been replaced meanwhile.
        let length = regular(&file)?;
        Ok((length > 0).then(|| file.into()))
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        self.scratch.remove(&self.name);
    }
}

/// The length of a regular file; anything else is refused.
fn regular(file: &OwnedFd) -> Result<i64, String> {
    let found = sys::fstat(file).map_err(refused)?;
    let kind = match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => return Ok(found.st_size),
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::Symlink => "a symlink",
        FileType::Directory => "a folder",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "something unknown",
    };
    Err(format!("it is {kind}, not a regular file"))
}

fn refused(error: Errno) -> String {
    match error {
        Errno::XDEV => "something is mounted in its place".to_owned(),
        Errno::AGAIN => "another process has it locked".to_owned(),
        _ => format!("it cannot be opened: {error}"),
    }
}

/// Removes files that attempts left behind because their worker was killed.
pub(crate) fn sweep() {
    let Ok(scratch) = Scratch::current() else { return };
    let Ok(entries) = sys::Dir::read_from(&scratch.folder) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().to_str() else { continue };
        if Purpose::ALL.iter().any(|purpose| name.ends_with(purpose.ending())) && scratch.is_old(name) {
            scratch.remove(name);
        }
    }
}

impl Scratch {
    fn is_old(&self, name: &str) -> bool {
        let Ok(found) = sys::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) else { return false };
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(found.st_mtime).unwrap_or(0));
        modified.elapsed().is_ok_and(|age| age > LEFT_BEHIND)
    }
}
