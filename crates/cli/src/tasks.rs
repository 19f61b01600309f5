//! Reading task files: JSON Lines or plain lines, a line at a time, whatever their size.
//!
//! A line that is broken is reported with its number and kept out. A task that has no key of its own is known by the
//! content of its file and its line, so that the same file enqueues nothing twice.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result};
use redrive::Redrive;
use redrive_core::jobs::{Input, KEY_BYTES_MAX, NewJob};
use serde_json::Value;

use crate::args::Format;
use crate::exit::usage;
use crate::lines::{Lines, without_place};

/// A file of tasks, opened and identified.
pub struct Tasks {
    name: String,
    file: File,
    json: bool,
    identity: String,
}

/// A line that cannot be a task.
#[derive(Debug, PartialEq, Eq)]
pub struct BrokenLine {
    pub number: u64,
    pub why: String,
}

impl Tasks {
    /// Opens a file, or spools standard input for `-`, and reads it once to know it again.
    pub fn open(path: &Path, format: Format) -> Result<Self> {
        let (name, mut file) = if path == Path::new("-") {
            ("standard input".to_owned(), spool()?)
        } else {
            let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
            if file.metadata()?.is_dir() {
                return Err(usage(format!("{} is a folder, not a file of tasks", path.display())));
            }
            (path.display().to_string(), file)
        };
        let reading = || format!("cannot read {name}");
        // A pipe such as <(…) can be read only once.
        if file.stream_position().is_err() {
            file = spool_from(file).with_context(reading)?;
        }
        let identity = identity(&mut file).with_context(reading)?;
        let first = first_character(&mut file).with_context(reading)?;
        let json = is_json(first, path, format);
        if json && first == Some('[') {
            return Err(usage(format!(
                "{name} is a JSON array: one object per line is wanted, `jq -c '.[]'` makes them"
            )));
        }
        Ok(Self { name, file, json, identity })
    }

    /// What the file is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads all tasks, from the beginning. `each` gets a job, or a line that cannot be one, until it says stop.
    pub fn read(&self, redrive: &Redrive, mut each: impl FnMut(Result<NewJob, BrokenLine>) -> bool) -> Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))?;
        let mut lines = Lines::of(BufReader::with_capacity(256 * 1024, file));
        while let Some((number, line)) = lines.next().with_context(|| format!("cannot read {}", self.name))? {
            let task = line.and_then(|line| self.task(redrive, line, number)).map_err(|why| BrokenLine { number, why });
            let Some(task) = task.transpose() else { continue };
            if !each(task) {
                break;
            }
        }
        Ok(())
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

fn spool() -> Result<File> {
    spool_from(io::stdin().lock()).context("cannot read standard input")
}

fn spool_from(mut from: impl Read) -> Result<File> {
    let mut file = tempfile::tempfile().context("cannot make a temporary file")?;
    io::copy(&mut from, &mut file)?;
    Ok(file)
}

fn identity(file: &mut File) -> Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(&mut *file)?;
    Ok(hasher.finalize().to_hex()[..24].to_owned())
}

/// The first character that is not white space, if it comes soon.
fn first_character(file: &mut File) -> Result<Option<char>> {
    file.seek(SeekFrom::Start(0))?;
    let mut head = Vec::new();
    file.take(4096).read_to_end(&mut head)?;
    let text = String::from_utf8_lossy(&head);
    Ok(text.trim_start_matches('\u{feff}').trim_start().chars().next())
}

fn is_json(first: Option<char>, path: &Path, format: Format) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match (format, extension) {
        (Format::Jsonl, _) => true,
        (Format::Lines, _) => false,
        (Format::Auto, "jsonl" | "ndjson" | "json") => true,
        (Format::Auto, _) => first == Some('{'),
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
        let tasks = Tasks::open(&path, Format::Auto).expect("opened");
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
