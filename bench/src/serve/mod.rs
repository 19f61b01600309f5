//! `redrive serve` under load, beside the engine inside this process, in the same run: enqueue and letters one by one and by 100, lease
//! and settle by 16 remote workers; how long single letters take at 2,000 a second; memory while many jobs pass; what idle readers of
//! events cost.
//!
//! `REDRIVE_BENCH_JOBS` says how many jobs pass (1,000,000), `REDRIVE_BENCH_ONLY` names one part: `rates`, `leases` (of the rates, those
//! of remote workers alone, with the processors' time that they take), `readers`, `letters` or `memory`.

mod http;
mod load;
mod process;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use redrive::Redrive;
use redrive::config::{Config, Setting};
use redrive_core::ids::PipelineName;

use self::load::Load;
use self::process::Server;
use crate::store;

/// Callers of each measurement.
const CALLERS: usize = 16;

/// Jobs that pass while memory is looked at.
const JOBS: usize = 1_000_000;

/// Single letters, at this rate for so long.
const LETTERS_A_SECOND: u32 = 2_000;
const LETTERS_FOR: Duration = Duration::from_secs(20);

/// Idle readers of events, watched for so long.
const READERS: usize = 500;
const READERS_FOR: Duration = Duration::from_secs(20);

/// Each is measured so often; the median counts.
const ROUNDS: usize = 3;

pub async fn measure(folder: &Path) -> Result<()> {
    println!("| what | the server | beside it | ratio | aim |");
    println!("|---|--:|--:|--:|--:|");
    let only = std::env::var("REDRIVE_BENCH_ONLY").ok();
    let wanted = |part: &str| only.as_deref().is_none_or(|name| name == part);
    if wanted("rates") {
        rates(folder).await?;
    }
    if wanted("leases") {
        leases(folder).await?;
    }
    if wanted("readers") {
        idle_readers(&Server::start(&folder.join("idle.db"))?).await?;
    }
    if wanted("letters") {
        single_letters(&Server::start(&folder.join("steady.db"))?).await?;
    }
    if wanted("memory") {
        memory(&Server::start(&folder.join("passing.db"))?).await?;
    }
    Ok(())
}

/// How many a second, beside the engine in this process.
async fn rates(folder: &Path) -> Result<()> {
    let loads = [Load { callers: CALLERS, calls: 250, batch: 1 }, Load { callers: CALLERS, calls: 25, batch: 100 }];
    let mut measured = vec![(Vec::new(), Vec::new()); loads.len() * 3];
    for round in 0..ROUNDS {
        let store = folder.join(format!("here-{round}.db"));
        let address = format!("sqlite:{}", store.display());
        let setting = Setting::of(Config::parse("", &folder.join("redrive.toml"))?, Some(&address))?;
        let redrive = Redrive::open(&address).await?;
        let server = Server::start(&folder.join(format!("served-{round}.db")))?;
        for (at, load) in loads.into_iter().enumerate() {
            let pipeline = format!("p{}", load.batch);
            let letters = format!("l{}", load.batch);
            let name: PipelineName = pipeline.parse()?;
            let pairs = [
                (
                    load::enqueue(&server.address, &pipeline, load).await?,
                    load::enqueue_here(&redrive, &pipeline, load).await?,
                ),
                (
                    load::work(&server.address, &pipeline, load).await?,
                    store::settle((&redrive, &name), load.callers, (load.calls * load.batch, load.batch), None).await?,
                ),
                (
                    load::report(&server.address, &letters, load).await?,
                    load::report_here(&redrive, &setting, &letters, load).await?,
                ),
            ];
            for (verb, (there, here)) in pairs.into_iter().enumerate() {
                let (theres, heres) = &mut measured[at * pairs.len() + verb];
                theres.push(there);
                heres.push(here);
            }
        }
    }
    for (n, (theres, heres)) in measured.into_iter().enumerate() {
        let batch = loads[n / 3].batch;
        let verb = ["enqueue", "lease → settle, 16 remote workers", "letters"][n % 3];
        let (there, here) = (median(theres), median(heres));
        let aim = if batch > 1 { "≥ 0.5" } else { "" };
        println!("| {verb}, {batch} a call, per second | {there:.0} | {here:.0} | {:.2} | {aim} |", there / here);
    }
    Ok(())
}

/// The processors' time that leasing and settling takes, where others have the machine, too: what a rate does not tell then.
async fn leases(folder: &Path) -> Result<()> {
    for load in [Load { callers: CALLERS, calls: 250, batch: 1 }, Load { callers: CALLERS, calls: 50, batch: 100 }] {
        let mut taken = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let name = format!("leases-{}-{round}", load.batch);
            let server = Server::start(&folder.join(format!("{name}-there.db")))?;
            load::enqueue(&server.address, "p", load).await?;
            let before = server.busy_secs()?;
            load::work(&server.address, "p", load).await?;
            taken.0.push((server.busy_secs()? - before) * 1e6 / load.total() as f64);
            let redrive =
                Redrive::open(&format!("sqlite:{}", folder.join(format!("{name}-here.db")).display())).await?;
            load::enqueue_here(&redrive, "p", load).await?;
            let before = process::own_busy_secs()?;
            store::settle((&redrive, &"p".parse()?), load.callers, (load.calls * load.batch, load.batch), None).await?;
            taken.1.push((process::own_busy_secs()? - before) * 1e6 / load.total() as f64);
        }
        let (there, here) = (median(taken.0), median(taken.1));
        println!(
            "| lease → settle, {} a call, processors' time of a job | {there:.1} µs | {here:.1} µs | {:.2} | |",
            load.batch,
            there / here
        );
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

async fn single_letters(server: &Server) -> Result<()> {
    let took = load::steadily(&server.address, "steady", LETTERS_A_SECOND, LETTERS_FOR).await?;
    let at = |share: f64| took.get((took.len() as f64 * share) as usize).copied().context("letters were sent");
    let (half, most) = (at(0.5)?, at(0.99)?);
    println!("| single letters at {LETTERS_A_SECOND}/s: p50, p99 | {half:.1} ms, {most:.1} ms | | | p99 < 20 ms |");
    Ok(())
}

async fn idle_readers(server: &Server) -> Result<()> {
    let busy = async || {
        // What it takes to connect is not meant.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let before = server.busy_secs()?;
        tokio::time::sleep(READERS_FOR).await;
        anyhow::Ok((server.busy_secs()? - before) / READERS_FOR.as_secs_f64() * 100.0)
    };
    let without = busy().await?;
    let readers = load::listen(&server.address, READERS).await?;
    let with = busy().await?;
    drop(readers);
    let cost = with - without;
    println!(
        "| {READERS} idle readers of events: share of a core | {with:.2} % | {without:.2} % without | {cost:.2} % | < 1 % |"
    );
    Ok(())
}

async fn memory(server: &Server) -> Result<()> {
    let jobs = std::env::var("REDRIVE_BENCH_JOBS").ok().map(|jobs| jobs.parse()).transpose()?.unwrap_or(JOBS);
    let looked = load::pass(&server.address, jobs, || server.memory_mib()).await?;
    let (first, last) = (looked.first().context("looked")?, looked.last().context("looked")?);
    let most = looked.iter().copied().fold(0.0, f64::max);
    println!(
        "| memory while {jobs} jobs pass: most, at the end / after a tenth | {most:.0} MiB | {first:.0} MiB | {:.2} | < 150 MiB, flat |",
        last / first
    );
    Ok(())
}
