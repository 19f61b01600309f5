//! `/letters/{id}`: all about one task.
//!
//! - `ways`: from what it can be sent again; `retry`: doing that, after a question
//! - `attempts`: what happened, attempt by attempt
//! - `task`: a task that is not dead, or not any more
//! - `tools`: the letter for other tools

mod attempts;
pub mod retry;
pub mod task;
pub mod tools;
pub mod ways;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::ReplayView;
use redrive_core::dead::DeadLetter;
use redrive_core::failures::Failure;
use redrive_core::ids::JobRef;
use redrive_core::payloads::Payload;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;

use self::ways::{Ways, lost};
use super::compare;
use super::letter_edit;
use super::letters::number_of;
use super::part::{self, part};
use super::parts::{Glyph, commands, instant, link, name, section_head, state, text};
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
    let Some(letter) = app.redrive().get_dead(id).await? else { return task::show(&app, &visitor, id).await };
    visitor.caller.check(&letter.pipeline)?;
    let now = app.redrive().now();
    let replay = format!("/replays/new?id={}", letter.id);
    let replays = async { Ok(app.redrive().store().replays_of(id, letter_edit::REPLAYS_MAX).await?) };
    let responded = async { Ok(response(&app, &visitor, &letter).await) };
    let compared = compare::section(&app, &visitor, &letter, (None, &replay));
    // All at once: each has the same time for what it reads.
    let (replays, ways, response, compared) = tokio::join!(
        part::read(replays),
        Ways::of(&app, &visitor, &letter),
        part(&visitor, ("response", "Response"), responded),
        part(&visitor, ("broke", "What broke"), compared),
    );
    let replays = replays?;
    let taken = ways.is_taken.then(|| replays.as_ref().ok().and_then(|all| taken_by(&visitor, all)));
    let most = app.setting().config.pipeline.get(&letter.pipeline).map(|own| own.policy().retry.attempts_max);
    let head = head(&visitor, &letter, (&ways, taken, most), now);
    let failures = letter.failures.as_deref().unwrap_or_default();
    let own = task::seen_by(&visitor, replays.as_deref().unwrap_or_default());
    let attempts = attempts::section(failures, letter.accepted_at, &own, now);
    let history = async {
        let replays = replays?;
        let own = task::seen_by(&visitor, &replays);
        Ok(html! { (letter_edit::history(&visitor, &letter, &replays)) (task::replays(&own, now)) })
    };
    let body = html! {
        (head)
        (compared)
        (attempts)
        div.halves { (letter_edit::form(&visitor, &letter, ways.is_taken, None)) div { (response) } }
        (part(&visitor, ("replays-of", "Replays of it"), history).await)
        (tools::section(&app, &visitor, &letter))
    };
    let title = format!("Letter {}", number_of(&letter));
    shell::show(&app, &visitor, Page { place: Place::Letters, title: &title, pipeline: Some(&letter.pipeline), body })
        .await
}

/// The replay that has a letter, if who looks may see it: the newest of its replays that are not over.
fn taken_by<'a>(visitor: &Visitor, replays: &'a [ReplayView]) -> Option<&'a ReplayView> {
    let open = replays.iter().find(|replay| !replay.state.is_over());
    open.filter(|replay| task::is_seen_by(visitor, replay))
}

/// `taken` is there if another replay has the letter, with that replay where it may be seen; `most` is how many attempts a run has.
fn head(
    visitor: &Visitor,
    letter: &DeadLetter,
    (ways, taken, most): (&Ways, Option<Option<&ReplayView>>, Option<u32>),
    now: Timestamp,
) -> Markup {
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
                li {
                    (number_of_things(letter.attempts as usize, "attempt", "attempts"))
                    @if let Some(most) = most { ", at most " (most) " a run" }
                }
                @if letter.replays > 0 { li { (number_of_things(letter.replays as usize, "replay", "replays")) } }
                li { "died " (instant(letter.died_at, now)) } li { "gate " (letter.gate) }
                @if let Some(verdict) = &letter.verdict { li { (text(verdict)) } }
            }
            div.actions.page-actions #actions { (actions(visitor, letter, ways)) }
            @if let Some(replay) = taken {
                p.fact #taken {
                    "Another replay has it"
                    @if let Some(replay) = replay { ": " a href={ "/replays/" (replay.id) } { (name(&replay.name)) } }
                    ". Nobody else can send or edit it until that is through with it."
                }
            }
            @if let Some(why) = ways.why_not() { p.fact #ways { "Not from its saved page: " (why) "." } }
        }
    }
}

