//! The end of history: receipts, keys and counts that are older than their pipeline keeps them are forgotten, a piece at a time. A
//! worker that runs for two seconds does its share too, at its end.

use redrive_core::time::Timestamp;
use redrive_store::contract::ForgetHistory;

use super::chores;
use super::context::Context;
use crate::engine::Redrive;
use crate::error::Error;
use crate::pipeline::Pipeline;

/// At most so many rows go in one transaction.
const PIECE: u32 = 2_000;

/// The pieces of each pipeline that a worker does before it ends.
const SHARE: usize = 10;

/// Forgets a piece of what was over by a time; says whether there is more to look at.
pub(super) async fn forget(redrive: &Redrive, pipeline: &Pipeline, by: Timestamp) -> Result<bool, Error> {
    let Some(kept) = pipeline.policy.history else { return Ok(false) };
    let (before, now) = (by - kept, redrive.now());
    let params = ForgetHistory { pipeline: pipeline.name.clone(), before, limit: PIECE, now };
    let receipts = redrive.store.forget_receipts(params.clone()).await?;
    Ok(redrive.store.forget_counts(params).await? || receipts)
}

/// Does a worker's share before it ends, whoever leads: a piece that two of them do is done once.
pub(super) async fn share(context: &Context, pipelines: &[Pipeline]) {
    let Some(by) = chores::expires_by(context).await else { return };
    for pipeline in pipelines {
        if let Err(error) = some(&context.redrive, pipeline, by).await {
            tracing::warn!(%error, pipeline = %pipeline.name, "old receipts and counts could not be forgotten");
        }
    }
}

async fn some(redrive: &Redrive, pipeline: &Pipeline, by: Timestamp) -> Result<(), Error> {
    for _ in 0..SHARE {
        if !forget(redrive, pipeline, by).await? {
            break;
        }
    }
    Ok(())
}
