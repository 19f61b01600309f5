//! What fails: two lines per cause, the first to see, the second to know more.

use super::{DOT, ENTRIES_MAX, heading, more};
use crate::output::bars::{spark, style};
use crate::output::foreign::{cut, fit, width_of};
use crate::output::paint::{DIM, paint};
use crate::output::report::figures::{count, moment_near};
use crate::output::report::tone::Tone;
use redrive::report::{CauseLine, Report};

/// The width of the longest state, and of a count of ten millions.
const STATE_WIDTH: usize = 10;
const COUNT_WIDTH: usize = 10;
/// Terminals narrower than this have no room for a trend.
const TREND_FROM_WIDTH: usize = 90;

/// The causes with the most impact; nothing if there are none.
pub fn causes(report: &Report, width: usize) -> Vec<String> {
    if report.causes.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![heading("causes", "dead letters with one root cause, by impact", width)];
    for cause in report.causes.iter().take(ENTRIES_MAX) {
        lines.push(first(cause, width));
        lines.push(second(report, cause, width));
    }
    lines.extend(more(report.causes.len()));
    lines
}

/// The state, the number of dead letters, how it went, and what it is.
fn first(cause: &CauseLine, width: usize) -> String {
    let style = style(Tone::of_state(&cause.state));
    let state = fit(&cause.state, STATE_WIDTH);
    let dead = format!("{:>COUNT_WIDTH$}", cut(&count(cause.dead), COUNT_WIDTH));
    let trend = if width < TREND_FROM_WIDTH { String::new() } else { cut(&spark(&cause.trend), 24) + "  " };
    let used = 2 + STATE_WIDTH + COUNT_WIDTH + 2 + width_of(&trend);
    let title = cut(&cause.title, width.saturating_sub(used));
    format!("  {}{dead}  {}{title}", paint(style, state), paint(style, trend))
}

/// Where and since when, and who looks after it.
fn second(report: &Report, cause: &CauseLine, width: usize) -> String {
    let indent = 2 + STATE_WIDTH + COUNT_WIDTH + 2;
    let mut facts = vec![
        cut(&cause.id, 20),
        cause.pipeline.to_string(),
        cause.reason.to_string(),
        format!("since {}", moment_near(cause.first_seen, report.until)),
        cause.owner.as_ref().map_or("no owner".to_owned(), |owner| format!("owner {}", cut(owner, 20))),
    ];
    facts.extend(cause.targets.first().map(|target| match cause.targets.len() - 1 {
        0 => cut(target, 30),
        others => format!("{} and {others} more", cut(target, 30)),
    }));
    paint(DIM, format!("{}{}", " ".repeat(indent), cut(&facts.join(DOT), width.saturating_sub(indent))))
}
