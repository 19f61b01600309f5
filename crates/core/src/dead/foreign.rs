//! Dead letters of other programs: an object in which the failure is told under the usual names, and everything else is the input.
//!
//! The same object is always the same letter, so that a file that is taken in twice adds nothing: a letter's id is made of its
//! pipeline and its key, and its key is the one by which a run would know the task.

mod attempts;
mod errors;
mod fields;
mod origins;

use serde_json::{Map, Value, json};

use super::DeadLetter;
use crate::failures::{Failure, FailureReport, Reason};
use crate::ids::{JobId, PipelineName};
use crate::jobs::{Input, NewJob, ORIGIN_BYTES_MAX, Origin, take_field};
use crate::rules::{Rule, Verdict, classify};
use crate::secrets::Secrets;
use crate::tasks::{Identity, identify};
use crate::time::Timestamp;

use self::attempts::{Attempts, Told};
use self::errors::{add_error, add_uncaught, read_error};
pub use self::fields::Field;
use self::origins::mask_details;
pub use self::origins::{SOME_PROXY, kept_lost, mask_fields, mask_task, proxy_label};

/// Words of a message that are looked at for a code.
const WORDS_WITH_CODE: usize = 20;

/// The most that is kept of a message, and of a stack trace, in characters.
const MESSAGE_MAX: usize = 20_000;
const STACK_MAX: usize = 200_000;

/// How objects of another program are read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The pipeline that the letters are for.
    pub pipeline: PipelineName,
    /// The fields that are named otherwise: by name, by `a.b` for one inside another, or by JSON pointer.
    pub named: Vec<(Field, String)>,
    /// The target that all jobs of the pipeline have, if there is one for all.
    pub target: Option<String>,
    /// The fields by which tasks of the pipeline without a key of their own are known.
    pub key: Vec<String>,
    /// The pipeline's own rules.
    pub rules: Vec<Rule>,
    /// Meanings of provider codes, used if no rule matches. Each rule names one code.
    pub codes: Vec<Rule>,
    /// What is masked in what is told of failures.
    pub secrets: Secrets,
    /// Whether what looks secret stays where everything that tells nothing of the failure is the input.
    pub keep_secrets: bool,
    /// What is told of the failure besides, where it is told in our own words: reason, stage, misses, how long to wait.
    pub told: FailureReport,
}

/// A letter of another program.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignLetter {
    /// The letter.
    pub letter: DeadLetter,
    /// Whether it says when it failed; if not, it died when it was taken in.
    pub dated: bool,
    /// Whether its input has masks in place of what looked secret.
    pub masked: bool,
}

impl Reading {
    /// The letter that an object is; why it is none, if it is none.
    pub fn read(&self, mut object: Input, now: Timestamp) -> Result<ForeignLetter, String> {
        let attempts = self.attempts(&mut object)?;
        let (mut report, error) = self.report(&mut object, attempts.told.last())?;
        report.reason = self.explicit_reason(&mut object)?.or(report.reason);
        let time = self.take(&mut object, Field::Time).filter(|(_, value)| !is_nothing(value));
        let died_at = time.map(|(name, value)| time_of(&value).ok_or_else(|| not_a_time(&name, &value))).transpose()?;
        let died_at = died_at.or_else(|| attempts.told.last()?.at);
        let (key, target) = (self.text(&mut object, Field::Key)?, self.text(&mut object, Field::Target)?);
        let (mut input, beside) = self.input(object, error)?;
        self.secrets.mask_report(&mut report);
        attempts.complete(&mut report);
        let key = key.map_or_else(|| self.key_of(&input), Ok)?;
        let masked =
            beside.is_flat && !self.keep_secrets && !mask_task(&mut input, &self.secrets, &self.key).is_empty();
        let own = NewJob::from_input(JobId::new(Timestamp::from_millis(0), 0), input, now);
        let target = target.or_else(|| self.target.clone()).or(own.target);
        let letter = self.letter((own.input, key, target), beside.origin, &report, (died_at.unwrap_or(now), attempts));
        Ok(ForeignLetter { letter, dated: died_at.is_some(), masked })
    }

