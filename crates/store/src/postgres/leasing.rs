//! Leasing: from a lane, or from what is held beside it, to a worker, past the gates that it came with.

use std::collections::BTreeMap;

use redrive_core::breakers::Gates;
use redrive_core::definitions::{Pins, fits};
use redrive_core::ids::JobId;
use redrive_core::jobs::{Input, Lease, LeasedJob};
use redrive_core::pipelines::Pause;
use redrive_core::state::{JobState, Move};
use redrive_core::time::Timestamp;

use super::batch::Batch;
use super::fault::Fault;
use super::leases;
use super::rows::{JOB_COLUMN_COUNT, JOB_COLUMNS, QueuedJob};
use super::sql::args;
use super::{breakers, lanes, rows};
use crate::contract::{Lane, LeaseJobs, Only};

/// At most so many jobs are set aside for a breaker by one lease; the next one goes on.
const HELD_PER_LEASE_MAX: usize = 2_000;

/// At most so many jobs of a lane are looked at for those of a group.
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
struct Leasing<'a> {
    batch: &'a mut Batch,
    params: &'a LeaseJobs,
    pipeline: i64,
    /// The replay whose lane is leased from, if it is not the queue.
    replay: Option<i64>,
    /// The number of the lane, if there is one.
    lane: Option<i64>,
    /// How many more probes each gate lets through.
    gates: BTreeMap<&'a str, u32>,
    /// Jobs that were taken from a lane for the worker, and whether each is a probe.
    taken: Vec<(QueuedJob, bool)>,
}

/// Leases what is due.
pub(super) async fn lease(batch: &mut Batch, params: &LeaseJobs) -> Result<Granted, Fault> {
    let Some(pipeline) = batch.find_pipeline(&params.pipeline).await? else { return Ok(Granted::default()) };
    let Some(replay) = replay_of(batch, params).await? else { return Ok(Granted::default()) };
    let lane = lanes::find_home(batch, pipeline, replay).await?;
    if let Some(granted) = take_freely(batch, (pipeline, lane), params).await? {
        return Ok(granted);
    }
    if let Some(granted) = resend(batch, pipeline, params).await? {
        return Ok(granted);
    }
    let standing = batch.standing(pipeline).await?;
    if let Some(pause) = &standing.paused {
        return Ok(Granted { paused: Some(pause.clone()), ..Granted::default() });
    }
    if params.gates_seen != Some(standing.gates) {
        let gates = breakers::gates(batch, &params.pipeline, pipeline).await?;
        let held = lanes::list_held(batch, pipeline, replay).await?;
        return Ok(Granted { gates: Some(gates), held: Some(held), ..Granted::default() });
    }
    let mut leasing = Leasing { batch, params, pipeline, replay, lane, gates: BTreeMap::new(), taken: Vec::new() };
    leasing.count_probes().await?;
    leasing.take_held().await?;
    leasing.take_due().await?;
    // Whoever got all that was asked for comes back anyway.
    let next_due = match lane {
        Some(lane) if leasing.room() > 0 && params.only.is_none() => first_due(leasing.batch, lane).await?,
        _ => None,
    };
    let taken = std::mem::take(&mut leasing.taken);
    let granted = grant(batch, (pipeline, params), taken).await?;
    let held = match params.gates.is_empty() && params.freed.is_empty() {
        true => None,
        false => Some(lanes::list_held(batch, pipeline, replay).await?),
    };
    Ok(Granted { next_due, held, ..granted })
}

