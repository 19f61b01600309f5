//! Whether somebody still writes a file: a process of this machine has it open for writing, or it grew while it was looked at.
//!
//! A last line without an end is a task like any other, since editors and `printf` leave such lines; but not while it may be half of one.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the end of a line is waited for at most.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// How often is looked meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A file that was changed so recently may have a writer that cannot be seen: on another machine, or of another user.
const RECENT: Duration = Duration::from_secs(5);

/// How long such a file is watched.
const WATCHED: Duration = Duration::from_millis(250);

/// The bits of an open file's flags that say whether it is open for reading only, and what they are then.
const ACCESS: u32 = 0o3;
const READ_ONLY: u32 = 0;

/// A wait for the end of a line that somebody may be writing.
#[derive(Default)]
pub(super) struct Patience {
    /// When the bytes first came to an end in the middle of a line, and when they last did.
    since: Option<(Instant, Instant)>,
    /// Whether somebody was seen who writes.
    was_written: bool,
}

/// What to do where the bytes end in the middle of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MidLine {
    /// Read again: it may still get its end.
    Again,
    /// It is the last line, as whoever wrote it left it.
    Whole,
    /// It may be half of a line, for this reason.
    Unfinished(String),
}

impl Patience {
    /// Notes that there was more after all.
    pub(super) fn note_more(&mut self) {
        self.since = self.since.map(|(first, _)| (first, Instant::now()));
    }

    /// Waits a little, if the line may still get its end. `more` says whether the file goes on behind what was read: it is asked
    /// after it was seen whether anybody writes, so that nothing comes between the two.
    pub(super) fn wait(&mut self, file: &File, more: impl Fn() -> io::Result<bool>) -> io::Result<MidLine> {
        let (first, last) = *self.since.get_or_insert_with(|| (Instant::now(), Instant::now()));
        let writer = writer_of(file);
        if more()? {
            return Ok(MidLine::Again);
        }
        let is_written = writer.is_some();
        let has_closed = self.was_written && !is_written;
        self.was_written |= is_written;
        let is_quiet = last.elapsed() >= WATCHED;
        if !is_written && (has_closed || is_quiet || !is_recent(file)?) {
            return Ok(MidLine::Whole);
        }
        if first.elapsed() >= WAIT_MAX {
            return Ok(MidLine::Unfinished(writer.unwrap_or_else(|| "it grows".to_owned())));
        }
        std::thread::sleep(LOOK_EVERY);
        Ok(MidLine::Again)
    }
}

/// Whether a file was changed within moments.
fn is_recent(file: &File) -> io::Result<bool> {
    let changed = file.metadata()?.modified()?;
    Ok(changed.elapsed().is_ok_and(|ago| ago < RECENT))
}

/// Which process that can be seen has a file open for writing, if any has, in words.
fn writer_of(file: &File) -> Option<String> {
    let ours = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let (name, metadata) = (ours.file_name()?, file.metadata().ok()?);
    let is_same = |fd: &Path| {
        let same_name = fs::read_link(fd).is_ok_and(|path| path.file_name() == Some(name));
        // Names first: to look at a file may take long where a network does not answer.
        same_name && fs::metadata(fd).is_ok_and(|open| (open.dev(), open.ino()) == (metadata.dev(), metadata.ino()))
    };
    let of_process = |process: PathBuf| entries(&process.join("fd")).map(move |fd| (process.clone(), fd));
    let mut open = processes().flat_map(of_process).filter(|(_, fd)| is_same(fd));
    let (process, _) = open.find(|(process, fd)| is_writable(process, fd))?;
    let called = fs::read_to_string(process.join("comm")).unwrap_or_default();
    Some(format!("process {} ({}) has it open", process.file_name()?.display(), called.trim()))
}

fn processes() -> impl Iterator<Item = PathBuf> {
    let is_number = |name: &OsStr| name.to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    entries(Path::new("/proc")).filter(move |path| path.file_name().is_some_and(is_number))
}

/// What a folder has; nothing of one that is gone, or another user's.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Whether an open file of a process can be written by it.
fn is_writable(process: &Path, fd: &Path) -> bool {
    let Some(number) = fd.file_name() else { return false };
    let Ok(info) = fs::read_to_string(process.join("fdinfo").join(number)) else { return false };
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & ACCESS != READ_ONLY)
}
