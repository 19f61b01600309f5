//! The files that results go to: named by the caller or the configuration, or remembered from an earlier command.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use redrive::config::{KeptFor, Setting};
use redrive::sink::{JsonLines, ResultForm, Sink};
use redrive::{Error, Pipeline};
use redrive_client::Desk;
use redrive_core::definitions::{DefinitionVersion, ResultsFile};
use redrive_core::failures::with_sources;
use redrive_core::ids::PipelineName;

use crate::output::print::say;

/// Decides which file results of a pipeline go to. Says so if nobody named it now.
pub async fn file(
    setting: &Setting,
    desk: &Desk,
    name: &PipelineName,
    said: Option<PathBuf>,
    (of, trusted): (KeptFor<'_>, bool),
) -> Result<Option<ResultsFile>> {
    let is_said = said.is_some();
    let file = match desk {
        Desk::Here(redrive) => setting.results_file(redrive, name, said, (of, trusted)).await?,
        Desk::There(_) => setting.results_file_of(name, said, &versions_there(desk, name, of).await?)?,
    };
    if let Some(file) = file.as_ref().filter(|_| !is_said) {
        say!("results: {}", near(&file.path).display());
    }
    Ok(file)
}

/// The versions that jobs of a server were tried with.
pub async fn versions_there(
    desk: &Desk,
    name: &PipelineName,
    of: KeptFor<'_>,
) -> Result<Vec<Option<DefinitionVersion>>> {
    Ok(match of {
        KeptFor::Version(version) => vec![version.cloned()],
        KeptFor::Pinned(pins) => pins.get(name).cloned().map(Some).into_iter().collect(),
        KeptFor::Letters(letters) => desk.tried_versions(letters, name).await?,
    })
}

/// Has results of a pipeline written to a sink, and remembers the file that it writes to. A pipe or a device is not remembered.
pub fn written(
    setting: &Setting,
    pipeline: Pipeline,
    file: Option<&ResultsFile>,
    sink: impl Sink + 'static,
) -> Pipeline {
    // Standard output may be a file, and is another one the next time.
    let is_own =
        |path: &Path| ["/dev/std", "/dev/fd/", "/proc/"].iter().any(|own| path.to_string_lossy().starts_with(own));
    let is_kept = |file: &&ResultsFile| file.path.is_file() && !is_own(&file.path);
    let pipeline = match file.filter(is_kept) {
        Some(file) => pipeline.results_to(file.clone()),
        None => pipeline,
    };
    setting.note_results(&pipeline);
    pipeline.sink(sink)
}

/// Opens a file of results, before anything is attempted.
pub fn open(file: &ResultsFile) -> Result<JsonLines> {
    Ok(JsonLines::append(&near(&file.path)).map_err(|error| unopened(&error))?.form(form(file)))
}

/// Results that cannot be written, with the way out.
pub fn unopened(error: &Error) -> anyhow::Error {
    anyhow!("{}; say where results go with --out FILE", with_sources(error))
}

/// What is written of each result.
pub const fn form(file: &ResultsFile) -> ResultForm {
    if file.bare { ResultForm::Bare } else { ResultForm::Whole }
}

/// Returns a path as people know it here: from the current folder if it is in it.
pub fn near(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let near = path.strip_prefix(here).ok().filter(|near| !near.as_os_str().is_empty());
    near.unwrap_or(path).to_owned()
}
