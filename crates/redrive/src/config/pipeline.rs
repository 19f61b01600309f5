//! The keys of one pipeline.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::handler::http::extract::Rules;
use crate::vault::Keep;
use redrive_core::breakers::BreakerPolicy;
use redrive_core::failures::Disposition;
use redrive_core::ids::PipelineName;
use redrive_core::jobs::INPUT_BYTES_MAX;
use redrive_core::policy::Policy;
use redrive_core::results::ResultPolicy;
use redrive_core::retry::RetryPolicy;
use redrive_core::rules::Rule;
use redrive_core::secrets::Secrets;
use serde::Deserialize;
use serde::de::IntoDeserializer;

use super::http::{self, HttpSection, PollingSection};
use super::replay::AutoReplayConfig;
use super::request::RequestSection;
use super::units::{Size, Time};

/// Below this, leases and breakers would do nothing but expire.
const TIME_MIN: Duration = Duration::from_millis(100);

/// `[pipeline.NAME]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PipelineConfig {
    /// What does the work.
    pub handler: HandlerKind,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// A process per job, or one for many.
    pub mode: ModeKind,
    /// Whether the command, given a saved payload, works from that alone.
    pub pure: bool,
    /// Fields of the input to keep count of.
    pub track: Vec<String>,
    /// The fields by which tasks without a key of their own are known.
    #[serde(deserialize_with = "one_or_more")]
    pub key: Vec<String>,
    /// Whether a job that succeeds must give something.
    pub result: ResultKind,
    /// The other pipelines that its jobs may hand on to.
    pub hand_on: Vec<PipelineName>,
    /// When dead letters are replayed by themselves.
    pub auto_replay: AutoReplayConfig,
    /// Variables added to the command's environment.
    pub env: BTreeMap<String, String>,
    /// More names whose values are secret.
    pub secret_names: Vec<String>,
    /// The folder the command runs in.
    pub folder: Option<PathBuf>,
    /// Jobs to run at once.
    pub concurrency: Option<usize>,
    /// How long one attempt may take.
    pub timeout: Option<Time>,
    /// The most memory a command and its children, or a fetch that runs alone, may use.
    pub memory_max: Option<Size>,
    /// How long a lease lasts unless it is extended.
    pub lease: Option<Time>,
    /// Queued jobs above which an enqueue is refused.
    pub max_queued: Option<u64>,
    /// Dead letters at which an enqueue is refused.
    pub letters_max: Option<u64>,
    /// The longest input that is accepted.
    pub input_max: Option<Size>,
    /// How long dead letters are kept, or `forever`.
    pub retention: Option<Retention>,
    /// How long it is known what became of a job that is done or discarded, or `forever`.
    pub history: Option<Retention>,
    /// How long the store keeps results, `forever` or `off`.
    pub keep_results: Option<KeepResults>,
    /// The most that the store keeps of results.
    pub kept_results_max: Option<Size>,
    /// Crashes after which a job is quarantined.
    pub crashes: Option<u32>,
    /// Where results are appended.
    pub out: Option<PathBuf>,
    /// When payloads are kept.
    pub payload: KeepKind,
    /// The most that is kept of a payload.
    pub payload_max: Option<Size>,
    /// Whether an attempt counts only if its payload is kept.
    pub payload_required: Option<bool>,
    /// Whether the last page that worked is kept, of each shape of addresses.
    pub good_pages: Option<bool>,
    /// `[pipeline.NAME.retry]`.
    pub retry: RetryConfig,
    /// `[pipeline.NAME.breaker]`.
    pub breaker: BreakerConfig,
    /// `[[pipeline.NAME.rule]]`.
    pub rule: Vec<Rule>,
    /// The target of all its jobs; by default each has its own.
    pub target: Option<String>,
    /// `[pipeline.NAME.http]`.
    pub http: HttpSection,
    /// `[pipeline.NAME.request]`.
    pub request: Option<RequestSection>,
    /// `[pipeline.NAME.submit]`.
    pub submit: Option<RequestSection>,
    /// `[pipeline.NAME.poll]`.
    pub poll: Option<RequestSection>,
    /// `[pipeline.NAME.polling]`.
    pub polling: PollingSection,
    /// `[pipeline.NAME.extract]`.
    pub extract: Option<Rules>,
    /// A file with the JSON Schema that records must fit.
    pub schema: Option<PathBuf>,
}

/// The handlers there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandlerKind {
    /// Any command.
    #[default]
    Exec,
    /// Fetch a page and extract a record.
    Http,
    /// Submit a task and poll for its result.
    SubmitPoll,
    /// None here: whoever leases the jobs from a server works on them.
    Remote,
}

