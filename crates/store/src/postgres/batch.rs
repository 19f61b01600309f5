//! One transaction of the writer, shared by all operations that waited for it.
//!
//! Operations change rows as they go and note here what they mean for the ledger and the counters; both are written once, before
//! the commit, in the same order by every process.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use redrive_core::counts::Delta;
use redrive_core::ids::PipelineName;
use redrive_core::ledger::Ledger;
use redrive_core::pipelines::Pause;
use redrive_core::state::{JobState, Move};
use redrive_core::time::Timestamp;

use super::cause_keys::Keys;
use super::fault::Fault;
use super::floors::Floors;
use super::sql::{Conn, args};
use super::{results, rounds, rows, tallies};
use crate::contract::{Change, Topic};
use crate::rounds::Rounds;
use crate::tallies::Tallies;

/// Where a pipeline stands with its breakers, and whether it rests.
pub(super) struct Standing {
    /// The number of the last change of a breaker.
    pub(super) epoch: u64,
    /// The number of the last change to a breaker that is not closed.
    pub(super) gates: u64,
    /// Whether any of its targets has a breaker, or was spoken of.
    pub(super) is_troubled: bool,
    /// Whether, by whom and why it is paused.
    pub(super) paused: Option<Pause>,
}

/// What is known from one transaction to the next.
#[derive(Default)]
pub(super) struct Known {
    pipelines: HashMap<PipelineName, i64>,
    floors: Floors,
    /// Keys of causes, as of a version of their rules.
    cause_keys: (u64, Keys),
}

/// At most so many keys of causes are kept.
const CAUSE_KEYS_MAX: usize = 10_000;

impl Known {
    /// Forgets all: a transaction may have been rolled back.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

/// The transaction under way and what is to be written at its end.
pub(super) struct Batch {
    conn: Arc<Conn>,
    known: Known,
    ledgers: BTreeMap<i64, Ledger>,
    /// The changes to rounds.
    pub(super) rounds: Rounds,
    standings: BTreeMap<i64, Standing>,
    /// Counters that many operations share.
    pub(super) tallies: Tallies,
    /// What was changed besides the ledger.
    touched: Change,
}

impl Batch {
    pub(super) fn new(conn: Arc<Conn>, known: Known) -> Self {
        Self {
            conn,
            known,
            ledgers: BTreeMap::new(),
            rounds: Rounds::default(),
            standings: BTreeMap::new(),
            tallies: Tallies::default(),
            touched: Change::default(),
        }
    }

    pub(super) fn conn(&self) -> &Conn {
        &self.conn
    }

    /// Where leasing begins to look in each lane.
    pub(super) fn floors(&mut self) -> &mut Floors {
        &mut self.known.floors
    }

    /// Keys of causes that are known as of a version of their rules, for who gives them back.
    pub(super) fn take_cause_keys(&mut self, rules: u64) -> Keys {
        let (version, keys) = std::mem::take(&mut self.known.cause_keys);
        if version == rules { keys } else { Keys::new() }
    }

    /// Keeps keys of causes for later.
    pub(super) fn keep_cause_keys(&mut self, rules: u64, keys: Keys) {
        if keys.len() <= CAUSE_KEYS_MAX {
            self.known.cause_keys = (rules, keys);
        }
    }

    /// Notes that something was changed that others may wait for. What changes the ledger need not be noted.
    pub(super) fn touch(&mut self, topic: Topic) {
        self.touched.add(topic);
    }

    /// The row of a pipeline, if any job was ever enqueued to it.
    pub(super) async fn find_pipeline(&mut self, name: &PipelineName) -> Result<Option<i64>, Fault> {
        if let Some(id) = self.known.pipelines.get(name) {
            return Ok(Some(*id));
        }
        let found = self
            .conn
            .query_opt("SELECT id FROM pipeline WHERE name = $1", args![name.as_str()], |row| row.get(0))
            .await?;
        if let Some(id) = found {
            self.known.pipelines.insert(name.clone(), id);
        }
        Ok(found)
    }

    /// The row of a pipeline, made if need be.
    pub(super) async fn pipeline(&mut self, name: &PipelineName) -> Result<i64, Fault> {
        if let Some(id) = self.find_pipeline(name).await? {
            return Ok(id);
        }
        // Who makes the same one at this moment is waited for.
        self.conn
            .execute("INSERT INTO pipeline (name) VALUES ($1) ON CONFLICT DO NOTHING", args![name.as_str()])
            .await?;
        self.find_pipeline(name).await?.ok_or(Fault::NoRow)
    }

    /// The change to a pipeline's ledger, so far.
    pub(super) fn ledger(&mut self, pipeline: i64) -> &mut Ledger {
        self.ledgers.entry(pipeline).or_default()
    }

    /// Moves a job of a round, empty if it is of none, in the ledger, if the state table has the move. Otherwise the whole
    /// transaction fails.
    pub(super) fn shift(&mut self, (pipeline, round): (i64, &str), from: JobState, step: Move) -> Result<(), Fault> {
        let to = from.after(step)?;
        self.ledger(pipeline).shift(from, to);
        if let Some(ledger) = self.rounds.ledger(pipeline, round) {
            ledger.shift(from, to);
        }
        Ok(())
    }

