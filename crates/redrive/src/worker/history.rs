//! The end of history: receipts, keys, counts and results that are older than their pipeline keeps them are forgotten, a piece at a time. A
//! worker that runs for two seconds does its share too, at its end.

use std::time::{Duration, Instant};

use redrive_core::time::Timestamp;
use redrive_store::contract::{ForgetHistory, ForgetResults, Led};

use super::chores;
use super::context::Context;
use crate::engine::Redrive;
use crate::error::Error;
use crate::pipeline::Pipeline;

/// At most so many rows go in one transaction.
const PIECE: u32 = 2_000;

/// The pieces of each pipeline that a worker does before it ends.
const SHARE: usize = 10;

/// How long it begins pieces at its end.
const SHARE_FOR: Duration = Duration::from_secs(2);

/// Forgets a piece of what was over by a time; says whether there is more to look at.
pub(super) async fn forget(
    redrive: &Redrive,
    pipeline: &Pipeline,
    by: Timestamp,
    led: Option<Led>,
) -> Result<bool, Error> {
    let results = pipeline.policy.results;
    let outdated = ForgetResults {
        pipeline: pipeline.name.clone(),
        before: results.kept_for.map(|kept| by - kept),
        bytes_max: results.bytes_max,
        limit: PIECE,
        led: led.clone(),
    };
    let more = redrive.store.forget_results(outdated).await?;
    let Some(kept) = pipeline.policy.history else { return Ok(more) };
    let (before, now) = (by - kept, redrive.now());
    let params = ForgetHistory { pipeline: pipeline.name.clone(), before, limit: PIECE, led, now };
    let receipts = redrive.store.forget_receipts(params.clone()).await?;
    Ok(redrive.store.forget_counts(params).await? || receipts || more)
}

/// Does a worker's share before it ends, whoever leads: a piece that two of them do is done once. No piece is begun that would
/// keep the worker from ending.
pub(super) async fn share(context: &Context, pipelines: &[Pipeline]) {
    let begun = Instant::now();
    let Some(by) = chores::expires_by(context).await else { return };
    for (n, pipeline) in pipelines.iter().enumerate() {
        let has_time = |piece| (n == 0 && piece == 0 || begun.elapsed() < SHARE_FOR) && !context.hurry.is_cancelled();
        if let Err(error) = some(&context.redrive, pipeline, by, has_time).await {
            tracing::warn!(%error, pipeline = %pipeline.name, "old receipts and counts could not be forgotten");
        }
    }
}

async fn some(
    redrive: &Redrive,
    pipeline: &Pipeline,
    by: Timestamp,
    has_time: impl Fn(usize) -> bool,
) -> Result<(), Error> {
    for _ in (0..SHARE).take_while(|piece| has_time(*piece)) {
        if !forget(redrive, pipeline, by, None).await? {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use redrive_core::ids::WorkerId;
    use redrive_store::conformance::decorators::{Counting, Decorated};
    use redrive_store::sqlite::SqliteStore;
    use serde_json::json;

    use super::*;
    use crate::handler::Job;

    #[tokio::test]
    async fn a_worker_that_is_in_a_hurry_forgets_nothing_and_else_its_share() {
        let layer = Arc::<Counting>::default();
        let store = Decorated::around(Arc::new(SqliteStore::in_memory().expect("opened")), &layer);
        let redrive = Redrive::over(store);
        let pipelines = [Pipeline::new("p", |_: Job| async { Ok(json!(1)) }).expect("a pipeline")];
        let context = Context::new(redrive.clone(), WorkerId::new(redrive.now(), 1), &pipelines);
        share(&context, &pipelines).await;
        assert_eq!(layer.calls("forget_receipts"), 1);
        some(&redrive, &pipelines[0], redrive.now(), |_| false).await.expect("answered");
        context.hurry.cancel();
        share(&context, &pipelines).await;
        assert_eq!(layer.calls("forget_receipts"), 1, "no piece is begun without time");
    }
}