/// When payloads are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeepKind {
    /// When an attempt failed.
    #[default]
    Failed,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl From<KeepKind> for Keep {
    fn from(kind: KeepKind) -> Self {
        match kind {
            KeepKind::Failed => Self::Failed,
            KeepKind::Always => Self::Always,
            KeepKind::Never => Self::Never,
        }
    }
}

/// Whether a job that succeeds must give something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResultKind {
    /// It need not.
    #[default]
    Optional,
    /// Without a result it has failed.
    Required,
}

/// A name, or a list of names.
fn one_or_more<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "the name of a field, or a list of names")]
    enum Names {
        One(String),
        More(Vec<String>),
    }
    Ok(match Names::deserialize(deserializer)? {
        Names::One(name) => vec![name],
        Names::More(names) => names,
    })
}

/// How a command is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModeKind {
    /// A process per job.
    #[default]
    Process,
    /// A process for many jobs.
    Persistent,
}

/// How long dead letters are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention(Option<Duration>);

impl<'de> Deserialize<'de> for Retention {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "forever" => Ok(Self(None)),
            text => super::units::duration(text).map(|time| Self(Some(time))).map_err(serde::de::Error::custom),
        }
    }
}

/// The setting `keep_results`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepResults {
    /// It keeps none.
    Off,
    /// It keeps them for so long.
    For(Retention),
}

impl<'de> Deserialize<'de> for KeepResults {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "off" => Ok(Self::Off),
            text => Retention::deserialize(text.into_deserializer()).map(Self::For),
        }
    }
}

/// When and how often to try again.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryConfig {
    /// Attempts before a job is dead.
    pub attempts: Option<u32>,
    /// Attempts over all replays.
    pub attempts_total: Option<u32>,
    /// The wait before the second attempt.
    pub base: Option<Time>,
    /// The longest wait.
    pub cap: Option<Time>,
}

/// When the jobs of a failing target wait.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BreakerConfig {
    /// Over how long attempts are counted.
    pub window: Option<Time>,
    /// Attempts below which it never opens.
    pub attempts_min: Option<u32>,
    /// The share of failed attempts at which it opens.
    pub failure_share: Option<f64>,
    /// Refusals in a row at which it opens.
    pub blocked: Option<u32>,
    /// How long it stays open.
    pub cool_down: Option<Time>,
    /// Successful probes after which it closes.
    pub probes: Option<u32>,
    /// How long a job waits for a target that stays away before it becomes a letter, or `forever`.
    pub hold_max: Option<Retention>,
    /// Says what to do with those letters when it closes.
    pub on_recovery: Option<OnRecovery>,
}

/// The setting `breaker.on_recovery`: what to do with letters of a target on hold once it is back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnRecovery {
    /// They are replayed.
    Replay,
    /// Nothing.
    None,
}

/// How many jobs run at once that mostly wait for answers, unless the pipeline says otherwise.
const REQUESTING_JOBS: usize = 16;

impl PipelineConfig {
    /// Returns how many jobs run at once in a process.
    pub fn at_once(&self) -> usize {
        self.concurrency
            .unwrap_or_else(|| if self.sends_requests() { REQUESTING_JOBS } else { crate::pipeline::cores() })
    }

    /// Returns how many requests go to one target at once, if its handler sends them.
    pub fn per_target(&self) -> Option<usize> {
        self.sends_requests().then(|| self.http.per_target())
    }

    const fn sends_requests(&self) -> bool {
        matches!(self.handler, HandlerKind::Http | HandlerKind::SubmitPoll)
    }

