//! Copies of the store: its mark, and its tables as plain values.
//!
//! Processes of older versions do not know the mark. Triggers on the tables of a store that is being copied refuse them, too.

use async_trait::async_trait;
use redrive_core::copies::{Copies, CopyNote};
use redrive_core::payloads::StoreId;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use super::fault::Fault;
use super::rows;
use super::{SqliteStore, activity};
use crate::contract::{
    Cell, CopyCounters, CopyCursor, CopyStore, EndCopy, PARTS, Part, ReadPart, Row, TakeCounters, WritePart,
};
use crate::error::{Result as StoreResult, StoreError};
use crate::location::Location;

/// Parts whose key is the number that SQLite gives every row.
const BY_ROWID: [&str; 3] = ["cause_note", "cause_rule", "late"];

/// What else an older process could write to while the store is copied.
const BESIDE: [&str; 2] = ["lease", "worker"];

#[async_trait]
impl CopyStore for SqliteStore {
    async fn copies(&self) -> StoreResult<Copies> {
        self.read(|conn| Ok(Copies { to: note(conn, "to")?, from: note(conn, "from")? })).await
    }

    async fn begin_copy_from(&self, begun: CopyNote) -> StoreResult<()> {
        let place = self.location.to_string();
        self.write_copy(move |batch| {
            let conn = batch.connection();
            let leases: u64 = conn.query_row("SELECT count(*) FROM lease", [], |row| row.get(0))?;
            if leases > 0 {
                return Err(StoreError::Leased { place: place.clone(), leases }.into());
            }
            mark(conn, "to", &begun)?;
            refuse_others(conn, &place, &begun.place)
        })
        .await
    }

    async fn begin_copy_to(&self, begun: CopyNote) -> StoreResult<()> {
        let place = self.location.to_string();
        self.write_copy(move |batch| {
            let conn = batch.connection();
            for part in PARTS {
                if conn.prepare(&format!("SELECT 1 FROM \"{}\"", part.name))?.exists([])? {
                    return Err(StoreError::NotEmpty { place: place.clone(), has: part.label.to_owned() }.into());
                }
            }
            mark(conn, "from", &begun)
        })
        .await
    }

    async fn read_part(&self, params: ReadPart) -> StoreResult<Vec<Row>> {
        self.read(move |conn| read(conn, &params)).await
    }

    async fn copy_cursor(&self) -> StoreResult<CopyCursor> {
        self.read(cursor).await
    }

    async fn write_part(&self, params: WritePart) -> StoreResult<()> {
        self.write_copy(move |batch| write(batch.connection(), &params)).await
    }

    async fn count_parts(&self) -> StoreResult<Vec<u64>> {
        self.read(|conn| {
            let count = |part: &Part| {
                let sql = format!("SELECT count(*) FROM \"{}\"", part.name);
                Ok(conn.query_row(&sql, [], |row| row.get(0))?)
            };
            PARTS.iter().map(count).collect()
        })
        .await
    }

    async fn copy_counters(&self) -> StoreResult<CopyCounters> {
        self.read(|conn| {
            let one = |sql: &str| conn.query_row(sql, [], |row| row.get(0));
            Ok(CopyCounters {
                number: one("SELECT value FROM counter WHERE name = 'number'")?,
                epoch: one(
                    "SELECT ifnull(max(epoch), 0) FROM (SELECT epoch FROM pipeline UNION ALL SELECT epoch FROM late)",
                )?,
                rules: one("SELECT version FROM cause_rules")?,
            })
        })
        .await
    }

    async fn take_counters(&self, params: TakeCounters) -> StoreResult<()> {
        self.write_copy(move |batch| take_counters(batch.connection(), &params)).await
    }

