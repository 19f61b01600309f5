//! A pipeline: a name, a handler and a policy.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::definitions::{Definition, DefinitionVersion, Pins, ResultsFile, fits};
use redrive_core::hand_on::Receivers;
use redrive_core::ids::PipelineName;
use redrive_core::jobs::{Input, field};
use redrive_core::policy::Policy;
use redrive_core::secrets::Secrets;
use redrive_core::traffic::tracked_value;
use redrive_core::workers::{Runs, TakesReplays};
use serde_json::Value;

use crate::error::Error;
use crate::export::HttpRequest;
use crate::handler::exec::Command;
use crate::handler::isolated::Isolated;
use crate::handler::{Elsewhere, Handler};
use crate::sink::{JobResult, NoSink, ResultForm, Sink};
use crate::vault::{Keep, Vault};

/// A named stream of jobs with one handler and one policy. Cheap to clone.
#[derive(Clone)]
pub struct Pipeline {
    pub(crate) name: PipelineName,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) concurrency: usize,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) vault: Option<Vault>,
    /// Whether its payloads are kept by a server, and not in a vault of this process.
    pub(crate) saved_elsewhere: bool,
    pub(crate) keep: Keep,
    pub(crate) payload_bytes_max: u64,
    pub(crate) payload_required: bool,
    pub(crate) good_pages: bool,
    pub(crate) result_required: bool,
    /// In which form its results are appended to a file, if they are.
    pub(crate) results_file: Option<ResultForm>,
    pub(crate) tracked: Arc<[String]>,
    /// Runs suspects in processes of their own.
    pub(crate) isolated: Option<Arc<dyn Handler>>,
    /// The pipelines that its jobs may hand on to, and the targets that jobs have there, and here.
    pub(crate) receivers: Arc<Receivers>,
    /// What it effectively is, if that has a version.
    pub(crate) definition: Option<Definition>,
}

/// The most that is kept of a payload unless something else is said, in bytes.
pub const PAYLOAD_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The same pipelines, where each knows the targets that all jobs of the others have.
pub(crate) fn acquainted(mut pipelines: Vec<Pipeline>) -> Vec<Pipeline> {
    let fixed = |pipeline: &Pipeline| Some((pipeline.name.clone(), pipeline.receivers.own_target.clone()?));
    let fixed: BTreeMap<_, _> = pipelines.iter().filter_map(fixed).collect();
    for pipeline in pipelines.iter_mut().filter(|pipeline| !pipeline.receivers.others.is_empty()) {
        for (name, target) in &mut Arc::make_mut(&mut pipeline.receivers).others {
            if target.is_none() {
                *target = fixed.get(name).cloned();
            }
        }
    }
    pipelines
}

