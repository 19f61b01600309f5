//! `/letters/{id}`: all about one task.
//!
//! - `ways`: from what it can be sent again
//! - `attempts`: what happened, attempt by attempt
//! - `task`: a task that is not dead, or not any more
//! - `tools`: the letter for other tools

mod attempts;
mod task;
pub mod tools;
mod ways;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive_core::dead::DeadLetter;
use redrive_core::failures::Failure;
use redrive_core::ids::JobRef;
use redrive_core::payloads::Payload;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;

use self::ways::Ways;
use super::compare;
use super::letter_edit;
use super::letters::number_of;
use super::part::part;
use super::parts::{Button, Glyph, button, commands, instant, link, name, section_head, state, text};
use super::problem::Problem;
use super::shell::{self, Page, Place, number_of as number_of_things};
use super::visitor::Visitor;
use crate::app::App;
use crate::asked::Named;
use crate::look::foreign::harmless;
use crate::look::tone::Tone;

/// The most of a response that is shown, in bytes.
const SHOWN_BYTES: usize = 40_000;

/// The largest response that is looked into, in bytes.
const LOOKED_INTO_BYTES: u64 = 4 * 1024 * 1024;

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor, Named(named): Named<JobRef>) -> Result<Response, Problem> {
    let id = app.redrive().find_job(&named).await?;
    let Some(letter) = app.redrive().store().get_dead(id).await? else { return task::show(&app, &visitor, id).await };
    visitor.caller.check(&letter.pipeline)?;
    let now = app.redrive().now();
    let response = response(&app, &visitor, &letter).await;
    let history = async {
        let replays = app.redrive().store().replays_of(id, letter_edit::REPLAYS_MAX).await?;
        Ok(html! { (letter_edit::history(&letter, &replays)) (task::replays(&replays, now)) })
    };
    let history = part(&visitor, ("replays-of", "Replays of it"), history).await;
    let ways = Ways::of(&app, &visitor, &letter).await;
    let replay = format!("/replays/new?id={}", letter.id);
    let compared = compare::section(&app, &visitor, &letter, (None, &replay));
    let compared = part(&visitor, ("broke", "What broke"), compared).await;
    let body = html! {
        (head(&visitor, &letter, &ways, now))
        (compared)
        (attempts::section(letter.failures.as_deref().unwrap_or_default(), letter.accepted_at, now))
        div.halves { (letter_edit::form(&visitor, &letter, None)) div { (response) } }
        (history)
        (tools::section(&app, &letter))
    };
    let title = format!("Letter {}", number_of(&letter));
    shell::show(&app, &visitor, Page { place: Place::Letters, title: &title, pipeline: Some(&letter.pipeline), body })
        .await
}

fn head(visitor: &Visitor, letter: &DeadLetter, ways: &Ways, now: Timestamp) -> Markup {
    let retry = format!("/letters/{}/retry", letter.id);
    let form = |label: &'static str, from: &'static str, class: &'static str, key| {
        button(visitor, &Button { action: &retry, label, role: Role::Operator, fields: &[("from", from)], class, key })
    };
    let (has_saved, discard) = (ways.saved(), format!("/letters/discard?id={}", letter.id));
    html! {
        div.crumbs {
            span { a href="/letters" { "Letters" } " / " code { (letter.id) } }
            @if let Some(cause) = &letter.cause { span { "cause " a href={ "/causes/" (cause) } { code { (cause) } } } }
        }
        div.head #where {
            h1 { (state("dead", Glyph::Cross, Tone::Bad)) (number_of(letter)) " " (text(&letter.message)) }
            ul.facts {
                li { (letter.pipeline) }
                li { (letter.reason) @if let Some(status) = letter.http_status { ", " (status) } }
                @if let Some(target) = &letter.target { li { (name(target)) } }
                li { (number_of_things(letter.attempts as usize, "attempt", "attempts")) } @if letter.replays > 0 { li { (number_of_things(letter.replays as usize, "replay", "replays")) } }
                li { "died " (instant(letter.died_at, now)) } li { "gate " (letter.gate) }
                @if let Some(verdict) = &letter.verdict { li { (text(verdict)) } }
            }
            div.actions.page-actions #actions {
                (form(if has_saved { "Retry from saved" } else { "Retry now" }, if has_saved { "saved" } else { "suited" }, "primary", Some("r")))
                @if has_saved { (form("Fetch again", "refetch", "", None)) }
                (link(visitor, Role::Operator, "#edit", "Edit and retry…", "in-more", None))
                (link(visitor, Role::Admin, &discard, "Discard…", "in-more", None))
                // What has no room in the bar of a phone.
                details.menu.narrow { summary.button { "More" } ul {
                    li { (link(visitor, Role::Operator, "#edit", "Edit and retry…", "plainly", None)) }
                    li { (link(visitor, Role::Admin, &discard, "Discard…", "plainly", None)) }
                } }
                (commands(&commands_of(letter, has_saved)))
            }
            @if let Some(why) = ways.why_not() { p.fact #ways { "Not from its saved page: " (why) "." } }
        }
    }
}

