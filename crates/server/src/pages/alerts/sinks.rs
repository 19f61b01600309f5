//! Who is told of alerts, with what result, and a test of that. What came of a test is shown for a moment: nothing is written of it.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::alerts::{SinkState, Tested};
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;

use super::super::fields::{Done, Fields, key_of, once, with_said};
use super::super::parts::{Button, button, column, column_num, columns, commands, instant, name, section_head, text};
use super::super::problem::Problem;
use super::super::shell::{self, Page, Place};
use super::super::visitor::Visitor;
use crate::app::App;

pub fn section(visitor: &Visitor, sinks: &[SinkState], now: Timestamp) -> Markup {
    html! {
        section aria-labelledby="sinks" {
            (section_head("sinks", "Who is told", ""))
            @if sinks.is_empty() {
                p.empty { "Nobody is told of alerts: " code { "[alerts]" } " in redrive.toml names sinks." }
            }
            @else {
                table.sinks role="table" {
                    (columns(&[
                        column("Sink"), column("Kind"), column("Last told"), column_num("Waiting"),
                        column("Trouble"),
                    ]))
                    tbody role="rowgroup" {
                        @for sink in sinks {
                            tr role="row" {
                                th role="rowheader" scope="row" { (name(&sink.view.name)) }
                                td role="cell" { (sink.kind.as_deref().unwrap_or("not in this file")) }
                                td role="cell" data-l="told" {
                                    @match sink.view.told_at {
                                        Some(at) => (instant(at, now)), None => { span.muted { "never" } }
                                    }
                                }
                                td.num role="cell" data-l="waiting" { (sink.view.waiting) }
                                td role="cell" data-l="trouble" {
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
                    (commands(visitor, &[("Send test", "redrive alert test".to_owned())]))
                }
            }
        }
    }
}

/// Tells sinks that nothing is wrong, to see whether that arrives; once, however often the form is sent.
pub async fn test(State(app): State<App>, visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        visitor.caller.check_all(None)?;
        let told = app.redrive().test_sinks(&app.setting().watching(), &[]).await?;
        let key = key_of(&fields)?;
        app.shown().keep(shown_by(&visitor, key), results(&told));
        Ok(Done::At(with_said("/alerts/test", &[("run", key)])))
    })
    .await
}

/// Shows what came of a test.
pub async fn tested(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let query = visitor.query();
    let told = query.one("run").and_then(|key| app.shown().find(&shown_by(&visitor, key)));
    let body = html! {
        div.head { h1 { "Test of sinks" } }
        @match told {
            Some(told) => (told),
            None => p.empty { "What came of a test is shown for a moment only. Send another to see it." },
        }
        p.actions { a.button href="/alerts" { "Alerts" } }
    };
    shell::show(&app, &visitor, Page { place: Place::Alerts, title: "Test of sinks", pipeline: None, body }).await
}

fn shown_by(visitor: &Visitor, key: &str) -> String {
    format!("test {} {key}", visitor.caller.name())
}

fn results(told: &[Tested]) -> Markup {
    html! {
        ul.log { @for Tested { sink, kind, error } in told {
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
    }
}
