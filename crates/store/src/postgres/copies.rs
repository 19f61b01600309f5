//! Copies of the store: its mark, and its tables as plain values.

use async_trait::async_trait;
use redrive_core::copies::{Copies, CopyNote};
use redrive_core::payloads::StoreId;
use serde_json::Value as Json;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Bytes, Conn, Row as SqlRow, Value, args, storable};
use super::{PostgresStore, activity, rows, run, tidying};
use crate::contract::{
    Cell, CopyCounters, CopyCursor, CopyStore, EndCopy, PARTS, Part, ReadPart, Row, TakeCounters, WritePart,
};
use crate::copies::Kind;
use crate::error::{Result as StoreResult, StoreError};

#[async_trait]
impl CopyStore for PostgresStore {
    async fn copies(&self) -> StoreResult<Copies> {
        self.read((), run!(copies)).await
    }

    async fn begin_copy_from(&self, note: CopyNote) -> StoreResult<()> {
        self.write_copy((self.target.place.clone(), note), run!(begin_from)).await
    }

    async fn begin_copy_to(&self, note: CopyNote) -> StoreResult<()> {
        self.write_copy((self.target.place.clone(), note), run!(begin_to)).await
    }

    async fn read_part(&self, params: ReadPart) -> StoreResult<Vec<Row>> {
        self.read(params, run!(read)).await
    }

    async fn copy_cursor(&self) -> StoreResult<CopyCursor> {
        self.read((), run!(cursor)).await
    }

    async fn write_part(&self, params: WritePart) -> StoreResult<()> {
        self.write_copy(params, run!(write)).await
    }

    async fn count_parts(&self) -> StoreResult<Vec<u64>> {
        self.read((), run!(count)).await
    }

    async fn copy_counters(&self) -> StoreResult<CopyCounters> {
        self.read((), run!(counters)).await
    }

    async fn take_counters(&self, params: TakeCounters) -> StoreResult<()> {
        self.write_copy(params, run!(take_counters)).await
    }

    async fn end_copy_from(&self, params: EndCopy) -> StoreResult<()> {
        self.write_copy(params, run!(end_from)).await
    }

    async fn end_copy_to(&self, params: EndCopy) -> StoreResult<()> {
        self.write_copy(params, run!(end_to)).await
    }
}

/// What every transaction begins with that writes and is not the copy's own: it fails while a copy is under way.
pub(super) const REFUSE: &str = "; SELECT refuse_while_copied()";

/// The code that it fails with.
pub(super) const REFUSED: &str = "RD001";

/// The refusal of whoever would write to a store that is marked: the message has the side, and where the other store is.
pub(super) fn refusal(place: &str, message: &str) -> StoreError {
    let (side, other) = message.split_once(' ').unwrap_or_default();
    let (place, other) = (place.to_owned(), other.to_owned());
    match side {
        "to" => StoreError::BeingCopied { place, to: other },
        _ => StoreError::Unfinished { place, from: other },
    }
}

/// Refuses a store that is not finished.
pub(super) async fn refuse_unfinished(conn: &Conn, schema: &str, place: &str) -> Result<(), Fault> {
    let sql = format!("SELECT place FROM {schema}.copy WHERE side = 'from' AND finished_at IS NULL");
    match conn.query_opt(&sql, args![], |row| row.get::<String>(0)).await? {
        Some(from) => Err(StoreError::Unfinished { place: place.to_owned(), from }.into()),
        None => Ok(()),
    }
}

async fn copies(conn: &Conn, (): &()) -> Result<Copies, Fault> {
    Ok(Copies { to: note(conn, "to").await?, from: note(conn, "from").await? })
}

async fn note(conn: &Conn, side: &str) -> Result<Option<CopyNote>, Fault> {
    let sql = "SELECT id, place, store, vault, begun_at, finished_at FROM copy WHERE side = $1";
    conn.query_opt(sql, args![side], |row| {
        Ok(CopyNote {
            id: rows::parsed(row, 0)?,
            place: row.get(1)?,
            store: rows::parsed::<StoreId, _>(row, 2)?,
            vault: row.get(3)?,
            begun_at: rows::time(row, 4)?,
            finished_at: rows::time_opt(row, 5)?,
        })
    })
    .await
}

