//! Durable enqueue, and lease → settle, one job per call, from 1, 16 and 64 callers at once.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;
use redrive::{Pipeline, Redrive, json};
use redrive_core::breakers::BreakerPolicy;
use redrive_core::ids::{LeaseToken, PipelineName, WorkerId};
use redrive_core::policy::Policy;
use redrive_core::settlements::{Ending, Outcome, Settlement, decide};
use redrive_store::Store;
use redrive_store::contract::{AttachWorker, LeaseJobs, SettleJobs};

use crate::{raw, row};

/// Jobs per caller; fewer callers pay for each flush alone and get fewer.
const JOBS: [(usize, usize); 3] = [(1, 3_000), (16, 2_000), (64, 1_000)];

pub async fn measure(path: &Path, dead_letters: u64) -> Result<()> {
    let redrive = Redrive::open(&format!("sqlite:{}", path.display()))?;
    let enqueue_limit = raw::enqueue(path, 60_000)?;
    let settle_limit = raw::lease_and_settle(path)?;
    for (callers, jobs) in JOBS {
        let name: PipelineName = format!("bench-{callers}").parse()?;
        row("enqueue", callers, dead_letters, enqueue(&redrive, &name, callers, jobs).await?, enqueue_limit);
        row("lease → settle", callers, dead_letters, settle(&redrive, &name, callers, jobs).await?, settle_limit);
    }
    Ok(())
}

async fn enqueue(redrive: &Redrive, name: &PipelineName, callers: usize, jobs: usize) -> Result<f64> {
    let pipeline = Pipeline::new(name.as_str(), |_| async { Ok(json!(null)) })?;
    let begun = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let (redrive, pipeline) = (redrive.clone(), pipeline.clone());
            tokio::spawn(async move {
                for n in 0..jobs {
                    let input =
                        json!({"key": format!("{caller}-{n}"), "url": format!("https://example.com/products/{n}")});
                    redrive.enqueue(&pipeline, [input]).await?;
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

async fn settle(redrive: &Redrive, name: &PipelineName, callers: usize, jobs: usize) -> Result<f64> {
    let worker = WorkerId::new(redrive.now(), fastrand::u128(..));
    redrive.store().attach_worker(AttachWorker { worker, pid: std::process::id(), now: redrive.now() }).await?;
    let settled = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (redrive, name, settled) = (redrive.clone(), name.clone(), Arc::clone(&settled));
            tokio::spawn(async move {
                while lease_and_settle(&redrive, &name, worker).await? {
                    settled.fetch_add(1, Ordering::Relaxed);
                }
                anyhow::Ok(())
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

async fn lease_and_settle(redrive: &Redrive, name: &PipelineName, worker: WorkerId) -> Result<bool> {
    let (store, now, policy): (&Arc<dyn Store>, _, _) = (redrive.store(), redrive.now(), Policy::default());
    let lease = LeaseJobs {
        pipeline: name.clone(),
        worker,
        token: LeaseToken::new(now, fastrand::u128(..)),
        limit: 1,
        until: now + policy.lease,
        breaker: BreakerPolicy::default(),
        now,
    };
    let Some(job) = store.lease(lease).await?.jobs.pop() else { return Ok(false) };
    let ending = Ending { at: now, duration: None, worker: Some(worker), chance: 0.0 };
    let decision = decide(&policy, &job, Outcome::Done, ending);
    let settlements = vec![Settlement { lease: job.lease, decision }];
    store.settle(SettleJobs { settlements, worker, breaker: policy.breaker, keep_late: true, now }).await?;
    Ok(true)
}
