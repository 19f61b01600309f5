//! From rows to types and back: what is the same for every backend is in `store/rows`.

use redrive_core::failures::Failure;
use redrive_core::ids::{JobId, RoundName};
use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::fault::Fault;
pub(super) use crate::rows::*;

pub(super) type RowResult<T> = rusqlite::Result<T>;

impl Columns for Row<'_> {
    type Fault = rusqlite::Error;

    fn get<T: Column>(&self, column: usize) -> RowResult<T> {
        Row::get(self, column)
    }

    fn text(&self, column: usize) -> RowResult<&str> {
        let text = self.get_ref(column)?.as_str();
        text.map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error)))
    }

    fn is_null(&self, column: usize) -> RowResult<bool> {
        Ok(self.get_ref(column)? == ValueRef::Null)
    }

    fn broken(column: usize, why: String) -> rusqlite::Error {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(std::io::Error::other(why)))
    }
}

/// A round as it is bound; where there is none, the statement puts an empty text instead: a bound one points nowhere, and comparing
/// with it, if only for no bytes, is slow where the processor has to suppress the fault.
pub(super) fn round_text(round: Option<&RoundName>) -> Option<&str> {
    round.map(RoundName::as_str)
}

/// All failures of a job, oldest first.
pub(super) fn failures(conn: &Connection, job: JobId) -> Result<Vec<Failure>, Fault> {
    let mut select = conn.prepare_cached("SELECT failure FROM failure WHERE job = ?1 ORDER BY n")?;
    let rows = select.query_map([job.as_bytes()], |row| json(row, 0))?;
    Ok(rows.collect::<RowResult<_>>()?)
}

/// The last failure of a job, and its place.
pub(super) fn last_failure(conn: &Connection, job: JobId) -> Result<Option<(i64, Failure)>, Fault> {
    let mut select = conn.prepare_cached("SELECT n, failure FROM failure WHERE job = ?1 ORDER BY n DESC LIMIT 1")?;
    Ok(select.query_row([job.as_bytes()], |row| Ok((row.get(0)?, json(row, 1)?))).optional()?)
}

/// Adds a failure to a job's history.
pub(super) fn add_failure(conn: &Connection, job: JobId, failure: &Failure) -> Result<(), Fault> {
    conn.prepare_cached(
        "INSERT INTO failure (job, n, failure)
         VALUES (?1, (SELECT ifnull(max(n), 0) + 1 FROM failure WHERE job = ?1), ?2)",
    )?
    .execute(params![job.as_bytes(), serde_json::to_string(failure)?])?;
    Ok(())
}