    async fn end_copy_from(&self, params: EndCopy) -> StoreResult<()> {
        self.write_copy(move |batch| {
            let conn = batch.connection();
            let found = note(conn, "to")?.filter(|note| note.id == params.id);
            let Some(found) = found else { return Ok(()) };
            drop_triggers(conn)?;
            conn.execute("DELETE FROM copy WHERE side = 'to'", [])?;
            activity::note(batch, &params.by, ("copy", &found.place), &params.detail, params.now)
        })
        .await
    }

    async fn end_copy_to(&self, params: EndCopy) -> StoreResult<()> {
        self.write_copy(move |batch| {
            let conn = batch.connection();
            let found = note(conn, "from")?.filter(|note| note.id == params.id);
            let found = found.ok_or_else(|| moved("the copy"))?;
            if found.finished_at.is_some() {
                return Ok(());
            }
            let sql = "UPDATE copy SET finished_at = ?1 WHERE side = 'from'";
            conn.execute(sql, [params.now.as_millis()])?;
            activity::note(batch, &params.by, ("fill", &found.place), &params.detail, params.now)
        })
        .await
    }
}

/// Refuses to write to a store that is being copied, or is not finished.
pub(super) fn check(conn: &Connection, place: &Location) -> Result<(), Fault> {
    let mut select = conn.prepare_cached("SELECT side, place FROM copy WHERE finished_at IS NULL")?;
    let marked = select.query_row([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))).optional()?;
    let Some((side, other)) = marked else { return Ok(()) };
    let place = place.to_string();
    Err(match side.as_str() {
        "to" => StoreError::BeingCopied { place, to: other },
        _ => StoreError::Unfinished { place, from: other },
    }
    .into())
}

/// Refuses a store that is not finished.
pub(super) fn refuse_unfinished(conn: &Connection, place: &Location) -> Result<(), Fault> {
    match note(conn, "from")?.filter(|note| note.finished_at.is_none()) {
        Some(note) => Err(StoreError::Unfinished { place: place.to_string(), from: note.place }.into()),
        None => Ok(()),
    }
}

fn moved(what: &str) -> Fault {
    StoreError::Conflict { what: what.to_owned() }.into()
}

fn note(conn: &Connection, side: &str) -> Result<Option<CopyNote>, Fault> {
    let sql = "SELECT id, place, store, vault, begun_at, finished_at FROM copy WHERE side = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(CopyNote {
            id: rows::parsed(row, 0)?,
            place: row.get(1)?,
            store: rows::parsed::<StoreId, _>(row, 2)?,
            vault: row.get(3)?,
            begun_at: rows::time(row, 4)?,
            finished_at: rows::time_opt(row, 5)?,
        })
    };
    Ok(conn.query_row(sql, [side], read).optional()?)
}

/// Notes a copy, in place of one that was noted before.
fn mark(conn: &Connection, side: &str, note: &CopyNote) -> Result<(), Fault> {
    conn.execute(
        "INSERT OR REPLACE INTO copy (side, id, place, store, vault, begun_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![side, note.id.to_string(), note.place, note.store.to_string(), note.vault, note.begun_at.as_millis()],
    )?;
    Ok(())
}

/// The tables that nobody writes to while the store is copied, with what happens to them.
fn refused() -> impl Iterator<Item = (&'static str, &'static str, String)> {
    let tables = PARTS.iter().map(|part| part.name).chain(BESIDE);
    tables.flat_map(|table| {
        ["INSERT", "UPDATE", "DELETE"]
            .map(|change| (table, change, format!("copied_{table}_{}", change.to_lowercase())))
    })
}

fn refuse_others(conn: &Connection, place: &str, to: &str) -> Result<(), Fault> {
    drop_triggers(conn)?;
    let why = StoreError::BeingCopied { place: place.to_owned(), to: to.to_owned() }.to_string().replace('\'', "''");
    for (table, change, name) in refused() {
        conn.execute_batch(&format!(
            "CREATE TRIGGER \"{name}\" BEFORE {change} ON \"{table}\" BEGIN SELECT RAISE(ABORT, '{why}'); END"
        ))?;
    }
    Ok(())
}

