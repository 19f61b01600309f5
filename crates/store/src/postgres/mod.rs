//! The backend that workers on many machines share: a schema of its own in a PostgreSQL database, version 13 or later.
//!
//! - `address`: where it is, as users of libpq write it; `connect`: opening connections; `conn`: asking on one; `watch`: noticing one
//!   that went silent; `sql`: values and rows
//! - `schema`: tables and their versions
//! - `writer`: the connection that writes, with group commit; `operations`: what it writes; `waiting`: who takes them; `batch`: one of its transactions; `patience`: waiting for a server
//! - `readers`: reading beside the writer; `bells`: telling other processes what was written, and hearing of it
//! - one file per noun of the contract; `rows`: from rows to types; `conditions`: from filters to SQL; `fault`: errors on their
//!   way out

mod activity;
pub(crate) mod address;
mod alerts;
mod answers;
mod audit;
mod batch;
mod bells;
mod breakers;
mod burying;
mod cause_changes;
mod cause_keys;
mod cause_rules;
mod cause_views;
mod causes;
mod clock;
mod completing;
mod conditions;
mod conn;
mod connect;
mod copies;
mod counts;
mod dead;
mod dead_imports;
mod definitions;
mod enqueuing;
mod facets;
mod fault;
mod floors;
mod good;
mod health;
mod history;
mod job_cancels;
mod job_refs;
mod jobs;
mod lanes;
mod leader;
mod leases;
mod leasing;
mod ledger;
mod operations;
mod outcomes;
mod patience;
mod payloads;
mod pipelines;
mod readers;
mod refusals;
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
pub(crate) mod sql;
mod tallies;
mod tasks;
mod tidying;
mod tokens;
mod traffic;
mod tries;
mod uploads;
mod waiting;
mod watch;
mod workers;
mod writer;

use std::pin::Pin;
use std::sync::Arc;

use redrive_core::ids::WorkerId;
use redrive_core::time::Timestamp;

use self::address::Address;
use self::batch::Batch;
use self::bells::Bells;
use self::connect::Target;
use self::fault::Fault;
use self::operations::Share;
use self::patience::Patience;
use self::readers::Readers;
use self::sql::{Conn, args};
use self::writer::Writer;
use crate::contract::Topic;
use crate::erased::{Erased, erase};
use crate::error::Result;
use crate::location::Options;

/// An operation under way.
type Running<'a, T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send + 'a>>;

/// Calls an async function on what an operation is given.
macro_rules! run {
    ($verb:path) => {
        |on, params| Box::pin($verb(on, params))
    };
}
use run;

/// What brings a store to the version of this build.
#[derive(Clone, Debug)]
pub struct Migration {
    /// Where the store is.
    pub place: String,
    /// Its version; none if it is not there.
    pub from: Option<i64>,
    /// The version of this build.
    pub to: i64,
    /// What is to be run by somebody who may; empty if nothing is.
    pub sql: String,
}

/// A store in a schema of a PostgreSQL database.
pub struct PostgresStore {
    target: Target,
    writer: Writer,
    readers: Readers,
    bells: Arc<Bells>,
}

impl PostgresStore {
    /// Opens the store of a database that is named as users of libpq do, `postgres://user@host/database` or `host=… dbname=…`, and makes it
    /// if asked to. It is in the schema `namespace`, or else in the one that the address names, or else in `redrive`.
    pub async fn open(url: &str, namespace: Option<&str>, options: Options) -> Result<Self> {
        let target = Target::from(Address::of(url, namespace)?);
        let (id, mut patience) = (process_id(), Patience::of(options.patience));
        let (conn, written) = loop {
            match prepare(&target, id, options).await {
                Ok(prepared) => break prepared,
                Err(fault) if patience.rest_after(&fault).await => {}
                Err(fault) => return Err(fault.into_store_error(&target.place)),
            }
        };
        let bells = Arc::new(Bells::new(target.clone(), id, written));
        let writer = Writer::start(target.clone(), conn, id, (Arc::clone(&bells), options.patience));
        Ok(Self { writer, readers: Readers::new(target.clone(), options.patience), bells, target })
    }