    /// Counts an event in its minute.
    pub(super) fn count(&mut self, pipeline: i64, now: Timestamp, delta: Delta) {
        self.tallies.count(pipeline, now, delta);
    }

    /// Jobs that are queued in a pipeline, and its dead letters, as of now.
    pub(super) async fn queued_and_dead(&mut self, pipeline: i64) -> Result<(u64, u64), Fault> {
        let sql = "SELECT queued, dead FROM pipeline WHERE id = $1";
        let (queued, dead): (i64, i64) =
            self.conn.query_one(sql, args![pipeline], |row| Ok((row.get(0)?, row.get(1)?))).await?;
        let changed = self.ledger(pipeline);
        let sum = |written: i64, change: i64| u64::try_from(written + change).unwrap_or(0);
        Ok((sum(queued, changed.queued), sum(dead, changed.dead)))
    }

    /// Where a pipeline stands.
    pub(super) async fn standing(&mut self, pipeline: i64) -> Result<&mut Standing, Fault> {
        match self.standings.entry(pipeline) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(unknown) => {
                let sql = "SELECT epoch, gates, EXISTS (SELECT 1 FROM breaker WHERE pipeline = p.id)
                                  OR EXISTS (SELECT 1 FROM breaker_said WHERE pipeline = p.id), paused
                           FROM pipeline p WHERE id = $1";
                let standing = self.conn.query_one(sql, args![pipeline], |row| {
                    Ok(Standing {
                        epoch: row.get(0)?,
                        gates: row.get(1)?,
                        is_troubled: row.get(2)?,
                        paused: rows::json_opt(row, 3)?,
                    })
                });
                Ok(unknown.insert(standing.await?))
            }
        }
    }

    /// Begins the next epoch of a pipeline, whose gates change by it or not: later than every lease so far. Whoever does the same
    /// waits for this transaction.
    pub(super) async fn begin_epoch(&mut self, pipeline: i64, changes_gates: bool) -> Result<u64, Fault> {
        // Locked first: a number that was taken before waiting would be too small.
        self.conn.exists("SELECT 1 FROM pipeline WHERE id = $1 FOR NO KEY UPDATE", args![pipeline]).await?;
        let sql = "UPDATE pipeline p SET epoch = e.next, gates = CASE WHEN $2 THEN e.next ELSE p.gates END
                   FROM (SELECT nextval('epoch') AS next) e WHERE p.id = $1 RETURNING p.epoch, p.gates";
        let (epoch, gates) =
            self.conn.query_one(sql, args![pipeline, changes_gates], |row| Ok((row.get(0)?, row.get(1)?))).await?;
        let standing = self.standing(pipeline).await?;
        (standing.epoch, standing.gates, standing.is_troubled) = (epoch, gates, true);
        Ok(epoch)
    }

    /// Writes the ledger and the counters; says what was changed.
    pub(super) async fn finish(mut self) -> Result<(Change, Known), Fault> {
        if self.tallies.has_replays() {
            self.touch(Topic::Replays);
        }
        results::write(&mut self).await?;
        // What nobody waits for comes first; the rest in the order in which every process locks it.
        tallies::write_traffic(&self.tallies, &self.conn).await?;
        self.write_ledgers().await?;
        rounds::write(&self.rounds, &self.conn).await?;
        tallies::write(&self.tallies, &self.conn).await?;
        Ok((self.touched, self.known))
    }

    async fn write_ledgers(&mut self) -> Result<(), Fault> {
        let changes: Vec<(&i64, &Ledger)> =
            self.ledgers.iter().filter(|(_, change)| **change != Ledger::default()).collect();
        for (id, l) in &changes {
            let sql = "UPDATE pipeline SET accepted = accepted + $2, queued = queued + $3, leased = leased + $4, done = done + $5,
                 dead = dead + $6, discarded = discarded + $7, retrying = retrying + $8, recovered = recovered + $9,
                 replaying = replaying + $10, forgotten_done = forgotten_done + $11,
                 forgotten_recovered = forgotten_recovered + $12, forgotten_discarded = forgotten_discarded + $13,
                 results = results + $14, result_bytes = result_bytes + $15, results_dropped = results_dropped + $16
                 WHERE id = $1";
            let forgotten = l.forgotten;
            let changed = args![
                id,
                l.accepted,
                l.queued,
                l.leased,
                l.done,
                l.dead,
                l.discarded,
                l.retrying,
                l.recovered,
                l.replaying,
                forgotten.done,
                forgotten.recovered,
                forgotten.discarded,
                l.results.kept,
                l.results.bytes,
                l.results.dropped
            ];
            self.conn.send(sql, changed).await?;
        }
        if !changes.is_empty() {
            self.touch(Topic::Jobs);
        }
        Ok(())
    }

    /// Writes the shared counters now, for who must read them.
    pub(super) async fn settle_tallies(&mut self) -> Result<(), Fault> {
        if self.tallies.has_replays() {
            self.touch(Topic::Replays);
        }
        results::write(self).await?;
        let tallies = std::mem::take(&mut self.tallies);
        tallies::write_traffic(&tallies, &self.conn).await?;
        tallies::write(&tallies, &self.conn).await
    }
}
