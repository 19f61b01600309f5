//! Reading tasks, one at a time, whatever the size: JSON Lines, plain lines, tables, a JSON array; compressed or not; from a file, or
//! from a stream as it comes.
//!
//! A line that is broken is reported with its number and kept out. Who a task is, is decided in
//! [`redrive_core::tasks`]: the same task is enqueued once, whatever file it comes in.
//!
//! - `source`: where the bytes come from; `written`: whether somebody still writes them; `records`: from bytes to tasks, with `table` and `array`
//! - `naming`: who the tasks of one reading are; `seen`: how often each content was met; `by_line`: files that are known from before
//! - `feed`: brings them into a pipeline, in batches; `survey`: what would become of them

mod array;
mod by_line;
mod error;
mod feed;
mod intake;
mod naming;
mod records;
mod seen;
mod source;
mod survey;
mod table;
mod written;

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use redrive_core::jobs::NewJob;
use tokio_util::sync::CancellationToken;

pub use self::by_line::{ByLine, Recognised, recognise};
pub use self::error::{BrokenLine, TasksError};
pub use self::feed::{Fed, Feed, WhenFull};
pub use self::intake::{Intake, Moves};
pub use self::naming::Naming;
use self::naming::{Namer, Unnamed};
use self::records::{Record, Records};
use self::source::{Attention, Opened};
pub use self::survey::Survey;

/// Broken lines that an error names.
const BROKEN_NAMED: usize = 20;

/// How a file is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskFormat {
    /// By the file's name, or else by its first character.
    #[default]
    Auto,
    /// A JSON object per line.
    JsonLines,
    /// A URL, or any text, per line; lines that begin with `#` are comments.
    Lines,
    /// Comma separated values under a header.
    Csv,
    /// Tab separated values under a header.
    Tsv,
    /// One JSON array of objects.
    Json,
}

/// Tasks that can be read.
pub struct Tasks {
    name: String,
    extension: String,
    format: TaskFormat,
    origin: Origin,
}

enum Origin {
    /// A file, and how long it was when it was opened.
    File(File, u64),
    /// A copy that nobody else knows, and how long it is.
    Copy(File, u64),
    /// Something that can be read only once.
    Stream(Mutex<Option<File>>),
}

/// A task that was read.
pub(super) struct ReadTask {
    job: NewJob,
    /// Its size in bytes, about.
    bytes: usize,
}

/// How a reading ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ReadEnd {
    /// Whether a stream was left before its end.
    is_cut: bool,
    /// Why the last line of a file was left out, if somebody is writing it.
    unfinished: Option<String>,
}

