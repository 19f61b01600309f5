//! The PostgreSQL store beside our SQLite, beside one INSERT per job, and beside graphile-worker, on one server and in one run.
//!
//! Every round measures everything once, in turn, so that whatever else the machine does falls on all; the medians of the rounds
//! are compared. `bench/postgres` starts the server and installs graphile-worker, and then runs this.

mod load;
mod peers;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use redrive_core::ids::PipelineName;
use redrive_store::Options;
use redrive_store::contract::Store;
use redrive_store::postgres::PostgresStore;

use self::peers::Graphile;

/// Jobs per caller, for those that share a commit and for those that do not.
const GROUPED: usize = 400;
const ALONE: usize = 60;

/// Callers at once.
const CALLERS: usize = 64;

/// Jobs that are leased and settled.
const JOBS: usize = 20_000;

/// Jobs beside a held snapshot, and how many of them are one part.
const HELD: (usize, usize) = (60_000, 15_000);

/// What is measured against.
pub struct Setting {
    /// The server, as in `host=/folder user=redrive dbname=postgres`.
    pub address: String,
    /// The folder in which graphile-worker is installed, if it is to be compared with.
    pub tools: Option<PathBuf>,
    /// How often everything is measured.
    pub rounds: usize,
    /// Only lines whose name has this text.
    pub only: Option<String>,
}

impl Setting {
    /// What is named in the environment: `REDRIVE_BENCH_POSTGRES`, `…_TOOLS`, `…_ROUNDS`, `…_ONLY`.
    pub fn from_environment() -> Result<Self> {
        let address = std::env::var("REDRIVE_BENCH_POSTGRES").context("run bench/postgres, which starts a server")?;
        let tools = std::env::var_os("REDRIVE_BENCH_TOOLS").map(PathBuf::from);
        let rounds = std::env::var("REDRIVE_BENCH_ROUNDS").ok().map_or(Ok(3), |text| text.parse())?;
        Ok(Self { address, tools, rounds, only: std::env::var("REDRIVE_BENCH_ONLY").ok() })
    }
}

/// What was measured under a name, once per round.
#[derive(Default)]
struct Rates(Vec<(&'static str, Vec<f64>)>);

impl Rates {
    fn add(&mut self, name: &'static str, rate: f64) {
        eprintln!("{name}: {rate:.0}");
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, rates)) => rates.push(rate),
            None => self.0.push((name, vec![rate])),
        }
    }

    fn median(&self, name: &str) -> Option<f64> {
        let mut rates = self.0.iter().find(|(known, _)| *known == name)?.1.clone();
        rates.sort_by(f64::total_cmp);
        Some(rates[rates.len() / 2])
    }
}

/// What is compared: a line of the table, what is above and what is below the line of the fraction, and the aim.
const LINES: [(&str, &str, &str, f64); 9] = [
    ("enqueue, 64 callers: grouped / one INSERT each", "enqueue", "one INSERT each", 3.0),
    ("enqueue, 64 callers: grouped / our SQLite", "enqueue", "enqueue, SQLite", 0.7),
    ("enqueue, 64 callers: grouped / graphile-worker addJob", "enqueue", "enqueue, graphile", 10.0),
    ("lease → settle by 100: 4 workers / 1", "work 4", "work 1", 1.2),
    ("lease → settle by 100: 1 worker / our SQLite", "work 1", "work, SQLite", 0.5),
    ("lease → settle by 100: 4 workers / graphile-worker, batched", "work 4", "work, graphile", 1.5),
    ("lease → settle by 100: bells on / off", "work 4", "work 4, no bells", 0.9),
    ("beside a held snapshot: jobs 45,000–60,000 / the first 15,000", "held, last", "held, first", 0.7),
    ("the same without a held snapshot", "free, last", "free, first", 0.7),
];

/// Measures everything and prints the table.
pub async fn measure(folder: &Path, setting: &Setting) -> Result<()> {
    let mut rates = Rates::default();
    for round in 0..setting.rounds {
        eprintln!("round {} of {}", round + 1, setting.rounds);
        measure_once(&mut rates, folder, setting, round).await?;
    }
    println!("| what | per second | beside | ratio | aim |");
    println!("|---|--:|--:|--:|--:|");
    for (what, above, below, aim) in LINES {
        if let (Some(above), Some(below)) = (rates.median(above), rates.median(below)) {
            println!("| {what} | {above:.0} | {below:.0} | {:.2}× | ≥ {aim}× |", above / below);
        }
    }
    Ok(())
}

