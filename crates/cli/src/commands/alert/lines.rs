//! Lines about alerts and sinks.

use anyhow::Result;
use redrive::contract::SinkView;
use redrive_core::alerts::Alert;

use crate::output::foreign::{COLUMNS_MAX, cut};
use crate::output::paint::{BAD, paint};
use crate::output::print::{out, say};
use crate::output::times::second;

/// An alert that fires, in one line.
pub fn firing(alert: &Alert) -> String {
    let summary = cut(&alert.finding.summary, COLUMNS_MAX);
    format!("{} {summary}; since {}; look: {}", paint(BAD, "alert:"), second(alert.since), alert.finding.look)
}

/// What fires, and which sinks fail, for who looks at everything.
pub fn show<'a>(alerts: impl Iterator<Item = &'a Alert>, sinks: &[SinkView]) -> Result<()> {
    for (number, alert) in alerts.enumerate() {
        if number == 0 {
            out!("")?;
        }
        out!("{}", firing(alert))?;
    }
    for sink in sinks {
        out!("{} {}", paint(BAD, "alert sink:"), failing(sink, sink.error.as_deref().unwrap_or_default()))?;
    }
    Ok(())
}

/// Says which sinks could not be told something.
pub fn say_failing(sink: &SinkView, why: &str) {
    say!("{} {}", paint(BAD, "alert sink:"), failing(sink, why));
}

/// Says what a sink was not told yet.
pub fn say_waiting(sink: &SinkView) {
    say!("alert sink: {} was not told all yet: {} notices wait for the next worker or check", sink.name, sink.waiting);
}

fn failing(sink: &SinkView, why: &str) -> String {
    let since = sink.failing_since.map(|since| format!(" since {}", second(since))).unwrap_or_default();
    format!("{} cannot be told{since}: {}; {} notices wait", sink.name, cut(why, COLUMNS_MAX), sink.waiting)
}
