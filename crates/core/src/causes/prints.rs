//! Prints: what a dead letter is recognised by, computed before it is buried and handed to the store as data.

use super::rules::CauseRules;
use crate::dead::DeadLetter;
use crate::failures::Failure;
use crate::fingerprint::{self, Part};
use crate::ids::PipelineName;

/// What a failure is recognised by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Print {
    /// The key of the failure by itself.
    pub key: String,
    /// The key it belongs to, because a rule says so; none if that is its own.
    pub into: Option<String>,
    /// Keys that former versions of the fingerprint made of it: its cause may be known by one of them.
    pub former: Vec<String>,
    /// Its message without what varies.
    pub template: String,
    /// What went into the key.
    pub parts: Vec<Part>,
    /// The version of the rules that it was resolved with. If they have changed since, it is resolved anew later.
    pub rules: u64,
}

impl Print {
    /// The print of a failure of a job with that target.
    pub fn of(pipeline: &PipelineName, target: Option<&str>, failure: &Failure, rules: &CauseRules) -> Self {
        let print = fingerprint::of_failure(pipeline, target, failure);
        let resolved = rules.resolve(&print.key, target, &failure.message);
        Self {
            into: (resolved != print.key).then(|| resolved.to_owned()),
            key: print.key,
            former: print.former,
            template: print.template,
            parts: print.parts,
            rules: rules.version,
        }
    }

    /// The print of a letter that comes from elsewhere: that of its last failure, if it has one.
    pub fn of_letter(letter: &DeadLetter, rules: &CauseRules) -> Option<Self> {
        let last = letter.failures.as_ref()?.last()?;
        Some(Self::of(&letter.pipeline, letter.target.as_deref(), last, rules))
    }

    /// The key that the letter is filed under, as far as these rules know.
    pub fn resolved(&self) -> &str {
        self.into.as_deref().unwrap_or(&self.key)
    }
}
