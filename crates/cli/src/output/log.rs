//! The log: on standard error, or in a file; lines for people, or JSON. `REDRIVE_LOG` sets it finely, `-v` coarsely.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use redrive_core::hidden::escape_json;
use redrive_core::time::Timestamp;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::bar;
use super::foreign::{harmless, screen};
use super::print::say;
use crate::args::{Global, LogFormat};

/// How many lines could not be written, and what was wrong with the first.
static LOST: AtomicU64 = AtomicU64::new(0);
static WHY: Mutex<Option<io::Error>> = Mutex::new(None);

/// Starts the log. It says so if its file cannot be written.
pub fn start(global: &Global) -> anyhow::Result<()> {
    let (to, usual) = match &global.log {
        Some(path) => {
            let opened = OpenOptions::new().create(true).append(true).open(path);
            let opened =
                opened.map_err(|error| anyhow::anyhow!("the log {} cannot be written: {error}", path.display()));
            // Who asks for a file wants to read something in it later.
            (To::File(Arc::new(opened?)), 1)
        }
        None => (To::Stderr, 0),
    };
    let level = match global.verbose.max(usual) {
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    let filter = EnvFilter::try_from_env("REDRIVE_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let colours = matches!(to, To::Stderr)
        && global.log_format == LogFormat::Text
        && anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || Screened { colours, to: to.clone() })
        .with_ansi(colours)
        // It would print them, and panic where standard error is closed.
        .log_internal_errors(false)
        .with_target(false);
    match global.log_format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.event_format(JsonLines).init(),
    }
    Ok(())
}

/// Says at the end what could not be written. Nobody hears it where standard error is what could not be.
pub fn finish() {
    let (lost, why) = (LOST.load(Ordering::Relaxed), WHY.lock().unwrap_or_else(PoisonError::into_inner).take());
    if let Some(why) = why {
        let lines = if lost == 1 { "line" } else { "lines" };
        say!("{lost} {lines} of the log could not be written: {why}");
    }
}

/// Notes a line that could not be written: no task is to fail because nobody reads the log.
fn note_lost(error: io::Error) {
    LOST.fetch_add(1, Ordering::Relaxed);
    WHY.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
}

/// Where the log goes.
#[derive(Clone)]
enum To {
    Stderr,
    File(Arc<File>),
}

/// A place that is written to, with nothing of what is logged obeyed but our own colours. Writing to it never fails.
struct Screened {
    colours: bool,
    to: To,
}

impl Write for Screened {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let safe = if self.colours { screen(&text) } else { harmless(&text).into() };
        // At once, so that lines of several processes do not mix.
        let written = match &self.to {
            To::Stderr => bar::beside(|| io::stderr().lock().write_all(safe.as_bytes())),
            To::File(file) => (&**file).write_all(safe.as_bytes()),
        };
        written.unwrap_or_else(note_lost);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // Nothing is kept back.
        Ok(())
    }
}

/// One JSON object per line: `time`, `level`, `message`, and whatever the event has.
struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields(Map::new());
        fields.0.insert("time".to_owned(), json!(now()));
        fields.0.insert("level".to_owned(), json!(event.metadata().level().as_str().to_ascii_lowercase()));
        event.record(&mut fields);
        writeln!(writer, "{}", escape_json(&Value::Object(fields.0).to_string()))
    }
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The fields of an event.
struct Fields(Map<String, Value>);

impl Fields {
    fn set(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value.into());
    }
}