impl Tasks {
    /// Opens a file. A pipe, such as `<(…)` is one, is read as it comes. The last line of a file need not have an end; but if it has none
    /// and somebody has the file open for writing, or it grows, it is waited for, for a second at most, and then left to the next reading.
    pub fn open(path: &Path, format: TaskFormat) -> Result<Self, TasksError> {
        let name = path.display().to_string();
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|source| TasksError::Unopened { place: name.clone(), source })?;
        if metadata.is_dir() {
            return Err(TasksError::Folder(name));
        }
        let origin = match metadata.is_file() {
            true => Origin::File(file, metadata.len()),
            false => Origin::Stream(Mutex::new(Some(file))),
        };
        Ok(Self { name, extension: extension(path), format, origin })
    }

    /// Tasks that are read as they come, and once. Messages call where they come from by that name. A file of which nothing was read yet
    /// (`< FILE`) is one all the same.
    pub fn stream(name: &str, from: OwnedFd, format: TaskFormat) -> Self {
        let mut file = File::from(from);
        let origin = match (file.metadata(), file.stream_position()) {
            (Ok(metadata), Ok(0)) if metadata.is_file() => Origin::File(file, metadata.len()),
            _ => Origin::Stream(Mutex::new(Some(file))),
        };
        Self { name: name.to_owned(), extension: String::new(), format, origin }
    }

    /// Reads something that can be read only once to its end, so that it can be read again.
    pub fn copied(name: &str, mut from: impl Read, format: TaskFormat) -> Result<Self, TasksError> {
        let mut file = tempfile::tempfile().map_err(TasksError::NoTemporaryFile)?;
        let unreadable = |source| TasksError::Unreadable { place: name.to_owned(), source };
        let length = io::copy(&mut from, &mut file).map_err(unreadable)?;
        Ok(Self { name: name.to_owned(), extension: String::new(), format, origin: Origin::Copy(file, length) })
    }

    /// The same tasks, so that they can be read again.
    pub fn rereadable(self) -> Result<Self, TasksError> {
        let Origin::Stream(stream) = &self.origin else { return Ok(self) };
        let file = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
        let file = file.ok_or_else(|| TasksError::Spent(self.name.clone()))?;
        Ok(Self { extension: self.extension, ..Self::copied(&self.name, file, self.format)? })
    }

    /// What the file is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether they come as they come, and can be read only once.
    pub const fn is_stream(&self) -> bool {
        matches!(self.origin, Origin::Stream(_))
    }

    fn file(&self) -> Option<(&File, u64)> {
        match &self.origin {
            Origin::File(file, length) | Origin::Copy(file, length) => Some((file, *length)),
            Origin::Stream(_) => None,
        }
    }

    /// Refuses tasks of which any is broken, before anything of them is enqueued.
    pub fn check(&self, into: &dyn Intake, naming: &Naming) -> Result<(), TasksError> {
        let mut lines: Vec<BrokenLine> = Vec::new();
        self.read(into, naming, |task| {
            lines.extend(task.err());
            lines.len() < BROKEN_NAMED
        })?;
        match lines.is_empty() {
            true => Ok(()),
            false => Err(TasksError::Broken { place: self.name.clone(), lines }),
        }
    }

    /// Reads all tasks of a file, from the beginning. `each` gets a task, or a line that cannot be one, until it says stop.
    fn read(
        &self,
        into: &dyn Intake,
        naming: &Naming,
        each: impl FnMut(Result<ReadTask, BrokenLine>) -> bool,
    ) -> Result<ReadEnd, TasksError> {
        let attention = Attention { stop: CancellationToken::new(), before_waiting: Arc::new(|| ()) };
        self.read_attentively(into, naming, attention, each)
    }

    /// The same, of a stream too.
    fn read_attentively(
        &self,
        into: &dyn Intake,
        naming: &Naming,
        attention: Attention,
        mut each: impl FnMut(Result<ReadTask, BrokenLine>) -> bool,
    ) -> Result<ReadEnd, TasksError> {
        let unreadable = |source| TasksError::Unreadable { place: self.name.clone(), source };
        let Opened { reader, is_packed, is_cut, unfinished } = self.bytes(attention)?;
        let mut records = match Records::of(reader, self.format, &self.extension) {
            Ok(records) => records,
            Err(error) if is_packed => {
                let is_cut = is_cut.load(Ordering::Relaxed);
                each(Err(if is_cut { not_come(1) } else { breaks_off(1, &error) }));
                return Ok(ReadEnd { is_cut, unfinished: None });
            }
            Err(error) => return Err(unreadable(error)),
        };
        let (mut namer, mut line) = (Namer::of(naming), 0);
        let is_cut = || is_cut.load(Ordering::Relaxed);
        let end = || ReadEnd { is_cut: is_cut(), unfinished: None };
        loop {
            let record = match records.next() {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(end()),
                Err(error) if is_packed => {
                    each(Err(if is_cut() { not_come(line + 1) } else { breaks_off(line + 1, &error) }));
                    return Ok(end());
                }
                Err(error) => return Err(unreadable(error)),
            };
            line = record.line;
            if is_cut() && !record.is_whole {
                each(Err(not_come(line)));
                return Ok(end());
            }
            // It stays in the file: the next reading takes it.
            if let Some(why) = unfinished.get().filter(|_| !record.is_whole) {
                return Ok(ReadEnd { unfinished: Some(why.clone()), ..end() });
            }
            let Some(task) = task(into, &mut namer, record)? else { continue };
            if !each(task) {
                return Ok(end());
            }
        }
    }

    fn bytes(&self, attention: Attention) -> Result<Opened, TasksError> {
        let opened = match &self.origin {
            Origin::File(file, length) => source::file(file, *length, false),
            Origin::Copy(file, length) => source::file(file, *length, true),
            Origin::Stream(stream) => {
                let file = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
                source::stream(file.ok_or_else(|| TasksError::Spent(self.name.clone()))?, attention)
            }
        };
        opened.map_err(|source| TasksError::Unreadable { place: self.name.clone(), source })
    }
}

/// The task of a record, or what is wrong with it; nothing for an empty line or a comment.
fn task(
    into: &dyn Intake,
    namer: &mut Namer<'_>,
    record: Record,
) -> Result<Option<Result<ReadTask, BrokenLine>>, TasksError> {
    let (number, bytes) = (record.line, record.bytes);
    let input = match record.task {
        Ok(Some(input)) => input,
        Ok(None) => return Ok(None),
        Err(why) => return Ok(Some(Err(BrokenLine { number, why }))),
    };
    match namer.key(&input, number) {
        Ok(key) => {
            let mut job = into.new_job(input);
            job.key = Some(key);
            job.round = namer.round();
            Ok(Some(Ok(ReadTask { job, bytes })))
        }
        Err(Unnamed::Broken(why)) => Ok(Some(Err(BrokenLine { number, why }))),
        Err(Unnamed::Uncounted(source)) => Err(TasksError::NoTemporaryFile(source)),
    }
}

/// The line at which a stream was left before its end.
fn not_come(number: u64) -> BrokenLine {
    BrokenLine { number, why: "its end had not come yet: it is left out".to_owned() }
}

/// A line at which compressed data ends before its end.
fn breaks_off(number: u64, error: &io::Error) -> BrokenLine {
    BrokenLine {
        number,
        why: format!("the compressed file breaks off or is damaged here ({error}): the rest is missing"),
    }
}

/// What the name of a file says about its form, apart from how it is compressed.
fn extension(path: &Path) -> String {
    let of = |path: &Path| path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    match of(path).as_deref() {
        Some("gz" | "gzip" | "zst" | "zstd") => path.file_stem().map(Path::new).and_then(of),
        other => other.map(str::to_owned),
    }
    .unwrap_or_default()
}

#[cfg(test)]
mod tests;
