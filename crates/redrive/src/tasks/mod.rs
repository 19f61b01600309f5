//! Reading task files: JSON Lines or plain lines, a line at a time, whatever their size.
//!
//! A line that is broken is reported with its number and kept out. A task that has no key of its own is known by the
//! content of its file and its line, so that the same file enqueues nothing twice.
//!
//! - `feed`: brings them into a pipeline, in batches

mod feed;

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use redrive_core::jobs::{Input, KEY_BYTES_MAX, NewJob};
use serde_json::Value;

pub use self::feed::{Fed, Feed, WhenFull};
use crate::engine::Redrive;
use crate::error::ErrorKind;
use crate::lines::{Lines, without_place};

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
    /// A URL, or any text, per line.
    Lines,
}

/// Why a file of tasks cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum TasksError {
    /// It cannot be opened.
    #[error("cannot open {place}")]
    Unopened {
        /// The file.
        place: String,
        /// Why.
        source: io::Error,
    },
    /// It cannot be read.
    #[error("cannot read {place}")]
    Unreadable {
        /// The file.
        place: String,
        /// Why.
        source: io::Error,
    },
    /// It can be read only once, and there is no place for a copy.
    #[error("cannot make a temporary file")]
    NoCopy(#[source] io::Error),
    /// It is a folder.
    #[error("{0} is a folder, not a file of tasks")]
    Folder(String),
    /// It is one JSON array.
    #[error("{0} is a JSON array: one object per line is wanted, `jq -c '.[]'` makes them")]
    Array(String),
    /// It has broken lines and was to be taken whole or not at all.
    #[error("nothing was enqueued, the file has broken lines:\n  {}", .lines.iter().map(|line| format!("{place}:{line}")).collect::<Vec<_>>().join("\n  "))]
    Broken {
        /// The file.
        place: String,
        /// The first of them.
        lines: Vec<BrokenLine>,
    },
    /// The queue has no room for the rest.
    #[error("{accepted} of the tasks were accepted before it")]
    Full {
        /// Tasks that were accepted.
        accepted: u64,
        /// How full it is.
        source: redrive_store::StoreError,
    },
}

impl TasksError {
    /// What it means to who asked.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Folder(_) | Self::Array(_) | Self::Broken { .. } => ErrorKind::Invalid,
            Self::Full { .. } => ErrorKind::Refused,
            Self::Unopened { .. } | Self::Unreadable { .. } | Self::NoCopy(_) => ErrorKind::Failed,
        }
    }
}

/// A file of tasks, opened and identified.
pub struct Tasks {
    name: String,
    file: File,
    json: bool,
    identity: String,
}

/// A line that cannot be a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{number}: {why}")]
pub struct BrokenLine {
    /// Its number in the file, from 1.
    pub number: u64,
    /// What is wrong with it.
    pub why: String,
}

