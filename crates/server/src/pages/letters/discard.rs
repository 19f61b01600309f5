//! `/letters/discard`: giving letters up.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use redrive_core::replays::ReplayPlan;
use serde_json::{Value, json};

use super::super::about;
use super::super::acts::{asked, letters};
use super::super::confirm::{self, Question, entry, entry_as};
use super::super::fields::{Done, Fields, once, with_said};
use super::super::filter::LetterFilter;
use super::super::parts::quoted;
use super::super::problem::Problem;
use super::super::replay_new::{drifted, frozen_fields, plan_of};
use super::super::shell::{self, Page, Place};
use super::super::visitor::Visitor;
use crate::app::App;
use crate::asked::Body;
use crate::error::ApiError;
use crate::look::figures::counted;
use crate::routes::letters::discard as api;

/// From so many letters on their count is to be typed.
const TYPED_ABOVE: u64 = 100;

/// Asks before letters are given up.
pub async fn ask_discard(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let query = visitor.query();
    if query.all("id").next().is_none() && LetterFilter::of(&query).is_empty() {
        return Ok(Redirect::to("/letters?said=none").into_response());
    }
    let plan = plan_of(&app, &visitor, letters(&query)?).await?;
    if plan.matched == 0 {
        return Ok(Redirect::to("/letters?said=gone").into_response());
    }
    shown(&app, &visitor, &query, &plan, None).await
}

async fn shown(
    app: &App,
    visitor: &Visitor,
    query: &Fields,
    plan: &ReplayPlan,
    drift: Option<Markup>,
) -> Result<Response, Problem> {
    let (letters, is_one) = (counted(plan.matched as i64, "letter", "letters"), plan.matched == 1);
    let effect = html! {
        @if let Some(drift) = drift { (drift) " " }
        @if is_one { "1 dead letter is given up for good: nothing replays it any more. A record of it stays." }
        @else { (letters) " are given up for good: nothing replays them any more. A record of each stays." }
    };
    let fields = html! {
        (frozen_fields(app, query, plan)?)
        (entry_as("why", "Why, for the record", query.one("why").unwrap_or_default(), true, Some("--why")))
        @if plan.matched > TYPED_ABOVE {
            (entry("count", &format!("Type {} to say that you mean all of them", plan.matched), "", true))
        }
    };
    let ids: String = query.all("id").map(|id| format!(" {}", quoted(id))).collect();
    let filter = match ids.is_empty() {
        true => LetterFilter::of(query).frozen(app.redrive().now())?.flags(),
        false => String::new(),
    };
    let (command, filled) = (format!("redrive dead discard{ids}{filter} --yes"), " --why 'the reason'".to_owned());
    let (title, yes) = (format!("Discard {letters}?"), format!("Discard {letters}"));
    let (action, back) = ("/letters/discard", "/letters");
    let about = about::of_letters(app, query).await?;
    let question = Question { title: &title, about, effect, action, fields, yes: &yes, command, filled, back };
    let body = confirm::final_page(visitor, &question);
    shell::show(app, visitor, Page { place: Place::Letters, title: &title, pipeline: None, body }).await
}

/// Gives letters up.
pub async fn discard(State(app): State<App>, visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        let plan = plan_of(&app, &visitor, letters(&fields)?).await?;
        if let Some(drift) = drifted(&app, &visitor, &fields, &plan).await? {
            return Ok(Done::Asks(shown(&app, &visitor, &fields, &plan, Some(drift)).await?));
        }
        let typed = fields.one("count").map(|typed| typed.replace([',', ' '], ""));
        if plan.matched > TYPED_ABOVE && typed != Some(plan.matched.to_string()) {
            let why = format!("type {} to say that all of them are meant", plan.matched);
            return Err(ApiError::invalid("count", why).into());
        }
        let why = fields.one("why").ok_or_else(|| ApiError::invalid("why", "say why, for the record"))?;
        let said: Value = json!({ "letters": letters(&fields)?, "why": why });
        let Json(_) = api::run(State(app.clone()), visitor.caller.clone(), Body(asked(said)?)).await?;
        Ok(Done::At(with_said("/letters", &[("said", "discard"), ("about", &plan.matched.to_string())])))
    })
    .await
}

/// What was just given up.
pub fn said(visitor: &Visitor) -> Markup {
    let query = visitor.query();
    let gone = query.one("about").and_then(|about| about.parse::<i64>().ok());
    html! {
        @if let (Some("discard"), Some(gone)) = (query.one("said"), gone) {
            div.said role="status" {
                (counted(gone, "letter was", "letters were")) " discarded. " a href="/activity" { "Activity" } " has the record."
            }
        }
        @if query.one("said") == Some("none") {
            div.said role="status" { "No letter is ticked: nothing was done." }
        }
        @if query.one("said") == Some("gone") {
            div.said role="status" { "None of these letters is dead any more: nothing was done." }
        }
    }
}
