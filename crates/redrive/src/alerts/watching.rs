//! What is watched, and who is told. It may be taken up anew while workers run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use redrive_core::alerts::RuleBook;
use redrive_core::ids::PipelineName;
use redrive_core::policy::Policy;

use super::sinks::Sink;

/// Digits by which a file is known.
const FILE_DIGITS: usize = 12;

/// What is watched by which thresholds, and the sinks that are told.
#[derive(Debug, Default)]
pub struct Watching {
    rules: RuleBook,
    sinks: Vec<Sink>,
    policies: BTreeMap<PipelineName, Policy>,
    usual: Policy,
    looks_on: bool,
}

impl Watching {
    /// Watches by these thresholds and tells these sinks.
    pub fn new(rules: RuleBook, sinks: Vec<Sink>) -> Self {
        Self { rules, sinks, ..Self::default() }
    }

    /// The same for these pipelines, knowing how long they keep dead letters and how long their attempts may take. Other pipelines
    /// are left to who knows them, unless none is known.
    pub fn with_policies(mut self, policies: BTreeMap<PipelineName, Policy>) -> Self {
        self.rules.judged = (!policies.is_empty()).then(|| policies.keys().cloned().collect());
        Self { policies, ..self }
    }

    /// The same for a file: alerts belong to the files whose rules see them.
    pub fn of_file(mut self, path: &Path) -> Self {
        // What it is known by is the same as long as it stays where it is, and says nothing of the machine.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.rules.file = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex()[..FILE_DIGITS].to_owned();
        self
    }

    /// The same by other thresholds.
    pub fn with_rules(self, rules: RuleBook) -> Self {
        Self { rules, looks_on: false, ..self }
    }

    /// The same by who only looks: what fires is seen, and nothing is kept of it, since others may judge it by thresholds of theirs.
    pub fn looking_on(self) -> Self {
        Self { looks_on: true, ..self }
    }

    /// Whether nothing is kept of what is judged.
    pub fn looks_on(&self) -> bool {
        self.looks_on
    }

    /// The thresholds.
    pub fn rules(&self) -> &RuleBook {
        &self.rules
    }

    /// The sinks.
    pub fn sinks(&self) -> &[Sink] {
        &self.sinks
    }

    /// Whether the file defines a pipeline.
    pub(super) fn defines(&self, name: &PipelineName) -> bool {
        self.policies.contains_key(name)
    }

    /// The policy of a pipeline, as far as it is known.
    pub(super) fn policy(&self, name: &PipelineName) -> &Policy {
        self.policies.get(name).unwrap_or(&self.usual)
    }
}

/// What workers watch, if anything. All clones are one.
#[derive(Clone, Default)]
pub struct Alerts(Arc<RwLock<Option<Arc<Watching>>>>);

impl Alerts {
    /// What is watched now.
    pub fn watching(&self) -> Option<Arc<Watching>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Watches something else from now on, or nothing.
    pub fn replace(&self, watching: Option<Watching>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = watching.map(Arc::new);
    }
}
