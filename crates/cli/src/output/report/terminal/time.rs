//! When it fails: over the window, and by hour of the day.

use super::heading;
use crate::output::bars::{spark, style};
use crate::output::foreign::{cut, fit};
use crate::output::paint::{BAD, DIM, paint};
use crate::output::report::figures::{count, moment};
use crate::output::report::hours;
use crate::output::report::tone::Tone;
use redrive::report::{HourReport, Report};

/// The width of what is left and right of the columns over time, gaps included.
const NAME_WIDTH: usize = 13;
const REMARK_WIDTH: usize = 17;
/// A column is drawn at most so wide.
const COLUMN_WIDTH_MAX: usize = 4;
/// Shades of a cell, from nothing to the most.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

/// Settled jobs over time, one line per kind.
pub fn timeline(report: &Report, width: usize) -> Vec<String> {
    if report.hours.iter().all(|hour| hour.done == 0 && hour.buried == 0) {
        return Vec::new();
    }
    let room = width.saturating_sub(NAME_WIDTH + REMARK_WIDTH).max(2);
    let step = hours::step(report.hours.len(), room - 1);
    let groups = hours::grouped(&report.hours, step);
    let column = (room / groups.len().max(1)).clamp(1, COLUMN_WIDTH_MAX);
    let line = |name: &str, tone: Tone, of: fn(&HourReport) -> i64| {
        let values: Vec<i64> = groups.iter().map(of).collect();
        let highest = cut(&format!("max {}", count(values.iter().copied().max().unwrap_or(0))), REMARK_WIDTH - 2);
        let columns = paint(style(tone), wide(&spark(&values), column));
        format!("{}{columns}  {}", fit(&format!("  {name}"), NAME_WIDTH), paint(DIM, highest))
    };
    vec![
        heading("over time", &format!("tasks per {}", hours::step_name(step)), width),
        line("died", Tone::Bad, |hour| hour.buried),
        line("recovered", Tone::Good, |hour| hour.recovered),
        line("done", Tone::Plain, |hour| hour.done - hour.recovered),
        axis(report, groups.len() * column),
    ]
}

/// Every character several times.
fn wide(line: &str, times: usize) -> String {
    line.chars().flat_map(|c| std::iter::repeat_n(c, times)).collect()
}

/// The begin and the end of the window, below its columns.
fn axis(report: &Report, width: usize) -> String {
    let (since, until) = (moment(report.since), moment(report.until));
    let times = match width.checked_sub(since.len() + until.len()) {
        Some(between) if between > 0 => format!("{since}{}{until}", " ".repeat(between)),
        _ => format!("from {since}"),
    };
    paint(DIM, format!("{}{times}", " ".repeat(NAME_WIDTH)))
}

/// Jobs buried by hour of day, one line per reason, the darker the more.
pub fn clock(report: &Report, width: usize) -> Vec<String> {
    let rows = report.clock_rows();
    let Some(highest) = rows.iter().flat_map(|(_, counts)| counts).copied().max() else { return Vec::new() };
    let widest = rows.iter().map(|(reason, _)| reason.as_str().len()).max().unwrap_or(0);
    let name_width = (widest + 4).min(width.saturating_sub(24));
    let column = ((width - name_width) / 24).clamp(1, 3);
    let hours: String = (0..24).step_by(6).map(|hour| fit(&format!("{hour:02}"), 6 * column)).collect();
    let mut lines = vec![
        heading("hour of day", &format!("tasks that died, UTC, at most {} in a cell", count(highest)), width),
        paint(DIM, format!("{}{}", " ".repeat(name_width), hours.trim_end())),
    ];
    lines.extend(rows.iter().map(|(reason, counts)| {
        let cells: String = counts.iter().map(|count| shade(*count, highest)).collect();
        format!("{}{}", fit(&format!("  {reason}"), name_width), paint(BAD, wide(&cells, column)))
    }));
    lines
}

/// By the cube root, so that one bad hour does not hide all others.
fn shade(count: i64, highest: i64) -> char {
    let darkest = (SHADES.len() - 1) as f64;
    match count {
        ..=0 => SHADES[0],
        count => SHADES[((count as f64 / highest as f64).cbrt() * darkest).ceil().clamp(1.0, darkest) as usize],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_the_darker() {
        let shades: String = [0, 1, 8, 30, 100, -4].iter().map(|count| shade(*count, 100)).collect();
        assert_eq!(shades, "·░▒▓█·");
    }
}