/// How many jobs run at once unless something else is said.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Pipeline {
    /// A pipeline with the default policy that runs as many jobs at once as the machine has cores.
    pub fn new(name: &str, handler: impl Handler + 'static) -> Result<Self, Error> {
        Ok(Self::with_name(name.parse()?, Arc::new(handler)))
    }

    /// The same, with a name that was checked already.
    pub fn with_name(name: PipelineName, handler: Arc<dyn Handler>) -> Self {
        let concurrency = cores();
        Self {
            name,
            policy: Arc::new(Policy { proxies: handler.proxies(), ..Policy::default() }),
            handler,
            concurrency,
            sink: Arc::new(NoSink),
            vault: None,
            saved_elsewhere: false,
            keep: Keep::default(),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            payload_required: true,
            good_pages: true,
            result_required: false,
            results_file: None,
            tracked: Arc::default(),
            isolated: None,
            receivers: Arc::default(),
            definition: None,
        }
    }

    /// The pipeline's name.
    pub fn name(&self) -> &PipelineName {
        &self.name
    }

    /// The same, whose jobs may hand on jobs to these pipelines besides their own.
    pub fn hand_on(self, pipelines: Vec<PipelineName>) -> Self {
        self.hand_on_to(pipelines.into_iter().map(|name| (name, None)))
    }

    /// The same, where it is known which target all jobs of a pipeline have.
    pub(crate) fn hand_on_to(mut self, others: impl IntoIterator<Item = (PipelineName, Option<String>)>) -> Self {
        Arc::make_mut(&mut self.receivers).others = others.into_iter().collect();
        self
    }

    /// The pipelines that its jobs may hand on to, besides its own.
    pub fn hands_on_to(&self) -> impl Iterator<Item = &PipelineName> {
        self.receivers.others.keys()
    }

    /// The same with a target that all of its jobs have, whatever their input says.
    pub fn fixed_target(mut self, target: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.receivers).own_target = Some(target.into());
        self
    }

    /// How many of its jobs run at once.
    pub const fn at_once(&self) -> usize {
        self.concurrency
    }

    /// Writes results to where they go.
    pub async fn write(&self, results: &[JobResult]) -> Result<(), Error> {
        self.sink.write(results).await
    }

    /// The pipeline's handler.
    pub fn handler(&self) -> Arc<dyn Handler> {
        Arc::clone(&self.handler)
    }

    /// The pipeline's policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The same with another policy. If it names no proxies, those of the handler hold.
    pub fn with_policy(mut self, mut policy: Policy) -> Self {
        if policy.proxies.labels.is_empty() {
            policy.proxies = self.handler.proxies();
        }
        self.policy = Arc::new(policy);
        self
    }

    /// The same with so many attempts before a job is buried.
    pub fn attempts(mut self, attempts: u32) -> Self {
        let retry = &mut Arc::make_mut(&mut self.policy).retry;
        *retry = retry.clone().with_attempts(attempts);
        self
    }

    /// The same with a first wait between attempts; it doubles from there.
    pub fn backoff(mut self, base: Duration) -> Self {
        Arc::make_mut(&mut self.policy).retry.base = base;
        self
    }

    /// The same with so many jobs at once.
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.concurrency = jobs.max(1);
        self
    }

    /// The same with a vault for its payloads.
    pub fn vault(mut self, vault: Vault) -> Self {
        self.vault = Some(vault);
        self
    }

    /// The same, whose payloads a server keeps: it works from saved ones without a vault here.
    pub fn saved_elsewhere(mut self) -> Self {
        self.saved_elsewhere = true;
        self
    }

    /// The same as it is for who runs its jobs elsewhere: in that version, and from saved payloads or not.
    pub fn run_elsewhere(mut self, version: Option<DefinitionVersion>, from_saved: bool) -> Self {
        let secrets = self.handler.secrets().cloned().unwrap_or_default();
        (self.handler, self.isolated) = (Arc::new(Elsewhere::masking(secrets).by_worker(from_saved)), None);
        let known = self.definition.take();
        self.definition = version.map(|version| match known {
            Some(known) if known.version == version => known,
            _ => Definition::of_version(version),
        });
        self
    }

    /// Has its jobs wait without end for a target that stays away.
    pub fn waiting_forever(mut self) -> Self {
        Arc::make_mut(&mut self.policy).breaker.hold_max = None;
        self
    }

    /// Returns what others see of a worker that runs it.
    pub(crate) fn runs(&self, replays: TakesReplays) -> Runs {
        let waits_forever = self.policy.breaker.hold_max.is_none();
        Runs { pipeline: self.name.clone(), definition: self.definition().cloned(), waits_forever, replays }
    }

    /// The same with another answer to when payloads are kept, and how much of each.
    pub fn keep_payloads(mut self, keep: Keep, bytes_max: u64) -> Self {
        self.keep = keep;
        self.payload_bytes_max = bytes_max;
        self
    }

    /// The same, but an attempt whose payload cannot be kept anywhere counts all the same; its failure says that the payload
    /// is lost, and why.
    pub fn payload_optional(mut self) -> Self {
        self.payload_required = false;
        self
    }

    /// The same, but pages that worked are not kept, to be put beside those that broke.
    pub fn no_good_pages(mut self) -> Self {
        self.good_pages = false;
        self
    }

    /// Whether pages that worked are kept.
    pub(crate) fn wants_good_pages(&self) -> bool {
        self.good_pages && self.keep != Keep::Never
    }

    /// The address of the page that a job with this input is about, without secrets, if it is about one.
    pub(crate) fn page_url(&self, input: &Input) -> Option<String> {
        let plain = || {
            let url = input.get("url")?.as_str().filter(|url| url.contains("://"))?;
            Some(Secrets::default().mask(url))
        };
        self.handler.request(input, None).map(|request| request.url).or_else(plain)
    }

    /// The same, but a job that succeeds without a result (null, or text, a list or an object with nothing in it) and hands on
    /// nothing has failed.
    pub fn require_result(mut self) -> Self {
        self.result_required = true;
        self
    }

    /// The same with fields of the input whose values are kept count of: how often jobs with each are done, and how often
    /// they die.
    pub fn track(mut self, fields: impl IntoIterator<Item = String>) -> Self {
        self.tracked = fields.into_iter().collect();
        self
    }

    /// The same with a command that runs one job in a process of its own; see [`handler::isolated`](crate::handler::isolated).
    /// Jobs that a worker died with are run again by it, so that only the death of their own process is counted against them.
    /// Without it they run again inside a worker, one at a time. `definition` is what the process makes its handler of.
    pub fn isolate_with(mut self, command: Command, definition: Value) -> Self {
        self.isolated = Some(Arc::new(Isolated::new(command, definition, Arc::clone(&self.handler))));
        self
    }

    /// The same with a version of its definition: jobs record it, and replays are pinned to it.
    pub fn defined(self, version: DefinitionVersion) -> Self {
        self.described(Definition::of_version(version))
    }

    /// The same with a definition that people can read.
    pub fn described(mut self, definition: Definition) -> Self {
        self.definition = Some(definition);
        self
    }

    /// The same, whose results go to a file: that is remembered with its definition.
    pub fn results_to(mut self, file: ResultsFile) -> Self {
        let form = if file.bare { ResultForm::Bare } else { ResultForm::Whole };
        if let Some(definition) = &mut self.definition {
            definition.results = Some(file);
        }
        self.with_results_file(form)
    }

    /// Has its results appended to a file. Unless its policy says otherwise, the store keeps only what is not in it.
    pub(crate) fn with_results_file(mut self, form: ResultForm) -> Self {
        self.results_file = Some(form);
        self
    }

    /// Returns whether its results are appended to a file.
    pub const fn has_results_file(&self) -> bool {
        self.results_file.is_some()
    }

    /// Returns the line that the store keeps of a result, without secrets. Returns nothing if it keeps none, or nothing came of the job.
    pub(crate) fn kept_line(&self, result: &JobResult) -> Option<Arc<str>> {
        if !self.policy.results.keeps(result, self.results_file) {
            return None;
        }
        let secrets = self.handler.secrets().cloned().unwrap_or_default();
        let line = result.clone().shallow().masked(&secrets).line(ResultForm::Whole);
        line.ok().flatten().map(Into::into)
    }

    /// The version of its definition.
    pub fn definition(&self) -> Option<&DefinitionVersion> {
        self.definition.as_ref().map(|definition| &definition.version)
    }

    /// Whether a replay that is pinned to these versions may be worked on by it.
    pub fn fits(&self, pins: &Pins) -> bool {
        fits(pins.get(&self.name), self.definition())
    }

    /// Returns the request that its handler sends for an input, or to ask for a provider's task, without secrets.
    pub fn request(&self, input: &Input, task: Option<&str>) -> Option<HttpRequest> {
        self.handler.request(input, task)
    }

    /// Whether its handler can work from saved payloads, also if inputs were changed since.
    pub fn works_from_saved(&self, edited: bool) -> bool {
        (self.vault.is_some() || self.saved_elsewhere) && self.handler.works_from_saved(edited)
    }

    /// What its handler would find in a job's input of the fields it keeps count of.
    pub(crate) fn tracked_in(&self, input: &Input) -> Vec<(String, String)> {
        tracked_in(&self.tracked, input)
    }

    /// The same with a place for its results.
    pub fn sink(mut self, sink: impl Sink + 'static) -> Self {
        self.sink = Arc::new(sink);
        self
    }
}

/// Fields of an input, with their values as they are counted.
pub(crate) fn tracked_in(fields: &[String], input: &Input) -> Vec<(String, String)> {
    let value = |name: &String| Some((name.clone(), tracked_value(field(input, name)?)));
    fields.iter().filter_map(value).collect()
}
