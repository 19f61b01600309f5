//! The log: on standard error, or in a file; lines for people, or JSON. `REDRIVE_LOG` sets it finely, `-v` coarsely.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use redrive_core::hidden::escape_json;
use redrive_core::time::Timestamp;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::bar;
use super::foreign::{harmless, screen};
use super::paint::{BAD, DIM, WAITING, paint};
use super::print::say;
use super::times::second;
use super::words::ending;
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
    let is_seen = matches!(to, To::Stderr) && io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || Screened { colours, to: to.clone() })
        .with_ansi(colours)
        // It would print them, and panic where standard error is closed.
        .log_internal_errors(false)
        .with_target(false);
    match global.log_format {
        LogFormat::Text if is_seen => builder.event_format(ShortLines).init(),
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

/// A line for who sits there: the time of day, and of an id only the end, which can be typed.
struct ShortLines;

impl<S, N> FormatEvent<S, N> for ShortLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields(Map::new());
        event.record(&mut fields);
        let (level, time) = (*event.metadata().level(), second(now()));
        let style = match level {
            Level::ERROR => BAD,
            Level::WARN => WAITING,
            _ => DIM,
        };
        let painted = |text: String| if writer.has_ansi_escapes() { paint(style, text) } else { text };
        let head = painted(format!("{} {level}", time.get(11..).unwrap_or(&time)));
        let said = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let message = fields.0.remove("message").map(|message| said(&message)).unwrap_or_default();
        write!(writer, "{head} {message}")?;
        for (name, value) in &fields.0 {
            let value = said(value);
            let value = if ["job", "worker", "replay"].contains(&name.as_str()) { ending(&value) } else { value };
            write!(writer, " {name}={value}")?;
        }
        writeln!(writer)
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
