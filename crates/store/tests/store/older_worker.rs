//! Workers of an older version that meet a store of this one, and what they counted before.

use std::path::Path;
use std::sync::Arc;

use redrive_store::Options;
use redrive_store::conformance::script::{Shared, assert_sound, ledger};
use redrive_store::contract::{CountTraffic, TrafficBy, TrafficStore};
use redrive_store::sqlite::SqliteStore;
use rusqlite::Connection;

use crate::support::older::{ROWS_5, VERSION_4, rows};

/// A worker of version 5 that has the file open while another process brings it forward: whatever would move a job is refused, as
/// a whole, and its process ends by that.
#[tokio::test]
async fn a_worker_of_an_older_version_that_still_runs_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("redrive.db");
    let older = of_version_5(&path);
    let [enqueue, lease, done, retry, bury] =
        STATEMENTS_5.map(|statements| statements.map(|sql| sql.replace("x03", &hex(3))));
    // It works, and has its statements prepared.
    for statements in [&enqueue, &lease, &done, &retry, &bury] {
        transact(&older, statements).expect("a worker of version 5 does that");
        older.execute_batch("ROLLBACK").expect("taken back");
    }
    let store: Shared = Arc::new(SqliteStore::open(&path, Options::default()).expect("brought forward"));
    let before = ledger(&store).await;
    for statements in [&enqueue, &lease, &done, &retry, &bury] {
        let refused = transact(&older, statements).expect_err("refused");
        assert!(refused.to_string().contains("no such table"), "{refused}: {statements:?}");
        older.execute_batch("ROLLBACK").expect("taken back");
    }
    assert_eq!(ledger(&store).await, before);
    assert_sound(&store).await;
}

fn hex(last: u8) -> String {
    format!("x'{:032x}'", last)
}

fn of_version_5(path: &Path) -> Connection {
    let conn = Connection::open(path).expect("opened");
    conn.execute_batch("PRAGMA journal_mode = WAL").expect("a log");
    VERSION_4.iter().for_each(|schema| conn.execute_batch(schema).expect("the schema"));
    conn.execute_batch(&rows()).expect("a store of version 4");
    conn.execute_batch(include_str!("../../src/sqlite/schema/005_mended.sql")).expect("the schema");
    conn.execute_batch(ROWS_5).expect("a store of version 5");
    conn
}

fn transact(conn: &Connection, statements: &[String]) -> rusqlite::Result<()> {
    conn.execute_batch("BEGIN IMMEDIATE")?;
    statements.iter().filter(|sql| !sql.is_empty()).try_for_each(|sql| {
        let mut statement = conn.prepare_cached(sql)?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        Ok(())
    })
}

/// What version 5 writes to accept a job, to lease one, and to settle one that is done, is to be tried again, or is dead.
const STATEMENTS_5: [[&str; 5]; 5] = [
    [
        "INSERT OR IGNORE INTO identity (pipeline, key, job) VALUES (1, 'k99', x'99')",
        "INSERT INTO job (id, pipeline, key, accepted_at, due_at, input) VALUES (x'99', 1, 'k99', 0, 0, '{}')",
        "INSERT INTO queue (pipeline, due_at, seq) VALUES (1, 0, 99)",
        "UPDATE pipeline SET accepted = accepted + 1, queued = queued + 1 WHERE id = 1",
        COUNT_5,
    ],
    [
        "SELECT j.id FROM queue q JOIN job j ON j.seq = q.seq WHERE q.pipeline = 1 AND q.due_at <= 0 ORDER BY q.due_at, q.seq",
        "DELETE FROM queue WHERE pipeline = 1 AND due_at = 0 AND seq = 1",
        "INSERT INTO lease (job, seq, worker, token, epoch, until) VALUES (x'01', 1, x'99', x'97', 8, 5000)",
        "UPDATE pipeline SET queued = queued - 1, leased = leased + 1 WHERE id = 1",
        "UPDATE pipeline SET epoch = 8 WHERE id = 1",
    ],
    [
        "DELETE FROM lease WHERE job = x03",
        "DELETE FROM job WHERE seq = 3",
        "INSERT INTO done (job, pipeline, key, target, accepted_at, done_at, attempts, crashes, replays)
         VALUES (x03, 1, NULL, NULL, 0, 9, 1, 0, 0)",
        "UPDATE pipeline SET leased = leased - 1, done = done + 1 WHERE id = 1",
        COUNT_5,
    ],
    [
        "DELETE FROM lease WHERE job = x03",
        "UPDATE job SET due_at = 9, attempts = 1, crashes = 0, suspect = 0, begun = 0 WHERE seq = 3 RETURNING pipeline",
        "INSERT INTO queue (pipeline, due_at, seq) VALUES (1, 9, 3)",
        "UPDATE pipeline SET leased = leased - 1, queued = queued + 1, retrying = retrying + 1 WHERE id = 1",
        COUNT_5,
    ],
    [
        "DELETE FROM lease WHERE job = x03",
        "INSERT INTO dead (id, pipeline, accepted_at, died_at, kept_from, attempts, crashes, replays, gate, reason, message, input,
                           cause_key)
         SELECT id, pipeline, accepted_at, 9, 9, 1, 0, 0, 'auto', 'timeout', 'x', input, 1 FROM job WHERE seq = 3",
        "DELETE FROM job WHERE seq = 3",
        "UPDATE pipeline SET leased = leased - 1, dead = dead + 1 WHERE id = 1",
        COUNT_5,
    ],
];

/// All that moves a job is counted by the hour.
const COUNT_5: &str = "INSERT INTO hourly (pipeline, hour, event, reason, count) VALUES (1, 0, 'done', '', 1)
    ON CONFLICT DO UPDATE SET count = count + excluded.count";

/// Of the attempts of an older store it is known which ended a job as far as that can be: a rate has a denominator.
#[tokio::test]
async fn attempts_of_an_older_store_have_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("redrive.db");
    let older = of_version_5(&path);
    older
        .execute_batch(
            "DELETE FROM traffic;
             UPDATE dead SET target = 'shop' WHERE died_at < 4000;
             INSERT INTO traffic VALUES (1, 0, 'shop', '', 'handler_error', 7), (1, 0, 'shop', '', '', 9),
                                        (1, 0, 'shop', '', 'timeout', 5);",
        )
        .expect("filled");
    drop(older);
    let store = SqliteStore::open(&path, Options::default()).expect("brought forward");
    let since = redrive_core::time::Timestamp::from_millis(0);
    let params = CountTraffic { pipeline: None, since, by: TrafficBy::Target };
    let told: Vec<_> = store.traffic(params).await.expect("counted").iter().map(|row| (row.count, row.ended)).collect();
    assert_eq!(told, [(9, 9), (7, 3), (5, 0)], "who succeeded, who is dead still, and who went on");
}
