//! The values that go into statements and the rows that come out of them.
//!
//! Integers fit columns of any width, ids are `uuid`, hashes `bytea`, times milliseconds. PostgreSQL keeps no zero characters in
//! text: they are kept as their picture.

use std::error::Error;

use redrive_core::ids::{JobId, LeaseToken, ReplayId, TryId, WorkerId};
use redrive_core::payloads::PayloadHash;
use redrive_core::time::Timestamp;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};

pub(super) use super::conn::Conn;
use super::fault::Fault;

/// The values of a statement, as [`args!`] makes them.
pub(super) trait Args: AsRef<[Value]> + Send {}

impl<T: AsRef<[Value]> + Send> Args for T {}

/// A value as it is bound, and its type: who cannot have a statement prepared has to say of what types its values are.
pub(super) struct Value {
    pub(super) value: Box<dyn ToSql + Send + Sync>,
    pub(super) of: Type,
}

impl Value {
    pub(super) fn new<T: Bind + ?Sized>(value: &T) -> Self {
        Self { value: Box::new(value.bind()), of: T::Sql::TYPE }
    }
}

/// Binds values to a statement, in their order.
macro_rules! args {
    ($($value:expr),* $(,)?) => {
        Vec::<$crate::postgres::sql::Value>::from([$($crate::postgres::sql::Value::new(&$value)),*])
    };
}
pub(super) use args;

/// A row.
pub(crate) struct Row<'a>(pub(super) &'a tokio_postgres::Row);

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
pub(crate) trait Read: Sized {
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
    type Sql: Typed + ToSql + Send + Sync + 'static;

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

/// What PostgreSQL calls the type of a value, and that of many of them.
pub(super) trait Typed {
    const TYPE: Type;
    const ARRAY: Type;
}

macro_rules! typed {
    ($($sql:ty: $of:ident, $many:ident;)*) => {
        $(impl Typed for $sql {
            const TYPE: Type = Type::$of;
            const ARRAY: Type = Type::$many;
        })*
    };
}

typed! {
    Int: INT8, INT8_ARRAY;
    bool: BOOL, BOOL_ARRAY;
    String: TEXT, TEXT_ARRAY;
    Vec<u8>: BYTEA, BYTEA_ARRAY;
    Id: UUID, UUID_ARRAY;
}

impl<T: Typed> Typed for Option<T> {
    const TYPE: Type = T::TYPE;
    const ARRAY: Type = T::ARRAY;
}

impl<T: Typed> Typed for Vec<T> {
    const TYPE: Type = T::ARRAY;
    const ARRAY: Type = T::ARRAY;
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