    /// Takes the reason that stands beside an input. One that is not known is refused: it would be taken for something else.
    fn explicit_reason(&self, object: &mut Input) -> Result<Option<Reason>, String> {
        let is_named = |name: &str| self.named.iter().any(|(field, known)| *field == Field::Input && known == name);
        if !object.keys().any(|name| Field::Input.usual().contains(&name.as_str()) || is_named(name)) {
            return Ok(None);
        }
        match object.remove("reason") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => text.parse().map(Some).map_err(|why| format!("its reason: {why}")),
            Some(other) => Err(format!("its reason is {}, which is no text", brief(&other))),
        }
    }

    /// Decides what a failure means: by the pipeline's rules, by what is told of it, by the codes of providers, or as ever.
    fn verdict(&self, report: &FailureReport) -> Verdict {
        let is_decided = report.reason.is_some() || self.rules.iter().any(|rule| rule.matches(report));
        classify(if is_decided { &self.rules } else { &self.codes }, report)
    }

    /// Finds a code of a provider in a message, if there is one.
    fn code_in(&self, message: &str) -> Option<String> {
        let words = message.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).take(WORDS_WITH_CODE);
        let is_code = |word: &&str| self.codes.iter().any(|rule| rule.code.iter().any(|code| code == word));
        words.filter(|word| word.contains('_')).find(is_code).map(str::to_owned)
    }

    /// By what a run of the same task would know it.
    fn key_of(&self, input: &Input) -> Result<String, String> {
        Ok(match identify(input, &self.key)? {
            Identity::Keyed(key) => key,
            Identity::Content(content) => content.key(1),
        })
    }

    /// Takes a field out of an object: the one that is named for it, or else the first usual one that is there.
    fn take(&self, object: &mut Input, field: Field) -> Option<(String, Value)> {
        if let Some((_, name)) = self.named.iter().find(|(known, _)| *known == field) {
            return take_field(object, name).map(|value| (name.clone(), value));
        }
        let name = field.usual().iter().find(|name| object.contains_key(**name))?;
        object.remove(*name).map(|value| ((*name).to_owned(), value))
    }

    /// The same for a text or a number; what is something else is left where it was, unless it was named.
    fn text(&self, object: &mut Input, field: Field) -> Result<Option<String>, String> {
        match self.take(object, field) {
            None | Some((_, Value::Null)) => Ok(None),
            Some((_, Value::String(text))) => Ok(Some(text).filter(|text| !text.is_empty())),
            Some((_, Value::Number(number))) => Ok(Some(number.to_string())),
            Some((name, value)) => self.leave(object, field, name, value).map(|()| None),
        }
    }

    /// Puts back what is not what its name promises; it is an error if somebody named it.
    fn leave(&self, object: &mut Input, field: Field, name: String, value: Value) -> Result<(), String> {
        if self.named.iter().any(|(known, _)| *known == field) {
            return Err(format!("{name} is {}, which is no {field}", brief(&value)));
        }
        object.insert(name, value);
        Ok(())
    }

    /// What it tells of the failure, or else its last attempt does; and what is left of an error that is an object.
    fn report(&self, object: &mut Input, last: Option<&Told>) -> Result<(FailureReport, Input), String> {
        let mut report = last.map(|last| last.report.clone()).unwrap_or_default();
        let mut left = Map::new();
        match self.take(object, Field::Message).filter(|(_, value)| !is_nothing(value)) {
            None if last.is_none() => {
                return Err("it says nothing of a failure: it has no field error or message".to_owned());
            }
            None => {}
            Some((name, value)) => {
                report = FailureReport::default();
                match value {
                    Value::Object(error) => left = read_error(error, &mut report),
                    Value::String(text) => report.message = text,
                    other => report.message = other.to_string(),
                }
                if name == "message" && !self.named.iter().any(|(field, _)| *field == Field::Message) {
                    left.extend(add_error(object, &mut report));
                }
            }
        }
        let or = |known: &mut Option<String>, found: Option<String>| *known = found.or_else(|| known.take());
        or(&mut report.code, self.text(object, Field::Code)?);
        or(&mut report.error_type, self.text(object, Field::ErrorType)?);
        or(&mut report.stack, self.stack(object)?);
        or(&mut report.proxy, self.text(object, Field::Proxy)?.map(|proxy| proxy_label(&proxy)));
        report.http_status = self.status(object)?.or(report.http_status);
        if report.code.is_none() {
            report.code = self.code_in(&report.message);
        }
        if report.code.is_none() && report.error_type.is_none() {
            add_uncaught(&mut report);
        }
        let FailureReport { reason, stage, misses, retry_after_secs, .. } = &self.told;
        (report.reason, report.misses) = (report.reason.or(*reason), misses.clone());
        (report.stage, report.retry_after_secs) = (stage.clone(), *retry_after_secs);
        report.message = capped(report.message, MESSAGE_MAX);
        report.stack = report.stack.map(|stack| capped(stack, STACK_MAX));
        Ok((report, left))
    }

    /// A stack trace, which some write as a list of lines.
    fn stack(&self, object: &mut Input) -> Result<Option<String>, String> {
        match self.take(object, Field::Stack) {
            Some((_, Value::Array(lines))) if lines.iter().all(Value::is_string) => {
                let lines: Vec<_> = lines.iter().filter_map(Value::as_str).map(str::trim_end).collect();
                Ok(Some(lines.join("\n")))
            }
            Some((_, Value::String(text))) => Ok(Some(text).filter(|text| !text.is_empty())),
            None | Some((_, Value::Null)) => Ok(None),
            Some((name, value)) => self.leave(object, Field::Stack, name, value).map(|()| None),
        }
    }

    /// An HTTP status; a state in words is none.
    fn status(&self, object: &mut Input) -> Result<Option<u16>, String> {
        let Some((name, value)) = self.take(object, Field::Status) else { return Ok(None) };
        match http_status(&value) {
            Some(status) => Ok(Some(status)),
            None if is_nothing(&value) => Ok(None),
            None => self.leave(object, Field::Status, name, value).map(|()| None),
        }
    }

    /// The input, and what is left besides it.
    fn input(&self, mut object: Input, error: Input) -> Result<(Input, Beside), String> {
        let input = match self.take(&mut object, Field::Input) {
            None => return Ok((object, Beside { origin: self.beside(Map::new(), error)?, is_flat: true })),
            Some((_, Value::Object(input))) => input,
            // As a task on a line of its own.
            Some((_, Value::String(text))) => Map::from_iter([("url".to_owned(), text.into())]),
            Some((_, value)) => Map::from_iter([("input".to_owned(), value)]),
        };
        Ok((input, Beside { origin: self.beside(object, error)?, is_flat: false }))
    }

    /// What is kept of what stands beside an input, and of an error that tells more than has a place. Of the latter as much as fits.
    fn beside(&self, mut object: Input, error: Input) -> Result<Option<Origin>, String> {
        if object.is_empty() && error.is_empty() {
            return Ok(None);
        }
        // What an origin says of itself is not for whoever wrote the letter to say.
        Origin::OWN_FIELDS.iter().for_each(|name| drop(object.remove(*name)));
        mask_details(&mut object, &self.secrets);
        let group = object.remove("group").and_then(|group| group.as_str().map(|group| self.secrets.mask(group)));
        let mut origin = Origin { group, details: object, ..Origin::here("import") };
        let bytes = json!(origin).to_string().len();
        if bytes > ORIGIN_BYTES_MAX {
            return Err(format!("beside its input it has {bytes} bytes, of which {ORIGIN_BYTES_MAX} are kept"));
        }
        let mut error = Input::from_iter([("error".to_owned(), Value::Object(error))]);
        mask_details(&mut error, &self.secrets);
        for (name, value) in error.remove("error").and_then(|error| error.as_object().cloned()).unwrap_or_default() {
            let before = origin.details.clone();
            let told = origin.details.entry("error").or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(told) = told {
                told.insert(name, value);
            }
            if json!(origin).to_string().len() > ORIGIN_BYTES_MAX {
                origin.details = before;
            }
        }
        Ok(Some(origin))
    }

    fn letter(
        &self,
        (input, key, target): (Input, String, Option<String>),
        origin: Option<Origin>,
        report: &FailureReport,
        (died_at, attempts): (Timestamp, Attempts),
    ) -> DeadLetter {
        let verdict = self.verdict(report);
        let count = attempts.count;
        let failures = self.failures((report, verdict.reason), (died_at, attempts));
        DeadLetter {
            id: identity(&self.pipeline, &key),
            number: None,
            pipeline: self.pipeline.clone(),
            round: None,
            key: Some(key),
            input,
            target,
            reason: verdict.reason,
            code: report.code.clone(),
            message: report.message.clone(),
            attempts: count,
            crashes: 0,
            replays: 0,
            gate: verdict.gate,
            verdict: None,
            cause: None,
            task_id: None,
            original: None,
            origin,
            definition: None,
            accepted_at: died_at,
            died_at,
            http_status: report.http_status,
            proxy: report.proxy.clone(),
            payload: None,
            payload_place: None,
            payload_address: None,
            uncounted: 0,
            payload_missing: false,
            payload_unreadable: None,
            payload_cut: false,
            failures: Some(failures),
        }
    }

    /// What went wrong each time, as far as it is told. What is told of the last attempt as of the whole letter is told once.
    fn failures(
        &self,
        (report, reason): (&FailureReport, Reason),
        (died_at, attempts): (Timestamp, Attempts),
    ) -> Vec<Failure> {
        let mut told = attempts.told;
        told.pop_if(|last| last.report.message == report.message);
        let of = |told: Told| {
            let reason = self.verdict(&told.report).reason;
            Self::failure(&told.report, reason, (told.at.unwrap_or(died_at).min(died_at), told.number))
        };
        let last = Self::failure(report, reason, (died_at, attempts.count));
        told.into_iter().map(of).chain([last]).collect()
    }

    fn failure(report: &FailureReport, reason: Reason, (at, attempt): (Timestamp, u32)) -> Failure {
        Failure { attempt, ..Failure::told(report, reason, at) }
    }
}

