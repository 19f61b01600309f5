//! Accepting jobs: a few statements for however many there are.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use redrive_core::counts::{Delta, Event};
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::jobs::NewJob;
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Conn, args, storable};
use super::{lanes, rows};
use crate::contract::{EnqueueJobs, EnqueuedJob, SettleJobs};
use crate::error::StoreError;

/// Jobs that are to be accepted, and their inputs as they are kept: written out by who asks, not by the one that all share.
pub(super) struct Enqueue {
    pub(super) params: EnqueueJobs,
    pub(super) inputs: Vec<String>,
}

impl Enqueue {
    fn written(&self) -> impl Iterator<Item = Written<'_>> {
        let now = self.params.now;
        self.params.jobs.iter().zip(&self.inputs).map(move |(job, input)| Written { job, input, now })
    }
}

/// A job, its input and when it was brought.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    pub(super) job: &'a NewJob,
    pub(super) input: &'a str,
    pub(super) now: Timestamp,
}

/// At most so many jobs are written by one statement.
const TOGETHER_MAX: usize = 2_000;

/// Where a job is, and when it came to its end.
pub(super) type Place = (JobState, Option<Timestamp>);

/// Accepts jobs for which there is a bound.
pub(super) async fn enqueue(batch: &mut Batch, asked: &Enqueue) -> Result<Vec<EnqueuedJob>, Fault> {
    let params = &asked.params;
    let pipeline = match params.bounds.is_empty() {
        true => batch.pipeline(&params.pipeline).await?,
        false => room_for(batch, params).await?,
    };
    accept(batch, pipeline, &asked.written().collect::<Vec<_>>()).await
}

/// Accepts the jobs of many callers, for which there is no bound, together; answers each of them, in their order.
pub(super) async fn enqueue_all(batch: &mut Batch, asked: &[&Enqueue]) -> Result<Vec<Vec<EnqueuedJob>>, Fault> {
    let mut answers: Vec<Vec<EnqueuedJob>> = asked.iter().map(|_| Vec::new()).collect();
    let mut by_pipeline: BTreeMap<&PipelineName, Vec<usize>> = BTreeMap::new();
    for (n, asked) in asked.iter().enumerate() {
        by_pipeline.entry(&asked.params.pipeline).or_default().push(n);
    }
    for (name, callers) in by_pipeline {
        let pipeline = batch.pipeline(name).await?;
        let mut waiting = callers.as_slice();
        while let [first, ..] = waiting {
            let mut jobs: Vec<Written<'_>> = asked[*first].written().collect();
            let mut together = 1;
            while let Some(next) = waiting.get(together)
                && jobs.len() + asked[*next].inputs.len() <= TOGETHER_MAX
            {
                jobs.extend(asked[*next].written());
                together += 1;
            }
            let mut accepted = accept(batch, pipeline, &jobs).await?.into_iter();
            for caller in &waiting[..together] {
                answers[*caller] = accepted.by_ref().take(asked[*caller].inputs.len()).collect();
            }
            waiting = &waiting[together..];
        }
    }
    Ok(answers)
}

/// Refuses the batch if its new jobs do not fit. Nothing is written before that is known.
async fn room_for(batch: &mut Batch, params: &EnqueueJobs) -> Result<i64, Fault> {
    let found = batch.find_pipeline(&params.pipeline).await?;
    let (mut standing, mut known) = ((0, 0), 0);
    if let Some(pipeline) = found {
        standing = batch.queued_and_dead(pipeline).await?;
        let keys = keys_of(&params.jobs.iter().collect::<Vec<_>>());
        let owners = owners(batch.conn(), pipeline, &keys).await?;
        known = keys.iter().filter(|key| owners.contains_key(*key)).count() as u64;
    }
    let new = params.jobs.len() as u64 - known;
    if let Some(exceeded) = params.bounds.exceeded(new, standing)
        && !are_known(batch.conn(), &params.jobs).await?
    {
        return Err(StoreError::exceeded(&params.pipeline, exceeded).into());
    }
    batch.pipeline(&params.pipeline).await
}

/// Whether jobs are here already, in whatever state, so that they are sent again because their answer was lost.
async fn are_known(conn: &Conn, jobs: &[NewJob]) -> Result<bool, Fault> {
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    let places = places_of(conn, &ids).await?;
    Ok(ids.iter().all(|id| places.contains_key(id)))
}

/// A key with its round.
pub(super) type Key = (String, String);

fn keys_of(jobs: &[&NewJob]) -> Vec<Key> {
    let key = |job: &&NewJob| Some((storable(job.key.as_ref()?), rows::round_text(job.round.as_ref()).to_owned()));
    jobs.iter().filter_map(key).collect()
}

