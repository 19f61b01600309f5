//! Which job is meant by a number, or by the end of an id.

use redrive_core::ids::{IdEnding, JobId, JobRef};
use rusqlite::Connection;

use super::fault::Fault;
use super::rows::{self, RowResult};

/// Where dead letters are, with what they are called there.
const DEAD: (&str, &str) = ("dead", "id");

/// The same of all jobs.
const TABLES: [(&str, &str); 4] = [("job", "id"), DEAD, ("discarded", "job"), ("done", "job")];

/// The jobs that are named so; more than one only if the end of an id is that of several, or also a number.
pub(super) fn find(conn: &Connection, named: &JobRef) -> Result<Vec<JobId>, Fault> {
    match named {
        JobRef::Id(id) => Ok(vec![*id]),
        JobRef::Number(number) => {
            let mut found = find_number(conn, *number)?;
            // All the jobs that went well would have any few digits among their ids.
            for id in
                named.as_ending().map(|ending| find_ending(conn, &[DEAD], ending)).transpose()?.unwrap_or_default()
            {
                if !found.contains(&id) {
                    found.push(id);
                }
            }
            Ok(found)
        }
        JobRef::Ending(ending) => find_ending(conn, &TABLES, *ending),
    }
}

fn find_number(conn: &Connection, number: i64) -> Result<Vec<JobId>, Fault> {
    let indexed = "SELECT id FROM job WHERE seq = ?1 UNION ALL SELECT id FROM dead WHERE seq = ?1
         UNION ALL SELECT job FROM discarded WHERE number = ?1 UNION ALL SELECT job FROM done WHERE number = ?1 AND replays > 0";
    // Jobs that never died have no index: that would cost each of them something.
    for sql in [indexed, "SELECT job FROM done WHERE number = ?1 LIMIT 1"] {
        let mut select = conn.prepare_cached(sql)?;
        let found = select.query_map([number], |row| rows::job_id(row, 0))?.collect::<RowResult<Vec<_>>>()?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// Looks at all ids, of which nothing but an index is read: about 0.1 s for each million. As text they would take four times as long, and an
/// index of ends would cost every job something.
fn find_ending(conn: &Connection, tables: &[(&str, &str)], ending: IdEnding) -> Result<Vec<JobId>, Fault> {
    let bytes = ending.bytes();
    let length = bytes.len();
    let mut found = Vec::new();
    for (table, id) in tables {
        let sql = format!("SELECT {id} FROM {table} WHERE substr({id}, -{length}) = ?1");
        let mut select = conn.prepare_cached(&sql)?;
        let rows = select.query_map([&bytes], |row| rows::job_id(row, 0))?;
        let fits = |id: &RowResult<JobId>| id.as_ref().map_or(true, |id| ending.ends(id.as_bytes()));
        found.extend(rows.filter(fits).take(2).collect::<RowResult<Vec<_>>>()?);
    }
    Ok(found)
}
