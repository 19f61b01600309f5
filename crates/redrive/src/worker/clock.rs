//! Notices that the clock was set back, and mends what was given a time while it was wrong: due times and leases. Another
//! process may have been the only one to see it, so it also mends once in a while.

use std::sync::Arc;
use std::time::Duration;

use redrive_store::contract::MendDueTimes;

use super::context::Context;
use crate::error::Error;
use crate::pipeline::Pipeline;

/// How often it looks at the clock.
const EVERY: Duration = Duration::from_secs(1);

/// After how many looks it mends without having noticed anything.
const MEND_ANYWAY: u32 = 60;

/// At most so many jobs are mended in one transaction.
const BATCH: u32 = 500;

pub(super) async fn run(context: Arc<Context>, pipelines: Vec<Pipeline>) {
    let mut looks = 0;
    loop {
        if let Some(back) = context.take_set_back() {
            tracing::warn!(
                ?back,
                "the clock was set back: tasks that were to wait for a time that is far away now are pulled in"
            );
            looks = 0;
        }
        if looks % MEND_ANYWAY == 0 {
            for pipeline in &pipelines {
                if let Err(error) = mend(&context, pipeline).await {
                    tracing::warn!(%error, pipeline = %pipeline.name, "due times could not be mended");
                }
            }
        }
        looks += 1;
        // In real time: a clock that is set back must not keep this from looking.
        tokio::time::sleep(EVERY).await;
    }
}

async fn mend(context: &Context, pipeline: &Pipeline) -> Result<(), Error> {
    let mut mended = 0;
    loop {
        let params = MendDueTimes {
            pipeline: pipeline.name.clone(),
            retry: pipeline.policy.retry.clone(),
            lease: pipeline.policy.lease,
            limit: BATCH,
            now: context.now(),
        };
        let moved = context.redrive.store.mend_due_times(params).await?;
        mended += moved;
        if moved < u64::from(BATCH) {
            break;
        }
    }
    if mended > 0 {
        tracing::info!(pipeline = %pipeline.name, jobs = mended, "tasks were due later than they can be, and are pulled in");
    }
    Ok(())
}
