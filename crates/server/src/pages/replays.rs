//! `/replays`: what was sent again, and what came of it.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::{ListReplays, Page as Listed, ReplayView};
use redrive::overview::SelfPaused;
use redrive::replays::ready_in;
use redrive_core::ids::PipelineName;
use redrive_core::replays::throughput;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;

use super::alerts::{said, without_said};
use super::part::{self, part};
use super::parts::{
    Button, ago, button, column, column_num, columns, command, further, instant, length, length_of, link, name, number,
    replay_state, text, views, with_query, without_cursor,
};
use super::problem::Problem;
use super::replay::small_bar;
use super::shell::{self, Page, Place};
use super::visitor::Visitor;
use crate::app::App;
use crate::error::ApiError;
use crate::look::figures::count;

/// Replays on a page.
const LIMIT: u32 = 50;

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let query = visitor.query();
    let open_only = match query.one("state") {
        None | Some("all") => false,
        Some("open") => true,
        Some(_) => return Err(ApiError::invalid("state", "expected open or all").into()),
    };
    let cursor = query.one("cursor").map(str::to_owned);
    let is_first = cursor.is_none();
    let covers = |name: &PipelineName| visitor.caller.covers(name);
    let read = part::read(async {
        let page = app
            .redrive()
            .store()
            .list_replays(ListReplays { open_only, limit: LIMIT, cursor, within: visitor.caller.within() })
            .await?;
        Ok((page, app.redrive().self_paused_replays(covers).await?))
    });
    let read = read.await?;
    let here = without_cursor(&visitor.here);
    let tabs = [("all", "All", !open_only), ("open", "Open", open_only)];
    let tabs = tabs.map(|(state, title, is)| (with_query(&here, "state", Some(state)), html! { (title) }, is));
    let body = html! {
        div.head {
            h1 { "Replays" }
            (said(&visitor))
            div.actions { (link(&visitor, Role::Viewer, "/causes", "Choose a cause to replay", "", None)) }
        }
        (views("Which replays", tabs))
        (part(&visitor, ("replays-of", "Replays"), async {
            let (page, paused) = read?;
            Ok(listed(&visitor, (&page, &paused), (open_only, is_first), app.redrive().now()))
        }).await)
    };
    shell::show(&app, &visitor, Page { place: Place::Replays, title: "Replays", pipeline: None, body }).await
}

/// A page of replays. Those that stopped by themselves wait for somebody: they are on top of the first, until they were seen to.
fn listed(
    visitor: &Visitor,
    (page, paused): (&Listed<ReplayView>, &[SelfPaused]),
    (open_only, is_first): (bool, bool),
    now: Timestamp,
) -> Markup {
    let is_on_top = |replay: &ReplayView| paused.iter().any(|one| one.replay.id == replay.id);
    let others = page.items.iter().filter(|replay| !is_on_top(replay));
    let on_top = paused.iter().map(|one| &one.replay).filter(|_| is_first);
    let shown: Vec<&ReplayView> = on_top.chain(others).collect();
    let here = without_said(&visitor.here);
    let seen = |replay: &ReplayView| {
        let own = paused.iter().find(|one| one.replay.id == replay.id);
        html! {
            @if own.is_some_and(|one| one.alert.is_none()) {
                span.fact { "On top until it is resumed or cancelled: no alert of it fires that could be acknowledged." }
            }
            @if let Some(key) = own.and_then(|one| one.alert.as_ref()) {
                (button(visitor, &Button { action: "/alerts/change", label: "Acknowledge", role: Role::Operator, fields: &[("verb", "acknowledge"), ("alert", key.as_str()), ("back", &here)], class: "small plainly", key: None }))
            }
        }
    };
    let is_empty = shown.is_empty();
    html! {
        @if is_empty {
            p.empty {
                "No replay "
                @if !is_first { "is left." }
                @else if open_only {
                    "is open. " a href="/replays" { "All replays" }
                } @else {
                    "yet. A cause, or letters that you tick, can be sent again."
                }
            }
        }
        @else { (table(shown, now, seen)) }
        (further(&without_cursor(&visitor.here), page.next.as_deref()))
        @if !is_empty { (command(visitor, "redrive replay list")) }
    }
}

