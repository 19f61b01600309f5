//! Jobs as a server leases them.

use redrive::Error;
use redrive_core::ids::{JobId, PipelineName, RoundName};
use redrive_core::jobs::{Input, Lease, LeasedJob, Origin, Tally};
use redrive_core::payloads::Payload;
use redrive_core::time::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;

/// How long a server waits for jobs before it says that there are none, in seconds: no longer than somebody wants to wait who stops it.
pub(super) const WAIT_SECS: u64 = 2;

/// Jobs that were leased.
#[derive(Deserialize)]
struct Answer {
    leases: Vec<One>,
    open: u64,
    #[serde(default)]
    next_due: Option<Timestamp>,
}

/// What a server gave.
pub(super) struct Offer {
    pub(super) jobs: Vec<LeasedJob>,
    /// How much is open there.
    pub(super) open: u64,
    /// When the next job may come, if that is known.
    pub(super) next_due: Option<Timestamp>,
}

/// A job that was leased.
#[derive(Deserialize)]
struct One {
    lease: String,
    pipeline: PipelineName,
    #[serde(default)]
    round: Option<RoundName>,
    number: i64,
    accepted_at: Timestamp,
    key: Option<String>,
    target: Option<String>,
    input: Input,
    attempt: u32,
    attempts_before: u32,
    #[serde(default)]
    uncounted: u32,
    #[serde(default)]
    by_name: bool,
    crashes: u32,
    replays: u32,
    automatic: bool,
    #[serde(default)]
    edited: bool,
    #[serde(default)]
    origin: Option<Origin>,
    #[serde(default)]
    progress: Option<Value>,
    #[serde(default)]
    saved: Option<Payload>,
}

/// Leases jobs of a pipeline; waits a little if there are none.
pub(super) async fn lease(
    shared: &Shared,
    pipeline: &PipelineName,
    max: usize,
    (ttl_secs, wait_secs): (u64, u64),
) -> Result<Offer, Error> {
    let asked = json!({
        "worker": shared.id, "host": shared.host, "pipelines": [pipeline], "op": shared.only, "max": max.clamp(1, 1_000),
        "wait": wait_secs, "ttl": ttl_secs, "runs": shared.runs,
        // Which command took its process down is known here, whatever runs beside it.
        "own_process": true,
        "queues_only": !shared.replays && shared.only.is_none(),
    });
    let Answer { leases, open, next_due } = shared.server.post(&["leases"]).body(&asked)?.read().await?;
    Ok(Offer { jobs: leases.into_iter().filter_map(leased).collect(), open, next_due })
}

/// Has the server make letters of jobs that wait for a target that stays away; says of which.
pub(super) async fn give_up(shared: &Shared, pipeline: &PipelineName) -> Result<Vec<JobId>, Error> {
    #[derive(Deserialize)]
    struct Answer {
        letters: Vec<JobId>,
    }
    let asked = json!({ "worker": shared.id, "pipeline": pipeline, "runs": shared.runs });
    let answer: Answer = shared.server.post(&["leases", "give-up"]).body(&asked)?.read().await?;
    Ok(answer.letters)
}

/// The lease that a text is. One of a letter in a try has no epoch: the try stands in its place.
fn lease_of(text: &str) -> Option<Lease> {
    let tried = || {
        let mut parts = text.split('.');
        Some(Lease { job: parts.next()?.parse().ok()?, token: parts.next()?.parse().ok()?, epoch: 0 })
    };
    text.parse().ok().or_else(tried)
}

fn leased(one: One) -> Option<LeasedJob> {
    Some(LeasedJob {
        lease: lease_of(&one.lease)?,
        number: one.number,
        pipeline: one.pipeline,
        round: one.round,
        key: one.key,
        target: one.target,
        input: one.input,
        tally: Tally {
            attempts: one.attempt.saturating_sub(1),
            attempts_before: one.attempts_before,
            crashes: one.crashes,
            replays: one.replays,
            suspect: false,
            uncounted: one.uncounted,
            by_name: one.by_name,
        },
        accepted_at: one.accepted_at,
        progress: one.progress,
        saved: one.saved,
        automatic: one.automatic,
        origin: one.origin,
        edited: one.edited,
        tried: Vec::new(),
        probe: false,
    })
}