    /// Says what is wrong with values that each are valid.
    pub fn check(&self) -> Result<(), String> {
        if self.handler == HandlerKind::Exec && self.command.first().is_none_or(String::is_empty) {
            return Err("it has no command: add one such as command = [\"python3\", \"scrape.py\"]".into());
        }
        if self.key.iter().any(String::is_empty) {
            return Err("key names a field that has no name".into());
        }
        if self.rule.iter().any(Rule::is_empty) {
            return Err(
                "one of its rules matches nothing: name a status, code, error_type, message, stage or body".into()
            );
        }
        let is_done = |rule: &Rule| rule.disposition == Some(Disposition::Done);
        if self.rule.iter().any(|rule| rule.result.is_some() && !is_done(rule)) {
            return Err("one of its rules has a result, but its disposition is not done".into());
        }
        if self.rule.iter().any(Rule::lacks_reason) {
            return Err("one of its rules has no reason: name one, unless its disposition is \"done\"".into());
        }
        let too_short = |time: &Option<Time>| time.is_some_and(|time| time.0 < TIME_MIN);
        let short = [
            ("lease", &self.lease),
            ("timeout", &self.timeout),
            ("breaker.window", &self.breaker.window),
            ("breaker.cool_down", &self.breaker.cool_down),
        ];
        if let Some((key, _)) = short.iter().find(|(_, time)| too_short(time)) {
            return Err(format!("{key} must be at least {TIME_MIN:?}"));
        }
        let zero = [
            ("concurrency", self.concurrency == Some(0)),
            ("crashes", self.crashes == Some(0)),
            ("retry.attempts", self.retry.attempts == Some(0)),
            ("retry.attempts_total", self.retry.attempts_total == Some(0)),
            ("breaker.probes", self.breaker.probes == Some(0)),
            ("http.proxies_max", self.http.proxies_max == Some(0)),
            ("http.per_target", self.http.per_target == Some(0)),
        ];
        if let Some((key, _)) = zero.iter().find(|(_, wrong)| *wrong) {
            return Err(format!("{key} must be at least 1"));
        }
        self.policy().retry.contradiction().map_or(Ok(()), Err)
    }

    /// Its secrets, as far as they are known by name.
    pub fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        self.secret_names.iter().chain(&self.http.secret_names).for_each(|name| secrets.add_name(name));
        secrets
    }

    /// The target that all jobs of the pipeline have: the one that is named, or the host that its requests go to.
    pub fn fixed_target(&self) -> Option<String> {
        self.target.clone().or_else(|| http::fixed_host(self))
    }

    /// The longest input that is accepted, in bytes of JSON.
    pub fn input_bytes_max(&self) -> u64 {
        self.input_max.map_or(INPUT_BYTES_MAX, |max| max.0)
    }

    /// The policy these keys make, with defaults for what is missing.
    pub fn policy(&self) -> Policy {
        let defaults = Policy::default();
        let time = |given: Option<Time>, default: Duration| given.map_or(default, |time| time.0);
        let mut retry = RetryPolicy {
            base: time(self.retry.base, defaults.retry.base),
            cap: time(self.retry.cap, defaults.retry.cap),
            ..defaults.retry
        };
        if let Some(attempts) = self.retry.attempts {
            retry = retry.with_attempts(attempts);
        }
        retry.attempts_total_max = self.retry.attempts_total.unwrap_or(retry.attempts_total_max);
        Policy {
            retry,
            crashes_max: self.crashes.unwrap_or(defaults.crashes_max),
            rules: self.rule.clone(),
            breaker: self.breaker.policy(),
            // A pipeline takes those of its handler.
            proxies: defaults.proxies,
            queued_max: self.max_queued,
            letters_max: self.letters_max,
            auto_replays: self.auto_replay.policies(),
            retention: self.retention.map_or(defaults.retention, |retention| retention.0),
            history: self.history.map_or(defaults.history, |history| history.0),
            results: self.result_policy(),
            lease: time(self.lease, defaults.lease),
            deadline: time(self.timeout, defaults.deadline),
        }
    }

    fn result_policy(&self) -> ResultPolicy {
        let defaults = ResultPolicy::default();
        let (is_kept, kept_for) = match self.keep_results {
            None => (defaults.is_kept, defaults.kept_for),
            Some(KeepResults::Off) => (Some(false), defaults.kept_for),
            Some(KeepResults::For(time)) => (Some(true), time.0),
        };
        ResultPolicy { is_kept, kept_for, bytes_max: self.kept_results_max.map_or(defaults.bytes_max, |max| max.0) }
    }
}

impl BreakerConfig {
    fn policy(&self) -> BreakerPolicy {
        let defaults = BreakerPolicy::default();
        BreakerPolicy {
            window: self.window.map_or(defaults.window, |time| time.0),
            attempts_min: self.attempts_min.unwrap_or(defaults.attempts_min),
            failure_share: self.failure_share.unwrap_or(defaults.failure_share),
            blocked_max: self.blocked.unwrap_or(defaults.blocked_max),
            cool_down: self.cool_down.map_or(defaults.cool_down, |time| time.0),
            probes: self.probes.unwrap_or(defaults.probes),
            hold_max: self.hold_max.map_or(defaults.hold_max, |hold_max| hold_max.0),
            replays_on_recovery: self.on_recovery != Some(OnRecovery::None),
        }
    }
}
