//! `/letters`: dead letters by whatever they have in common.

mod discard;

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::{CountEvents, DeadFilter, EventCount, Span};
use redrive::dead::SearchAsked;
use redrive_core::dead::{DeadLetter, Gate, LetterSort};
use redrive_core::failures::Reason;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;
use serde_json::Value;

pub use self::discard::{ask_discard, discard};
use super::acts::asked;
use super::filter::{LetterFilter, NAMES};
use super::overview::pipeline_of;
use super::part::{self, part};
use super::parts::{
    column, column_num, column_pick, command, further, instant, link, name, text, with_query, without_cursor,
};
use super::problem::Problem;
use super::shell::{self, Page, Place};
use super::visitor::Visitor;
use crate::app::App;
use crate::look::figures::{count, counted};
use crate::look::foreign::cut;
use crate::page::{LIMIT, List, Listed};
use crate::routes::letters::filter::Filter;
use crate::routes::letters::list;

/// Inputs that stand for a task are cut to so many characters.
const TASK: usize = 32;

/// Parameters of the page besides the filter.
const BESIDES: [&str; 4] = ["sort", "cursor", "said", "about"];

/// How long letters are looked through for a text, and for several things that no index finds together.
const SEARCHED_FOR: Duration = Duration::from_millis(100);
const FILTERED_FOR: Duration = Duration::from_millis(25);

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let (query, pipeline) = (visitor.query(), pipeline_of(&visitor)?);
    query.check_names(&[NAMES.as_slice(), &BESIDES].concat())?;
    let filter = LetterFilter::of(&query);
    let wanted: Filter = asked(Value::Object(filter.to_json()))?;
    let (cursor, sort) = (query.one("cursor").map(str::to_owned), list::sort_of(query.one("sort"))?);
    let is_further = cursor.is_some();
    let read = part::read(async {
        let (found, looked) = match within(&filter) {
            Some(within) => search(&app, &visitor, (wanted, sort), (cursor, within)).await?,
            None => {
                let list = List { asked: wanted, limit: LIMIT, cursor };
                (list::read(&app, &visitor.caller, list, (sort, false)).await?, None)
            }
        };
        let done = match found.items.is_empty() && filter.is_empty() {
            true => Some(done_lately(&app, &visitor).await?),
            false => None,
        };
        Ok((found, looked, done))
    });
    let (read, now) = (read.await?, app.redrive().now());
    let shown = read.as_ref().ok().map(|(found, ..)| shown(found.items.len(), found.next.is_some(), is_further, sort));
    let listed = async {
        let (found, looked, done) = read?;
        Ok(listed(&visitor, (&filter, sort), (&found, looked), (is_further, done), now))
    };
    let body = html! {
        div.head { h1 { "Dead letters" } }
        (filters(&visitor, (&filter, sort), shown.as_deref()))
        (discard::said(&visitor))
        (part(&visitor, ("letters-of", "Letters"), listed).await)
    };
    shell::show(
        &app,
        &visitor,
        Page { place: Place::Letters, title: "Dead letters", pipeline: pipeline.as_ref(), body },
    )
    .await
}

/// How far letters were looked through for a text.
#[derive(Clone, Copy, Debug)]
struct Looked {
    /// How many were looked at.
    at: u64,
    /// How many there are to look at, where that is known.
    of: Option<u64>,
}

/// How long letters are looked through for what a filter says; nothing if an index finds them, at once and in their order.
fn within(filter: &LetterFilter) -> Option<Duration> {
    let several = filter.names().filter(|name| !matches!(*name, "since" | "until")).count() > 1;
    match filter.get("text") {
        Some(_) => Some(SEARCHED_FOR),
        None => several.then_some(FILTERED_FOR),
    }
}

/// Letters that are like that, as far as they are found in a moment.
async fn search(
    app: &App,
    visitor: &Visitor,
    (asked, sort): (Filter, LetterSort),
    (cursor, within): (Option<String>, Duration),
) -> Result<(Listed<DeadLetter>, Option<Looked>), Problem> {
    visitor.caller.check_each(&asked.pipeline)?;
    if asked.cause.is_some() {
        asked.check(app, &visitor.caller).await?;
    }
    let filter = DeadFilter { within: visitor.caller.within(), ..asked.dead(app)? };
    let found = app.redrive().search_letters(SearchAsked { filter, sort, limit: LIMIT, cursor, within }).await?;
    let looked = Looked { at: found.looked_at, of: found.of };
    Ok((Listed { items: found.letters, next: found.next }, Some(looked)))
}

