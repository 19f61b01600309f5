//! The only check of role and scope, for local and remote callers.

use std::ops::Deref;

use redrive_api::{Caller, Scope};
use redrive_core::ids::PipelineName;
use redrive_core::tokens::Role;

/// Caller whose role and scope were checked. Only this module can make one, so no request runs unchecked.
pub struct Authorized<'a>(&'a Caller);

impl Deref for Authorized<'_> {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        self.0
    }
}

/// Why a caller may not do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The role of the token is too small.
    #[error("this needs a token with the role {needs}; this one has the role {has}")]
    RoleRequired {
        /// The least role.
        needs: Role,
        /// The role of the token.
        has: Role,
    },
    /// The token does not cover the pipeline. Its name is not told: the caller may have used an id to learn it.
    #[error("this token is not for the pipeline that this belongs to")]
    ForeignPipeline,
    /// The token covers some pipelines, and the request touches all.
    #[error("this token is for some pipelines only: name one of them")]
    PipelineRequired,
}

impl AccessError {
    /// Returns the stable code for programs.
    pub const fn code(self) -> &'static str {
        match self {
            Self::RoleRequired { .. } => "role_required",
            Self::ForeignPipeline => "foreign_pipeline",
            Self::PipelineRequired => "pipeline_required",
        }
    }

    /// Returns the field of the request that is refused.
    pub const fn field(self) -> Option<&'static str> {
        match self {
            Self::RoleRequired { .. } => None,
            Self::ForeignPipeline | Self::PipelineRequired => Some("pipeline"),
        }
    }
}

/// Checks a caller before a request runs.
pub(crate) fn authorize<'a>(needs: Role, scope: Scope<'_>, caller: &'a Caller) -> Result<Authorized<'a>, AccessError> {
    if caller.role < needs {
        return Err(AccessError::RoleRequired { needs, has: caller.role });
    }
    match scope {
        Scope::Pipeline(Some(name)) | Scope::List(Some(name)) => check_covers(caller, name)?,
        Scope::Pipeline(None) if !caller.covers_all() => return Err(AccessError::PipelineRequired),
        // A list has only rows that the caller covers.
        Scope::Pipeline(None) | Scope::List(None) => {}
    }
    Ok(Authorized(caller))
}

fn check_covers(caller: &Caller, pipeline: &PipelineName) -> Result<(), AccessError> {
    match caller.covers(pipeline) {
        true => Ok(()),
        false => Err(AccessError::ForeignPipeline),
    }
}
