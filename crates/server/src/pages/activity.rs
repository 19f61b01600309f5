//! `/activity`: what people did, and what Redrive did by itself that they ask about.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::{ActivityView, ListActivity, Page as Listed};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;
use serde_json::Value;

use super::fields::Fields;
use super::overview::pipeline_of;
use super::part::{self, part};
use super::parts::{
    Button, button, column, column_unseen, columns, command, flag, further, instant, name, text, views, with_query,
    without_cursor,
};
use super::pipelines;
use super::problem::Problem;
use super::shell::{self, Page, Place};
use super::visitor::Visitor;
use crate::app::App;
use crate::asked;
use crate::look::figures::counted;
use crate::routes::activity::hide_foreign;

/// What is filtered by.
const FILTERS: [&str; 5] = ["actor", "verb", "object", "since", "pipeline"];

/// Entries on a page.
const LIMIT: u32 = 50;

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let (query, mut pipeline) = (visitor.query(), pipeline_of(&visitor)?);
    let mut own = Vec::new();
    // Who may not see all sees one of theirs at a time, and which there are.
    if !visitor.caller.covers_all() {
        let known = app.redrive().store().ledgers().await?.into_keys();
        own = known.filter(|name| visitor.caller.covers(name)).collect::<Vec<_>>();
        pipeline = pipeline.or_else(|| own.first().cloned());
    }
    visitor.caller.check_all(pipeline.as_ref())?;
    let now = app.redrive().now();
    let (verb, object) = (query.one("verb"), query.one("object"));
    let asked = ListActivity {
        who: query.one("actor").map(str::to_owned),
        pipeline: pipeline.clone(),
        verb: verb.map(str::to_owned),
        object: object.map(str::to_owned),
        since: asked::instant("since", query.one("since"), now)?,
        limit: LIMIT,
        cursor: query.one("cursor").map(str::to_owned),
    };
    let filters: Vec<&str> = FILTERS.into_iter().filter(|name| query.one(name).is_some()).collect();
    let page = part::read(found(&app, &visitor, asked)).await?;
    let listed = async {
        let page = page?;
        Ok(html! {
            @if page.items.is_empty() { (empty(&visitor, &filters)) }
            @else {
                (table(&visitor, &page.items, now))
                (further(&without_cursor(&visitor.here), page.next.as_deref()))
                (command(&visitor, &command_of(&query, pipeline.as_ref())))
            }
        })
    };
    let here = without_cursor(&visitor.here);
    let of_pipeline = |name: &PipelineName| {
        (with_query(&here, "pipeline", Some(name.as_str())), html! { (name) }, pipeline.as_ref() == Some(name))
    };
    let body = html! {
        div.head { h1 { "Activity" } }
        @if own.len() > 1 { (views("Of which pipeline", own.iter().map(of_pipeline))) }
        form.filters action="/activity" {
            label.vh for="actor" { "Who" }
            input #actor type="text" name="actor" placeholder="Who" value=[query.one("actor")];
            label.vh for="verb" { "What" }
            input #verb type="text" name="verb" placeholder="What: discard, resolve…" value=[verb];
            label.vh for="object" { "To what" }
            input #object type="text" name="object" placeholder="To what: cause 240f8c6b" value=[object];
            button { "Filter" }
            @for name in ["pipeline", "since"] {
                @if let Some(value) = query.one(name) { input type="hidden" name=(name) value=(value); }
            }
            @if !filters.is_empty() { a.button href="/activity" { "All" } }
        }
        (part(&visitor, ("activity-of", "Activity"), listed).await)
    };
    shell::show(&app, &visitor, Page { place: Place::Activity, title: "Activity", pipeline: pipeline.as_ref(), body })
        .await
}

/// A page of what was done, each with what the record itself does not say.
async fn found(app: &App, visitor: &Visitor, asked: ListActivity) -> Result<Listed<Done>, Problem> {
    let page = app.redrive().list_activity(asked).await?;
    let mut items = Vec::new();
    for mut entry in page.items {
        let can_undo = undo(&entry).is_some() && is_last(app, &entry).await?;
        let letters = letters_of(app, &entry).await?;
        hide_foreign(&visitor.caller, &mut entry);
        items.push(Done { entry, can_undo, letters });
    }
    Ok(Listed { items, next: page.next })
}

/// Something that was done.
struct Done {
    entry: ActivityView,
    /// Whether it can be taken back: nothing was done to the same since.
    can_undo: bool,
    /// Of a replay that was begun: the letters that it has.
    letters: Option<u64>,
}

/// Whether nothing was done to the same since.
async fn is_last(app: &App, entry: &ActivityView) -> Result<bool, Problem> {
    let (object, since) = (Some(entry.object.clone()), Some(entry.at));
    // Names that begin alike are found too.
    let since = ListActivity { object, since, limit: LIMIT, ..ListActivity::default() };
    let since = app.redrive().list_activity(since).await?.items;
    Ok(since.iter().find(|other| other.object == entry.object) == Some(entry))
}

/// The letters of a replay that was begun: they are chosen after that.
async fn letters_of(app: &App, entry: &ActivityView) -> Result<Option<u64>, Problem> {
    let id = entry.object.strip_prefix("replay ").filter(|_| entry.verb == "start");
    let Some(id) = id.and_then(|id| id.parse().ok()) else { return Ok(None) };
    // It may be forgotten sooner than who began it.
    Ok(app.redrive().store().get_replay(id).await?.map(|replay| replay.progress.total))
}

