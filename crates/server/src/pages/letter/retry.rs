//! Sending one letter again: a question that says what happens, and doing it.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use redrive_core::dead::DeadLetter;
use redrive_core::ids::JobRef;
use redrive_core::jobs::Input;
use redrive_core::replays::{Exclusion, ReplayPlan};
use serde_json::json;

use super::super::about;
use super::super::acts::asked;
use super::super::confirm::{self, Question, entry_as};
use super::super::fields::{Done, Fields, once};
use super::super::letter_edit::{called, edited};
use super::super::letters::number_of;
use super::super::parts::{name, text};
use super::super::problem::Problem;
use super::super::shell::{self, Page, Place};
use super::super::visitor::Visitor;
use super::ways::{is_forced, kept_back, lost, planned};
use crate::app::App;
use crate::asked::{Body, Named};
use crate::error::ApiError;
use crate::routes::replays::start;

/// Asks before a letter is sent again: from its saved page, or anew.
pub async fn ask(State(app): State<App>, visitor: Visitor, Named(named): Named<JobRef>) -> Result<Response, Problem> {
    let letter = app.redrive().dead_letter(app.redrive().find_job(&named).await?).await?;
    visitor.caller.check(&letter.pipeline)?;
    if !lost(&letter).is_empty() {
        return Ok(Redirect::to(&format!("/letters/{}#edit", letter.id)).into_response());
    }
    let query = visitor.query();
    let from = match query.one("from") {
        None => "suited",
        Some(from @ ("saved" | "refetch" | "suited")) => from,
        Some(_) => return Err(ApiError::invalid("from", "expected saved, refetch or suited").into()),
    };
    let plan = planned(&app, &visitor, &letter, from).await?;
    if let Some(exclusion) = plan.excluded.keys().next() {
        return Err(not_sent(*exclusion));
    }
    let number = number_of(&letter);
    let title = match from {
        "saved" => format!("Retry {number} from its saved page?"),
        "refetch" => format!("Fetch {number} again?"),
        _ => format!("Retry {number}?"),
    };
    let (action, back) = (format!("/letters/{}/retry", letter.id), format!("/letters/{}", letter.id));
    let fields = html! { input type="hidden" name="from" value=(from); (why(&letter)) };
    let filled = if is_forced(&letter) { " --why 'the reason'" } else { "" }.to_owned();
    let question = Question {
        title: &title,
        about: about::of_letter(&app, &letter).await?,
        effect: effect(&letter, &plan),
        action: &action,
        fields,
        yes: if plan.saved > 0 { "Retry from saved" } else { "Retry with a request" },
        command: line_of(&letter, from, &forced(&letter, "")),
        filled,
        back: &back,
    };
    let body = confirm::page(&visitor, &question);
    let page = Page { place: Place::Letters, title: &title, pipeline: Some(&letter.pipeline), body };
    shell::show_still(&app, &visitor, page).await
}

/// What happens when it is sent.
fn effect(letter: &DeadLetter, plan: &ReplayPlan) -> Markup {
    html! {
        "The same task, " (number_of(letter)) ", goes once more, without steps"
        @if plan.saved > 0 { ", from the page that was kept: no request is made." }
        @else {
            ", anew: one request or more"
            @match &letter.target { Some(target) => { " to " (name(target)) } None => {} }
            "."
        }
        " Until it comes to its end nobody else can send it."
        @if is_forced(letter) {
            " It failed permanently (gate never" @if let Some(verdict) = &letter.verdict { ": " (text(verdict)) }
            "): it is sent all the same, and that is recorded with your reason."
        }
    }
}

/// The field for why a letter is sent that failed permanently; nothing where that need not be said.
pub fn why(letter: &DeadLetter) -> Markup {
    match is_forced(letter) {
        true => entry_as("why", "Why it is sent all the same, for the record", "", true, Some("--why")),
        false => html! {},
    }
}

/// What somebody would type to send a letter again.
pub fn line(letter: &DeadLetter, from: &str) -> String {
    line_of(letter, from, &forced(letter, " --why 'the reason'"))
}

fn line_of(letter: &DeadLetter, from: &str, forced: &str) -> String {
    let from = match from {
        "saved" => " --saved",
        "refetch" => " --refetch",
        _ => "",
    };
    format!("redrive retry {}{from}{forced} --detach", called(letter))
}

/// The flags without which a letter that failed permanently is not sent.
pub fn forced(letter: &DeadLetter, why: &str) -> String {
    match is_forced(letter) {
        true => format!(" --force{why}"),
        false => String::new(),
    }
}

fn not_sent(exclusion: Exclusion) -> Problem {
    ApiError::senseless(format!("this letter is not sent: {}", kept_back(exclusion))).into()
}

/// Sends one letter again, as it is or with another input.
pub async fn retry(
    State(app): State<App>,
    visitor: Visitor,
    Named(named): Named<JobRef>,
    fields: Fields,
) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        let id = app.redrive().find_job(&named).await?;
        let letter = app.redrive().dead_letter(id).await?;
        visitor.caller.check(&letter.pipeline)?;
        let edits = match fields.one("input") {
            Some(sent) => edited(sent, &letter, fields.one("seen"))
                .map_err(|why| Problem::from(ApiError::invalid("input", why)))?,
            None => Input::new(),
        };
        let mut wanted =
            json!({ "letters": { "ids": [id.to_string()] }, "retry": true, "by_name": true, "set": edits });
        if let Some(from) = fields.one("from") {
            wanted["from"] = from.into();
        }
        if is_forced(&letter) {
            let why = "it failed permanently: say why it is sent all the same";
            let why = fields.one("why").ok_or_else(|| ApiError::invalid("why", why))?;
            wanted["force"] = true.into();
            wanted["why"] = why.into();
        }
        let asked: start::Asked = asked(wanted)?;
        let (_, Json(started)) = start::run(State(app.clone()), visitor.caller.clone(), Body(asked)).await?;
        match (started.id(), started.plan().excluded.keys().next()) {
            (Some(replay), _) => Ok(Done::At(format!("/replays/{replay}"))),
            (None, Some(exclusion)) => Err(not_sent(*exclusion)),
            (None, None) => Err(ApiError::senseless("this letter is not sent: it is no longer dead").into()),
        }
    })
    .await
}
