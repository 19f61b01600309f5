//! When it fails: hours of the day against reasons.

use maud::{Markup, html};
use redrive_core::failures::Reason;

use super::{Section, numbers_table};
use crate::output::report::charts::heatmap::{Row, heatmap};
use redrive::report::Report;

/// The clock.
pub fn section(report: &Report) -> Section {
    let rows = report.clock_rows();
    let body = (!rows.is_empty()).then(|| chart(&rows));
    Section::new(
        "Hour of day",
        "Tasks that died by hour of day, in UTC, and reason. Small numbers are shaded stronger than in proportion.",
        body,
    )
}

fn chart(clock: &[(Reason, [i64; 24])]) -> Markup {
    let hours: Vec<String> = (0..24).map(|hour| format!("{hour:02}")).collect();
    let rows: Vec<Row<'_>> = clock.iter().map(|(reason, cells)| Row { name: reason.as_str(), cells }).collect();
    let headings: Vec<&str> = std::iter::once("reason").chain(hours.iter().map(String::as_str)).collect();
    let numbers = clock.iter().map(|(reason, cells)| (reason.to_string(), cells.to_vec()));
    html! {
        figure { (heatmap("Tasks that died by hour of day and reason", &hours, &rows)) }
        (numbers_table(&headings, numbers))
    }
}