/// What somebody would type to read the same.
fn command_of(query: &Fields, pipeline: Option<&PipelineName>) -> String {
    let said = [
        ("who", query.one("actor")),
        ("verb", query.one("verb")),
        ("object", query.one("object")),
        ("pipeline", pipeline.map(PipelineName::as_str)),
        ("since", query.one("since")),
    ];
    let flags = said.into_iter().filter_map(|(name, value)| Some(flag(name, value?)));
    format!("redrive activity{}", flags.collect::<String>())
}

/// What is said where there is nothing, with a way to drop each filter.
fn empty(visitor: &Visitor, filters: &[&str]) -> Markup {
    html! {
        p.empty {
            @if filters.is_empty() {
                "Nobody did anything yet. What people start, stop, assign, resolve or discard is written down here, by whichever way; and what Redrive begins or pauses by itself."
            } @else {
                "Nobody did anything like that. Drop a filter: "
                @for name in filters { a href=(with_query(&without_cursor(&visitor.here), name, None)) { (name) } " " }
            }
        }
    }
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
        ("alert", "unacknowledge") => ("/alerts/change".to_owned(), vec![("verb", "acknowledge"), ("alert", name)]),
        // One task goes, and what becomes of it says whether the others do: nobody knows here whether the target was well before.
        ("breaker", "hold") => {
            let pipeline = entry.detail.get("pipelines").and_then(|all| all.get(0)).and_then(Value::as_str)?;
            ("/breakers/turn".to_owned(), vec![("verb", "probe"), ("target", name), ("pipeline", pipeline)])
        }
        ("pipeline", "pause") => (format!("{}/resume", pipelines::address(name)), vec![]),
        _ => return None,
    })
}

fn table(visitor: &Visitor, entries: &[Done], now: Timestamp) -> Markup {
    html! {
        table.activity role="table" {
            (columns(&[
                column("When"), column("Who"), column("Via"), column("What"), column("Numbers and why"),
                column_unseen("Take back"),
            ]))
            tbody role="rowgroup" #activity data-rows=(LIMIT) {
                @for (done, id) in entries.iter().zip(row_ids(entries)) { @let entry = &done.entry;
                    tr role="row" id=(id) {
                        td.nowrap role="cell" { (instant(entry.at, now)) }
                        td role="cell" {
                            a href={ "/activity?" (form_urlencoded::Serializer::new(String::new()).append_pair("actor", &entry.by.name).finish()) } {
                                (name(&entry.by.name))
                            }
                        }
                        td.muted role="cell" { (entry.by.via.as_str()) }
                        th role="rowheader" scope="row" { (entry.verb) " " (object(entry)) }
                        td.muted role="cell" { span.cut { (text(&numbers_and_why(done))) } }
                        td.num role="cell" {
                            @if let Some((action, fields)) = undo(entry).filter(|_| done.can_undo) {
                                (button(visitor, &Button { action: &action, label: "Undo", role: Role::Operator, fields: &fields, class: "small plainly", key: None }))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What rows are called: by what they say, so that they keep their names when others come before them. Of several that say the same each has a
/// number, counted from the oldest.
fn row_ids(entries: &[Done]) -> Vec<String> {
    let mut seen = BTreeMap::<String, usize>::new();
    let named = entries.iter().rev().map(|Done { entry, .. }| {
        let said = format!("{} {:?} {} {} {}", entry.at.as_millis(), entry.by, entry.verb, entry.object, entry.detail);
        let id = format!("activity-{}", &blake3::hash(said.as_bytes()).to_hex()[..16]);
        let count = seen.entry(id.clone()).or_default();
        *count += 1;
        format!("{id}-{count}")
    });
    let mut ids: Vec<String> = named.collect();
    ids.reverse();
    ids
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
        Some(("pipeline", name)) => (Some(pipelines::address(name)), object.to_owned()),
        _ => (None, object.to_owned()),
    };
    html! { @match place { Some(place) => a href=(place) { (name(&shown)) }, None => (name(&shown)) } }
}

fn numbers_and_why(done: &Done) -> String {
    let letters = done.letters.map(|letters| counted(letters as i64, "letter", "letters"));
    let said = Some(detail(&done.entry.detail)).filter(|said| !said.is_empty());
    letters.into_iter().chain(said).collect::<Vec<_>>().join(", ")
}

fn detail(detail: &Value) -> String {
    let Value::Object(fields) = detail else { return shown(detail) };
    // What was said comes first, as it was said.
    let said = fields.iter().filter(|(key, _)| *key == "note" || *key == "why").map(|(_, value)| shown(value));
    let said = said.filter(|said| !said.is_empty());
    let is_said = |value: &Value| !shown(value).is_empty();
    let others =
        fields.iter().filter(|(key, value)| !["name", "note", "why"].contains(&key.as_str()) && is_said(value));
    let mut others: Vec<_> = others.map(|(key, value)| format!("{} {}", key.replace('_', " "), shown(value))).collect();
    others.sort();
    said.chain(others).collect::<Vec<_>>().join(", ")
}

/// A value as people write it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(" and "),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_said_is_not_shown() {
        let told =
            serde_json::json!({ "role": "worker", "pipelines": [], "expires_at": null, "why": null, "letters": 47 });
        assert_eq!(detail(&told), "letters 47, role worker");
    }
}
