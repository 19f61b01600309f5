//! What people do about alerts, by forms.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::replays::ReplayRef;
use redrive_core::alerts::AlertPage;
use redrive_core::tokens::Role;
use serde_json::{Value, json};

use super::super::acts::{asked, filled};
use super::super::confirm::{self, Question, entry_as};
use super::super::fields::{Done, Fields, once, own_path, with_said};
use super::super::parts::{Button, button, quoted, text, with_query};
use super::super::problem::Problem;
use super::super::shell::{self, Page, Place};
use super::super::visitor::Visitor;
use crate::app::App;
use crate::asked::Body;
use crate::error::ApiError;
use crate::routes::alerts::change as routes;

/// Asks until when an alert is to be snoozed.
pub async fn ask(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let query = visitor.query();
    let key = query.one("alert").ok_or_else(|| ApiError::invalid("alert", "alert is missing"))?;
    if query.one("verb") != Some("snooze") {
        return Err(ApiError::invalid("verb", "expected snooze").into());
    }
    let view = app.redrive().find_alert(key).await?;
    match &view.alert.pipeline {
        Some(pipeline) => visitor.caller.check(pipeline)?,
        None => visitor.caller.check_all(None)?,
    }
    let title = "Snooze this alert?";
    let effect = html! {
        "“" (text(&view.alert.finding.summary)) "”: nobody is told that it fires until then. That it is over is told, and who was told "
        "of it before is told again if it still fires then."
    };
    let fields = html! {
        input type="hidden" name="verb" value="snooze";
        input type="hidden" name="alert" value=(key);
        (entry_as("until", "Until when: 2h (from now), a day or a time", "2h", true, Some("--until")))
        (entry_as("why", "Why, for who wonders", "", false, Some("--why")))
    };
    let (command, filled) = (format!("redrive alert snooze {}", quoted(key)), " --until 2h".to_owned());
    let (action, yes, back) = ("/alerts/change", "Snooze", "/alerts");
    let pipelines = match view.alert.page() {
        AlertPage::Replay(id) => app.redrive().find_replay(ReplayRef::Id(id)).await?.pipelines,
        _ => view.alert.pipeline.iter().cloned().collect(),
    };
    let about = html! {
        li { "alert " code { (key) } }
        @for pipeline in &pipelines { li { "pipeline " (pipeline) } }
    };
    let question = Question { title, about, effect, action, fields, yes, command, filled, back };
    let body = confirm::page(&visitor, &question);
    let page = Page { place: Place::Alerts, title, pipeline: view.alert.pipeline.as_ref(), body };
    shell::show(&app, &visitor, page).await
}

/// Does what a form asks for.
pub async fn change(State(app): State<App>, visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        let verb = fields.one("verb").unwrap_or_default();
        let key = fields.one("alert").ok_or_else(|| ApiError::invalid("alert", "alert is missing"))?;
        let care = app.redrive().find_alert(key).await?.care;
        let mut wanted = filled(&fields, &["verb", "until", "why", "owner"]);
        wanted.insert("keys".to_owned(), json!([key]));
        let wanted = asked(Value::Object(wanted))?;
        let _changed = routes::run(State(app.clone()), visitor.caller.clone(), Body(wanted)).await?;
        let state = app.redrive().find_alert(key).await?.standing(app.redrive().now()).as_str();
        // What it was before, to take back what was done.
        let snoozed = care.snoozed.filter(|_| verb == "wake");
        let (until, why) = snoozed.map(|snoozed| (snoozed.until.to_string(), snoozed.why)).unwrap_or_default();
        let was = care.owner.filter(|_| verb == "assign").unwrap_or(until);
        let (to, why) = (fields.one("owner").unwrap_or_default(), why.unwrap_or_default());
        // On the page of alerts it is shown where the alert is now.
        let (back, state) = match fields.one("back").map(own_path) {
            Some(back) => (back, ""),
            None => ("/alerts", state),
        };
        let said = [("state", state), ("said", verb), ("alert", key), ("was", &was), ("to", to), ("why", &why)];
        Ok(Done::At(with_said(back, &said)))
    })
    .await
}

/// An address without what was done there.
pub fn without_said(here: &str) -> String {
    ["said", "alert", "was", "to", "why"].iter().fold(here.to_owned(), |here, name| with_query(&here, name, None))
}

/// What was just done, with a way to take that back.
pub fn said(visitor: &Visitor) -> Markup {
    let query = visitor.query();
    let Some(key) = query.one("alert") else { return html! {} };
    let (was, why) = (query.one("was").unwrap_or_default(), query.one("why").unwrap_or_default());
    let (what, undo): (String, Vec<(&str, &str)>) = match query.one("said") {
        Some("acknowledge") => {
            ("Acknowledged, until it doubles or fires anew.".to_owned(), vec![("verb", "unacknowledge")])
        }
        Some("unacknowledge") => ("Not acknowledged any more.".to_owned(), vec![("verb", "acknowledge")]),
        Some("snooze") => ("Snoozed: nobody is told that it fires.".to_owned(), vec![("verb", "wake")]),
        Some("wake") if was.is_empty() => ("Awake: people are told of it again.".to_owned(), vec![]),
        Some("wake") => {
            ("Awake: people are told of it again.".to_owned(), vec![("verb", "snooze"), ("until", was), ("why", why)])
        }
        Some("assign") => {
            let what =
                query.one("to").map_or_else(|| "Assigned to nobody.".to_owned(), |to| format!("Assigned to {to}."));
            (what, vec![("verb", "assign"), ("owner", was)])
        }
        _ => return html! {},
    };
    let can_undo = !undo.is_empty();
    let here = without_said(&visitor.here);
    let back = (!here.starts_with("/alerts")).then_some(("back", here.as_str()));
    let undo: Vec<_> = undo.into_iter().chain([("alert", key)]).chain(back).collect();
    html! {
        div.said role="status" {
            (text(&what))
            @if can_undo {
                " "
                (button(visitor, &Button { action: "/alerts/change", label: "Undo", role: Role::Operator, fields: &undo, class: "small plainly", key: None }))
            }
        }
    }
}
