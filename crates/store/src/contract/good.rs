//! Pages that worked. They are written with the settlement of a job that is done; a cause holds on to the one that was the last when its
//! first letter died.

use async_trait::async_trait;
use redrive_core::causes::CauseId;
use redrive_core::good::GoodPage;
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;

use super::leader::Led;
use crate::error::Result;

/// The pages that worked.
#[async_trait]
pub trait GoodStore {
    /// Pages of a pipeline that worked, those that the cause holds on to first, then the newest.
    async fn good_pages(&self, params: FindGood) -> Result<Vec<GoodPage>>;

    /// Lets go of pages that ended causes held on to. Says whether there are more.
    async fn release_good(&self, params: ReleaseGood) -> Result<bool>;
}

/// Asks for pages that worked.
#[derive(Clone, Debug)]
pub struct FindGood {
    /// Of which pipeline.
    pub pipeline: PipelineName,
    /// Only of this target.
    pub target: Option<String>,
    /// The cause whose pages come first.
    pub cause: Option<CauseId>,
    /// At most so many.
    pub limit: u32,
}

/// Asks for pages of ended causes to be let go of.
#[derive(Clone, Debug)]
pub struct ReleaseGood {
    /// By whose lead.
    pub led: Option<Led>,
    /// A cause without a letter has ended if it was not seen since. One that is resolved and did not come back has ended at once.
    pub before: Timestamp,
    /// At most so many.
    pub limit: u32,
}
