//! What is different about those who died of a cause: shares of both sides, each with its numbers.

use maud::{Markup, html};
use redrive::compare::Differences;
use redrive::contract::CauseView;
use redrive_core::alerts::Share;
use redrive_core::facets::{Baseline, Difference, FAILURES_MIN, kinds};
use redrive_core::tokens::Role;

use super::parts::{column, column_num, column_unseen, columns, link, name};
use super::visitor::Visitor;
use crate::look::charts::bars::bar;
use crate::look::figures::{count, counted, percent};
use crate::look::tone::Tone;

/// Rows that are shown.
const SHOWN: usize = 8;

/// The section.
pub fn section(visitor: &Visitor, cause: &CauseView, different: &Differences) -> Markup {
    html! {
        section aria-labelledby="different" {
            div.section-head { h2 id="different" { "What is different" } span.fact { (against(different)) } }
            @if different.found.is_empty() { p.empty { (nothing(different)) } }
            @else {
                table.different role="table" {
                    (columns(&[
                        column("What"), column("Share of failures, share of successes"),
                        column_num("Apart at least"), column_unseen("Actions"),
                    ]))
                    tbody role="rowgroup" {
                        @for one in different.found.iter().take(SHOWN) { (row(visitor, cause, one)) }
                    }
                }
                p.table-foot {
                    "Apart: the gap between the 95 % bounds of both shares; shown from 10 points and " (FAILURES_MIN) " failures."
                    @if !different.alike.is_empty() { " Alike: " (different.alike.join(", ")) "." }
                }
            }
        }
    }
}

fn against(different: &Differences) -> String {
    let failures = counted(different.failures as i64, "failure", "failures");
    let done = counted(different.successes as i64, "task", "tasks");
    match different.baseline {
        Baseline::SameHours => format!("{failures} against {done} done in the same hours"),
        Baseline::DayBefore => format!("{failures} against {done} done in the 24 hours before the first"),
    }
}

fn nothing(different: &Differences) -> String {
    match (different.failures, different.successes) {
        (failures, _) if failures < FAILURES_MIN => format!("Something is said from {FAILURES_MIN} failures on."),
        (_, 0) => "No task was done in the same hours, nor in the 24 hours before: there is nothing to compare with."
            .to_owned(),
        _ => match different.alike.is_empty() {
            true => "Nothing that is counted sets them apart.".to_owned(),
            false => format!("Nothing sets them apart: {} are alike on both sides.", different.alike.join(", ")),
        },
    }
}

fn row(visitor: &Visitor, cause: &CauseView, one: &Difference) -> Markup {
    let value = if one.value.is_empty() { "none" } else { &one.value };
    html! {
        tr role="row" {
            th role="rowheader" scope="row" { span.fact { (label(&one.kind)) } code { (name(value)) } }
            td role="cell" { (half(one.failures, "failures", Tone::Bad)) (half(one.successes, "successes", Tone::Plain)) }
            td.num role="cell" { (format!("{:.0} points", one.gap * 100.0)) }
            td.num.acts role="cell" { (actions(visitor, cause, one)) }
        }
    }
}

fn half(share: Share, of: &str, tone: Tone) -> Markup {
    let (part, whole) = (share.part as i64, share.whole as i64);
    html! {
        div.pair {
            (bar(share.value(), None, tone))
            span { b { (percent(share.value())) } " of " (of) " (" (count(part)) " of " (count(whole)) ")" }
        }
    }
}

/// What a kind is called.
fn label(kind: &str) -> String {
    kind.strip_prefix("input.").map_or_else(|| kind.to_owned(), |field| format!("input {field}"))
}

fn actions(visitor: &Visitor, cause: &CauseView, one: &Difference) -> Markup {
    let query = |pairs: &[(&str, &str)]| form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    let is_named = !one.value.is_empty();
    let filter = match one.kind.as_str() {
        kinds::TARGET | kinds::PROXY if is_named => {
            Some(query(&[("cause", cause.id.as_str()), (&one.kind, &one.value)]))
        }
        _ => None,
    };
    html! {
        @if let Some(filter) = filter { a href={ "/letters?" (filter) } { "Filter" } " " }
        @if one.kind == kinds::TARGET && is_named {
            (link(visitor, Role::Operator, &format!("/causes/{}/change?verb=split&{}", cause.id, query(&[("target", &one.value)])), "Split…", "plainly small", None))
            " "
            (link(visitor, Role::Operator, &format!("/breakers/turn?{}", query(&[("verb", "hold"), ("target", &one.value), ("pipeline", cause.pipeline.as_str())])), "Hold…", "plainly small", None))
        }
    }
}
