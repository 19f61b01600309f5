//! The configuration together with what the caller said: which store, which vault, which pipelines.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use redrive_core::ids::PipelineName;
use redrive_core::jobs::{INPUT_BYTES_MAX, InputLimits};
use redrive_core::policy::Policy;
use redrive_core::secrets::Secrets;
use redrive_store::{Location, Options, StoreError};

use super::{
    Config, ConfigError, HandlerKind, ModeKind, PipelineConfig, RanCommands, ResultKind, VaultSection, definition,
    expand, isolation, kept, outside, secrets::expand_address,
};
use crate::error::Error;
use crate::handler::exec::{Command, Exec, Mode};
use crate::pipeline::PAYLOAD_BYTES_MAX;
use crate::vault::Vault;
use crate::{Pipeline, Purpose, Redrive};

/// Where the jobs are kept unless something else is said.
pub const DEFAULT_STORE: &str = "sqlite:.redrive/redrive.db";

/// The configuration and the store's address.
#[derive(Clone)]
pub struct Setting {
    /// The configuration.
    pub config: Config,
    /// Where the store is.
    pub location: Location,
    /// The command that runs one job of a built-in handler in a process of its own, if the program has one.
    isolated: Option<Command>,
    /// The commands that this user ran, if they are to be remembered.
    pub(super) ran: Option<RanCommands>,
    /// The address of the server that jobs are worked on for.
    pub(super) served: Option<String>,
}

/// What the caller says in place of the configuration, for every pipeline that is made.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Jobs to run at once.
    pub concurrency: Option<usize>,
    /// Attempts before a job is dead.
    pub attempts: Option<u32>,
    /// The wait before the second attempt.
    pub backoff: Option<Duration>,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// The most memory that a command and its children, or a fetch that runs alone, may use.
    pub memory_bytes_max: Option<u64>,
    /// Whether the command runs for many jobs.
    pub persistent: bool,
    /// Whether the command that is given works from a saved payload alone.
    pub pure: bool,
    /// Whether a job that succeeds without a result has failed.
    pub require_result: bool,
    /// A command of the caller's own; none if it is empty.
    pub command: Vec<OsString>,
    /// The folder that the command ran in, if it was taken out of the store; see [`Setting::with_kept_command`].
    pub folder: Option<PathBuf>,
}

impl Setting {
    /// Reads the configuration: the file that is named, or the one in the current folder. A store that the caller names comes
    /// before that of the file.
    pub fn load(config: Option<&Path>, store: Option<&str>) -> Result<Self, ConfigError> {
        Self::of(Config::load(config)?, store)
    }

    /// The same, of a configuration that was read already.
    pub fn of(config: Config, store: Option<&str>) -> Result<Self, ConfigError> {
        let address = match (store, config.store.as_deref()) {
            (Some(store), _) => store.to_owned(),
            (None, Some(store)) => expand_address(store).map_err(|why| {
                ConfigError::Location(StoreError::InvalidAddress { address: "of the file".to_owned(), why })
            })?,
            (None, None) => DEFAULT_STORE.to_owned(),
        };
        let location = address.parse().map_err(|error| ConfigError::Location(without_secrets(error)))?;
        Ok(Self { config, location, isolated: None, ran: None, served: None })
    }

    /// The same with a command that runs one job of a built-in handler in a process of its own.
    pub fn isolated_by(mut self, command: Command) -> Self {
        self.isolated = Some(command);
        self
    }

    /// The same, by which commands that are given are noted as run by this user, and known again in a store.
    pub fn remembering(mut self, ran: Option<RanCommands>) -> Self {
        self.ran = ran;
        self
    }

    /// Works for the server at an address. The server learns nothing of commands: they are kept beside the list of those that were
    /// run.
    pub fn for_server(mut self, address: String) -> Self {
        self.served = Some(address);
        self
    }

    /// The same store and program with the configuration of another.
    pub fn with(&self, other: &Self) -> Self {
        Self { config: other.config.clone(), ..self.clone() }
    }

    /// Opens the store that is there.
    pub async fn redrive_existing(&self) -> Result<Redrive, Error> {
        self.opened(Options::default(), Purpose::Command).await
    }

    /// Opens the store, and makes it if need be.
    pub async fn redrive(&self) -> Result<Redrive, Error> {
        self.opened(Options::create(), Purpose::Command).await
    }

    /// The same for who is to work: one that does not answer is waited for.
    pub async fn redrive_to_work(&self) -> Result<Redrive, Error> {
        self.opened(Options::create(), Purpose::Work).await
    }

    async fn opened(&self, options: Options, purpose: Purpose) -> Result<Redrive, Error> {
        let redrive = Redrive::open_for(&self.location, options, purpose).await?;
        redrive.alerts.replace(self.watched_by_workers());
        redrive.configure(Arc::new(self.clone()));
        // One that cannot be used is told of by who needs it.
        let vault = self.vault_place().ok().flatten().map(|place| place.shown());
        Ok(redrive.with_vault_at(vault.as_deref()))
    }

