//! Which job is meant by a number, or by the end of an id.

use redrive_core::ids::{IdEnding, JobId, JobRef};

use super::fault::Fault;
use super::rows;
use super::sql::{Conn, args};

/// Where dead letters are, with what they are called there.
const DEAD: (&str, &str) = ("dead", "id");

/// The same of all jobs.
const TABLES: [(&str, &str); 4] = [("job", "id"), DEAD, ("discarded", "job"), ("done", "job")];

/// The jobs that are named so; more than one only if the end of an id is that of several, or also a number.
pub(super) async fn find(conn: &Conn, named: &JobRef) -> Result<Vec<JobId>, Fault> {
    match named {
        JobRef::Id(id) => Ok(vec![*id]),
        JobRef::Number(number) => {
            let mut found = find_number(conn, *number).await?;
            // All the jobs that went well would have any few digits among their ids.
            if let Some(ending) = named.as_ending() {
                let also = find_ending(conn, &[DEAD], ending).await?;
                found.extend(also.into_iter().filter(|id| !found.contains(id)).collect::<Vec<_>>());
            }
            Ok(found)
        }
        JobRef::Ending(ending) => find_ending(conn, &TABLES, *ending).await,
    }
}

async fn find_number(conn: &Conn, number: i64) -> Result<Vec<JobId>, Fault> {
    let indexed = "SELECT id FROM job WHERE seq = $1 UNION ALL SELECT id FROM dead WHERE seq = $1
         UNION ALL SELECT job FROM discarded WHERE number = $1 UNION ALL SELECT job FROM done WHERE number = $1 AND replays > 0";
    // Jobs that never died have no index: that would cost each of them something.
    for sql in [indexed, "SELECT job FROM done WHERE number = $1 LIMIT 1"] {
        let found = conn.query(sql, args![number], |row| rows::job_id(row, 0)).await?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

async fn find_ending(conn: &Conn, tables: &[(&str, &str)], ending: IdEnding) -> Result<Vec<JobId>, Fault> {
    let digits = ending.to_string().to_ascii_lowercase();
    let length = digits.len();
    let mut found = Vec::new();
    for (table, id) in tables {
        let sql = format!("SELECT {id} FROM {table} WHERE right(replace({id}::text, '-', ''), {length}) = $1 LIMIT 2");
        found.extend(conn.query(&sql, args![digits], |row| rows::job_id(row, 0)).await?);
    }
    Ok(found)
}
