//! A connection, the values that go into its statements and the rows that come out of them.
//!
//! Integers fit columns of any width, ids are `uuid`, hashes `bytea`, times milliseconds. PostgreSQL keeps no zero characters in
//! text: they are kept as their picture.

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use redrive_core::ids::{JobId, LeaseToken, ReplayId, TryId, WorkerId};
use redrive_core::payloads::PayloadHash;
use redrive_core::time::Timestamp;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};
use tokio_postgres::{Client, Statement};

use super::fault::Fault;

/// The values of a statement, as [`args!`] makes them.
pub(super) trait Args: AsRef<[Value]> + Send {}

impl<T: AsRef<[Value]> + Send> Args for T {}

/// A value as it is bound.
pub(super) type Value = Box<dyn ToSql + Send + Sync>;

/// Binds values to a statement, in their order.
macro_rules! args {
    ($($value:expr),* $(,)?) => {
        Vec::<$crate::postgres::sql::Value>::from([$(Box::new($crate::postgres::sql::Bind::bind(&$value)) as _),*])
    };
}
pub(super) use args;

/// A connection that keeps its statements prepared.
pub(super) struct Conn {
    client: Client,
    statements: Mutex<HashMap<String, Statement>>,
    changed: AtomicU64,
}

/// At most so many statements are kept prepared: some are written for one filter.
const STATEMENTS_MAX: usize = 512;

impl Conn {
    pub(super) fn new(client: Client) -> Self {
        Self { client, statements: Mutex::default(), changed: AtomicU64::new(0) }
    }

    /// Whether nothing can be asked here any more.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// How many rows were written so far.
    pub(super) fn changed(&self) -> u64 {
        self.changed.load(Ordering::Relaxed)
    }

