//! The embedded backend: one SQLite file that any number of processes share, or the same code in memory.
//!
//! - `connect`: opening connections; `schema`: tables and their versions
//! - `writer`: the one thread that writes, with group commit; `batch`: one of its transactions
//! - `readers`: reading beside the writer; `identity`: whether the file and its log are still the ones at their paths;
//!   `changes`: noticing what other processes wrote; `view`: from where a store is read that cannot be written
//! - `obstacles`: why a store cannot be written; `emptied`: what is left of one that was cut to nothing
//! - `presence`: the lock files by which a dead worker is noticed at once
//! - `origin`: the store's id in the vault, and whether the file was copied
//! - one file per noun of the contract; `rows`: from rows to types; `conditions`: from filters to SQL; `fault`: errors
//!   on their way out

mod activity;
mod alerts;
mod answers;
mod audit;
mod batch;
mod breakers;
mod cause_changes;
mod cause_keys;
mod cause_rules;
mod cause_views;
mod causes;
mod changes;
mod clock;
mod compact;
mod conditions;
mod connect;
mod copies;
mod counts;
mod dead;
mod dead_imports;
mod definitions;
mod emptied;
mod facets;
mod fault;
mod good;
mod history;
mod identity;
mod job_cancels;
mod job_refs;
mod jobs;
mod lanes;
mod leader;
mod leases;
mod leasing;
mod ledger;
mod obstacles;
mod origin;
mod outcomes;
mod payloads;
mod pipelines;
mod presence;
mod readers;
mod replay_choices;
mod replay_letters;
mod replay_withdrawals;
mod replays;
mod results;
mod retrying;
mod rounds;
mod rows;
mod schema;
mod sessions;
mod settlements;
mod snapshot;
#[cfg(test)]
mod steps;
mod tallies;
mod tasks;
mod tokens;
mod traffic;
mod tries;
mod uploads;
mod view;
mod workers;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;

use self::batch::Batch;
use self::changes::{Noticed, Watcher};
use self::connect::{Patience, Place};
use self::fault::Fault;
use self::identity::{Guarded, Identity};
use self::presence::Presence;
use self::readers::Readers;
use self::view::View;
use self::writer::{DuringCopy, Writer};
use crate::contract::Topic;
use crate::error::{Result, StoreError};
use crate::location::{Location, Options};

/// A store in a SQLite file, or in memory.
pub struct SqliteStore {
    location: Location,
    writer: Writer,
    /// `None` in memory, where the writer's connection is the only one.
    readers: Option<Readers>,
    presence: Presence,
    identity: Identity,
    watcher: Watcher,
}

impl SqliteStore {
    /// Opens the store in a file, and makes it and its folder if asked to.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        emptied::refuse(path)?;
        identity::refuse(path)?;
        match options.create {
            true => make_folder(path)?,
            false if !path.exists() => return Err(StoreError::Missing { place: path.display().to_string() }),
            false => {}
        }
        let patience = Patience::default();
        let conn = match prepare(Place::File(path), (path, options), &patience) {
            Err(why @ (StoreError::ReadOnly { .. } | StoreError::DiskFull { .. })) if !options.create => {
                return Self::open_to_read(path, why);
            }
            prepared => prepared?,
        };
        let identity = Identity::of(path).map_err(|_| StoreError::Gone { place: path.display().to_string() })?;
        if let Err(error) = identity::note_log(path) {
            tracing::debug!(%error, "the log of another file would not be noticed here");
        }
        let conn = Guarded::new(conn, identity.clone());
        let noticed = Arc::<Noticed>::default();
        Ok(Self {
            location: Location::sqlite(path),
            writer: Writer::start(conn, Location::sqlite(path), patience, identity.clone(), Arc::clone(&noticed)),
            readers: Some(Readers::new(path, View::shared(path), identity.clone())),
            presence: Presence::beside(path),
            watcher: Watcher::new(noticed, path, View::shared(path), identity.clone()),
            identity,
        })
    }

    /// Opens a store that cannot be written. It can be read; whatever would change it is refused with `why`.
    fn open_to_read(path: &Path, why: StoreError) -> Result<Self> {
        let identity = Identity::of_file(path).map_err(|_| why.clone())?;
        let open = || {
            let view = View::without_writing(path)?;
            schema::check_unwritable(&connect::reader(&view)?, path, why.clone())?;
            Ok(view)
        };
        let view = open().map_err(|fault: Fault| fault.into_store_error(path))?;
        Ok(Self {
            location: Location::sqlite(path),
            writer: Writer::refusing(why),
            readers: Some(Readers::new(path, view.clone(), identity.clone())),
            presence: Presence::beside(path),
            watcher: Watcher::new(Arc::default(), path, view, identity.clone()),
            identity,
        })
    }

    /// A store that is gone with the process.
    pub fn in_memory() -> Result<Self> {
        let path = PathBuf::from("memory:");
        let patience = Patience::default();
        let conn = prepare(Place::Memory, (&path, Options::default()), &patience)?;
        let identity = Identity::none();
        let conn = Guarded::new(conn, identity.clone());
        let noticed = Arc::<Noticed>::default();
        Ok(Self {
            location: Location::memory(),
            writer: Writer::start(conn, Location::memory(), patience, identity.clone(), Arc::clone(&noticed)),
            readers: None,
            presence: Presence::single_process(),
            watcher: Watcher::alone(noticed),
            identity,
        })
    }

    /// The file, for messages.
    fn path(&self) -> &Path {
        path_of(&self.location)
    }

    fn write<T, F>(&self, run: F) -> impl Future<Output = Result<T>> + Send
    where
        T: Send + 'static,
        F: FnMut(&mut Batch<'_>) -> Result<T, Fault> + Send + 'static,
    {
        self.writer.call(None, DuringCopy::Refused, run)
    }

    /// The same for what others may wait for: they are told, if it changes anything.
    fn write_about<T, F>(&self, topic: Topic, run: F) -> impl Future<Output = Result<T>> + Send
    where
        T: Send + 'static,
        F: FnMut(&mut Batch<'_>) -> Result<T, Fault> + Send + 'static,
    {
        self.writer.call(Some(topic), DuringCopy::Refused, run)
    }

    /// Writes what belongs to a copy, which others may not.
    fn write_copy<T, F>(&self, run: F) -> impl Future<Output = Result<T>> + Send
    where
        T: Send + 'static,
        F: FnMut(&mut Batch<'_>) -> Result<T, Fault> + Send + 'static,
    {
        self.writer.call(None, DuringCopy::Allowed, run)
    }

    fn read<T, F>(&self, run: F) -> impl Future<Output = Result<T>> + Send
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        readers::read(self.readers.as_ref(), &self.writer, run)
    }
}

/// The file of a store, for messages.
fn path_of(location: &Location) -> &Path {
    location.file().unwrap_or(Path::new("memory:"))
}

fn prepare(place: Place<'_>, (path, options): (&Path, Options), patience: &Patience) -> Result<Connection> {
    let open = || {
        let mut conn = connect::writer(place, patience)?;
        schema::migrate(&mut conn, path)?;
        if !options.unfinished {
            copies::refuse_unfinished(&conn, &Location::sqlite(path))?;
        }
        origin::ensure(&mut conn, place)?;
        Ok(conn)
    };
    open().map_err(|fault: Fault| fault.into_store_error(path))
}

fn make_folder(path: &Path) -> Result<()> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    std::fs::create_dir_all(folder)
        .map_err(|error| StoreError::ReadOnly { place: folder.display().to_string(), why: error.to_string() })
}