/// The jobs that have keys, and the days on which runs last met these.
pub(super) async fn owners(conn: &Conn, pipeline: i64, keys: &[Key]) -> Result<HashMap<Key, (JobId, i64)>, Fault> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let (names, rounds): (Vec<&str>, Vec<&str>) =
        keys.iter().map(|(key, round)| (key.as_str(), round.as_str())).unzip();
    let sql = "SELECT i.key, i.round, i.job, i.met_on FROM unnest($2::text[], $3::text[]) AS u(key, round)
               JOIN identity i ON i.pipeline = $1 AND i.key = u.key AND i.round = u.round";
    let found = conn.query(sql, args![pipeline, names, rounds], |row| {
        Ok(((row.get(0)?, row.get(1)?), (rows::job_id(row, 2)?, row.get(3)?)))
    });
    Ok(found.await?.into_iter().collect())
}

/// Where jobs are, told by the tables that have them.
pub(super) async fn places_of(conn: &Conn, ids: &[JobId]) -> Result<HashMap<JobId, Place>, Fault> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = "SELECT id, 'queued', NULL::bigint FROM job WHERE id = ANY($1)
               UNION ALL SELECT job, 'leased', NULL FROM lease WHERE job = ANY($1)
               UNION ALL SELECT job, 'done', done_at FROM done WHERE job = ANY($1)
               UNION ALL SELECT id, 'dead', died_at FROM dead WHERE id = ANY($1)
               UNION ALL SELECT job, 'discarded', discarded_at FROM discarded WHERE job = ANY($1)";
    let found = conn
        .query(sql, args![ids], |row| {
            Ok((rows::job_id(row, 0)?, (rows::parsed::<JobState, _>(row, 1)?, rows::time_opt(row, 2)?)))
        })
        .await?;
    let mut places = HashMap::new();
    for (id, place) in found {
        // A job that is leased has a row of both kinds.
        if !matches!(places.get(&id), Some((JobState::Leased, _))) {
            places.insert(id, place);
        }
    }
    Ok(places)
}

/// Accepts jobs of a pipeline, unless their keys are known; answers in their order.
async fn accept(batch: &mut Batch, pipeline: i64, jobs: &[Written<'_>]) -> Result<Vec<EnqueuedJob>, Fault> {
    let Some(now) = jobs.iter().map(|written| written.now).max() else { return Ok(Vec::new()) };
    let unkeyed: Vec<JobId> =
        jobs.iter().filter(|written| written.job.key.is_none()).map(|written| written.job.id).collect();
    // A key tells that a job was sent again; of others it is asked.
    let known = places_of(batch.conn(), &unkeyed).await?;
    let unknown: Vec<JobId> = unkeyed.into_iter().filter(|id| !known.contains_key(id)).collect();
    let mut claimed = insert(batch, pipeline, jobs, (&unknown, now)).await?;
    let answer = |written: &Written<'_>| {
        // Of two jobs with one key and one id the second was sent again.
        let is_new = written.job.key.is_none() || claimed.remove(&written.job.id);
        is_new.then_some(EnqueuedJob::Accepted(written.job.id))
    };
    let answers: Vec<Option<EnqueuedJob>> = jobs.iter().map(answer).collect();
    let met: Vec<&NewJob> =
        jobs.iter().zip(&answers).filter(|(_, answer)| answer.is_none()).map(|(written, _)| written.job).collect();
    let mut met = meet(batch.conn(), pipeline, &met, now).await?.into_iter();
    answers.into_iter().map(|answer| answer.or_else(|| met.next()).ok_or(Fault::NoRow)).collect()
}