/// Notes a copy, in place of one that was noted before.
async fn mark(conn: &Conn, side: &str, note: &CopyNote) -> Result<(), Fault> {
    conn.execute("DELETE FROM copy WHERE side = $1", args![side]).await?;
    let sql = "INSERT INTO copy (side, id, place, store, vault, begun_at) VALUES ($1, $2, $3, $4, $5, $6)";
    let CopyNote { id, place, store, vault, begun_at, .. } = note;
    conn.execute(sql, args![side, id.to_string(), place, store.to_string(), vault, begun_at]).await?;
    Ok(())
}

async fn begin_from(batch: &mut Batch, (place, begun): &(String, CopyNote)) -> Result<(), Fault> {
    let leases: u64 = batch.conn().query_one("SELECT count(*) FROM lease", args![], |row| row.get(0)).await?;
    if leases > 0 {
        return Err(StoreError::Leased { place: place.clone(), leases }.into());
    }
    // What is copied is read as it was written.
    tidying::fold_all(batch).await?;
    mark(batch.conn(), "to", begun).await
}

async fn begin_to(batch: &mut Batch, (place, begun): &(String, CopyNote)) -> Result<(), Fault> {
    for part in PARTS {
        if batch.conn().exists(&format!("SELECT 1 FROM \"{}\" LIMIT 1", part.name), args![]).await? {
            return Err(StoreError::NotEmpty { place: place.clone(), has: part.label.to_owned() }.into());
        }
    }
    mark(batch.conn(), "from", begun).await
}

/// How a column of a kind is written in a statement.
const fn sql_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Int => "bigint",
        Kind::Flag => "boolean",
        Kind::Text | Kind::Json => "text",
        Kind::Id => "uuid",
        Kind::Bytes => "bytea",
    }
}

async fn read(conn: &Conn, params: &ReadPart) -> Result<Vec<Row>, Fault> {
    let ReadPart { part, after, rows_max, bytes_max } = params;
    let named = |(name, kind): &(&str, Kind)| match kind {
        Kind::Json => format!("\"{name}\"::text"),
        _ => format!("\"{name}\""),
    };
    let columns: Vec<_> = part.columns.iter().map(named).collect();
    let (key, rest) = (columns[..part.key].join(", "), columns.join(", "));
    let bound = |n: usize| format!("${}::{}", n + 1, sql_type(part.columns[n].1));
    let condition = match after {
        Some(_) => format!("WHERE ({key}) > ({})", (0..part.key).map(bound).collect::<Vec<_>>().join(", ")),
        None => String::new(),
    };
    let sql = format!("SELECT {rest} FROM \"{}\" {condition} ORDER BY {key} LIMIT {rows_max}", part.name);
    let after: Vec<Value> = match after {
        Some(after) => {
            part.columns.iter().zip(after).map(|((_, kind), cell)| one(*kind, cell)).collect::<Result<_, _>>()?
        }
        None => Vec::new(),
    };
    let mut bytes = 0;
    conn.query_until(&sql, after, |row| {
        let cells: Row =
            part.columns.iter().enumerate().map(|(n, (_, kind))| cell(row, n, *kind)).collect::<Result<_, _>>()?;
        bytes += cells.iter().map(Cell::size_bytes).sum::<usize>();
        Ok((cells, bytes < *bytes_max))
    })
    .await
}

fn cell(row: &SqlRow<'_>, column: usize, kind: Kind) -> Result<Cell, Fault> {
    if row.is_null(column)? {
        return Ok(Cell::Null);
    }
    Ok(match kind {
        Kind::Int => Cell::Int(row.get(column)?),
        Kind::Flag => Cell::Int(row.get::<bool>(column)?.into()),
        Kind::Text | Kind::Json => Cell::Text(row.get(column)?),
        Kind::Id => Cell::Bytes(row.get::<[u8; 16]>(column)?.to_vec()),
        Kind::Bytes => Cell::Bytes(row.get(column)?),
    })
}

/// A value of a key.
fn one(kind: Kind, cell: &Cell) -> Result<Value, Fault> {
    Ok(match (kind, cell) {
        (Kind::Int, Cell::Int(int)) => Value::new(int),
        (Kind::Flag, Cell::Int(int)) => Value::new(&(*int != 0)),
        (Kind::Text | Kind::Json, Cell::Text(text)) => Value::new(text),
        (Kind::Id, Cell::Bytes(bytes)) => Value::new(&id(bytes)?),
        (Kind::Bytes, Cell::Bytes(bytes)) => Value::new(&Bytes(bytes)),
        _ => return Err(unfit(kind, cell)),
    })
}

fn id(bytes: &[u8]) -> Result<[u8; 16], Fault> {
    bytes.try_into().map_err(|_| Fault::Broken("an id of another length".to_owned()))
}

