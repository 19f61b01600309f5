//! What needs somebody, each with what to do next.

use maud::{Markup, html};
use redrive::contract::{AlertView, CauseView};
use redrive::overview::{Look, Need, Needs, PipelineLine};
use redrive_core::alerts::Condition;
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;

use super::super::parts::{
    Button, Glyph, ago, ahead, button, cause_state, clock, link, name, section_head, state, text,
};
use super::super::problem::Problem;
use super::super::shell::{number_of, number_or_more};
use super::super::visitor::Visitor;
use super::super::{alerts, replays};
use super::about;
use crate::look::figures::{count, counted};
use crate::look::tone::Tone;

/// What needs somebody.
pub async fn needs<C>(visitor: &Visitor, look: &Look<'_, C>, pipeline: Option<&PipelineName>) -> Result<Markup, Problem>
where
    C: Fn(&PipelineName) -> bool,
{
    let Needs { needs, other_causes, more_causes } = look.needs().await?;
    if needs.is_empty() {
        return Ok(nothing(look.pipelines().await?, pipeline));
    }
    // One thing is what most people want to do next.
    let is_fixable = |need: &Need| matches!(need, Need::Cause(cause) if cause.dead > 0);
    let first = needs.iter().position(is_fixable);
    Ok(html! {
        section aria-labelledby="needs" {
            (section_head("needs", "Needs you", &format!("{}, most urgent first", number_of(needs.len(), "thing", "things"))))
            ul.todo #todo data-rows="" {
                @for (at, one) in needs.iter().enumerate() { (need(visitor, one, first == Some(at), look.now)) }
            }
            @if *other_causes > 0 {
                p.table-foot {
                    span {
                        a href=(about("/causes", pipeline)) {
                            (number_or_more(*other_causes, *more_causes, "more cause", "more causes"))
                        }
                        @if *other_causes == 1 { " that needs somebody" } @else { " that need somebody" }
                    }
                }
            }
        }
    })
}

/// What is said where nothing does.
fn nothing(lines: &[PipelineLine], pipeline: Option<&PipelineName>) -> Markup {
    let dead: i64 = lines.iter().map(|line| line.ledger.dead).sum();
    let done: i64 = lines.iter().flat_map(|line| &line.done).sum();
    html! {
        section aria-labelledby="needs" {
            (section_head("needs", "Needs you", ""))
            p.empty {
                @if dead == 0 { "No dead letters; " }
                @else {
                    "Nothing new. " a href=(about("/letters", pipeline)) { (counted(dead, "dead letter", "dead letters")) }
                    @if dead == 1 { " is kept; " } @else { " are kept; " }
                }
                (counted(done, "task", "tasks")) " done in 24 h."
            }
        }
    }
}

fn need(visitor: &Visitor, need: &Need, is_first: bool, now: Timestamp) -> Markup {
    match need {
        Need::Alert(view) => need_alert(visitor, view, now),
        Need::Cause(cause) => need_cause(visitor, cause, is_first, now),
        Need::Replay(replay) => html! {
            li id={ "replay-" (replay.id) } data-href={ "/replays/" (replay.id) } {
                (state("paused", Glyph::Bars, Tone::Warn))
                div.what {
                    a.cut.name href={ "/replays/" (replay.id) } { "Replay “" (name(&replay.name)) "” paused itself" }
                    span.fact.cut {
                        (replays::pipelines_of(replay)) " · " (text(replay.why.as_deref().unwrap_or_default())) " · "
                        (count((replay.progress.pending + replay.progress.running) as i64)) " of "
                        (count(replay.progress.total as i64)) " left"
                    }
                }
                span.fact.when { "began " (ago(replay.created_at, now)) }
                a.button.small href={ "/replays/" (replay.id) } { "See why" }
            }
        },
        Need::Expiring { pipeline, letters, more, first, before } => {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.append_pair("pipeline", pipeline.as_str()).append_pair("until", &before.to_string());
            let old = format!("/letters?{}", query.finish());
            html! {
                li id={ "expiring-" (pipeline) } data-href=(old) {
                    (state("expires", Glyph::Half, Tone::Warn))
                    div.what {
                        a.cut.name href=(old) {
                            @match (*letters, *more) {
                                (1, false) => "1 letter is discarded for its age within 48 h",
                                (letters, more) => {
                                    (count(letters as i64)) @if more { "+" } " letters are discarded for their age within 48 h"
                                }
                            }
                        }
                        span.fact.cut { (pipeline) " · of causes that are not resolved; the list has those of resolved ones too" }
                    }
                    span.fact.when { (ahead(*first, now)) }
                    a.button.small href=(old) { "See letters" }
                }
            }
        }
    }
}

