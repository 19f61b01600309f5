//! How the store and its server are, as the server's catalogs have it. Nothing is judged here.

use std::time::SystemTime;

use redrive_core::servers::{Holder, ServerFacts};

use super::conn::Conn;
use super::fault::Fault;
use super::ledger::size_bytes;
use super::sql::args;
use crate::contract::Health;

/// What is known of the store and its server.
pub(super) async fn health(conn: &Conn, place: &str) -> Result<Health, Fault> {
    let sql = "SELECT current_setting('server_version'), (SELECT version FROM meta)";
    let (version, schema_version): (String, i64) =
        conn.query_one(sql, args![], |row| Ok((row.get(0)?, row.get(1)?))).await?;
    Ok(Health {
        location: place.to_owned(),
        engine: format!("PostgreSQL {version}"),
        schema_version,
        size_bytes: size_bytes(conn).await?,
        free_bytes: None,
        server: Some(facts(conn).await?),
        problems: Vec::new(),
    })
}

async fn facts(conn: &Conn) -> Result<ServerFacts, Fault> {
    let (clock_ahead_ms, clock_error_ms) = clock(conn).await?;
    let (dead_rows, live_rows, worst_table) = dead_rows(conn).await?;
    let holders = holders(conn).await?;
    let sql = "SELECT (SELECT version || ', ' || cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl),
                      inet_client_addr() IS NOT NULL AND NOT inet_client_addr() <<= '127.0.0.0/8'
                          AND inet_client_addr() <> '::1',
                      pg_is_in_recovery(), has_schema_privilege(current_schema(), 'CREATE'),
                      current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',
                      current_setting('synchronous_commit') <> 'off', current_setting('autovacuum') = 'on',
                      (SELECT coalesce(sum(numbackends), 0) FROM pg_stat_database)::bigint,
                      current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint";
    conn.query_one(sql, args![], |row| {
        Ok(ServerFacts {
            tls: row.get(0)?,
            is_remote: row.get(1)?,
            is_standby: row.get(2)?,
            is_pooled: conn.is_pooled(),
            may_migrate: row.get(3)?,
            fsync: row.get(4)?,
            full_page_writes: row.get(5)?,
            synchronous_commit: row.get(6)?,
            autovacuum: row.get(7)?,
            connections: row.get(8)?,
            connections_max: row.get(9)?,
            dead_rows,
            live_rows,
            worst_table,
            holders,
            clock_ahead_ms,
            clock_error_ms,
        })
    })
    .await
}

/// By how much the server's clock is ahead, and how far off that may be: half of the way there and back.
async fn clock(conn: &Conn) -> Result<(i64, u64), Fault> {
    let millis = || {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    };
    let mut best = (0, u64::MAX);
    // The first has its statement prepared on the way.
    for _ in 0..4 {
        let before = millis();
        let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let there: i64 = conn.query_one(sql, args![], |row| row.get(0)).await?;
        let after = millis();
        let error = (after - before).unsigned_abs().div_ceil(2);
        if error < best.1 {
            best = (there - (before + after) / 2, error);
        }
    }
    Ok(best)
}

async fn dead_rows(conn: &Conn) -> Result<(u64, u64, Option<String>), Fault> {
    let sql = "SELECT coalesce(sum(n_dead_tup), 0)::bigint, coalesce(sum(n_live_tup), 0)::bigint,
                      (array_agg(relname::text ORDER BY n_dead_tup DESC) FILTER (WHERE n_dead_tup > 0))[1]
               FROM pg_stat_user_tables WHERE schemaname = current_schema()";
    conn.query_one(sql, args![], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).await
}

/// What keeps dead rows from being removed, the oldest first.
async fn holders(conn: &Conn) -> Result<Vec<Holder>, Fault> {
    let sql = "SELECT what, held FROM (
                   SELECT 'a transaction of ' || coalesce(usename::text, 'somebody') || ' (process ' || pid || ', '
                              || coalesce(nullif(application_name, ''), 'without a name') || ')' AS what,
                          greatest(extract(epoch FROM clock_timestamp() - xact_start), 0)::bigint AS held
                   FROM pg_stat_activity
                   WHERE pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
                     AND xact_start IS NOT NULL
                   UNION ALL
                   SELECT 'the prepared transaction ' || gid, greatest(extract(epoch FROM clock_timestamp() - prepared), 0)::bigint
                   FROM pg_prepared_xacts
                   UNION ALL
                   SELECT 'the replication slot ' || slot_name || ', which nobody uses', NULL
                   FROM pg_replication_slots WHERE NOT active AND (xmin IS NOT NULL OR restart_lsn IS NOT NULL)) h
               ORDER BY held DESC NULLS FIRST LIMIT 5";
    conn.query(sql, args![], |row| Ok(Holder { what: row.get(0)?, held_secs: row.get(1)? })).await
}
