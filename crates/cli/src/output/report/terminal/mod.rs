//! The report for a terminal, in the order of the page. No line is wider than it may be. Colours are taken out again by
//! whoever prints the lines, where they would not be seen.

mod causes;
mod shares;
mod time;

use crate::output::bars::{self, Row};
use crate::output::foreign::{cut, width_of};
use crate::output::paint::{DIM, HEADING, paint};
use crate::output::report::figures::{count, counted, moment, percent, span};
use crate::output::report::headline::headline;
use crate::output::report::tone::Tone;
use redrive::report::Report;

/// Lines are made no narrower than this.
const WIDTH_MIN: usize = 40;
/// Lists are cut to so many entries: the page and the JSON have the rest.
const ENTRIES_MAX: usize = 10;
/// What stands between facts in a line.
const DOT: &str = " · ";

/// The report as lines of at most `width` columns.
pub fn lines(report: &Report, width: usize) -> Vec<String> {
    let (width, headline) = (width.max(WIDTH_MIN), headline(report));
    let sections = [
        wrapped(&headline.text, " ", width, headline.tone),
        wrapped(&numbers(report), DOT, width, Tone::Plain),
        time::timeline(report, width),
        causes::causes(report, width),
        section("pipelines", "share of tasks that died", &shares::pipelines(report), width),
        section("reasons", "tasks that died", &shares::reasons(report), width),
        section("codes", "dead letters", &shares::codes(report), width),
        section("targets", "attempts that failed", &shares::rates(&report.targets), width),
        section("proxies", "attempts that failed", &shares::rates(&report.proxies), width),
        time::clock(report, width),
        section("fields", "share of records that have them, in the last hours", &shares::fields(report), width),
    ];
    let mut lines =
        vec![heading("report", &format!("{} to {} UTC", moment(report.since), moment(report.until)), width)];
    for section in sections.into_iter().filter(|section| !section.is_empty()) {
        lines.push(String::new());
        lines.extend(section);
    }
    lines
}

/// The headline numbers.
fn numbers(report: &Report) -> String {
    let mut parts = vec![
        format!("{} ended", count(report.settled())),
        format!("{} died", count(report.buried())),
        format!("{} recovered", count(report.recovered())),
        format!("{} dead now", count(report.dead())),
    ];
    if report.settled() > 0 {
        parts.insert(2, format!("share that died {}", percent(report.dlq_rate())));
    }
    parts.extend(report.oldest_dead().map(|oldest| format!("the oldest for {}", span(report.made_at.since(oldest)))));
    parts.join(DOT)
}

fn heading(title: &str, note: &str, width: usize) -> String {
    let note = cut(note, width.saturating_sub(width_of(title) + 2));
    format!("{}  {}", paint(HEADING, title), paint(DIM, note))
}

/// A heading and its rows; nothing if there are no rows.
fn section(title: &str, note: &str, rows: &[Row<'_>], width: usize) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![heading(title, note, width)];
    lines.extend(bars::rows(&rows[..rows.len().min(ENTRIES_MAX)], width));
    lines.extend(more(rows.len()));
    lines
}

/// Says how many entries were left out, if any.
fn more(entries: usize) -> Option<String> {
    let left = entries.checked_sub(ENTRIES_MAX).filter(|left| *left > 0)?;
    Some(paint(DIM, format!("  and {}", counted(left as i64, "other", "others"))))
}

/// Text in lines, broken only where `between` is.
fn wrapped(text: &str, between: &str, width: usize, tone: Tone) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in text.split(between).map(|piece| cut(piece, width)) {
        match lines.last_mut() {
            Some(line) if width_of(line) + width_of(between) + width_of(&piece) <= width => {
                line.push_str(between);
                line.push_str(&piece);
            }
            _ => lines.push(piece),
        }
    }
    lines.iter().map(|line| paint(bars::style(tone), line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::report::sample;

    fn plain(line: &str) -> String {
        anstream::adapter::strip_str(line).to_string()
    }

    #[test]
    fn every_line_fits_every_terminal() {
        for report in [sample::empty(), sample::busy(), sample::huge()] {
            for width in [0, 40, 60, 80, 100, 133, 200, 400] {
                for line in lines(&report, width) {
                    let shown = plain(&line);
                    assert!(width_of(&shown) <= width.max(WIDTH_MIN), "{width}: {shown:?}");
                }
            }
        }
    }

    #[test]
    fn hostile_names_move_nothing() {
        for line in lines(&sample::huge(), 120) {
            let shown = plain(&line);
            assert!(!shown.contains(char::is_control), "{shown:?}");
            assert!(!shown.contains('\u{202e}'), "{shown:?}");
        }
    }

    #[test]
    fn an_empty_report_is_short() {
        let shown: Vec<String> = lines(&sample::empty(), 80).iter().map(|line| plain(line)).collect();
        let wanted = [
            "report  2026-11-14 18:00 to 2026-11-15 18:00 UTC",
            "",
            "No task came to its end from 2026-11-14 18:00 to 2026-11-15 18:00.",
            "",
            "0 ended · 0 died · 0 recovered · 0 dead now",
        ];
        assert_eq!(shown, wanted);
    }
}
