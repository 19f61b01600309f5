//! Leasing: from a lane, or from what is held beside it, to a worker, past the gates that it came with.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use redrive_core::breakers::Gates;
use redrive_core::definitions::{Pins, fits};
use redrive_core::jobs::{Input, Lease, LeasedJob};
use redrive_core::pipelines::Pause;
use redrive_core::state::{JobState, Move};
use redrive_core::time::Timestamp;
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, params};

use super::batch::Batch;
use super::breakers;
use super::fault::Fault;
use super::lanes;
use super::leases;
use super::rows::{self, JOB_COLUMN_COUNT, JOB_COLUMNS, QueuedJob, RowResult};
use crate::contract::{Lane, LeaseJobs, Only};

/// At most so many jobs are set aside for a breaker by one lease; the next one goes on.
const HELD_PER_LEASE_MAX: usize = 2_000;

/// At most so many jobs of a lane are looked at for some of them.
const LOOKED_AT_MAX: u32 = 10_000;

/// Jobs that were leased, and their inputs as they are kept.
#[derive(Default)]
pub(super) struct Granted {
    pub(super) jobs: Vec<LeasedJob>,
    pub(super) inputs: Vec<String>,
    pub(super) next_due: Option<Timestamp>,
    pub(super) held: Option<BTreeMap<String, u64>>,
    pub(super) gates: Option<Gates>,
    pub(super) paused: Option<Pause>,
}

/// A lease under way.
struct Leasing<'a, 'c> {
    batch: &'a mut Batch<'c>,
    params: &'a LeaseJobs,
    pipeline: i64,
    /// The replay whose lane is leased from, if it is not the queue.
    replay: Option<i64>,
    /// The number of the lane, if there is one.
    lane: Option<i64>,
    /// How many more probes each gate lets through.
    gates: BTreeMap<&'a str, u32>,
    granted: Granted,
}

/// Leases what is due.
pub(super) fn lease(batch: &mut Batch<'_>, params: &LeaseJobs) -> Result<Granted, Fault> {
    let Some(pipeline) = batch.find_pipeline(&params.pipeline)? else { return Ok(Granted::default()) };
    let Some(replay) = replay_of(batch, params)? else { return Ok(Granted::default()) };
    let lane = lanes::find_home(batch, pipeline, replay)?;
    let (gates, granted) = (BTreeMap::new(), Granted::default());
    let mut leasing = Leasing { batch, params, pipeline, replay, lane, gates, granted };
    if leasing.resend()? {
        return Ok(leasing.granted);
    }
    if let Some(pause) = &leasing.batch.standing(pipeline)?.paused {
        return Ok(Granted { paused: Some(pause.clone()), ..Granted::default() });
    }
    if params.gates_seen != Some(leasing.batch.standing(pipeline)?.gates) {
        let gates = breakers::gates(leasing.batch, &params.pipeline, pipeline)?;
        let held = lanes::list_held(leasing.batch, pipeline, replay)?;
        return Ok(Granted { gates: Some(gates), held: Some(held), ..leasing.granted });
    }
    leasing.count_probes()?;
    leasing.take_held()?;
    leasing.take_due()?;
    if !params.gates.is_empty() || !params.freed.is_empty() {
        leasing.granted.held = Some(lanes::list_held(leasing.batch, pipeline, replay)?);
    }
    // Whoever got all that was asked for comes back anyway.
    let next_due = if leasing.room() > 0 && params.only.is_none() { leasing.first_due()? } else { None };
    Ok(Granted { next_due, ..leasing.granted })
}

/// The replay whose letters are asked for, if it is not the queue's jobs. Nothing at all if they may not be worked on.
fn replay_of(batch: &Batch<'_>, params: &LeaseJobs) -> Result<Option<Option<i64>>, Fault> {
    let Lane::Replay(id) = params.lane else { return Ok(Some(None)) };
    let mut select = batch.statement("SELECT id, pins FROM replay WHERE uuid = ?1 AND state = 'running'")?;
    let open = select.query_row([id.as_bytes()], |row| Ok((row.get(0)?, rows::json::<Pins, _>(row, 1)?))).optional()?;
    let fitting = open.filter(|(_, pins)| fits(pins.get(&params.pipeline), params.definition.as_ref()));
    Ok(fitting.map(|(replay, _)| Some(replay)))
}

