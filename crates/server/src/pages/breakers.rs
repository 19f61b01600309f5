//! Turning the breakers of targets: one task goes to see, all go on, or all wait.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::breakers::LetGo;
use redrive::contract::BreakerView;
use redrive_core::breakers::BreakerState;
use redrive_core::tokens::Role;
use serde_json::Value;

use super::acts::{asked, filled};
use super::confirm::{self, Question, entry_as};
use super::fields::{Done, Fields, once, own_path, with_said};
use super::parts::{Button, button, link, name, quoted, with_query};
use super::problem::Problem;
use super::shell::{self, Page, Place, number_of};
use super::visitor::Visitor;
use crate::app::App;
use crate::asked::Body;
use crate::error::ApiError;
use crate::routes::breakers::turn;

/// What can be done about a target that is waited for.
pub fn actions(visitor: &Visitor, view: &BreakerView) -> Markup {
    let (pipeline, back) = (view.pipeline.as_str(), without_said(&visitor.here));
    let of = |verb: &str| address(visitor, verb, pipeline, &view.target);
    let fields = [("verb", "probe"), ("target", view.target.as_str()), ("pipeline", pipeline), ("back", back.as_str())];
    html! {
        (button(visitor, &Button { action: "/breakers/turn", label: "Probe", role: Role::Operator, fields: &fields, class: "small plainly", key: None }))
        (link(visitor, Role::Operator, &of("close"), "Close…", "small plainly", None))
        (link(visitor, Role::Operator, &of("hold"), "Hold…", "small plainly", None))
    }
}

/// Where it is asked before a target is let go or held; it leads back to where somebody is.
pub fn address(visitor: &Visitor, verb: &str, pipeline: &str, target: &str) -> String {
    let mut query = form_urlencoded::Serializer::new("/breakers/turn?".to_owned());
    query.append_pair("verb", verb).append_pair("target", target).append_pair("pipeline", pipeline);
    query.append_pair("back", &without_said(&visitor.here)).finish()
}

/// What was just done, with a way to take that back.
pub fn said(visitor: &Visitor) -> Markup {
    let query = visitor.query();
    let Some((target, pipeline)) = query.one("about").zip(query.one("of")) else { return html! {} };
    let what = match query.one("said") {
        Some("probe") => "one task goes now, to see.",
        Some("close") => "its tasks go on.",
        Some("hold") => "its tasks wait.",
        _ => return html! {},
    };
    // A target that failed before is not believed to be well because nobody holds it any more.
    let undo = if query.one("was") == Some("closed") { "close" } else { "probe" };
    let back = without_said(&visitor.here);
    let fields = [("verb", undo), ("target", target), ("pipeline", pipeline), ("back", back.as_str())];
    html! {
        div.said role="status" {
            (name(target)) " in " (name(pipeline)) ": " (what)
            @if query.one("said") == Some("hold") {
                " "
                (button(visitor, &Button { action: "/breakers/turn", label: "Undo", role: Role::Operator, fields: &fields, class: "small plainly", key: None }))
            }
        }
    }
}

/// An address without what was done there.
fn without_said(here: &str) -> String {
    ["said", "about", "of", "was"].iter().fold(here.to_owned(), |here, name| with_query(&here, name, None))
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
    let mut going = LetGo::default();
    if let Some(view) = held {
        visitor.caller.check(&view.pipeline)?;
        going = app.redrive().let_go(view).await?;
    }
    let back = own_path(query.one("back").unwrap_or("/"));
    let is_hold = query.one("verb") == Some("hold");
    let tasks_of = |n: u64| number_of(usize::try_from(n).unwrap_or(usize::MAX), "task", "tasks");
    let tasks = tasks_of(waiting);
    let (title, yes) = match is_hold {
        true => (format!("Hold {target}?"), format!("Hold {target}")),
        false => {
            let yes = match going {
                LetGo { go: 0, either: 0, .. } => "Close the breaker".to_owned(),
                LetGo { go, either: 0, .. } => format!("Let {} go", tasks_of(go)),
                LetGo { go, either, .. } => format!("Let up to {} go", tasks_of(go + either)),
            };
            (format!("Close the breaker of {target}?"), yes)
        }
    };
    let effect = html! {
        @if is_hold {
            "Tasks of " (target) " in " (pipeline) " wait from now on, whatever the target does; " (tasks)
            " wait by now. They lose no attempts."
        }
        @else {
            (tasks_of(going.go)) " of " (pipeline)
            " go on at once, as fast as its limits allow; if the target still fails, its breaker opens again."
            @if going.rest > 0 { " " (tasks_of(going.rest)) " of replays that are paused wait until those are resumed." }
            @if going.either > 0 {
                " " (tasks_of(going.either)) " of replays go too, but those of replays that are paused."
            }
        }
    };
    let fields = html! {
        input type="hidden" name="verb" value=(if is_hold { "hold" } else { "close" });
        input type="hidden" name="target" value=(target);
        input type="hidden" name="pipeline" value=(pipeline);
        input type="hidden" name="back" value=(back);
        @if is_hold {
            (entry_as("until", "Until when: 2h, a day or a time; empty means until somebody closes it", "", false, Some("--until")))
            (entry_as("why", "Why, for who wonders", "", false, Some("--why")))
        }
    };
    let verb = if is_hold { "hold" } else { "close" };
    let command = format!("redrive breaker {verb} {} --pipeline {pipeline}", quoted(target));
    let (action, filled) = ("/breakers/turn", String::new());
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
        let (target, pipeline) = (fields.one("target").unwrap_or_default(), fields.one("pipeline").unwrap_or_default());
        let was_shut = app.redrive().store().list_breakers().await?;
        let was_shut = was_shut.iter().any(|view| {
            view.target == target && view.pipeline.as_str() == pipeline && view.breaker.state != BreakerState::Closed
        });
        let state = State(app.clone());
        let _turned = match fields.one("verb") {
            Some("probe") => turn::probe(state, caller, said).await?,
            Some("close") => turn::close(state, caller, said).await?,
            Some("hold") => turn::hold(state, caller, said).await?,
            _ => return Err(ApiError::invalid("verb", "expected probe, close or hold").into()),
        };
        let (back, verb) = (own_path(fields.one("back").unwrap_or("/")), fields.one("verb").unwrap_or_default());
        let was = if was_shut { "open" } else { "closed" };
        Ok(Done::At(with_said(back, &[("said", verb), ("about", target), ("of", pipeline), ("was", was)])))
    })
    .await
}
