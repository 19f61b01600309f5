//! Attempts by target or proxy: how many failed of how many.

use maud::{Markup, html};
use redrive::contract::TrafficCount;

use super::super::parts::{name, section_head};
use crate::look::figures::{count, percent, share};

/// Those that are listed, the ones with the most failures first.
const SHOWN: usize = 12;

/// Attempts by what they have in common: all, and those that failed; most failures first.
fn rates(counts: &[TrafficCount]) -> Vec<(String, i64, i64)> {
    let mut sums = std::collections::BTreeMap::<&str, (i64, i64)>::new();
    for count in counts {
        let (all, failed) = sums.entry(&count.value).or_default();
        *all += count.count;
        *failed += if count.reason.is_some() { count.count } else { 0 };
    }
    let mut rates: Vec<_> = sums.into_iter().map(|(value, (all, failed))| (value.to_owned(), all, failed)).collect();
    rates.sort_by_key(|(_, all, failed)| (-failed, -all));
    rates
}

/// Draws the section; where there are more, it says how many.
pub fn section(
    (id, title): (&str, &str),
    counts: &[TrafficCount],
    none: &str,
    action: impl Fn(&str) -> Markup,
) -> Markup {
    let rates = rates(counts);
    let more = rates.len().saturating_sub(SHOWN);
    html! {
        section aria-labelledby=(id) {
            (section_head(id, title, "failed of attempts, 24 h"))
            @if rates.is_empty() { p.empty { (none) } }
            @else { table.rates role="table" { tbody role="rowgroup" id={ (id) "-rows" } data-rows=(SHOWN) {
                @for (value, all, failed) in rates.iter().take(SHOWN) {
                    tr role="row" id={ (id) "-" (&blake3::hash(value.as_bytes()).to_hex()[..12]) } {
                        th role="rowheader" scope="row" { (name(if value.is_empty() { "none" } else { value })) }
                        td.num role="cell" {
                            (count(*failed)) " of " (count(*all)) " "
                            span.share { (percent(share(*failed, *all))) }
                        }
                        td.num.acts role="cell" { (action(value)) }
                    }
                }
            } } }
            @if more > 0 { p.table-foot { (count(more as i64)) " more, with no more failures each." } }
        }
    }
}
