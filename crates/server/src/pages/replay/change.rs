//! What can be done to a replay: it goes on, is given up, or goes at another rate. What costs something is asked first, with its numbers.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use redrive::config::units::written_rate;
use redrive::contract::{ListSent, ReplayView};
use redrive::replays::ReplayRef;
use redrive_core::replays::{IN_FLIGHT_MAX, ReplayState};
use serde_json::Value;

use super::super::about;
use super::super::acts::{asked, filled};
use super::super::confirm::{self, Question, entry_as};
use super::super::fields::{Done, Fields, once, with_said};
use super::super::problem::Problem;
use super::super::shell::{self, Page, Place, number_of};
use super::super::visitor::Visitor;
use super::pace;
use crate::app::App;
use crate::asked::{Body, Named};
use crate::error::ApiError;
use crate::look::figures::count;
use crate::routes::replays::change;

/// What somebody would type to do what can be done now.
pub fn commands_of(replay: &ReplayView) -> Vec<(&'static str, String)> {
    let line = |verb: &str, flags: &str| format!("redrive replay {verb} {}{flags}", replay.id);
    let mut lines = vec![("Look", line("show", ""))];
    if replay.state == ReplayState::Running {
        lines.push(("Pause", line("pause", "")));
    }
    if replay.state == ReplayState::Paused {
        lines.push(("Resume", line("resume", " --detach")));
    }
    if !replay.state.is_over() && replay.state != ReplayState::Cancelling {
        lines.push(("Change rate", line("rate", &format!(" {}", rate_of(replay)))));
        lines.push(("Cancel", line("cancel", "")));
    }
    lines
}

/// Its rate as it is written.
fn rate_of(replay: &ReplayView) -> String {
    replay.pacing.per_second.map_or_else(|| "none".to_owned(), written_rate)
}

/// So many letters.
fn letters_of(many: u64) -> String {
    number_of(usize::try_from(many).unwrap_or(usize::MAX), "letter", "letters")
}

/// What happens when a replay is given up, and what the button says: what a worker has begun may yet recover, and is not counted.
async fn cancelled(app: &App, replay: &ReplayView) -> Result<(Markup, String), Problem> {
    let p = &replay.progress;
    let sent = ListSent { id: replay.id, pipelines: None, limit: IN_FLIGHT_MAX };
    let idle = match p.running > 0 {
        true => app.redrive().store().list_sent(sent).await?.len() as u64,
        false => 0,
    };
    let idle = idle.min(p.running);
    let (left, begun) = (p.pending + idle, p.running - idle);
    let effect = html! {
        (letters_of(left)) @if left == 1 { " stays" } @else { " stay" } " dead: not sent, or taken back because nobody began them. "
        @if p.failed > 0 { (letters_of(p.failed)) " that failed again " @if p.failed == 1 { "stays" } @else { "stay" } " dead too. " }
        @if begun > 0 { (letters_of(begun)) " that a worker has begun " @if begun == 1 { "comes to its end. " } @else { "come to their end. " } }
        @if p.recovered > 0 { (letters_of(p.recovered)) " that recovered " @if p.recovered == 1 { "stays" } @else { "stay" } " done." }
    };
    Ok((effect, format!("Cancel, and leave {} dead", count((left + p.failed) as i64))))
}

/// Asks before a replay goes on, or is given up, or how fast it is to go.
pub async fn ask(
    State(app): State<App>,
    visitor: Visitor,
    Named(which): Named<ReplayRef>,
) -> Result<Response, Problem> {
    let replay = app.redrive().find_replay(which).await?;
    visitor.caller.check_each(&replay.pipelines)?;
    let (query, p) = (visitor.query(), &replay.progress);
    let may = match query.one("verb") {
        Some("resume") => replay.state == ReplayState::Paused,
        _ => !replay.state.is_over() && replay.state != ReplayState::Cancelling,
    };
    if !may {
        return Ok(Redirect::to(&format!("/replays/{}", replay.id)).into_response());
    }
    let left = p.pending + p.running;
    let are = |many: u64| if many == 1 { "is" } else { "are" };
    let (verb, title, effect, yes) = match query.one("verb") {
        Some("resume") => (
            "resume",
            "Resume this replay?",
            html! {
                (letters_of(left)) " " (are(left)) " sent from here on, beginning with a step of its size. "
                @if p.failed > 0 { "The " (count(p.failed as i64)) " that failed so far " (are(p.failed)) " forgiven: only what fails from now on counts." }
            },
            "Resume".to_owned(),
        ),
        Some("cancel") => {
            let (effect, yes) = cancelled(&app, &replay).await?;
            ("cancel", "Cancel this replay?", effect, yes)
        }
        Some("rate") => (
            "rate",
            "Change the rate of this replay?",
            html! { (letters_of(left)) " " (are(left)) " left; now: " (pace(&replay)) ". The ramp and the limit of failures stay." },
            "Change the rate".to_owned(),
        ),
        _ => return Err(ApiError::invalid("verb", "expected resume, cancel or rate").into()),
    };
    let asks_rate = verb == "rate";
    let (action, back) = (format!("/replays/{}/change", replay.id), format!("/replays/{}", replay.id));
    let fields = html! {
        input type="hidden" name="verb" value=(verb);
        @if asks_rate {
            input type="hidden" name="was" value=(rate_of(&replay));
            (entry_as("rate", "Letters in a time: 5/s, 100/m or 500/h; none for as fast as they are worked on", &rate_of(&replay), true, Some("")))
        }
    };
    let command = format!("redrive replay {verb} {}{}", replay.id, if verb == "resume" { " --detach" } else { "" });
    let filled = if asks_rate { format!(" {}", rate_of(&replay)) } else { String::new() };
    let about = about::of_replay(&replay);
    let question = Question { title, about, effect, action: &action, fields, yes: &yes, command, filled, back: &back };
    let body = confirm::page(&visitor, &question);
    shell::show(&app, &visitor, Page { place: Place::Replays, title, pipeline: None, body }).await
}

/// Pauses, resumes or cancels a replay, or changes its rate.
pub async fn change(
    State(app): State<App>,
    visitor: Visitor,
    Named(which): Named<ReplayRef>,
    fields: Fields,
) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        let verb = fields.one("verb").unwrap_or_default();
        let (state, caller) = (State(app.clone()), visitor.caller.clone());
        let changed = match verb {
            "pause" => change::pause(state, caller, Named(which)).await,
            "resume" => change::resume(state, caller, Named(which), Body(Default::default())).await,
            "cancel" => change::cancel(state, caller, Named(which)).await,
            "rate" => {
                let asked = asked(Value::Object(filled(&fields, &["rate", "was"])))?;
                change::rate(state, caller, Named(which), Body(asked)).await
            }
            _ => return Err(ApiError::invalid("verb", "expected pause, resume, cancel or rate").into()),
        };
        match changed {
            Ok(changed) => Ok(Done::At(with_said(&format!("/replays/{}", changed.0.id), &[("said", verb)]))),
            // It came to its end, or somebody else did the same.
            Err(error) if error.status() == StatusCode::CONFLICT => {
                let page = visitor.here.split('?').next().unwrap_or_default().trim_end_matches("/change");
                Ok(Done::At(with_said(page, &[("said", "changed")])))
            }
            Err(error) => Err(error.into()),
        }
    })
    .await
}
