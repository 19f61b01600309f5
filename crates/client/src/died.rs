//! What died of a worker's jobs, by cause.

use redrive::Error;
use redrive::contract::{DeadFilter, ListDead};
use redrive::dead::{Died, Groups};
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::time::Timestamp;

use crate::desk::Desk;

/// Letters that are read at once.
const AT_ONCE: u32 = 1_000;

impl Desk {
    /// See [`redrive::Redrive::count_died`].
    pub async fn count_died(&self, pipeline: &PipelineName, since: Timestamp) -> Result<i64, Error> {
        match self {
            Self::Here(redrive) => redrive.count_died(pipeline, since).await,
            Self::There(_) => {
                let report = self.report(since, Some(pipeline)).await?;
                Ok(report.pipelines.iter().filter(|of| of.pipeline == *pipeline).map(|of| of.buried).sum())
            }
        }
    }

    /// See [`redrive::Redrive::died_of`].
    pub async fn died_of(&self, pipeline: &PipelineName, since: Timestamp, of: &[JobId]) -> Result<Died, Error> {
        if let Self::Here(redrive) = self {
            return redrive.died_of(pipeline, since, of).await;
        }
        let filter = DeadFilter { pipeline: Some(pipeline.clone()), since: Some(since), ..DeadFilter::default() };
        let mut params = ListDead::newest(filter, AT_ONCE);
        let mut groups = Groups::of(of);
        loop {
            let page = self.list_dead(params.clone()).await?;
            groups.add(page.items);
            params.cursor = page.next;
            if params.cursor.is_none() || groups.is_enough() {
                return self.entitled(groups.died(params.cursor.is_some())).await;
            }
        }
    }

    /// The same with the titles of their causes, which have nothing in them that differs between letters.
    async fn entitled(&self, mut died: Died) -> Result<Died, Error> {
        for group in died.causes.iter_mut().filter(|group| group.count > 1) {
            if let Some(cause) = group.cause.clone() {
                group.title = self.get_cause(cause).await?.cause.title;
            }
        }
        Ok(died)
    }
}
