//! One transaction of the writer, shared by all operations that waited for it.
//!
//! Operations change rows as they go and note here what they mean for the ledger and the hourly roll-ups; both are
//! written once, before the commit.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use redrive_core::counts::Delta;
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::ledger::Ledger;
use redrive_core::pipelines::Pause;
use redrive_core::state::{JobState, Move};
use redrive_core::time::Timestamp;
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use super::changes::Counters;
use super::fault::Fault;
use super::{copies, results, rounds, rows, tallies};
use crate::contract::{Change, Topic};
use crate::location::Location;
use crate::rounds::Rounds;
use crate::tallies::Tallies;

/// Where a pipeline stands with its leases and breakers, and whether it rests.
pub(super) struct Standing {
    /// The number of the last lease, or change of a breaker.
    pub(super) epoch: u64,
    /// The number of the last change to a breaker that is not closed.
    pub(super) gates: u64,
    /// Whether any of its targets has a breaker, or was spoken of.
    pub(super) is_troubled: bool,
    /// Whether, by whom and why it is paused.
    pub(super) paused: Option<Pause>,
    is_changed: bool,
}

impl Standing {
    /// Begins the next epoch.
    pub(super) fn begin_epoch(&mut self) -> u64 {
        self.is_changed = true;
        self.epoch += 1;
        self.epoch
    }
}

/// What is known of the jobs that were accepted so far.
struct Accepted {
    /// The last number that was given to one.
    number: i64,
    /// The greatest id of those that were accepted before this transaction.
    newest_before: Option<JobId>,
    /// The greatest id of all.
    newest: Option<JobId>,
}

/// The transaction under way and what is to be written at its end.
pub(super) struct Batch<'c> {
    conn: &'c Connection,
    pipelines: &'c mut HashMap<PipelineName, i64>,
    ledgers: HashMap<i64, Ledger>,
    /// The changes to rounds.
    pub(super) rounds: Rounds,
    /// Where pipelines stand, once it was asked.
    standings: HashMap<i64, Standing>,
    names: HashMap<i64, PipelineName>,
    /// What is known of the jobs that were accepted, once it was asked for.
    accepted: Option<Accepted>,
    /// Counters that many operations share.
    pub(super) tallies: Tallies,
    /// What was changed besides the ledger.
    touched: Change,
    /// Whether it is known that the store is not being copied.
    is_unmarked: bool,
    /// Statements that every job needs.
    hot: Vec<(&'static str, CachedStatement<'c>)>,
}

impl<'c> Batch<'c> {
    pub(super) fn new(conn: &'c Connection, pipelines: &'c mut HashMap<PipelineName, i64>) -> Self {
        Self {
            conn,
            pipelines,
            ledgers: HashMap::new(),
            rounds: Rounds::default(),
            standings: HashMap::new(),
            names: HashMap::new(),
            accepted: None,
            tallies: Tallies::default(),
            touched: Change::default(),
            is_unmarked: false,
            hot: Vec::new(),
        }
    }

    /// Notes that something was changed that others may wait for. What changes the ledger need not be noted.
    pub(super) fn touch(&mut self, topic: Topic) {
        self.touched.add(topic);
    }

    /// Refuses to go on if the store is being copied; asked once per transaction.
    pub(super) fn check_mark(&mut self, place: &Location) -> Result<(), Fault> {
        if !self.is_unmarked {
            copies::check(self.conn, place)?;
            self.is_unmarked = true;
        }
        Ok(())
    }