impl<'a> Leasing<'a, '_> {
    fn room(&self) -> usize {
        usize::try_from(self.params.limit).unwrap_or(usize::MAX).saturating_sub(self.granted.jobs.len())
    }

    /// If the token was used before, what it has is what is asked for again.
    fn resend(&mut self) -> Result<bool, Fault> {
        let token = self.params.token.as_bytes();
        let known = self.batch.statement("SELECT 1 FROM lease_token WHERE token = ?1")?.exists([token])?;
        if !known {
            return Ok(false);
        }
        let sql = format!(
            "SELECT {JOB_COLUMNS}, l.epoch, l.probe FROM lease l JOIN job j ON j.seq = l.seq
             WHERE l.token = ?1 AND j.pipeline = ?2 ORDER BY l.first DESC, j.due_at, j.seq"
        );
        let mut select = self.batch.statement(&sql)?;
        let rows = select.query_map(params![token, self.pipeline], |row| {
            Ok((
                rows::queued_job(row)?,
                row.get::<_, u64>(JOB_COLUMN_COUNT)?,
                row.get::<_, bool>(JOB_COLUMN_COUNT + 1)?,
            ))
        })?;
        for (job, epoch, probe) in rows.collect::<RowResult<Vec<_>>>()? {
            self.hand_out(job, epoch, probe)?;
        }
        Ok(true)
    }

    /// How many more probes of each target may go, beside those that are out.
    fn count_probes(&mut self) -> Result<(), Fault> {
        let mut count = self.batch.statement("SELECT count(*) FROM lease_probe WHERE pipeline = ?1 AND target = ?2")?;
        for gate in &self.params.gates {
            let out = match gate.probes {
                0 => 0,
                _ => count.query_row(params![self.pipeline, gate.target], |row| row.get::<_, u32>(0))?,
            };
            self.gates.insert(&gate.target, gate.probes.saturating_sub(out));
        }
        Ok(())
    }

    /// Takes held jobs: those of freed targets, and as many probes as may go.
    fn take_held(&mut self) -> Result<(), Fault> {
        let params = self.params;
        for target in &params.freed {
            let room = self.room();
            self.take_held_of(target, room, false)?;
        }
        for gate in &params.gates {
            let probes = self.gates.get(gate.target.as_str()).copied().unwrap_or_default();
            let allowed = self.room().min(probes as usize);
            let taken = self.take_held_of(&gate.target, allowed, true)?;
            self.gates.insert(&gate.target, probes.saturating_sub(u32::try_from(taken).unwrap_or(u32::MAX)));
        }
        Ok(())
    }

    fn take_held_of(&mut self, target: &str, limit: usize, probe: bool) -> Result<usize, Fault> {
        if limit == 0 {
            return Ok(0);
        }
        let Some(lane) = lanes::find_held(self.batch, self.pipeline, self.replay, target)? else { return Ok(0) };
        let found = match &self.params.only {
            Some(only) => self.some_of(lane, i64::MAX, only, limit)?,
            None => {
                let sql = format!(
                    "SELECT {JOB_COLUMNS} FROM place q JOIN job j ON j.seq = q.seq WHERE q.lane = ?1
                     ORDER BY q.due_at, q.seq"
                );
                let mut select = self.batch.statement(&sql)?;
                let rows = select.query_map([lane], |row| rows::queued_job(row))?;
                rows.take(limit).collect::<RowResult<Vec<_>>>()?
            }
        };
        let taken = found.len();
        for job in found {
            lanes::pull(self.batch, lane, job.due_at, job.seq)?;
            self.grant(job, probe)?;
        }
        lanes::count_held(self.batch, lane, -i64::try_from(taken).unwrap_or(0))?;
        Ok(taken)
    }

    /// Takes due jobs from the lane. Those that a gate does not let through are held beside it, unless they need no target.
    fn take_due(&mut self) -> Result<(), Fault> {
        let Some(lane) = self.lane.filter(|_| !matches!(self.params.only, Some(Only::HeldSince(_)))) else {
            return Ok(());
        };
        // The lane beside it of each target, and how many jobs came there.
        let mut held: BTreeMap<&'a str, (i64, i64)> = BTreeMap::new();
        let mut set_aside = 0;
        while self.room() > 0 && set_aside < HELD_PER_LEASE_MAX {
            let due = match &self.params.only {
                Some(only) => self.some_of(lane, self.params.now.as_millis(), only, self.room())?,
                None => self.due_jobs(lane)?,
            };
            let Some(last) = due.last() else { break };
            match self.params.only {
                None => lanes::pull_until(self.batch, lane, last.due_at, last.seq)?,
                // Others stand between them.
                Some(_) => {
                    due.iter().try_for_each(|job| lanes::pull(self.batch, lane, job.due_at, job.seq).map(drop))?
                }
            }
            for job in due {
                let target = job.target.as_deref().filter(|_| job.saved.is_none()).unwrap_or_default();
                let Some((&target, probes)) = self.gates.iter_mut().find(|(gated, _)| **gated == target) else {
                    self.grant(job, false)?;
                    continue;
                };
                if let Some(left) = probes.checked_sub(1) {
                    *probes = left;
                    self.grant(job, true)?;
                    continue;
                }
                let (beside, jobs) = match held.entry(target) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert((lanes::held(self.batch, self.pipeline, self.replay, target)?, 0)),
                };
                lanes::push(self.batch, *beside, job.due_at, job.seq)?;
                *jobs += 1;
                set_aside += 1;
            }
        }
        for (beside, jobs) in held.into_values() {
            lanes::count_held(self.batch, beside, jobs)?;
        }
        Ok(())
    }

    /// The jobs that are due. They are not limited in SQL: a bound limit would have the statement prepared anew each time.
    fn due_jobs(&self, lane: i64) -> Result<Vec<QueuedJob>, Fault> {
        let sql = format!(
            "SELECT {JOB_COLUMNS} FROM place q JOIN job j ON j.seq = q.seq
             WHERE q.lane = ?1 AND q.due_at <= ?2 ORDER BY q.due_at, q.seq"
        );
        let mut select = self.batch.statement(&sql)?;
        let rows = select.query_map([lane, self.params.now.as_millis()], |row| rows::queued_job(row))?;
        Ok(rows.take(self.room()).collect::<RowResult<_>>()?)
    }

    /// Some of the first jobs of a lane that are due by a time.
    fn some_of(&self, lane: i64, until: i64, only: &Only, limit: usize) -> Result<Vec<QueuedJob>, Fault> {
        let (condition, value) = match only {
            Only::Group(group) => ("j.origin ->> 'group' = ?3", Value::Text(group.clone())),
            Only::HeldSince(time) => ("j.accepted_at <= ?3", Value::Integer(time.as_millis())),
        };
        let sql = format!(
            "SELECT {JOB_COLUMNS} FROM (SELECT seq, due_at FROM place WHERE lane = ?1 AND due_at <= ?2
                                        ORDER BY due_at, seq LIMIT {LOOKED_AT_MAX}) q
             JOIN job j ON j.seq = q.seq WHERE {condition} ORDER BY q.due_at, q.seq"
        );
        let mut select = self.batch.statement(&sql)?;
        let rows = select.query_map(params![lane, until, value], |row| rows::queued_job(row))?;
        Ok(rows.take(limit).collect::<RowResult<_>>()?)
    }

    /// When the first job of the lane is due.
    fn first_due(&self) -> Result<Option<Timestamp>, Fault> {
        let mut select = self.batch.statement("SELECT due_at FROM place WHERE lane = ?1 ORDER BY due_at LIMIT 1")?;
        Ok(select.query_row([self.lane], |row| rows::time(row, 0)).optional()?)
    }

    /// Gives a job that was taken from a lane to the worker.
    fn grant(&mut self, queued: QueuedJob, probe: bool) -> Result<(), Fault> {
        let first = self.granted.jobs.is_empty();
        let standing = self.batch.standing(self.pipeline)?;
        let epoch = if first { standing.begin_epoch() } else { standing.epoch };
        let round = rows::round_text(queued.round.as_ref()).unwrap_or_default();
        self.batch.shift((self.pipeline, round), JobState::Queued, Move::Lease)?;
        self.batch.ledger(self.pipeline).retrying -= i64::from(queued.tally.tried());
        self.batch
            .hot(
                "INSERT INTO lease (job, seq, worker, token, epoch, until, probe, first)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                queued.id.as_bytes(),
                queued.seq,
                self.params.worker.as_bytes(),
                self.params.token.as_bytes(),
                epoch,
                self.params.until.as_millis(),
                probe,
                first
            ])?;
        if first {
            self.batch
                .statement("INSERT INTO lease_token (token, job) VALUES (?1, ?2)")?
                .execute([self.params.token.as_bytes(), queued.id.as_bytes()])?;
        }
        if probe {
            self.batch
                .statement("INSERT INTO lease_probe (job, pipeline, target) VALUES (?1, ?2, ?3)")?
                .execute(params![queued.id.as_bytes(), self.pipeline, queued.target.as_deref().unwrap_or_default()])?;
        }
        self.hand_out(queued, epoch, probe)
    }

    /// Answers with a job that the worker has.
    fn hand_out(&mut self, queued: QueuedJob, epoch: u64, probe: bool) -> Result<(), Fault> {
        let lease = Lease { job: queued.id, token: self.params.token, epoch };
        let saved = leases::saved(self.batch.connection(), queued.id, queued.saved)?;
        let tried = match self.params.with_tried && queued.tally.tried() {
            true => leases::tried(self.batch.connection(), queued.id)?,
            false => Vec::new(),
        };
        self.granted.inputs.push(queued.input);
        self.granted.jobs.push(LeasedJob {
            lease,
            number: queued.seq,
            pipeline: self.params.pipeline.clone(),
            round: queued.round,
            key: queued.key,
            target: queued.target,
            input: Input::default(),
            tally: queued.tally,
            accepted_at: queued.accepted_at,
            progress: queued.progress,
            saved,
            automatic: queued.automatic,
            tried,
            probe,
            origin: queued.origin,
            edited: queued.edited,
        });
        Ok(())
    }
}