fn drop_triggers(conn: &Connection) -> Result<(), Fault> {
    for (_, _, name) in refused() {
        conn.execute_batch(&format!("DROP TRIGGER IF EXISTS \"{name}\""))?;
    }
    Ok(())
}

fn columns(part: &Part) -> Vec<String> {
    let named = |name: &str| match name {
        "id" if BY_ROWID.contains(&part.name) => "rowid".to_owned(),
        name => format!("\"{name}\""),
    };
    part.columns.iter().map(|(name, _)| named(name)).collect()
}

fn read(conn: &Connection, params: &ReadPart) -> Result<Vec<Row>, Fault> {
    let ReadPart { part, after, rows_max, bytes_max } = params;
    let columns = columns(part);
    let key = columns[..part.key].join(", ");
    let condition = match after {
        Some(_) => format!("WHERE ({key}) > ({})", vec!["?"; part.key].join(", ")),
        None => String::new(),
    };
    let sql =
        format!("SELECT {} FROM \"{}\" {condition} ORDER BY {key} LIMIT {rows_max}", columns.join(", "), part.name);
    let mut select = conn.prepare_cached(&sql)?;
    let mut found = select.query(params_from_iter(after.iter().flatten().map(bound)))?;
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while let Some(row) = found.next()? {
        let cells: Row = (0..columns.len()).map(|column| cell(row, column)).collect::<Result<_, _>>()?;
        bytes += cells.iter().map(Cell::size_bytes).sum::<usize>();
        rows.push(cells);
        if bytes >= *bytes_max {
            break;
        }
    }
    Ok(rows)
}

fn cell(row: &rusqlite::Row<'_>, column: usize) -> Result<Cell, Fault> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(int) => Cell::Int(int),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
        ValueRef::Real(_) | ValueRef::Text(_) => Cell::Text(row.get(column)?),
    })
}

fn bound(cell: &Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Int(int) => Value::Integer(*int),
        Cell::Text(text) => Value::Text(text.clone()),
        Cell::Bytes(bytes) => Value::Blob(bytes.clone()),
    }
}

fn cursor(conn: &Connection) -> Result<CopyCursor, Fault> {
    let sql = "SELECT cursor FROM copy WHERE side = 'from' AND pieces > 0";
    let found: Option<String> = conn.query_row(sql, [], |row| row.get(0)).optional()?;
    Ok(found.map(|text| serde_json::from_str(&text)).transpose()?.unwrap_or_default())
}

fn write(conn: &Connection, params: &WritePart) -> Result<(), Fault> {
    let WritePart { id, part, rows, next } = params;
    let sql = "UPDATE copy SET pieces = ?2, cursor = ?3
               WHERE side = 'from' AND id = ?1 AND pieces = ?2 - 1 AND finished_at IS NULL";
    if conn.execute(sql, params![id.to_string(), next.pieces, serde_json::to_string(next)?])? == 0 {
        return Err(moved("the copy"));
    }
    let columns = columns(part);
    let sql = format!(
        "INSERT {}INTO \"{}\" ({}) VALUES ({})",
        if part.is_counted_meanwhile() { "OR REPLACE " } else { "" },
        part.name,
        columns.join(", "),
        vec!["?"; columns.len()].join(", ")
    );
    let mut insert = conn.prepare_cached(&sql)?;
    for row in rows {
        insert.execute(params_from_iter(row.iter().map(bound)))?;
    }
    Ok(())
}

