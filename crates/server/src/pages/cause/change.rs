//! What people do to a cause, by forms.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::CauseView;
use redrive_core::causes::CauseId;
use serde_json::{Value, json};

use super::super::acts::filled;
use super::super::causes::one;
use super::super::confirm::{self, Question, entry_as};
use super::super::fields::{Done, Fields, once, with_said};
use super::super::parts::quoted;
use super::super::problem::Problem;
use super::super::shell::{self, Page, Place};
use super::super::visitor::Visitor;
use crate::app::App;
use crate::asked::Named;
use crate::error::ApiError;

/// Asks for what a change needs to know.
pub async fn ask(State(app): State<App>, visitor: Visitor, Named(id): Named<CauseId>) -> Result<Response, Problem> {
    let detail = app.redrive().store().get_cause(id, app.redrive().now()).await?;
    let cause = &detail.cause;
    visitor.caller.check(&cause.pipeline)?;
    let query = visitor.query();
    let verb = query.one("verb").unwrap_or_default();
    let known = query.one(if verb == "split" { "target" } else { "into" }).unwrap_or_default();
    let (title, yes, effect, fields) = question(verb, cause, known)?;
    let (action, back) = (format!("/causes/{}/change", cause.id), format!("/causes/{}", cause.id));
    let fields = html! { input type="hidden" name="verb" value=(verb); (fields) };
    let command = format!("redrive cause {verb} {}", quoted(cause.id.as_str()));
    let filled = match (verb, query.one("into")) {
        ("mute", _) => " --until 24h".to_owned(),
        ("merge", Some(into)) => format!(" {}", quoted(into)),
        ("merge", None) => " CAUSE".to_owned(),
        ("note", _) => " 'what is to be said'".to_owned(),
        ("split", _) if known.is_empty() => " --target TARGET".to_owned(),
        ("split", _) => format!(" --target {}", quoted(known)),
        _ => String::new(),
    };
    let question = Question { title, effect, action: &action, fields, yes, command, filled, back: &back };
    let body = confirm::page(&visitor, &question);
    let page = Page { place: Place::Causes, title, pipeline: Some(&cause.pipeline), body };
    shell::show(&app, &visitor, page).await
}

/// What is asked; `known` is what was said before of the other cause, or the target.
fn question(
    verb: &str,
    cause: &CauseView,
    known: &str,
) -> Result<(&'static str, &'static str, Markup, Markup), Problem> {
    let title = crate::look::foreign::cut(&cause.title, 120);
    Ok(match verb {
        "mute" => (
            "Mute this cause?",
            "Mute",
            html! { "Nothing more is heard of “" (title) "”: no alert, and it is not listed under Needs you. Its letters stay as they are." },
            html! {
                (entry_as("until", "Until when: 7d (from now), a day or a time; empty means until somebody unmutes it", "24h", false, Some("--until")))
                (entry_as("per_hour", "Or until it kills so many tasks in an hour", "", false, Some("--per-hour")))
            },
        ),
        "note" => (
            "Add a note",
            "Note",
            html! { "Everybody who looks at “" (title) "” sees it." },
            entry_as("text", "What is to be said", "", true, Some("")),
        ),
        "merge" => (
            "Merge this cause into another?",
            "Merge",
            html! { "All " (cause.dead) " letters of “" (title) "”, and those to come, belong to the other cause from then on. Splitting takes it back." },
            entry_as("into", "Into which: its id", known, true, Some("")),
        ),
        "split" => (
            "Split this cause?",
            "Split",
            html! { "Letters like that, and those to come, are a cause of their own from then on. Say one of the two." },
            html! {
                (entry_as("target", "Those of this target", known, false, Some("--target")))
                (entry_as("text", "Those with this text in their message", "", false, Some("--text")))
            },
        ),
        _ => return Err(ApiError::invalid("verb", "expected mute, note, merge or split").into()),
    })
}

/// Changes a cause.
pub async fn change(
    State(app): State<App>,
    visitor: Visitor,
    Named(id): Named<CauseId>,
    fields: Fields,
) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        let verb = fields.one("verb").unwrap_or_default();
        let names: &[&str] = match verb {
            "assign" => &["owner"],
            "note" => &["text"],
            "mute" => &["until"],
            "resolve" => &["why"],
            "merge" => &["into"],
            // `key` is what a form is known by, here as everywhere: a key of the cause is split off by the command line.
            "split" => &["target", "text"],
            _ => &[],
        };
        let mut said = filled(&fields, names);
        said.insert("verb".to_owned(), json!(verb));
        if let Some(rate) = fields.one("per_hour").filter(|_| verb == "mute") {
            let wrong = |_| Problem::from(ApiError::invalid("per_hour", format!("{rate:?} is not a number of tasks")));
            said.insert("per_hour".to_owned(), json!(rate.parse::<u32>().map_err(wrong)?));
        }
        one(&app, &visitor, &id, Value::Object(said)).await?;
        // What became part of another is seen there.
        let about = match verb {
            "merge" => fields.one("into").unwrap_or_default().to_owned(),
            _ => id.to_string(),
        };
        let said = [("said", verb), ("was", fields.one("was").unwrap_or_default())];
        Ok(Done::At(with_said(&format!("/causes/{about}"), &said)))
    })
    .await
}
