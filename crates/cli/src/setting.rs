//! Arguments and configuration together: which store, which pipelines, which handler.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use redrive::handler::exec::{Command, Exec, Mode};
use redrive::pipeline::PAYLOAD_BYTES_MAX;
use redrive::vault::{SPOOL_BYTES_MAX, Spool, Vault};
use redrive::{Pipeline, Redrive};
use redrive_core::ids::PipelineName;
use redrive_core::policy::Policy;
use redrive_store::{Location, OpenMode, Store};

use crate::args::{Global, HandlerArgs};
use crate::config::{self, Config, ModeKind, PipelineConfig, isolation, outside};
use crate::exit::usage;

/// Where the jobs are kept unless something else is said.
pub const DEFAULT_STORE: &str = "sqlite:.redrive/redrive.db";

/// The configuration and the store's address.
pub struct Setting {
    pub config: Config,
    pub location: Location,
}

impl Setting {
    /// Reads the configuration; the command line comes before it.
    pub fn load(global: &Global) -> Result<Self> {
        let config = Config::load(global.config.as_deref())?;
        let address = global.store.as_deref().or(config.store.as_deref()).unwrap_or(DEFAULT_STORE);
        let location = address.parse().map_err(|error: redrive_store::StoreError| usage(error.to_string()))?;
        Ok(Self { config, location })
    }

    /// Opens the store to look at what is there.
    pub fn existing_store(&self) -> Result<Arc<dyn Store>> {
        Ok(redrive_store::open(&self.location, OpenMode::Existing)?)
    }

    /// The same, to act on it.
    pub fn redrive_existing(&self) -> Result<Redrive> {
        Ok(Redrive::over(self.existing_store()?))
    }

    /// Opens the store, and makes it if need be.
    pub fn redrive(&self) -> Result<Redrive> {
        Ok(Redrive::over(redrive_store::open(&self.location, OpenMode::Create)?))
    }

    /// The vault: the configured one, or a folder beside the store; none for a store in memory.
    pub fn vault(&self, redrive: &Redrive) -> Result<Option<Vault>> {
        let beside = |path: &Path| redrive_store::payloads_beside(path).display().to_string();
        let address = match (&self.config.vault, &self.location) {
            (Some(address), _) => address.clone(),
            (None, Location::Sqlite(path)) => beside(path),
            (None, Location::Memory) => return Ok(None),
        };
        let vault = Vault::open(&address, redrive)?;
        Ok(Some(match &self.location {
            Location::Sqlite(path) => vault.with_spool(self.spool(path)),
            Location::Memory => vault,
        }))
    }

    /// Where payloads wait while the vault is away.
    pub fn spool(&self, store: &Path) -> Spool {
        Spool::beside(store, self.config.spool_max.map_or(SPOOL_BYTES_MAX, |size| size.0))
    }

    /// Where results go. Not into the store's own files: both would be destroyed.
    pub fn results(&self, out: Option<PathBuf>) -> Result<Option<PathBuf>> {
        let (Some(path), Location::Sqlite(store)) = (&out, &self.location) else { return Ok(out) };
        let (path, store) = (resolved(path), resolved(store));
        let of_store = |ending: &str| {
            let mut file = store.clone().into_os_string();
            file.push(ending);
            path == file
        };
        if ["", "-wal", "-shm", "-journal"].into_iter().any(of_store) {
            return Err(usage(format!("{} is a file of the store: write the results to another one", path.display())));
        }
        Ok(out)
    }

    /// The one pipeline that is meant. A command of its own belongs to "default", not to a pipeline of the file.
    pub fn pipeline_name(&self, named: &[PipelineName], own_command: bool) -> Result<PipelineName> {
        let default = || "default".parse().expect("the default name is valid");
        match (named, self.config.pipeline.len()) {
            ([name], _) => Ok(name.clone()),
            ([_, ..], _) => Err(usage("name one pipeline with --pipeline, not several")),
            ([], 0) => Ok(default()),
            ([], _) if own_command => Ok(default()),
            ([], 1) => Ok(self.config.pipeline.keys().next().cloned().unwrap_or_else(default)),
            ([], _) => Err(usage(format!("name one of the pipelines with --pipeline: {}", self.names()))),
        }
    }

    fn names(&self) -> String {
        self.config.pipeline.keys().map(PipelineName::as_str).collect::<Vec<_>>().join(", ")
    }

    /// The policy of a pipeline, as far as the configuration has one.
    pub fn policy(&self, name: &PipelineName) -> Policy {
        self.config.pipeline.get(name).map_or_else(Policy::default, PipelineConfig::policy)
    }

    /// The target that all jobs of a pipeline have, if the configuration names one.
    pub fn fixed_target(&self, name: &PipelineName) -> Option<String> {
        self.config.pipeline.get(name).and_then(PipelineConfig::fixed_target)
    }

