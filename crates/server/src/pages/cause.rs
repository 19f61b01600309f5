//! `/causes/{id}`: why, and is it fixed?
//!
//! - `change`: what people do to it; `when`: its hours; `history`: why it is one, what was said and what happened

mod change;
mod history;
mod when;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::{CauseDetail, CauseView, ListDead};
use redrive_core::causes::{CauseId, CauseState};
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;

pub use self::change::{ask, change};
use super::causes::facts;
use super::compare::{self, Sample};
use super::different;
use super::filter::LetterFilter;
use super::letters;
use super::part::part;
use super::parts::{Button, button, cause_state, commands, instant, link, name, quoted, text};
use super::problem::Problem;
use super::shell::{self, Page, Place};
use super::visitor::Visitor;
use crate::app::App;
use crate::asked::Named;
use crate::look::figures::{count, part_of};
use crate::routes::causes::compare::{first_with_page, samples};

/// Letters that are shown.
const LETTERS: u32 = 8;

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor, Named(id): Named<CauseId>) -> Result<Response, Problem> {
    let now = app.redrive().now();
    let detail = app.redrive().store().get_cause(id, now).await?;
    visitor.caller.check(&detail.cause.pipeline)?;
    let cause = &detail.cause;
    let compared = part(&visitor, ("broke", "What broke"), compared(&app, &visitor, cause)).await;
    let different = async {
        let different = app.redrive().differences(cause).await?;
        Ok(different::section(&visitor, cause, &different))
    };
    let different = part(&visitor, ("different", "What is different"), different).await;
    let marks = app.redrive().cause_marks(&detail, when::since(now)).await;
    let hours = when::section(&app, cause, marks.as_deref().unwrap_or_default(), now);
    let when = part(&visitor, ("when", "When"), hours).await;
    let letters = part(&visitor, ("letters", "Letters"), letter_list(&app, &visitor, cause, now)).await;
    let notes = async { Ok(history::notes(&visitor, &detail, &marks?, now)) };
    let notes = part(&visitor, ("notes", "Notes and history"), notes).await;
    let body = html! {
        (head(&visitor, &detail, cause.saved, now))
        (compared)
        (different)
        (when)
        (letters)
        div.halves { (history::why_one_group(&visitor, &detail)) (notes) }
    };
    let title = crate::look::foreign::cut(&detail.cause.title, 60);
    shell::show(
        &app,
        &visitor,
        Page { place: Place::Causes, title: &title, pipeline: Some(&detail.cause.pipeline), body },
    )
    .await
}

fn head(visitor: &Visitor, detail: &CauseDetail, saved: u64, now: Timestamp) -> Markup {
    let cause = &detail.cause;
    let came_to_their_end = cause.total;
    // A task counts once, as what it died of first.
    let failed_again = (cause.dead + cause.recovered + cause.discarded).saturating_sub(cause.total);
    html! {
        div.crumbs { span { a href="/causes" { "Causes" } " / " code { (cause.id) } } }
        div.head {
            h1 { (cause_state(cause.state)) (text(&cause.title)) }
            ul.facts {
                li { (facts(cause)) }
                li { @match &cause.owner { Some(owner) => { "owner " (name(owner)) } None => { "no owner" } } }
                @if let (CauseState::Muted, Some(mute)) = (cause.state, &detail.mute) {
                    li {
                        "muted"
                        @if let Some(until) = mute.until { " until " (instant(until, now)) }
                        @if let Some(rate) = mute.per_hour { " until " (rate) " die in an hour" }
                    }
                }
            }
            (said(visitor, cause))
        }
        dl.figures #figures {
            div { dt { "Dead" } dd { (count(cause.dead as i64)) } }
            div {
                dt { "Replayable from saved" }
                dd { (count(saved as i64)) " " small { "of " (count(cause.dead as i64)) } }
            }
            div {
                dt { "Died of it in all" }
                dd {
                    (count(came_to_their_end as i64)) " "
                    small {
                        @if failed_again > 0 { "and " (count(failed_again as i64)) " that failed again; " }
                        (count(cause.recovered as i64)) " recovered, " (count(cause.discarded as i64)) " discarded"
                    }
                }
            }
            div {
                dt { "First, last death" }
                dd { (instant(cause.first_seen, now)) " " small { "to " (instant(cause.last_seen, now)) } }
            }
        }
        (actions(visitor, cause))
    }
}

fn actions(visitor: &Visitor, cause: &CauseView) -> Markup {
    let (id, action) = (cause.id.as_str(), format!("/causes/{}/change", cause.id));
    let new = format!("/replays/new?cause={id}");
    let can_try = cause.dead > 0 && cause.saved > 0;
    html! {
        div.actions.page-actions.under {
            @if can_try { (link(visitor, Role::Operator, &format!("{new}#step-2"), "Try a fix", "primary", Some("t"))) }
            @if cause.dead > 0 {
                (link(visitor, Role::Operator, &new, &format!("Replay {}…", count(cause.dead as i64)), if can_try { "" } else { "primary" }, Some("r")))
            }
            (changes(visitor, cause, "in-more", true))
            details.menu {
                summary.button { "More" }
                ul {
                    // What has no room in the bar of a phone.
                    li.narrow { (changes(visitor, cause, "plainly", false)) }
                    li { a href={ (action) "?verb=note" } { "Add a note…" } }
                    li { a href={ (action) "?verb=merge" } { "Merge into another…" } }
                    li { a href={ (action) "?verb=split" } { "Split…" } }
                    @if cause.dead > 0 { li { a href={ "/letters/discard?cause=" (id) } { "Discard its letters…" } } }
                }
            }
            (commands(&commands_of(visitor, cause)))
        }
    }
}