async fn measure_once(rates: &mut Rates, folder: &Path, setting: &Setting, round: usize) -> Result<()> {
    let wanted = |part: &str| setting.only.as_deref().is_none_or(|only| part.contains(only));
    let schema = format!("bench_{round}");
    let graphile = setting.tools.as_deref().map(|tools| Graphile { tools, address: &setting.address });
    peers::forget_schema(&setting.address, &schema).await?;
    if wanted("enqueue") {
        enqueue(rates, (folder, round), setting, &schema, graphile.as_ref()).await?;
    }
    if wanted("work") {
        work(rates, (folder, round), setting, &schema, graphile.as_ref()).await?;
    }
    if wanted("held") {
        held(rates, setting, &schema).await?;
    }
    peers::forget_schema(&setting.address, &schema).await
}

async fn open(address: &str, schema: &str) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(PostgresStore::open(address, Some(schema), Options::create()).await?))
}

async fn open_file(folder: &Path, round: usize) -> Result<Arc<dyn Store>> {
    let address = format!("sqlite:{}", folder.join(format!("bench-{round}.db")).display());
    Ok(redrive_store::open(&address, Options::create()).await?)
}

async fn enqueue(
    rates: &mut Rates,
    (folder, round): (&Path, usize),
    setting: &Setting,
    schema: &str,
    graphile: Option<&Graphile<'_>>,
) -> Result<()> {
    let name: PipelineName = "enqueue".parse()?;
    let postgres = open(&setting.address, schema).await?;
    rates.add("enqueue", load::enqueue(&postgres, &name, CALLERS, GROUPED).await?);
    let file = open_file(folder, round).await?;
    rates.add("enqueue, SQLite", load::enqueue(&file, &name, CALLERS, GROUPED).await?);
    rates.add("one INSERT each", peers::insert_each(&setting.address, schema, CALLERS, ALONE).await?);
    if let Some(graphile) = graphile {
        rates.add("enqueue, graphile", graphile.add(CALLERS, ALONE)?);
    }
    Ok(())
}

/// Enqueues jobs to a pipeline of its own, and has workers lease and settle them.
async fn work_on(stores: &[Arc<dyn Store>], name: &str) -> Result<f64> {
    let name: PipelineName = name.parse()?;
    load::fill(&stores[0], &name, JOBS).await?;
    load::work(stores, &name, JOBS).await
}

async fn work(
    rates: &mut Rates,
    (folder, round): (&Path, usize),
    setting: &Setting,
    schema: &str,
    graphile: Option<&Graphile<'_>>,
) -> Result<()> {
    let mut stores = Vec::new();
    for _ in 0..4 {
        stores.push(open(&setting.address, schema).await?);
    }
    rates.add("work 1", work_on(&stores[..1], "one").await?);
    rates.add("work 4", work_on(&stores, "four").await?);
    let mut silent = Vec::new();
    for _ in 0..4 {
        let store = PostgresStore::open(&setting.address, Some(schema), Options::create()).await?;
        silent.push(Arc::new(store.silent()) as Arc<dyn Store>);
    }
    rates.add("work 4, no bells", work_on(&silent, "silent").await?);
    rates.add("work, SQLite", work_on(&[open_file(folder, round).await?], "file").await?);
    if let Some(graphile) = graphile {
        rates.add("work, graphile", graphile.work(JOBS)?);
    }
    Ok(())
}

/// Many jobs while a transaction keeps the server from cleaning up behind them, and without it.
async fn held(rates: &mut Rates, setting: &Setting, schema: &str) -> Result<()> {
    let store = [open(&setting.address, schema).await?];
    for (part, names) in [("free", ("free, first", "free, last")), ("held", ("held, first", "held, last"))] {
        let name: PipelineName = part.parse()?;
        load::fill(&store[0], &name, HELD.0).await?;
        let _snapshot = match part {
            "held" => Some(peers::hold_snapshot(&setting.address, schema).await?),
            _ => None,
        };
        rates.add(names.0, load::work(&store, &name, HELD.1).await?);
        load::work(&store, &name, HELD.0 - 2 * HELD.1).await?;
        rates.add(names.1, load::work(&store, &name, HELD.1).await?);
    }
    Ok(())
}
