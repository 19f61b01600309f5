//! Turning the breakers of targets: one task goes to see, all go on, or all wait.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::BreakerView;
use redrive_core::tokens::Role;
use serde_json::Value;

use super::acts::{asked, filled};
use super::confirm::{self, Question, entry_as};
use super::fields::{Done, Fields, once, own_path, with_said};
use super::parts::{Button, button, link, quoted};
use super::problem::Problem;
use super::shell::{self, Page, Place, number_of};
use super::visitor::Visitor;
use crate::app::App;
use crate::asked::Body;
use crate::error::ApiError;
use crate::routes::breakers::turn;

/// What can be done about a target that is waited for.
pub fn actions(visitor: &Visitor, view: &BreakerView) -> Markup {
    let pipeline = view.pipeline.as_str();
    let of = |verb: &str| {
        let mut query = form_urlencoded::Serializer::new("/breakers/turn?".to_owned());
        query.append_pair("verb", verb).append_pair("target", &view.target).append_pair("pipeline", pipeline).finish()
    };
    let fields = [("verb", "probe"), ("target", view.target.as_str()), ("pipeline", pipeline), ("back", &visitor.here)];
    html! {
        (button(visitor, &Button { action: "/breakers/turn", label: "Probe", role: Role::Operator, fields: &fields, class: "small plainly", key: None }))
        (link(visitor, Role::Operator, &of("close"), "Close…", "small plainly", None))
        (link(visitor, Role::Operator, &of("hold"), "Hold…", "small plainly", None))
    }
}

/// What somebody would type to do that.
pub fn commands_of(view: &BreakerView) -> Vec<(String, String)> {
    let line = |verb: &str| format!("redrive breaker {verb} {} --pipeline {}", quoted(&view.target), view.pipeline);
    [("Probe", "probe"), ("Close", "close"), ("Hold", "hold")]
        .map(|(label, verb)| (format!("{label} {}", view.target), line(verb)))
        .into()
}

/// Asks before a target's tasks go on, or wait.
pub async fn ask(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let query = visitor.query();
    let (target, pipeline) = (query.one("target").unwrap_or_default(), query.one("pipeline").unwrap_or_default());
    let held = app.redrive().store().list_breakers().await?;
    let held = held.iter().find(|view| view.target == target && view.pipeline.as_str() == pipeline);
    let waiting = held.map_or(0, |view| view.held);
    if let Some(view) = held {
        visitor.caller.check(&view.pipeline)?;
    }
    let is_hold = query.one("verb") == Some("hold");
    let tasks = number_of(usize::try_from(waiting).unwrap_or(usize::MAX), "task", "tasks");
    let (title, yes) = match is_hold {
        true => (format!("Hold {target}?"), format!("Hold {target}")),
        false => (format!("Close the breaker of {target}?"), format!("Let {tasks} go")),
    };
    let effect = html! {
        @if is_hold {
            "Tasks of " (target) " in " (pipeline) " wait from now on, whatever the target does; " (tasks)
            " wait by now. They lose no attempts."
        }
        @else {
            (tasks) " of " (pipeline)
            " go on at once, as fast as its limits allow; if the target still fails, its breaker opens again."
        }
    };
    let fields = html! {
        input type="hidden" name="verb" value=(if is_hold { "hold" } else { "close" });
        input type="hidden" name="target" value=(target);
        input type="hidden" name="pipeline" value=(pipeline);
        @if is_hold {
            (entry_as("until", "Until when: 2h, a day or a time; empty means until somebody closes it", "", false, Some("--until")))
            (entry_as("why", "Why, for who wonders", "", false, Some("--why")))
        }
    };
    let verb = if is_hold { "hold" } else { "close" };
    let command = format!("redrive breaker {verb} {} --pipeline {pipeline}", quoted(target));
    let (action, filled, back) = ("/breakers/turn", String::new(), "/");
    let question = Question { title: &title, effect, action, fields, yes: &yes, command, filled, back };
    let body = confirm::page(&visitor, &question);
    shell::show(&app, &visitor, Page { place: Place::Overview, title: &title, pipeline: None, body }).await
}

/// Turns a breaker.
pub async fn turn(State(app): State<App>, visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        let caller = visitor.caller.clone();
        let names: &[&str] = match fields.one("verb") {
            Some("hold") => &["target", "pipeline", "until", "why"],
            _ => &["target", "pipeline"],
        };
        let said = Body(asked(Value::Object(filled(&fields, names)))?);
        let state = State(app.clone());
        let _turned = match fields.one("verb") {
            Some("probe") => turn::probe(state, caller, said).await?,
            Some("close") => turn::close(state, caller, said).await?,
            Some("hold") => turn::hold(state, caller, said).await?,
            _ => return Err(ApiError::invalid("verb", "expected probe, close or hold").into()),
        };
        let target = fields.one("target").unwrap_or_default();
        let back = own_path(fields.one("back").unwrap_or("/"));
        Ok(Done::At(with_said(back, &[("said", fields.one("verb").unwrap_or_default()), ("about", target)])))
    })
    .await
}