impl Tasks {
    /// Opens a file and reads it once to know it again.
    pub fn open(path: &Path, format: TaskFormat) -> Result<Self, TasksError> {
        let place = path.display().to_string();
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.is_dir(), file)));
        let (is_folder, mut file) = opened.map_err(|source| TasksError::Unopened { place: place.clone(), source })?;
        if is_folder {
            return Err(TasksError::Folder(place));
        }
        // A pipe such as <(…) can be read only once.
        if file.stream_position().is_err() {
            file = copy_of(&place, file)?;
        }
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        Self::identify(place, file, extension, format)
    }

    /// Reads something that can be read only once to its end. Messages call it by that name.
    pub fn copied(name: &str, from: impl Read, format: TaskFormat) -> Result<Self, TasksError> {
        let file = copy_of(name, from)?;
        Self::identify(name.to_owned(), file, "", format)
    }

    fn identify(name: String, mut file: File, extension: &str, format: TaskFormat) -> Result<Self, TasksError> {
        let read = identity(&mut file).and_then(|identity| Ok((identity, first_character(&mut file)?)));
        let (identity, first) = read.map_err(|source| TasksError::Unreadable { place: name.clone(), source })?;
        let json = is_json(first, extension, format);
        if json && first == Some('[') {
            return Err(TasksError::Array(name));
        }
        Ok(Self { name, file, json, identity })
    }

    /// What the file is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads all tasks, from the beginning. `each` gets a job, or a line that cannot be one, until it says stop.
    pub fn read(
        &self,
        redrive: &Redrive,
        mut each: impl FnMut(Result<NewJob, BrokenLine>) -> bool,
    ) -> Result<(), TasksError> {
        let unreadable = |source| TasksError::Unreadable { place: self.name.clone(), source };
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        let mut lines = Lines::of(BufReader::with_capacity(256 * 1024, file));
        while let Some((number, line)) = lines.next().map_err(unreadable)? {
            let task = line.and_then(|line| self.task(redrive, line, number)).map_err(|why| BrokenLine { number, why });
            let Some(task) = task.transpose() else { continue };
            if !each(task) {
                break;
            }
        }
        Ok(())
    }

    /// Refuses a file with broken lines, before anything of it is enqueued.
    pub fn check(&self, redrive: &Redrive) -> Result<(), TasksError> {
        let mut lines: Vec<BrokenLine> = Vec::new();
        self.read(redrive, |task| {
            lines.extend(task.err());
            lines.len() < BROKEN_NAMED
        })?;
        match lines.is_empty() {
            true => Ok(()),
            false => Err(TasksError::Broken { place: self.name.clone(), lines }),
        }
    }

    /// The job a line asks for; nothing for an empty line.
    fn task(&self, redrive: &Redrive, line: &[u8], number: u64) -> Result<Option<NewJob>, String> {
        let text =
            std::str::from_utf8(line).map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to() + 1))?;
        let text = if number == 1 { text.trim_start_matches('\u{feff}') } else { text }.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let input = if self.json { object(text)? } else { Input::from_iter([("url".to_owned(), text.into())]) };
        check_key(&input)?;
        let mut job = redrive.new_job(input);
        job.key.get_or_insert_with(|| format!("{}:{number}", self.identity));
        Ok(Some(job))
    }
}

fn object(text: &str) -> Result<Input, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(input)) => Ok(input),
        Ok(other) => Err(format!("expected a JSON object, found {}", kind(&other))),
        Err(error) => Err(format!("not JSON: {}", without_place(&error))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn check_key(input: &Input) -> Result<(), String> {
    match input.get("key") {
        Some(Value::String(key)) if key.len() > KEY_BYTES_MAX => {
            Err(format!("its key is longer than {KEY_BYTES_MAX} bytes"))
        }
        None | Some(Value::String(_) | Value::Number(_) | Value::Null) => Ok(()),
        Some(other) => Err(format!("its key must be a string or a number, not {}", kind(other))),
    }
}

fn copy_of(place: &str, mut from: impl Read) -> Result<File, TasksError> {
    let mut file = tempfile::tempfile().map_err(TasksError::NoCopy)?;
    match io::copy(&mut from, &mut file) {
        Ok(_) => Ok(file),
        Err(source) => Err(TasksError::Unreadable { place: place.to_owned(), source }),
    }
}

fn identity(file: &mut File) -> io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(&mut *file)?;
    Ok(hasher.finalize().to_hex()[..24].to_owned())
}

/// The first character that is not white space, if it comes soon.
fn first_character(file: &mut File) -> io::Result<Option<char>> {
    file.seek(SeekFrom::Start(0))?;
    let mut head = Vec::new();
    file.take(4096).read_to_end(&mut head)?;
    let text = String::from_utf8_lossy(&head);
    Ok(text.trim_start_matches('\u{feff}').trim_start().chars().next())
}

