//! Results as JSON Lines, appended to a file or written to standard output.
//!
//! A batch is one write, flushed to disk before its jobs are settled. A line that a crash tore is mended before anything is
//! added: its job was not settled, so it will be written again.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::{JobResult, Sink};
use crate::error::Error;

/// A stream of JSON Lines.
#[derive(Clone, Debug)]
pub struct JsonLines {
    place: Arc<str>,
    out: Arc<Mutex<Out>>,
}

#[derive(Debug)]
enum Out {
    File(File),
    Stdout,
}

impl JsonLines {
    /// Appends to a file, which is made if need be and mended if its last line is torn.
    pub fn append(path: &Path) -> Result<Self, Error> {
        let place: Arc<str> = path.display().to_string().into();
        let open = || {
            let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
            if file.metadata()?.is_file() {
                file.lock()?;
                mend(&mut file)?;
                file.unlock()?;
            }
            Ok(file)
        };
        let file = open().map_err(|source| Error::Sink { place: place.to_string(), source })?;
        Ok(Self { place, out: Arc::new(Mutex::new(Out::File(file))) })
    }

    /// Writes to standard output.
    pub fn stdout() -> Self {
        Self { place: "standard output".into(), out: Arc::new(Mutex::new(Out::Stdout)) }
    }
}

/// Makes the file end with a whole line: adds the end of line to a last line that is whole JSON, cuts off one that is not.
fn mend(file: &mut File) -> io::Result<()> {
    let length = file.seek(SeekFrom::End(0))?;
    let start = last_line_start(file, length)?;
    if start == length {
        return Ok(());
    }
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    if serde_json::from_slice::<serde::de::IgnoredAny>(&tail).is_ok() {
        file.write_all(b"\n")
    } else {
        file.set_len(start)
    }
}

/// Where the text after the last end of line begins.
fn last_line_start(file: &mut File, length: u64) -> io::Result<u64> {
    let mut end = length;
    let mut block = vec![0; 64 * 1024];
    while end > 0 {
        let begin = end.saturating_sub(block.len() as u64);
        let part = &mut block[..(end - begin) as usize];
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

impl Out {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(lines)?;
                stdout.flush()
            }
            Self::File(file) if file.metadata()?.is_file() => {
                // Other processes may append to the same file, and may have been killed in the middle of a line.
                file.lock()?;
                mend(file)?;
                let before = file.metadata()?.len();
                let written = file.write_all(lines).and_then(|()| file.sync_data());
                if written.is_err() {
                    // A full disk may have taken half a line.
                    let _ = file.set_len(before);
                }
                file.unlock()?;
                written
            }
            Self::File(pipe) => pipe.write_all(lines),
        }
    }
}

#[async_trait]
impl Sink for JsonLines {
    async fn write(&self, results: Vec<JobResult>) -> Result<(), Error> {
        let out = Arc::clone(&self.out);
        let write = move || {
            let mut lines = Vec::new();
            for result in &results {
                serde_json::to_writer(&mut lines, result)?;
                lines.push(b'\n');
            }
            out.lock().unwrap_or_else(PoisonError::into_inner).write(&lines)
        };
        let written = tokio::task::spawn_blocking(write).await.unwrap_or_else(|error| Err(io::Error::other(error)));
        written.map_err(|source| Error::Sink { place: self.place.to_string(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mended(text: &str) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.jsonl");
        std::fs::write(&path, text).expect("written");
        JsonLines::append(&path).expect("opened");
        std::fs::read_to_string(&path).expect("read")
    }

    #[test]
    fn a_torn_line_is_cut_off_and_a_whole_one_is_ended() {
        assert_eq!(mended(""), "");
        assert_eq!(mended("{\"a\":1}\n"), "{\"a\":1}\n");
        assert_eq!(mended("{\"a\":1}\n{\"b\""), "{\"a\":1}\n");
        assert_eq!(mended("{\"a\":1}\n{\"b\":2}"), "{\"a\":1}\n{\"b\":2}\n");
        assert_eq!(mended("{\"tor"), "");
        let long = format!("{{\"a\":1}}\n{{\"b\":\"{}", "x".repeat(200_000));
        assert_eq!(mended(&long), "{\"a\":1}\n");
    }
}
