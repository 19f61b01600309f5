//! Leasing: from the queue, from what breakers held or from a replay to a worker, past the breakers.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive_core::breakers::Admission;
use redrive_core::ids::{JobId, ReplayId, RoundName};
use redrive_core::jobs::{Input, Lease, LeasedJob, Tally};
use redrive_core::payloads::{Payload, PayloadHash};
use redrive_core::proxies::TriedProxy;
use redrive_core::state::{JobState, Move};
use redrive_core::time::Timestamp;
use rusqlite::{OptionalExtension, Row, params};
use serde_json::Value;

use super::batch::Batch;
use super::breakers::{self, Kept};
use super::fault::Fault;
use super::lanes;
use super::leases::JOB_COLUMNS;
use super::rows::{self, RowResult};
use crate::contract::{Lane, LeaseJobs};

/// At most so many jobs are set aside for a breaker by one lease; the next one goes on.
const HELD_PER_LEASE_MAX: usize = 2_000;

/// Jobs that were leased, and their inputs as they are kept.
#[derive(Default)]
pub(super) struct Granted {
    pub(super) jobs: Vec<LeasedJob>,
    pub(super) inputs: Vec<String>,
    pub(super) next_due: Option<Timestamp>,
}

/// A lease under way.
struct Leasing<'a, 'c> {
    batch: &'a mut Batch<'c>,
    params: &'a LeaseJobs,
    pipeline: i64,
    granted: Granted,
}

/// Leases what is due.
pub(super) fn lease(batch: &mut Batch<'_>, params: &LeaseJobs) -> Result<Granted, Fault> {
    let Some(pipeline) = batch.find_pipeline(&params.pipeline)? else { return Ok(Granted::default()) };
    let mut waiting = breakers::waiting(batch, pipeline, params.now)?;
    let mut leasing = Leasing { batch, params, pipeline, granted: Granted::default() };
    if let Lane::Replay(replay) = params.lane {
        let Some(replay) = leasing.open_replay(replay)? else { return Ok(leasing.granted) };
        let next_due = leasing.take_replayed(replay, &mut waiting)?;
        return Ok(Granted { next_due, ..leasing.granted });
    }
    leasing.take_held(&mut waiting)?;
    leasing.take_queued(&mut waiting)?;
    // Whoever got all that was asked for comes back anyway.
    let next_due = if leasing.room() > 0 { leasing.next_due(&waiting)? } else { None };
    Ok(Granted { next_due, ..leasing.granted })
}

impl Leasing<'_, '_> {
    fn room(&self) -> usize {
        usize::try_from(self.params.limit).unwrap_or(usize::MAX).saturating_sub(self.granted.jobs.len())
    }

    fn admission(&self, kept: &Kept) -> Admission {
        kept.breaker.admission(&self.params.breaker, self.params.now)
    }

    /// Takes jobs that breakers held and now let through.
    fn take_held(&mut self, waiting: &mut BTreeMap<String, Kept>) -> Result<(), Fault> {
        for (target, kept) in waiting.iter_mut().filter(|(_, kept)| kept.held > 0) {
            let allowed = match self.admission(kept) {
                Admission::All => self.room(),
                Admission::Probes(probes) => self.room().min(probes as usize),
                Admission::NotBefore(_) => 0,
            };
            let taken = self.take_held_of(target, allowed)?;
            if taken > 0 {
                kept.held -= i64::try_from(taken).unwrap_or(0);
                self.note_probes(target, kept, taken)?;
            }
        }
        Ok(())
    }

    fn take_held_of(&mut self, target: &str, limit: usize) -> Result<usize, Fault> {
        if limit == 0 {
            return Ok(0);
        }
        let sql = format!(
            "SELECT {JOB_COLUMNS} FROM place q JOIN job j ON j.seq = q.seq
             WHERE q.pipeline = ?1 AND q.lane = ?2 ORDER BY q.due_at, q.seq"
        );
        let mut select = self.batch.statement(&sql)?;
        let rows = select.query_map(params![self.pipeline, lanes::held(target)], queued_job)?;
        let found = rows.take(limit).collect::<RowResult<Vec<_>>>()?;
        for job in &found {
            breakers::let_go(self.batch, self.pipeline, target, job.due_at, job.seq)?;
        }
        let taken = found.len();
        found.into_iter().try_for_each(|job| self.grant(job))?;
        Ok(taken)
    }

