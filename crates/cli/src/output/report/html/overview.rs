//! The top of the page: the most important thing in words, the headline numbers, and what happened over time.

use maud::{Markup, html};

use super::{Section, numbers_table};
use crate::output::report::charts::timeline::{Column, Series, timeline as chart};
use crate::output::report::figures::{count, moment, moment_near, percent, span};
use crate::output::report::headline;
use crate::output::report::hours;
use crate::output::report::tone::Tone;
use redrive::report::{HourReport, Report};

/// So many columns can be told apart, and so many labels have room below them.
const COLUMNS_MAX: usize = 96;
const LABELS_MAX: usize = 9;

/// The sentence.
pub fn headline(report: &Report) -> Markup {
    let headline = headline::headline(report);
    html! { p class={ "headline " (headline.tone.class()) } { (headline.text) } }
}

/// The headline numbers.
pub fn numbers(report: &Report) -> Markup {
    let rate = if report.settled() > 0 { percent(report.dlq_rate()) } else { "–".to_owned() };
    let oldest = report.oldest_dead();
    let age = oldest.map_or("–".to_owned(), |oldest| span(report.made_at.since(oldest)));
    html! {
        dl.numbers {
            (number("Tasks ended", &count(report.settled()), Tone::Plain))
            (number("Died", &count(report.buried()), Tone::Plain))
            (number("Share that died", &rate, Tone::of_dlq_rate(report.dlq_rate())))
            (number("Recovered", &count(report.recovered()), Tone::Plain))
            (number("Dead now", &count(report.dead()), Tone::Plain))
            div {
                dt { "Oldest dead letter" }
                dd title=[oldest.map(moment)] { (age) }
            }
        }
    }
}

fn number(name: &str, value: &str, tone: Tone) -> Markup {
    html! { div { dt { (name) } dd class=(tone.class()) { (value) } } }
}

/// Jobs over time.
pub fn timeline(report: &Report) -> Section {
    if report.hours.iter().all(|hour| hour.done == 0 && hour.buried == 0) {
        return Section::new("Over time", "", None);
    }
    let step = hours::step(report.hours.len(), COLUMNS_MAX);
    let label_step = hours::step(report.hours.len(), LABELS_MAX).max(step);
    let groups = hours::grouped(&report.hours, step);
    let series = [("died", Tone::Bad), ("recovered", Tone::Good), ("done", Tone::Plain)];
    let series = series.map(|(name, tone)| Series { name, tone });
    let columns: Vec<Column> = groups
        .iter()
        .map(|group| Column {
            title: moment(group.hour),
            label: hours::label(group.hour, label_step),
            values: parts(group).to_vec(),
        })
        .collect();
    let rows = groups.iter().map(|group| (moment(group.hour), parts(group).to_vec()));
    let body = html! {
        figure { (chart("Tasks that died, recovered and done over time", &series, &columns)) }
        (numbers_table(&["begin", "died", "recovered", "done"], rows))
    };
    let note = format!("Tasks that ended per {}. {}", hours::step_name(step), peak(report, &groups));
    Section::new("Over time", note, Some(body))
}

/// What the columns are made of. Recovered jobs are done too, and are not drawn twice.
fn parts(hour: &HourReport) -> [i64; 3] {
    [hour.buried, hour.recovered, (hour.done - hour.recovered).max(0)]
}

/// When it was worst, in words.
fn peak(report: &Report, groups: &[HourReport]) -> String {
    match groups.iter().max_by_key(|group| group.buried) {
        Some(worst) if worst.buried > 0 => {
            format!("Most died: {}, from {}.", count(worst.buried), moment_near(worst.hour, report.until))
        }
        _ => "None died.".to_owned(),
    }
}
