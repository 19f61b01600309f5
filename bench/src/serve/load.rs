//! What callers ask of the server, and the same of the engine inside this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use redrive::config::Setting;
use redrive::dead::{Reported, Reporting};
use redrive::{Pipeline, Redrive, json};
use redrive_core::actors::{Actor, Via};
use serde::Deserialize;
use serde_json::Value;
use tokio::task::JoinSet;

use super::http::Connection;

/// How long leases last, in seconds.
const TTL_SECS: u64 = 60;

/// So many callers at once, each with so many calls of so many jobs or letters.
#[derive(Clone, Copy)]
pub struct Load {
    pub callers: usize,
    pub calls: usize,
    pub batch: usize,
}

impl Load {
    pub const fn total(self) -> usize {
        self.callers * self.calls * self.batch
    }

    /// The numbers of the jobs of one call.
    fn numbers(self, caller: usize, call: usize) -> impl Iterator<Item = usize> {
        let first = (caller * self.calls + call) * self.batch;
        first..first + self.batch
    }

    /// Has all callers call, and says how many jobs that are in a second.
    async fn run<F>(self, caller: impl Fn(usize) -> F) -> Result<f64>
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let begun = Instant::now();
        let mut callers: JoinSet<_> = (0..self.callers).map(caller).collect();
        while let Some(ended) = callers.join_next().await {
            ended??;
        }
        Ok(self.total() as f64 / begun.elapsed().as_secs_f64())
    }
}

fn input(n: usize) -> Value {
    json!({"key": format!("k{n}"), "url": format!("https://example.com/products/{n}")})
}

fn letter(pipeline: &str, n: usize) -> Value {
    json!({"pipeline": pipeline, "input": input(n), "message": format!("KeyError: 'price' of item {n}"), "error_type": "KeyError"})
}

/// Jobs that are enqueued over the network.
pub async fn enqueue(address: &str, pipeline: &str, load: Load) -> Result<f64> {
    load.run(|caller| {
        let (address, pipeline) = (address.to_owned(), pipeline.to_owned());
        async move {
            let mut server = Connection::open(&address).await?;
            for call in 0..load.calls {
                let jobs: Vec<_> = load.numbers(caller, call).map(|n| json!({"input": input(n)})).collect();
                server.post("/jobs", &json!({"pipeline": pipeline, "jobs": jobs}).to_string()).await?;
            }
            Ok(())
        }
    })
    .await
}

/// The same inside this process.
pub async fn enqueue_here(redrive: &Redrive, pipeline: &str, load: Load) -> Result<f64> {
    let pipeline = Pipeline::new(pipeline, |_| async { Ok(json!(null)) })?;
    load.run(|caller| {
        let (redrive, pipeline) = (redrive.clone(), pipeline.clone());
        async move {
            for call in 0..load.calls {
                redrive.enqueue(&pipeline, load.numbers(caller, call).map(input)).await?;
            }
            Ok(())
        }
    })
    .await
}

/// Letters that are reported over the network.
pub async fn report(address: &str, pipeline: &str, load: Load) -> Result<f64> {
    load.run(|caller| {
        let (address, pipeline) = (address.to_owned(), pipeline.to_owned());
        async move {
            let mut server = Connection::open(&address).await?;
            for call in 0..load.calls {
                let letters: Vec<_> = load.numbers(caller, call).map(|n| letter(&pipeline, n)).collect();
                server.post("/letters", &Value::Array(letters).to_string()).await?;
            }
            Ok(())
        }
    })
    .await
}

/// The same inside this process.
pub async fn report_here(redrive: &Redrive, setting: &Setting, pipeline: &str, load: Load) -> Result<f64> {
    load.run(|caller| {
        let (redrive, setting, pipeline) = (redrive.clone(), setting.clone(), pipeline.to_owned());
        async move {
            let by = Actor::new("bench", Via::Api);
            let reporting = Reporting { setting: &setting, vault: None, by: &by, may: |_: &_| true, is_limited: false };
            for call in 0..load.calls {
                let letters = load.numbers(caller, call).map(|n| letter(&pipeline, n)).collect();
                let reported = redrive.report_letters(letters, &reporting).await?;
                ensure!(reported.iter().all(|reported| matches!(reported, Reported::New(_))), "{reported:?}");
            }
            Ok(())
        }
    })
    .await
}

/// Remote workers that lease and settle what is queued, until nothing is; says how many jobs that are in a second.
pub async fn work(address: &str, pipeline: &str, load: Load) -> Result<f64> {
    let settled = Arc::new(AtomicU64::new(0));
    let rate = load.run(|_| {
        let (address, pipeline, settled) = (address.to_owned(), pipeline.to_owned(), Arc::clone(&settled));
        async move {
            let mut worker = Worker::new(&address, &pipeline).await?;
            while settled.load(Ordering::Relaxed) < load.total() as u64 {
                settled.fetch_add(worker.work(load.batch).await?, Ordering::Relaxed);
            }
            Ok(())
        }
    });
    let rate = rate.await?;
    ensure!(settled.load(Ordering::Relaxed) == load.total() as u64, "every job is settled once");
    Ok(rate)
}

