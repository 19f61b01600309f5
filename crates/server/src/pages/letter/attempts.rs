//! The attempts of a task: one a row, with all that was kept of it beneath.

use maud::{Markup, html};
use redrive::contract::ReplayView;
use redrive_core::failures::Failure;
use redrive_core::fingerprint::own_frames;
use redrive_core::time::Timestamp;

use super::super::parts::{column, columns, instant, length, name, section_head, text};
use crate::look::foreign::harmless;

/// Draws the section, the newest attempt first and open. `replays` are those that had the task, the newest first.
pub fn section(failures: &[Failure], accepted_at: Timestamp, replays: &[&ReplayView], now: Timestamp) -> Markup {
    let waits = failures.iter().scan(accepted_at, |before, failure| {
        let begun = failure.at - std::time::Duration::from_millis(failure.duration_ms.unwrap_or(0));
        Some(length(std::mem::replace(before, failure.at), begun))
    });
    let rows: Vec<(&Failure, String)> = failures.iter().zip(waits).collect();
    html! {
        section aria-labelledby="attempts" {
            (section_head("attempts", "Attempts", "newest first"))
            @if rows.is_empty() { p.empty { "Nothing is known of its attempts." } }
            @else {
                table.attempts role="table" {
                    (columns(&[
                        column("#"), column("Ended"), column("Waited"), column("Took"), column("Status"),
                        column("Stage"), column("Proxy"), column("Saved"), column("What"),
                    ]))
                    tbody role="rowgroup" {
                        @for (nth, (failure, waited)) in rows.iter().rev().enumerate() {
                            (row(failure, waited, replays, now))
                            tr.open role="row" { td role="cell" {} td role="cell" colspan="8" { (kept(failure, nth == 0)) } }
                        }
                    }
                }
            }
        }
    }
}

/// The replay that an attempt was part of: no two have a task at once.
fn replay_of<'a>(failure: &Failure, replays: &[&'a ReplayView]) -> Option<&'a ReplayView> {
    let begun = replays.iter().find(|replay| replay.created_at <= failure.at)?;
    begun.finished_at.is_none_or(|end| failure.at <= end).then_some(*begun)
}

fn row(failure: &Failure, waited: &str, replays: &[&ReplayView], now: Timestamp) -> Markup {
    let replay = replay_of(failure, replays).filter(|_| failure.replay > 0);
    html! {
        tr role="row" {
            th role="rowheader" scope="row" { (failure.attempt) }
            td.nowrap role="cell" {
                (instant(failure.at, now))
                @match replay {
                    Some(replay) => span.fact {
                        a href={ "/replays/" (replay.id) } title=(replay.name) { "replay " (failure.replay) }
                    },
                    None if failure.replay > 0 => span.fact { "replay " (failure.replay) },
                    None => {}
                }
                @if let Some(worker) = failure.worker.map(|worker| worker.to_string()) {
                    span.fact title={ "worker " (worker) } { "worker " (worker.get(worker.len().saturating_sub(6)..).unwrap_or_default()) }
                }
            }
            td.nowrap role="cell" data-l="waited" { (waited) }
            td.nowrap role="cell" {
                @match failure.duration_ms {
                    Some(ms) => { (ms) " ms" } None => { span.muted { "not known" } }
                }
            }
            td role="cell" data-l="status" {
                @match failure.http_status {
                    Some(status) => { (status) } None => { span.muted { "none" } }
                }
            }
            td role="cell" data-l="stage" { (name(failure.stage.as_deref().unwrap_or("none"))) }
            td role="cell" data-l="proxy" { (name(failure.proxy.as_deref().unwrap_or("none"))) }
            td role="cell" data-l="saved" {
                @match failure.kept_payload() {
                    Some(payload) if payload.truncated => { "its beginning" }
                    Some(_) => { "yes" }
                    None => { span.muted { "no" } }
                }
            }
            td.a-out role="cell" {
                span.cut title=(failure.message) { (failure.reason) ": " (text(&failure.message)) }
            }
        }
    }
}

/// All that was kept of an attempt.
fn kept(failure: &Failure, is_open: bool) -> Markup {
    let facts = [
        ("code", failure.code.clone()),
        ("error type", failure.error_type.clone()),
        ("target", failure.target.clone()),
        ("worker", failure.worker.map(|worker| worker.to_string())),
        ("rules", failure.definition.as_ref().map(ToString::to_string)),
    ];
    html! {
        details open[is_open] {
            summary { "All that was kept of attempt " (failure.attempt) }
            dl.keys {
                dt { "message" } dd { (text(&failure.message)) }
                @for (key, value) in &facts { @if let Some(value) = value { dt { (key) } dd { (name(value)) } } }
            }
            @if let Some(stack) = &failure.stack { (frames(stack)) }
            @if let Some(stderr) = &failure.stderr { p.fact { "Standard error" } pre.code.tall tabindex="0" { (harmless(stderr)) } }
        }
    }
}

/// A stack trace: own frames first, where others are among them.
fn frames(stack: &str) -> Markup {
    let own = own_frames(stack);
    let is_mixed = !own.is_empty() && own.len() + 1 < stack.lines().count();
    html! {
        @if is_mixed {
            p.fact { "Stack, frames of your own code" }
            pre.code.tall tabindex="0" { (harmless(&own.join("\n"))) }
        }
        p.fact { @if is_mixed { "The whole stack" } @else { "Stack" } }
        pre.code.tall tabindex="0" { (harmless(stack)) }
    }
}
