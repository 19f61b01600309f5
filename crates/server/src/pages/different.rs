//! What is different about those who died of a cause: shares of both sides, each with its numbers.

use maud::{Markup, html};
use redrive::compare::Differences;
use redrive::contract::CauseView;
use redrive_core::alerts::Share;
use redrive_core::facets::{Difference, is_cut, kinds};
use redrive_core::tokens::Role;

use super::parts::{column, column_num, column_unseen, columns, link, name, text};
use super::visitor::Visitor;
use crate::look::charts::bars::bar;
use crate::look::different::{against, label, nothing, of_failures_only, of_whom, points, rule, unknown};
use crate::look::figures::{count, part_of, percent};
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
                        @for one in different.found.iter().take(SHOWN) { (row(visitor, cause, (different, one))) }
                    }
                }
                p.table-foot {
                    @if different.found.len() > SHOWN { (part_of(SHOWN as i64, different.found.len() as i64)) " are shown. " }
                    (rule())
                    @if !different.alike.is_empty() { " Alike: " (different.alike.join(", ")) "." }
                }
            }
            @for said in [of_failures_only(different), unknown(different)].iter().flatten() { p.table-foot { (text(said)) } }
        }
    }
}

fn row(visitor: &Visitor, cause: &CauseView, (all, one): (&Differences, &Difference)) -> Markup {
    let value = if one.value.is_empty() { "empty" } else { &one.value };
    html! {
        tr role="row" {
            th role="rowheader" scope="row" { span.fact { (label(&one.kind)) } code { (name(value)) } }
            td role="cell" {
                (half(one.failures, &of_whom(one.failures, all.failures, "failures"), Tone::Bad))
                (half(one.successes, &of_whom(one.successes, all.successes, "successes"), Tone::Plain))
            }
            td.num role="cell" { (points(one.gap)) }
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

fn actions(visitor: &Visitor, cause: &CauseView, one: &Difference) -> Markup {
    let query = |pairs: &[(&str, &str)]| form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    // A value that was cut when it was counted names nobody.
    let is_named = !one.value.is_empty() && !is_cut(&one.value);
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