/// A worker elsewhere.
struct Worker {
    server: Connection,
    pipeline: String,
    id: Option<String>,
}

/// What a worker needs of what it leased.
#[derive(Deserialize)]
struct Leased {
    worker: String,
    leases: Vec<LeasedJob>,
}

#[derive(Deserialize)]
struct LeasedJob {
    lease: String,
}

impl Worker {
    async fn new(address: &str, pipeline: &str) -> Result<Self> {
        Ok(Self { server: Connection::open(address).await?, pipeline: pipeline.to_owned(), id: None })
    }

    /// Leases and settles up to so many jobs; says how many.
    async fn work(&mut self, batch: usize) -> Result<u64> {
        let mut asked = json!({"pipelines": [self.pipeline], "max": batch, "ttl": TTL_SECS});
        if let Some(id) = &self.id {
            asked["worker"] = id.as_str().into();
        }
        let Leased { worker, leases } =
            serde_json::from_slice(&self.server.post("/leases", &asked.to_string()).await?)?;
        if leases.is_empty() {
            return Ok(0);
        }
        let done = |LeasedJob { lease }: &LeasedJob| json!({"lease": lease, "verdict": "done", "result": {"price": 1}});
        let jobs: Vec<_> = leases.iter().map(done).collect();
        self.server.post("/leases/settle", &json!({"worker": worker, "jobs": jobs}).to_string()).await?;
        self.id = Some(worker);
        Ok(leases.len() as u64)
    }
}

/// Brings so many jobs from one end to the other, by 100, and looks at the server's memory now and then; the first look is when a tenth
/// has passed.
pub async fn pass(address: &str, jobs: usize, mut look: impl FnMut() -> Result<f64>) -> Result<Vec<f64>> {
    let load = Load { callers: 4, calls: jobs / 400 / 10, batch: 100 };
    let mut looked = Vec::new();
    for part in 0..10 {
        let pipeline = "pass";
        load.run(|caller| {
            let address = address.to_owned();
            async move {
                let mut worker = Worker::new(&address, pipeline).await?;
                for call in 0..load.calls {
                    let numbers = load.numbers(caller, call).map(|n| part * load.total() + n);
                    let jobs: Vec<_> = numbers.map(|n| json!({"input": input(n)})).collect();
                    worker.server.post("/jobs", &json!({"pipeline": pipeline, "jobs": jobs}).to_string()).await?;
                    worker.work(load.batch).await?;
                }
                Ok(())
            }
        })
        .await?;
        looked.push(look()?);
    }
    Ok(looked)
}

/// Single letters at a rate, whether those before were answered or not: how long each took from when it was due, in milliseconds and
/// sorted.
pub async fn steadily(address: &str, pipeline: &str, per_second: u32, lasts: Duration) -> Result<Vec<f64>> {
    const CONNECTIONS: usize = 64;
    let total = (f64::from(per_second) * lasts.as_secs_f64()) as usize;
    let every = Duration::from_secs(1) / per_second;
    let begun = tokio::time::Instant::now() + Duration::from_millis(100);
    let mut callers = JoinSet::new();
    for caller in 0..CONNECTIONS {
        let (mut server, pipeline) = (Connection::open(address).await?, pipeline.to_owned());
        callers.spawn(async move {
            let mut took = Vec::new();
            for n in (caller..total).step_by(CONNECTIONS) {
                let due = begun + every * u32::try_from(n)?;
                tokio::time::sleep_until(due).await;
                // The timer is coarse, and wakes late by up to a millisecond: that is not the server's.
                let asked = tokio::time::Instant::now();
                let late = asked.saturating_duration_since(due + Duration::from_millis(1));
                server.post("/letters", &letter(&pipeline, n).to_string()).await?;
                took.push((asked.elapsed() + late).as_secs_f64() * 1_000.0);
            }
            anyhow::Ok(took)
        });
    }
    let mut took = Vec::with_capacity(total);
    while let Some(ended) = callers.join_next().await {
        took.extend(ended??);
    }
    took.sort_by(f64::total_cmp);
    Ok(took)
}

/// Readers of events that hear nothing, for as long as the set is kept.
pub async fn listen(address: &str, readers: usize) -> Result<JoinSet<Result<()>>> {
    let mut listening = JoinSet::new();
    for _ in 0..readers {
        let mut reader = Connection::open(address).await?;
        reader.listen().await?;
        listening.spawn(reader.read_on());
    }
    Ok(listening)
}
