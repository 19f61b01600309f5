//! Whose payloads are whose: the id of this store in the vault, and whether the file is still where it took that id.
//!
//! A copy of the file has the same rows, and would collect what the original still refers to. So a file that is on another
//! machine, or has another inode, than when it took its id takes a new one and only reads what it inherited. Device numbers
//! change with every mount and prove nothing.

use std::os::unix::fs::MetadataExt;

use redrive_core::payloads::StoreId;
use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior, params};

use super::connect::Place;
use super::fault::Fault;
use super::rows::{self, RowResult};
use crate::contract::StoreIds;

/// Where a file is, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Surroundings {
    /// A hash of the machine's id, which is nobody else's business.
    machine: Option<String>,
    inode: Option<i64>,
}

impl Surroundings {
    fn of(place: Place<'_>) -> Self {
        let Place::File(path) = place else { return Self::default() };
        // An inode is a number of 64 bits; its sign means nothing.
        let inode = std::fs::metadata(path).ok().map(|metadata| metadata.ino() as i64);
        Self { machine: machine(), inode }
    }

    /// Whether nothing that both know is different.
    fn may_be(&self, other: &Self) -> bool {
        let agree = |differ: Option<bool>| differ != Some(true);
        agree(self.machine.as_ref().zip(other.machine.as_ref()).map(|(a, b)| a != b))
            && agree(self.inode.zip(other.inode).map(|(a, b)| a != b))
    }
}

fn machine() -> Option<String> {
    let text = std::fs::read_to_string("/etc/machine-id").ok()?;
    let id = text.trim();
    let known = !id.is_empty() && id != "uninitialized";
    known.then(|| {
        blake3::derive_key("redrive: the machine a store is on", id.as_bytes()).map(|b| format!("{b:02x}")).concat()
    })
}

/// Gives the store an id if it has none, and a new one if it was copied. One that cannot be written stays as it is: it can
/// collect nothing either.
pub(super) fn ensure(conn: &mut Connection, place: Place<'_>) -> Result<(), Fault> {
    match ensure_at(conn, &Surroundings::of(place)) {
        Err(Fault::Sql(error)) if error.sqlite_error_code() == Some(ErrorCode::ReadOnly) => Ok(()),
        ensured => ensured,
    }
}

fn ensure_at(conn: &mut Connection, here: &Surroundings) -> Result<(), Fault> {
    let is_settled = |own: Option<Surroundings>| own.is_some_and(|own| own.may_be(here));
    if is_settled(own(conn)?) {
        return Ok(());
    }
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    let recorded = own(&tx)?;
    if !is_settled(recorded.clone()) {
        take_id(&tx, recorded.as_ref(), here)?;
    }
    Ok(tx.commit()?)
}

/// Where the file was when it took the id it has.
fn own(conn: &Connection) -> Result<Option<Surroundings>, Fault> {
    let mut select = conn.prepare("SELECT machine, inode FROM store_id WHERE state = 'own'")?;
    let read = |row: &rusqlite::Row<'_>| Ok(Surroundings { machine: row.get(0)?, inode: row.get(1)? });
    Ok(select.query_row([], read).optional()?)
}

fn take_id(conn: &Connection, recorded: Option<&Surroundings>, here: &Surroundings) -> Result<(), Fault> {
    if let Some(recorded) = recorded {
        conn.execute("UPDATE store_id SET state = 'inherited'", [])?;
        conn.execute(
            "INSERT OR IGNORE INTO store_id (id, state)
             SELECT '', 'inherited' WHERE EXISTS (SELECT 1 FROM payload WHERE store = '')",
            [],
        )?;
        if recorded.inode.is_some() && recorded.inode == here.inode {
            // The same file, used from several machines in turn: each goes on with the id it had.
            // It may have had several there, if it was moved away and back: the one it used last.
            let back = "UPDATE store_id SET state = 'own' WHERE id =
                (SELECT s.id FROM store_id s WHERE s.machine = ?1 AND s.inode = ?2
                 ORDER BY (SELECT max(p.created_at) FROM payload p WHERE p.store = s.id) DESC, s.id LIMIT 1)";
            if conn.execute(back, params![here.machine, here.inode])? > 0 {
                return Ok(());
            }
        }
    }
    conn.execute(
        "INSERT INTO store_id (id, state, machine, inode) VALUES (lower(hex(randomblob(16))), 'own', ?1, ?2)",
        params![here.machine, here.inode],
    )?;
    Ok(())
}

