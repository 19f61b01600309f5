//! Letters that other programs report as their jobs fail: read as those of an import are, each for the pipeline that it names. A
//! pipeline that nobody knows comes into being with its first letter. What is wrong with one is said of that one.

use redrive_core::actors::{Actor, Via};
use redrive_core::dead::foreign::{Field, id_of_failure, id_within, kept_lost, mask_task};
use redrive_core::dead::import::{Arrival, Way};
use redrive_core::dead::{DeadLetter, Gate};
use redrive_core::failures::{FailureReport, Reason};
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::jobs::{Input, InputLimits, Origin, json_bytes};
use serde_json::Value;

use super::evidence::{Bytes, ReportedPayload};
use super::import::Brought;
use crate::config::Setting;
use crate::engine::Redrive;
use crate::error::Error;
use crate::vault::Vault;

/// Letters that are taken in in one transaction.
const BATCH: usize = 200;

/// How large they may be together, in bytes of JSON; the last one may be larger.
const BATCH_BYTES: u64 = 1024 * 1024;

/// The longest kind of a program, in characters.
const KIND_CHARS_MAX: usize = 64;

/// Who reports letters, and where they are read and kept.
pub struct Reporting<'a, M> {
    /// How pipelines read theirs.
    pub setting: &'a Setting,
    /// Where payloads are kept; without one, those that come with letters are not.
    pub vault: Option<&'a Vault>,
    /// Who reports.
    pub by: &'a Actor,
    /// For which pipelines they may.
    pub may: M,
    /// Set if that is some pipelines only.
    pub is_limited: bool,
}

/// What became of a letter that was reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reported {
    /// It is new.
    New(JobId),
    /// It was reported before.
    Known(JobId),
    /// Its job is dead already, or waits, or runs: its failure was added.
    Again(JobId),
    /// The payload that it names was not uploaded, or is no longer there: nothing was taken.
    PayloadMissing,
    /// It is none, or cannot be taken.
    Refused(NotReported),
}

/// The fields that are read of a letter, besides its input.
const READ: [&str; 10] =
    ["message", "died_at", "attempts", "key", "target", "code", "error_type", "stack", "proxy", "http_status"];

/// Why a letter was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReported {
    /// It is no object, or has not what a letter has.
    #[error("{why}")]
    Invalid {
        /// The field that is wrong, if one is.
        field: Option<&'static str>,
        /// What is wrong.
        why: String,
    },
    /// Who reports it may not, for this pipeline.
    #[error("letters of pipeline {0} are not for this token to report")]
    Forbidden(PipelineName),
}

impl NotReported {
    fn invalid(field: &'static str, why: impl Into<String>) -> Self {
        Self::Invalid { field: Some(field), why: why.into() }
    }

    /// What cannot be read as what its name promises: that is said first.
    fn unread(why: String) -> Self {
        let first = why.split_whitespace().next().unwrap_or_default();
        let field = READ.into_iter().find(|name| *name == first);
        // Without a message there is nothing of a failure.
        Self::Invalid { field: field.or_else(|| why.starts_with("it says nothing").then_some("message")), why }
    }
}

impl Redrive {
    /// Takes in letters that a program reports, and says what became of each, in their order.
    pub async fn report_letters<M: Fn(&PipelineName) -> bool>(
        &self,
        letters: Vec<Value>,
        reporting: &Reporting<'_, M>,
    ) -> Result<Vec<Reported>, Error> {
        let mut reported = Vec::with_capacity(letters.len());
        let (mut letters, limits) = (letters.into_iter(), reporting.setting.input_limits());
        while letters.len() > 0 {
            reported.extend(self.report_batch(&mut letters, (reporting, &limits)).await?);
        }
        Ok(reported)
    }

