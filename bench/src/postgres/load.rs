//! The work: jobs of 1 KB with a key and a target, of which every tenth is buried.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use redrive_core::causes::CauseRules;
use redrive_core::dead::Gate;
use redrive_core::failures::{FailureReport, Reason};
use redrive_core::ids::{JobId, LeaseToken, PipelineName, WorkerId};
use redrive_core::jobs::{LeasedJob, NewJob};
use redrive_core::policy::Bounds;
use redrive_core::policy::Policy;
use redrive_core::settlements::{Destination, Ending, Outcome, Settlement, decide};
use redrive_core::time::Timestamp;
use redrive_store::contract::{Beat, EnqueueJobs, Lane, LeaseJobs, SettleJobs, Settled, Store};
use serde_json::{Value, json};

/// Bytes of an input besides its other fields.
pub const BODY_BYTES: usize = 900;

/// Jobs per lease.
const BATCH: u32 = 100;

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn job(n: usize) -> Result<NewJob> {
    let body: String = std::iter::repeat_with(fastrand::alphanumeric).take(BODY_BYTES).collect();
    let target = n % 20;
    let input =
        json!({"key": format!("k{n}"), "url": format!("https://shop{target}.example/{n}"), "n": n, "body": body});
    let Value::Object(input) = input else { bail!("an input is an object") };
    Ok(NewJob::from_input(JobId::new(now(), fastrand::u128(..)), input, now()))
}

fn jobs(numbers: impl Iterator<Item = usize>) -> Result<Vec<NewJob>> {
    numbers.map(job).collect()
}

/// Callers that enqueue one job after another; says how many a second.
pub async fn enqueue(store: &Arc<dyn Store>, name: &PipelineName, callers: usize, each: usize) -> Result<f64> {
    // The first enqueue makes the pipeline.
    fill(store, name, 1).await?;
    let mut prepared = Vec::with_capacity(callers);
    for caller in 0..callers {
        prepared.push(jobs((0..each).map(|n| 1_000_000 + caller * each + n))?);
    }
    let begun = Instant::now();
    let callers: Vec<_> = prepared
        .into_iter()
        .map(|jobs| {
            let (store, pipeline) = (Arc::clone(store), name.clone());
            tokio::spawn(async move {
                for job in jobs {
                    let jobs = vec![job];
                    store
                        .enqueue(EnqueueJobs {
                            pipeline: pipeline.clone(),
                            jobs: jobs.into(),
                            bounds: Bounds::default(),
                            now: now(),
                        })
                        .await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    let jobs = callers.len() * each;
    for caller in callers {
        caller.await??;
    }
    Ok(jobs as f64 / begun.elapsed().as_secs_f64())
}

/// Enqueues many.
pub async fn fill(store: &Arc<dyn Store>, name: &PipelineName, count: usize) -> Result<()> {
    for first in (0..count).step_by(500) {
        let jobs = jobs(first..(first + 500).min(count))?;
        store
            .enqueue(EnqueueJobs { pipeline: name.clone(), jobs: jobs.into(), bounds: Bounds::default(), now: now() })
            .await?;
    }
    Ok(())
}

/// Has a worker on each handle lease and settle jobs, until so many are settled; says how many a second.
pub async fn work(stores: &[Arc<dyn Store>], name: &PipelineName, count: usize) -> Result<f64> {
    let left = Arc::new(AtomicUsize::new(count));
    let begun = Instant::now();
    let workers: Vec<_> = stores
        .iter()
        .map(|store| {
            let worker = Worker { store: Arc::clone(store), name: name.clone(), id: worker_id() };
            tokio::spawn(worker.run(Arc::clone(&left)))
        })
        .collect();
    let mut settled = 0;
    for worker in workers {
        settled += worker.await??;
    }
    ensure!(settled == count, "{settled} of {count} jobs were settled");
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}

fn worker_id() -> WorkerId {
    WorkerId::new(now(), fastrand::u128(..))
}

struct Worker {
    store: Arc<dyn Store>,
    name: PipelineName,
    id: WorkerId,
}

impl Worker {
    /// Settles what it has while it leases what comes next, as the engine does.
    async fn run(self, left: Arc<AtomicUsize>) -> Result<usize> {
        let beat = Beat {
            worker: self.id,
            host: redrive_store::host().to_owned(),
            pid: std::process::id(),
            remote: false,
            runs: Vec::new(),
            leases: Vec::new(),
            until: now(),
            now: now(),
        };
        self.store.beat(beat).await?;
        let gates = self.store.lease(self.params(1, None)).await?.gates;
        let gates_seen = gates.map(|gates| gates.version);
        let (mut settled, mut jobs) = (0, self.lease(&left, gates_seen).await?);
        while !jobs.is_empty() {
            let (done, next) = tokio::join!(self.settle(&jobs), self.lease(&left, gates_seen));
            settled += done?;
            jobs = next?;
        }
        self.store.detach_worker(self.id).await?;
        Ok(settled)
    }

    fn params(&self, limit: u32, gates_seen: Option<u64>) -> LeaseJobs {
        LeaseJobs {
            with_tried: false,
            only: None,
            lane: Lane::Queue,
            pipeline: self.name.clone(),
            worker: self.id,
            definition: None,
            token: LeaseToken::new(now(), fastrand::u128(..)),
            limit,
            until: now() + Duration::from_secs(300),
            gates: Vec::new(),
            gates_seen,
            freed: Vec::new(),
            now: now(),
        }
    }

    async fn lease(&self, left: &AtomicUsize, gates_seen: Option<u64>) -> Result<Vec<LeasedJob>> {
        let batch = BATCH as usize;
        let take = |left: usize| (left > 0).then(|| left.saturating_sub(batch));
        let Ok(before) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) else { return Ok(Vec::new()) };
        let mut jobs = Vec::new();
        // Another may have taken what was in the way, so that this one comes back short.
        while jobs.len() < before.min(batch) {
            let room = u32::try_from(before.min(batch) - jobs.len())?;
            jobs.extend(self.store.lease(self.params(room, gates_seen)).await?.jobs);
        }
        Ok(jobs)
    }

    async fn settle(&self, jobs: &[LeasedJob]) -> Result<usize> {
        let (policy, rules) = (Policy::default(), CauseRules::default());
        let settlement = |job: &LeasedJob| {
            let n = job.input.get("n").and_then(Value::as_u64).unwrap_or_default();
            let dead = n.is_multiple_of(10);
            let kind = ["price", "title", "stock", "rating", "image"][(n / 10 % 5) as usize];
            let report =
                || FailureReport::new(Reason::SchemaValidation, format!("the {kind} of product {n} is missing"));
            let outcome = if dead { Outcome::Failed(report()) } else { Outcome::Done };
            let ending = Ending { at: now(), duration: None, worker: Some(self.id), chance: 0.0 };
            let mut decision = decide(&policy, job, outcome, ending);
            if dead {
                decision.destination = Destination::bury(Gate::Review, None);
            }
            Settlement::new(job, decision, &rules)
        };
        let settlements = jobs.iter().map(settlement).collect();
        let params = SettleJobs { settlements, worker: self.id, breakers: Vec::new(), keep_late: true, now: now() };
        let settled = self.store.settle(params).await?.settled;
        Ok(settled.iter().filter(|settled| **settled == Settled::Applied).count())
    }
}
