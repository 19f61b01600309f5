//! How often letters of other programs were tried, and what they tell of each time.

use serde_json::Value;

use super::errors::add_uncaught;
use super::origins::mask_details;
use super::{Field, MESSAGE_MAX, Reading, brief, capped, time_of};
use crate::failures::FailureReport;
use crate::jobs::Input;
use crate::time::Timestamp;

/// Attempts of a list that are kept, the last ones.
const TOLD_MAX: usize = 100;

/// What is said of an attempt of which nothing is told.
const UNTOLD: &str = "it is not told what went wrong";

/// What a letter says of its attempts.
#[derive(Default)]
pub(super) struct Attempts {
    /// How many there were.
    pub(super) count: u32,
    /// What is told of them, the last of which is the last attempt.
    pub(super) told: Vec<Told>,
}

/// An attempt of which something is told.
pub(super) struct Told {
    /// Which, from 1.
    pub(super) number: u32,
    /// When, if that is told.
    pub(super) at: Option<Timestamp>,
    /// What went wrong.
    pub(super) report: FailureReport,
}

impl Attempts {
    /// Adds what only the last attempt tells of the failure, if it is the same.
    pub(super) fn complete(&self, report: &mut FailureReport) {
        let Some(last) = self.told.last().map(|last| &last.report) else { return };
        if last.message == report.message {
            let texts = [
                (&mut report.code, &last.code),
                (&mut report.error_type, &last.error_type),
                (&mut report.stack, &last.stack),
                (&mut report.proxy, &last.proxy),
            ];
            texts.into_iter().filter(|(known, _)| known.is_none()).for_each(|(known, told)| known.clone_from(told));
            report.http_status = report.http_status.or(last.http_status);
        }
    }
}

impl Reading {
    /// How often it was tried: once, if it does not say. Some write down every attempt.
    pub(super) fn attempts(&self, object: &mut Input) -> Result<Attempts, String> {
        let one = || Attempts { count: 1, told: Vec::new() };
        let Some((name, value)) = self.take(object, Field::Attempts) else { return Ok(one()) };
        let no_count = |value: &Value| format!("{name} is {}, which is no count", brief(value));
        let count = match value {
            Value::Array(attempts) => return self.told(attempts),
            Value::Null => return Ok(one()),
            ref value => count(value).ok_or_else(|| no_count(value))?,
        };
        Ok(Attempts { count: count.max(1), told: Vec::new() })
    }

    fn told(&self, attempts: Vec<Value>) -> Result<Attempts, String> {
        let count = u32::try_from(attempts.len()).map_err(|_| "it has more attempts than can be counted".to_owned())?;
        // Names that were given are of the letter, not of its attempts.
        let usual = Self { named: Vec::new(), ..self.clone() };
        let passed_over = attempts.len().saturating_sub(TOLD_MAX);
        let told =
            (1..).zip(attempts).skip(passed_over).map(|(number, attempt)| usual.attempt(number, attempt)).collect();
        Ok(Attempts { count: count.max(1), told })
    }

    /// What is told of an attempt.
    fn attempt(&self, number: u32, attempt: Value) -> Told {
        let (at, mut report) = match attempt {
            Value::Object(fields) => self.attempt_of(fields),
            Value::String(text) => match time_of(&Value::String(text.clone())) {
                Some(at) => (Some(at), FailureReport::default()),
                None => (None, told_as(text)),
            },
            Value::Null => (None, FailureReport::default()),
            other => (None, FailureReport { message: other.to_string(), ..FailureReport::default() }),
        };
        if report.message.is_empty() {
            UNTOLD.clone_into(&mut report.message);
        }
        report.message = capped(report.message, MESSAGE_MAX);
        self.secrets.mask_report(&mut report);
        Told { number, at, report }
    }

    /// The same of an object. What has no place of its own stays in the message, so that nothing of it is lost.
    fn attempt_of(&self, mut fields: Input) -> (Option<Timestamp>, FailureReport) {
        let at = self.time(&mut fields);
        let (mut report, error) = self.report(&mut fields, None).unwrap_or_default();
        if !error.is_empty() {
            fields.insert("error".to_owned(), error.into());
        }
        mask_details(&mut fields, &self.secrets);
        if !fields.is_empty() {
            report.message = format!("{} {}", report.message, Value::Object(fields)).trim().to_owned();
        }
        (at, report)
    }

    /// When an attempt was, if it says so.
    fn time(&self, fields: &mut Input) -> Option<Timestamp> {
        let names = Field::Time.usual().iter().chain(&["at", "time", "ended_at", "started_at"]);
        let name = names.copied().find(|name| fields.get(*name).and_then(time_of).is_some())?;
        fields.remove(name).as_ref().and_then(time_of)
    }
}

/// What a text tells of a failure.
fn told_as(text: String) -> FailureReport {
    let mut report = FailureReport::message(text);
    add_uncaught(&mut report);
    report
}

/// A count as programs write it: some make every number a fraction.
fn count(value: &Value) -> Option<u32> {
    let whole =
        |number: f64| (number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number)).then_some(number as u32);
    match value {
        Value::Number(number) => whole(number.as_f64()?),
        Value::String(text) => whole(text.trim().parse().ok()?),
        _ => None,
    }
}
