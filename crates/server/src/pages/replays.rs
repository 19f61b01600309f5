//! `/replays`: what was sent again, and what came of it.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::{ListReplays, ReplayView};
use redrive_core::replays::paused_itself;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;

use super::parts::{
    column, column_num, columns, command, further, instant, length, link, name, number, replay_state, text, views,
    with_query, without_cursor,
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
    let mut page = app.redrive().store().list_replays(ListReplays { open_only, limit: LIMIT, cursor }).await?;
    page.items.retain(|replay| visitor.caller.check_each(&replay.pipelines).is_ok());
    // Those that stopped by themselves wait for somebody.
    page.items.sort_by_key(|replay| !paused_itself(replay.state, replay.why.as_deref()));
    let here = without_cursor(&visitor.here);
    let tabs = [("all", "All", !open_only), ("open", "Open", open_only)];
    let tabs = tabs.map(|(state, title, is)| (with_query(&here, "state", Some(state)), html! { (title) }, is));
    let body = html! {
        div.head {
            h1 { "Replays" }
            div.actions { (link(&visitor, Role::Viewer, "/causes", "Choose a cause to replay", "", None)) }
        }
        (views("Which replays", tabs))
        @if page.items.is_empty() {
            p.empty {
                "No replay "
                @if open_only {
                    "is open. " a href="/replays" { "All replays" }
                } @else {
                    "yet. A cause, or letters that you tick, can be sent again."
                }
            }
        }
        @else {
            (table(&page.items, app.redrive().now()))
            (further(&here, page.next.as_deref()))
            (command("redrive replay list"))
        }
    };
    shell::show(&app, &visitor, Page { place: Place::Replays, title: "Replays", pipeline: None, body }).await
}

/// Replays as a table.
pub fn table(replays: &[ReplayView], now: Timestamp) -> Markup {
    html! {
        table.replays.two role="table" {
            (columns(&[
                column("Replay"), column("State"), column("Step"), column("Progress"), column_num("Recovered"),
                column_num("Failed"), column_num("Left"), column("Began"),
            ]))
            tbody role="rowgroup" #replays data-rows="" { @for replay in replays { (row(replay, now)) } }
        }
    }
}

fn row(replay: &ReplayView, now: Timestamp) -> Markup {
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
                (replay_state(replay.state))
                @if let Some(why) = &replay.why { span.fact.cut title=(why) { (text(why)) } }
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
                        Some(end) => { "took " (length(replay.created_at, end)) }
                        None => { "for " (length(replay.created_at, now)) }
                    }
                }
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
    let steps = filled.chain([all]).filter(|before| *before < replay.progress.total).count().max(1);
    let current = (replay.progress.step.number as usize + 1).min(steps);
    html! { @if replay.state.is_over() { span.muted { "over" } } @else { (current) " of " (steps) } }
}

/// The pipelines of a replay.
pub fn pipelines_of(replay: &ReplayView) -> String {
    replay.pipelines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