    /// The same store, which tells no other process of what it writes: they look by themselves, every few seconds.
    pub fn silent(self) -> Self {
        self.bells.be_silent();
        self
    }

    /// What would bring the store at an address to the version of this build, without doing it.
    pub async fn migration(url: &str) -> Result<Migration> {
        let target = Target::from(Address::of(url, None)?);
        let look = async {
            let conn = target.direct().connect().await?;
            schema::check_server(&conn, &target).await?;
            let role: String = conn.query_one("SELECT current_user::text", args![], |row| row.get(0)).await?;
            Ok((schema::check(&conn, &target).await?, role))
        };
        let (found, role) = look.await.map_err(|fault: Fault| fault.into_store_error(&target.place))?;
        Ok(Migration {
            place: target.place.clone(),
            from: found,
            to: schema::newest_version(),
            sql: schema::script(&target, found, &role),
        })
    }

    /// Writes what looks at more than it has in its hands.
    fn write<P, T, F>(&self, params: P, run: F) -> impl Future<Output = Result<T>> + Send
    where
        P: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'a> Fn(&'a mut Batch, &'a P) -> Running<'a, T> + Send + Sync + 'static,
    {
        self.writer.call(None, Share::Alone, params, run)
    }

    /// The same for what others may wait for: they are told, if it changes anything.
    fn write_about<P, T, F>(&self, topic: Topic, params: P, run: F) -> impl Future<Output = Result<T>> + Send
    where
        P: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'a> Fn(&'a mut Batch, &'a P) -> Running<'a, T> + Send + Sync + 'static,
    {
        self.writer.call(Some(topic), Share::Alone, params, run)
    }

    /// Writes what locks all that it depends on.
    fn write_beside<P, T, F>(&self, params: P, run: F) -> impl Future<Output = Result<T>> + Send
    where
        P: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'a> Fn(&'a mut Batch, &'a P) -> Running<'a, T> + Send + Sync + 'static,
    {
        self.writer.call(None, Share::Beside, params, run)
    }

    /// Writes what belongs to a copy of the store, which others may not while it is under way.
    fn write_copy<P, T, F>(&self, params: P, run: F) -> impl Future<Output = Result<T>> + Send
    where
        P: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'a> Fn(&'a mut Batch, &'a P) -> Running<'a, T> + Send + Sync + 'static,
    {
        self.writer.call(None, Share::Copying, params, run)
    }

    fn read<P, T, F>(&self, params: P, run: F) -> impl Future<Output = Result<T>> + Send
    where
        P: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'a> Fn(&'a Conn, &'a P) -> Running<'a, T> + Send + Sync + 'static,
    {
        self.readers.read(Box::new((params, run)))
    }
}

/// The body of a verb with its parameters, run on a batch or on a connection that reads. It may run more than once.
trait Run<'a, C>: Send + Sync {
    fn run(&'a self, on: C) -> Running<'a, Erased>;
}

impl<'a, C, P, T, F> Run<'a, C> for (P, F)
where
    P: Send + Sync + 'a,
    T: Send + 'static,
    F: Fn(C, &'a P) -> Running<'a, T> + Send + Sync,
{
    fn run(&'a self, on: C) -> Running<'a, Erased> {
        let (params, run) = self;
        let running = run(on, params);
        Box::pin(async move { running.await.map(erase) })
    }
}

/// Connects, and brings the store to the newest version; says how much others have written.
async fn prepare(target: &Target, id: WorkerId, options: Options) -> Result<(Conn, i64), Fault> {
    let conn = target.connect().await?;
    schema::check_server(&conn, target).await?;
    match target.has_direct() {
        true => schema::migrate(&target.direct().connect().await?, target, options.create).await?,
        false => schema::migrate(&conn, target, options.create).await?,
    }
    if !options.unfinished {
        copies::refuse_unfinished(&conn, &target.schema, &target.place).await?;
    }
    let written = bells::written_by_others(&conn, target, id).await?;
    Ok((conn, written))
}

/// A name for this handle that no other has.
fn process_id() -> WorkerId {
    use std::hash::{BuildHasher, RandomState};
    let random = || u128::from(RandomState::new().hash_one(std::process::id()));
    WorkerId::new(Timestamp::from_millis(0), random() << 64 | random())
}
