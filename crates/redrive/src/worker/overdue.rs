//! Jobs that wait too long for a target that stays away: they become letters.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use redrive_store::contract::Lane;

use super::context::Context;
use crate::pipeline::Pipeline;

/// The longest and the shortest time between two looks.
const LOOKS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Looks for such jobs again and again.
pub(super) async fn run(context: Arc<Context>, pipelines: Vec<Pipeline>) {
    let Some(least) = pipelines.iter().filter_map(|pipeline| pipeline.policy.breaker.hold_max).min() else { return };
    let mut since = HashMap::new();
    loop {
        context.redrive.clock.sleep((least / 20).clamp(LOOKS.0, LOOKS.1)).await;
        for pipeline in &pipelines {
            look(&context, pipeline, &mut since).await;
        }
    }
}

/// Looks at the jobs of a pipeline, unless all of its workers wait without end, or none is there. Time in which it was paused, or before a
/// letter was sent again, does not count.
async fn look(context: &Context, pipeline: &Pipeline, since: &mut HashMap<(PipelineName, Lane), Timestamp>) {
    let Some(hold_max) = pipeline.policy.breaker.hold_max else { return };
    let (name, now) = (&pipeline.name, context.now());
    let mut lanes = context.redrive.breakers.lanes(name);
    let is_paused = context.pauses.has(name);
    if is_paused && !lanes.contains(&Lane::Queue) {
        lanes.push(Lane::Queue);
    }
    since.retain(|(of, lane), _| of != name || *lane == Lane::Queue || lanes.contains(lane));
    for lane in lanes {
        let at_first = if lane == Lane::Queue { Timestamp::from_millis(0) } else { now };
        let from = since.entry((name.clone(), lane)).or_insert(at_first);
        match is_paused {
            true => *from = now,
            false if context.redrive.is_given_up_by_somebody(name).await => {
                give_up(context, (pipeline, lane), hold_max, *from).await;
            }
            false => {}
        }
    }
}

/// Makes letters of the jobs of a lane that have waited for their target for longer than this, since a time at the earliest; says whether
/// there were any.
pub(super) async fn give_up(context: &Context, lane: (&Pipeline, Lane), hold_max: Duration, since: Timestamp) -> bool {
    let mut any = false;
    loop {
        match context.redrive.give_up_waiting(lane, (hold_max, since), context.id).await {
            Ok(given_up) => {
                any |= !given_up.letters.is_empty();
                context.work_done.note_given_up(given_up.letters);
                if !given_up.more {
                    return any;
                }
            }
            Err(error) => {
                tracing::debug!(%error, "jobs that have waited too long for their target become letters later");
                return any;
            }
        }
    }
}
