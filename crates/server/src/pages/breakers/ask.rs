//! Asking before a target's tasks go on, or wait: how many, and how fast. If many more wait when the answer comes, it is asked again.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use redrive::api::breakers::ListBreakers;
use redrive::breakers::LetGo;
use redrive::config::Explained;
use redrive_core::breakers::BreakerView;
use redrive_core::ids::PipelineName;

use super::super::confirm::{self, Question, entry_as};
use super::super::fields::{Fields, own_path};
use super::super::parts::{about, flag};
use super::super::problem::Problem;
use super::super::shell::{self, Page, Place, number_of};
use super::super::visitor::Visitor;
use crate::app::App;

/// Asks before a target's tasks go on, or wait.
pub async fn ask(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let query = visitor.query();
    let held = held(&app, &visitor, &query).await?;
    match query.one("verb") {
        Some("hold") => hold(&app, &visitor, &query, held.as_ref()).await,
        // It closed meanwhile.
        _ if held.is_none() => Ok(Redirect::to(own_path(query.one("back").unwrap_or("/"))).into_response()),
        _ => close(&app, &visitor, &query, held.as_ref(), None).await,
    }
}

/// The question again, if many more tasks would go than who answered was told.
pub async fn drifted(app: &App, visitor: &Visitor, fields: &Fields) -> Result<Option<Response>, Problem> {
    let expected = fields.one("expected").and_then(|expected| expected.parse::<u64>().ok());
    let Some(expected) = expected.filter(|_| fields.one("verb") == Some("close")) else { return Ok(None) };
    let Some(held) = held(app, visitor, fields).await? else { return Ok(None) };
    match app.redrive().let_go(&held).await?.is_much_more_than(expected) {
        true => Ok(Some(close(app, visitor, fields, Some(&held), Some(expected)).await?)),
        false => Ok(None),
    }
}

/// The breaker that is meant, if it is not closed.
async fn held(app: &App, visitor: &Visitor, fields: &Fields) -> Result<Option<BreakerView>, Problem> {
    let (target, pipeline) = (fields.one("target").unwrap_or_default(), fields.one("pipeline").unwrap_or_default());
    let Ok(name) = pipeline.parse::<PipelineName>() else { return Ok(None) };
    let request = ListBreakers { pipeline: Some(name), ..ListBreakers::default() };
    let held = app.redrive().ask_all(request, &visitor.caller.to_api()).await?;
    Ok(held.into_iter().map(|detail| detail.view).find(|view| view.target == target))
}

fn tasks_of(n: u64) -> String {
    number_of(usize::try_from(n).unwrap_or(usize::MAX), "task", "tasks")
}

async fn hold(app: &App, visitor: &Visitor, query: &Fields, held: Option<&BreakerView>) -> Result<Response, Problem> {
    let (target, pipeline) = (query.one("target").unwrap_or_default(), query.one("pipeline").unwrap_or_default());
    let waiting = held.map_or(0, |view| view.held);
    let effect = html! {
        "Tasks of " (target) " in " (pipeline) " wait from now on, whatever the target does; " (tasks_of(waiting))
        @if waiting == 1 { " waits" } @else { " wait" } " by now. They lose no attempts."
    };
    let fields = html! {
        (entry_as("until", "Until when: 2h, a day or a time; empty means until somebody closes it", "", false, Some("--until")))
        (entry_as("why", "Why, for who wonders", "", false, Some("--why")))
    };
    let (title, yes) = (format!("Hold {target}?"), format!("Hold {target}"));
    show(app, visitor, query, ("hold", &title, &yes), (waiting, effect, fields)).await
}

