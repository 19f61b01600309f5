//! Targets whose tasks wait: since when, why, until when, and what can be done about it.

use std::time::Duration;

use maud::{Markup, html};
use redrive_core::breakers::BreakerView;
use redrive_core::retrying::RetryingView;
use redrive_core::time::Timestamp;

use super::super::breakers;
use super::super::parts::{
    ahead, column, column_num, column_unseen, columns, commands, instant, name, section_head, text,
};
use super::super::shell::number_of;
use super::super::visitor::Visitor;
use crate::look::figures::count;
use crate::look::foreign::harmless;

/// Held targets whose commands are written out.
const HELD_SPELT: usize = 10;

/// A target that is held for longer is held until somebody lets it go.
const FOR_GOOD: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Pipelines of which it is told what their jobs failed with that wait for another attempt, and causes of each.
const PIPELINES_MAX: usize = 20;
const CAUSES_MAX: usize = 3;

/// Targets that are waited for, as a table, and what jobs failed with that wait for another attempt; nothing where none is.
pub fn held(visitor: &Visitor, held: &[BreakerView], waits: &[RetryingView], now: Timestamp) -> Markup {
    if held.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="held" {
            (section_head("held", "Held targets", "Their tasks wait and lose no attempts"))
            table.held role="table" {
                (columns(&[
                    column("Target"), column("Pipeline"), column("Why"), column("Since"), column("Next probe"),
                    column_num("Waiting"), column_unseen("Actions"),
                ]))
                tbody role="rowgroup" #held-rows data-rows="" { @for view in held { (held_row(visitor, view, now)) } }
            }
            (retrying(waits))
            (commands(visitor, &held.iter().take(HELD_SPELT).flat_map(breakers::commands_of).collect::<Vec<_>>()))
        }
    }
}

/// Last failures of jobs that wait for another attempt, pipeline by pipeline.
fn retrying(waits: &[RetryingView]) -> Markup {
    let known: Vec<_> = waits.iter().filter(|view| view.jobs > 0).collect();
    let more = known.len().saturating_sub(PIPELINES_MAX);
    html! {
        ul #held-retrying {
            @for view in known.into_iter().take(PIPELINES_MAX) {
                @for line in view.lines(CAUSES_MAX) {
                    li { (name(view.pipeline.as_str())) " retrying: " (text(&line)) }
                }
            }
            @if more > 0 { li { "and more in " (number_of(more, "pipeline", "pipelines")) } }
        }
    }
}

fn held_row(visitor: &Visitor, view: &BreakerView, now: Timestamp) -> Markup {
    let breaker = &view.breaker;
    let why = breaker.explained();
    html! {
        tr role="row" id={ "held-" (view.pipeline) "-" (view.target) } {
            th role="rowheader" scope="row" {
                a.name.cut href={ "/letters?" (form_urlencoded::Serializer::new(String::new()).append_pair("target", &view.target).finish()) } {
                    (name(&view.target))
                }
            }
            td.muted role="cell" { span.cut title=(view.pipeline) { (view.pipeline) } }
            td role="cell" {
                span.cut title=[why.as_deref().map(harmless)] { (text(why.as_deref().unwrap_or("it failed too often"))) }
            }
            td.nowrap role="cell" data-l="since" { (instant(breaker.waits_since(), now)) }
            td.nowrap role="cell" {
                @if breaker.open_until.since(now) > FOR_GOOD { span.muted { "by hand only" } } @else { (ahead(breaker.open_until, now)) }
            }
            td.num role="cell" { (count(view.held as i64)) }
            td.num.acts role="cell" { (breakers::actions(visitor, view)) }
        }
    }
}
