//! The limit: the same rows, written by plain rusqlite, in transactions of 1,000 or as many as there are callers.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use rusqlite::{Connection, params};
use uuid::Uuid;

/// The rows come in the order in which so many callers would bring them.
const CALLERS: usize = 64;

fn connect(path: &Path) -> Result<Connection> {
    let conn = Connection::open(path)?;
    conn.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -32000;")?;
    conn.execute("INSERT OR IGNORE INTO pipeline (name) VALUES ('raw')", [])?;
    Ok(conn)
}

fn pipeline(conn: &Connection) -> Result<i64> {
    Ok(conn.query_row("SELECT id FROM pipeline WHERE name = 'raw'", [], |row| row.get(0))?)
}

/// Runs `each` for every item, so many to a transaction; says how many per second.
fn rate<T>(
    conn: &mut Connection,
    items: &[T],
    per_transaction: usize,
    mut each: impl FnMut(&Connection, &T) -> Result<()>,
) -> Result<f64> {
    let begun = Instant::now();
    for part in items.chunks(per_transaction) {
        let tx = conn.transaction()?;
        part.iter().try_for_each(|item| each(&tx, item))?;
        tx.commit()?;
    }
    Ok(items.len() as f64 / begun.elapsed().as_secs_f64())
}

/// A job's rows: its key, its body and its place in the queue.
pub fn enqueue(path: &Path, jobs: usize, per_transaction: usize) -> Result<f64> {
    let mut conn = connect(path)?;
    let pipeline = pipeline(&conn)?;
    let items: Vec<(usize, usize)> = (0..jobs).map(|n| (n % CALLERS, n / CALLERS)).collect();
    rate(&mut conn, &items, per_transaction, |tx, (caller, n)| {
        let id = uuid::Builder::from_unix_timestamp_millis(
            1_794_000_000_000 + *n as u64,
            &fastrand::u128(..).to_le_bytes()[..10].try_into()?,
        )
        .into_uuid();
        let key = format!("{caller}-{per_transaction}-{n}");
        let input = format!("{{\"key\":\"{key}\",\"url\":\"https://example.com/products/{n}\"}}");
        tx.prepare_cached("INSERT INTO identity (pipeline, key, job) VALUES (?1, ?2, ?3)")?.execute(params![
            pipeline,
            key,
            id.as_bytes()
        ])?;
        tx.prepare_cached(
            "INSERT INTO job (id, pipeline, key, target, accepted_at, due_at, input) VALUES (?1, ?2, ?3, ?4, 0, 0, ?5)",
        )?
        .execute(params![id.as_bytes(), pipeline, key, "example.com", input])?;
        tx.prepare_cached("INSERT INTO place (lane, due_at, seq) VALUES (?1, 0, ?2)")?
            .execute(params![pipeline, tx.last_insert_rowid()])?;
        Ok(())
    })
}

/// The rows of a lease and of a settlement, for jobs that [`enqueue`] wrote.
pub fn lease_and_settle(path: &Path, per_transaction: usize) -> Result<f64> {
    let mut conn = connect(path)?;
    let pipeline = pipeline(&conn)?;
    let jobs: Vec<i64> = {
        let mut select = conn.prepare("SELECT seq FROM place WHERE lane = ?1 ORDER BY due_at, seq")?;
        select.query_map([pipeline], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?
    };
    let nobody = Uuid::nil();
    rate(&mut conn, &jobs, per_transaction, |tx, seq| {
        let (id, key, target, _input): ([u8; 16], String, String, String) = tx
            .prepare_cached("SELECT id, key, target, input FROM job WHERE seq = ?1")?
            .query_row([seq], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
        tx.prepare_cached("DELETE FROM place WHERE lane = ?1 AND due_at = 0 AND seq = ?2")?
            .execute(params![pipeline, seq])?;
        tx.prepare_cached("INSERT INTO lease (job, seq, worker, token, epoch, until) VALUES (?1, ?2, ?3, ?3, 1, 0)")?
            .execute(params![id, seq, nobody.as_bytes()])?;
        tx.prepare_cached("DELETE FROM lease WHERE job = ?1")?.execute([id])?;
        tx.prepare_cached("DELETE FROM job WHERE seq = ?1")?.execute([seq])?;
        tx.prepare_cached(
            "INSERT INTO done (job, pipeline, key, target, accepted_at, done_at, attempts, crashes, replays)
             VALUES (?1, ?2, ?3, ?4, 0, 0, 1, 0, 0)",
        )?
        .execute(params![id, pipeline, key, target])?;
        Ok(())
    })
}
