//! `/causes`: triage.

mod ask;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::causes::CausesAsked;
use redrive::contract::CauseView;
use redrive_core::causes::{CauseId, CauseSort, CauseState};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;
use serde_json::{Value, json};

pub use self::ask::ask;
use super::acts::asked;
use super::fields::{Done, Fields, carried, once, own_path, with_said};
use super::overview::pipeline_of;
use super::parts::{
    ago, cause_state, column, column_num, column_pick, commands_of_ticked, instant, name, number, quoted, text, trend,
    views, with_query, without_cursor,
};
use super::problem::Problem;
use super::shell::{self, Page, Place, number_of};
use super::visitor::Visitor;
use crate::app::App;
use crate::asked::{Body, Named};
use crate::error::ApiError;
use crate::look::figures::{count, part_of};
use crate::routes::causes::change;

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
    let (causes, more) = list(&app, &visitor, &shown, pipeline.clone(), owner).await?;
    let body = body(&visitor, &shown, &causes, more, app.redrive().now());
    shell::show(&app, &visitor, Page { place: Place::Causes, title: "Causes", pipeline: pipeline.as_ref(), body }).await
}

async fn list(
    app: &App,
    visitor: &Visitor,
    &Shown { tab, sort, from }: &Shown,
    pipeline: Option<PipelineName>,
    owner: Option<String>,
) -> Result<(Vec<CauseView>, bool), Problem> {
    let covers = |name: &PipelineName| visitor.caller.covers(name);
    let reach = u32::try_from(from).unwrap_or(u32::MAX).saturating_add(LIMIT);
    let (mut causes, mut more) = match tab {
        Tab::NeedsYou => {
            let mut causes = app.redrive().needy_causes(pipeline.as_ref(), &covers, (sort, reach + 1)).await?;
            causes.retain(|cause| owner.is_none() || cause.owner == owner);
            (causes, false)
        }
        _ => {
            let states = match tab {
                Tab::Muted => vec![CauseState::Muted],
                Tab::Resolved => vec![CauseState::Resolved],
                Tab::NeedsYou | Tab::All => Vec::new(),
            };
            let asked = CausesAsked { pipeline, states, owner, all: tab != Tab::All, sort, limit: reach };
            let found = app.redrive().list_causes(asked).await?;
            (found.causes, found.more)
        }
    };
    causes.retain(|cause| covers(&cause.pipeline));
    more |= causes.len() > reach as usize;
    Ok((causes.into_iter().skip(from).take(LIMIT as usize).collect(), more))
}

fn body(visitor: &Visitor, shown: &Shown, causes: &[CauseView], more: bool, now: Timestamp) -> Markup {
    let &Shown { tab, sort, from } = shown;
    let here = with_query(&visitor.here, "said", None);
    let tabs = Tab::ALL.map(|each| {
        let number = html! { (each.title()) @if each == tab { b { (from + causes.len()) @if more { "+" } } } };
        (with_query(&without_cursor(&here), "tab", Some(each.as_str())), number, each == tab)
    });
    let next = (more && from < FURTHEST).then(|| (from + LIMIT as usize).to_string());
    html! {
        div.head { h1 { "Causes" } }
        div #cause-tabs { (views("Which causes", tabs)) }
        div.part data-part="causes-of" #part-causes-of { @if causes.is_empty() { (empty(visitor, tab)) } @else {
            form method="post" action="/causes/change" #bulk {
                (carried(visitor))
                input type="hidden" name="back" value=(here);
                (bulk(visitor))
                (table(&here, sort, causes, now))
            }
            p.table-foot {
                span { "Causes " (from + 1) " to " (from + causes.len()) ", " (first_comes(sort)) " first" }
                @if let Some(next) = &next {
                    a #further href=(with_query(&here, "cursor", Some(next))) { "Next " (LIMIT) }
                }
            }
        } }
    }
}

fn empty(visitor: &Visitor, tab: Tab) -> Markup {
    let filters = ["pipeline", "owner"];
    let query = visitor.query();
    html! {
        p.empty {
            @match tab {
                Tab::NeedsYou => { "No cause needs anybody. " a href="/causes?tab=all" { "All causes" } }
                Tab::All => { "No dead letters, so no causes." }
                Tab::Muted => { "No cause is muted." }
                Tab::Resolved => { "No cause was resolved yet." }
            }
            @for filter in filters.into_iter().filter(|filter| query.one(filter).is_some()) {
                " " a href=(with_query(&visitor.here, filter, None)) { "Drop the filter " (filter) }
            }
        }
    }
}