/// How far a search has come, with a way to go on.
fn progress(visitor: &Visitor, found: &Listed<DeadLetter>, looked: Looked) -> Markup {
    let at = count(looked.at as i64);
    let whole = looked.of.map(|of| format!(" of {}", count(of as i64))).unwrap_or_default();
    html! {
        p.table-foot #searched {
            @match &found.next {
                Some(next) => {
                    "looked at " (at) (whole) " · "
                    a #further href=(with_query(&without_cursor(&visitor.here), "cursor", Some(next))) { "Go on" }
                }
                None => { "looked at all " (at) }
            }
        }
    }
}

/// The letters that were found, or what is said where there is none.
fn listed(
    visitor: &Visitor,
    (filter, sort): (&LetterFilter, LetterSort),
    (found, looked): (&Listed<DeadLetter>, Option<Looked>),
    (is_further, done): (bool, Option<i64>),
    now: Timestamp,
) -> Markup {
    let letters = &found.items;
    html! {
        @match (letters.is_empty(), looked) {
            (true, Some(looked)) if found.next.is_some() => {
                p.empty { "None so far." }
                (progress(visitor, found, looked))
            }
            (true, _) if is_further => { p.empty { "No more." } }
            (true, _) => (empty(visitor, filter, done)),
            (false, looked) => {
                (table(visitor, letters, filter, now, Some(sort)))
                @match looked {
                    Some(looked) => (progress(visitor, found, looked)),
                    None => (further(&without_cursor(&visitor.here), found.next.as_deref())),
                }
            }
        }
        @if !letters.is_empty() {
            @let order = if sort == LetterSort::Newest { String::new() } else { format!(" --sort {sort}") };
            (command(visitor, &format!("redrive dead list{}{order}", filter.flags())))
        }
    }
}

/// How many letters are shown: all, at least so many, or those of a further page.
fn shown(letters: usize, has_next: bool, is_further: bool, sort: LetterSort) -> String {
    let number = if has_next && !is_further { format!("{}+", count(letters as i64)) } else { count(letters as i64) };
    let place = if is_further { " on this page" } else { "" };
    format!("{number} {}{place}, {sort} first", if letters == 1 && !has_next { "letter" } else { "letters" })
}

/// What is filtered by, with how many are shown of it, and a form to filter by more.
fn filters(visitor: &Visitor, (filter, sort): (&LetterFilter, LetterSort), shown: Option<&str>) -> Markup {
    html! {
        div.filters {
            (filter.chips(&visitor.here))
            @if let Some(shown) = shown { span.fact #letters-shown { (shown) } }
        }
        details.filter-form {
            summary { "Filter" }
            form action="/letters" {
                div.row-of {
                    @for (id, label) in [("pipeline", "Pipeline"), ("code", "Code"), ("target", "Target"), ("proxy", "Proxy"), ("since", "Since: 2h, a day or a time"), ("until", "Until"), ("text", "Text in key, message or input")] {
                        p.entry {
                            label for={ "filter-" (id) } { (label) }
                            input id={ "filter-" (id) } type="text" name=(id) value=[filter.get(id)];
                        }
                    }
                    (choice(("reason", "Reason"), Reason::ALL.iter().map(|reason| reason.as_str()), filter.get("reason")))
                    (choice(("gate", "Gate"), Gate::ALL.iter().map(|gate| gate.as_str()), filter.get("gate")))
                    p.entry {
                        label for="filter-sort" { "First come the" }
                        select id="filter-sort" name="sort" {
                            @for each in LetterSort::ALL { option value=(each) selected[each == sort] { (each) } }
                        }
                    }
                    @for id in ["cause", "round"] {
                        @if let Some(value) = filter.get(id) { input type="hidden" name=(id) value=(value); }
                    }
                }
                p.actions { button { "Filter" } a.button href="/letters" { "All letters" } }
            }
        }
    }
}

/// One of some words, or any.
fn choice<'a>((id, label): (&str, &str), words: impl Iterator<Item = &'a str>, chosen: Option<&str>) -> Markup {
    html! {
        p.entry {
            label for={ "filter-" (id) } { (label) }
            select id={ "filter-" (id) } name=(id) {
                option value="" { "any" }
                @for word in words { option value=(word) selected[chosen == Some(word)] { (word) } }
            }
        }
    }
}

