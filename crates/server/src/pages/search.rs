//! `/search`: straight to what is named, else letters with that text.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use redrive_core::causes::CauseId;
use redrive_core::ids::JobRef;

use super::problem::Problem;
use super::shell::{self, Page, Place};
use super::visitor::Visitor;
use crate::app::App;

/// The shortest end of an id, or beginning of a cause, that is taken for one.
const NAME_MIN: usize = 4;

/// Leads to what is meant.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let query = visitor.query();
    let Some(text) = query.one("q") else { return ask(&app, &visitor).await };
    let place = match named(&app, text.trim_start_matches('#')).await {
        Some(place) => place,
        None => {
            format!("/letters?{}", form_urlencoded::Serializer::new(String::new()).append_pair("text", text).finish())
        }
    };
    Ok(Redirect::to(&place).into_response())
}

/// The page of a letter or cause that is named so.
async fn named(app: &App, text: &str) -> Option<String> {
    let is_number = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    if !is_number && text.len() < NAME_MIN {
        return None;
    }
    if let Ok(cause) = text.parse::<CauseId>()
        && !is_number
        && let Ok(found) = app.redrive().store().get_cause(cause, app.redrive().now()).await
    {
        return Some(format!("/causes/{}", found.cause.id));
    }
    let job = text.parse::<JobRef>().ok()?;
    let id = app.redrive().find_job(&job).await.ok()?;
    Some(format!("/letters/{id}"))
}

async fn ask(app: &App, visitor: &Visitor) -> Result<Response, Problem> {
    let body = html! {
        div.head { h1 { "Search" } }
        form action="/search" role="search" {
            p.entry {
                label for="query" { "A letter's number or id, a cause, or text in key, message or input" }
                input #query type="search" name="q" autofocus;
            }
            p.actions { button.primary { "Search" } }
        }
    };
    shell::show(app, visitor, Page { place: Place::Letters, title: "Search", pipeline: None, body }).await
}
