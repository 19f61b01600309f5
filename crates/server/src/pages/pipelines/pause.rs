//! Pausing a pipeline, letting it go on, and forgetting one that has nothing.

use axum::extract::State;
use axum::response::Response;
use maud::html;
use redrive_core::ids::PipelineName;
use serde_json::Value;

use super::super::acts::{asked, filled};
use super::super::confirm::{self, Question, entry_as};
use super::super::fields::{Done, Fields, once, with_said};
use super::super::parts::about;
use super::super::problem::Problem;
use super::super::shell::{self, Page, Place};
use super::super::visitor::Visitor;
use super::address;
use crate::app::App;
use crate::asked::{Body, Named};
use crate::look::figures::count;
use crate::routes::pipelines::{forget as forgetting, pause as routes};

/// Asks before a pipeline rests.
pub async fn ask(
    State(app): State<App>,
    visitor: Visitor,
    Named(name): Named<PipelineName>,
) -> Result<Response, Problem> {
    visitor.caller.check(&name)?;
    let view = visitor.caller.find_pipeline(&app, &name).await?;
    let title = format!("Pause {name}?");
    let effect = html! { "Nothing more of " (name) " begins, with any worker, until that time or until somebody resumes it. " (running(view.ledger.leased)) "; " (queued(view.ledger.queued)) "." };
    let back = address(name.as_str());
    let action = format!("{back}/pause");
    let fields = html! {
        (entry_as("until", "Until when: 2h, a day or a time; empty means until somebody resumes it", "", false, Some("--until")))
        (entry_as("why", "Why, for who wonders", "", false, Some("--why")))
    };
    let (command, filled) = (about("redrive pipeline pause", name.as_str(), ""), String::new());
    let yes = format!("Pause {name}");
    let about = html! {
        li { "pipeline " (name) } li { (count(view.ledger.queued)) " queued" } li { (count(view.ledger.leased)) " running" }
    };
    let question =
        Question { title: &title, about, effect, action: &action, fields, yes: &yes, command, filled, back: &back };
    let body = confirm::page(&visitor, &question);
    shell::show(&app, &visitor, Page { place: Place::Pipelines, title: &title, pipeline: Some(&name), body }).await
}

fn running(n: i64) -> String {
    match n {
        0 => "No task is running".to_owned(),
        1 => "1 running task comes to its end".to_owned(),
        n => format!("{} running tasks come to their end", count(n)),
    }
}

fn queued(n: i64) -> String {
    match n {
        0 => "none is queued".to_owned(),
        1 => "1 queued task waits".to_owned(),
        n => format!("{} queued tasks wait", count(n)),
    }
}

/// Pauses a pipeline.
pub async fn pause(
    State(app): State<App>,
    visitor: Visitor,
    Named(name): Named<PipelineName>,
    fields: Fields,
) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        let said = Body(asked(Value::Object(filled(&fields, &["until", "why"])))?);
        let _pause = routes::pause(State(app.clone()), visitor.caller.clone(), Named(name.clone()), said).await?;
        Ok(Done::At(with_said(&address(name.as_str()), &[("said", "pause")])))
    })
    .await
}

/// Lets a pipeline go on.
pub async fn resume(
    State(app): State<App>,
    visitor: Visitor,
    Named(name): Named<PipelineName>,
    fields: Fields,
) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        let said = Body(asked(Value::Object(filled(&fields, &[])))?);
        let _pause = routes::resume(State(app.clone()), visitor.caller.clone(), Named(name.clone()), said).await?;
        Ok(Done::At(with_said(&address(name.as_str()), &[("said", "resume")])))
    })
    .await
}

/// Forgets a pipeline that has nothing.
pub async fn forget(
    State(app): State<App>,
    visitor: Visitor,
    Named(name): Named<PipelineName>,
    fields: Fields,
) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        let said = Body(asked(Value::Object(filled(&fields, &[])))?);
        let _view = forgetting::run(State(app.clone()), visitor.caller.clone(), Named(name.clone()), said).await?;
        Ok(Done::At(with_said("/pipelines", &[("said", "forget"), ("about", name.as_str())])))
    })
    .await
}
