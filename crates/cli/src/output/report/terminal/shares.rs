//! Where and why it fails, as rows with bars. Every share comes with the numbers it is made of.

use crate::output::bars::Row;
use crate::output::report::figures::{count, part_of, percent, share};
use crate::output::report::tone::Tone;
use redrive::report::{FieldCoverage, PipelineReport, Rate, Report};

/// The share of settled jobs that were buried, by pipeline. The longest bar is the highest share.
pub fn pipelines(report: &Report) -> Vec<Row<'_>> {
    let highest = report.pipelines.iter().map(PipelineReport::dlq_rate).fold(0.0, f64::max);
    let row = |pipeline| pipeline_row(pipeline, highest);
    report.pipelines.iter().map(row).collect()
}

fn pipeline_row(pipeline: &PipelineReport, highest: f64) -> Row<'_> {
    let rate = pipeline.dlq_rate();
    let numbers = part_of(pipeline.buried, pipeline.settled());
    Row {
        name: pipeline.pipeline.as_str(),
        share: if highest > 0.0 { rate / highest } else { 0.0 },
        tone: Tone::of_dlq_rate(rate),
        value: percent(rate),
        remark: format!("{numbers} ended, {} dead now", count(pipeline.ledger.dead)),
    }
}

/// Jobs buried, by reason.
pub fn reasons(report: &Report) -> Vec<Row<'_>> {
    counts(report.reasons.iter().map(|reason| (reason.reason.as_str(), reason.count)).collect())
}

/// Dead letters, by code.
pub fn codes(report: &Report) -> Vec<Row<'_>> {
    counts(report.codes.iter().map(|code| (code.code.as_str(), code.count)).collect())
}

/// Counts that share a whole. The longest bar is the largest count.
fn counts(counts: Vec<(&str, i64)>) -> Vec<Row<'_>> {
    let total: i64 = counts.iter().map(|(_, n)| n).sum();
    let most = counts.iter().map(|(_, n)| *n).max().unwrap_or(0);
    let row = |(name, n)| Row {
        name,
        share: share(n, most),
        tone: Tone::Bad,
        value: count(n),
        remark: percent(share(n, total)),
    };
    counts.into_iter().map(row).collect()
}

/// Attempts that failed. A full bar is all of them.
pub fn rates(rates: &[Rate]) -> Vec<Row<'_>> {
    rates.iter().map(rate_row).collect()
}

fn rate_row(rate: &Rate) -> Row<'_> {
    let reason = rate.top_reason.map_or(String::new(), |reason| format!(", mostly {reason}"));
    Row {
        name: &rate.name,
        share: rate.failed_share(),
        tone: Tone::of_failed_share(rate.failed_share()),
        value: percent(rate.failed_share()),
        remark: format!("{} attempts{reason}", part_of(rate.failed, rate.attempts())),
    }
}

/// How often fields were found, those that are found less often than before first.
pub fn fields(report: &Report) -> Vec<Row<'_>> {
    let mut fields: Vec<&FieldCoverage> = report.fields.iter().collect();
    fields.sort_by_key(|field| !field.has_drifted());
    fields.into_iter().map(field_row).collect()
}

fn field_row(field: &FieldCoverage) -> Row<'_> {
    let drift = match field.earlier_share() {
        Some(earlier) if field.has_drifted() => format!("drift, was {} · ", percent(earlier)),
        _ => String::new(),
    };
    Row {
        name: &field.field,
        share: field.recent_share(),
        tone: if field.has_drifted() { Tone::Bad } else { Tone::Plain },
        value: percent(field.recent_share()),
        remark: format!(
            "{drift}{} · {} · rules {}",
            field.pipeline,
            part_of(field.recent_filled, field.recent_records),
            field.version
        ),
    }
}
