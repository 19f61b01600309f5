//! Durable enqueue, and lease → settle, from 1, 16 and 64 callers at once, one job a call and sixteen.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;
use redrive::{Pipeline, Redrive, json};
use redrive_core::causes::CauseRules;
use redrive_core::ids::{LeaseToken, PipelineName, WorkerId};
use redrive_core::jobs::LeasedJob;
use redrive_core::policy::Policy;
use redrive_core::settlements::{Ending, Outcome, Settlement, decide};
use redrive_store::contract::{Beat, Lane, LeaseJobs, SettleJobs};

use crate::{raw, row};

/// Callers, jobs that each brings, and jobs per call. A lone caller pays for each flush alone and gets fewer.
const LOADS: [(usize, usize, usize); 4] = [(1, 3_000, 1), (16, 2_000, 1), (64, 1_000, 1), (64, 2_048, 16)];

pub async fn measure(path: &Path, dead_letters: u64) -> Result<()> {
    let redrive = Redrive::open(&format!("sqlite:{}", path.display())).await?;
    let enqueue_limit = raw::enqueue(path, 60_000, 1_000)?;
    let settle_limit = raw::lease_and_settle(path, 1_000)?;
    row(
        "enqueue, plain rusqlite, 64 rows a transaction",
        1,
        dead_letters,
        raw::enqueue(path, 20_000, 64)?,
        enqueue_limit,
    );
    let small = raw::lease_and_settle(path, 64)?;
    row("lease → settle, plain rusqlite, 64 rows a transaction", 1, dead_letters, small, settle_limit);
    for (callers, jobs, batch) in LOADS {
        let name: PipelineName = format!("bench-{callers}-{batch}").parse()?;
        let what = |verb: &str| match batch {
            1 => verb.to_owned(),
            batch => format!("{verb}, {batch} jobs a call"),
        };
        let rate = enqueue(&redrive, &name, callers, jobs, batch).await?;
        row(&what("enqueue"), callers, dead_letters, rate, enqueue_limit);
        let rate = settle((&redrive, &name), callers, (jobs, batch), None).await?;
        row(&what("lease → settle"), callers, dead_letters, rate, settle_limit);
    }
    Ok(())
}

/// Enqueues jobs from several callers at once; says how many in a second.
pub async fn enqueue(redrive: &Redrive, name: &PipelineName, callers: usize, jobs: usize, batch: usize) -> Result<f64> {
    let pipeline = Pipeline::new(name.as_str(), |_| async { Ok(json!(null)) })?;
    let begun = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let (redrive, pipeline) = (redrive.clone(), pipeline.clone());
            tokio::spawn(async move {
                let url = |n| format!("https://example.com/products/{n}");
                for first in (0..jobs).step_by(batch) {
                    let inputs = (first..first + batch).map(|n| json!({"key": format!("{caller}-{n}"), "url": url(n)}));
                    redrive.enqueue(&pipeline, inputs).await?;
                }
                Ok::<_, redrive::Error>(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok((callers * jobs) as f64 / begun.elapsed().as_secs_f64())
}

/// Leases and settles all jobs of a pipeline, each with a result that the store keeps if one is given; says how many in a second.
pub async fn settle(
    (redrive, name): (&Redrive, &PipelineName),
    callers: usize,
    (jobs, batch): (usize, usize),
    result: Option<Arc<str>>,
) -> Result<f64> {
    let worker = WorkerId::new(redrive.now(), fastrand::u128(..));
    let now = redrive.now();
    let beat = Beat {
        worker,
        host: redrive_store::host().to_owned(),
        pid: std::process::id(),
        remote: false,
        runs: Vec::new(),
        leases: Vec::new(),
        until: now,
        now,
    };
    redrive.store().beat(beat).await?;
    let settled = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (redrive, name, settled) = (redrive.clone(), name.clone(), Arc::clone(&settled));
            let result = result.clone();
            tokio::spawn(async move {
                loop {
                    let jobs = lease_and_settle((&redrive, &name), worker, batch, result.clone()).await?;
                    settled.fetch_add(jobs as u64, Ordering::Relaxed);
                    if jobs == 0 {
                        return anyhow::Ok(());
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    let rate = (callers * jobs) as f64 / begun.elapsed().as_secs_f64();
    anyhow::ensure!(settled.load(Ordering::Relaxed) == (callers * jobs) as u64, "every job is settled once");
    redrive.store().detach_worker(worker).await?;
    Ok(rate)
}

/// Leases and settles up to so many jobs; says how many.
async fn lease_and_settle(
    (redrive, name): (&Redrive, &PipelineName),
    worker: WorkerId,
    batch: usize,
    result: Option<Arc<str>>,
) -> Result<usize> {
    let (now, policy) = (redrive.now(), Policy::default());
    let lease = LeaseJobs {
        with_tried: false,
        only: None,
        lane: Lane::Queue,
        pipeline: name.clone(),
        worker,
        definition: None,
        token: LeaseToken::new(now, fastrand::u128(..)),
        limit: u32::try_from(batch)?,
        until: now + policy.lease,
        gates: Vec::new(),
        gates_seen: None,
        freed: Vec::new(),
        now,
    };
    let jobs = redrive.lease(lease).await?.jobs;
    if jobs.is_empty() {
        return Ok(0);
    }
    let ending = Ending { at: now, duration: None, worker: Some(worker), chance: 0.0 };
    let rules = CauseRules::default();
    let settle = |job: &LeasedJob| {
        Settlement::new(job, decide(&policy, job, Outcome::Done, ending), &rules).with_result(result.clone())
    };
    let settlements = jobs.iter().map(settle).collect();
    let settle = SettleJobs { settlements, worker, breakers: Vec::new(), keep_late: true, now };
    redrive.settle(&policy.breaker, settle).await?;
    Ok(jobs.len())
}
