//! `/causes`: triage.
//!
//! - `bulk`: what is done to those that are ticked; `ask`: what is asked before; `did`: what was done, and taking it back

mod ask;
mod bulk;
pub mod did;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::causes::CausesAsked;
use redrive::contract::CauseView;
use redrive_core::causes::{CauseId, CauseSort, CauseState};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;

pub use self::ask::{ask, mute_fields};
pub use self::bulk::{change, per_hour};
use self::did::without_told;
use super::fields::carried;
use super::filter::LetterFilter;
use super::overview::pipeline_of;
use super::part::{self, part};
use super::parts::{
    ago, cause_state, column, column_num, column_pick, instant, name, number, text, trend, views, with_query,
    without_cursor,
};
use super::problem::Problem;
use super::shell::{self, Page, Place};
use super::visitor::Visitor;
use crate::app::App;
use crate::error::ApiError;
use crate::look::figures::{count, part_of};

/// What causes are filtered by.
const FILTERS: [&str; 2] = ["pipeline", "owner"];

/// Causes on a page, and before the last of all pages.
const LIMIT: u32 = 100;
const FURTHEST: usize = 10_000;

/// Which causes are shown, in which order, from which one on.
struct Shown {
    tab: Tab,
    sort: CauseSort,
    from: usize,
}

/// Where causes stand that are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tab {
    NeedsYou,
    All,
    Muted,
    Resolved,
}

impl Tab {
    const ALL: [Self; 4] = [Self::NeedsYou, Self::All, Self::Muted, Self::Resolved];

    const fn as_str(self) -> &'static str {
        match self {
            Self::NeedsYou => "needs-you",
            Self::All => "all",
            Self::Muted => "muted",
            Self::Resolved => "resolved",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::NeedsYou => "Needs you",
            Self::All => "All",
            Self::Muted => "Muted",
            Self::Resolved => "Resolved",
        }
    }

    fn of(text: Option<&str>) -> Result<Self, Problem> {
        let Some(text) = text else { return Ok(Self::NeedsYou) };
        let found = Self::ALL.into_iter().find(|tab| tab.as_str() == text);
        found.ok_or_else(|| ApiError::invalid("tab", "expected needs-you, all, muted or resolved").into())
    }
}

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let query = visitor.query();
    let (tab, pipeline) = (Tab::of(query.one("tab"))?, pipeline_of(&visitor)?);
    let sort = query.one("sort").map_or(Ok(CauseSort::default()), str::parse);
    let sort = sort.map_err(|why: String| Problem::from(ApiError::invalid("sort", why)))?;
    let owner = query.one("owner").map(str::to_owned);
    let from = query.one("cursor").map_or(Ok(0), str::parse::<usize>).ok().filter(|from| *from <= FURTHEST);
    let from = from.ok_or_else(|| Problem::from(ApiError::invalid("cursor", "expected a number of causes")))?;
    let shown = Shown { tab, sort, from };
    let (told, read) = tokio::join!(
        part::read(did::told(&app, &visitor, None)),
        part::read(list(&app, &visitor, &shown, pipeline.clone(), owner)),
    );
    let (told, read, here) = (told?.unwrap_or_default(), read?, without_told(&visitor.here));
    let number = read.as_ref().ok().map(|(causes, more)| (from + causes.len(), *more));
    let listed = async {
        let (causes, more) = read?;
        Ok(listed(&visitor, &shown, &causes, more, app.redrive().now()))
    };
    let body = html! {
        div.head { h1 { "Causes" } (told) }
        div #cause-tabs { (tabs(&here, tab, number)) }
        (filters(&visitor, &here))
        (part(&visitor, ("causes-of", "Causes"), listed).await)
    };
    shell::show(&app, &visitor, Page { place: Place::Causes, title: "Causes", pipeline: pipeline.as_ref(), body }).await
}