fn unfit(kind: Kind, cell: &Cell) -> Fault {
    Fault::Broken(format!("{cell:?} is not what a column of the kind {kind:?} holds"))
}

/// The values of a column, as one array.
fn array(kind: Kind, cells: &[&Cell]) -> Result<Value, Fault> {
    fn all<'a, T>(cells: &[&'a Cell], read: impl Fn(&'a Cell) -> Result<T, Fault>) -> Result<Vec<Option<T>>, Fault> {
        let read = |cell: &&'a Cell| if **cell == Cell::Null { Ok(None) } else { read(cell).map(Some) };
        cells.iter().map(read).collect()
    }
    let int = |cell: &Cell| match cell {
        Cell::Int(int) => Ok(*int),
        other => Err(unfit(kind, other)),
    };
    fn text(kind: Kind, cell: &Cell) -> Result<&str, Fault> {
        match cell {
            Cell::Text(text) => Ok(text),
            other => Err(unfit(kind, other)),
        }
    }
    fn bytes(kind: Kind, cell: &Cell) -> Result<&[u8], Fault> {
        match cell {
            Cell::Bytes(bytes) => Ok(bytes),
            other => Err(unfit(kind, other)),
        }
    }
    Ok(match kind {
        Kind::Int => Value::new(&all(cells, int)?),
        Kind::Flag => Value::new(&all(cells, |cell| Ok(int(cell)? != 0))?),
        Kind::Text => Value::new(&all(cells, |cell| text(kind, cell))?),
        Kind::Json => Value::new(&all(cells, |cell| storable_json(text(kind, cell)?))?),
        Kind::Id => Value::new(&all(cells, |cell| id(bytes(kind, cell)?))?),
        Kind::Bytes => Value::new(&all(cells, |cell| Ok(Bytes(bytes(kind, cell)?)))?),
    })
}

/// JSON as PostgreSQL can keep it: without zero characters in its texts.
fn storable_json(text: &str) -> Result<String, Fault> {
    fn storable_value(value: Json) -> Json {
        match value {
            Json::String(text) => Json::String(storable(&text)),
            Json::Array(values) => Json::Array(values.into_iter().map(storable_value).collect()),
            Json::Object(fields) => {
                Json::Object(fields.into_iter().map(|(name, value)| (storable(&name), storable_value(value))).collect())
            }
            other => other,
        }
    }
    Ok(storable_value(serde_json::from_str(text)?).to_string())
}

async fn cursor(conn: &Conn, (): &()) -> Result<CopyCursor, Fault> {
    let sql = "SELECT cursor FROM copy WHERE side = 'from' AND pieces > 0";
    Ok(conn.query_opt(sql, args![], |row| rows::json(row, 0)).await?.unwrap_or_default())
}

async fn write(batch: &mut Batch, params: &WritePart) -> Result<(), Fault> {
    let WritePart { id, part, rows, next } = params;
    let sql = "UPDATE copy SET pieces = $2, cursor = $3
               WHERE side = 'from' AND id = $1 AND pieces = $2 - 1 AND finished_at IS NULL";
    let noted = args![id.to_string(), next.pieces, serde_json::to_string(next)?];
    if batch.conn().execute(sql, noted).await? == 0 {
        return Err(StoreError::Conflict { what: "the copy".to_owned() }.into());
    }
    if rows.is_empty() {
        return Ok(());
    }
    let mut arrays = Vec::with_capacity(part.columns.len());
    for (n, (_, kind)) in part.columns.iter().enumerate() {
        let cells: Vec<&Cell> = rows.iter().map(|row| row.get(n).unwrap_or(&Cell::Null)).collect();
        arrays.push(array(*kind, &cells)?);
    }
    batch.conn().execute(&insert(part), arrays).await?;
    Ok(())
}

/// Writes rows that come as an array for each column.
fn insert(part: &Part) -> String {
    let listed = |each: &dyn Fn(usize, &str, Kind) -> String| {
        let all = part.columns.iter().enumerate().map(|(n, (name, kind))| each(n, name, *kind));
        all.collect::<Vec<_>>().join(", ")
    };
    let names = listed(&|_, name, _| format!("\"{name}\""));
    let arrays = listed(&|n, _, kind| format!("${}::{}[]", n + 1, sql_type(kind)));
    let values = listed(&|n, _, kind| match kind {
        Kind::Json => format!("c{n}::jsonb"),
        _ => format!("c{n}"),
    });
    let columns = listed(&|n, _, _| format!("c{n}"));
    let instead = match part.is_counted_meanwhile() {
        true => " ON CONFLICT (pipeline, event, reason) DO UPDATE SET count = excluded.count",
        false => "",
    };
    format!(
        "INSERT INTO \"{}\" ({names}) OVERRIDING SYSTEM VALUE
         SELECT {values} FROM unnest({arrays}) AS r({columns}){instead}",
        part.name
    )
}