/// Accepts the jobs that those that are done hand on, however full their queues are.
pub(super) async fn hand_on(
    batch: &mut Batch,
    params: &SettleJobs,
    inputs: &[Vec<String>],
    moved: &[bool],
) -> Result<(), Fault> {
    let mut by_pipeline: Vec<(&PipelineName, Vec<Written<'_>>)> = Vec::new();
    let settled = params.settlements.iter().zip(inputs).zip(moved).filter(|(_, moved)| **moved);
    for ((settlement, inputs), _) in settled {
        for (handed, input) in settlement.handed_on.iter().zip(inputs) {
            let written = Written { job: &handed.job, input, now: params.now };
            match by_pipeline.iter_mut().find(|(name, _)| **name == handed.pipeline) {
                Some((_, jobs)) => jobs.push(written),
                None => by_pipeline.push((&handed.pipeline, vec![written])),
            }
        }
    }
    for (name, jobs) in by_pipeline {
        let pipeline = batch.pipeline(name).await?;
        accept(batch, pipeline, &jobs).await?;
    }
    Ok(())
}

/// Answers for jobs whose keys are known. That a run met them is written at most once a day: they are not forgotten for a while.
/// A statement of its own: the one that found the keys taken may not have seen by whom.
async fn meet(conn: &Conn, pipeline: i64, jobs: &[&NewJob], now: Timestamp) -> Result<Vec<EnqueuedJob>, Fault> {
    let keys = keys_of(jobs);
    let owners = owners(conn, pipeline, &keys).await?;
    let unmet: BTreeSet<&Key> =
        keys.iter().filter(|key| owners.get(*key).is_some_and(|(_, met_on)| *met_on < now.day())).collect();
    if !unmet.is_empty() {
        let (names, rounds): (Vec<&str>, Vec<&str>) =
            unmet.iter().map(|(key, round)| (key.as_str(), round.as_str())).unzip();
        conn.execute(
            "UPDATE identity i SET met_on = $4 FROM unnest($2::text[], $3::text[]) AS u(key, round)
             WHERE i.pipeline = $1 AND i.key = u.key AND i.round = u.round AND i.met_on < $4",
            args![pipeline, names, rounds, now.day()],
        )
        .await?;
    }
    let ids: Vec<JobId> = owners.values().map(|(id, _)| *id).collect();
    let places = places_of(conn, &ids).await?;
    let answer = |(job, key): (&&NewJob, &Key)| {
        let (owner, _) = owners.get(key).ok_or(Fault::NoRow)?;
        if *owner == job.id {
            // It was sent again, because its answer was lost.
            return Ok(EnqueuedJob::Accepted(*owner));
        }
        let (state, ended_at) = *places.get(owner).ok_or(Fault::NoRow)?;
        Ok(EnqueuedJob::Known { id: *owner, state, ended_at })
    };
    jobs.iter().zip(&keys).map(answer).collect()
}

/// Gives keys to jobs, writes those that are new, each once however often it is named, and counts them: those that have a key now that
/// nobody had (of several the first gets it), and those without one that are named. Says which got their keys.
async fn insert(
    batch: &mut Batch,
    pipeline: i64,
    jobs: &[Written<'_>],
    (unknown, now): (&[JobId], Timestamp),
) -> Result<BTreeSet<JobId>, Fault> {
    let ids: Vec<JobId> = jobs.iter().map(|written| written.job.id).collect();
    let rounds: Vec<&str> = jobs.iter().map(|written| rows::round_text(written.job.round.as_ref())).collect();
    let keys: Vec<Option<&str>> = jobs.iter().map(|written| written.job.key.as_deref()).collect();
    let targets: Vec<Option<&str>> = jobs.iter().map(|written| written.job.target.as_deref()).collect();
    let accepted: Vec<Timestamp> = jobs.iter().map(|written| written.now).collect();
    let due: Vec<Timestamp> = jobs.iter().map(|written| written.job.due_at).collect();
    let inputs: Vec<&str> = jobs.iter().map(|written| written.input).collect();
    let origin = |written: &Written<'_>| written.job.origin.as_ref().map(serde_json::to_string).transpose();
    let origins: Vec<Option<String>> = jobs.iter().map(origin).collect::<Result<_, _>>()?;
    let sql = "WITH u AS MATERIALIZED (
                   SELECT * FROM unnest($2::bigint[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::text[],
                                        $10::text[])
                                 WITH ORDINALITY AS u(accepted_at, id, round, key, target, due_at, input, origin, place)),
               claimed AS (
                   INSERT INTO identity (pipeline, key, round, job, met_on)
                   SELECT $1, key, round, id, $12 FROM u WHERE key IS NOT NULL ORDER BY key, round, place
                   ON CONFLICT DO NOTHING RETURNING job),
               new AS (
                   INSERT INTO job (seq, id, pipeline, round, key, target, accepted_at, due_at, input, origin)
                   SELECT nextval('job_number'), s.id, $1, s.round, s.key, s.target, s.accepted_at, s.due_at, s.input, s.origin
                   FROM (SELECT * FROM u WHERE CASE WHEN key IS NULL THEN id IN (SELECT unnest($11::uuid[]))
                                                    ELSE id IN (SELECT job FROM claimed) END
                         ORDER BY place) s
                   ON CONFLICT (id) DO NOTHING RETURNING seq, id, due_at),
               placed AS (INSERT INTO place (lane, due_at, seq) SELECT $3, due_at, seq FROM new)
               SELECT id, true FROM new UNION ALL SELECT job, false FROM claimed";
    let lane = lanes::queue(pipeline);
    let new = args![pipeline, accepted, lane, ids, rounds, keys, targets, due, inputs, origins, unknown, now.day()];
    let found = batch.conn().query(sql, new, |row| Ok((rows::job_id(row, 0)?, row.get::<bool>(1)?))).await?;
    let (mut inserted, mut claimed) = (BTreeSet::new(), BTreeSet::new());
    for (id, is_inserted) in found {
        if is_inserted {
            inserted.insert(id)
        } else {
            claimed.insert(id)
        };
    }
    for (written, round) in jobs.iter().zip(rounds) {
        if inserted.remove(&written.job.id) {
            count_accepted(batch, (pipeline, round), written.now);
        }
    }
    Ok(claimed)
}

fn count_accepted(batch: &mut Batch, (pipeline, round): (i64, &str), now: Timestamp) {
    let ledger = batch.ledger(pipeline);
    ledger.accepted += 1;
    ledger.queued += 1;
    if let Some(ledger) = batch.rounds.add(pipeline, round, now) {
        ledger.queued += 1;
    }
    batch.count(pipeline, now, Delta::of(Event::Accepted));
}
