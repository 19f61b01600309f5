//! Jobs that come over the network: marked so, and without what goes under secret names in their inputs. One that lacks something by
//! that is not run with masks in it: it is a dead letter at once, which goes when somebody supplies what it lacks.

use redrive_core::actors::{Actor, Via};
use redrive_core::dead::foreign::{kept_lost, mask_fields};
use redrive_core::dead::import::{Arrival, Way};
use redrive_core::dead::{DeadLetter, Gate};
use redrive_core::failures::{Failure, FailureReport, Reason};
use redrive_core::hand_on::HandedJob;
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::jobs::{NewJob, Origin};
use redrive_core::policy::Bounds;
use redrive_core::time::Timestamp;
use redrive_store::StoreError;
use redrive_store::contract::EnqueuedJob;

use super::import::Brought;
use super::reported::lack;
use crate::config::Setting;
use crate::engine::{Redrive, check_keys};
use crate::error::Error;

/// The code by which such a letter is known.
const CODE: &str = "secret_in_input";

/// What became of a job that came over the network.
#[derive(Clone, Debug, PartialEq)]
pub enum Accepted {
    /// It is queued, or its key was known.
    Enqueued(EnqueuedJob),
    /// It is a dead letter that lacks fields of its input.
    Withheld {
        /// Its id.
        id: JobId,
        /// The fields, by name or by JSON pointer.
        lost: Vec<String>,
    },
}

/// A job that goes without fields of its input, as a letter.
pub(crate) struct Withheld(Brought);

impl Redrive {
    /// Accepts jobs that came over the network, and says what became of each, in their order.
    pub async fn accept_jobs(
        &self,
        setting: &Setting,
        pipeline: &PipelineName,
        jobs: Vec<NewJob>,
        by: &Actor,
    ) -> Result<Vec<Accepted>, Error> {
        let (secrets, key_fields) = (setting.secrets(pipeline), setting.key_fields(pipeline));
        let (mut whole, mut withheld, mut lacking) = (Vec::with_capacity(jobs.len()), Vec::new(), Vec::new());
        check_keys(&jobs)?;
        for mut job in jobs {
            let lost = kept_lost(mask_fields(&mut job.input, &secrets, &key_fields));
            lacking.push(lost.clone());
            job.origin = Some(came(job.origin.take()));
            match lost.is_empty() {
                true => whole.push(job),
                false => {
                    let tracked = setting.tracked_in(pipeline, &job.input);
                    let letter = letter(pipeline, job, lost, self.now());
                    withheld.push(Withheld(Brought { letter, way: Way::Imported { dated: false }, tracked }));
                }
            }
        }
        let bounds = setting.policy(pipeline).bounds();
        if !withheld.is_empty() {
            self.check_letters(pipeline, bounds).await?;
        }
        let mut enqueued = match whole.is_empty() {
            true => Vec::new(),
            false => self.enqueue_jobs(pipeline, bounds, whole).await?,
        }
        .into_iter();
        let mut buried = self.withhold(withheld, by).await?.into_iter();
        let missing = || Error::Internal("the store did not say what became of a job".to_owned());
        let told = |lost: Vec<String>| match lost.is_empty() {
            true => enqueued.next().map(Accepted::Enqueued).ok_or_else(missing),
            false => match buried.next().ok_or_else(missing)? {
                (id, Arrival::New) => Ok(Accepted::Withheld { id, lost }),
                (_, Arrival::KeyTaken { id, state }) => {
                    Ok(Accepted::Enqueued(EnqueuedJob::Known { id, state, ended_at: None }))
                }
                (_, Arrival::Known(id) | Arrival::FailedAgain(id) | Arrival::FailedBesides(id)) => {
                    Ok(Accepted::Withheld { id, lost })
                }
            },
        };
        lacking.into_iter().map(told).collect()
    }

