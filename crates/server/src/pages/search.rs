//! `/search`: straight to what is named, else letters with that text.

use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use redrive::contract::{DeadFilter, ListPayloads};
use redrive::dead::SearchAsked;
use redrive_core::causes::CauseId;
use redrive_core::dead::LetterSort;
use redrive_core::ids::JobRef;

use super::problem::Problem;
use super::shell::{self, Page, Place};
use super::visitor::Visitor;
use crate::app::App;

/// The shortest end of an id, or beginning of a cause, that is taken for one.
const NAME_MIN: usize = 4;

/// The shortest beginning of a payload's hash that is taken for one.
const HASH_MIN: usize = 8;

/// How long letters are looked through for the one with an address.
const SEARCHED_FOR: Duration = Duration::from_millis(100);

/// Letters with an address somewhere that are looked at for the one that has it as its own.
const LOOKED_AT: u32 = 20;

/// Leads to what is meant.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let query = visitor.query();
    let Some(text) = query.one("q") else { return ask(&app, &visitor).await };
    let place = match named(&app, &visitor, text.trim_start_matches('#')).await {
        Some(place) => place,
        None if is_hash(text)
            && let Some(place) = by_payload(&app, &visitor, text).await? =>
        {
            place
        }
        None if is_address(text) => by_address(&app, &visitor, text).await?,
        None => {
            format!("/letters?{}", form_urlencoded::Serializer::new(String::new()).append_pair("text", text).finish())
        }
    };
    Ok(Redirect::to(&place).into_response())
}

/// The page of a letter or cause that is named so, of those that somebody may see: what is not theirs is as if it were not there.
async fn named(app: &App, visitor: &Visitor, text: &str) -> Option<String> {
    let is_number = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    if !is_number && text.len() < NAME_MIN {
        return None;
    }
    if let Ok(cause) = text.parse::<CauseId>()
        && !is_number
        && let Ok(found) = app.redrive().store().get_cause(cause, app.redrive().now()).await
        && visitor.caller.covers(&found.cause.pipeline)
    {
        return Some(format!("/causes/{}", found.cause.id));
    }
    let job = text.parse::<JobRef>().ok()?;
    let id = app.redrive().find_job(&job).await.ok()?;
    let found = app.redrive().job(id).await.ok()?;
    visitor.caller.covers(&found.job.pipeline).then_some(())?;
    Some(format!("/letters/{id}"))
}

/// Whether it may be the hash of a payload, or the beginning of one.
fn is_hash(text: &str) -> bool {
    text.len() >= HASH_MIN && text.chars().all(|c| c.is_ascii_hexdigit())
}

/// The page of the letter that came to a payload last, of those that somebody may see.
async fn by_payload(app: &App, visitor: &Visitor, digits: &str) -> Result<Option<String>, Problem> {
    let store = app.redrive().store();
    let (prefix, limit) = (Some(digits.to_ascii_lowercase()), 2);
    let found = store.list_payloads(ListPayloads { prefix, limit, cursor: None }).await?.items;
    // Several that begin so are none that is meant.
    let [payload] = &found[..] else { return Ok(None) };
    for job in store.jobs_with_payload(payload.hash, LOOKED_AT).await? {
        if store.get_dead(job).await?.is_some_and(|letter| visitor.caller.covers(&letter.pipeline)) {
            return Ok(Some(format!("/letters/{job}")));
        }
    }
    Ok(None)
}

fn is_address(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// The page of the one letter whose task has this address, else all letters with it.
async fn by_address(app: &App, visitor: &Visitor, address: &str) -> Result<String, Problem> {
    let (text, within) = (Some(address.to_owned()), visitor.caller.within());
    let filter = DeadFilter { within, text, ..DeadFilter::default() };
    let asked = SearchAsked { filter, sort: LetterSort::Newest, limit: LOOKED_AT, cursor: None, within: SEARCHED_FOR };
    let mut found = app.redrive().search_letters(asked).await?.letters;
    found.retain(|letter| letter.input.get("url").and_then(serde_json::Value::as_str) == Some(address));
    Ok(match &found[..] {
        [letter] => format!("/letters/{}", letter.id),
        _ => format!(
            "/letters?{}",
            form_urlencoded::Serializer::new(String::new()).append_pair("text", address).finish()
        ),
    })
}

async fn ask(app: &App, visitor: &Visitor) -> Result<Response, Problem> {
    let body = html! {
        div.head { h1 { "Search" } }
        form action="/search" role="search" {
            p.entry {
                label for="query" { "A letter's number or id, a cause, an address, a payload's hash, or text in key, message or input" }
                input #query type="search" name="q" autofocus;
            }
            p.actions { button.primary { "Search" } }
        }
    };
    shell::show(app, visitor, Page { place: Place::Letters, title: "Search", pipeline: None, body }).await
}