/// What can be taken back: whose it is, whether it is heard of, whether it is over.
fn changes(visitor: &Visitor, cause: &CauseView, class: &str, with_keys: bool) -> Markup {
    let action = format!("/causes/{}/change", cause.id);
    let form = |label: &'static str, fields: &[(&str, &str)], key: &'static str| {
        let key = Some(key).filter(|key| with_keys && !key.is_empty());
        button(visitor, &Button { action: &action, label, role: Role::Operator, fields, class, key })
    };
    let me = visitor.caller.name();
    html! {
        @if cause.owner.as_deref() == Some(me) { (form("Give back", &[("verb", "assign")], "")) }
        @else {
            (form("Assign me", &[("verb", "assign"), ("owner", me), ("was", cause.owner.as_deref().unwrap_or(""))], "a"))
        }
        @match cause.state {
            CauseState::Muted => (form("Unmute", &[("verb", "unmute")], "m")),
            _ => (link(visitor, Role::Operator, &format!("{action}?verb=mute"), "Mute…", class, with_keys.then_some("m"))),
        }
        @match cause.state {
            CauseState::Resolved => (form("Reopen", &[("verb", "reopen")], "e")),
            _ => (form("Resolve", &[("verb", "resolve")], "e")),
        }
    }
}

/// What somebody would type to do what can be done now.
fn commands_of(visitor: &Visitor, cause: &CauseView) -> Vec<(&'static str, String)> {
    let (id, me) = (quoted(cause.id.as_str()), visitor.caller.name());
    let mut lines = Vec::new();
    if cause.dead > 0 && cause.saved > 0 {
        lines.push(("Try a fix", format!("redrive replay try --cause {id}")));
    }
    if cause.dead > 0 {
        lines.push(("Replay", format!("redrive replay start --cause {id} --detach")));
    }
    lines.push(match cause.owner.as_deref() == Some(me) {
        true => ("Give back", format!("redrive cause assign {id}")),
        false => ("Assign me", format!("redrive cause assign {id} {}", quoted(me))),
    });
    lines.push(match cause.state {
        CauseState::Muted => ("Unmute", format!("redrive cause unmute {id}")),
        _ => ("Mute", format!("redrive cause mute {id} --until 24h")),
    });
    lines.push(match cause.state {
        CauseState::Resolved => ("Reopen", format!("redrive cause reopen {id}")),
        _ => ("Resolve", format!("redrive cause resolve {id}")),
    });
    lines
}

/// What was just done to it, with a way to take that back.
fn said(visitor: &Visitor, cause: &CauseView) -> Markup {
    let query = visitor.query();
    let action = format!("/causes/{}/change", cause.id);
    let was = query.one("was").unwrap_or_default();
    let (what, undo): (&str, &[(&str, &str)]) = match query.one("said") {
        Some("assign") => ("Assigned.", &[("verb", "assign"), ("owner", was)]),
        Some("mute") => ("Muted.", &[("verb", "unmute")]),
        Some("unmute") => ("No longer muted.", &[("verb", "mute")]),
        Some("resolve") => ("Resolved; if it comes back, it is regressed.", &[("verb", "reopen")]),
        Some("reopen") => ("Open again.", &[("verb", "resolve")]),
        Some("note") => ("Noted.", &[]),
        Some("merge") => ("Merged.", &[]),
        Some("split") => ("Split.", &[]),
        _ => return html! {},
    };
    html! {
        div.said role="status" {
            (what)
            @if !undo.is_empty() {
                " "
                (button(visitor, &Button { action: &action, label: "Undo", role: Role::Operator, fields: undo, class: "small plainly", key: None }))
            }
        }
    }
}

/// The page of one of its letters beside the last one that worked.
async fn compared(app: &App, visitor: &Visitor, cause: &CauseView) -> Result<Markup, Problem> {
    let samples = samples(app, cause).await?;
    let asked = visitor.query().one("sample").and_then(|sample| sample.parse::<usize>().ok());
    let asked = asked.unwrap_or_else(|| first_with_page(&samples));
    let at = asked.clamp(1, samples.len().max(1));
    let Some(letter) = samples.get(at - 1) else { return Ok(html! {}) };
    let sample = Sample { cause: &cause.id, letters: &samples, at, all: cause.dead };
    compare::section(app, visitor, letter, (Some(sample), &format!("/replays/new?cause={}", cause.id))).await
}

async fn letter_list(app: &App, visitor: &Visitor, cause: &CauseView, now: Timestamp) -> Result<Markup, Problem> {
    let filter = redrive::contract::DeadFilter { cause: Some(cause.id.clone()), ..Default::default() };
    let asked = ListDead { filter, limit: LETTERS, cursor: None, with_failures: true };
    let letters = app.redrive().store().list_dead(asked).await?.items;
    Ok(html! {
        section aria-labelledby="letters" {
            div.section-head {
                h2 id="letters" { "Letters" }
                span.fact { (part_of(letters.len() as i64, cause.dead as i64)) ", newest first" }
                span.end { a href={ "/letters?cause=" (cause.id) } { "All " (count(cause.dead as i64)) } }
            }
            @if letters.is_empty() { p.empty { "No letter is dead of it any more." } }
            @else { (letters::table(visitor, &letters, &LetterFilter::of_cause(cause), now, false)) }
        }
    })
}
