//! `/activity`: what people did.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::{ActivityView, ListActivity, Page as Listed};
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;
use serde_json::Value;

use super::overview::pipeline_of;
use super::parts::{
    Button, button, column, column_unseen, columns, command, further, instant, name, text, without_cursor,
};
use super::problem::Problem;
use super::shell::{self, Page, Place};
use super::visitor::Visitor;
use crate::app::App;
use crate::asked;

/// Entries on a page, at least, where there are so many.
const LIMIT: u32 = 50;

/// So many times as many entries are read for a page, at most.
const READ_MAX: usize = 40;

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let (query, pipeline) = (visitor.query(), pipeline_of(&visitor)?);
    visitor.caller.check_all(pipeline.as_ref())?;
    let now = app.redrive().now();
    let (verb, object) = (query.one("verb"), query.one("object"));
    let asked = ListActivity {
        who: query.one("actor").map(str::to_owned),
        pipeline: pipeline.clone(),
        since: asked::instant("since", query.one("since"), now)?,
        limit: LIMIT,
        cursor: query.one("cursor").map(str::to_owned),
    };
    let is_meant = |entry: &ActivityView| {
        verb.is_none_or(|verb| entry.verb == verb) && object.is_none_or(|object| entry.object.contains(object))
    };
    let is_filtered =
        ["actor", "verb", "object", "since", "pipeline"].into_iter().any(|name| query.one(name).is_some());
    let page = found(&app, asked, is_meant).await?;
    let body = html! {
        div.head { h1 { "Activity" } }
        form.filters action="/activity" {
            label.vh for="actor" { "Who" }
            input #actor type="text" name="actor" placeholder="Who" value=[query.one("actor")];
            label.vh for="verb" { "What" }
            input #verb type="text" name="verb" placeholder="What: discard, resolve…" value=[verb];
            label.vh for="object" { "To what" }
            input #object type="text" name="object" placeholder="To what: cause 240f8c6b" value=[object];
            button { "Filter" }
            @if is_filtered { a.button href="/activity" { "All" } }
        }
        @if page.items.is_empty() && is_filtered {
            p.empty { "Nobody did anything like that. " a href="/activity" { "Everything that was done" } }
        } @else if page.items.is_empty() {
            p.empty { "Nobody did anything yet. What people start, stop, assign, resolve or discard is written down here, by whichever way." }
        } @else {
            (table(&visitor, &page.items, now)) (further(&without_cursor(&visitor.here), page.next.as_deref()))
            (command("redrive activity"))
        }
    };
    shell::show(&app, &visitor, Page { place: Place::Activity, title: "Activity", pipeline: pipeline.as_ref(), body })
        .await
}

/// The entries that are meant, from where a page begins. The record is read on until there are enough of them, or much was read.
async fn found(
    app: &App,
    mut asked: ListActivity,
    is_meant: impl Fn(&ActivityView) -> bool,
) -> Result<Listed<ActivityView>, Problem> {
    let mut items = Vec::new();
    for _ in 0..READ_MAX {
        let page = app.redrive().list_activity(asked.clone()).await?;
        items.extend(page.items.into_iter().filter(&is_meant));
        asked.cursor = page.next;
        if asked.cursor.is_none() || items.len() >= LIMIT as usize {
            break;
        }
    }
    Ok(Listed { items, next: asked.cursor })
}

/// What takes something back: where the form is sent to, and what it carries. Nothing where it cannot be taken back by one form.
fn undo(entry: &ActivityView) -> Option<(String, Vec<(&str, &str)>)> {
    let (kind, name) = entry.object.split_once(' ')?;
    Some(match (kind, entry.verb.as_str()) {
        ("cause", "resolve") => (format!("/causes/{name}/change"), vec![("verb", "reopen")]),
        ("cause", "reopen") => (format!("/causes/{name}/change"), vec![("verb", "resolve")]),
        ("cause", "mute") => (format!("/causes/{name}/change"), vec![("verb", "unmute")]),
        ("alert", "acknowledge") => ("/alerts/change".to_owned(), vec![("verb", "unacknowledge"), ("alert", name)]),
        ("alert", "snooze") => ("/alerts/change".to_owned(), vec![("verb", "wake"), ("alert", name)]),
        ("pipeline", "pause") => (format!("/pipelines/{name}/resume"), vec![]),
        _ => return None,
    })
}

fn table(visitor: &Visitor, entries: &[ActivityView], now: Timestamp) -> Markup {
    // Only what was done last to something can be taken back.
    let mut seen = std::collections::BTreeSet::new();
    let undos: Vec<_> = entries.iter().map(|entry| seen.insert(&entry.object).then(|| undo(entry)).flatten()).collect();
    html! {
        table.activity role="table" {
            (columns(&[
                column("When"), column("Who"), column("Via"), column("What"), column("Numbers and why"),
                column_unseen("Take back"),
            ]))
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
                        td.num role="cell" {
                            @if let Some((action, fields)) = &undos[at] {
                                (button(visitor, &Button { action, label: "Undo", role: Role::Operator, fields, class: "small plainly", key: None }))
                            }
                        }
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
    // What was said comes first, as it was said.
    let said = fields.iter().filter(|(key, _)| *key == "note" || *key == "why").map(|(_, value)| shown(value));
    let others = fields.iter().filter(|(key, _)| !["name", "note", "why"].contains(&key.as_str()));
    let others = others.map(|(key, value)| format!("{} {}", key.replace('_', " "), shown(value)));
    said.chain(others).collect::<Vec<_>>().join(", ")
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