fn take_counters(conn: &Connection, params: &TakeCounters) -> Result<(), Fault> {
    let TakeCounters { id, counters, inherited, inherits_older } = params;
    if note(conn, "from")?.is_none_or(|note| note.id != *id || note.finished_at.is_some()) {
        return Err(moved("the copy"));
    }
    // The greatest id of all: an id that is greater was not accepted before.
    conn.execute(
        "UPDATE counter SET value = max(value, ?1), newest = (SELECT max(id) FROM
            (SELECT max(id) AS id FROM job UNION ALL SELECT max(id) FROM dead
             UNION ALL SELECT max(job) FROM done UNION ALL SELECT max(job) FROM discarded))
         WHERE name = 'number'",
        [counters.number],
    )?;
    conn.execute("UPDATE pipeline SET epoch = max(epoch, ?1)", [counters.epoch])?;
    conn.execute("UPDATE cause_rules SET version = max(version, ?1)", [counters.rules])?;
    let ids = inherited.iter().map(StoreId::to_string).chain(inherits_older.then(String::new));
    for id in ids {
        conn.execute("INSERT OR IGNORE INTO store_id (id, state) VALUES (?1, 'inherited')", [id])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::connect::{self, Patience, Place};
    use super::super::schema;
    use super::*;
    use crate::copies::{Kind, LEFT_OUT};

    fn store() -> Connection {
        let mut conn = connect::writer(Place::Memory, &Patience::default()).expect("opened");
        schema::migrate(&mut conn, std::path::Path::new("memory:")).expect("migrated");
        conn
    }

    fn names(conn: &Connection, sql: &str) -> Vec<String> {
        let mut select = conn.prepare(sql).expect("asked");
        select.query_map([], |row| row.get(0)).expect("asked").map(|name| name.expect("a name")).collect()
    }

    #[test]
    fn every_table_comes_over_or_is_left_out_for_a_reason() {
        let conn = store();
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
        for table in names(&conn, tables) {
            let Some(part) = Part::named(&table) else {
                assert!(
                    LEFT_OUT.iter().any(|(name, _)| *name == table),
                    "table {table} is neither copied nor left out"
                );
                continue;
            };
            let mut known: Vec<_> = part.columns.iter().map(|(name, _)| *name).collect();
            if BY_ROWID.contains(&part.name) {
                known.retain(|name| *name != "id");
            }
            known.sort_unstable();
            // Counts how often others were told: that begins anew.
            let columns = format!("SELECT name FROM pragma_table_info('{table}') WHERE name <> 'changes' ORDER BY 1");
            assert_eq!(names(&conn, &columns), known, "columns of {table}");
        }
    }

    #[test]
    fn columns_hold_what_the_list_says() {
        let conn = store();
        for part in PARTS {
            for (column, kind) in
                part.columns.iter().filter(|(name, _)| *name != "id" || !BY_ROWID.contains(&part.name))
            {
                let sql = format!("SELECT type FROM pragma_table_info('{}') WHERE name = '{column}'", part.name);
                let expected = match kind {
                    Kind::Int | Kind::Flag => "INTEGER",
                    Kind::Text | Kind::Json => "TEXT",
                    Kind::Id | Kind::Bytes => "BLOB",
                };
                assert_eq!(names(&conn, &sql), [expected], "{}.{column}", part.name);
            }
        }
    }

    /// Whatever the version of the process that has it open.
    #[test]
    fn a_store_that_is_being_copied_refuses_everybody() {
        let conn = store();
        let enqueue = "INSERT INTO pipeline (name) VALUES ('p')";
        refuse_others(&conn, "here", "it's there").expect("refused");
        let said = conn.execute_batch(enqueue).expect_err("refused").to_string();
        assert!(said.contains("here is being copied to it's there"), "{said}");
        for (sql, is_refused) in [
            ("UPDATE worker SET seen_at = 1", false),
            ("INSERT INTO worker (id, pid, attached_at) VALUES (x'00', 1, 1)", true),
            ("INSERT INTO lease VALUES (x'00', 1, x'00', x'00', 1, 1, 0, 0, 0)", true),
        ] {
            assert_eq!(conn.execute_batch(sql).is_err(), is_refused, "{sql}: only rows count");
        }
        drop_triggers(&conn).expect("dropped");
        conn.execute_batch(enqueue).expect("written");
    }
}