/// What can be done to those that are ticked.
fn bulk(visitor: &Visitor) -> Markup {
    let [lacks, admin] = [Role::Operator, Role::Admin].map(|role| visitor.lacks(role));
    let press = |verb: &str, label: &str, ticked: &str, key: Option<&str>, in_more: bool| {
        let lacks = if verb == "discard" { &admin } else { &lacks };
        // What cannot be taken back at once is asked for.
        let asks = matches!(verb, "replay" | "discard" | "merge").then_some("/causes/ask");
        let ticked = Some(ticked).filter(|ticked| !ticked.is_empty());
        html! {
            button.small.in-more[in_more] name="verb" value=(verb) formaction=[asks] disabled[lacks.is_some()] title=[lacks.as_deref()] data-key=[key] data-label=[ticked] {
                (label)
            }
        }
    };
    html! {
        div.bulk data-selection="" {
            b data-count="" { "Tick causes, then:" }
            span.actions {
                (press("assign", "Assign me", "", Some("a"), false))
                (press("mute", "Mute 24 h", "", Some("m"), true))
                (press("resolve", "Resolve", "", Some("e"), true))
                (press("replay", "Try or replay…", "Try or replay #…", Some("t r"), false))
                (press("discard", "Discard their letters…", "Discard the letters of #…", None, true))
                (press("merge", "Merge…", "Merge #…", None, true))
                // What has no room in the bar of a phone.
                details.menu.narrow { summary.button.small { "More" } ul {
                    li { (press("mute", "Mute 24 h", "", None, false)) }
                    li { (press("resolve", "Resolve", "", None, false)) }
                    li { (press("discard", "Discard their letters…", "Discard the letters of #…", None, false)) }
                    li { (press("merge", "Merge…", "Merge #…", None, false)) }
                } }
            }
            @if let Some(lacks) = &lacks { span.fact { (lacks) } }
            (commands_of_ticked(&[
                ("Assign me", format!("redrive cause assign --to {}", quoted(visitor.caller.name()))),
                ("Mute 24 h", "redrive cause mute --until 24h".to_owned()),
                ("Resolve", "redrive cause resolve".to_owned()),
            ], "CAUSE…"))
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
                (column_num("From saved"))
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
                label { input type="checkbox" name="id" value=(cause.id) data-flag="" aria-label={ "Choose cause " (cause.id) }; }
            }
            td.c-state role="cell" { (cause_state(cause.state)) }
            th.c-what role="rowheader" scope="row" {
                a.cut.name href={ "/causes/" (cause.id) } { (text(&cause.title)) }
                span.fact.cut { (facts(cause)) }
                @if let Some(example) = &cause.example { span.fact.cut { "e.g. " (name(example)) } }
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

/// Does something to all that are ticked.
pub async fn change(State(app): State<App>, visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        let ids: Vec<CauseId> = fields.all("id").map(read).collect::<Result<_, _>>()?;
        if ids.is_empty() {
            return Err(ApiError::senseless("no cause is ticked").into());
        }
        let verb = fields.one("verb").unwrap_or_default();
        let owner = visitor.caller.name();
        match verb {
            "merge" => {
                let into = ids.first().map(ToString::to_string).unwrap_or_default();
                for id in ids.iter().skip(1) {
                    one(&app, &visitor, id, json!({ "verb": "merge", "into": into })).await?;
                }
            }
            "assign" | "mute" | "resolve" => {
                for id in &ids {
                    let said = match verb {
                        "assign" => json!({ "verb": "assign", "owner": owner }),
                        "mute" => json!({ "verb": "mute", "until": "24h" }),
                        _ => json!({ "verb": "resolve" }),
                    };
                    one(&app, &visitor, id, said).await?;
                }
            }
            _ => return Err(ApiError::invalid("verb", "expected assign, mute, resolve or merge").into()),
        }
        let about = number_of(ids.len(), "cause", "causes");
        let back = own_path(fields.one("back").unwrap_or("/causes"));
        Ok(Done::At(with_said(back, &[("said", verb), ("about", &about)])))
    })
    .await
}

/// Changes one cause, as the API would.
pub async fn one(app: &App, visitor: &Visitor, id: &CauseId, said: Value) -> Result<(), Problem> {
    let asked = Body(asked(said)?);
    let _changed = change::run(State(app.clone()), visitor.caller.clone(), Named(id.clone()), asked).await?;
    Ok(())
}

/// The id of a cause, as a form has it.
pub fn read(text: &str) -> Result<CauseId, Problem> {
    text.parse().map_err(|error: redrive_core::ids::InvalidName| ApiError::invalid("id", error.to_string()).into())
}
