//! A task that is not dead, or not any more: where it is, what led there, and where to go on.

use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::{JobDetail, ReplayView};
use redrive_core::ids::JobId;
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;

use super::super::letter_edit::REPLAYS_MAX;
use super::super::part::{self, part};
use super::super::parts::{Glyph, commands, instant, name, section_head, state, text};
use super::super::problem::Problem;
use super::super::replays::table;
use super::super::shell::{self, Page, Place, number_of};
use super::super::visitor::Visitor;
use super::attempts;
use crate::app::App;
use crate::look::tone::Tone;

/// Shows the page.
pub async fn show(app: &App, visitor: &Visitor, id: JobId) -> Result<Response, Problem> {
    let detail = app.redrive().job(id).await?;
    visitor.caller.check(&detail.job.pipeline)?;
    let now = app.redrive().now();
    let of = part::read(async { Ok(app.redrive().store().replays_of(id, REPLAYS_MAX).await?) }).await?;
    let own = seen_by(visitor, of.as_deref().unwrap_or_default());
    let attempts = attempts::section(&detail.failures, detail.job.accepted_at, &own, now);
    let led = async {
        let of = of?;
        let own = seen_by(visitor, &of);
        Ok(html! { (replays(&own, now)) (edits(&own)) })
    };
    let body = html! {
        (head(visitor, &detail, now))
        (part(visitor, ("replays-of", "Replays of it"), led).await)
        (attempts)
        @if let Some(input) = &detail.job.input {
            section aria-labelledby="input" {
                (section_head("input", "Input", "as it is"))
                pre.code { (serde_json::to_string_pretty(input).unwrap_or_default()) }
            }
        }
        @if let Some(result) = &detail.result {
            section aria-labelledby="result" {
                (section_head("result", "Result", "as the store keeps it, without secrets"))
                pre.code { (text(&serde_json::to_string_pretty(result).unwrap_or_default())) }
            }
        }
        @if let Some(log) = &detail.log {
            section aria-labelledby="log" {
                (section_head("log", "Log", "printed before the result"))
                pre.code { (text(log)) }
            }
        }
    };
    shell::show(app, visitor, Page { place: Place::Letters, title: "Task", pipeline: Some(&detail.job.pipeline), body })
        .await
}

fn head(visitor: &Visitor, JobDetail { job, discard, .. }: &JobDetail, now: Timestamp) -> Markup {
    let (picture, tone) = match job.state {
        JobState::Done => (Glyph::Check, Tone::Good),
        JobState::Queued | JobState::Leased => (Glyph::Half, Tone::Warn),
        JobState::Dead | JobState::Discarded => (Glyph::Muted, Tone::Quiet),
    };
    let called = job.number.map_or_else(|| job.id.to_string(), |number| number.to_string());
    let has_recovered = job.state == JobState::Done && job.replays > 0;
    html! {
        div.crumbs { span { a href="/letters" { "Letters" } " / " code { (job.id) } } }
        div.head #where {
            h1 {
                (state(if has_recovered { "recovered" } else { job.state.said() }, picture, tone))
                @if let Some(number) = job.number { "#" (number) } @else { "Task" }
                " is not dead"
            }
            ul.facts {
                li { a href={ "/pipelines/" (job.pipeline) } { (job.pipeline) } }
                @if let Some(key) = &job.key { li { (name(key)) } }
                @if let Some(target) = &job.target { li { (name(target)) } }
                li { (number_of(job.attempts as usize, "attempt", "attempts")) }
                @if job.replays > 0 { li { (number_of(job.replays as usize, "replay", "replays")) } }
                @if let Some(ended) = job.ended_at { li { (job.state.said()) " " (instant(ended, now)) } }
                @if let Some(due) = job.due_at { li { "due " (instant(due, now)) } }
            }
            @if let Some(discard) = discard {
                p.headline { "Discarded by " (name(&discard.actor)) " " (instant(discard.at, now)) ": " (text(&discard.why)) "." }
            }
            div.actions {
                a.button href={ "/letters?pipeline=" (job.pipeline) } { "Dead letters of " (job.pipeline) }
                (commands(visitor, &[("Look", format!("redrive job show {called}"))]))
            }
        }
    }
}

/// Whether somebody may see a replay: all of its pipelines have to be theirs.
pub fn is_seen_by(visitor: &Visitor, replay: &ReplayView) -> bool {
    visitor.caller.covers_each(&replay.pipelines)
}

/// The replays that somebody may see.
pub fn seen_by<'a>(visitor: &Visitor, replays: &'a [ReplayView]) -> Vec<&'a ReplayView> {
    replays.iter().filter(|replay| is_seen_by(visitor, replay)).collect()
}

/// The replays that had a task, the newest first.
pub fn replays(replays: &[&ReplayView], now: Timestamp) -> Markup {
    html! {
        @if !replays.is_empty() {
            section aria-labelledby="replays-of" {
                (section_head("replays-of", "Replays of it", &number_of(replays.len(), "time", "times")))
                (table(replays.iter().copied(), now, |_| html! {}))
            }
        }
    }
}

/// What replays changed in its input: what that was before is not kept once a task is done.
fn edits(replays: &[&ReplayView]) -> Markup {
    html! {
        @if replays.iter().any(|replay| !replay.edits.is_empty()) {
            section aria-labelledby="edits" {
                (section_head("edits", "Edits", "what it was sent with"))
                @for replay in replays.iter().filter(|replay| !replay.edits.is_empty()) {
                    p.fact { a href={ "/replays/" (replay.id) } { "by " (name(&replay.actor)) ", replay " (name(&replay.name)) } }
                    pre.code { @for (field, value) in &replay.edits { ins { "+ " (field) ": " (value) } } }
                }
            }
        }
    }
}
