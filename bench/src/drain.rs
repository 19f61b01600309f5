//! A handler inside the worker that does nothing, at a concurrency of 2 and of 64: what a job costs besides its work.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use redrive::{Pipeline, Redrive, json};

use crate::row;

const JOBS: usize = 30_000;

pub async fn measure(folder: &Path) -> Result<()> {
    let redrive = Redrive::open(&format!("sqlite:{}", folder.join("drain.db").display())).await?;
    drain(&redrive, 64, 5_000).await?;
    let many = drain(&redrive, 64, JOBS).await?;
    let few = drain(&redrive, 2, JOBS).await?;
    row("drain a closure that does nothing", 64, 0, many, many);
    row("drain a closure that does nothing (64 at once)", 2, 0, few, many);
    Ok(())
}

async fn drain(redrive: &Redrive, concurrency: usize, jobs: usize) -> Result<f64> {
    let name = format!("drain-{concurrency}-{jobs}");
    let pipeline = Pipeline::new(&name, |_| async { Ok(json!(null)) })?.concurrency(concurrency);
    redrive.enqueue(&pipeline, (0..jobs).map(|n| json!({"n": n}))).await?;
    let begun = Instant::now();
    let ledger = redrive.drain(pipeline).await?;
    ensure!(usize::try_from(ledger.done)? == jobs, "every job is done");
    Ok(jobs as f64 / begun.elapsed().as_secs_f64())
}