/// What is kept beside an input.
struct Beside {
    origin: Option<Origin>,
    /// Whether the input is everything that tells nothing of the failure.
    is_flat: bool,
}

/// A number that is an HTTP status; some write its words after it.
fn http_status(value: &Value) -> Option<u16> {
    let number = value.as_u64().or_else(|| value.as_str()?.split_whitespace().next()?.parse().ok())?;
    u16::try_from(number).ok().filter(|status| (100..=599).contains(status))
}

/// The id of a letter: the same for the same task of a pipeline, whenever it is taken in.
fn identity(pipeline: &PipelineName, key: &str) -> JobId {
    JobId::new(Timestamp::from_millis(0), bits_of(&json!([pipeline, key])))
}

/// The id of one failure of a task that is reported without an id of its own: the same for the same failure.
pub fn id_of_failure(pipeline: &PipelineName, key: Option<&str>, died_at: Timestamp) -> JobId {
    JobId::new(died_at, bits_of(&json!([pipeline, key, died_at.as_millis()])))
}

/// The id within a pipeline of a letter that its sender gave an id: another in each pipeline, and as old as what was given.
pub fn id_within(pipeline: &PipelineName, given: JobId) -> JobId {
    let millis = given.as_bytes()[..6].iter().fold(0, |millis, byte| millis << 8 | i64::from(*byte));
    JobId::new(Timestamp::from_millis(millis), bits_of(&json!([pipeline, "given", given])))
}