    /// Whether the store of this setting is at a place.
    pub(crate) fn is_at(&self, location: &Location) -> bool {
        let files = self.location.file().map(resolved).zip(location.file().map(resolved));
        files.map_or_else(|| self.location == *location, |(own, other)| own == other)
    }

    /// The vault at an address: as the configuration has it, if it is that one.
    pub(crate) fn vault_section(&self, url: &str) -> VaultSection {
        let known = self.config.vault.clone().filter(|section| section.url == url);
        known.unwrap_or_else(|| VaultSection::at(url))
    }

    /// Where results go. Not into the store's own files: both would be destroyed.
    pub fn results(&self, out: Option<PathBuf>) -> Result<Option<PathBuf>, ConfigError> {
        let (Some(path), Some(store)) = (&out, self.location.file()) else { return Ok(out) };
        let (path, store) = (resolved(path), resolved(store));
        let of_store = |ending: &str| {
            let mut file = store.clone().into_os_string();
            file.push(ending);
            path == file
        };
        if ["", "-wal", "-shm", "-journal"].into_iter().any(of_store) {
            return Err(ConfigError::ResultsInStore(path));
        }
        Ok(out)
    }

    /// The one pipeline that is meant. A command of its own belongs to "default", not to a pipeline of the file.
    pub fn pipeline_name(&self, named: &[PipelineName], own_command: bool) -> Result<PipelineName, ConfigError> {
        let default = || "default".parse().expect("the default name is valid");
        match (named, self.config.pipeline.len()) {
            ([name], _) => Ok(name.clone()),
            ([_, ..], _) => Err(ConfigError::SeveralNamed),
            ([], 0) => Ok(default()),
            ([], _) if own_command => Ok(default()),
            ([], 1) => Ok(self.config.pipeline.keys().next().cloned().unwrap_or_else(default)),
            ([], _) => Err(ConfigError::NoneNamed { known: self.names() }),
        }
    }

    fn names(&self) -> Vec<PipelineName> {
        self.config.pipeline.keys().cloned().collect()
    }

    /// The pipelines whose jobs are worked on here.
    fn names_worked_on(&self) -> Vec<PipelineName> {
        let here = self.config.pipeline.iter().filter(|(_, config)| config.handler != HandlerKind::Remote);
        here.map(|(name, _)| name.clone()).collect()
    }

    /// The policy of a pipeline, as far as the configuration has one.
    pub fn policy(&self, name: &PipelineName) -> Policy {
        self.config.pipeline.get(name).map_or_else(Policy::default, PipelineConfig::policy)
    }

    /// The longest input of a pipeline, in bytes of JSON.
    pub fn input_bytes_max(&self, name: &PipelineName) -> u64 {
        self.config.pipeline.get(name).map_or(INPUT_BYTES_MAX, PipelineConfig::input_bytes_max)
    }

    /// The longest inputs of the pipelines, as far as the configuration names them.
    pub fn input_limits(&self) -> InputLimits {
        let own = self.config.pipeline.iter().map(|(name, config)| (name.clone(), config.input_bytes_max()));
        InputLimits::new(own)
    }

    /// The secrets of a pipeline, as far as the configuration knows them by name.
    pub fn secrets(&self, name: &PipelineName) -> Secrets {
        self.config.pipeline.get(name).map_or_else(Secrets::default, PipelineConfig::secrets)
    }

    /// The target that all jobs of a pipeline have, if the configuration names one.
    pub fn fixed_target(&self, name: &PipelineName) -> Option<String> {
        self.config.pipeline.get(name).and_then(PipelineConfig::fixed_target)
    }

    /// The fields by which tasks of a pipeline without a key of their own are known, if the configuration names any.
    pub fn key_fields(&self, name: &PipelineName) -> Vec<String> {
        self.config.pipeline.get(name).map(|config| config.key.clone()).unwrap_or_default()
    }

    /// The pipelines to work on: those that are named, or all of the configuration.
    pub fn pipelines(
        &self,
        named: &[PipelineName],
        said: &Overrides,
    ) -> Result<Vec<(Pipeline, Option<PathBuf>)>, ConfigError> {
        let names = match (named, said.command.is_empty()) {
            ([], false) => vec![self.pipeline_name(&[], true)?],
            ([], true) => match self.names_worked_on() {
                names if names.is_empty() => return Err(ConfigError::NothingToRun),
                names => names,
            },
            (named, _) => named.to_vec(),
        };
        let alone = names.len() == 1;
        names.into_iter().map(|name| self.build(name, said, alone)).collect()
    }

    /// A pipeline with its handler, and where its results go.
    pub fn pipeline(&self, name: PipelineName, said: &Overrides) -> Result<(Pipeline, Option<PathBuf>), ConfigError> {
        self.build(name, said, true)
    }

