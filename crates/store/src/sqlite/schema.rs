//! The schema and its versions. A store of an older version is brought forward; one of a newer version is refused.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::cause_keys;
use super::fault::Fault;
use super::ledger::free_bytes;
use crate::error::StoreError;

/// Marks a file as a Redrive store: "RDRV".
const APPLICATION_ID: i64 = 0x5244_5256;

/// Each entry brings the schema forward by one version.
const MIGRATIONS: &[&str] = &[
    include_str!("schema/001_jobs.sql"),
    include_str!("schema/002_payloads.sql"),
    include_str!("schema/003_progress.sql"),
    include_str!("schema/004_causes.sql"),
    include_str!("schema/005_mended.sql"),
    include_str!("schema/006_seam.sql"),
    include_str!("schema/007_every_day.sql"),
    include_str!("schema/008_serve.sql"),
    include_str!("schema/009_serving.sql"),
    include_str!("schema/010_dashboard.sql"),
    include_str!("schema/011_on_call.sql"),
    include_str!("schema/012_counted.sql"),
    include_str!("schema/013_results.sql"),
    include_str!("schema/014_payloads.sql"),
    include_str!("schema/015_claims.sql"),
    include_str!("schema/016_forgotten.sql"),
];

/// The version that brought causes: letters of older stores are recognised once.
const CAUSES_SINCE: usize = 4;

/// The version that writes identities and the queue of older stores anew.
const REWRITES: usize = 6;

/// The version that writes the indexes anew by which letters are counted, and about how much that is for each letter.
const INDEXES_LETTERS: usize = 12;
const INDEXED_BYTES: u64 = 300;

/// How much room is left besides that.
const SPARE_BYTES: u64 = 16 << 20;