    pub(super) fn connection(&self) -> &'c Connection {
        self.conn
    }

    pub(super) fn statement(&self, sql: &str) -> Result<CachedStatement<'c>, Fault> {
        Ok(self.conn.prepare_cached(sql)?)
    }

    /// A statement that every job needs. It stays with the transaction: looking it up by its text, and putting it back, would take
    /// a tenth of the time that a job takes.
    pub(super) fn hot(&mut self, sql: &'static str) -> Result<&mut CachedStatement<'c>, Fault> {
        let at = match self.hot.iter().position(|(known, _)| std::ptr::eq(*known, sql)) {
            Some(at) => at,
            None => {
                self.hot.push((sql, self.conn.prepare_cached(sql)?));
                self.hot.len() - 1
            }
        };
        Ok(&mut self.hot[at].1)
    }

    /// The row of a pipeline, if any job was ever enqueued to it.
    pub(super) fn find_pipeline(&mut self, name: &PipelineName) -> Result<Option<i64>, Fault> {
        if let Some(id) = self.pipelines.get(name) {
            return Ok(Some(*id));
        }
        let mut select = self.statement("SELECT id FROM pipeline WHERE name = ?1")?;
        let found = select.query_row([name.as_str()], |row| row.get(0)).optional()?;
        if let Some(id) = found {
            self.pipelines.insert(name.clone(), id);
        }
        Ok(found)
    }

    /// The row of a pipeline, made if need be.
    pub(super) fn pipeline(&mut self, name: &PipelineName) -> Result<i64, Fault> {
        if let Some(id) = self.find_pipeline(name)? {
            return Ok(id);
        }
        self.statement("INSERT INTO pipeline (name) VALUES (?1)")?.execute([name.as_str()])?;
        let id = self.conn.last_insert_rowid();
        self.pipelines.insert(name.clone(), id);
        Ok(id)
    }

    /// What a pipeline is called.
    pub(super) fn pipeline_name(&mut self, id: i64) -> Result<PipelineName, Fault> {
        if let Some(name) = self.names.get(&id) {
            return Ok(name.clone());
        }
        let mut select = self.statement("SELECT name FROM pipeline WHERE id = ?1")?;
        let name: PipelineName = select.query_row([id], |row| rows::parsed(row, 0))?;
        self.names.insert(id, name.clone());
        Ok(name)
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
    pub(super) fn queued_and_dead(&mut self, pipeline: i64) -> Result<(u64, u64), Fault> {
        let mut select = self.statement("SELECT queued, dead FROM pipeline WHERE id = ?1")?;
        let (queued, dead): (i64, i64) = select.query_row([pipeline], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let changed = self.ledger(pipeline);
        let sum = |written: i64, change: i64| u64::try_from(written + change).unwrap_or(0);
        Ok((sum(queued, changed.queued), sum(dead, changed.dead)))
    }

    fn accepted(&mut self) -> Result<&mut Accepted, Fault> {
        let accepted = match self.accepted.take() {
            Some(accepted) => accepted,
            None => {
                let mut select = self.statement("SELECT value, newest FROM counter WHERE name = 'number'")?;
                select.query_row([], |row| {
                    let newest = row.get::<_, Option<[u8; 16]>>(1)?.map(JobId::from_bytes);
                    Ok(Accepted { number: row.get(0)?, newest_before: newest, newest })
                })?
            }
        };
        Ok(self.accepted.insert(accepted))
    }

    /// A number that no job has had before.
    pub(super) fn next_number(&mut self) -> Result<i64, Fault> {
        let accepted = self.accepted()?;
        accepted.number += 1;
        Ok(accepted.number)
    }

    /// Notes that a job is to be accepted; says whether it may have been before. An id that is greater than all others was not,
    /// and ids grow with time, so that this is all that most jobs need to be asked.
    pub(super) fn may_be_known(&mut self, id: JobId) -> Result<bool, Fault> {
        let accepted = self.accepted()?;
        accepted.newest = accepted.newest.max(Some(id));
        Ok(accepted.newest_before >= Some(id))
    }

    /// Where a pipeline stands.
    pub(super) fn standing(&mut self, pipeline: i64) -> Result<&mut Standing, Fault> {
        if let Entry::Vacant(unknown) = self.standings.entry(pipeline) {
            let mut select = self.conn.prepare_cached(
                "SELECT epoch, gates, EXISTS (SELECT 1 FROM breaker WHERE pipeline = p.id)
                                      OR EXISTS (SELECT 1 FROM breaker_said WHERE pipeline = p.id), paused
                 FROM pipeline p WHERE id = ?1",
            )?;
            unknown.insert(select.query_row([pipeline], |row| {
                Ok(Standing {
                    epoch: row.get(0)?,
                    gates: row.get(1)?,
                    is_troubled: row.get(2)?,
                    paused: rows::json_opt(row, 3)?,
                    is_changed: false,
                })
            })?);
        }
        self.standings.get_mut(&pipeline).ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
    }

    /// Writes the ledger, the roll-ups and what was changed; says by how much the counters of changes grow.
    pub(super) fn finish(mut self) -> Result<Counters, Fault> {
        if self.tallies.has_replays() {
            self.touch(Topic::Replays);
        }
        results::write(&mut self)?;
        let mut added = Counters::default();
        let mut update = self.statement(
            "UPDATE pipeline SET accepted = accepted + ?2, queued = queued + ?3, leased = leased + ?4, done = done + ?5,
             dead = dead + ?6, discarded = discarded + ?7, retrying = retrying + ?8, recovered = recovered + ?9,
             replaying = replaying + ?10, forgotten_done = forgotten_done + ?11,
             forgotten_recovered = forgotten_recovered + ?12, forgotten_discarded = forgotten_discarded + ?13,
             results = results + ?14, result_bytes = result_bytes + ?15, results_dropped = results_dropped + ?16, changes = changes + 1
             WHERE id = ?1",
        )?;
        for (id, l) in self.ledgers.iter().filter(|(_, change)| **change != Ledger::default()) {
            update.execute(params![
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
                l.forgotten.done,
                l.forgotten.recovered,
                l.forgotten.discarded,
                l.results.kept,
                l.results.bytes,
                l.results.dropped
            ])?;
            added[Topic::Jobs as usize] += 1;
        }
        if let Some(Accepted { number, newest, .. }) = &self.accepted {
            self.statement("UPDATE counter SET value = ?1, newest = ?2 WHERE name = 'number'")?
                .execute(params![number, newest.as_ref().map(JobId::as_bytes)])?;
        }
        let mut update = self.statement("UPDATE pipeline SET epoch = ?2, gates = ?3 WHERE id = ?1")?;
        for (id, standing) in self.standings.iter().filter(|(_, standing)| standing.is_changed) {
            update.execute(params![id, standing.epoch, standing.gates])?;
        }
        for topic in self.touched.topics() {
            let upsert =
                "INSERT INTO topic (name, changes) VALUES (?1, 1) ON CONFLICT DO UPDATE SET changes = changes + 1";
            self.statement(upsert)?.execute([topic.as_str()])?;
            added[topic as usize] += 1;
        }
        rounds::write(&self.rounds, self.conn)?;
        tallies::write(&self.tallies, self.conn)?;
        Ok(added)
    }

    /// Writes the shared counters now, for who must read them.
    pub(super) fn settle_tallies(&mut self) -> Result<(), Fault> {
        if self.tallies.has_replays() {
            self.touch(Topic::Replays);
        }
        results::write(self)?;
        tallies::write(&std::mem::take(&mut self.tallies), self.conn)
    }
}
