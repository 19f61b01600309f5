//! From what a command printed and how it ended to a result or a failure.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use redrive_core::dead::Gate;
use redrive_core::failures::uncaught::{self, Uncaught, last_line};
use redrive_core::failures::{Disposition, FailureReport, Reason};
use redrive_core::hand_on::take_apart;
use redrive_core::retry::retry_after;
use redrive_core::secrets::Secrets;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::Command;
use crate::clock::{Clock, SystemClock};
use crate::handler::{HandlerError, Job, Success};

/// The longest message that is taken from what a command printed, in characters.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::handler) enum Exit {
    Code(i32),
    Signal(i32),
}

impl Exit {
    pub(in crate::handler) fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or(0)),
        }
    }
}

/// What a process that ran one job means.
pub(in crate::handler) fn of_process(
    exit: Exit,
    stdout: &[u8],
    stderr: &str,
    secrets: &Secrets,
) -> Result<Success, HandlerError> {
    let code = match exit {
        Exit::Signal(signal) => return Err(HandlerError::crashed(killed(signal, stderr))),
        Exit::Code(code) => code,
    };
    let stdout = String::from_utf8_lossy(stdout);
    let stated = stated_failure(&stdout, code != 0).or_else(|| stated_failure(stderr, code != 0).filter(|_| code != 0));
    match stated {
        Some(report) => Err(complete(report, code, stderr, secrets).into()),
        None if code == 0 => {
            let (answer, log) = answer_and_log(&stdout);
            success(answer, stderr).map(|success| Success { log, ..success })
        }
        None if ran_out_of_memory(stderr) => Err(HandlerError::crashed(unstated(code, &stdout, stderr, secrets))),
        None => Err(unstated(code, &stdout, stderr, secrets).into()),
    }
}

/// What a line of a persistent process means; `None` if it is no answer, or names another job.
pub(in crate::handler) fn of_line(
    line: &str,
    job: &Job,
    stderr: &str,
    secrets: &Secrets,
) -> Option<Result<Success, HandlerError>> {
    let value: Value = serde_json::from_str(line).ok()?;
    let own = value.get("id").is_some_and(|id| is_id_of(id, job));
    if value.get("id").is_some() && !own && value.as_object().is_some_and(is_answer) {
        return None;
    }
    if let Some(report) = stated_failure(line, false) {
        return Some(Err(complete(report, 0, stderr, secrets).into()));
    }
    Some(match value {
        Value::Object(mut fields) if fields.contains_key("enqueue") => {
            if own {
                fields.shift_remove("id");
            }
            success(Value::Object(fields), stderr)
        }
        Value::Object(mut fields) if fields.contains_key("result") => {
            Ok(fields.remove("result").unwrap_or_default().into())
        }
        other => Ok(other.into()),
    })
}

/// Whether a line says that it is an answer: it has a result or a failure, or nothing but jobs to hand on. Its `id` is then
/// a job's; in any other object it may be a field of the result.
fn is_answer(fields: &Map<String, Value>) -> bool {
    let only_jobs = || fields.contains_key("enqueue") && fields.keys().all(|name| name == "id" || name == "enqueue");
    fields.contains_key("result") || fields.contains_key("failure") || only_jobs()
}

fn is_id_of(id: &Value, job: &Job) -> bool {
    id.as_str() == Some(job.id.to_string().as_str())
}

/// A result, with the jobs that are handed on with it.
fn success(answer: Value, stderr: &str) -> Result<Success, HandlerError> {
    let (result, handed_on) = take_apart(answer).map_err(|why| {
        let report = FailureReport::new(Reason::HandlerError, why).with_code("bad_enqueue");
        HandlerError::from(FailureReport { stderr: non_empty(stderr), ..report })
    })?;
    Ok(Success { result, handed_on, log: None })
}

/// Whether a line of a persistent process says which job it answers.
pub(in crate::handler) fn has_id(line: &str, job: &Job) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_str(line) else { return false };
    fields.get("id").is_some_and(|id| is_answer(&fields) || is_id_of(id, job))
}