fn need_alert(visitor: &Visitor, view: &AlertView, now: Timestamp) -> Markup {
    let (alert, row) = (&view.alert, alerts::row_id(&view.alert));
    let fields =
        [("verb", "acknowledge"), ("alert", alert.key.as_str()), ("back", &alerts::without_said(&visitor.here))];
    html! {
        li id=(row) data-href={ "/alerts#" (row) } {
            (state("firing", Glyph::Triangle, Tone::Bad))
            div.what {
                a.cut.name href=(alerts::about_of(alert).unwrap_or_else(|| format!("/alerts#{row}"))) {
                    @if let Some(name) = &alert.pipeline { (name) ": " }
                    (fires(alert.condition))
                }
                span.fact.cut { "At " (clock(alert.seen_at).get(..5).unwrap_or_default()) ": " (text(without_name(&alert.finding.summary, alert.pipeline.as_ref()))) }
                @if let Some(seen) = view.care.acknowledged_of(alert) {
                    span.fact { "Acknowledged by " (name(&seen.by.name)) }
                }
            }
            span.fact.when { (ago(alert.since, now)) }
            @if view.care.acknowledged_of(alert).is_none() {
                (button(visitor, &Button { action: "/alerts/change", label: "Acknowledge", role: Role::Operator, fields: &fields, class: "small", key: None }))
            } @else { a.button.small href={ "/alerts#" (row) } { "See why" } }
        }
    }
}

/// What fires, in words.
pub const fn fires(condition: Condition) -> &'static str {
    match condition {
        Condition::Rate => "too many tasks die",
        Condition::Jump => "more tasks die than usual",
        Condition::Cause => "many tasks die of one cause",
        Condition::Breaker => "a target is waited for",
        Condition::Replay => "a replay paused itself",
        Condition::Stalled => "nothing comes to its end",
        Condition::Coverage => "a field is found less often",
        Condition::Expiry => "letters are soon discarded for their age",
        Condition::Letters => "there are too many letters, and nothing is enqueued",
        Condition::Disk => "the disk fills up",
    }
}

/// What an alert says, without the pipeline that stands above it.
fn without_name<'a>(summary: &'a str, pipeline: Option<&PipelineName>) -> &'a str {
    pipeline.and_then(|name| summary.strip_prefix(name.as_str())?.strip_prefix(": ")).unwrap_or(summary)
}

/// What keys do to a cause: take it, end it, mute it, try a fix of it.
fn by_keys(visitor: &Visitor, cause: &CauseView) -> Markup {
    let (action, role) = (format!("/causes/{}/change", cause.id), Role::Operator);
    let press = |label: &str, fields: &[(&str, &str)], key: &str| {
        button(visitor, &Button { action: &action, label, role, fields, class: "", key: Some(key) })
    };
    let was = cause.owner.as_deref().unwrap_or_default();
    html! {
        (press("Assign me", &[("verb", "assign"), ("owner", visitor.caller.name()), ("was", was)], "a"))
        (press("Resolve", &[("verb", "resolve")], "e"))
        (link(visitor, role, &format!("{action}?verb=mute"), "Mute…", "", Some("m")))
        (link(visitor, role, &format!("/replays/new?cause={}", cause.id), "Try a fix", "", Some("t")))
    }
}

fn need_cause(visitor: &Visitor, cause: &CauseView, is_first: bool, now: Timestamp) -> Markup {
    html! {
        li id={ "cause-" (cause.id) } data-href={ "/causes/" (cause.id) } {
            (cause_state(cause.state))
            div.what {
                a.cut.name href={ "/causes/" (cause.id) } dir="auto" { (text(&cause.title)) }
                span.fact.cut {
                    (cause.pipeline)
                    @if let Some(target) = cause.targets.first() {
                        " · " (name(target))
                        @if cause.targets_count > 1 { " and " (cause.targets_count - 1) " more" }
                    }
                    " · " (count(cause.dead as i64)) " dead, " (count(cause.saved as i64)) " with saved pages · "
                    @match &cause.owner { Some(owner) => { "owner " (name(owner)) } None => { "no owner" } }
                }
            }
            span.fact.when { (ago(cause.last_seen, now)) }
            // What can be done by keys alone, without leaving the list.
            div hidden { (by_keys(visitor, cause)) }
            @if is_first {
                // What has no saved page cannot be tried.
                @let (label, key) = if cause.saved > 0 { ("Try a fix", "t") } else { ("Replay…", "r") };
                (link(visitor, Role::Operator, &format!("/replays/new?cause={}", cause.id), label, "small primary", Some(key)))
            } @else { a.button.small href={ "/causes/" (cause.id) } { "Open cause" } }
        }
    }
}