/// The version this build writes.
pub(super) fn newest_version() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Checks that the file is a store this build understands and brings it to the newest version.
pub(super) fn migrate(conn: &mut Connection, path: &Path) -> Result<(), Fault> {
    // One view of the file: another process may be making it at this moment.
    if check(&*conn.transaction()?, path)? == newest_version() {
        return Ok(());
    }
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    let from = usize::try_from(check(&tx, path)?).unwrap_or(0);
    if from > 0 {
        check_room(path, from, (room_needed(&tx, from)?, free_bytes(path)))?;
    }
    for migration in &MIGRATIONS[from..] {
        tx.execute_batch(migration)?;
    }
    if from > 0 && from < CAUSES_SINCE {
        cause_keys::recognise_all(&tx)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.pragma_update(None, "user_version", newest_version())?;
    Ok(tx.commit()?)
}

/// The bytes that it takes to bring an older store forward: what is written anew goes to the log first, and from there to the file.
fn room_needed(conn: &Connection, from: usize) -> Result<u64, Fault> {
    let mut needed = 0;
    if from < INDEXES_LETTERS {
        let letters: u64 = conn.query_row("SELECT count(*) FROM dead", [], |row| row.get(0))?;
        needed += letters * INDEXED_BYTES;
    }
    if from >= REWRITES {
        return Ok(needed);
    }
    let rewritten: u64 = conn.query_row(
        "SELECT (SELECT ifnull(sum(length(key) + 64), 0) FROM identity) + (SELECT count(*) * 64 FROM queue)
              + (SELECT ifnull(sum(length(j.input) + 512), 0) FROM job j JOIN dead d ON d.seq = j.seq)",
        [],
        |row| row.get(0),
    )?;
    Ok(needed + rewritten * 2 + SPARE_BYTES)
}

/// Refuses to begin what would end in the middle. A file system that does not tell how much is free is believed to have room.
fn check_room(path: &Path, from: usize, (needed_bytes, free_bytes): (u64, Option<u64>)) -> Result<(), Fault> {
    let Some(free_bytes) = free_bytes.filter(|free| *free < needed_bytes) else { return Ok(()) };
    let place = path.display().to_string();
    let why = Box::new(StoreError::NoRoom { place: place.clone(), needed_bytes, free_bytes });
    let found = i64::try_from(from).unwrap_or(i64::MAX);
    Err(StoreError::CannotMigrate { place, found, known: newest_version(), why }.into())
}

/// Whether a file is marked as a store, as far as its first page says. It is not opened as a database: that would leave traces.
pub(super) fn is_marked(path: &Path) -> bool {
    let mut header = [0; 72];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    // The format has the id there, as a big-endian number.
    read.is_ok() && header.starts_with(b"SQLite format 3\0") && header[68..] == (APPLICATION_ID as u32).to_be_bytes()
}

/// Checks that a store that cannot be written is one that this build can read as it is.
pub(super) fn check_unwritable(conn: &Connection, path: &Path, why: StoreError) -> Result<(), Fault> {
    let (found, known) = (check(conn, path)?, newest_version());
    match found {
        found if found == known => Ok(()),
        // It was to be made now.
        0 => Err(why.into()),
        found => {
            let (place, why) = (path.display().to_string(), Box::new(why));
            Err(StoreError::CannotMigrate { place, found, known, why }.into())
        }
    }
}

/// The version of a store; an error if it is none, or a newer one than this build understands.
pub(super) fn check(conn: &Connection, path: &Path) -> Result<i64, Fault> {
    let pragma = |name: &str| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, found) = (pragma("application_id")?, pragma("user_version")?);
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION_ID && (tables > 0 || found != 0) {
        let why = "it is a database of another program".to_owned();
        return Err(StoreError::NotAStore { place: path.display().to_string(), why }.into());
    }
    if found > newest_version() {
        return Err(
            StoreError::NewerSchema { place: path.display().to_string(), found, known: newest_version() }.into()
        );
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_version(version: usize) -> Connection {
        let conn = Connection::open_in_memory().expect("opened");
        MIGRATIONS[..version].iter().for_each(|migration| conn.execute_batch(migration).expect("the schema"));
        conn.pragma_update(None, "application_id", APPLICATION_ID).expect("marked");
        conn.pragma_update(None, "user_version", version as i64).expect("marked");
        conn
    }

    #[test]
    fn a_store_of_the_version_before_gets_what_is_new() {
        let mut conn = of_version(8);
        migrate(&mut conn, Path::new("memory:")).expect("brought forward");
        let sessions: i64 = conn.query_row("SELECT count(*) FROM session", [], |row| row.get(0)).expect("a table");
        assert_eq!(sessions, 0);
        assert_eq!(check(&conn, Path::new("memory:")).expect("a store"), newest_version());
    }

    /// What the letters that are there tell is counted when a store is brought forward, the rest from then on.
    #[test]
    fn letters_of_the_version_before_are_counted() {
        let mut conn = of_version(9);
        conn.execute_batch(
            "INSERT INTO pipeline (id, name) VALUES (1, 'p');
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
             INSERT INTO dead (seq, id, pipeline, target, accepted_at, died_at, kept_from, attempts, crashes, replays, gate, reason,
                               message, input, http_status, cause_key, definition, payload, payload_cut, refailed)
             SELECT i, randomblob(16), 1, 't' || i, 0, 0, 0, 1, 0, 0, 'auto', 'timeout', 'x', '{}', 503, 7, 'v1',
                    iif(i <= 10, randomblob(32), NULL), i <= 4, i = 300 FROM n;",
        )
        .expect("filled");
        migrate(&mut conn, Path::new("memory:")).expect("brought forward");
        let one = |sql: &str| -> i64 { conn.query_row(sql, [], |row| row.get(0)).expect("counted") };
        assert_eq!(one("SELECT count FROM cause_saved WHERE key = 7"), 6, "four were cut");
        assert_eq!(
            one("SELECT count FROM cause_facet WHERE (key, kind, value) = (7, 'status', '503')"),
            299,
            "one died twice"
        );
        assert_eq!(one("SELECT count FROM cause_facet WHERE (key, kind, value) = (7, 'rules', 'v1')"), 299);
        assert_eq!(one("SELECT count(*) FROM cause_facet WHERE kind = 'target'"), 201);
        assert_eq!(one("SELECT count FROM cause_facet WHERE (kind, value) = ('target', '…')"), 99);
    }

    #[test]
    fn a_store_is_not_brought_forward_without_room_for_it() {
        let conn = of_version(5);
        let empty = room_needed(&conn, 5).expect("asked");
        conn.execute_batch(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
             INSERT INTO identity SELECT 1, printf('key %04d', i), x'00' FROM n;",
        )
        .expect("filled");
        let needed = room_needed(&conn, 5).expect("asked");
        assert!(needed > empty + 2 * 1_000 * 72 - 1, "{needed} after {empty}");
        let path = Path::new("a.db");
        assert!(check_room(path, 5, (needed, Some(needed))).is_ok() && check_room(path, 5, (needed, None)).is_ok());
        let refused = check_room(path, 5, (needed, Some(needed - 1))).expect_err("refused");
        let Fault::Store(StoreError::CannotMigrate { found: 5, why, .. }) = refused else { panic!("{refused:?}") };
        assert!(matches!(*why, StoreError::NoRoom { .. }), "{why}");
        let conn = super::super::replay_choices::tests::filled(1_000);
        let needed = [INDEXES_LETTERS - 1, INDEXES_LETTERS].map(|from| room_needed(&conn, from).expect("asked"));
        assert_eq!(needed, [1_000 * INDEXED_BYTES, 0], "only their indexes are written anew");
    }

    /// Only what has the number of a letter is given another one: a long queue is not written anew for a few letters.
    #[test]
    fn a_job_keeps_its_number_unless_it_is_that_of_a_letter() {
        let mut conn = of_version(5);
        conn.execute_batch(
            "INSERT INTO pipeline (id, name) VALUES (1, 'p');
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9)
             INSERT INTO job (seq, id, pipeline, accepted_at, due_at, input) SELECT i, randomblob(16), 1, 0, i, '{}' FROM n;
             INSERT INTO queue SELECT 1, due_at, seq FROM job;
             INSERT INTO dead (seq, id, pipeline, accepted_at, died_at, kept_from, attempts, crashes, replays, gate, reason, message,
                               input)
             VALUES (2, x'02', 1, 0, 0, 0, 1, 0, 0, 'auto', 'timeout', 'x', '{}'),
                    (5, x'05', 1, 0, 0, 0, 1, 0, 0, 'auto', 'timeout', 'x', '{}');",
        )
        .expect("filled");
        migrate(&mut conn, Path::new("memory:")).expect("brought forward");
        let all = |sql: &str| -> Vec<i64> {
            let mut select = conn.prepare(sql).expect("read");
            select.query_map([], |row| row.get(0)).expect("read").map(|seq| seq.expect("a number")).collect()
        };
        let jobs = [1, 3, 4, 6, 7, 8, 9, 11, 14];
        assert_eq!(all("SELECT seq FROM job ORDER BY seq"), jobs);
        assert_eq!(all("SELECT seq FROM place ORDER BY seq"), jobs);
        assert_eq!(all("SELECT due_at FROM place ORDER BY seq"), [1, 3, 4, 6, 7, 8, 9, 2, 5], "each is where it was");
        assert_eq!(all("SELECT value FROM counter"), [14]);
    }
}