/// Leases by one statement where nothing is in the way: no gate, no pause, and nothing that was leased by the same token before.
/// Nothing if there is, or if nothing is due.
async fn take_freely(
    batch: &mut Batch,
    (pipeline, lane): (i64, Option<i64>),
    params: &LeaseJobs,
) -> Result<Option<Granted>, Fault> {
    let (Some(lane), Some(gates)) = (lane, params.gates_seen) else { return Ok(None) };
    if !(params.gates.is_empty() && params.freed.is_empty()) || params.limit == 0 || params.only.is_some() {
        return Ok(None);
    }
    let sql = format!(
        "WITH taken AS (
             DELETE FROM place WHERE ctid = ANY(ARRAY(
                 SELECT ctid FROM place WHERE lane = $1 AND due_at <= $2 AND (due_at, seq) >= ($9, $10)
                     AND EXISTS (SELECT 1 FROM pipeline WHERE id = $7 AND gates = $8 AND paused IS NULL)
                     AND NOT EXISTS (SELECT 1 FROM lease WHERE token = $5 AND first)
                 ORDER BY due_at, seq LIMIT $3 FOR UPDATE SKIP LOCKED))
             RETURNING seq),
         jobs AS MATERIALIZED (
             SELECT {JOB_COLUMNS} FROM job j WHERE j.seq = ANY(ARRAY(SELECT seq FROM taken)) ORDER BY j.due_at, j.seq),
         e AS MATERIALIZED (SELECT nextval('epoch') AS epoch),
         leased AS (
             INSERT INTO lease (job, seq, worker, token, epoch, until, first)
             SELECT j.id, j.seq, $4, $5, e.epoch, $6, row_number() OVER (ORDER BY j.due_at, j.seq) = 1 FROM jobs j, e)
         SELECT jobs.*, e.epoch FROM jobs, e"
    );
    let floor = batch.floors().of(lane, params.limit);
    let asked = args![
        lane,
        params.now,
        params.limit,
        params.worker,
        params.token,
        params.until,
        pipeline,
        gates,
        floor.0,
        floor.1
    ];
    let found =
        batch.conn().query(&sql, asked, |row| Ok((rows::queued_job(row)?, row.get::<u64>(JOB_COLUMN_COUNT)?))).await?;
    let is_full = found.len() == params.limit as usize;
    let began = found.first().filter(|_| is_full).map(|(job, _)| (job.due_at.as_millis(), job.seq));
    batch.floors().note(lane, params.limit, began);
    if found.is_empty() {
        return Ok(None);
    }
    let mut granted = Granted::default();
    for (job, epoch) in found {
        count_leased(batch, pipeline, &job)?;
        hand_out(batch, params, &mut granted, job, (epoch, false)).await?;
    }
    if !is_full {
        granted.next_due = first_due(batch, lane).await?;
    }
    Ok(Some(granted))
}

/// The replay whose letters are asked for, if it is not the queue's jobs. Nothing at all if they may not be worked on.
async fn replay_of(batch: &Batch, params: &LeaseJobs) -> Result<Option<Option<i64>>, Fault> {
    let Lane::Replay(id) = params.lane else { return Ok(Some(None)) };
    let sql = "SELECT id, pins FROM replay WHERE uuid = $1 AND state = 'running'";
    let open = batch.conn().query_opt(sql, args![id], |row| Ok((row.get(0)?, rows::json::<Pins, _>(row, 1)?))).await?;
    let fitting = open.filter(|(_, pins)| fits(pins.get(&params.pipeline), params.definition.as_ref()));
    Ok(fitting.map(|(replay, _)| Some(replay)))
}

/// If the token was used before, what it has is what is asked for again.
async fn resend(batch: &Batch, pipeline: i64, params: &LeaseJobs) -> Result<Option<Granted>, Fault> {
    let known = batch.conn().exists("SELECT 1 FROM lease WHERE token = $1 AND first", args![params.token]).await?;
    if !known {
        return Ok(None);
    }
    let sql = format!(
        "SELECT {JOB_COLUMNS}, l.epoch, l.probe FROM lease l JOIN job j ON j.seq = l.seq
         WHERE l.token = $1 AND j.pipeline = $2 ORDER BY l.first DESC, j.due_at, j.seq"
    );
    let found = batch.conn().query(&sql, args![params.token, pipeline], |row| {
        Ok((rows::queued_job(row)?, row.get::<u64>(JOB_COLUMN_COUNT)?, row.get::<bool>(JOB_COLUMN_COUNT + 1)?))
    });
    let mut granted = Granted::default();
    for (job, epoch, probe) in found.await? {
        hand_out(batch, params, &mut granted, job, (epoch, probe)).await?;
    }
    Ok(Some(granted))
}

impl<'a> Leasing<'a> {
    fn room(&self) -> usize {
        usize::try_from(self.params.limit).unwrap_or(usize::MAX).saturating_sub(self.taken.len())
    }

    /// How many more probes of each target may go, beside those that are out.
    async fn count_probes(&mut self) -> Result<(), Fault> {
        let sql = "SELECT count(*) FROM lease l JOIN job j ON j.seq = l.seq WHERE l.probe AND l.target = $2 AND j.pipeline = $1";
        for gate in &self.params.gates {
            let out: u32 = match gate.probes {
                0 => 0,
                _ => {
                    let of = args![self.pipeline, gate.target];
                    self.batch.conn().query_one(sql, of, |row| row.get(0)).await?
                }
            };
            self.gates.insert(&gate.target, gate.probes.saturating_sub(out));
        }
        Ok(())
    }

