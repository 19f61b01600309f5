//! Definitions: what a pipeline effectively is, and the version by which two of them are told apart.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The version of a pipeline's definition: a short hash of all that decides outcomes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DefinitionVersion(String);

impl DefinitionVersion {
    /// The version with this text, as it is kept.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// As it is kept and shown.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DefinitionVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
