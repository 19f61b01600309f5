//! Shares as rows with bars: reasons and codes of what died, targets and proxies of attempts that failed. Every share
//! comes with the numbers it is made of.

use maud::{Markup, html};

use super::{Section, name};
use crate::output::report::charts::bar;
use crate::output::report::figures::{count, part_of, percent, share};
use crate::output::report::tone::Tone;
use redrive::report::{Rate, Report};

/// Why jobs were buried.
pub fn reasons(report: &Report) -> Section {
    let counts: Vec<_> = report.reasons.iter().map(|reason| (reason.reason.as_str(), reason.count)).collect();
    Section::half("Reasons", "Tasks that died, by reason.", counts_table(["Reason", "Died"], &counts))
}

/// The codes that handlers gave.
pub fn codes(report: &Report) -> Section {
    let counts: Vec<_> = report.codes.iter().map(|code| (code.code.as_str(), code.count)).collect();
    Section::half("Codes", "Dead letters, by code.", counts_table(["Code", "Dead"], &counts))
}

/// Attempts by target.
pub fn targets(report: &Report) -> Section {
    Section::half("Targets", "Attempts that failed, worst target first.", rates_table("Target", &report.targets))
}

/// Attempts by proxy.
pub fn proxies(report: &Report) -> Section {
    Section::half("Proxies", "Attempts that failed, by label of the proxy.", rates_table("Proxy", &report.proxies))
}

/// Counts that share a whole. The longest bar is the largest count.
fn counts_table(headings: [&str; 2], counts: &[(&str, i64)]) -> Option<Markup> {
    let total: i64 = counts.iter().map(|(_, count)| count).sum();
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let table = html! {
        table {
            thead { tr { th scope="col" { (headings[0]) } th.number scope="col" colspan="3" { (headings[1]) } } }
            tbody {
                @for (text, n) in counts {
                    tr {
                        th scope="row" { (name(text)) }
                        td.bars { (bar(share(*n, most), None, Tone::Bad)) }
                        td.number { (count(*n)) }
                        td.number.note { (percent(share(*n, total))) }
                    }
                }
            }
        }
    };
    (!counts.is_empty()).then_some(table)
}

/// Shares of attempts that failed. A full bar is all of them.
fn rates_table(what: &str, rates: &[Rate]) -> Option<Markup> {
    let table = html! {
        table {
            thead { tr { th scope="col" { (what) } th.number scope="col" colspan="3" { "Failed attempts" } } }
            tbody {
                @for rate in rates {
                    tr {
                        th scope="row" {
                            (name(&rate.name))
                            @if let Some(reason) = rate.top_reason { span.below { "mostly " (reason) } }
                        }
                        td.bars { (bar(rate.failed_share(), None, Tone::of_failed_share(rate.failed_share()))) }
                        td.number { (percent(rate.failed_share())) }
                        td.number.note { (part_of(rate.failed, rate.attempts())) }
                    }
                }
            }
        }
    };
    (!rates.is_empty()).then_some(table)
}
