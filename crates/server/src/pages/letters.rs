//! `/letters`: dead letters by whatever they have in common.

mod discard;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive_core::dead::DeadLetter;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;
use serde_json::Value;

pub use self::discard::{ask_discard, discard};
use super::acts::asked;
use super::filter::LetterFilter;
use super::overview::pipeline_of;
use super::parts::{
    column, column_num, column_pick, command, further, instant, name, text, with_query, without_cursor,
};
use super::problem::Problem;
use super::shell::{self, Page, Place};
use super::visitor::Visitor;
use crate::app::App;
use crate::look::figures::count;
use crate::look::foreign::cut;
use crate::page::{LIMIT, List, Listed};
use crate::routes::letters::list;

/// Inputs that stand for a task are cut to so many characters.
const TASK: usize = 32;

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let (query, pipeline) = (visitor.query(), pipeline_of(&visitor)?);
    let filter = LetterFilter::of(&query);
    let asked = asked(Value::Object(filter.to_json()))?;
    let wanted = List { asked, limit: LIMIT, cursor: query.one("cursor").map(str::to_owned) };
    let Json(found) = list::run(State(app.clone()), visitor.caller.clone(), wanted).await?;
    let now = app.redrive().now();
    let body = body(&visitor, &filter, &found, query.one("cursor").is_some(), now);
    shell::show(
        &app,
        &visitor,
        Page { place: Place::Letters, title: "Dead letters", pipeline: pipeline.as_ref(), body },
    )
    .await
}

fn body(
    visitor: &Visitor,
    filter: &LetterFilter,
    found: &Listed<DeadLetter>,
    is_further: bool,
    now: Timestamp,
) -> Markup {
    let letters = &found.items;
    html! {
        div.head { h1 { "Dead letters" } }
        (filters(visitor, filter, letters.len(), found.next.is_some() || is_further))
        (discard::said(visitor))
        @if letters.is_empty() { (empty(visitor, filter)) }
        @else {
            (table(visitor, letters, filter, now, true))
            (further(&without_cursor(&visitor.here), found.next.as_deref()))
            (command(&format!("redrive dead list{}", filter.flags())))
        }
    }
}

/// What is filtered by, and a form to filter by more.
fn filters(visitor: &Visitor, filter: &LetterFilter, shown: usize, more: bool) -> Markup {
    html! {
        div.filters {
            (filter.chips(&visitor.here))
            span.fact { (count(shown as i64)) @if more { "+" } " letters, newest first" }
        }
        details.filter-form {
            summary { "Filter" }
            form action="/letters" {
                div.row-of {
                    @for (id, label) in [("pipeline", "Pipeline"), ("reason", "Reason"), ("code", "Code"), ("target", "Target"), ("proxy", "Proxy"), ("gate", "Gate"), ("since", "Since: 2h, a day or a time"), ("until", "Until"), ("text", "Text in key, message or input")] {
                        p.entry {
                            label for={ "filter-" (id) } { (label) }
                            input id={ "filter-" (id) } type="text" name=(id) value=[filter.get(id)];
                        }
                    }
                    @if let Some(cause) = filter.get("cause") { input type="hidden" name="cause" value=(cause); }
                }
                p.actions { button { "Filter" } a.button href="/letters" { "All letters" } }
            }
        }
    }
}

fn empty(visitor: &Visitor, filter: &LetterFilter) -> Markup {
    html! {
        p.empty {
            @if filter.is_empty() { "No dead letters." }
            @else {
                "No dead letter is like that. Drop a filter: "
                @for name in filter.names() { a href=(with_query(&visitor.here, name, None)) { (name) } " " }
            }
        }
    }
}

/// Letters as a table; with what can be done to them where they can be ticked.
pub fn table(visitor: &Visitor, letters: &[DeadLetter], filter: &LetterFilter, now: Timestamp, ticked: bool) -> Markup {
    let rows = html! {
        table.letters role="table" .ticked[ticked] {
            thead role="rowgroup" { tr role="row" {
                @if ticked { (column_pick()) }
                (column("Letter"))
                (column("Died"))
                (column("Target"))
                (column("Task and message"))
                (column_num("Attempts"))
                (column("Proxy"))
                (column("Saved")) (column("Gate"))
            } }
            tbody role="rowgroup" #letters-rows data-rows="" { @for letter in letters { (row(letter, now, ticked)) } }
        }
    };
    if !ticked {
        return rows;
    }
    let [operator, admin] = [Role::Operator, Role::Admin].map(|role| visitor.lacks(role));
    html! {
        form action="/replays/new" #bulk {
            div.bulk data-selection="" {
                b data-count="" { "Tick letters, then:" }
                span.actions {
                    button.small disabled[operator.is_some()] title=[operator.as_deref()] data-key="r" data-label="Replay # selected…" {
                        "Replay selected…"
                    }
                    button.small formaction="/letters/discard" disabled[admin.is_some()] title=[admin.as_deref()] data-label="Discard # selected…" {
                        "Discard selected…"
                    }
                }
                @if !filter.is_empty() {
                    span.end {
                        a href={ "/replays/new?" (filter.to_query()) } { "Replay all that match…" } " "
                        @if admin.is_none() {
                            a href={ "/letters/discard?" (filter.to_query()) } { "Discard all that match…" }
                        }
                    }
                }
            }
            (rows)
        }
    }
}

fn row(letter: &DeadLetter, now: Timestamp, ticked: bool) -> Markup {
    let href = format!("/letters/{}", letter.id);
    html! {
        tr role="row" id={ "letter-" (letter.id) } data-href=(href) {
            @if ticked {
                td.pick role="cell" {
                    label {
                        input type="checkbox" name="id" value=(letter.id) aria-label={ "Choose letter " (number_of(letter)) };
                    }
                }
            }
            th.l-id role="rowheader" scope="row" { a.name href=(href) { (number_of(letter)) } }
            td.nowrap.l-died role="cell" { (instant(letter.died_at, now)) }
            td.muted.l-target role="cell" { span.cut { (name(letter.target.as_deref().unwrap_or("none"))) } }
            td.l-msg role="cell" {
                span.cut {
                    @if let Some(task) = task(letter) { (name(&task)) " " }
                    span.muted { (text(&letter.message)) }
                }
            }
            td.num.l-att role="cell" data-l="attempts" { (letter.attempts) }
            td.l-proxy role="cell" { (name(letter.proxy.as_deref().unwrap_or("none"))) }
            td.l-saved role="cell" {
                @if letter.payload.is_some() && !letter.payload_missing { "yes" } @else { span.muted { "no" } }
            }
            td.l-gate role="cell" { (letter.gate) }
        }
    }
}

/// What a letter is called.
pub fn number_of(letter: &DeadLetter) -> String {
    match letter.number {
        Some(number) => format!("#{number}"),
        None => letter.id.to_string()[28..].to_owned(),
    }
}

/// What a task is about, as far as its input says so: the path of its address, its key, or its input where the key only stands
/// for that.
fn task(letter: &DeadLetter) -> Option<String> {
    let url = letter.input.get("url").and_then(Value::as_str);
    let path = url.and_then(|url| url.split_once("://")).map(|(_, rest)| rest.find('/').map_or("/", |at| &rest[at..]));
    let key = letter.key.as_deref().filter(|key| !key.starts_with("c:"));
    let input =
        || serde_json::to_string(&letter.input).ok().filter(|input| input != "{}").map(|input| cut(&input, TASK));
    path.or(url).or(key).map(str::to_owned).or_else(input)
}