    /// Takes due jobs from the queue. Those whose target's breaker does not let them through are set aside.
    fn take_queued(&mut self, waiting: &mut BTreeMap<String, Kept>) -> Result<(), Fault> {
        let mut set_aside = 0;
        while self.room() > 0 && set_aside < HELD_PER_LEASE_MAX {
            let due = self.due_jobs(lanes::QUEUE)?;
            if due.is_empty() {
                break;
            }
            for job in due {
                lanes::pull(self.batch, self.pipeline, lanes::QUEUE, job.due_at, job.seq)?;
                let Some((target, kept)) = job.target.as_ref().and_then(|target| waiting.get_key_value(target)) else {
                    self.grant(job)?;
                    continue;
                };
                let (target, mut kept) = (target.clone(), kept.clone());
                match self.admission(&kept) {
                    Admission::All => self.grant(job)?,
                    Admission::Probes(_) => {
                        self.note_probes(&target, &mut kept, 1)?;
                        self.grant(job)?;
                    }
                    Admission::NotBefore(_) => {
                        lanes::push(self.batch, self.pipeline, &lanes::held(&target), job.due_at, job.seq)?;
                        kept.held += 1;
                        set_aside += 1;
                        breakers::keep(self.batch, self.pipeline, &target, &kept)?;
                    }
                }
                waiting.insert(target, kept);
            }
        }
        Ok(())
    }

    /// The row of a replay whose letters may be worked on.
    fn open_replay(&self, id: ReplayId) -> Result<Option<i64>, Fault> {
        let mut select =
            self.batch.statement("SELECT id FROM replay WHERE uuid = ?1 AND state IN ('running', 'cancelled')")?;
        Ok(select.query_row([id.as_bytes()], |row| row.get(0)).optional()?)
    }

    /// Takes letters that a replay sent. Those whose target's breaker does not let them through wait for it, unless they
    /// need no target. Says when the next one is due.
    fn take_replayed(&mut self, replay: i64, waiting: &mut BTreeMap<String, Kept>) -> Result<Option<Timestamp>, Fault> {
        let (now, lane) = (self.params.now, lanes::replay(replay));
        let due = self.due_jobs(&lane)?;
        for job in due {
            lanes::pull(self.batch, self.pipeline, &lane, job.due_at, job.seq)?;
            let target = job.target.clone().filter(|_| job.saved.is_none()).unwrap_or_default();
            let Some(kept) = waiting.get_mut(&target) else {
                self.grant(job)?;
                continue;
            };
            match self.admission(kept) {
                Admission::All => self.grant(job)?,
                Admission::Probes(_) => {
                    self.note_probes(&target, kept, 1)?;
                    self.grant(job)?;
                }
                Admission::NotBefore(due) => {
                    // A little later than now, so that nobody asks again at once.
                    let due = due.max(now + Duration::from_millis(100));
                    let mut update = self.batch.statement("UPDATE job SET due_at = ?2 WHERE seq = ?1")?;
                    update.execute(params![job.seq, due.as_millis()])?;
                    lanes::push(self.batch, self.pipeline, &lane, due, job.seq)?;
                }
            }
        }
        self.first_due(&lane)
    }

    /// The saved payload that a letter is to be worked from.
    fn saved(&self, job: JobId, hash: Option<[u8; 32]>) -> Result<Option<Payload>, Fault> {
        let Some(hash) = hash else { return Ok(None) };
        let mut select = self.batch.statement("SELECT payload FROM payload_use WHERE job = ?1 AND hash = ?2")?;
        let kept = select.query_row(params![job.as_bytes(), hash], |row| rows::json(row, 0)).optional()?;
        // If it is gone, whoever reads it says so; nothing is asked for instead.
        Ok(Some(kept.unwrap_or_else(|| Payload::bare(PayloadHash::from_bytes(hash), 0))))
    }

    /// The proxies through which a job failed, oldest first.
    fn tried(&self, job: JobId) -> Result<Vec<TriedProxy>, Fault> {
        let mut select = self.batch.statement(
            "SELECT failure ->> 'proxy', failure ->> 'replay' FROM failure
             WHERE job = ?1 AND failure ->> 'proxy' IS NOT NULL ORDER BY n",
        )?;
        let tried = |row: &Row<'_>| Ok(TriedProxy { label: row.get(0)?, replay: row.get(1)? });
        Ok(select.query_map([job.as_bytes()], tried)?.collect::<RowResult<_>>()?)
    }

