//! Tidying up behind what is written often.
//!
//! Counts that many processes change at once are only added to, as rows of their own, so that none waits for another; here they are
//! folded into those that are read. Rows that are written and deleted all the time leave remains, which the server clears away by
//! itself, though not always soon enough: from many on, it is told to.

use super::batch::Batch;
use super::connect::Target;
use super::fault::Fault;
use super::sql::args;
use super::{facets, leader};
use crate::contract::Tidy;

/// From so many remains on a table is cleared.
const REMAINS_MAX: i64 = 50_000;

/// At most so many rows are folded by one statement where all are.
const FOLDED_AT_ONCE: u32 = 100_000;

/// What folds at most `$1` rows of a table; each says how many that were.
const FOLDS: [&str; 3] = [
    "WITH old AS (
         DELETE FROM dead_delta WHERE ctid = ANY(ARRAY(SELECT ctid FROM dead_delta LIMIT $1)) RETURNING *),
     folded AS (
         INSERT INTO dead_count (pipeline, by, value, reason, count)
         SELECT pipeline, by, value, reason, sum(count)::bigint FROM old GROUP BY 1, 2, 3, 4 HAVING sum(count) <> 0
         ON CONFLICT (pipeline, by, value, reason) DO UPDATE SET count = dead_count.count + excluded.count)
     SELECT count(*) FROM old",
    "WITH old AS (
         DELETE FROM traffic_delta WHERE ctid = ANY(ARRAY(SELECT ctid FROM traffic_delta LIMIT $1)) RETURNING *),
     folded AS (
         INSERT INTO traffic (pipeline, hour, target, proxy, reason, count, ended)
         SELECT pipeline, hour, target, proxy, reason, sum(count)::bigint, sum(ended)::bigint FROM old GROUP BY 1, 2, 3, 4, 5
         ON CONFLICT (pipeline, hour, target, proxy, reason)
            DO UPDATE SET count = traffic.count + excluded.count, ended = traffic.ended + excluded.ended)
     SELECT count(*) FROM old",
    "WITH old AS (
         DELETE FROM cause_saved_delta WHERE ctid = ANY(ARRAY(SELECT ctid FROM cause_saved_delta LIMIT $1)) RETURNING *),
     folded AS (
         INSERT INTO cause_saved (key, count)
         SELECT key, sum(count)::bigint FROM old GROUP BY 1 HAVING sum(count) <> 0
         ON CONFLICT (key) DO UPDATE SET count = cause_saved.count + excluded.count)
     SELECT count(*) FROM old",
];

/// Folds counts that were added; says whether there are more.
pub(super) async fn fold_some(batch: &mut Batch, params: &Tidy) -> Result<bool, Fault> {
    leader::check(batch, params.led.as_ref()).await?;
    fold(batch, params.limit).await
}

/// The same, for who has added many.
pub(super) async fn fold(batch: &Batch, limit: u32) -> Result<bool, Fault> {
    let mut more = false;
    for sql in FOLDS {
        let folded: u64 = batch.conn().query_one(sql, args![limit], |row| row.get(0)).await?;
        more |= folded == u64::from(limit);
    }
    for folded in [facets::fold(batch.conn(), limit).await?, facets::fold_done(batch.conn(), limit).await?] {
        more |= folded == u64::from(limit);
    }
    Ok(more)
}

/// Folds all that was added, for who reads the counts as they were written.
pub(super) async fn fold_all(batch: &Batch) -> Result<(), Fault> {
    while fold(batch, FOLDED_AT_ONCE).await? {}
    Ok(())
}

/// Clears tables that have many remains; says which, and what may not be done. A transaction that was there when a table was last
/// cleared, and still is, keeps its remains: it is not tried again beside it.
pub(super) async fn clear(target: &Target) -> Result<(Vec<String>, Vec<String>), Fault> {
    let conn = target.connect().await?;
    let sql = "SELECT s.relname::text, pg_has_role(c.relowner, 'USAGE')
               FROM pg_stat_all_tables s JOIN pg_class c ON c.oid = s.relid
               WHERE s.schemaname = $1 AND s.n_dead_tup > $2 AND NOT EXISTS
                   (SELECT 1 FROM pg_stat_activity a WHERE a.backend_xmin IS NOT NULL AND a.xact_start < s.last_vacuum)
               ORDER BY s.relname";
    let full: Vec<(String, bool)> =
        conn.query(sql, args![target.schema, REMAINS_MAX], |row| Ok((row.get(0)?, row.get(1)?))).await?;
    let (mut cleared, mut refused) = (Vec::new(), Vec::new());
    for (table, is_ours) in full {
        if !is_ours {
            refused.push(format!("{table} has more than {REMAINS_MAX} dead rows, and only its owner may vacuum it"));
            continue;
        }
        // Not inside a transaction, and not beside others who do the same.
        conn.script(&format!("VACUUM (SKIP_LOCKED) {}.{table}", target.schema)).await?;
        cleared.push(table);
    }
    Ok((cleared, refused))
}
