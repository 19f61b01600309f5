//! How often fields were found, and which are found less often than before: a layout that changed shows here, also
//! where a field is optional and nothing fails.

use maud::{Markup, html};

use super::{Section, more, name, text};
use crate::output::report::charts::bar;
use crate::output::report::figures::{part_of, percent};
use crate::output::report::tone::Tone;
use redrive::report::{FieldCoverage, Report};

/// So many fields are listed.
const ROWS_MAX: usize = 60;

/// The fields.
pub fn section(report: &Report) -> Section {
    let body = (!report.fields.is_empty()).then(|| table(&report.fields));
    Section::new("Fields", "Share of records with the field. The mark on a bar is where it was before.", body)
}

fn table(fields: &[FieldCoverage]) -> Markup {
    let shown = &fields[..fields.len().min(ROWS_MAX)];
    let groups = shown.chunk_by(|a, b| (&a.pipeline, &a.version) == (&b.pipeline, &b.version));
    html! {
        div.scroll role="region" aria-label="Fields" tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Field" }
                        th scope="col" colspan="2" { "Found in the last hours" }
                        th.number scope="col" { "Before" }
                        th.number scope="col" { "Whole window" }
                        th scope="col" { "Change" }
                    }
                }
                @for group in groups { (rows(group)) }
            }
        }
        (more(fields.len(), ROWS_MAX))
    }
}

/// The fields of one version of one pipeline's rules.
fn rows(fields: &[FieldCoverage]) -> Markup {
    html! {
        tbody {
            @if let Some(first) = fields.first() {
                tr.group {
                    th scope="rowgroup" colspan="6" {
                        (text(first.pipeline.as_str()))
                        span.remark { "rules " code { (name(&first.version)) } }
                    }
                }
            }
            @for field in fields { (row(field)) }
        }
    }
}

fn row(field: &FieldCoverage) -> Markup {
    let (recent, earlier, drifted) = (field.recent_share(), field.earlier_share(), field.has_drifted());
    html! {
        tr {
            th scope="row" { (name(&field.field)) }
            td.bars { (bar(recent, earlier, if drifted { Tone::Bad } else { Tone::Plain })) }
            td.number { @if field.recent_records > 0 { (percent(recent)) } @else { "–" } }
            td.number { (earlier.map_or("–".to_owned(), percent)) }
            td.number.note { (part_of(field.filled, field.records)) }
            td { @if drifted { span.badge.bad { "drift" } } }
        }
    }
}
