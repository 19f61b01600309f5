//! What fails: the causes with the most impact, with their state and how they went.

use maud::{Markup, html};

use super::{Section, name, text};
use crate::output::report::charts::sparkline;
use crate::output::report::figures::{count, moment_near};
use crate::output::report::tone::Tone;
use redrive::report::{CauseLine, Report};

/// So many targets are named; the others are counted.
const TARGETS_MAX: usize = 3;

/// The causes.
pub fn section(report: &Report) -> Section {
    let causes = || {
        html! {
            ol.causes {
                @for cause in &report.causes {
                    li { (state(cause)) (words(report, cause)) (trend(cause)) (numbers(cause)) }
                }
            }
        }
    };
    let body = (!report.causes.is_empty()).then(causes);
    Section::new("Causes", "Dead letters with one root cause, by impact.", body)
}

fn state(cause: &CauseLine) -> Markup {
    html! {
        p.state {
            span class={ "badge " (Tone::of_state(&cause.state).class()) } { (name(&cause.state)) } " "
            code { (name(&cause.id)) }
        }
    }
}

fn words(report: &Report, cause: &CauseLine) -> Markup {
    html! {
        div.words {
            p.title { (text(&cause.title)) }
            p.facts {
                span { (cause.pipeline) }
                span { (cause.reason) }
                span { "since " (moment_near(cause.first_seen, report.until)) }
                span { "last " (moment_near(cause.last_seen, report.until)) }
                @if !cause.targets.is_empty() { span { (targets(&cause.targets)) } }
                @if let Some(owner) = &cause.owner { span { "owner " (name(owner)) } } @else { span { "no owner" } }
            }
        }
    }
}

fn targets(targets: &[String]) -> Markup {
    let others = targets.len().saturating_sub(TARGETS_MAX);
    html! {
        @for (at, target) in targets.iter().take(TARGETS_MAX).enumerate() { @if at > 0 { ", " } (name(target)) }
        @if others > 0 { " and " (count(others as i64)) " more" }
    }
}

fn trend(cause: &CauseLine) -> Markup {
    let highest = cause.trend.iter().max().copied().unwrap_or(0);
    let title = format!("Died over the window, at most {} at a time", count(highest));
    html! { div.trend { (sparkline(&title, &cause.trend, Tone::of_state(&cause.state))) } }
}

fn numbers(cause: &CauseLine) -> Markup {
    html! {
        p.count { strong { (count(cause.dead)) } " dead" br; span.note { (count(cause.buried)) " died" } }
    }
}