/// A process that ended while it had a job and had not answered.
pub(in crate::handler) fn of_end(exit: Exit, stderr: &str, secrets: &Secrets) -> HandlerError {
    match exit {
        Exit::Signal(signal) => HandlerError::crashed(killed(signal, stderr)),
        Exit::Code(code) if code != 0 => match of_process(exit, b"", stderr, secrets) {
            Err(error) => error,
            Ok(_) => unstated(code, "", stderr, secrets).into(),
        },
        Exit::Code(_) => {
            let report = FailureReport::new(Reason::HandlerError, "the command ended without an answer");
            FailureReport { stderr: non_empty(stderr), ..report.with_code("no_answer") }.into()
        }
    }
}

/// A job that had its time.
pub(in crate::handler) fn out_of_time(job: &Job) -> FailureReport {
    let message = format!("no result after {:?}", job.deadline);
    FailureReport::new(Reason::Timeout, message).with_code("deadline")
}

/// A child that took too much memory.
pub(in crate::handler) fn out_of_memory(used: u64, command: &Command) -> FailureReport {
    let mib = |bytes: u64| bytes / (1024 * 1024);
    let limit = command.memory_bytes_max.unwrap_or_default();
    let message = format!("killed: it used {} MiB of at most {} MiB of memory", mib(used), mib(limit));
    FailureReport::message(message).with_code("out_of_memory")
}

/// The text, unless there is none.
pub(in crate::handler) fn non_empty(text: &str) -> Option<String> {
    (!text.trim().is_empty()).then(|| text.to_owned())
}

/// Splits the output of a command into its answer and its log.
///
/// The answer is the whole output as JSON. If that is no JSON, but the last line is, and not every line is, the last line is
/// the answer and the lines before it are the log. Otherwise the whole output is the answer, as text. No output is `null`.
fn answer_and_log(stdout: &str) -> (Value, Option<String>) {
    let text = stdout.trim();
    if text.is_empty() {
        return (Value::Null, None);
    }
    if let Ok(answer) = serde_json::from_str(text) {
        return (answer, None);
    }
    let is_json = |line: &str| serde_json::from_str::<IgnoredAny>(line).is_ok();
    if let Some((before, last)) = text.rsplit_once('\n')
        && let Ok(answer) = serde_json::from_str(last)
        && !before.lines().filter(|line| !line.trim().is_empty()).all(is_json)
    {
        return (answer, Some(before.trim_end().to_owned()));
    }
    (Value::String(text.to_owned()), None)
}

/// A failure that the command printed as JSON: the whole text or its last line, as `{"failure": {…}}` or, where the exit
/// code says that it failed, as the bare object.
fn stated_failure(text: &str, failed: bool) -> Option<FailureReport> {
    let text = text.trim();
    let last = text.lines().next_back()?;
    let object = [text, last].into_iter().find_map(|part| match serde_json::from_str(part) {
        Ok(Value::Object(fields)) => Some(fields),
        _ => None,
    })?;
    let fields = match object.get("failure").or_else(|| object.get("error").filter(|_| failed)) {
        Some(Value::Object(inner)) => inner.clone(),
        Some(Value::String(message)) if object.contains_key("failure") => {
            return Some(FailureReport::message(message.clone()));
        }
        _ if failed
            && ["reason", "code", "message", "error", "http_status", "status"]
                .iter()
                .any(|f| object.contains_key(*f)) =>
        {
            object
        }
        _ => return None,
    };
    Some(read_report(fields))
}

/// Takes what can be understood: one odd field does not lose the others.
fn read_report(fields: Map<String, Value>) -> FailureReport {
    let whole = Value::Object(fields.clone());
    if let Ok(report) = serde_json::from_value::<FailureReport>(whole.clone()) {
        return report;
    }
    let mut kept = Map::new();
    for (name, value) in fields {
        let value = match (name.as_str(), value) {
            ("code" | "message" | "error", Value::Number(number)) => number.to_string().into(),
            ("http_status" | "status", Value::String(text)) => {
                text.trim().parse::<u16>().map_or(Value::Null, Into::into)
            }
            // A header's value as it came: seconds, or a date.
            ("retry_after" | "retry_after_secs", Value::String(text)) => {
                retry_after(&text, SystemClock.now()).map_or(Value::Null, |wait| wait.as_secs_f64().into())
            }
            (_, other) => other,
        };
        kept.insert(name.clone(), value);
        if serde_json::from_value::<FailureReport>(Value::Object(kept.clone())).is_err() {
            kept.remove(&name);
        }
    }
    let mut report: FailureReport = serde_json::from_value(Value::Object(kept)).unwrap_or_default();
    if report.message.is_empty() {
        report.message = whole.to_string();
    }
    report
}