/// Replays as a table; `seen` is how somebody says of one that they have seen it.
pub fn table<'a>(
    replays: impl IntoIterator<Item = &'a ReplayView>,
    now: Timestamp,
    seen: impl Fn(&ReplayView) -> Markup,
) -> Markup {
    html! {
        table.replays.two role="table" {
            (columns(&[
                column("Replay"), column("State"), column("Step"), column("Progress"), column_num("Recovered"),
                column_num("Failed"), column_num("Left"), column("Began"),
            ]))
            tbody role="rowgroup" #replays data-rows=(LIMIT) { @for replay in replays { (row(replay, now, &seen(replay))) } }
        }
    }
}

/// Letters per minute that came to their end.
fn at_rate(replay: &ReplayView, now: Timestamp) -> Markup {
    html! { @if let Some(per_minute) = replay.per_minute(now) { ", " (throughput(per_minute)) } }
}

fn row(replay: &ReplayView, now: Timestamp, seen: &Markup) -> Markup {
    let progress = &replay.progress;
    html! {
        tr role="row" id={ "replay-" (replay.id) } data-href={ "/replays/" (replay.id) } {
            th role="rowheader" scope="row" {
                a.name.cut href={ "/replays/" (replay.id) } { (name(&replay.name)) }
                span.fact.cut {
                    (pipelines_of(replay)) " · "
                    @if replay.automatic { "automatic" } @else { (name(&replay.actor)) }
                    " · " (replay.mode)
                }
            }
            td.r-state role="cell" {
                (replay_state(replay))
                @if let Some(why) = &replay.why { span.fact.cut title=(why) { (text(why)) } }
                (seen)
            }
            td role="cell" { (step(replay)) }
            td role="cell" { (small_bar(replay)) }
            td.num role="cell" data-l="recovered" {
                (count(progress.recovered as i64)) " of " (count(progress.total as i64))
            }
            td.num role="cell" data-l="failed" { (number(progress.failed as i64)) }
            td.num role="cell" data-l="left" { (number((progress.pending + progress.running) as i64)) }
            td.r-when role="cell" {
                (instant(replay.created_at, now))
                span.fact {
                    @match replay.finished_at {
                        Some(end) => { "took " (length(replay.created_at, end)) (at_rate(replay, now)) }
                        None => {
                            "for " (length(replay.created_at, now)) (at_rate(replay, now))
                            @if let Some(left) = ready_in(replay, now) { ", ready in about " (length_of(left)) }
                        }
                    }
                }
                @if let Some(oldest) = replay.oldest { span.fact { "oldest letter died " (ago(oldest, now)) } }
            }
        }
    }
}

/// Which step of its ramp a replay is in.
pub fn step(replay: &ReplayView) -> Markup {
    // Steps that its letters do not fill are none.
    let filled = replay.pacing.ramp.iter().scan(0_u64, |sent, step| {
        let before = std::mem::replace(sent, *sent + u64::from(*step));
        Some(before)
    });
    let all = replay.pacing.ramp.iter().map(|step| u64::from(*step)).sum::<u64>();
    let p = &replay.progress;
    let begins: Vec<u64> = filled.chain([all]).filter(|before| *before < p.total).collect();
    // Letters go in their order, and a step waits for the one before: so many that are through lie in the step it is in.
    let through = p.total.saturating_sub(p.pending + p.running);
    let steps = begins.len().max(1);
    let current = begins.iter().filter(|before| **before <= through).count().clamp(1, steps);
    html! { @if replay.state.is_over() { span.muted { "over" } } @else { (current) " of " (steps) } }
}

/// The pipelines of a replay.
pub fn pipelines_of(replay: &ReplayView) -> String {
    replay.pipelines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