    /// Takes held jobs: those of freed targets, and as many probes as may go.
    async fn take_held(&mut self) -> Result<(), Fault> {
        let params = self.params;
        for target in &params.freed {
            let room = self.room();
            self.take_held_of(target, room, false).await?;
        }
        for gate in &params.gates {
            let probes = self.gates.get(gate.target.as_str()).copied().unwrap_or_default();
            let allowed = self.room().min(probes as usize);
            let taken = self.take_held_of(&gate.target, allowed, true).await?;
            self.gates.insert(&gate.target, probes.saturating_sub(u32::try_from(taken).unwrap_or(u32::MAX)));
        }
        Ok(())
    }

    async fn take_held_of(&mut self, target: &str, limit: usize, probe: bool) -> Result<usize, Fault> {
        if limit == 0 {
            return Ok(0);
        }
        let Some(lane) = lanes::find_held(self.batch, self.pipeline, self.replay, target).await? else { return Ok(0) };
        let found = self.pull(lane, None, limit).await?;
        let taken = found.len();
        self.taken.extend(found.into_iter().map(|job| (job, probe)));
        lanes::count_held(self.batch, lane, -i64::try_from(taken).unwrap_or(0)).await?;
        Ok(taken)
    }

    /// Takes due jobs from the lane. Those that a gate does not let through are held beside it, unless they need no target.
    async fn take_due(&mut self) -> Result<(), Fault> {
        let Some(lane) = self.lane.filter(|_| !matches!(self.params.only, Some(Only::HeldSince(_)))) else {
            return Ok(());
        };
        let mut held: BTreeMap<&'a str, Vec<(i64, i64)>> = BTreeMap::new();
        let mut set_aside = 0;
        while self.room() > 0 && set_aside < HELD_PER_LEASE_MAX {
            let due = self.pull(lane, Some(self.params.now), self.room()).await?;
            if due.is_empty() {
                break;
            }
            for job in due {
                let target = job.target.as_deref().filter(|_| job.saved.is_none()).unwrap_or_default();
                let Some((&target, probes)) = self.gates.iter_mut().find(|(gated, _)| **gated == target) else {
                    self.taken.push((job, false));
                    continue;
                };
                if let Some(left) = probes.checked_sub(1) {
                    *probes = left;
                    self.taken.push((job, true));
                    continue;
                }
                held.entry(target).or_default().push((job.due_at.as_millis(), job.seq));
                set_aside += 1;
            }
        }
        for (target, jobs) in held {
            let lane = lanes::held(self.batch, self.pipeline, self.replay, target).await?;
            lanes::push(self.batch, lane, &jobs).await?;
            lanes::count_held(self.batch, lane, i64::try_from(jobs.len()).unwrap_or(0)).await?;
        }
        Ok(())
    }

    /// Takes the first jobs out of a lane, those that are due if a time is given. What another takes at this moment is passed over.
    async fn pull(&self, lane: i64, due: Option<Timestamp>, limit: usize) -> Result<Vec<QueuedJob>, Fault> {
        let until = due.map_or(i64::MAX, Timestamp::as_millis);
        if let Some(only) = &self.params.only {
            return self.pull_some(lane, until, only, limit).await;
        }
        let sql = format!(
            "WITH taken AS (
                 DELETE FROM place WHERE ctid = ANY(ARRAY(
                     SELECT ctid FROM place WHERE lane = $1 AND due_at <= $2 ORDER BY due_at, seq LIMIT $3 FOR UPDATE SKIP LOCKED))
                 RETURNING seq)
             SELECT {JOB_COLUMNS} FROM job j WHERE j.seq = ANY(ARRAY(SELECT seq FROM taken)) ORDER BY j.due_at, j.seq"
        );
        self.batch.conn().query(&sql, args![lane, until, limit], |row| rows::queued_job(row)).await
    }

    /// The same of some of the first of the lane.
    async fn pull_some(&self, lane: i64, until: i64, only: &Only, limit: usize) -> Result<Vec<QueuedJob>, Fault> {
        let (condition, value) = match only {
            Only::Group(group) => ("j.origin::json ->> 'group' = $4", group.clone()),
            Only::HeldSince(time) => ("j.accepted_at <= $4::text::bigint", time.as_millis().to_string()),
        };
        let sql = format!(
            "WITH first AS MATERIALIZED (
                 SELECT seq, due_at FROM place WHERE lane = $1 AND due_at <= $2 ORDER BY due_at, seq LIMIT {LOOKED_AT_MAX}),
             taken AS (
                 DELETE FROM place WHERE ctid = ANY(ARRAY(
                     SELECT q.ctid FROM place q JOIN first f ON f.seq = q.seq AND f.due_at = q.due_at JOIN job j ON j.seq = q.seq
                     WHERE q.lane = $1 AND {condition}
                     ORDER BY q.due_at, q.seq LIMIT $3 FOR UPDATE OF q SKIP LOCKED))
                 RETURNING seq)
             SELECT {JOB_COLUMNS} FROM job j WHERE j.seq = ANY(ARRAY(SELECT seq FROM taken)) ORDER BY j.due_at, j.seq"
        );
        self.batch.conn().query(&sql, args![lane, until, limit, value], |row| rows::queued_job(row)).await
    }
}