/// The ids under which payloads lie.
pub(super) fn ids(conn: &Connection) -> Result<StoreIds, Fault> {
    let of = |state: &str| -> Result<Vec<StoreId>, Fault> {
        let mut select = conn.prepare_cached("SELECT id FROM store_id WHERE state = ?1 AND id <> ''")?;
        Ok(select.query_map([state], |row| rows::parsed(row, 0))?.collect::<RowResult<_>>()?)
    };
    let mut select = conn.prepare_cached("SELECT state FROM store_id WHERE id = ''")?;
    let older: Option<String> = select.query_row([], |row| row.get(0)).optional()?;
    Ok(StoreIds {
        own: of("own")?.into_iter().next().ok_or(rusqlite::Error::QueryReturnedNoRows)?,
        adopted: of("adopted")?,
        inherited: of("inherited")?,
        older_inherited: older.as_deref() == Some("inherited"),
        older: older.is_some(),
    })
}

/// Makes what was inherited this store's own.
pub(super) fn adopt(conn: &Connection) -> Result<(), Fault> {
    conn.execute("UPDATE store_id SET state = 'adopted' WHERE state = 'inherited'", [])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::connect::{self, Patience};
    use super::super::schema;
    use super::*;

    fn store() -> Connection {
        let mut conn = connect::writer(Place::Memory, &Patience::default()).expect("opened");
        schema::migrate(&mut conn, std::path::Path::new("memory:")).expect("migrated");
        conn
    }

    fn at(machine: Option<&str>, inode: Option<i64>) -> Surroundings {
        Surroundings { machine: machine.map(str::to_owned), inode }
    }

    /// Opens the store there; gives its id and how many it inherited.
    fn open(conn: &mut Connection, here: &Surroundings) -> (StoreId, usize) {
        ensure_at(conn, here).expect("ensured");
        let ids = ids(conn).expect("ids");
        (ids.own, ids.inherited.len())
    }

    #[test]
    fn a_copy_is_told_by_its_machine_or_its_inode() {
        let mut conn = store();
        let (first, _) = open(&mut conn, &at(Some("m"), Some(7)));
        for same in [at(Some("m"), Some(7)), at(None, Some(7)), at(Some("m"), None), at(None, None)] {
            assert_eq!(open(&mut conn, &same), (first, 0), "{same:?}: only what both know is compared");
        }
        let (second, inherited) = open(&mut conn, &at(Some("m"), Some(8)));
        assert_ne!(first, second);
        assert_eq!(inherited, 1);
        let (third, inherited) = open(&mut conn, &at(Some("n"), Some(9)));
        assert!(third != first && third != second && inherited == 2);
        adopt(&conn).expect("adopted");
        assert_eq!(open(&mut conn, &at(Some("n"), Some(9))), (third, 0));
        assert_eq!(ids(&conn).expect("ids").adopted.len(), 2);
        assert_eq!(open(&mut conn, &at(Some("m"), Some(10))).1, 3, "a copy of it inherits all of them");
    }

    #[test]
    fn one_id_is_taken_back_and_no_more() {
        let mut conn = store();
        for (machine, inode) in [("m", 7), ("m", 8), ("m", 7), ("n", 7)] {
            open(&mut conn, &at(Some(machine), Some(inode)));
        }
        let (own, inherited) = open(&mut conn, &at(Some("m"), Some(7)));
        assert_eq!(inherited, 3, "two of four were taken here; one of them is its own");
        assert_eq!(open(&mut conn, &at(Some("m"), Some(7))), (own, 3));
    }

    #[test]
    fn machines_that_share_a_file_take_turns() {
        let mut conn = store();
        let first = open(&mut conn, &at(Some("m"), Some(7))).0;
        let second = open(&mut conn, &at(Some("n"), Some(7))).0;
        for _ in 0..3 {
            assert_eq!(open(&mut conn, &at(Some("m"), Some(7))), (first, 1));
            assert_eq!(open(&mut conn, &at(Some("n"), Some(7))), (second, 1));
        }
    }
}
