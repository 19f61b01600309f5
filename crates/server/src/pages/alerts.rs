//! `/alerts`: why was I woken?

mod change;
mod rows;
mod rules;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use redrive::alerts::{AlertList, Tested};
use redrive::contract::AlertView;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;

pub use self::change::{ask, change};
use super::fields::Fields;
use super::part::part;
use super::parts::{
    Button, button, column, column_num, columns, command, commands, instant, name, section_head, text, views,
    with_query,
};
use super::problem::Problem;
use super::shell::{self, Page, Place};
use super::visitor::Visitor;
use crate::app::App;
use crate::error::ApiError;

/// Which alerts are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tab {
    Firing,
    Snoozed,
    Ended,
}

impl Tab {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Firing, "Firing"), (Self::Snoozed, "Snoozed"), (Self::Ended, "Ended")];

    /// Where an alert is shown.
    fn of(view: &AlertView, now: Timestamp) -> Self {
        match (view.care.snoozed_at(now).is_some(), view.alert.is_firing()) {
            (true, _) => Self::Snoozed,
            (false, true) => Self::Firing,
            (false, false) => Self::Ended,
        }
    }

    /// What it is called in addresses.
    const fn name(self) -> &'static str {
        match self {
            Self::Firing => "firing",
            Self::Snoozed => "snoozed",
            Self::Ended => "ended",
        }
    }

    /// What is said where there is none.
    const fn empty(self) -> &'static str {
        match self {
            Self::Firing => "No alert fires.",
            Self::Snoozed => "No alert is snoozed.",
            Self::Ended => "No alert ended within a week.",
        }
    }
}

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let query = visitor.query();
    let tab = match query.one("state") {
        None => Tab::Firing,
        Some(asked) => Tab::ALL
            .into_iter()
            .find(|(tab, _)| tab.name() == asked)
            .map(|(tab, _)| tab)
            .ok_or_else(|| ApiError::invalid("state", "expected firing, snoozed or ended"))?,
    };
    let listed = list(&app, &visitor).await?;
    let now = app.redrive().now();
    let count = |tab| listed.alerts.iter().filter(|view| Tab::of(view, now) == tab).count();
    let here =
        ["said", "alert", "was"].iter().fold(visitor.here.to_string(), |here, name| with_query(&here, name, None));
    let tabs = Tab::ALL.map(|(each, title)| {
        (with_query(&here, "state", Some(each.name())), html! { (title) " " span.n { (count(each)) } }, each == tab)
    });
    let shown: Vec<&AlertView> = listed.alerts.iter().filter(|view| Tab::of(view, now) == tab).collect();
    let body = html! {
        div.head { h1 { "Alerts" } (change::said(&visitor)) }
        (views("Which alerts", tabs))
        @if shown.is_empty() { p.empty { (tab.empty()) } }
        @else { (rows::table(&visitor, &shown, now)) }
        @if visitor.caller.covers_all() { (sinks(&visitor, &listed, now)) }
        (part(&visitor, ("rules", "Rules"), rules::section(&app, &visitor)).await)
        (command(if tab == Tab::Firing { "redrive alert list" } else { "redrive alert list --all" }))
    };
    shell::show(&app, &visitor, Page { place: Place::Alerts, title: "Alerts", pipeline: None, body }).await
}

/// The alerts and sinks that somebody may see.
async fn list(app: &App, visitor: &Visitor) -> Result<AlertList, Problem> {
    let mut listed = app.redrive().list_alerts(&app.setting().watching()).await?;
    if !visitor.caller.covers_all() {
        listed.alerts.retain(|view| view.alert.pipeline.as_ref().is_some_and(|name| visitor.caller.covers(name)));
        listed.sinks.clear();
    }
    Ok(listed)
}

fn sinks(visitor: &Visitor, listed: &AlertList, now: Timestamp) -> Markup {
    html! {
        section aria-labelledby="sinks" {
            (section_head("sinks", "Who is told", ""))
            @if listed.sinks.is_empty() {
                p.empty { "Nobody is told of alerts: " code { "[alerts]" } " in redrive.toml names sinks." }
            }
            @else {
                table role="table" {
                    (columns(&[
                        column("Sink"), column("Kind"), column("Last told"), column_num("Waiting"),
                        column("Trouble"),
                    ]))
                    tbody role="rowgroup" {
                        @for sink in &listed.sinks {
                            tr role="row" {
                                th role="rowheader" scope="row" { (name(&sink.view.name)) }
                                td role="cell" { (sink.kind.as_deref().unwrap_or("not in this file")) }
                                td role="cell" {
                                    @match sink.view.told_at {
                                        Some(at) => (instant(at, now)), None => { span.muted { "never" } }
                                    }
                                }
                                td.num role="cell" { (sink.view.waiting) }
                                td role="cell" {
                                    @match sink.trouble() {
                                        Some(why) => { span.bad-text { (text(why)) } }
                                        None => { span.muted { "none" } }
                                    }
                                }
                            }
                        }
                    }
                }
                div.actions {
                    (commands(&[("Send test", "redrive alert test".to_owned())]))
                    (button(visitor, &Button { action: "/alerts/test", label: "Send test", role: Role::Operator, fields: &[], class: "", key: None }))
                }
            }
        }
    }
}

/// Tells sinks that nothing is wrong, to see whether that arrives.
pub async fn test(State(app): State<App>, visitor: Visitor, _: Fields) -> Result<Response, Problem> {
    visitor.caller.check_all(None)?;
    let told = app.redrive().test_sinks(&app.setting().watching(), &[]).await?;
    let body = html! {
        div.head { h1 { "Test of sinks" } }
        ul.log { @for Tested { sink, kind, error } in &told {
            li {
                span { (name(sink)) }
                span {
                    (kind) ": "
                    @match error {
                        Some(error) => { span.bad-text { (text(error)) } } None => { span.good-text { "told" } }
                    }
                }
            }
        } }
        p.actions { a.button href="/alerts" { "Alerts" } }
    };
    Ok(shell::show(&app, &visitor, Page { place: Place::Alerts, title: "Test of sinks", pipeline: None, body })
        .await?
        .into_response())
}
