//! `/pipelines` and `/pipelines/{name}`: what is in force?

mod coverage;
mod pause;
mod policy;
mod rates;
mod workers;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::{CountEvents, CountTraffic, EventCount, Span, TrafficBy};
use redrive::overview::PipelineLine;
use redrive::pipelines::PipelineView;
use redrive_core::breakers::BreakerView;
use redrive_core::counts::Event;
use redrive_core::ids::PipelineName;
use redrive_core::ledger::Ledger;
use redrive_core::paths::in_path;
use redrive_core::pipelines::Contents;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;

pub use self::pause::{ask, forget, pause, resume};
use super::part::{self, part};
use super::parts::{
    Button, about, button, column, column_num, columns, command, commands, instant, link, name, pipeline_state,
    section_head, share_within, text,
};
use super::problem::Problem;
use super::shell::{self, Page, Place, number_of};
use super::visitor::Visitor;
use super::{breakers, overview};
use crate::app::App;
use crate::asked::Named;
use crate::look::charts::timeline::{Column, Series, timeline};
use crate::look::figures::{count, date, moment};
use crate::look::tone::Tone;

/// Hours that are drawn.
const HOURS: i64 = 7 * 24;

/// Where the page of a pipeline is.
pub fn address(name: &str) -> String {
    format!("/pipelines/{}", in_path(name))
}

/// Shows all pipelines.
pub async fn list(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let setting = app.setting();
    let look = app.redrive().look(&setting, |name: &PipelineName| visitor.caller.covers(name), false);
    let said = visitor.query();
    let stand = async { Ok(overview::pipeline_table(&visitor, None, look.pipelines().await?, look.now)?) };
    let body = html! {
        div.head { h1 { "Pipelines" } }
        @if let (Some("forget"), Some(name)) = (said.one("said"), said.one("about")) {
            div.said role="status" { "Pipeline " (text(name)) " is forgotten until something of it comes." }
        }
        (part(&visitor, ("pl", "Pipelines"), stand).await)
        (command(&visitor, "redrive pipeline list"))
    };
    shell::show(&app, &visitor, Page { place: Place::Pipelines, title: "Pipelines", pipeline: None, body }).await
}

/// Shows one pipeline.
pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Named(name): Named<PipelineName>,
) -> Result<Response, Problem> {
    visitor.caller.check(&name)?;
    let (redrive, setting) = (app.redrive(), app.setting());
    let view = visitor.caller.find_pipeline(&app, &name).await?;
    let look = redrive.look(&setting, |other: &PipelineName| *other == name, false);
    let (line, now) = (part::read(async { Ok(look.pipelines().await?.first().cloned()) }).await?, look.now);
    let standing = line.as_ref().ok().cloned().flatten();
    let stands = async { Ok(equation(&view.ledger, view.done_elsewhere)) };
    let held = async { Ok(overview::held(&visitor, look.held().await?, &look.retrying().await?, now)) };
    let (week, day) = (ago_of(now, HOURS), ago_of(now, 24));
    let drawn = async {
        let counts = redrive.store().counts(CountEvents::since(week, Span::Hour).of(name.clone())).await?;
        Ok(hours(&name, &counts, now))
    };
    let rated = async |by, id, title, none| {
        let counts = redrive.store().traffic(CountTraffic { pipeline: Some(name.clone()), since: day, by }).await?;
        let hold = |target: &str| match by {
            TrafficBy::Target if !target.is_empty() => {
                let hold = breakers::address(&visitor, "hold", name.as_str(), target);
                link(&visitor, Role::Operator, &hold, "Hold…", "small plainly", None)
            }
            _ => html! {},
        };
        Ok(rates::section((id, title), &counts, none, hold))
    };
    let found = async {
        let found = redrive.store().coverage(Some(name.clone()), week).await?;
        Ok(coverage::section(&found, now))
    };
    let file = app.pipeline(&name).ok().and_then(|pipeline| pipeline.definition().cloned());
    let workers = async { Ok(workers::section(&name, &redrive.store().list_workers().await?, file.as_ref(), now)) };
    let loaded = app.setting_since();
    let values = async { Ok(policy::section(&redrive.explain_pipeline(&setting, &name).await?, (loaded, now))) };
    let targets = rated(TrafficBy::Target, "targets", "Targets", "No attempt in 24 h.");
    let proxies =
        rated(TrafficBy::Proxy, "proxies", "Proxies", "No attempt in 24 h is known to have gone through a proxy.");
    let body = html! {
        (head(&visitor, &view, (standing.as_ref(), look.held().await.unwrap_or_default()), now))
        (part(&visitor, ("standing", "Where it stands"), async { line.map(|_| html! {}) }).await)
        (part(&visitor, ("ledger", "Where its tasks are"), stands).await)
        (part(&visitor, ("held", "Held targets"), held).await)
        (part(&visitor, ("hours", "Hours"), drawn).await)
        div.halves {
            (part(&visitor, ("targets", "Targets"), targets).await)
            (part(&visitor, ("proxies", "Proxies"), proxies).await)
        }
        (part(&visitor, ("coverage", "Fields found, by version of their rules"), found).await)
        (part(&visitor, ("workers", "Workers"), workers).await)
        (part(&visitor, ("policy", "Policy as effective"), values).await)
    };
    shell::show(&app, &visitor, Page { place: Place::Pipelines, title: name.as_str(), pipeline: Some(&name), body })
        .await
}