/// What somebody would type to do what can be done now.
fn commands_of(letter: &DeadLetter, has_saved: bool) -> Vec<(&'static str, String)> {
    let id = letter.number.map_or_else(|| letter.id.to_string(), |number| number.to_string());
    let force = letter_edit::forced(letter);
    let retry = |from: &str| format!("redrive replay start {id}{from} --ramp none --refail-max 100%{force} --detach");
    let mut lines = match has_saved {
        true => vec![("Retry from saved", retry(" --saved")), ("Fetch again", retry(" --refetch"))],
        false => vec![("Retry now", retry(""))],
    };
    lines.push(("Edit and retry", format!("redrive retry {id} --edit")));
    lines.push(("Discard", format!("redrive dead discard {id} --why 'the reason'")));
    lines
}

/// The newest response that was kept, as text.
async fn response(app: &App, visitor: &Visitor, letter: &DeadLetter) -> Markup {
    let kept = letter.failures.iter().flatten().rev().find_map(Failure::kept_payload);
    let shown = match kept {
        None => html! { p.empty { "No response was kept." } },
        Some(_) if visitor.caller.check_payloads().is_err() => {
            html! { p.empty { "A response was kept; your token may not read payloads." } }
        }
        Some(payload) => body_of(app, payload).await,
    };
    html! { section aria-labelledby="response" { (section_head("response", "Response", "as text")) (shown) } }
}

async fn body_of(app: &App, payload: &Payload) -> Markup {
    let body = match (app.vault(), payload.size_bytes <= LOOKED_INTO_BYTES) {
        (None, _) => Err("this server has no vault".to_owned()),
        (_, false) => Err("it is too large to be shown; redrive payload cat prints it".to_owned()),
        (Some(vault), true) => vault.bytes(payload.hash, payload.size_bytes).await.map_err(|error| error.to_string()),
    };
    html! {
        ul.facts {
            @if let Some(status) = payload.response.status { li { "status " (status) } }
            li { (payload.size_bytes) " bytes" @if payload.truncated { ", cut" } }
            li { code { (&payload.hash.to_string()[..12]) } }
        }
        @if !payload.response.headers.is_empty() {
            details {
                summary { "Headers" }
                dl.keys { @for (key, value) in &payload.response.headers { dt { (name(key)) } dd { (text(value)) } } }
            }
        }
        @match body {
            Ok(bytes) => {
                pre.code.tall tabindex="0" {
                    (harmless(&String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)])))
                }
                @if bytes.len() > SHOWN_BYTES { p.fact { "The first " (SHOWN_BYTES) " of " (bytes.len()) " bytes." } }
            }
            Err(why) => { p.headline.warn { "The page cannot be shown: " (why) "." } }
        }
    }
}