fn bits_of(value: &Value) -> u128 {
    let hash = blake3::hash(value.to_string().as_bytes());
    let mut bits = [0; 16];
    bits.copy_from_slice(&hash.as_bytes()[..16]);
    u128::from_be_bytes(bits)
}

/// An instant as programs write it: RFC 3339, a date and a time without a zone (taken as UTC), also as C's `ctime` has it, the form of
/// mail headers, or seconds, milliseconds, microseconds or nanoseconds since 1970, told apart by how many they are.
pub fn time_of(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Number(number) => since_epoch(number.as_f64()?),
        Value::String(text) => {
            let text = text.trim();
            let ctime = || jiff::civil::DateTime::strptime("%a %b %d %H:%M:%S %Y", text);
            let civil = || text.parse().or_else(|_| ctime()).ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok();
            let mail = || jiff::fmt::rfc2822::parse(text).ok();
            let zoned =
                || civil().or_else(mail).map(|zoned| Timestamp::from_millis(zoned.timestamp().as_millisecond()));
            text.parse().ok().or_else(|| since_epoch(text.parse().ok()?)).or_else(zoned)
        }
        _ => None,
    }
}

fn since_epoch(number: f64) -> Option<Timestamp> {
    let millis = match number {
        number if !(1.0..1e20).contains(&number) => return None,
        ..1e11 => number * 1e3,
        ..1e14 => number,
        ..1e17 => number / 1e3,
        number => number / 1e6,
    };
    Some(Timestamp::from_millis(millis as i64))
}

fn not_a_time(name: &str, value: &Value) -> String {
    format!("{name} is {}, which is no time: expected seconds, milliseconds or 2026-11-15T14:02:00Z", brief(value))
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => false,
    }
}

fn brief(value: &Value) -> String {
    const CHARS: usize = 40;
    let text = value.to_string();
    match text.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn capped(mut text: String, chars: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(chars) {
        let more = text.len() - end;
        text.truncate(end);
        text += &format!("… ({more} more bytes)");
    }
    text
}

#[cfg(test)]
mod tests;
