//! Where it fails: the pipelines, by jobs buried.

use maud::{Markup, html};

use super::{Section, more, text};
use crate::output::report::charts::bar;
use crate::output::report::figures::{count, part_of, percent, span};
use crate::output::report::tone::Tone;
use redrive::report::{PipelineReport, Report};

/// So many pipelines are listed.
const ROWS_MAX: usize = 30;

/// The pipelines.
pub fn section(report: &Report) -> Section {
    let body = (!report.pipelines.is_empty()).then(|| table(report));
    Section::new("Pipelines", "By tasks that died in the window. Open, dead and oldest are as of now.", body)
}

fn table(report: &Report) -> Markup {
    let highest = report.pipelines.iter().map(PipelineReport::dlq_rate).fold(0.0, f64::max);
    html! {
        div.scroll role="region" aria-label="Pipelines" tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Pipeline" }
                        th scope="col" colspan="2" { "Share that died" }
                        @for heading in ["Died of ended", "Recovered", "Retried", "Open", "Dead now", "Oldest"] {
                            th.number scope="col" { (heading) }
                        }
                    }
                }
                tbody { @for pipeline in report.pipelines.iter().take(ROWS_MAX) { (row(report, pipeline, highest)) } }
            }
        }
        (more(report.pipelines.len(), ROWS_MAX))
    }
}

fn row(report: &Report, pipeline: &PipelineReport, highest: f64) -> Markup {
    let rate = pipeline.dlq_rate();
    let oldest = pipeline.oldest_dead.map_or("–".to_owned(), |oldest| span(report.made_at.since(oldest)));
    html! {
        tr {
            th scope="row" { (text(pipeline.pipeline.as_str())) }
            td.bars { (bar(if highest > 0.0 { rate / highest } else { 0.0 }, None, Tone::of_dlq_rate(rate))) }
            td.number { (percent(rate)) }
            td.number { (part_of(pipeline.buried, pipeline.settled())) }
            @for value in [pipeline.recovered, pipeline.retried, pipeline.ledger.open(), pipeline.ledger.dead] {
                td.number { (count(value)) }
            }
            td.number { (oldest) }
        }
    }
}
