//! What is around every page: facts about the system, then places.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};
use redrive::overview::{Glance, Look};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;

use super::assets::{MARK, SCRIPTS, STYLE, THEME};
use super::fields::carried;
use super::part::PATIENCE;
use super::parts::{Glyph, clock, glyph, instant, name, text, with_query};
use super::pipelines;
use super::problem::Problem;
use super::visitor::Visitor;
use crate::app::App;
use crate::look::figures::counted;

/// The places that the navigation has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Overview,
    Causes,
    Replays,
    Alerts,
    Pipelines,
    Letters,
    Activity,
    Settings,
}

impl Place {
    const ALL: [Self; 8] = [
        Self::Overview,
        Self::Causes,
        Self::Replays,
        Self::Alerts,
        Self::Pipelines,
        Self::Letters,
        Self::Activity,
        Self::Settings,
    ];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Causes => "Causes",
            Self::Replays => "Replays",
            Self::Alerts => "Alerts",
            Self::Pipelines => "Pipelines",
            Self::Letters => "Letters",
            Self::Activity => "Activity",
            Self::Settings => "Settings",
        }
    }

    /// Where it is.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Overview => "/",
            Self::Causes => "/causes",
            Self::Replays => "/replays",
            Self::Alerts => "/alerts",
            Self::Pipelines => "/pipelines",
            Self::Letters => "/letters",
            Self::Activity => "/activity",
            Self::Settings => "/settings/tokens",
        }
    }

    /// Whether it is found under "More" where there is little room.
    const fn is_in_more(self) -> bool {
        matches!(self, Self::Pipelines | Self::Letters | Self::Activity | Self::Settings)
    }

    /// Whether it can be about one pipeline.
    const fn takes_pipeline(self) -> bool {
        matches!(self, Self::Overview | Self::Causes | Self::Letters | Self::Activity)
    }

    /// Where it is, of the pipeline that somebody looks at, if they chose one.
    fn address(self, visitor: &Visitor) -> String {
        let query = visitor.query();
        with_query(self.path(), "pipeline", query.one("pipeline").filter(|_| self.takes_pipeline()))
    }

    /// Where a page belongs, by its address.
    pub fn of(here: &str) -> Self {
        let first = |path: &str| path.split(['/', '?']).nth(1).unwrap_or_default().to_owned();
        Self::ALL.into_iter().find(|place| first(place.path()) == first(here)).unwrap_or(Self::Overview)
    }
}

/// A page that is to be shown.
pub struct Page<'a> {
    /// Where it is in the navigation.
    pub place: Place,
    /// What stands in the tab.
    pub title: &'a str,
    /// The pipeline that it is about.
    pub pipeline: Option<&'a PipelineName>,
    /// What it says.
    pub body: Markup,
}

/// Shows a page.
pub async fn show(app: &App, visitor: &Visitor, page: Page<'_>) -> Result<Response, Problem> {
    let (setting, caller) = (app.setting(), &visitor.caller);
    let look = app.redrive().look(&setting, |name: &PipelineName| caller.covers(name), caller.covers_all());
    show_with(app, visitor, page, &look).await
}

/// The same where somebody has looked already at all that who looks may see.
pub async fn show_with<C>(app: &App, visitor: &Visitor, page: Page<'_>, look: &Look<'_, C>) -> Result<Response, Problem>
where
    C: Fn(&PipelineName) -> bool,
{
    // What stands around a page is no reason not to show it.
    let glance = tokio::time::timeout(PATIENCE, look.glance()).await;
    let glance = glance.ok().and_then(Result::ok);
    let is_read = glance.is_some();
    let glance = glance.unwrap_or_default();
    let header = header(visitor, &page, (&glance, is_read), app.options().silence);
    let now = app.redrive().now();
    let body = html! { (banners(&glance, now)) (page.body) };
    Ok(frame(page.title, &header, &body, now).into_response())
}

/// Shows a page that stays as it was loaded, such as a question that there is no more once it is answered.
pub async fn show_still(app: &App, visitor: &Visitor, page: Page<'_>) -> Result<Response, Problem> {
    let mut still = visitor.clone();
    still.is_form = true;
    show(app, &still, page).await
}