    /// The pipelines to work on: those that are named, or all of the configuration.
    pub fn pipelines(&self, args: &HandlerArgs) -> Result<Vec<(Pipeline, Option<PathBuf>)>> {
        let names = match (args.pipeline.as_slice(), args.command.is_empty()) {
            ([], false) => vec![self.pipeline_name(&[], true)?],
            ([], true) if self.config.pipeline.is_empty() => {
                return Err(usage(
                    "nothing to run: give a command after --, or define a pipeline in redrive.toml (`redrive init` writes one)",
                ));
            }
            ([], true) => self.config.pipeline.keys().cloned().collect(),
            (named, _) => named.to_vec(),
        };
        let alone = names.len() == 1;
        names.into_iter().map(|name| self.build(name, args, alone)).collect()
    }

    /// A pipeline with its handler, and where its results go.
    pub fn pipeline(&self, name: PipelineName, args: &HandlerArgs) -> Result<(Pipeline, Option<PathBuf>)> {
        self.build(name, args, true)
    }

    /// The same. A command that cannot be found is an error, unless other pipelines could go on without it.
    fn build(&self, name: PipelineName, args: &HandlerArgs, alone: bool) -> Result<(Pipeline, Option<PathBuf>)> {
        let config = self.config.pipeline.get(&name).cloned().unwrap_or_default();
        let wrong = |why| usage(format!("pipeline {name}: {why}"));
        let (built_in, outside) = match args.command.is_empty() {
            true => outside::recorded(|| isolation::handler(&config)),
            false => (Ok(None), outside::Values::new()),
        };
        let mut pipeline = match built_in.map_err(wrong)? {
            Some(handler) => {
                let pipeline = Pipeline::with_name(name.clone(), handler);
                let memory = args.memory.or(config.memory_max.map(|size| size.0));
                match isolation::definition(&self.config, &name, outside) {
                    Some(definition) => pipeline.isolate_with(isolation::command(memory), definition),
                    None => pipeline,
                }
            }
            None => Pipeline::with_name(name.clone(), Arc::new(self.exec(&name, &config, args, alone)?)),
        };
        pipeline = pipeline.with_policy(policy(&config, args));
        let payload_max = config.payload_max.map_or(PAYLOAD_BYTES_MAX, |size| size.0);
        pipeline = pipeline.keep_payloads(config.payload.into(), payload_max).track(config.track);
        if config.payload_required == Some(false) {
            pipeline = pipeline.payload_optional();
        }
        if let Some(jobs) = args.concurrency.map(usize::from).or(config.concurrency) {
            pipeline = pipeline.concurrency(jobs);
        }
        Ok((pipeline, config.out))
    }

    /// The handler that runs the pipeline's command, or the one that was given.
    fn exec(&self, name: &PipelineName, config: &PipelineConfig, args: &HandlerArgs, alone: bool) -> Result<Exec> {
        let words: Vec<OsString> = match args.command.as_slice() {
            [] => config.command.iter().map(Into::into).collect(),
            command => command.to_vec(),
        };
        let [program, rest @ ..] = words.as_slice() else {
            let known = match self.config.pipeline.is_empty() {
                true => String::new(),
                false => format!(" (it has: {})", self.names()),
            };
            return Err(usage(format!(
                "pipeline {name} has no command: give one after --, or define it in redrive.toml{known}"
            )));
        };
        let mut command = Command::new(program, rest.iter().cloned());
        command.secrets = config.secrets();
        for (variable, value) in &config.env {
            let value =
                config::expand(value, &mut command.secrets).map_err(|why| usage(format!("pipeline {name}: {why}")))?;
            command.secrets.add_sent(variable, &value);
            command.env.push((variable.into(), value.into()));
        }
        command.folder = config.folder.clone();
        command.pure = if args.command.is_empty() { config.pure } else { args.pure };
        if let Some(limit) = args.memory.or(config.memory_max.map(|size| size.0)) {
            command.memory_bytes_max = Some(limit);
        }
        match command.check() {
            Err(why) if alone => return Err(usage(format!("pipeline {name}: {why}"))),
            // It is held when it has a job, and goes on by itself once the command is there.
            Err(why) => tracing::warn!(pipeline = %name, "{why}"),
            Ok(()) => {}
        }
        let mode = match args.persistent || config.mode == ModeKind::Persistent {
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

fn policy(config: &PipelineConfig, args: &HandlerArgs) -> Policy {
    let mut policy = config.policy();
    if let Some(attempts) = args.attempts {
        policy.retry = policy.retry.with_attempts(attempts);
    }
    policy.retry.base = args.backoff.unwrap_or(policy.retry.base);
    policy.deadline = args.timeout.unwrap_or(policy.deadline);
    policy
}
