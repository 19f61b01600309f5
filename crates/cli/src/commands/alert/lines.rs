//! Lines about alerts and sinks.

use anyhow::Result;
use redrive::contract::SinkView;
use redrive_core::alerts::Alert;

use crate::output::foreign::{COLUMNS_MAX, cut};
use crate::output::paint::{BAD, paint};
use crate::output::print::{out, say};
use crate::output::table::{self, folded};
use crate::output::times::second;
use crate::output::typed::command;

/// What stands before the second line of something, and all further ones.
const INDENT: &str = "    ";

/// An alert that fires: in one line where a program may read it, folded where a person does.
pub fn firing(alert: &Alert) -> String {
    let (summary, since) = (cut(&alert.finding.summary, COLUMNS_MAX), second(alert.since));
    let look = command(&alert.finding.look);
    match table::terminal_width() {
        None => format!("{} {summary}; since {since}; look: {look}", paint(BAD, "alert:")),
        Some(width) => {
            let mut lines = folded(&format!("alert: {summary}"), INDENT, width);
            lines.extend(folded(&format!("{INDENT}since {since}; look: {look}"), INDENT, width));
            // The word is painted last: colours take no room.
            lines.join("\n").replacen("alert:", &paint(BAD, "alert:"), 1)
        }
    }
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
        out!("{}", failing(sink, sink.error.as_deref().unwrap_or_default(), table::terminal_width()))?;
    }
    Ok(())
}

/// Says which sinks could not be told something.
pub fn say_failing(sink: &SinkView, why: &str) {
    say!("{}", failing(sink, why, table::terminal_width_of_stderr()));
}

/// Says what a sink was not told yet.
pub fn say_waiting(sink: &SinkView) {
    say!("alert sink: {} was not told all yet: {} for the next worker or check", sink.name, waiting(sink));
}

fn waiting(sink: &SinkView) -> String {
    match sink.waiting {
        1 => "1 notice waits".to_owned(),
        count => format!("{count} notices wait"),
    }
}

fn failing(sink: &SinkView, why: &str, width: Option<usize>) -> String {
    let since = sink.failing_since.map(|since| format!(" since {}", second(since))).unwrap_or_default();
    let (name, why) = (&sink.name, cut(why, COLUMNS_MAX));
    let said = format!("alert sink: {name} cannot be told{since}: {why}; {}", waiting(sink));
    let said = width.map_or_else(|| said.clone(), |width| folded(&said, INDENT, width).join("\n"));
    said.replacen("alert sink:", &paint(BAD, "alert sink:"), 1)
}