/// So many hours ago.
fn ago_of(now: Timestamp, hours: i64) -> Timestamp {
    now - std::time::Duration::from_secs(hours.unsigned_abs() * 3_600)
}

/// What somebody would type to do what can be done now.
fn commands_of(view: &PipelineView) -> [(&'static str, String); 2] {
    let name = &view.name;
    let (label, verb) = if view.paused.is_some() { ("Resume", "resume") } else { ("Pause", "pause") };
    [
        ("Look", about("redrive pipeline show", name.as_str(), "")),
        (label, about(&format!("redrive pipeline {verb}"), name.as_str(), "")),
    ]
}

/// What it is called, where it stands as far as that could be read, and what can be done about it.
fn head(
    visitor: &Visitor,
    view: &PipelineView,
    (line, held): (Option<&PipelineLine>, &[BreakerView]),
    now: Timestamp,
) -> Markup {
    let path = address(view.name.as_str());
    let said = visitor.query().one("said").map(str::to_owned);
    html! {
        div.crumbs { span { a href="/pipelines" { "Pipelines" } " / " (view.name) } }
        div.head #head {
            h1 { @if let Some(line) = line { (pipeline_state(line.standing)) } (view.name) }
            ul.facts {
                @if let Some(line) = line {
                    li { "died in 1 h: " (share_within(line.died)) }
                    li { "same hour last week: " (share_within(line.last_week)) }
                    li { (number_of(line.workers, "worker", "workers")) }
                }
                @if let Some(pause) = &view.paused {
                    li {
                        "paused by " (name(&pause.by.name)) " since " (instant(pause.since, now))
                        @if let Some(until) = pause.until { " until " (instant(until, now)) }
                        @if let Some(why) = &pause.why { ": " (text(why)) }
                    }
                }
            }
            (breakers::said(visitor, held))
            @match said.as_deref() {
                Some("pause") => div.said role="status" {
                    "Paused: running tasks come to their end, nothing more begins."
                },
                Some("resume") => div.said role="status" { "It goes on." }, _ => {}
            }
            div.actions.page-actions #actions {
                @if view.paused.is_some() {
                    (button(visitor, &Button { action: &format!("{path}/resume"), label: "Resume", role: Role::Operator, fields: &[], class: "primary", key: None }))
                }
                @else { (link(visitor, Role::Operator, &format!("{path}/pause"), "Pause…", "", None)) }
                @if is_empty(view, held) {
                    (button(visitor, &Button { action: &format!("{path}/forget"), label: "Forget", role: Role::Operator, fields: &[], class: "", key: None }))
                }
                a.button href={ "/causes?pipeline=" (view.name) } { "Causes" }
                a.button href={ "/letters?pipeline=" (view.name) } { "Letters" }
                (commands(visitor, &commands_of(view)))
            }
        }
    }
}

