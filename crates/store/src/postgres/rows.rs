//! From rows to types and back: what is the same for every backend is in `store/rows`.

use redrive_core::failures::Failure;
use redrive_core::ids::{JobId, RoundName};

use super::fault::Fault;
use super::sql::{Conn, Row, args};
pub(super) use crate::rows::*;

impl Columns for Row<'_> {
    type Fault = Fault;

    fn get<T: Column>(&self, column: usize) -> Result<T, Fault> {
        Row::get(self, column)
    }

    fn text(&self, column: usize) -> Result<&str, Fault> {
        Row::text(self, column)
    }

    fn is_null(&self, column: usize) -> Result<bool, Fault> {
        Row::is_null(self, column)
    }

    fn broken(_: usize, why: String) -> Fault {
        Fault::Broken(why)
    }
}

/// A round as it is bound; an empty text is none.
pub(super) fn round_text(round: Option<&RoundName>) -> &str {
    round.map_or("", RoundName::as_str)
}

/// All failures of a job, oldest first.
pub(super) async fn failures(conn: &Conn, job: JobId) -> Result<Vec<Failure>, Fault> {
    conn.query("SELECT failure FROM failure WHERE job = $1 ORDER BY n", args![job], |row| json(row, 0)).await
}

/// The last failure of a job, and its place.
pub(super) async fn last_failure(conn: &Conn, job: JobId) -> Result<Option<(i64, Failure)>, Fault> {
    let sql = "SELECT n, failure FROM failure WHERE job = $1 ORDER BY n DESC LIMIT 1";
    conn.query_opt(sql, args![job], |row| Ok((row.get(0)?, json(row, 1)?))).await
}

/// Adds failures to the histories of jobs, in their order; several may be of one job.
pub(super) async fn add_failures(conn: &Conn, failures: &[(JobId, &Failure)]) -> Result<(), Fault> {
    if failures.is_empty() {
        return Ok(());
    }
    let jobs: Vec<JobId> = failures.iter().map(|(job, _)| *job).collect();
    let texts: Vec<String> =
        failures.iter().map(|(_, failure)| serde_json::to_string(failure)).collect::<Result<_, _>>()?;
    conn.send(
        "INSERT INTO failure (job, n, failure)
         SELECT u.job, coalesce((SELECT max(f.n) FROM failure f WHERE f.job = u.job), 0)
                       + row_number() OVER (PARTITION BY u.job ORDER BY u.place), u.failure
         FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS u(job, failure, place)",
        args![jobs, texts],
    )
    .await?;
    Ok(())
}