    /// The same. A command that cannot be found is an error, unless other pipelines could go on without it.
    pub(super) fn build(
        &self,
        name: PipelineName,
        said: &Overrides,
        alone: bool,
    ) -> Result<(Pipeline, Option<PathBuf>), ConfigError> {
        let config = self.config.pipeline.get(&name).cloned().unwrap_or_default();
        let wrong = |why| ConfigError::Pipeline { pipeline: name.clone(), why };
        self.check_vault(&config).map_err(wrong)?;
        let (built_in, outside) = match said.command.is_empty() {
            true => outside::recorded(|| isolation::handler(&config)),
            false => (Ok(None), outside::Values::new()),
        };
        let mut defined = definition::of(&self.config, &name, said, &outside);
        defined.command = kept::command(&name, &config, said);
        if said.folder.is_none() {
            self.note_ran(&defined);
        }
        let mut pipeline = match built_in.map_err(wrong)? {
            Some(handler) => {
                let pipeline = Pipeline::with_name(name.clone(), handler);
                let memory = said.memory_bytes_max.or(config.memory_max.map(|size| size.0));
                match (self.isolated.clone(), isolation::definition(&self.config, &name, outside)) {
                    (Some(mut command), Some(definition)) => {
                        command.memory_bytes_max = memory.or(command.memory_bytes_max);
                        pipeline.isolate_with(command, definition)
                    }
                    _ => pipeline,
                }
            }
            None => Pipeline::with_name(name.clone(), Arc::new(self.exec(&name, &config, said, alone)?)),
        };
        pipeline = pipeline.with_policy(policy(&config, said)).described(defined);
        if let Some(target) = config.fixed_target() {
            pipeline = pipeline.fixed_target(target);
        }
        // A command that was given takes the place of the handler.
        let at_once = if said.command.is_empty() { Some(config.at_once()) } else { config.concurrency };
        let payload_max = config.payload_max.map_or(PAYLOAD_BYTES_MAX, |size| size.0);
        pipeline = pipeline.keep_payloads(config.payload.into(), payload_max).track(config.track);
        pipeline = pipeline.hand_on_to(config.hand_on.into_iter().map(|name| {
            let target = self.fixed_target(&name);
            (name, target)
        }));
        if said.require_result || config.result == ResultKind::Required {
            pipeline = pipeline.require_result();
        }
        if config.payload_required == Some(false) {
            pipeline = pipeline.payload_optional();
        }
        if config.good_pages == Some(false) {
            pipeline = pipeline.no_good_pages();
        }
        if let Some(jobs) = said.concurrency.or(at_once) {
            pipeline = pipeline.concurrency(jobs);
        }
        Ok((pipeline, config.out.map(|out| self.config.beside(out))))
    }

    /// The handler that runs the pipeline's command, or the one that was given.
    fn exec(
        &self,
        name: &PipelineName,
        config: &PipelineConfig,
        said: &Overrides,
        alone: bool,
    ) -> Result<Exec, ConfigError> {
        let words: Vec<OsString> = match said.command.as_slice() {
            [] => config.command.iter().map(Into::into).collect(),
            command => command.to_vec(),
        };
        let [program, rest @ ..] = words.as_slice() else {
            return Err(ConfigError::NoCommand { pipeline: name.clone(), known: self.names() });
        };
        let wrong = |why| ConfigError::Pipeline { pipeline: name.clone(), why };
        let mut command = Command::new(program, rest.iter().cloned());
        command.secrets = config.secrets();
        for (variable, value) in &config.env {
            let value = expand(value, &mut command.secrets).map_err(wrong)?;
            command.secrets.add_sent(variable, &value);
            command.env.push((variable.into(), value.into()));
        }
        command.folder = said.folder.clone().or_else(|| config.folder.clone());
        command.pure = if said.command.is_empty() { config.pure } else { said.pure };
        if let Some(limit) = said.memory_bytes_max.or(config.memory_max.map(|size| size.0)) {
            command.memory_bytes_max = Some(limit);
        }
        match command.check() {
            Err(why) if alone => return Err(wrong(why)),
            // It is held when it has a job, and goes on by itself once the command is there.
            Err(why) => tracing::warn!(pipeline = %name, "{why}"),
            Ok(()) => {}
        }
        let mode = match said.persistent || config.mode == ModeKind::Persistent {
            true => Mode::Persistent,
            false => Mode::Process,
        };
        Ok(Exec::new(command, mode))
    }
}

/// A pipeline with the vault for its payloads. Pipelines share one, so that each knows what the others learn about it.
pub fn with_vault(pipeline: Pipeline, vault: Option<&Vault>) -> Pipeline {
    match vault {
        Some(vault) => pipeline.vault(vault.clone()),
        None => pipeline,
    }
}

/// The path of a file without links on the way; the file itself need not be there.
fn resolved(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let in_parent = || Some(parent.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(in_parent).unwrap_or_else(|| path.to_owned())
}

fn policy(config: &PipelineConfig, said: &Overrides) -> Policy {
    let mut policy = config.policy();
    if let Some(attempts) = said.attempts {
        policy.retry = policy.retry.with_attempts(attempts);
    }
    policy.retry.base = said.backoff.unwrap_or(policy.retry.base);
    policy.deadline = said.timeout.unwrap_or(policy.deadline);
    policy
}

/// An address that is none, without the password that may be in it.
fn without_secrets(error: StoreError) -> StoreError {
    match error {
        StoreError::InvalidLocation { text, known } => {
            StoreError::InvalidLocation { text: Secrets::default().mask(&text), known }
        }
        other => other,
    }
}