/// Returns true if a pipeline has nothing, is defined nowhere and nobody works on it.
fn is_empty(view: &PipelineView, held: &[BreakerView]) -> bool {
    let contents = Contents::new(&view.ledger, &Ledger::default(), held.len() as i64, view.paused.is_some());
    contents.is_empty() && !view.configured && view.workers == 0
}

/// The ledger as an equation, and beside it what is done elsewhere.
fn equation(l: &Ledger, elsewhere: i64) -> Markup {
    let fact = match (l.balances(), elsewhere) {
        (false, _) => "this does not add up: run redrive audit",
        (true, 0) => "accepted is the sum of the others",
        (true, _) => "accepted is the sum of the others; what other programs reported as done was never accepted here",
    };
    html! {
        section aria-labelledby="ledger" {
            (section_head("ledger", "Where its tasks are", fact))
            dl.figures.equation #ledger-figures {
                div { dt { "Accepted" } dd { (count(l.accepted)) } }
                div { dt { "= queued" } dd { (count(l.queued)) " " small { (count(l.retrying)) " retrying" } } }
                div { dt { "+ running" } dd { (count(l.leased)) } }
                div { dt { "+ done" } dd { (count(l.done)) " " small { (count(l.recovered)) " recovered" } } }
                div { dt { "+ dead" } dd { (count(l.dead)) } }
                div { dt { "+ discarded" } dd { (count(l.discarded)) } }
                @if elsewhere > 0 { div { dt { "Done elsewhere" } dd { (count(elsewhere)) " " small { "reported" } } } }
            }
        }
    }
}

/// How its tasks ended over the last week.
fn hours(name: &PipelineName, counts: &[EventCount], now: Timestamp) -> Markup {
    let own: Vec<&EventCount> = counts.iter().filter(|count| count.pipeline == *name).collect();
    let of = |hour: i64, event: Event| -> i64 {
        let meant = own.iter().filter(|count| count.at.hour() == hour && count.event == event);
        meant.map(|count| count.count).sum()
    };
    let drawn: Vec<Column> = (now.hour() - HOURS + 1..=now.hour())
        .map(|hour| {
            let at = Timestamp::from_millis(hour * 3_600_000);
            // A task counts once: what recovered came to its end before.
            let done = (of(hour, Event::Done) - of(hour, Event::Recovered)).max(0);
            let label = hour.rem_euclid(24).eq(&0).then(|| date(at)[5..].to_owned());
            Column { title: moment(at), label, values: vec![of(hour, Event::Buried), done] }
        })
        .collect();
    let series = [("died", Tone::Bad), ("done", Tone::Plain)].map(|(name, tone)| Series { name, tone });
    let recovered: i64 = own.iter().filter(|one| one.event == Event::Recovered).map(|one| one.count).sum();
    let fact = format!("tasks per hour, 7 days, each once; {} of those that died recovered", count(recovered));
    html! {
        section aria-labelledby="hours" {
            (section_head("hours", "Hours", &fact))
            figure #hours-chart { (timeline("Tasks that died and that were done, per hour", &series, &drawn)) }
            details.as-table {
                summary { "As a table" }
                table role="table" {
                    (columns(&[column("Hour (UTC)"), column_num("Died"), column_num("Done")]))
                    tbody role="rowgroup" {
                        @for hour in drawn.iter().filter(|hour| hour.values.iter().any(|value| *value > 0)) {
                            tr role="row" {
                                th role="rowheader" scope="row" { (hour.title) }
                                @for value in &hour.values { td.num role="cell" { (count(*value)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