    async fn report_batch<M: Fn(&PipelineName) -> bool>(
        &self,
        letters: &mut std::vec::IntoIter<Value>,
        (reporting, limits): (&Reporting<'_, M>, &InputLimits),
    ) -> Result<Vec<Reported>, Error> {
        let (mut answers, mut fit, mut bytes) = (Vec::new(), Vec::new(), 0);
        while answers.len() < BATCH && bytes < BATCH_BYTES {
            let Some(letter) = letters.next() else { break };
            bytes += json_bytes(&letter);
            // One letter may take long: others that this thread answers have their turn.
            tokio::task::yield_now().await;
            let mut read = self.read_reported((reporting, limits), letter);
            if let Ok((Brought { letter, .. }, _, true)) = &mut read
                && reporting.is_limited
            {
                self.keep_apart(letter).await?;
            }
            let answer = match read {
                Ok((mut brought, payload, _)) => {
                    match self.with_payload(reporting, &mut brought.letter, payload).await? {
                        true => {
                            fit.push(brought);
                            None
                        }
                        false => Some(Reported::PayloadMissing),
                    }
                }
                Err(refused) => Some(Reported::Refused(refused)),
            };
            answers.push(answer);
        }
        let ids: Vec<_> = fit.iter().map(|brought| brought.letter.id).collect();
        // What programs report as it happens is no deed of anybody.
        let arrivals = self.import_letters(fit, &Actor::new(&reporting.by.name, Via::Automatic)).await?;
        let mut arrived = ids.into_iter().zip(arrivals).map(|(id, arrival)| match arrival {
            Ok(Arrival::New) => Reported::New(id),
            Ok(Arrival::FailedAgain(id) | Arrival::FailedBesides(id)) => Reported::Again(id),
            Ok(Arrival::Known(id) | Arrival::KeyTaken { id, .. }) => Reported::Known(id),
            Err(unfit) => Reported::Refused(NotReported::Invalid { field: unfit.field(), why: unfit.to_string() }),
        });
        let missing = || Error::Internal("the store did not say what became of a letter".to_owned());
        answers.into_iter().map(|answer| answer.or_else(|| arrived.next()).ok_or_else(missing)).collect()
    }

    /// Gives a letter an id of its pipeline, unless it is known there by its own: who may report for some pipelines only does not learn
    /// which ids others have.
    async fn keep_apart(&self, letter: &mut DeadLetter) -> Result<(), Error> {
        let known = self.store.get_job(letter.id).await?;
        if known.is_none_or(|known| known.job.pipeline != letter.pipeline) {
            letter.id = id_within(&letter.pipeline, letter.id);
        }
        Ok(())
    }

    /// Adds the payload of a letter to it; says whether it is there.
    async fn with_payload<M: Fn(&PipelineName) -> bool>(
        &self,
        Reporting { vault, by, may, .. }: &Reporting<'_, M>,
        letter: &mut DeadLetter,
        payload: Option<ReportedPayload>,
    ) -> Result<bool, Error> {
        let Some(payload) = payload else { return Ok(true) };
        let kept = match (&payload.bytes, vault) {
            (Bytes::Uploaded(sha256), _) => {
                let Some(upload) = self.find_upload(&by.name, *sha256, may).await? else { return Ok(false) };
                (upload.hash, upload.size_bytes)
            }
            (Bytes::Inline(bytes), Some(vault)) => {
                let kept = vault.save_bytes(bytes).await?;
                (kept.hash, kept.size_bytes)
            }
            (Bytes::Inline(_), None) => return Ok(true),
        };
        payload.attach(letter, kept);
        Ok(true)
    }

    /// The letter that an object is, the payload that it names, and whether its sender gave it an id.
    fn read_reported<M: Fn(&PipelineName) -> bool>(
        &self,
        (Reporting { setting, may, .. }, limits): (&Reporting<'_, M>, &InputLimits),
        letter: Value,
    ) -> Result<(Brought, Option<ReportedPayload>, bool), NotReported> {
        let Value::Object(mut object) = letter else {
            return Err(NotReported::Invalid { field: None, why: "a letter is a JSON object".to_owned() });
        };
        let pipeline = named_pipeline(&mut object)?;
        if !may(&pipeline) {
            return Err(NotReported::Forbidden(pipeline));
        }
        let given = given_id(&mut object)?;
        let Some(input) = object.get("input").and_then(Value::as_object) else {
            return Err(NotReported::invalid("input", "input is missing, or is no JSON object"));
        };
        limits.check(&pipeline, input).map_err(|why| NotReported::invalid("input", why.to_string()))?;
        for part in ["failure", "origin"] {
            if object.get(part).is_some_and(|inside| !inside.is_object() && !inside.is_null()) {
                return Err(NotReported::invalid(part, format!("{part} is no JSON object")));
            }
        }
        let mut reading = setting.reading(pipeline);
        let payload = ReportedPayload::take(&mut object, &reading.secrets);
        let payload = payload.map_err(|why| NotReported::invalid("payload", why))?;
        let (kind, lost) = (origin_kind(&mut object), lost_parts(&mut object)?);
        flatten(&mut object, "failure");
        reading.told = told(&mut object)?;
        flatten(&mut object, "origin");
        reading.named = vec![(Field::Key, "key".to_owned()), (Field::Target, "target".to_owned())];
        let now = self.now();
        let read = reading.read(object, now).map_err(NotReported::unread)?;
        let mut letter = read.letter;
        letter.id = given.unwrap_or_else(|| match read.dated {
            true => id_of_failure(&letter.pipeline, letter.key.as_deref(), letter.died_at),
            false => {
                let (at, bits) = self.new_id();
                JobId::new(at, bits)
            }
        });
        let tracked = setting.tracked_in(&letter.pipeline, &letter.input);
        let masked = mask_task(&mut letter.input, &reading.secrets, &reading.key);
        let lost = kept_lost(lost.into_iter().map(|part| reading.secrets.mask(&part)).chain(masked).collect());
        let told = letter.origin.take();
        let kind = kind.unwrap_or_else(|| "api".to_owned());
        let (group, details) = told.map(|told| (told.group, told.details)).unwrap_or_default();
        let origin = Origin { group, details, ..Origin::over_network(kind) };
        lack(&mut letter, origin, lost);
        Ok((Brought { letter, way: Way::Reported, tracked }, payload, given.is_some()))
    }
}

/// Says where a letter comes from, and keeps it from being replayed for as long as nobody supplies what it lacks.
pub(super) fn lack(letter: &mut DeadLetter, origin: Origin, lost: Vec<String>) {
    if !lost.is_empty() {
        let named: Vec<_> = lost.iter().map(|name| if name.is_empty() { "all of it" } else { name.as_str() }).collect();
        let why = format!("its input lacks {}: supply that with --set to replay it", named.join(", "));
        (letter.gate, letter.verdict) = (Gate::Never, Some(why));
    }
    letter.origin = Some(Origin { lost, ..origin });
}

/// What is told of a failure in our own words.
fn told(object: &mut Input) -> Result<FailureReport, NotReported> {
    let mut told = FailureReport::default();
    if let Some(reason) = taken(object, "reason") {
        let text = reason.as_str().unwrap_or_default();
        told.reason = Some(text.parse::<Reason>().map_err(|why| NotReported::invalid("reason", why.to_string()))?);
    }
    told.stage = taken(object, "stage").and_then(|stage| stage.as_str().map(str::to_owned));
    told.retry_after_secs = taken(object, "retry_after").and_then(|secs| secs.as_f64());
    if let Some(misses) = taken(object, "misses") {
        told.misses = serde_json::from_value(misses).map_err(|why| NotReported::invalid("misses", why.to_string()))?;
    }
    Ok(told)
}

fn taken(object: &mut Input, name: &str) -> Option<Value> {
    object.remove(name).filter(|value| !value.is_null())
}

fn named_pipeline(object: &mut Input) -> Result<PipelineName, NotReported> {
    match object.remove("pipeline") {
        Some(Value::String(name)) => name.parse().map_err(|error| NotReported::invalid("pipeline", format!("{error}"))),
        _ => Err(NotReported::invalid("pipeline", "pipeline is missing: say which the letter is for")),
    }
}

fn given_id(object: &mut Input) -> Result<Option<JobId>, NotReported> {
    match object.remove("id") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) => id.parse().map(Some).map_err(|error| NotReported::invalid("id", format!("{error}"))),
        Some(_) => Err(NotReported::invalid("id", "id is no text: expected a UUID")),
    }
}

/// Has what stands under a name stand beside the input, as it may as well.
fn flatten(object: &mut Input, under: &str) {
    if object.get(under).is_some_and(Value::is_object)
        && let Some(Value::Object(inside)) = object.remove(under)
    {
        for (name, value) in inside {
            object.entry(name).or_insert(value);
        }
    }
}

/// What kind of program it comes from, if it says so.
fn origin_kind(object: &mut Input) -> Option<String> {
    let kind = object.get_mut("origin")?.as_object_mut()?.remove("kind")?;
    kind.as_str().map(|kind| kind.chars().take(KIND_CHARS_MAX).collect())
}

/// The parts of an input that its program could not send.
fn lost_parts(object: &mut Input) -> Result<Vec<String>, NotReported> {
    match object.remove("lost") {
        None | Some(Value::Null) => Ok(Vec::new()),
        // What is not understood must not be taken for whole.
        Some(parts) => serde_json::from_value(parts).map_err(|_| {
            NotReported::invalid("lost", "lost is no list of names: say which parts of the input did not come")
        }),
    }
}
