//! `/activity`: what people did.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::{ActivityView, ListActivity};
use redrive_core::time::Timestamp;
use serde_json::Value;

use super::overview::pipeline_of;
use super::parts::{command, further, instant, name, text, without_cursor};
use super::problem::Problem;
use super::shell::{self, Page, Place};
use super::visitor::Visitor;
use crate::app::App;
use crate::asked;

/// Entries on a page.
const LIMIT: u32 = 50;

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let (query, pipeline) = (visitor.query(), pipeline_of(&visitor)?);
    visitor.caller.check_all(pipeline.as_ref())?;
    let now = app.redrive().now();
    let params = ListActivity {
        who: query.one("actor").map(str::to_owned),
        pipeline: pipeline.clone(),
        since: asked::instant("since", query.one("since"), now)?,
        limit: LIMIT,
        cursor: query.one("cursor").map(str::to_owned),
    };
    let mut page = app.redrive().list_activity(params).await?;
    // What is asked for beyond who and where is looked for on the page.
    let (verb, object) = (query.one("verb"), query.one("object"));
    page.items.retain(|entry| {
        verb.is_none_or(|verb| entry.verb == verb) && object.is_none_or(|object| entry.object.contains(object))
    });
    let body = html! {
        div.head { h1 { "Activity" } }
        form.filters action="/activity" {
            label.vh for="actor" { "Who" }
            input #actor type="text" name="actor" placeholder="Who" value=[query.one("actor")];
            label.vh for="verb" { "What" }
            input #verb type="text" name="verb" placeholder="What: discard, replay…" value=[verb];
            button { "Filter" } a.button href="/activity" { "All" }
        }
        @if page.items.is_empty() { p.empty { "Nobody did anything like that." } }
        @else {
            (table(&page.items, now)) (further(&without_cursor(&visitor.here), page.next.as_deref()))
            (command("redrive activity"))
        }
    };
    shell::show(&app, &visitor, Page { place: Place::Activity, title: "Activity", pipeline: pipeline.as_ref(), body })
        .await
}

fn table(entries: &[ActivityView], now: Timestamp) -> Markup {
    html! {
        table.activity role="table" {
            thead role="rowgroup" {
                tr role="row" {
                    th role="columnheader" scope="col" { "When" }
                    th role="columnheader" scope="col" { "Who" }
                    th role="columnheader" scope="col" { "Via" }
                    th role="columnheader" scope="col" { "What" }
                    th role="columnheader" scope="col" { "Numbers and why" }
                }
            }
            tbody role="rowgroup" #activity data-rows="" {
                @for (at, entry) in entries.iter().enumerate() {
                    tr role="row" id={ "activity-" (entry.at.as_millis()) "-" (at) } {
                        td.nowrap role="cell" { (instant(entry.at, now)) }
                        td role="cell" {
                            a href={ "/activity?" (form_urlencoded::Serializer::new(String::new()).append_pair("actor", &entry.by.name).finish()) } {
                                (name(&entry.by.name))
                            }
                        }
                        td.muted role="cell" { (entry.by.via.as_str()) }
                        th role="rowheader" scope="row" { (entry.verb) " " (object(entry)) }
                        td.muted role="cell" { span.cut { (text(&detail(&entry.detail))) } }
                    }
                }
            }
        }
    }
}

/// What it was done to, with a link where there is a page of it.
fn object(entry: &ActivityView) -> Markup {
    let object = entry.object.as_str();
    let (place, shown) = match object.split_once(' ') {
        Some(("cause", id)) => (Some(format!("/causes/{id}")), object.to_owned()),
        // Replays have names, and ids that nobody reads.
        Some(("replay", id)) => {
            let called = entry.detail.get("name").and_then(Value::as_str).unwrap_or_else(|| id.get(24..).unwrap_or(id));
            (Some(format!("/replays/{id}")), format!("replay {called}"))
        }
        Some(("pipeline", name)) => (Some(format!("/pipelines/{name}")), object.to_owned()),
        _ => (None, object.to_owned()),
    };
    html! { @match place { Some(place) => a href=(place) { (name(&shown)) }, None => (name(&shown)) } }
}

fn detail(detail: &Value) -> String {
    let Value::Object(fields) = detail else { return shown(detail) };
    let fields = fields.iter().filter(|(key, _)| *key != "name");
    fields.map(|(key, value)| format!("{} {}", key.replace('_', " "), shown(value))).collect::<Vec<_>>().join(", ")
}

/// A value as people write it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(" and "),
        Value::Null => "nothing".to_owned(),
        other => other.to_string(),
    }
}
