//! Definitions: what pipelines effectively are, by version.

use async_trait::async_trait;
use redrive_core::definitions::{Definition, DefinitionVersion, KeptCommand, ResultsFile};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use serde::Serialize;

use crate::contract::Selection;
use crate::error::Result;

/// Definitions of pipelines, for people to look up what a version was. They are noted when a worker begins, and when a server hands out
/// leases.
#[async_trait]
pub trait DefinitionStore {
    /// Notes what pipelines are for which jobs are handed to workers elsewhere. A version that is known is seen once more.
    async fn note_definitions(&self, params: NoteDefinitions) -> Result<()>;

    /// The definitions that were seen, of one pipeline or of all, those that were seen last first.
    async fn list_definitions(&self, pipeline: Option<PipelineName>) -> Result<Vec<DefinitionView>>;

    /// The versions that dead letters were last tried with, each once; nothing in place of one that is not known.
    async fn list_tried_versions(&self, letters: Selection) -> Result<Vec<Option<DefinitionVersion>>>;
}

/// Notes definitions.
#[derive(Clone, Debug)]
pub struct NoteDefinitions {
    /// What pipelines are.
    pub definitions: Vec<(PipelineName, Definition)>,
    /// The time.
    pub now: Timestamp,
}

/// A definition that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DefinitionView {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// The version.
    pub version: DefinitionVersion,
    /// When a worker first had it.
    pub first_seen: Timestamp,
    /// When a worker last took it up.
    pub last_seen: Timestamp,
    /// What it says, secrets as references.
    pub text: String,
    /// The command that was given in place of what the configuration says, if one was: once for each folder that it ran in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<KeptCommand>,
    /// The file that results went to when it was last worked on with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<ResultsFile>,
}
