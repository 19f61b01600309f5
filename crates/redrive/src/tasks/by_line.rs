//! Files of before tasks were known by their content: their tasks were known by the hash of the whole file and the line. A
//! file that is the same, or has only grown since, is known again by that.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

use redrive_core::ids::PipelineName;
use redrive_core::jobs::NewJob;
use redrive_core::tasks::{FILE_DIGITS, brings_key, may_be_old};
use redrive_store::contract::FindTasks;

use super::feed::BATCH;
use super::intake::Intake;
use super::source;
use super::{Naming, Tasks, TasksError};
use crate::engine::Redrive;
use crate::error::Error;

/// Tasks that are looked at to see whether a file was changed.
const LOOKED_AT_MAX: usize = 100_000;

/// A file, or the beginning of one, whose tasks are known by their lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByLine {
    /// The hash of it.
    pub hash: String,
    /// How many lines of it are meant.
    pub lines: u64,
}

/// What is known of a file in a store that has tasks of before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recognised {
    /// Nothing of it depends on what was before.
    AsItIs,
    /// It is known by its lines.
    ByLine(ByLine),
    /// It may be one that was known by its lines and was changed since.
    Changed {
        /// Tasks that would be new, and may have run before.
        new: u64,
    },
}

impl Redrive {
    /// What is known of a file of tasks from before tasks were known by their content. A stream cannot be looked through.
    pub async fn recognise_tasks(
        &self,
        pipeline: &PipelineName,
        tasks: &Tasks,
        naming: &Naming,
    ) -> Result<Recognised, Error> {
        recognise(self, pipeline, tasks, naming).await
    }
}

/// See [`Redrive::recognise_tasks`]: the same, wherever tasks are brought.
pub async fn recognise(
    into: &dyn Intake,
    pipeline: &PipelineName,
    tasks: &Tasks,
    naming: &Naming,
) -> Result<Recognised, Error> {
    let files = match naming.round {
        // A round is new in any case.
        Some(_) => Vec::new(),
        None => into.task_files(pipeline).await?,
    };
    if files.is_empty() || tasks.is_stream() {
        return Ok(Recognised::AsItIs);
    }
    if let Some(file) = tasks.known_by_line(files.into_iter().collect())? {
        return Ok(Recognised::ByLine(file));
    }
    let mut keys = Vec::new();
    tasks.read(into, naming, |task| {
        keys.extend(task.ok().and_then(|task| key_that_was_given(&task.job)));
        keys.len() < LOOKED_AT_MAX
    })?;
    Ok(match count_old(into, pipeline, keys).await? {
        0 => Recognised::AsItIs,
        new => Recognised::Changed { new },
    })
}

/// How many of these tasks, the first of a stream, are new and may have been known by their lines.
pub(super) async fn count_changed(into: &dyn Intake, pipeline: &PipelineName, jobs: &[NewJob]) -> Result<u64, Error> {
    match into.task_files(pipeline).await?.is_empty() {
        true => Ok(0),
        false => count_old(into, pipeline, jobs.iter().filter_map(key_that_was_given).collect()).await,
    }
}

/// How many tasks with these keys are new and may be old.
async fn count_old(into: &dyn Intake, pipeline: &PipelineName, keys: Vec<String>) -> Result<u64, Error> {
    let mut are_known = Vec::with_capacity(keys.len());
    for part in keys.chunks(BATCH) {
        let params = FindTasks { pipeline: pipeline.clone(), round: None, keys: part.to_vec() };
        are_known.extend(into.known_tasks(params).await?.iter().map(Option::is_some));
    }
    Ok(may_be_old(&are_known) as u64)
}

/// The key of a task that did not bring it itself: before, it was known by its line.
fn key_that_was_given(job: &NewJob) -> Option<String> {
    job.key.clone().filter(|_| !brings_key(&job.input))
}

impl Tasks {
    /// The longest beginning of the file that is one of these files.
    fn known_by_line(&self, files: HashSet<String>) -> Result<Option<ByLine>, TasksError> {
        let Some((file, length)) = self.file() else { return Ok(None) };
        let found = longest_known(file, length, &files);
        found.map_err(|source| TasksError::Unreadable { place: self.name().to_owned(), source })
    }
}

fn longest_known(file: &File, length: u64, files: &HashSet<String>) -> io::Result<Option<ByLine>> {
    let mut reader = BufReader::with_capacity(256 * 1024, source::bytes(file, length)?);
    let (mut hasher, mut lines, mut found, mut in_line) = (blake3::Hasher::new(), 0, None, false);
    let known = |hasher: &blake3::Hasher, lines| {
        let hash = hasher.finalize().to_hex()[..FILE_DIGITS].to_owned();
        files.contains(&hash).then_some(ByLine { hash, lines })
    };
    loop {
        let chunk = reader.fill_buf()?;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        if chunk.is_empty() && !in_line {
            return Ok(found);
        }
        hasher.update(&chunk[..end.unwrap_or(chunk.len())]);
        if chunk.is_empty() || end.is_some() {
            // The last line of the file as it was may have had no end.
            lines += 1;
            found = known(&hasher, lines).or(found);
        }
        if end.is_some() {
            hasher.update(b"\n");
            found = known(&hasher, lines).or(found);
        }
        in_line = end.is_none() && !chunk.is_empty();
        let used = end.map_or(chunk.len(), |end| end + 1);
        reader.consume(used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn hash(text: &str) -> String {
        blake3::hash(text.as_bytes()).to_hex()[..FILE_DIGITS].to_owned()
    }

    fn known(text: &str, before: &[&str]) -> Option<(String, u64)> {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(text.as_bytes()).expect("written");
        let files = before.iter().map(|text| hash(text)).collect();
        longest_known(&file, text.len() as u64, &files).expect("read").map(|file| (file.hash, file.lines))
    }

    #[test]
    fn a_file_is_known_by_its_longest_beginning_that_was_a_file() {
        assert_eq!(known("a\nb\n", &["a\nb\n"]), Some((hash("a\nb\n"), 2)));
        assert_eq!(known("a\nb", &["a\nb"]), Some((hash("a\nb"), 2)));
        assert_eq!(known("a\nb\nc\n", &["a\n", "a\nb", "x"]), Some((hash("a\nb"), 2)), "its last line had no end");
        assert_eq!(known("a\nb\nc\n", &["a\n", "a\nb\n"]), Some((hash("a\nb\n"), 2)));
        assert_eq!(known("a\nbc\n", &["a\nb"]), None, "its last line is another");
        assert_eq!(known("x\na\n", &["a\n"]), None);
        assert_eq!(known("", &["a\n"]), None);
    }
}
