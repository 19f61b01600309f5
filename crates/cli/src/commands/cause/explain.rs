//! `redrive cause explain`: why failures belong where they do. A letter of the store, or any failures on standard input,
//! so that grouping can be checked on one's own logs before it is trusted.

use std::io::{self, BufRead, BufWriter, Write};

use anyhow::{Context, Result, bail};
use redrive::causes::ExplainedLetter;
use redrive_core::failures::Reason;
use redrive_core::fingerprint::{Fingerprint, Subject, fingerprint};
use serde::Deserialize;
use serde_json::Value;

use crate::args::ExplainArgs;
use crate::exit::Exit;
use crate::output::foreign::harmless;
use crate::output::json;
use crate::output::paint::{DIM, HEADING, paint};
use crate::output::print::out;
use crate::output::problem::within;
use crate::setting::Setting;

/// A failure as others write it down.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Said {
    #[serde(alias = "error")]
    message: String,
    pipeline: Option<String>,
    reason: Option<String>,
    target: Option<String>,
    #[serde(alias = "status")]
    http_status: Option<u16>,
    code: Option<String>,
    #[serde(alias = "type")]
    error_type: Option<String>,
    #[serde(alias = "traceback")]
    stack: Option<String>,
}

impl Said {
    /// Reads a line: a failure as a JSON object; anything else is a message.
    fn read(line: &str) -> Self {
        let read = line.starts_with('{').then(|| serde_json::from_str(line));
        let said = match read {
            Some(Ok(said)) => Some(said),
            // An object with something unexpected in it still has its message.
            Some(Err(_)) => serde_json::from_str::<Value>(line).ok().and_then(|value| Self::loosely(&value)),
            None => None,
        };
        said.unwrap_or_else(|| Self { message: line.to_owned(), ..Self::default() })
    }

    fn loosely(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let message = text("message").or_else(|| text("error"))?;
        Some(Self {
            message,
            error_type: text("error_type"),
            stack: text("stack"),
            code: text("code"),
            ..Self::default()
        })
    }

    fn fingerprint(&self) -> Fingerprint {
        let reason = self.reason.as_deref();
        fingerprint(&Subject {
            pipeline: self.pipeline.as_deref().unwrap_or_default(),
            reason,
            about_target: reason.and_then(|reason| reason.parse::<Reason>().ok()).is_none_or(Reason::is_about_target),
            target: self.target.as_deref(),
            http_status: self.http_status,
            code: self.code.as_deref(),
            error_type: self.error_type.as_deref(),
            message: &self.message,
            stack: self.stack.as_deref(),
        })
    }
}

/// Explains failures on standard input, one line each, in their order.
pub fn stdin() -> Result<Exit> {
    let mut out = BufWriter::with_capacity(256 * 1024, io::stdout().lock());
    let mut input = io::BufReader::with_capacity(256 * 1024, io::stdin().lock());
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line).context("cannot read standard input")? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let said = Said::read(text.trim_end_matches(['\n', '\r']));
        json::write(&mut out, &said.fingerprint())?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// Explains a dead letter.
pub async fn letter(setting: &Setting, args: ExplainArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let Some(named) = args.id else { bail!("name a dead letter, or give --stdin") };
    let id = redrive.find_job(&named).await.map_err(|error| within(setting, error))?;
    let explained = redrive.explain_letter(id).await.map_err(|error| within(setting, error))?;
    let ExplainedLetter { cause, message, print } = explained.context("the letter has no failure")?;
    let cause = cause.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    out!("{} {id} belongs to cause {cause} by key {}", paint(HEADING, "letter"), print.key)?;
    for part in &print.parts {
        out!("  {} {}", paint(DIM, format!("{:<10}", part.name)), harmless(&part.value))?;
    }
    out!("{}", paint(HEADING, "its message"))?;
    out!("  {}", harmless(&message))?;
    if !print.masked.is_empty() {
        out!("{}", paint(HEADING, "what was left out, because it varies"))?;
    }
    for masked in &print.masked {
        out!("  {} {}", paint(DIM, format!("{:<10}", masked.kind)), harmless(&masked.text))?;
    }
    Ok(Exit::Ok)
}
