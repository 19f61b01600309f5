//! Fills a store with dead letters, fast: plain inserts in large transactions, with the ledger kept right.

use std::path::Path;

use anyhow::Result;
use redrive::Redrive;
use rusqlite::{Connection, params};
use uuid::Uuid;

const PER_TRANSACTION: u64 = 50_000;

const FAILURE: &str = r#"{"at":"2026-11-15T14:02:00.000Z","attempt":1,"replay":0,"reason":"schema_validation","code":"SelectorNotFound","message":"SelectorNotFound: .price-tag-main","error_type":"SelectorNotFound","stack":null,"stage":"extract","http_status":200,"target":null,"proxy":null,"retry_after_secs":null,"stderr":null,"worker":null,"duration_ms":120}"#;

pub fn fill(path: &Path, letters: u64) -> Result<()> {
    drop(Redrive::open(&format!("sqlite:{}", path.display()))?);
    let mut conn = Connection::open(path)?;
    conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000;")?;
    conn.execute("INSERT INTO pipeline (name, accepted, dead) VALUES ('cemetery', ?1, ?1)", [i64::try_from(letters)?])?;
    let pipeline = conn.last_insert_rowid();
    for first in (0..letters).step_by(PER_TRANSACTION as usize) {
        let tx = conn.transaction()?;
        for n in first..(first + PER_TRANSACTION).min(letters) {
            letter(&tx, pipeline, n)?;
        }
        tx.commit()?;
    }
    conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}

fn letter(tx: &Connection, pipeline: i64, n: u64) -> Result<()> {
    let id = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 + u128::from(n));
    let (key, target) = (format!("page-{n}"), format!("shop{}.example", n % 50));
    let reason = ["schema_validation", "timeout", "blocked", "server_error"][(n % 4) as usize];
    let input = format!("{{\"key\":\"{key}\",\"url\":\"https://{target}/products/{n}\"}}");
    tx.prepare_cached("INSERT INTO identity (pipeline, key, job) VALUES (?1, ?2, ?3)")?.execute(params![
        pipeline,
        key,
        id.as_bytes()
    ])?;
    tx.prepare_cached(
        "INSERT INTO dead (id, pipeline, key, target, accepted_at, died_at, kept_from, attempts, crashes, replays, gate, reason, code,
                           http_status, proxy, message, input)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, 4, 0, 0, 'review', ?7, 'SelectorNotFound', 200, NULL, ?8, ?9)",
    )?
    .execute(params![
        id.as_bytes(),
        pipeline,
        key,
        target,
        1_794_000_000_000_i64 + n as i64,
        1_794_000_001_000_i64 + n as i64,
        reason,
        "SelectorNotFound: .price-tag-main",
        input
    ])?;
    tx.prepare_cached("INSERT INTO failure (job, n, failure) VALUES (?1, 1, ?2)")?
        .execute(params![id.as_bytes(), FAILURE])?;
    Ok(())
}