/// What went wrong, with what is around every page.
pub async fn show_problem(app: &App, visitor: &Visitor, title: &str, body: Markup) -> Result<Response, Problem> {
    show_still(app, visitor, Page { place: Place::of(&visitor.here), title, pipeline: None, body }).await
}

/// A page without facts about the system: where nobody is known yet, or the store does not answer.
pub fn bare(title: &str, visitor: Option<&Visitor>, body: &Markup) -> Markup {
    let header = html! {
        header.top { div.wrap {
            div.bar {
                a.brand href="/" { "Redrive" }
                @if let Some(visitor) = visitor { (search()) div.signs { (who(visitor)) } }
            }
            // Of the numbers nothing is known here.
            @if let Some(visitor) = visitor { (places(visitor, None, (&Glance::default(), false))) }
        } }
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(title)) body { a.skip href="#main" { "Skip to content" } (header) main #main.wrap { (body) } }
        }
    }
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) " · Redrive" }
            link rel="icon" type="image/svg+xml" href=(MARK.address());
            link rel="stylesheet" href=(STYLE.address());
            script src=(THEME.address()) {}
            @for script in SCRIPTS.iter() { script type="module" src=(script.address()) {} }
        }
    }
}

fn frame(title: &str, header: &Markup, body: &Markup, now: Timestamp) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body {
                a.skip href="#main" { "Skip to content" }
                (header)
                main #main.wrap tabindex="-1" { (body) }
                footer {
                    div.wrap {
                        span #updated { "Updated " (clock(now)) ". Times are UTC." }
                        span.keys-hint { kbd { "?" } " " button.plainly.small type="button" data-shows-keys="" { "shortcuts" } }
                    }
                }
                p #fresh.fresh-bar hidden {}
                div #said.vh role="status" aria-live="polite" {}
            }
        }
    }
}

fn header(visitor: &Visitor, page: &Page<'_>, (glance, is_read): (&Glance, bool), silence: Duration) -> Markup {
    html! {
        header.top {
            div.wrap {
                div.bar {
                    a.brand href="/" { "Redrive" }
                    (picker(visitor, page, glance))
                    (search())
                    (signs(visitor, (glance, is_read), silence))
                }
                (places(visitor, Some(page.place), (glance, is_read)))
            }
        }
    }
}

fn search() -> Markup {
    html! {
        form.search action="/search" role="search" {
            label.vh for="q" { "Search" }
            input #q type="search" name="q" placeholder="Letter, cause, URL, hash or text" autocomplete="off";
            kbd aria-hidden="true" { "/" }
        }
        a.find href="/search" aria-label="Search" { (magnifier()) }
    }
}

fn places(visitor: &Visitor, current: Option<Place>, glance: (&Glance, bool)) -> Markup {
    html! {
        nav.tabs aria-label="Main" {
            @for place in Place::ALL { (tab(visitor, place, current, glance)) }
            details.more { summary { "More" } ul { @for place in Place::ALL.into_iter().filter(|p| p.is_in_more()) {
                li { a href=(place.address(visitor)) { (place.name()) } }
            } li { a href="/search" { "Search" } }
            li { (who(visitor)) } } }
        }
    }
}

fn magnifier() -> Markup {
    html! {
        svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.75" {
            circle cx="7.5" cy="7.5" r="5" {}
            path d="M11.5 11.5 16 16" {}
        }
    }
}

/// Choices that are not about which rows a list has.
const PASSING: [&str; 6] = ["pipeline", "cursor", "said", "about", "alert", "was"];

fn picker(visitor: &Visitor, page: &Page<'_>, glance: &Glance) -> Markup {
    let action = if page.place.takes_pipeline() { page.place.path() } else { "/" };
    let (path, query) = visitor.here.split_once('?').unwrap_or((&visitor.here, ""));
    // What else a list is chosen by stays.
    let others = form_urlencoded::parse(query.as_bytes())
        .filter(|(name, value)| path == action && !value.is_empty() && !PASSING.contains(&name.as_ref()));
    html! {
        form.picker action=(action) {
            @for (name, value) in others { input type="hidden" name=(name) value=(value); }
            label.vh for="pipeline" { "Pipeline" }
            select #pipeline name="pipeline" data-sends="" {
                option value="" { "All pipelines" }
                @for name in glance.pipelines.iter().chain(page.pipeline.filter(|name| !glance.pipelines.contains(name))) {
                    option value=(name) selected[page.pipeline == Some(name)] { (name) }
                }
            }
            noscript { button.small { "Show" } }
        }
    }
}

