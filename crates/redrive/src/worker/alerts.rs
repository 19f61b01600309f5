//! Alerts, as workers see to them: the leader judges, every worker tells the sinks of its own file, and one that ends does both once
//! more. Nobody who runs jobs waits for any of it.

use std::sync::Arc;
use std::time::Duration;

use super::context::Context;
use crate::alerts::Watching;
use crate::error::Error;

/// How often it is looked for something to tell.
const EVERY: Duration = Duration::from_secs(5);

/// The longest that a worker takes for it before it ends.
const SHARE: Duration = Duration::from_secs(10);

/// Tells sinks what is to be told, again and again.
pub(super) async fn run(context: Arc<Context>) {
    loop {
        if let Some(watching) = context.redrive.alerts.watching()
            && let Err(error) = context.redrive.tell_sinks(&watching).await
        {
            tracing::warn!(%error, "sinks could not be told of alerts");
        }
        context.redrive.clock.sleep(EVERY).await;
    }
}

/// Judges and tells once more before a worker ends, so that a short run does its share. What a sink is not told in time is told by
/// whoever comes next.
pub(super) async fn share(context: &Context) {
    let Some(watching) = context.redrive.alerts.watching() else { return };
    let late = async {
        tokio::select! {
            () = tokio::time::sleep(SHARE) => {}
            () = context.hurry.cancelled() => {}
        }
    };
    tokio::select! {
        biased;
        done = both(context, &watching) => {
            if let Err(error) = done {
                tracing::warn!(%error, "alerts could not be judged");
            }
        }
        () = late => tracing::info!("sinks take long: what they were not told waits for the next worker"),
    }
}

async fn both(context: &Context, watching: &Watching) -> Result<(), Error> {
    context.redrive.judge_alerts(watching).await?;
    context.redrive.tell_sinks(watching).await
}