    /// Refuses an enqueue while the pipeline has too many dead letters.
    async fn check_letters(&self, pipeline: &PipelineName, bounds: Bounds) -> Result<(), Error> {
        let letters = u64::try_from(self.ledger(pipeline).await?.dead).unwrap_or(0);
        match (Bounds { queued_max: None, ..bounds }).exceeded(1, (0, letters)) {
            Some(exceeded) => Err(StoreError::exceeded(pipeline, exceeded).into()),
            None => Ok(()),
        }
    }

    /// Jobs that are handed on over the network: those that lack nothing, and apart those that do.
    pub(crate) fn without_secrets(
        &self,
        setting: &Setting,
        handed_on: Vec<HandedJob>,
    ) -> (Vec<HandedJob>, Vec<Withheld>) {
        let (mut whole, mut withheld) = (Vec::with_capacity(handed_on.len()), Vec::new());
        for HandedJob { pipeline, mut job } in handed_on {
            let (secrets, key_fields) = (setting.secrets(&pipeline), setting.key_fields(&pipeline));
            let lost = kept_lost(mask_fields(&mut job.input, &secrets, &key_fields));
            if lost.is_empty() {
                whole.push(HandedJob { pipeline, job });
                continue;
            }
            let tracked = setting.tracked_in(&pipeline, &job.input);
            let letter = letter(&pipeline, job, lost, self.now());
            withheld.push(Withheld(Brought { letter, way: Way::Imported { dated: false }, tracked }));
        }
        (whole, withheld)
    }

    /// Takes in letters of what goes without fields of its input.
    pub(crate) async fn withhold(&self, letters: Vec<Withheld>, by: &Actor) -> Result<Vec<(JobId, Arrival)>, Error> {
        if letters.is_empty() {
            return Ok(Vec::new());
        }
        let letters: Vec<_> = letters.into_iter().map(|Withheld(brought)| brought).collect();
        let ids: Vec<_> = letters.iter().map(|brought| brought.letter.id).collect();
        // That a job is not run is no deed of anybody.
        let arrivals = self.import_letters(letters, &Actor::new(&by.name, Via::Automatic)).await?;
        let arrived = ids.into_iter().zip(arrivals).map(|(id, arrival)| match arrival {
            Ok(arrival) => Ok((id, arrival)),
            Err(unfit) => Err(Error::Internal(format!("a job was not taken: {unfit}"))),
        });
        arrived.collect()
    }
}

/// Where a job came from that came over the network, with what was told of it.
fn came(told: Option<Origin>) -> Origin {
    let trace = told.as_ref().and_then(Origin::traceparent).map(str::to_owned);
    Origin::over_network("api").told(told.and_then(|origin| origin.group), trace)
}

fn letter(pipeline: &PipelineName, job: NewJob, lost: Vec<String>, now: Timestamp) -> DeadLetter {
    let NewJob { id, round, key, target, input, origin, .. } = job;
    let message = format!("fields of the input have secret names, and were not taken: {}", lost.join(", "));
    let report = FailureReport::new(Reason::RejectedInput, message.clone()).with_code(CODE);
    let mut letter = DeadLetter {
        id,
        number: None,
        pipeline: pipeline.clone(),
        round,
        key,
        input,
        target,
        reason: Reason::RejectedInput,
        code: report.code.clone(),
        message,
        attempts: 0,
        crashes: 0,
        replays: 0,
        gate: Gate::Never,
        verdict: None,
        cause: None,
        task_id: None,
        original: None,
        origin: None,
        definition: None,
        accepted_at: now,
        died_at: now,
        http_status: None,
        proxy: None,
        payload: None,
        payload_place: None,
        payload_address: None,
        uncounted: 0,
        payload_missing: false,
        payload_unreadable: None,
        payload_cut: false,
        failures: Some(vec![Failure::told(&report, Reason::RejectedInput, now)]),
    };
    lack(&mut letter, origin.unwrap_or_else(|| came(None)), lost);
    letter
}