async fn list(
    app: &App,
    visitor: &Visitor,
    &Shown { tab, sort, from }: &Shown,
    pipeline: Option<PipelineName>,
    owner: Option<String>,
) -> Result<(Vec<CauseView>, bool), Problem> {
    let states = match tab {
        Tab::Muted => vec![CauseState::Muted],
        Tab::Resolved => vec![CauseState::Resolved],
        Tab::NeedsYou | Tab::All => Vec::new(),
    };
    let limit = u32::try_from(from).unwrap_or(u32::MAX).saturating_add(LIMIT);
    let (needy, covers) = (tab == Tab::NeedsYou, |name: &PipelineName| visitor.caller.covers(name));
    let asked = CausesAsked { pipeline, states, owner, all: !needy, sort, limit };
    let (causes, more) = app.redrive().list_causes_of(covers, asked, needy).await?;
    Ok((causes.into_iter().skip(from).collect(), more))
}

/// The tabs, with how many causes the one has that is shown, and whether there are more.
fn tabs(here: &str, tab: Tab, number: Option<(usize, bool)>) -> Markup {
    let tabs = Tab::ALL.map(|each| {
        let number = number.filter(|_| each == tab);
        let title = html! {
            (each.title()) @if let Some((number, more)) = number { b { (number) @if more { "+" } } }
        };
        (with_query(&without_cursor(here), "tab", Some(each.as_str())), title, each == tab)
    });
    views("Which causes", tabs)
}

/// What is filtered by, each with a link that drops it; and what causes cannot be filtered by.
fn filters(visitor: &Visitor, here: &str) -> Markup {
    let (query, here) = (visitor.query(), without_cursor(here));
    let of_letters = LetterFilter::of(&query);
    let foreign: Vec<_> = of_letters.names().filter(|name| *name != "pipeline").collect();
    html! {
        @if FILTERS.iter().any(|name| query.one(name).is_some()) {
            div.filters {
                @for (name, value) in FILTERS.iter().filter_map(|name| Some((name, query.one(name)?))) {
                    span.chip {
                        span { (name) } " " bdi { (value) }
                        a href=(with_query(&here, name, None)) aria-label={ "Drop the filter " (name) } { "×" }
                    }
                }
            }
        }
        @if !foreign.is_empty() {
            p.fact {
                "Causes are not filtered by " (foreign.join(", ")) ": "
                a href={ "/letters?" (of_letters.to_query()) } { "letters are" } "."
            }
        }
    }
}

fn listed(visitor: &Visitor, shown: &Shown, causes: &[CauseView], more: bool, now: Timestamp) -> Markup {
    let &Shown { tab, sort, from } = shown;
    let here = without_told(&visitor.here);
    let next = (more && from < FURTHEST).then(|| (from + LIMIT as usize).to_string());
    html! {
        @if causes.is_empty() { (empty(visitor, tab, from > 0)) }
        @else {
            form method="post" action="/causes/change" #bulk {
                (carried(visitor))
                input type="hidden" name="back" value=(here);
                (bulk::bar(visitor))
                (table(&here, sort, causes, now))
            }
            p.table-foot {
                span { "Causes " (from + 1) " to " (from + causes.len()) ", " (first_comes(sort)) " first" }
                @if let Some(next) = &next {
                    a #further href=(with_query(&here, "cursor", Some(next))) { "Next " (LIMIT) }
                }
            }
        }
    }
}

fn empty(visitor: &Visitor, tab: Tab, is_further: bool) -> Markup {
    let (query, here) = (visitor.query(), without_told(&visitor.here));
    let filters: Vec<_> = FILTERS.into_iter().filter(|filter| query.one(filter).is_some()).collect();
    html! {
        p.empty {
            @match tab {
                _ if is_further => { "No more." }
                Tab::NeedsYou if filters.is_empty() => { "No cause needs anybody. " }
                Tab::NeedsYou => { "No cause like that needs anybody. " }
                Tab::All if filters.is_empty() => { "No task has died, so there are no causes." }
                Tab::Muted if filters.is_empty() => { "No cause is muted." }
                Tab::Resolved if filters.is_empty() => { "No cause was resolved yet." }
                Tab::All | Tab::Muted | Tab::Resolved => { "No cause is like that." }
            }
            @if tab == Tab::NeedsYou && !is_further {
                a href=(with_query(&without_cursor(&here), "tab", Some("all"))) { "All causes" }
            }
            @for filter in filters {
                " " a href=(with_query(&here, filter, None)) { "Drop the filter " (filter) }
            }
        }
    }
}

