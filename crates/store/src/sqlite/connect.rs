//! Opening connections: one kind to write, one kind to read.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::fault::Fault;
use super::obstacles;
use super::view::View;

/// Below this, SQLite can corrupt a database when its write-ahead log is reset.
const SQLITE_VERSION_MIN: i32 = 3_051_003;

/// How long to wait for another process to let go of the file.
const BUSY_WAIT_MAX: Duration = Duration::from_secs(15);

/// How long a connection waits for others: long, unless it is told to be quick.
#[derive(Clone, Debug, Default)]
pub(super) struct Patience(Arc<AtomicBool>);

impl Patience {
    /// Runs `run` with hardly any patience.
    pub(super) fn short<T>(&self, run: impl FnOnce() -> T) -> T {
        self.0.store(true, Ordering::Relaxed);
        let value = run();
        self.0.store(false, Ordering::Relaxed);
        value
    }

    fn limit(&self) -> Duration {
        if self.0.load(Ordering::Relaxed) { Duration::from_millis(20) } else { BUSY_WAIT_MAX }
    }
}

/// Where a connection goes.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    File(&'a Path),
    Memory,
}

/// Opens a connection that writes.
pub(super) fn writer(place: Place<'_>, patience: &Patience) -> Result<Connection, Fault> {
    assert_version();
    let mut conn = match place {
        Place::File(path) => Connection::open_with_flags(path, flags())?,
        Place::Memory => Connection::open_in_memory()?,
    };
    wait_when_busy(&mut conn, patience)?;
    if let Place::File(path) = place {
        // SQLite opens what it may not write to read it, and says so only when something is written.
        if conn.is_readonly("main")? {
            return Err(obstacles::refusal(path, "it may only be read").into());
        }
        enter_wal(&conn)?;
    }
    conn.execute_batch("PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32000;")?;
    conn.set_prepared_statement_cache_capacity(128);
    keep_plans(&conn)?;
    Ok(conn)
}

/// Opens a connection that only reads.
pub(super) fn reader(view: &View) -> Result<Connection, Fault> {
    let mut conn = view.connect()?;
    wait_when_busy(&mut conn, &Patience::default())?;
    conn.execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -8000;")?;
    conn.set_prepared_statement_cache_capacity(64);
    keep_plans(&conn)?;
    Ok(conn)
}

/// Has plans not depend on bound values: else every new value has its statement prepared anew.
fn keep_plans(conn: &Connection) -> Result<(), Fault> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

fn assert_version() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let linked = rusqlite::version_number();
        assert!(
            linked >= SQLITE_VERSION_MIN,
            "SQLite {} can corrupt its write-ahead log: build redrive with the bundled one",
            rusqlite::version()
        );
    });
}

/// SQLite's own waits grow to 100 ms, far longer than another process holds the file; ours stay short.
fn wait_when_busy(conn: &mut Connection, patience: &Patience) -> Result<(), Fault> {
    let patience = patience.clone();
    let mut since = Instant::now();
    conn.busy_handler(Some(move |tries| {
        if tries == 0 {
            since = Instant::now();
        }
        std::thread::sleep(Duration::from_micros(if tries < 20 { 200 } else { 2_000 }));
        since.elapsed() < patience.limit()
    }))?;
    Ok(())
}

/// Changing the journal mode does not wait for others by itself.
fn enter_wal(conn: &Connection) -> Result<(), Fault> {
    let since = Instant::now();
    loop {
        match conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0)) {
            Ok(_) => return Ok(()),
            Err(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
                    && since.elapsed() < BUSY_WAIT_MAX =>
            {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error.into()),
        }
    }
}