/// Tasks that were done in the last 24 hours, of the pipelines that somebody may see, each once: what recovered came to its end before.
async fn done_lately(app: &App, visitor: &Visitor) -> Result<i64, Problem> {
    let since = app.redrive().now() - Duration::from_secs(86_400);
    let counts = app.redrive().store().counts(CountEvents::since(since, Span::Hour)).await?;
    let own = counts.iter().filter(|count| visitor.caller.covers(&count.pipeline));
    Ok(own.map(EventCount::done_once).sum::<i64>().max(0))
}

fn empty(visitor: &Visitor, filter: &LetterFilter, done: Option<i64>) -> Markup {
    html! {
        p.empty {
            @if let Some(done) = done { "No dead letters; " (counted(done, "task", "tasks")) " done in 24 h." }
            @else if filter.is_empty() { "No dead letters." }
            @else {
                "No dead letter is like that. Drop a filter: "
                @for name in filter.names() { a href=(with_query(&without_cursor(&visitor.here), name, None)) { (name) } " " }
            }
        }
    }
}

/// Letters as a table. Where they are in an order that can be changed they can be ticked, too, with what can be done to them.
pub fn table(
    visitor: &Visitor,
    letters: &[DeadLetter],
    filter: &LetterFilter,
    now: Timestamp,
    sort: Option<LetterSort>,
) -> Markup {
    let ticked = sort.is_some();
    let rows = html! {
        table.letters role="table" .ticked[ticked] {
            thead role="rowgroup" { tr role="row" {
                @if ticked { (column_pick()) }
                (column("Letter"))
                @match sort {
                    Some(sort) => (column_died(&visitor.here, sort)),
                    None => (column("Died")),
                }
                (column("Target"))
                (column("Task and message"))
                (column_num("Attempts"))
                (column("Proxy"))
                (column("Saved")) (column("Gate"))
            } }
            tbody role="rowgroup" #letters-rows data-rows=(if ticked { LIMIT } else { super::cause::LETTERS }) { @for letter in letters { (row(letter, now, ticked)) } }
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
                @match (&operator, &admin) {
                    (Some(lacks), _) => span.fact { (lacks) },
                    (None, Some(lacks)) => span.fact { "Discard " (lacks) },
                    (None, None) => {}
                }
                @if !filter.is_empty() {
                    span.end {
                        @if filter.get("pipeline").is_none() && !visitor.caller.covers_all() {
                            span.fact { "Choose a pipeline to replay all that match." }
                        } @else {
                            (link(visitor, Role::Operator, &format!("/replays/new?{}", filter.to_query()), "Replay all that match…", "small plainly", None)) " "
                            (link(visitor, Role::Admin, &format!("/letters/discard?{}", filter.to_query()), "Discard all that match…", "small plainly", None))
                        }
                    }
                }
            }
            (rows)
        }
    }
}

/// The head of the column by which letters are in their order, with a way to turn it round.
fn column_died(here: &str, sort: LetterSort) -> Markup {
    let (other, is, arrow) = match sort {
        LetterSort::Newest => (LetterSort::Oldest, "descending", " ▾"),
        LetterSort::Oldest => (LetterSort::Newest, "ascending", " ▴"),
    };
    let address =
        with_query(&without_cursor(here), "sort", Some(other.as_str()).filter(|_| other != LetterSort::default()));
    html! {
        th role="columnheader" scope="col" aria-sort=(is) {
            a href=(address) title={ "First the " (other) } { "Died" span aria-hidden="true" { (arrow) } }
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
                    span.muted dir="auto" { (text(&letter.message)) }
                }
            }
            td.num.l-att role="cell" data-l="attempts" { (letter.attempts) }
            td.l-proxy role="cell" { (name(letter.proxy.as_deref().unwrap_or("none"))) }
            td.l-saved role="cell" {
                @if letter.is_saved() { "yes" } @else if letter.payload_cut { "its beginning" } @else { span.muted { "no" } }
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
