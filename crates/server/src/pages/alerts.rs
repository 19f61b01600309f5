//! `/alerts`: why was I woken?

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use redrive::alerts::{AlertList, Tested};
use redrive::contract::AlertView;
use redrive_core::alerts::Alert;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;

use super::fields::Fields;
use super::parts::{
    Button, Glyph, ago, button, column, column_num, columns, command, instant, name, section_head, state, text, views,
    with_query,
};
use super::problem::Problem;
use super::shell::{self, Page, Place};
use super::visitor::Visitor;
use crate::app::App;
use crate::error::ApiError;
use crate::look::tone::Tone;

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let query = visitor.query();
    let ended = match query.one("state") {
        None | Some("firing") => false,
        Some("ended") => true,
        Some(_) => return Err(ApiError::invalid("state", "expected firing or ended").into()),
    };
    let listed = list(&app, &visitor).await?;
    let shown: Vec<&AlertView> = listed.alerts.iter().filter(|view| view.alert.is_firing() != ended).collect();
    let here = visitor.here.clone();
    let tabs = [("firing", "Firing", !ended), ("ended", "Ended", ended)];
    let tabs = tabs.map(|(state, title, is)| (with_query(&here, "state", Some(state)), html! { (title) }, is));
    let now = app.redrive().now();
    let body = html! {
        div.head { h1 { "Alerts" } }
        (views("Which alerts", tabs))
        @if shown.is_empty() {
            p.empty { @if ended { "No alert ended within a week." } @else { "No alert fires." } }
        } @else { (table(&shown, now)) }
        (sinks(&visitor, &listed, now))
        (command("redrive alert list"))
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

fn table(alerts: &[&AlertView], now: Timestamp) -> Markup {
    html! {
        table.alerts.two role="table" {
            (columns(&[column("State"), column("What"), column("Since"), column("Told")]))
            tbody role="rowgroup" #alerts data-rows="" { @for view in alerts { (row(view, now)) } }
        }
    }
}

fn row(view: &AlertView, now: Timestamp) -> Markup {
    let alert = &view.alert;
    html! {
        tr role="row" id={ "alert-" (alert.since.as_millis()) "-" (alert.condition) } {
            td role="cell" {
                @if alert.is_firing() {
                    (state("firing", Glyph::Triangle, Tone::Bad))
                } @else {
                    (state("over", Glyph::Check, Tone::Good))
                }
            }
            th role="rowheader" scope="row" {
                span.name {
                    @if let Some(name) = &alert.pipeline { a href={ "/pipelines/" (name) } { (name) } ": " }
                    (alert.condition)
                }
                span.fact { (text(&alert.finding.summary)) }
                @if let Some(why) = &alert.why_over { span.fact { "Over: " (text(why)) } }
                (about(alert))
            }
            td role="cell" { (instant(alert.since, now)) span.fact { (ago(alert.since, now)) } }
            td role="cell" {
                @if view.posted.is_empty() { span.muted { "nobody" } }
                @for (at, sink) in view.posted.keys().enumerate() { @if at > 0 { ", " } (name(sink)) }
                span.fact {
                    (alert.tellings)
                    @if alert.tellings == 1 { " time" } @else { " times" }
                    "; again when it has doubled"
                }
            }
        }
    }
}

/// Where to look.
fn about(alert: &Alert) -> Markup {
    let cause = alert.finding.numbers.get("cause").and_then(serde_json::Value::as_str);
    let cause = cause.filter(|id| id.chars().all(|c| c.is_ascii_hexdigit()));
    html! {
        span.fact {
            @if let Some(cause) = cause { a href={ "/causes/" (cause) } { "Open the cause" } " · " }
            code { (text(&alert.finding.look)) }
        }
    }
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
