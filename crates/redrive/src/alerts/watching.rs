//! What is watched, and who is told. It may be taken up anew while workers run.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use redrive_core::alerts::RuleBook;
use redrive_core::ids::PipelineName;
use redrive_core::policy::Policy;

use super::sinks::Sink;

/// What is watched by which thresholds, and the sinks that are told.
#[derive(Debug, Default)]
pub struct Watching {
    rules: RuleBook,
    sinks: Vec<Sink>,
    policies: BTreeMap<PipelineName, Policy>,
    usual: Policy,
}

impl Watching {
    /// Watches by these thresholds and tells these sinks.
    pub fn new(rules: RuleBook, sinks: Vec<Sink>) -> Self {
        Self { rules, sinks, ..Self::default() }
    }

    /// The same, knowing how long pipelines keep dead letters and how long their attempts may take.
    pub fn with_policies(self, policies: BTreeMap<PipelineName, Policy>) -> Self {
        Self { policies, ..self }
    }

    /// The thresholds.
    pub fn rules(&self) -> &RuleBook {
        &self.rules
    }

    /// The sinks.
    pub fn sinks(&self) -> &[Sink] {
        &self.sinks
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