async fn close(
    app: &App,
    visitor: &Visitor,
    query: &Fields,
    held: Option<&BreakerView>,
    was: Option<u64>,
) -> Result<Response, Problem> {
    let (target, pipeline) = (query.one("target").unwrap_or_default(), query.one("pipeline").unwrap_or_default());
    let (mut going, mut speed) = (LetGo::default(), None);
    if let Some(view) = held {
        going = app.redrive().let_go(view).await?;
        speed = fastest(&app.redrive().explain_pipeline(&app.setting(), &view.pipeline).await?);
    }
    let yes = match going {
        LetGo { go: 0, either: 0, .. } => "Close the breaker".to_owned(),
        LetGo { go, either: 0, .. } => format!("Let {} go", tasks_of(go)),
        LetGo { go, either, .. } => format!("Let up to {} go", tasks_of(go + either)),
    };
    let effect = html! {
        @if let Some(was) = was { (tasks_of(was)) " when you looked, more by now. " }
        (goes(going, pipeline, speed.as_deref()))
    };
    let fields = html! { input type="hidden" name="expected" value=(going.most()); };
    let title = format!("Close the breaker of {target}?");
    let waiting = held.map_or(0, |view| view.held);
    show(app, visitor, query, ("close", &title, &yes), (waiting, effect, fields)).await
}

/// What happens when a breaker is closed: how many go, how fast.
fn goes(going: LetGo, pipeline: &str, speed: Option<&str>) -> Markup {
    html! {
        (tasks_of(going.go)) " of " (pipeline) @if going.go == 1 { " goes" } @else { " go" }
        " on at once, as fast as its limits allow"
        @if let Some(speed) = speed { " (" (speed) ")" }
        "; if the target still fails, its breaker opens again."
        @if going.rest > 0 { " " (tasks_of(going.rest)) " of replays that are paused wait until those are resumed." }
        @if going.either > 0 {
            " " (tasks_of(going.either)) " of replays go too, but those of replays that are paused."
        }
    }
}

/// How fast a pipeline may go, by what is in force.
fn fastest(values: &[Explained]) -> Option<String> {
    let said = |key: &str, words: &str| {
        let value = values.iter().find(|value| value.key == key)?.value.as_f64()?;
        Some(format!("{value} {words}"))
    };
    let limits = [
        said("concurrency", "at once with each worker"),
        said("http.per_target", "at once to one target"),
        said("http.per_second", "a second to one target"),
    ];
    let limits: Vec<_> = limits.into_iter().flatten().collect();
    (!limits.is_empty()).then(|| limits.join(", "))
}

async fn show(
    app: &App,
    visitor: &Visitor,
    query: &Fields,
    (verb, title, yes): (&str, &str, &str),
    (waiting, effect, more): (u64, Markup, Markup),
) -> Result<Response, Problem> {
    let (target, pipeline) = (query.one("target").unwrap_or_default(), query.one("pipeline").unwrap_or_default());
    let back = own_path(query.one("back").unwrap_or("/"));
    let fields = html! {
        input type="hidden" name="verb" value=(verb);
        input type="hidden" name="target" value=(target);
        input type="hidden" name="pipeline" value=(pipeline);
        input type="hidden" name="back" value=(back);
        (more)
    };
    let command = about(&format!("redrive breaker {verb}"), target, &flag("pipeline", pipeline));
    let (action, filled) = ("/breakers/turn", String::new());
    let about = html! { li { "target " (target) } li { "pipeline " (pipeline) } li { (tasks_of(waiting)) " held" } };
    let question = Question { title, about, effect, action, fields, yes, command, filled, back };
    let body = confirm::page(visitor, &question);
    shell::show(app, visitor, Page { place: Place::Overview, title, pipeline: None, body }).await
}

#[cfg(test)]
mod tests {
    use redrive::config::From;
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_said_how_fast_tasks_may_go() {
        let value = |key: &str, value| Explained { key: key.to_owned(), value, from: From::Default };
        let values =
            [value("handler", json!("http")), value("concurrency", json!(8)), value("http.per_second", json!(2.5))];
        assert_eq!(fastest(&values).as_deref(), Some("8 at once with each worker, 2.5 a second to one target"));
        assert_eq!(fastest(&[]), None);
    }
}
