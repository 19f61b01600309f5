//! Commands that were given on a command line: what is kept of them, and running them again for the letters that died of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use redrive_core::definitions::{
    CommandOf, Definition, DefinitionVersion, KeptCommand, Pins, ResultsFile, command_of, results_of,
};
use redrive_core::ids::PipelineName;
use redrive_store::contract::{DeadFilter, Selection};

use super::ran::NotedResults;
use super::{ConfigError, Overrides, PipelineConfig, RanCommands, Setting};
use crate::Redrive;
use crate::error::Error;
use crate::pipeline::Pipeline;

/// What a command is looked for that was given on an earlier command line.
#[derive(Clone, Copy, Debug)]
pub enum KeptFor<'a> {
    /// Letters: the one that all of them died of.
    Letters(&'a Selection),
    /// A replay that was begun: the one that it was begun with.
    Pinned(&'a Pins),
    /// A pipeline as it is now.
    Version(Option<&'a DefinitionVersion>),
}

impl Setting {
    /// What the caller says, with the command that letters of a pipeline died of, if neither the caller nor the configuration has
    /// one. It is taken only if it is the same for all of them, and if this user ran the very same before, or the store is to be
    /// trusted.
    pub async fn with_kept_command(
        &self,
        redrive: &Redrive,
        name: &PipelineName,
        said: &Overrides,
        (of, trusted): (KeptFor<'_>, bool),
    ) -> Result<Overrides, Error> {
        match self.needs_command(name, said) {
            true => Ok(self.with_command(name, said, (find(redrive, name, of).await?, trusted))?),
            false => Ok(said.clone()),
        }
    }

    /// Whether neither the caller nor the configuration has a command for a pipeline.
    pub fn needs_command(&self, name: &PipelineName, said: &Overrides) -> bool {
        said.command.is_empty() && !self.config.pipeline.contains_key(name)
    }

    /// The same of letters that a server has, by the versions that they died of: the commands are looked for among those that this user
    /// ran for a server, which never get there.
    pub fn with_command_of(
        &self,
        name: &PipelineName,
        said: &Overrides,
        versions: &[Option<DefinitionVersion>],
    ) -> Result<Overrides, ConfigError> {
        let known = self.ran.as_ref().map(RanCommands::served).unwrap_or_default();
        self.with_command(name, said, (command_of(versions, &known), false))
    }

    /// What the caller says, with a command that was found, if it may be run.
    fn with_command(
        &self,
        name: &PipelineName,
        said: &Overrides,
        (found, trusted): (CommandOf, bool),
    ) -> Result<Overrides, ConfigError> {
        let pipeline = name.clone();
        let kept = match found {
            CommandOf::Unknown => return Ok(said.clone()),
            CommandOf::Several(commands) => {
                let commands = commands.iter().map(|command| command.as_ref().map(shown)).collect();
                return Err(ConfigError::SeveralCommands { pipeline, commands });
            }
            CommandOf::One(kept) => kept,
        };
        let command = kept.words.join(" ");
        if !kept.is_whole() {
            return Err(ConfigError::CommandHasSecrets { pipeline, command });
        }
        if !trusted && !self.ran.as_ref().is_some_and(|ran| ran.has(&kept)) {
            return Err(ConfigError::CommandOfOthers { pipeline, command, folder: kept.folder });
        }
        Ok(Overrides {
            command: kept.words.into_iter().map(Into::into).collect(),
            folder: Some(kept.folder.into()),
            pure: said.pure || kept.pure,
            persistent: said.persistent || kept.persistent,
            require_result: said.require_result || kept.require_result,
            timeout: said.timeout.or(kept.timeout_ms.map(Duration::from_millis)),
            memory_bytes_max: said.memory_bytes_max.or(kept.memory_bytes_max),
            ..said.clone()
        })
    }

    /// Decides which file results go to: the one that is said, or else the one that results of the same jobs went to before. Returns
    /// nothing if there is none. A file that only the store names is taken only if this user had results written to it, or if the
    /// store is to be trusted. Refuses jobs of a new definition if those of an earlier one had a file.
    pub async fn results_file(
        &self,
        redrive: &Redrive,
        name: &PipelineName,
        said: Option<PathBuf>,
        (of, trusted): (KeptFor<'_>, bool),
    ) -> Result<Option<ResultsFile>, Error> {
        let versions = versions(redrive, name, of).await?;
        let known = redrive.store().list_definitions(Some(name.clone())).await?;
        let is_known = |version: &_| known.iter().any(|known| Some(&known.version) == Option::as_ref(version));
        let is_new = !versions.iter().all(is_known);
        let kept: Vec<_> = known.into_iter().filter_map(|known| Some((known.version, known.results?))).collect();
        let found = results_of(&versions, kept.iter().cloned());
        if said.is_none() && is_new && found.is_empty() && !kept.is_empty() {
            // They would only be printed.
            return Err(unclear(name, kept.into_iter().map(|(_, file)| file.path).collect()).into());
        }
        Ok(self.chosen(name, said, (found, trusted))?)
    }

    /// Decides it for jobs that a server has, by the versions that they were tried with: the files are those of this user for this server. Refuses jobs of
    /// versions without a file if those of another one had a file.
    pub fn results_file_of(
        &self,
        name: &PipelineName,
        said: Option<PathBuf>,
        versions: &[Option<DefinitionVersion>],
    ) -> Result<Option<ResultsFile>, ConfigError> {
        let mut noted = self.ran.as_ref().map(RanCommands::results).unwrap_or_default();
        noted.retain(|noted| noted.server == self.served);
        let of_pipeline = noted.iter().filter(|noted| noted.pipeline.as_ref() == Some(name));
        let before: BTreeSet<_> = of_pipeline.map(|noted| noted.file.path.clone()).collect();
        // The last of each version counts.
        let kept: BTreeMap<_, _> = noted.into_iter().map(|noted| (noted.version, noted.file)).collect();
        let found = results_of(versions, kept);
        if said.is_none() && found.is_empty() && !before.is_empty() {
            return Err(unclear(name, before));
        }
        self.chosen(name, said, (found, true))
    }

    fn chosen(
        &self,
        name: &PipelineName,
        said: Option<PathBuf>,
        (found, trusted): (BTreeSet<ResultsFile>, bool),
    ) -> Result<Option<ResultsFile>, ConfigError> {
        let is_bare = |path: &Path| found.iter().any(|file| file.bare && file.path == path);
        if let Some(path) = self.results(said)? {
            let path = std::path::absolute(&path).unwrap_or(path);
            return Ok(Some(ResultsFile { bare: is_bare(&path), path }));
        }
        let mut paths: BTreeSet<_> = found.iter().map(|file| file.path.clone()).collect();
        let Some(path) = paths.pop_first() else { return Ok(None) };
        if !paths.is_empty() {
            paths.insert(path);
            return Err(unclear(name, paths));
        }
        let own = || self.ran.as_ref().is_some_and(|ran| ran.results().iter().any(|noted| noted.file.path == path));
        if !trusted && !own() {
            return Err(ConfigError::ResultsOfOthers { pipeline: name.clone(), path });
        }
        Ok(Some(ResultsFile { bare: is_bare(&path), path }))
    }

    /// Notes that this user has results of a pipeline written to the file that its definition names.
    pub fn note_results(&self, pipeline: &Pipeline) {
        let Some(Definition { version, results: Some(file), .. }) = &pipeline.definition else { return };
        let (version, file, pipeline) = (version.clone(), file.clone(), Some(pipeline.name.clone()));
        let noted = NotedResults { version, file, pipeline, server: self.served.clone() };
        if let Some(Err(error)) = self.ran.as_ref().map(|ran| ran.note_results(&noted)) {
            tracing::debug!(%error, "it could not be noted where results go");
        }
    }

    /// Notes that this user ran the command of a definition.
    pub(super) fn note_ran(&self, defined: &Definition) {
        let (Some(ran), Some(command)) = (&self.ran, &defined.command) else { return };
        let noted = ran.note(command).and_then(|()| match self.served.is_some() {
            true => ran.note_served(&defined.version, command),
            false => Ok(()),
        });
        if let Err(error) = noted {
            tracing::debug!(%error, "it could not be noted that this command was run");
        }
    }
}

/// Refuses to choose one of these files, or none.
fn unclear(pipeline: &PipelineName, paths: BTreeSet<PathBuf>) -> ConfigError {
    let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    ConfigError::UnclearResults { pipeline: pipeline.clone(), paths: paths.join(", ") }
}

/// The versions that jobs were tried with.
async fn versions(
    redrive: &Redrive,
    name: &PipelineName,
    of: KeptFor<'_>,
) -> Result<Vec<Option<DefinitionVersion>>, Error> {
    match of {
        KeptFor::Version(version) => Ok(vec![version.cloned()]),
        KeptFor::Pinned(pins) => Ok(pins.get(name).cloned().map(Some).into_iter().collect()),
        KeptFor::Letters(letters) => {
            let filter = DeadFilter { pipeline: Some(name.clone()), ..letters.filter.clone() };
            Ok(redrive.store().list_tried_versions(Selection { filter, ids: letters.ids.clone() }).await?)
        }
    }
}

async fn find(redrive: &Redrive, name: &PipelineName, of: KeptFor<'_>) -> Result<CommandOf, Error> {
    let versions = versions(redrive, name, of).await?;
    let known = redrive.store().list_definitions(Some(name.clone())).await?;
    let known: Vec<_> = known.into_iter().map(|known| (known.version, known.commands)).collect();
    Ok(command_of(&versions, &known))
}

fn shown(command: &KeptCommand) -> String {
    format!("{:?} in {}", command.words.join(" "), command.folder)
}

/// The command that the caller gave, as the store keeps it. Arguments that look secret are told of.
pub(super) fn command(name: &PipelineName, config: &PipelineConfig, said: &Overrides) -> Option<KeptCommand> {
    let words: Option<Vec<_>> = said.command.iter().map(|word| word.to_str().map(str::to_owned)).collect();
    let words = words.filter(|words| !words.is_empty())?;
    let folder = said.folder.clone().or_else(|| std::env::current_dir().ok())?.to_str()?.to_owned();
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let given = KeptCommand {
        words,
        folder,
        pure: said.pure,
        persistent: said.persistent,
        require_result: said.require_result,
        timeout_ms: said.timeout.map(millis),
        memory_bytes_max: said.memory_bytes_max,
    };
    let (kept, secret) = given.masked(&config.secrets());
    for argument in secret {
        tracing::warn!(
            pipeline = %name,
            "an argument of the command looks secret ({argument}): everybody on this machine can see it, and it is not kept, so \
             that a replay needs the command again; hand it over in a variable instead"
        );
    }
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_results_are_those_of_the_same_server() {
        let folder = tempfile::tempdir().expect("a folder");
        let ran = RanCommands::at(folder.path());
        let (version, pipeline) = (DefinitionVersion::new("1"), "shop".parse::<PipelineName>().expect("a name"));
        let file = ResultsFile { path: "/r.jsonl".into(), bare: false };
        let noted = |server: Option<&str>| NotedResults {
            version: version.clone(),
            file: file.clone(),
            pipeline: Some(pipeline.clone()),
            server: server.map(Into::into),
        };
        let of = |server: &str, version: &DefinitionVersion| {
            let setting = Setting::load(None, None).expect("a setting").remembering(Some(ran.clone()));
            setting.for_server(server.into()).results_file_of(&pipeline, None, &[Some(version.clone())])
        };
        ran.note_results(&noted(None)).expect("noted");
        assert_eq!(of("http://a", &version).expect("chosen"), None, "it is of a store that is here");
        ran.note_results(&noted(Some("http://a"))).expect("noted");
        assert_eq!(of("http://a", &version).expect("chosen"), Some(file.clone()));
        assert!(of("http://a", &DefinitionVersion::new("2")).is_err(), "results would only be printed");
        for other in [&version, &DefinitionVersion::new("2")] {
            assert_eq!(of("http://b", other).expect("chosen"), None, "another server has other jobs");
        }
    }
}
