//! Errors that letters of other programs tell as objects, or beside a message.

use serde_json::{Map, Value};

use super::is_nothing;
use crate::failures::{FailureReport, uncaught};
use crate::jobs::Input;

/// Adds what an `error` beside a `message` tells: what kind of error it is, or more words. Gives back what is left of it.
pub(super) fn add_error(object: &mut Input, report: &mut FailureReport) -> Input {
    match object.remove("error") {
        Some(Value::String(error)) if error.contains(char::is_whitespace) => {
            report.message = format!("{error}: {}", report.message);
        }
        Some(Value::String(error)) if !error.is_empty() => report.error_type = Some(error),
        Some(Value::Object(error)) => {
            let message = std::mem::take(&mut report.message);
            let left = read_error(error, report);
            report.message = match message.contains(&report.message) {
                true => message,
                false => format!("{message}: {}", report.message),
            };
            return left;
        }
        Some(other) if !is_nothing(&other) => drop(object.insert("error".to_owned(), other)),
        _ => {}
    }
    Map::new()
}

/// Reads an error that is an object itself. Gives back what is left of it: what goes under names that mean something else here, or is
/// not what its name promises.
pub(super) fn read_error(mut error: Input, report: &mut FailureReport) -> Input {
    let whole = error.clone();
    report.code = text(&mut error, &["code"]);
    report.error_type = text(&mut error, &["type", "name", "class"]);
    report.stack = text(&mut error, &["stack", "stack_trace", "traceback"]);
    report.http_status = status(&mut error);
    let message =
        ["message", "msg", "detail"].iter().find_map(|name| error.remove(*name).filter(|said| !is_nothing(said)));
    match message {
        Some(Value::String(message)) => report.message = message,
        Some(other) => report.message = other.to_string(),
        None => {
            report.message = Value::Object(whole).to_string();
            error.clear();
        }
    }
    error
}

/// Adds the type and the code that a stack trace tells, or else the message: read as what a command writes to its error stream. A
/// message that is a whole stack trace becomes one.
pub(super) fn add_uncaught(report: &mut FailureReport) {
    let typed =
        |line: &str| Some(uncaught::Uncaught { error_type: Some(uncaught::error_type(line)?), ..Default::default() });
    let of_stack = report.stack.as_deref();
    let of_stack = of_stack.and_then(|stack| uncaught::read(stack).or_else(|| typed(stack.lines().next()?)));
    let of_message = || {
        let read = uncaught::read(&report.message)?;
        Some(read).filter(|read| read.error_type.is_some() || read.code.is_some())
    };
    if let Some(known) = of_stack {
        (report.error_type, report.code) = (known.error_type, known.code);
    } else if let Some(known) = of_message() {
        (report.error_type, report.code) = (known.error_type, known.code);
        let whole = std::mem::replace(&mut report.message, known.message);
        if whole.trim_end() != report.message && report.stack.is_none() {
            report.stack = Some(whole);
        }
    } else {
        report.error_type = report.message.lines().next().and_then(uncaught::error_type);
    }
}

/// Takes a text or a number; what is something else stays where it is.
fn text(error: &mut Input, names: &[&str]) -> Option<String> {
    let name =
        names.iter().find(|name| error.get(**name).is_some_and(|value| value.is_string() || value.is_number()))?;
    match error.remove(*name)? {
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

fn status(error: &mut Input) -> Option<u16> {
    let of = |value: &Value| super::http_status(value);
    let name = ["status", "status_code"].into_iter().find(|name| error.get(*name).and_then(of).is_some())?;
    error.remove(name).as_ref().and_then(of)
}