/// Which causes come first, in words.
const fn first_comes(sort: CauseSort) -> &'static str {
    match sort {
        CauseSort::Dead => "those with the most dead letters",
        CauseSort::Last => "those of which somebody died last",
        CauseSort::First => "those that were first seen last",
    }
}

fn table(here: &str, sort: CauseSort, causes: &[CauseView], now: Timestamp) -> Markup {
    let by = |each: CauseSort, label: &str| {
        let address =
            with_query(&without_cursor(here), "sort", Some(each.as_str()).filter(|_| each != CauseSort::Dead));
        html! {
            a href=(address) title={ "First " (first_comes(each)) } aria-current=[(each == sort).then_some("true")] {
                (label) @if each == sort { span aria-hidden="true" { " ▾" } }
            }
        }
    };
    html! {
        table.causes.two role="table" {
            thead role="rowgroup" { tr role="row" {
                (column_pick())
                (column("State"))
                (column("Cause"))
                (column("Died, 24 h, peak"))
                th.num role="columnheader" scope="col" aria-sort=[(sort == CauseSort::Dead).then_some("descending")] { (by(CauseSort::Dead, "Dead")) }
                (column_num("Saved"))
                th role="columnheader" scope="col" aria-sort=[(sort != CauseSort::Dead).then_some("descending")] {
                    (by(CauseSort::First, "First")) ", " (by(CauseSort::Last, "last"))
                }
                (column("Owner"))
            } }
            tbody role="rowgroup" #causes data-rows=(LIMIT) { @for cause in causes { (row(cause, now)) } }
        }
    }
}

fn row(cause: &CauseView, now: Timestamp) -> Markup {
    html! {
        tr role="row" id={ "cause-" (cause.id) } data-href={ "/causes/" (cause.id) } {
            td.pick role="cell" {
                label { input type="checkbox" name="id" value=(cause.id) data-flag="" data-pipeline=(cause.pipeline) aria-label={ "Choose cause " (cause.id) }; }
            }
            td.c-state role="cell" { (cause_state(cause.state)) }
            th.c-what role="rowheader" scope="row" {
                a.cut.name href={ "/causes/" (cause.id) } { (text(&cause.title)) }
                span.fact.cut {
                    (facts(cause))
                    @if let Some(example) = &cause.example { span.wide-only { " · e.g. " (name(example)) } }
                }
            }
            td.c-spark role="cell" { (trend(&cause.trend)) }
            td.num.c-dead role="cell" { b { (number(cause.dead as i64)) } }
            td.num.muted.c-saved role="cell" { (part_of(cause.saved as i64, cause.dead as i64)) }
            td.c-when.muted role="cell" { (instant(cause.first_seen, now)) span.fact { (ago(cause.last_seen, now)) } }
            td.c-owner role="cell" {
                @match &cause.owner { Some(owner) => { (name(owner)) } None => { span.muted { "nobody" } } }
            }
        }
    }
}

/// What a cause is about, in a line.
pub fn facts(cause: &CauseView) -> Markup {
    html! {
        (cause.pipeline) " · " (cause.reason)
        @if let Some(status) = cause.http_status { ", " (status) }
        @if let Some(target) = cause.targets.first() {
            " · " (name(target))
            @if cause.targets_count > 1 { " and " (count(cause.targets_count as i64 - 1)) " more" }
        }
    }
}

/// The id of a cause, as a form has it.
pub fn read(text: &str) -> Result<CauseId, Problem> {
    text.parse().map_err(|error: redrive_core::ids::InvalidName| ApiError::invalid("id", error.to_string()).into())
}
