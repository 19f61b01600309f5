//! The file, or standard output, that an export goes to.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use redrive::dead::DeadError;

/// Where an export goes.
pub struct Output {
    path: PathBuf,
}

impl Output {
    /// `-` is standard output.
    pub fn to(path: PathBuf) -> Self {
        Self { path }
    }

    fn unwritten(&self) -> String {
        format!("cannot write {}", self.path.display())
    }

    /// An error of writing to it, with its name; others as they are.
    pub fn named(&self, error: redrive::Error) -> anyhow::Error {
        match error {
            redrive::Error::Dead(DeadError::Unwritten(why)) => self.unwritten_because(why),
            other => other.into(),
        }
    }

    /// Returns an error of writing to it, with its name.
    pub fn unwritten_because(&self, error: io::Error) -> anyhow::Error {
        anyhow::Error::new(error).context(self.unwritten())
    }

    /// Whether it goes to a terminal.
    pub fn is_terminal(&self) -> bool {
        self.is_stdout() && io::stdout().is_terminal()
    }

    fn is_stdout(&self) -> bool {
        self.path == Path::new("-")
    }

    /// Opens it.
    pub fn open(&self) -> Result<Box<dyn Write>> {
        Ok(match self.is_stdout() {
            true => Box::new(BufWriter::new(io::stdout())),
            false => Box::new(BufWriter::new(File::create(&self.path).with_context(|| self.unwritten())?)),
        })
    }

    /// Makes sure that what was written is on disk.
    pub fn sync(&self) -> Result<()> {
        if self.is_stdout() {
            return Ok(());
        }
        File::open(&self.path).and_then(|file| file.sync_all()).with_context(|| self.unwritten())
    }
}