fn is_json(first: Option<char>, extension: &str, format: TaskFormat) -> bool {
    match (format, extension) {
        (TaskFormat::JsonLines, _) => true,
        (TaskFormat::Lines, _) => false,
        (TaskFormat::Auto, "jsonl" | "ndjson" | "json") => true,
        (TaskFormat::Auto, _) => first == Some('{'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_store::sqlite::SqliteStore;
    use serde_json::json;
    use std::sync::Arc;

    type Read = (Vec<NewJob>, Vec<BrokenLine>);

    fn read(name: &str, content: &[u8]) -> Read {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, content).expect("written");
        let redrive = Redrive::over(Arc::new(SqliteStore::in_memory().expect("opened")));
        let (mut jobs, mut broken) = (Vec::new(), Vec::new());
        let tasks = Tasks::open(&path, TaskFormat::Auto).expect("opened");
        let each = |task| {
            match task {
                Ok(job) => jobs.push(job),
                Err(line) => broken.push(line),
            }
            true
        };
        tasks.read(&redrive, each).expect("read");
        (jobs, broken)
    }

    #[test]
    fn broken_lines_are_named_and_the_rest_is_taken() {
        let content = b"{\"a\":1}\n{\"b\":\n\n[1]\n\xff\xfe{}\n{\"key\":{}}\n{\"c\":3}";
        let (jobs, broken) = read("tasks.jsonl", content);
        assert_eq!(jobs.len(), 2);
        let numbers: Vec<u64> = broken.iter().map(|line| line.number).collect();
        assert_eq!(numbers, [2, 4, 5, 6]);
        assert!(broken[0].why.starts_with("not JSON: EOF"), "{}", broken[0].why);
        assert!(broken[2].why.contains("not UTF-8"));
    }

    #[test]
    fn a_file_that_is_to_be_taken_whole_is_refused_with_its_broken_lines() {
        let redrive = Redrive::over(Arc::new(SqliteStore::in_memory().expect("opened")));
        let check = |text: &str| {
            let tasks = Tasks::copied("standard input", text.as_bytes(), TaskFormat::Auto).expect("read");
            tasks.check(&redrive)
        };
        assert!(check("{}\n{}\n").is_ok());
        let refused = check(&format!("{{}}\n{}", "{\n".repeat(30))).expect_err("broken");
        assert!(matches!(&refused, TasksError::Broken { lines, .. } if lines.len() == 20 && lines[0].number == 2));
        assert!(refused.to_string().contains("\n  standard input:2: not JSON"), "{refused}");
    }

    #[test]
    fn folders_and_arrays_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(matches!(Tasks::open(folder.path(), TaskFormat::Auto), Err(TasksError::Folder(_))));
        assert!(matches!(Tasks::open(&folder.path().join("no"), TaskFormat::Auto), Err(TasksError::Unopened { .. })));
        let array = Tasks::copied("a", "[{}]".as_bytes(), TaskFormat::JsonLines).map(|_| ());
        assert!(matches!(array, Err(TasksError::Array(_))));
    }

    #[test]
    fn plain_lines_are_urls() {
        let (jobs, broken) = read("urls.txt", "\u{feff}https://a.example/1\r\n\n  https://b.example/2  \n".as_bytes());
        assert!(broken.is_empty());
        assert_eq!(json!(jobs[0].input), json!({"url": "https://a.example/1"}));
        assert_eq!(jobs[1].target.as_deref(), Some("b.example"));
    }

    #[test]
    fn identity_is_the_files_content_and_line_or_the_tasks_own_key() {
        let keys = |content: &str| -> Vec<Option<String>> {
            read("t.jsonl", content.as_bytes()).0.into_iter().map(|job| job.key).collect()
        };
        let twice = "{\"a\":1}\n{\"a\":1}\n";
        assert_eq!(keys(twice), keys(twice));
        assert_ne!(keys(twice)[0], keys(twice)[1], "the same task on two lines is two jobs");
        assert_ne!(keys(twice)[0], keys("{\"a\":1}\n")[0], "another file is another batch");
        assert_eq!(keys("{\"key\":\"k\"}")[0].as_deref(), Some("k"));
    }

    #[test]
    fn json_is_told_from_lines_by_name_and_first_character() {
        assert_eq!(json!(read("tasks", b"\n {\"a\":1}\n").0[0].input), json!({"a": 1}));
        assert_eq!(json!(read("tasks", b"x\n").0[0].input), json!({"url": "x"}));
    }
}
