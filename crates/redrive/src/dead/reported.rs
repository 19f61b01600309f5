//! Letters that other programs report as their jobs fail: read as those of an import are, each for the pipeline that it names. A
//! pipeline that nobody knows comes into being with its first letter. What is wrong with one is said of that one.

use redrive_core::actors::{Actor, Via};
use redrive_core::dead::Gate;
use redrive_core::dead::foreign::{Field, ForeignLetter, mask_task};
use redrive_core::dead::import::Arrival;
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::jobs::{Input, Origin};
use redrive_core::secrets::Secrets;
use redrive_core::state::JobState;
use serde_json::Value;

use super::evidence::NamedPayload;
use crate::config::Setting;
use crate::engine::Redrive;
use crate::error::Error;

/// Letters that are taken in in one transaction.
const BATCH: usize = 200;

/// The longest kind of a program, in characters.
const KIND_CHARS_MAX: usize = 64;

/// The most lost parts that are named.
const LOST_MAX: usize = 20;

/// Why a letter cannot be replayed whose input has masks.
const MASKED: &str = "its input has masks in place of what looked secret";

/// What became of a letter that was reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reported {
    /// It is new.
    New(JobId),
    /// It was reported before.
    Known(JobId),
    /// Its job is dead already: its failure was added.
    Again(JobId),
    /// The payload that it names was not uploaded, or is no longer there: nothing was taken.
    PayloadMissing,
    /// It is none, or cannot be taken.
    Refused(NotReported),
}

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
    /// Its key belongs to a job that is not dead.
    #[error("its key belongs to job {id}, which is {state}")]
    KeyTaken {
        /// The job.
        id: JobId,
        /// Where it is.
        state: JobState,
    },
}

impl NotReported {
    fn invalid(field: &'static str, why: impl Into<String>) -> Self {
        Self::Invalid { field: Some(field), why: why.into() }
    }
}

impl Redrive {
    /// Takes in letters that a program reports, and says what became of each, in their order. `may` says for which pipelines it
    /// may report.
    pub async fn report_letters(
        &self,
        setting: &Setting,
        letters: Vec<Value>,
        may: impl Fn(&PipelineName) -> bool,
        by: &Actor,
    ) -> Result<Vec<Reported>, Error> {
        let mut reported = Vec::with_capacity(letters.len());
        for batch in letters.chunks(BATCH) {
            reported.extend(self.report_batch(setting, batch, &may, by).await?);
        }
        Ok(reported)
    }

    async fn report_batch(
        &self,
        setting: &Setting,
        letters: &[Value],
        may: &impl Fn(&PipelineName) -> bool,
        by: &Actor,
    ) -> Result<Vec<Reported>, Error> {
        let (mut answers, mut fit, mut places) = (Vec::with_capacity(letters.len()), Vec::new(), Vec::new());
        for letter in letters {
            match self.read_reported(setting, letter, may) {
                Ok(Read { mut letter, id, payload, secrets }) => {
                    let known = match id {
                        Some(id) => self.store.get_job(id).await?.is_some() || fit.iter().any(|f| is(f, id)),
                        None => false,
                    };
                    let letter_id = letter.letter.id;
                    if known {
                        answers.push(Reported::Known(letter_id));
                        continue;
                    }
                    if let Some(named) = payload {
                        let Some(upload) = self.find_upload(&by.name, named.sha256).await? else {
                            answers.push(Reported::PayloadMissing);
                            continue;
                        };
                        named.attach(&mut letter, upload, &secrets);
                    }
                    places.push(answers.len());
                    answers.push(Reported::New(letter_id));
                    fit.push(letter);
                }
                Err(refused) => answers.push(Reported::Refused(refused)),
            }
        }
        let ids: Vec<_> = fit.iter().map(|letter| letter.letter.id).collect();
        // What programs report as it happens is no deed of anybody.
        let arrivals = self.import_letters(fit, &Actor::new(&by.name, Via::Automatic)).await?;
        for ((place, id), arrival) in places.into_iter().zip(ids).zip(arrivals) {
            answers[place] = match arrival {
                Ok(Arrival::New) => Reported::New(id),
                Ok(Arrival::Known) => Reported::Known(id),
                Ok(Arrival::FailedAgain(id)) => Reported::Again(id),
                // It died no later than what is known of it.
                Ok(Arrival::KeyTaken { id, state: JobState::Dead }) => Reported::Known(id),
                Ok(Arrival::KeyTaken { id, state }) => Reported::Refused(NotReported::KeyTaken { id, state }),
                Err(unfit) => Reported::Refused(NotReported::Invalid { field: None, why: unfit.to_string() }),
            };
        }
        Ok(answers)
    }

    /// The letter that an object is.
    fn read_reported(
        &self,
        setting: &Setting,
        letter: &Value,
        may: &impl Fn(&PipelineName) -> bool,
    ) -> Result<Read, NotReported> {
        let Value::Object(object) = letter else {
            return Err(NotReported::Invalid { field: None, why: "a letter is a JSON object".to_owned() });
        };
        let mut object = object.clone();
        let pipeline = named_pipeline(&mut object)?;
        if !may(&pipeline) {
            return Err(NotReported::Forbidden(pipeline));
        }
        let id = given_id(&mut object)?;
        if !object.get("input").is_some_and(Value::is_object) {
            return Err(NotReported::invalid("input", "input is missing, or is no JSON object"));
        }
        let payload = NamedPayload::take(&mut object).map_err(|why| NotReported::invalid("payload", why))?;
        let (kind, lost) = (origin_kind(&mut object), lost_parts(&mut object));
        flatten(&mut object, "failure");
        flatten(&mut object, "origin");
        let mut reading = setting.reading(pipeline);
        reading.named = vec![(Field::Key, "key".to_owned()), (Field::Target, "target".to_owned())];
        let invalid = |why| NotReported::Invalid { field: None, why };
        let mut read = reading.read(object, self.now()).map_err(invalid)?;
        let nothing = || Origin { kind: String::new(), group: None, details: Input::new() };
        read.letter.origin.get_or_insert_with(nothing).kind = kind.unwrap_or_else(|| "api".to_owned());
        if !lost.is_empty() {
            let why = format!("parts of its input are lost: {}", lost.join(", "));
            (read.letter.gate, read.letter.verdict) = (Gate::Never, Some(reading.secrets.mask(&why)));
        }
        if mask_task(&mut read.letter.input, &reading.secrets, &reading.key) {
            (read.letter.gate, read.letter.verdict) = (Gate::Never, Some(MASKED.to_owned()));
        }
        if let Some(id) = id {
            read.letter.id = id;
        }
        // It is told as it happens: what does not say when it died died just now.
        read.dated = true;
        Ok(Read { letter: read, id, payload, secrets: reading.secrets })
    }
}

/// A letter that was read.
struct Read {
    letter: ForeignLetter,
    /// The id that its program gave it.
    id: Option<JobId>,
    /// The payload that it names.
    payload: Option<NamedPayload>,
    /// What is masked in what came with that.
    secrets: Secrets,
}

fn is(letter: &ForeignLetter, id: JobId) -> bool {
    letter.letter.id == id
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
fn lost_parts(object: &mut Input) -> Vec<String> {
    match object.remove("lost") {
        Some(Value::Array(parts)) => parts.iter().take(LOST_MAX).filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}
