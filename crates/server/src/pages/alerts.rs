//! `/alerts`: why was I woken?

mod change;
mod rows;
mod rules;
mod sinks;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::AlertView;
use redrive_core::alerts::AlertStanding;

pub use self::change::{ask, change, said, without_said};
pub use self::rows::{about_of, row_id};
pub use self::sinks::{test, tested};
use super::part::part;
use super::parts::{command, views, with_query};
use super::problem::Problem;
use super::shell::{self, Page, Place};
use super::visitor::Visitor;
use crate::app::App;
use crate::error::ApiError;

/// What is said where there is none that stands there.
const fn empty(state: AlertStanding) -> &'static str {
    match state {
        AlertStanding::Firing => "No alert fires.",
        AlertStanding::Snoozed => "No alert is snoozed.",
        AlertStanding::Ended => "No alert ended within a week.",
    }
}

/// Said where nobody judges the rules: that nothing fires means nothing then.
const UNJUDGED: &str = "This server's redrive.toml has no [alerts]: only pipelines that no file defines are judged, by the defaults; redrive alert check judges all once.";

fn is_judged(app: &App) -> bool {
    app.setting().config.alerts.is_some()
}

/// What a tab is called.
const fn title(state: AlertStanding) -> &'static str {
    match state {
        AlertStanding::Firing => "Firing",
        AlertStanding::Snoozed => "Snoozed",
        AlertStanding::Ended => "Ended",
    }
}

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let query = visitor.query();
    let wrong = |why: String| Problem::from(ApiError::invalid("state", why));
    let state = query.one("state").map(|text| text.parse::<AlertStanding>().map_err(wrong)).transpose()?;
    let state = state.unwrap_or(AlertStanding::Firing);
    let (redrive, watching) = (app.redrive(), app.setting().watched_by_server());
    let told = async { Ok(sinks::section(&visitor, &redrive.list_sinks(&watching).await?, redrive.now())) };
    let told = async {
        match visitor.caller.covers_all() {
            true => part(&visitor, ("sinks", "Who is told"), told).await,
            false => html! {},
        }
    };
    let (listed, told, rules) = tokio::join!(
        part(&visitor, ("alerts-of", "Alerts"), list(&app, &visitor, state)),
        told,
        part(&visitor, ("rules", "Rules"), rules::section(&app, &visitor)),
    );
    let body = html! {
        div.head { h1 { "Alerts" } (said(&visitor)) }
        (listed) (told) (rules)
    };
    shell::show(&app, &visitor, Page { place: Place::Alerts, title: "Alerts", pipeline: None, body }).await
}

/// The alerts of a tab that somebody may see, below the tabs.
async fn list(app: &App, visitor: &Visitor, state: AlertStanding) -> Result<Markup, Problem> {
    let mut alerts = app.redrive().store().list_alerts().await?;
    alerts.retain(|view| match &view.alert.pipeline {
        Some(pipeline) => visitor.caller.covers(pipeline),
        None => visitor.caller.covers_all(),
    });
    let (now, here) = (app.redrive().now(), without_said(&visitor.here));
    let of = |state| alerts.iter().filter(move |view| view.standing(now) == state);
    let tabs = AlertStanding::ALL.map(|each| {
        let shown = html! { (title(each)) " " span.n { (of(each).count()) } };
        (with_query(&here, "state", Some(each.as_str())), shown, each == state)
    });
    let shown: Vec<&AlertView> = of(state).collect();
    Ok(html! {
        div #alert-tabs { (views("Which alerts", tabs)) }
        @if shown.is_empty() { p.empty { (empty(state)) @if !is_judged(app) { " " (UNJUDGED) } } } @else { (rows::table(visitor, &shown, now)) }
        (command(visitor, &format!("redrive alert list --state {state}")))
    })
}