    fn note_probes(&mut self, target: &str, kept: &mut Kept, probes: usize) -> Result<(), Fault> {
        if !matches!(self.admission(kept), Admission::All) {
            let probes = u32::try_from(probes).unwrap_or(u32::MAX);
            kept.breaker.probe(probes, &self.params.breaker, self.params.now);
        }
        breakers::keep(self.batch, self.pipeline, target, kept)
    }

    /// The jobs that are due. They are not limited in SQL: a bound limit would have the statement prepared anew each time.
    fn due_jobs(&self, lane: &str) -> Result<Vec<QueuedJob>, Fault> {
        let sql = format!(
            "SELECT {JOB_COLUMNS} FROM place q JOIN job j ON j.seq = q.seq
             WHERE q.pipeline = ?1 AND q.lane = ?2 AND q.due_at <= ?3 ORDER BY q.due_at, q.seq"
        );
        let mut select = self.batch.statement(&sql)?;
        let rows = select.query_map(params![self.pipeline, lane, self.params.now.as_millis()], queued_job)?;
        Ok(rows.take(self.room()).collect::<RowResult<_>>()?)
    }

    /// When the first job of a lane is due.
    fn first_due(&self, lane: &str) -> Result<Option<Timestamp>, Fault> {
        let sql = "SELECT due_at FROM place WHERE pipeline = ?1 AND lane = ?2 ORDER BY due_at LIMIT 1";
        let mut select = self.batch.statement(sql)?;
        Ok(select.query_row(params![self.pipeline, lane], |row| rows::time(row, 0)).optional()?)
    }

    /// When the next job is due, in the queue or held.
    fn next_due(&self, waiting: &BTreeMap<String, Kept>) -> Result<Option<Timestamp>, Fault> {
        let queued = self.first_due(lanes::QUEUE)?;
        let held = waiting.values().filter(|kept| kept.held > 0).map(|kept| match self.admission(kept) {
            Admission::NotBefore(due) => due,
            Admission::All | Admission::Probes(_) => self.params.now,
        });
        Ok(held.chain(queued).min())
    }

    /// Gives a job that was taken from the queue to the worker.
    fn grant(&mut self, queued: QueuedJob) -> Result<(), Fault> {
        if self.granted.jobs.is_empty() {
            self.batch.begin_epoch(self.pipeline)?;
        }
        let lease = Lease { job: queued.id, token: self.params.token, epoch: self.batch.epoch(self.pipeline) };
        self.batch.shift(self.pipeline, JobState::Queued, Move::Lease)?;
        self.batch.ledger(self.pipeline).retrying -= i64::from(queued.tally.tried());
        self.batch
            .statement("INSERT INTO lease (job, seq, worker, token, epoch, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
            .execute(params![
                queued.id.as_bytes(),
                queued.seq,
                self.params.worker.as_bytes(),
                self.params.token.as_bytes(),
                lease.epoch,
                self.params.until.as_millis()
            ])?;
        let saved = self.saved(queued.id, queued.saved)?;
        let tried = match self.params.with_tried && queued.tally.tried() {
            true => self.tried(queued.id)?,
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
        });
        Ok(())
    }
}

struct QueuedJob {
    id: JobId,
    key: Option<String>,
    target: Option<String>,
    input: String,
    accepted_at: Timestamp,
    tally: Tally,
    seq: i64,
    due_at: Timestamp,
    progress: Option<Value>,
    saved: Option<[u8; 32]>,
    automatic: bool,
    round: Option<RoundName>,
}

fn queued_job(row: &Row<'_>) -> RowResult<QueuedJob> {
    Ok(QueuedJob {
        id: rows::job_id(row, 0)?,
        key: row.get(1)?,
        target: row.get(2)?,
        input: row.get(3)?,
        accepted_at: rows::time(row, 4)?,
        tally: rows::tally(row, 5)?,
        seq: row.get(10)?,
        due_at: rows::time(row, 11)?,
        progress: rows::json_opt(row, 12)?,
        saved: row.get(13)?,
        automatic: row.get(14)?,
        round: rows::round(row, 15)?,
    })
}