/// When the first job of a lane is due.
async fn first_due(batch: &Batch, lane: i64) -> Result<Option<Timestamp>, Fault> {
    let sql = "SELECT due_at FROM place WHERE lane = $1 ORDER BY due_at LIMIT 1";
    batch.conn().query_opt(sql, args![lane], |row| rows::time(row, 0)).await
}

/// Moves a job that is leased in the ledger.
fn count_leased(batch: &mut Batch, pipeline: i64, job: &QueuedJob) -> Result<(), Fault> {
    batch.shift((pipeline, rows::round_text(job.round.as_ref())), JobState::Queued, Move::Lease)?;
    batch.ledger(pipeline).retrying -= i64::from(job.tally.tried());
    Ok(())
}

/// Gives jobs that were taken from a lane to the worker.
async fn grant(
    batch: &mut Batch,
    (pipeline, params): (i64, &LeaseJobs),
    taken: Vec<(QueuedJob, bool)>,
) -> Result<Granted, Fault> {
    let mut granted = Granted::default();
    if taken.is_empty() {
        return Ok(granted);
    }
    for (job, _) in &taken {
        count_leased(batch, pipeline, job)?;
    }
    let ids: Vec<JobId> = taken.iter().map(|(job, _)| job.id).collect();
    let seqs: Vec<i64> = taken.iter().map(|(job, _)| job.seq).collect();
    let probes: Vec<bool> = taken.iter().map(|(_, probe)| *probe).collect();
    let target = |(job, probe): &(QueuedJob, bool)| probe.then(|| job.target.clone().unwrap_or_default());
    let targets: Vec<Option<String>> = taken.iter().map(target).collect();
    let sql = "WITH e AS MATERIALIZED (SELECT nextval('epoch') AS epoch)
               INSERT INTO lease (job, seq, worker, token, epoch, until, probe, target, first)
               SELECT u.job, u.seq, $1, $2, e.epoch, $3, u.probe, u.target, u.place = 1
               FROM unnest($4::uuid[], $5::bigint[], $6::boolean[], $7::text[]) WITH ORDINALITY AS u(job, seq, probe, target, place), e
               RETURNING epoch";
    let leases = args![params.worker, params.token, params.until, ids, seqs, probes, targets];
    let epoch: u64 = batch.conn().query_one(sql, leases, |row| row.get(0)).await?;
    for (job, probe) in taken {
        hand_out(batch, params, &mut granted, job, (epoch, probe)).await?;
    }
    Ok(granted)
}

/// Answers with a job that the worker has.
async fn hand_out(
    batch: &Batch,
    params: &LeaseJobs,
    granted: &mut Granted,
    queued: QueuedJob,
    (epoch, probe): (u64, bool),
) -> Result<(), Fault> {
    let lease = Lease { job: queued.id, token: params.token, epoch };
    let saved = leases::saved(batch.conn(), queued.id, queued.saved).await?;
    let tried = match params.with_tried && queued.tally.tried() {
        true => leases::tried(batch.conn(), queued.id).await?,
        false => Vec::new(),
    };
    granted.inputs.push(queued.input);
    granted.jobs.push(LeasedJob {
        lease,
        number: queued.seq,
        pipeline: params.pipeline.clone(),
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