fn signs(visitor: &Visitor, (glance, is_read): (&Glance, bool), silence: Duration) -> Markup {
    let silent_ms = (!visitor.is_form).then_some(silence.as_millis());
    html! {
        div.signs {
            span #firing {
                @if glance.alerts > 0 {
                    a.bad-text href="/alerts" { (glyph(Glyph::Triangle)) " " (glance.alerts) span.wide-only { " firing" } }
                }
            }
            span #audit { (audit(glance, is_read)) }
            (who(visitor))
            span #dot.dot role="img" aria-label="not live" title="Numbers on this page are as old as the page" data-silent-ms=[silent_ms] {
                (glyph(Glyph::Dot)) span.wide-only { "as loaded" }
            }
        }
    }
}

/// Whether the counters add up. That they do is not worth the room of a phone.
fn audit(glance: &Glance, is_read: bool) -> Markup {
    let why = "Accepted equals queued, running, done, died and discarded, in every pipeline";
    html! {
        @if !is_read { span.bad-text { (glyph(Glyph::Cross)) span.wide-only { " numbers up here" } " cannot be read" } }
        @else if glance.unbalanced.is_empty() {
            span.wide-only title=(why) { (glyph(Glyph::Check)) " counts add up" }
        } @else {
            a.bad-text href=(pipelines::address(glance.unbalanced[0].as_str())) title="redrive audit says where" {
                (glyph(Glyph::Cross)) span.wide-only { " counts" } " do not add up"
            }
        }
    }
}

fn who(visitor: &Visitor) -> Markup {
    html! {
        form.sign-out method="post" action="/logout" {
            (carried(visitor))
            @if visitor.caller.is_local() {
                span.wide-only title="This store has no token: whoever can read its token file may do everything" {
                    "admin (no tokens yet) "
                }
            }
            @else { span { (name(visitor.caller.name())) ", " (visitor.caller.role()) " " } }
            button.plainly.small { "Sign out" }
        }
    }
}

fn tab(visitor: &Visitor, place: Place, current: Option<Place>, (glance, is_read): (&Glance, bool)) -> Markup {
    let number = match place {
        Place::Causes => Some((glance.causes, glance.more_causes)),
        Place::Replays => Some((glance.replays, false)),
        Place::Alerts => Some((glance.alerts, false)),
        _ => None,
    };
    html! {
        a id={ "tab-" (place.name()) } href=(place.address(visitor)) .in-more[place.is_in_more()] aria-current=[(Some(place) == current).then_some("page")] {
            (place.name())
            // The number is there also where it is nothing: what stands beside it does not move.
            @if let Some((count, more)) = number { b { @if is_read { (count) @if more { "+" } } @else { "?" } } }
        }
    }
}

/// What everybody should know, wherever they look.
fn banners(glance: &Glance, now: Timestamp) -> Markup {
    html! {
        // One that comes moves nothing: it is counted, as rows are.
        div #banners data-rows="" {
            @for (name, pause) in &glance.paused {
                p.banner.warn-text id={ "paused-" (name) } {
                    (glyph(Glyph::Bars)) " " a href=(pipelines::address(name.as_str())) { (name) } " is paused by " (pause.by.name)
                    " since " (instant(pause.since, now)) @if let Some(until) = pause.until { " until " (instant(until, now)) }
                    @if let Some(why) = &pause.why { ": " (text(why)) }
                }
            }
        }
    }
}

/// How many of something there are, for a sentence.
pub fn number_of(count: usize, one: &str, many: &str) -> String {
    counted(i64::try_from(count).unwrap_or(i64::MAX), one, many)
}

/// The same where there may be more than were counted: `100+ causes`.
pub fn number_or_more(count: usize, more: bool, one: &str, many: &str) -> String {
    match more {
        true => format!("{}+ {many}", crate::look::figures::count(i64::try_from(count).unwrap_or(i64::MAX))),
        false => number_of(count, one, many),
    }
}