/// Fills in what the exit code says, where the command left it open.
fn complete(mut report: FailureReport, code: i32, stderr: &str, secrets: &Secrets) -> FailureReport {
    if report.disposition.is_none() && report.reason.is_none() {
        let meaning = sysexit(code);
        report.reason = report.reason.or(meaning.map(|(reason, _, _)| reason));
        report.disposition = meaning.map(|(_, disposition, _)| disposition);
    }
    if report.message.is_empty() {
        let said = last_line(stderr).map(|line| short(line, secrets));
        report.message = said.unwrap_or_else(|| format!("the command ended with exit code {code}"));
    }
    report.stderr = report.stderr.or_else(|| non_empty(stderr));
    report
}

/// Exit codes that mean something, as in sysexits.
fn sysexit(code: i32) -> Option<(Reason, Disposition, &'static str)> {
    Some(match code {
        64 => (Reason::Misconfigured, Disposition::Dead, "EX_USAGE"),
        65 => (Reason::RejectedInput, Disposition::Dead, "EX_DATAERR"),
        75 => (Reason::HandlerError, Disposition::Retry, "EX_TEMPFAIL"),
        78 => (Reason::Misconfigured, Disposition::Dead, "EX_CONFIG"),
        _ => return None,
    })
}

/// A failure of which only the exit code and the error stream are known. What the exit code leaves open, the rules find.
fn unstated(code: i32, stdout: &str, stderr: &str, secrets: &Secrets) -> FailureReport {
    let meaning = sysexit(code);
    let uncaught = uncaught::read(stderr).unwrap_or_else(|| {
        let said = last_line(stderr).or_else(|| last_line(stdout));
        let message = said.map_or_else(|| format!("the command ended with exit code {code}"), str::to_owned);
        Uncaught { error_type: uncaught::error_type(&message), message, code: None }
    });
    let named = meaning.map(|(_, _, name)| name.to_owned()).or(uncaught.code);
    let trace_signs = ["Traceback (most recent call last)", "\n    at ", "\n\tat ", "\n\tfrom ", "\ngoroutine "];
    FailureReport {
        reason: meaning.map(|(reason, _, _)| reason),
        disposition: meaning.map(|(_, disposition, _)| disposition),
        // What asks for another try may have it without a person's word.
        gate: (code == 75).then_some(Gate::Auto),
        code: Some(named.unwrap_or_else(|| format!("exit_{code}"))),
        message: short(&uncaught.message, secrets),
        error_type: uncaught.error_type,
        stack: trace_signs.iter().any(|sign| stderr.contains(sign)).then(|| stderr.trim().to_owned()),
        stderr: non_empty(stderr),
        ..FailureReport::default()
    }
}

/// Masked before it is cut: half a secret would not be known as one.
fn short(message: &str, secrets: &Secrets) -> String {
    secrets.mask(message).chars().take(MESSAGE_CHARS_MAX).collect()
}

fn killed(signal: i32, stderr: &str) -> FailureReport {
    let name = signal_name(signal);
    let report = FailureReport::message(format!("the command was killed by {name}")).with_code(name);
    FailureReport { stderr: non_empty(stderr), ..report }
}

pub(in crate::handler) fn signal_name(signal: i32) -> String {
    let known = [
        (4, "SIGILL"),
        (5, "SIGTRAP"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (15, "SIGTERM"),
        (24, "SIGXCPU"),
    ];
    known
        .iter()
        .find(|(number, _)| *number == signal)
        .map_or_else(|| format!("signal_{signal}"), |(_, name)| (*name).into())
}

/// A runtime that caught its own lack of memory ends with an exit code, not with a signal.
fn ran_out_of_memory(stderr: &str) -> bool {
    let last = last_line(stderr).unwrap_or_default();
    ["MemoryError", "std::bad_alloc", "out of memory", "OutOfMemoryError", "Cannot allocate memory"]
        .iter()
        .any(|sign| last.contains(sign))
}

#[cfg(test)]
mod tests;