    async fn statement(&self, sql: &str) -> Result<Statement, Fault> {
        let known = || self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(sql).cloned();
        if let Some(statement) = found {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        let mut known = known();
        if known.len() >= STATEMENTS_MAX {
            known.clear();
        }
        known.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Runs statements without values, one after another.
    pub(super) async fn script(&self, sql: &str) -> Result<(), Fault> {
        Ok(self.client.batch_execute(sql).await?)
    }

    /// Runs a statement; says how many rows it wrote.
    pub(super) async fn execute(&self, sql: &str, args: impl Args) -> Result<u64, Fault> {
        let statement = self.statement(sql).await?;
        let rows = self.client.execute_raw(&statement, values(args.as_ref())).await?;
        self.changed.fetch_add(rows, Ordering::Relaxed);
        Ok(rows)
    }

    async fn rows(&self, sql: &str, args: impl Args) -> Result<Vec<tokio_postgres::Row>, Fault> {
        let statement = self.statement(sql).await?;
        let args: Vec<_> = values(args.as_ref()).collect();
        let rows = self.client.query(&statement, &args).await?;
        if !sql.trim_start().starts_with("SELECT") {
            self.changed.fetch_add(rows.len() as u64, Ordering::Relaxed);
        }
        Ok(rows)
    }

    /// All rows of a statement.
    pub(super) async fn query<T>(
        &self,
        sql: &str,
        args: impl Args,
        mut read: impl FnMut(&Row<'_>) -> Result<T, Fault> + Send,
    ) -> Result<Vec<T>, Fault> {
        let rows = self.rows(sql, args).await?;
        rows.iter().map(|row| read(&Row(row))).collect()
    }

    /// The first row of a statement, if it has one.
    pub(super) async fn query_opt<T>(
        &self,
        sql: &str,
        args: impl Args,
        read: impl FnOnce(&Row<'_>) -> Result<T, Fault> + Send,
    ) -> Result<Option<T>, Fault> {
        let rows = self.rows(sql, args).await?;
        rows.first().map(|row| read(&Row(row))).transpose()
    }

    /// The first row of a statement that has one.
    pub(super) async fn query_one<T>(
        &self,
        sql: &str,
        args: impl Args,
        read: impl FnOnce(&Row<'_>) -> Result<T, Fault> + Send,
    ) -> Result<T, Fault> {
        self.query_opt(sql, args, read).await?.ok_or(Fault::NoRow)
    }

    /// Whether a statement has a row.
    pub(super) async fn exists(&self, sql: &str, args: impl Args) -> Result<bool, Fault> {
        Ok(!self.rows(sql, args).await?.is_empty())
    }
}

fn values(args: &[Value]) -> impl ExactSizeIterator<Item = &(dyn ToSql + Sync)> {
    args.iter().map(|value| &**value as &(dyn ToSql + Sync))
}

/// A row.
pub(super) struct Row<'a>(&'a tokio_postgres::Row);

impl Row<'_> {
    /// The value of a column.
    pub(super) fn get<T: Read>(&self, column: usize) -> Result<T, Fault> {
        T::read(self, column)
    }

    /// The text of a column, without copying it.
    pub(super) fn text(&self, column: usize) -> Result<&str, Fault> {
        Ok(self.0.try_get(column)?)
    }

    /// Whether a column has nothing.
    pub(super) fn is_null(&self, column: usize) -> Result<bool, Fault> {
        Ok(self.0.try_get::<_, Option<Anything>>(column)?.is_none())
    }
}

/// A type that a column can be read as.
pub(super) trait Read: Sized {
    fn read(row: &Row<'_>, column: usize) -> Result<Self, Fault>;
}

impl<T: Read> Read for Option<T> {
    fn read(row: &Row<'_>, column: usize) -> Result<Self, Fault> {
        if row.is_null(column)? { Ok(None) } else { T::read(row, column).map(Some) }
    }
}

macro_rules! read_as {
    ($($type:ty: $sql:ty, $value:ident => $read:expr;)*) => {
        $(impl Read for $type {
            fn read(row: &Row<'_>, column: usize) -> Result<Self, Fault> {
                let $value: $sql = row.0.try_get(column)?;
                Ok($read)
            }
        })*
    };
}

read_as! {
    i64: Int, int => int.0;
    u64: Int, int => narrowed(int)?;
    u32: Int, int => narrowed(int)?;
    u16: Int, int => narrowed(int)?;
    bool: bool, yes => yes;
    f64: f64, number => number;
    String: String, text => text;
    Vec<u8>: Vec<u8>, bytes => bytes;
    [u8; 16]: Id, id => id.0;
    [u8; 32]: &[u8], bytes => bytes.try_into().map_err(|_| Fault::Broken("a hash of another length".to_owned()))?;
}

fn narrowed<T: TryFrom<i64>>(Int(int): Int) -> Result<T, Fault> {
    T::try_from(int).map_err(|_| Fault::Broken(format!("the number {int} is out of range")))
}

/// A value that can be bound.
pub(super) trait Bind {
    /// What it is bound as.
    type Sql: ToSql + Send + Sync + 'static;

    fn bind(&self) -> Self::Sql;
}

macro_rules! bind_as {
    ($($type:ty: $sql:ty, $value:ident => $bound:expr;)*) => {
        $(impl Bind for $type {
            type Sql = $sql;

            fn bind(&self) -> $sql {
                let $value = self;
                $bound
            }
        })*
    };
}

bind_as! {
    i64: Int, int => Int(*int);
    u64: Int, int => Int(i64::try_from(*int).unwrap_or(i64::MAX));
    usize: Int, int => Int(i64::try_from(*int).unwrap_or(i64::MAX));
    u32: Int, int => Int(i64::from(*int));
    u16: Int, int => Int(i64::from(*int));
    bool: bool, yes => *yes;
    str: String, text => storable(text);
    String: String, text => storable(text);
    Timestamp: Int, at => Int(at.as_millis());
    [u8; 16]: Id, id => Id(*id);
    [u8; 32]: Vec<u8>, hash => hash.to_vec();
    JobId: Id, id => Id(*id.as_bytes());
    WorkerId: Id, id => Id(*id.as_bytes());
    LeaseToken: Id, id => Id(*id.as_bytes());
    ReplayId: Id, id => Id(*id.as_bytes());
    TryId: Id, id => Id(*id.as_bytes());
    PayloadHash: Vec<u8>, hash => hash.as_bytes().to_vec();
}

impl<T: Bind + ?Sized> Bind for &T {
    type Sql = T::Sql;

    fn bind(&self) -> T::Sql {
        (**self).bind()
    }
}

impl<T: Bind> Bind for Option<T> {
    type Sql = Option<T::Sql>;

    fn bind(&self) -> Self::Sql {
        self.as_ref().map(Bind::bind)
    }
}

impl<T: Bind> Bind for Vec<T> {
    type Sql = Vec<T::Sql>;

    fn bind(&self) -> Self::Sql {
        self.iter().map(Bind::bind).collect()
    }
}

impl<T: Bind> Bind for [T] {
    type Sql = Vec<T::Sql>;

    fn bind(&self) -> Self::Sql {
        self.iter().map(Bind::bind).collect()
    }
}

/// Bytes that are no array of numbers.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl Bind for Bytes<'_> {
    type Sql = Vec<u8>;

    fn bind(&self) -> Vec<u8> {
        self.0.to_vec()
    }
}

/// Text as PostgreSQL can keep it.
pub(super) fn storable(text: &str) -> String {
    if text.contains('\0') { text.replace('\0', "\u{2400}") } else { text.to_owned() }
}

/// A whole number, for columns of any width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Int(i64);

impl ToSql for Int {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match *of {
            Type::INT2 => i16::try_from(self.0)?.to_sql(of, out),
            Type::INT4 => i32::try_from(self.0)?.to_sql(of, out),
            _ => self.0.to_sql(of, out),
        }
    }

    fn accepts(of: &Type) -> bool {
        matches!(*of, Type::INT2 | Type::INT4 | Type::INT8)
    }

    tokio_postgres::types::to_sql_checked!();
}

impl<'a> FromSql<'a> for Int {
    fn from_sql(of: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        match *of {
            Type::INT2 => i16::from_sql(of, raw).map(|int| Self(int.into())),
            Type::INT4 => i32::from_sql(of, raw).map(|int| Self(int.into())),
            _ => i64::from_sql(of, raw).map(Self),
        }
    }

    fn accepts(of: &Type) -> bool {
        <Self as ToSql>::accepts(of)
    }
}

/// An id, as `uuid`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Id([u8; 16]);

impl ToSql for Id {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::UUID
    }

    tokio_postgres::types::to_sql_checked!();
}

impl<'a> FromSql<'a> for Id {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(raw.try_into()?))
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::UUID
    }
}

/// A value of whatever type, of which it only matters that there is one.
struct Anything;

impl<'a> FromSql<'a> for Anything {
    fn from_sql(_: &Type, _: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