/// What can be done with it. While another replay has it, it can only be looked at.
fn actions(visitor: &Visitor, letter: &DeadLetter, ways: &Ways) -> Markup {
    let to = |from: &str| format!("/letters/{}/retry?from={from}", letter.id);
    let discard = format!("/letters/discard?id={}", letter.id);
    let unless = |why: Option<&str>, label: &str, href: &str, class: &str, key| match why {
        Some(why) => html! { button class=(class) disabled title=(why) { (label) } span.vh.why { (why) } },
        None => link(visitor, Role::Operator, href, label, class, key),
    };
    let taken = ways.is_taken.then_some("another replay has it");
    let form = |label: &str, href: &str, class: &str, key| unless(taken, label, href, class, key);
    let lacks = lost(letter);
    html! {
        @if !lacks.is_empty() {
            // Nobody can fill in all of an input.
            @let why = lacks.iter().any(String::is_empty).then_some("all of its input is masked");
            (unless(taken.or(why), "Edit and retry…", "#edit", "primary", Some("r")))
        } @else if ways.saved() {
            (form("Retry from saved…", &to("saved"), "primary", Some("r")))
            (form("Fetch again…", &to("refetch"), "", None))
        } @else {
            (unless(taken.or(ways.kept_back.as_deref()), "Retry now…", &to("suited"), "primary", Some("r")))
        }
        @if lacks.is_empty() { (form("Edit and retry…", "#edit", "in-more", None)) }
        (link(visitor, Role::Admin, &discard, "Discard…", "in-more", None))
        // What has no room in the bar of a phone.
        details.menu.narrow { summary.button { "More" } ul {
            @if lacks.is_empty() { li { (form("Edit and retry…", "#edit", "plainly", None)) } }
            li { (link(visitor, Role::Admin, &discard, "Discard…", "plainly", None)) }
        } }
        (commands(visitor, &commands_of(letter, ways.saved())))
    }
}

/// What somebody would type to do what can be done now.
fn commands_of(letter: &DeadLetter, has_saved: bool) -> Vec<(&'static str, String)> {
    let id = letter_edit::called(letter);
    let mut lines = match has_saved {
        _ if !lost(letter).is_empty() => Vec::new(),
        true => {
            vec![("Retry from saved", retry::line(letter, "saved")), ("Fetch again", retry::line(letter, "refetch"))]
        }
        false => vec![("Retry now", retry::line(letter, "suited"))],
    };
    lines.push(("Edit and retry", format!("redrive retry {id} --edit")));
    lines.push(("Discard", format!("redrive dead discard {id} --why 'the reason'")));
    lines
}

/// The newest response that was kept, as text.
async fn response(app: &App, visitor: &Visitor, letter: &DeadLetter) -> Markup {
    let kept = letter.failures.iter().flatten().rev().find_map(Failure::kept_payload);
    let address =
        letter.payload_address.as_deref().filter(|_| kept.is_some_and(|kept| Some(kept.hash) == letter.payload));
    let shown = match kept {
        None => html! { p.empty { "No response was kept." } },
        Some(_) if visitor.caller.check_payloads().is_err() => {
            html! { p.empty { "A response was kept; your token may not read payloads." } }
        }
        Some(payload) => body_of(app, payload, address).await,
    };
    html! { section aria-labelledby="response" { (section_head("response", "Response", "as text")) (shown) } }
}

async fn body_of(app: &App, payload: &Payload, address: Option<&str>) -> Markup {
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
        @if let Some(address) = address { p.fact { "Kept at " code { (text(address)) } } }
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