async fn count(conn: &Conn, (): &()) -> Result<Vec<u64>, Fault> {
    let mut counts = Vec::with_capacity(PARTS.len());
    for part in PARTS {
        let sql = format!("SELECT count(*) FROM \"{}\"", part.name);
        counts.push(conn.query_one(&sql, args![], |row| row.get(0)).await?);
    }
    Ok(counts)
}

async fn counters(conn: &Conn, (): &()) -> Result<CopyCounters, Fault> {
    let sql = "SELECT (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM job_number),
                      (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM epoch), (SELECT version FROM cause_rules)";
    conn.query_one(sql, args![], |row| Ok(CopyCounters { number: row.get(0)?, epoch: row.get(1)?, rules: row.get(2)? }))
        .await
}

/// Numbers go on after the greatest that was given.
async fn set_sequence(conn: &Conn, sequence: &str, last: i64) -> Result<(), Fault> {
    let sql = "SELECT setval($1::text::regclass, greatest($2::bigint, 1), $2::bigint > 0)";
    conn.query_one(sql, args![sequence, last], |row| row.get::<i64>(0)).await?;
    Ok(())
}

async fn take_counters(batch: &mut Batch, params: &TakeCounters) -> Result<(), Fault> {
    let conn = batch.conn();
    let TakeCounters { id, counters, inherited, inherits_older } = params;
    if note(conn, "from").await?.is_none_or(|note| note.id != *id || note.finished_at.is_some()) {
        return Err(StoreError::Conflict { what: "the copy".to_owned() }.into());
    }
    set_sequence(conn, "job_number", counters.number).await?;
    set_sequence(conn, "epoch", counters.epoch).await?;
    let lanes: i64 = conn.query_one("SELECT coalesce(max(-id), 0) FROM lane", args![], |row| row.get(0)).await?;
    set_sequence(conn, "lane_number", lanes).await?;
    let numbered =
        "SELECT table_name::text, column_name::text, pg_get_serial_sequence(quote_ident(table_name), column_name)
                    FROM information_schema.columns WHERE table_schema = current_schema() AND is_identity = 'YES'";
    let numbered: Vec<(String, String, String)> =
        conn.query(numbered, args![], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).await?;
    for (table, column, sequence) in numbered {
        let sql = format!("SELECT coalesce(max(\"{column}\"), 0) FROM \"{table}\"");
        let last: i64 = conn.query_one(&sql, args![], |row| row.get(0)).await?;
        set_sequence(conn, &sequence, last).await?;
    }
    conn.execute("UPDATE cause_rules SET version = greatest(version, $1)", args![counters.rules]).await?;
    let ids: Vec<String> = inherited.iter().map(StoreId::to_string).chain(inherits_older.then(String::new)).collect();
    let sql = "INSERT INTO store_id (id, state) SELECT id, 'inherited' FROM unnest($1::text[]) AS s(id) ON CONFLICT DO NOTHING";
    conn.execute(sql, args![ids]).await?;
    // What is asked next is planned by what there is now.
    conn.script(&PARTS.iter().map(|part| format!("ANALYZE \"{}\";", part.name)).collect::<String>()).await
}

async fn end_from(batch: &mut Batch, params: &EndCopy) -> Result<(), Fault> {
    let found = note(batch.conn(), "to").await?.filter(|note| note.id == params.id);
    let Some(found) = found else { return Ok(()) };
    batch.conn().execute("DELETE FROM copy WHERE side = 'to'", args![]).await?;
    activity::note(batch, &params.by, ("copy", &found.place), &params.detail, params.now).await
}

async fn end_to(batch: &mut Batch, params: &EndCopy) -> Result<(), Fault> {
    let found = note(batch.conn(), "from").await?.filter(|note| note.id == params.id);
    let found = found.ok_or_else(|| StoreError::Conflict { what: "the copy".to_owned() })?;
    if found.finished_at.is_some() {
        return Ok(());
    }
    batch.conn().execute("UPDATE copy SET finished_at = $1 WHERE side = 'from'", args![params.now]).await?;
    activity::note(batch, &params.by, ("fill", &found.place), &params.detail, params.now).await
}
