//! What we are compared with: plain INSERTs, and graphile-worker in processes of its own.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

use super::load::BODY_BYTES;

/// How many connections or processes others are measured with; the best counts.
const CONNECTIONS: [usize; 2] = [16, 64];
const PROCESSES: [usize; 2] = [1, 4];

async fn connect(address: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Removes what a benchmark left behind.
pub async fn forget_schema(address: &str, schema: &str) -> Result<()> {
    Ok(connect(address).await?.batch_execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await?)
}

/// Keeps a view of the database, until it is dropped.
pub async fn hold_snapshot(address: &str, schema: &str) -> Result<Client> {
    let client = connect(address).await?;
    let look = format!("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM {schema}.pipeline");
    client.batch_execute(&look).await?;
    Ok(client)
}

/// The rows of a job, by one statement and one commit for each.
pub async fn insert_each(address: &str, schema: &str, callers: usize, each: usize) -> Result<f64> {
    let mut best: f64 = 0.0;
    for connections in CONNECTIONS {
        best = best.max(insert_on(address, schema, (callers, each), connections).await?);
    }
    Ok(best)
}

async fn insert_on(address: &str, schema: &str, (callers, each): (usize, usize), connections: usize) -> Result<f64> {
    let sql = format!(
        "WITH known AS (INSERT INTO {schema}.identity (pipeline, key, round, job, met_on) VALUES (999, $1, '', $2, 1)),
              new AS (INSERT INTO {schema}.job (seq, id, pipeline, key, target, accepted_at, due_at, input)
                      VALUES (nextval('{schema}.job_number'), $2, 999, $1, 'shop.example', 0, 0, $3) RETURNING seq)
         INSERT INTO {schema}.place (lane, due_at, seq) SELECT 999, 0, seq FROM new"
    );
    let mut clients = Vec::new();
    for _ in 0..connections {
        let client = connect(address).await?;
        let statement = client.prepare(&sql).await?;
        clients.push((client, statement));
    }
    let jobs = callers * each / connections;
    let begun = Instant::now();
    let tasks: Vec<_> = clients
        .into_iter()
        .map(|(client, statement)| {
            tokio::spawn(async move {
                for _ in 0..jobs {
                    let id = Uuid::from_u128(fastrand::u128(..));
                    let body = format!("{{\"body\":\"{}\"}}", "x".repeat(BODY_BYTES));
                    let values: [&(dyn ToSql + Sync); 3] = [&id.to_string(), &Bare(id), &body];
                    client.execute(&statement, &values).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok((jobs * connections) as f64 / begun.elapsed().as_secs_f64())
}

/// An id as it is sent.
#[derive(Debug)]
struct Bare(Uuid);

impl ToSql for Bare {
    fn to_sql(
        &self,
        _: &tokio_postgres::types::Type,
        out: &mut tokio_postgres::types::private::BytesMut,
    ) -> Result<tokio_postgres::types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(tokio_postgres::types::IsNull::No)
    }

    fn accepts(of: &tokio_postgres::types::Type) -> bool {
        *of == tokio_postgres::types::Type::UUID
    }

    tokio_postgres::types::to_sql_checked!();
}

/// graphile-worker, installed in a folder.
pub struct Graphile<'a> {
    pub tools: &'a Path,
    pub address: &'a str,
}

impl Graphile<'_> {
    /// `addJob` by callers at once; says how many a second.
    pub fn add(&self, callers: usize, each: usize) -> Result<f64> {
        self.ask(&["add", &callers.to_string(), &each.to_string()])
    }

    /// Its workers with their jobs fetched ahead and completed in batches, in as many processes as suits it best.
    pub fn work(&self, jobs: usize) -> Result<f64> {
        let mut best: f64 = 0.0;
        for processes in PROCESSES {
            best = best.max(self.ask(&["work", &processes.to_string(), &jobs.to_string()])?);
        }
        Ok(best)
    }

    fn ask(&self, args: &[&str]) -> Result<f64> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("graphile.mjs");
        let mut command = Command::new("node");
        command.arg(script).arg(self.tools).arg(self.address).args(args).stderr(Stdio::inherit());
        let output = command.output().context("node is needed to compare with graphile-worker")?;
        ensure!(output.status.success(), "graphile-worker failed: {}", output.status);
        let text = String::from_utf8(output.stdout)?;
        text.trim().parse().with_context(|| format!("graphile-worker printed {text}"))
    }
}
