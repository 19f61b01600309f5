//! Results as JSON Lines, appended to a file or written to standard output.
//!
//! A batch is one write, flushed to disk before its jobs are settled. A line that a crash tore is mended before anything is
//! added: its job was not settled, so it will be written again. Hidden characters are escapes, so that results can be looked
//! at on a terminal.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rustix::fs::FileType;

use super::results_file::ResultsFile;
use super::{JobResult, ResultForm, Sink};
use crate::error::Error;

/// A stream of JSON Lines.
#[derive(Clone, Debug)]
pub struct JsonLines {
    place: Arc<str>,
    /// Without one, standard output.
    file: Option<Arc<Mutex<ResultsFile>>>,
    form: ResultForm,
}

impl JsonLines {
    /// Appends to a file, which is made if need be and mended if its last line is torn. The file may be renamed, removed
    /// or replaced meanwhile: what is written goes to the one that is at the path. A named pipe that nobody reads is
    /// waited for.
    pub fn append(path: &Path) -> Result<Self, Error> {
        let place: Arc<str> = path.display().to_string().into();
        let file = ResultsFile::open(path).map_err(|source| Error::Sink { place: place.to_string(), source })?;
        Ok(Self { place, file: Some(Arc::new(Mutex::new(file))), form: ResultForm::Whole })
    }

    /// The same, but the file is opened, and made, only when there is something to write.
    pub fn append_later(path: &Path) -> Self {
        let file = Arc::new(Mutex::new(ResultsFile::later(path)));
        Self { place: path.display().to_string().into(), file: Some(file), form: ResultForm::Whole }
    }

    /// Appends no line again that is among the last ones of the file: not every result that comes again is known
    /// to the store, because whoever wrote it may have been killed before its job was settled.
    pub(crate) fn without_repeats(self) -> Self {
        if let Some(file) = &self.file {
            file.lock().unwrap_or_else(PoisonError::into_inner).leave_out_repeats();
        }
        self
    }

    /// Writes to standard output.
    pub fn stdout() -> Self {
        Self { place: "standard output".into(), file: None, form: ResultForm::Whole }
    }

    /// The same, of which so much is written.
    pub fn form(self, form: ResultForm) -> Self {
        Self { form, ..self }
    }

    fn failed(&self, source: io::Error) -> Error {
        let place = self.place.to_string();
        match source.kind() {
            io::ErrorKind::BrokenPipe if self.file.is_none() => Error::SinkClosed(place),
            _ => Error::Sink { place, source },
        }
    }
}

/// Writes to standard output, and flushes it to disk if it is a file. One that has no name any more loses what it is given.
fn write_to_stdout(lines: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(lines)?;
    stdout.flush()?;
    let found = rustix::fs::fstat(&stdout)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Ok(());
    }
    if found.st_nlink == 0 {
        return Err(io::Error::other("the file it goes to was removed"));
    }
    Ok(rustix::fs::fdatasync(&stdout)?)
}

#[async_trait]
impl Sink for JsonLines {
    async fn write(&self, results: &[JobResult]) -> Result<(), Error> {
        let mut lines = Vec::new();
        for result in results {
            if let Some(line) = result.line(self.form).map_err(|error| self.failed(error.into()))? {
                lines.extend_from_slice(line.as_bytes());
                lines.push(b'\n');
            }
        }
        let file = self.file.clone();
        let write = move || match file {
            Some(file) => file.lock().unwrap_or_else(PoisonError::into_inner).write(&lines),
            None => write_to_stdout(&lines),
        };
        let written = tokio::task::spawn_blocking(write).await.unwrap_or_else(|error| Err(io::Error::other(error)));
        written.map_err(|source| self.failed(source))
    }
}
