//! The first step: which letters, what goes and what not; and how a choice is frozen, so that what is done is what was looked at.

use maud::{Markup, html};
use redrive_core::replays::{Exclusion, PlanDrift, ReplayPlan};

use super::plan_of;
use super::plans::Plans;
use crate::app::App;
use crate::look::figures::count;
use crate::pages::fields::Fields;
use crate::pages::filter::LetterFilter;
use crate::pages::problem::Problem;
use crate::pages::shell::number_of;
use crate::pages::visitor::Visitor;

/// Ticked letters that are linked, each.
const TICKED_MAX: usize = 50;

/// What freezes a choice: which letters, and until when.
pub fn frozen_choice(app: &App, query: &Fields) -> Result<Markup, Problem> {
    let filter = match query.all("id").next() {
        Some(_) => LetterFilter::default(),
        None => LetterFilter::of(query).frozen(app.redrive().now())?,
    };
    Ok(html! {
        (filter.carried())
        @for id in query.all("id") { input type="hidden" name="id" value=(id); }
    })
}

/// The same with how many there were.
pub fn frozen_fields(app: &App, query: &Fields, plan: &ReplayPlan) -> Result<Markup, Problem> {
    let choice = frozen_choice(app, query)?;
    Ok(html! { (choice) input type="hidden" name="matched" value=(plan.matched); })
}

/// What is different from what somebody looked at, in words, if anything is.
pub async fn drifted(
    app: &App,
    visitor: &Visitor,
    fields: &Fields,
    plan: &ReplayPlan,
) -> Result<Option<Markup>, Problem> {
    let seen = fields.one("matched").and_then(|seen| seen.parse::<u64>().ok());
    let Some(seen) = seen.filter(|seen| *seen != plan.matched) else { return Ok(None) };
    let (gone, come) = (seen.saturating_sub(plan.matched), plan.matched.saturating_sub(seen));
    let drift = PlanDrift { seen, gone, come, ..PlanDrift::default() };
    Ok(Some(words(&drift, newer(app, visitor, fields, plan).await?)))
}

/// How a plan differs from what was looked at, in words; so many letters died since and are left out.
pub fn words(drift: &PlanDrift, newer: u64) -> Markup {
    let PlanDrift { seen, gone, come, left_out, let_in, anew } = drift;
    html! {
        (count(*seen as i64)) " when you looked"
        @if *gone > 0 { ", " (count(*gone as i64)) " gone since" }
        @if *come > 0 { ", " (count(*come as i64)) " died or failed again meanwhile" }
        @for (why, letters) in left_out {
            ", " (count(*letters as i64)) " "
            @match why {
                Exclusion::BeingReplayed => { @if *letters == 1 { "is" } @else { "are" } " in another replay since" }
                why => { "left out since: " (excluded(*why)) }
            }
        }
        @if *let_in > 0 { ", " (count(*let_in as i64)) " more may go by now" }
        @if *anew > 0 && left_out.is_empty() {
            ", " (count(*anew as i64)) " more " @if *anew == 1 { "goes" } @else { "go" } " anew instead of from a saved page"
        }
        @if newer > 0 { ", " (count(newer as i64)) " newer left out" }
        "."
    }
}

/// Letters that died since a choice was frozen.
pub async fn newer(app: &App, visitor: &Visitor, fields: &Fields, plan: &ReplayPlan) -> Result<u64, Problem> {
    if fields.all("id").next().is_some() {
        return Ok(0);
    }
    let now = LetterFilter::of(fields).with("until", &app.redrive().now().to_string());
    let all = plan_of(app, visitor, now.to_json().into()).await?;
    Ok(all.matched.saturating_sub(plan.matched))
}

/// By what the letters were chosen.
pub fn chosen_by(fields: &Fields) -> Markup {
    let filter = LetterFilter::of(fields);
    let ids = fields.all("id").count();
    html! {
        ul.facts {
            @if ids > 0 { li { (number_of(ids, "letter that was ticked", "letters that were ticked")) } }
            @else { @for name in filter.names() { li { (name) " " bdi { (filter.get(name).unwrap_or_default()) } } } }
        }
    }
}

/// The step of the page.
pub fn step(fields: &Fields, plans: &Plans) -> Markup {
    let (plan, ids) = (plans.base(), fields.all("id").count());
    let place = (ids == 0).then(|| format!("/letters?{}", LetterFilter::of(fields).to_query()));
    let is_whole = plan.excluded.is_empty();
    html! {
        section.step aria-labelledby="step-1" {
            div.step-name { h2 id="step-1" { b { "1" } "Choose" } p.fact { "What goes, and what not" } }
            div {
                table.chosen role="table" {
                    tbody role="rowgroup" {
                        tr role="row" {
                            th role="rowheader" scope="row" {
                                @match &place {
                                    None => "Letters that were ticked",
                                    Some(place) => a href=(place) { "Letters that match" },
                                }
                            }
                            td.num role="cell" { (count(plan.matched as i64)) }
                        }
                        @for (exclusion, letters) in &plan.excluded { (left_out(fields, *exclusion, *letters)) }
                        tr.total role="row" {
                            th role="rowheader" scope="row" {
                                @match place.as_ref().filter(|_| is_whole) {
                                    Some(place) => a href=(place) { "Sent" }, None => "Sent",
                                }
                            }
                            td.num role="cell" { (count(plan.included as i64)) }
                        }
                    }
                }
                p.fact { (count(plan.saved as i64)) " from saved pages, " (count(plan.anew as i64)) " anew"
                    @for (name, letters) in &plan.pipelines { ", " (name) " " (count(*letters as i64)) } }
                @if ids > 0 { (ticked(fields, ids)) }
            }
        }
    }
}

/// Letters that are left out, with where they can be seen, if a filter finds them.
fn left_out(fields: &Fields, exclusion: Exclusion, letters: u64) -> Markup {
    let is_filter = fields.all("id").next().is_none();
    let gated =
        |gate: &str| is_filter.then(|| format!("/letters?{}", LetterFilter::of(fields).with("gate", gate).to_query()));
    let place = match exclusion {
        Exclusion::GateNever => gated("never"),
        Exclusion::GateReview => gated("review"),
        Exclusion::BeingReplayed => Some("/replays?state=open".to_owned()),
        _ => None,
    };
    let words = html! { "left out: " (excluded(exclusion)) };
    html! {
        tr role="row" {
            th role="rowheader" scope="row" {
                @match place { Some(place) => a href=(place) { (words) }, None => span.muted { (words) } }
            }
            td.num role="cell" { (count(letters as i64)) }
        }
    }
}

fn ticked(fields: &Fields, ids: usize) -> Markup {
    html! {
        details {
            summary { "Which they are" }
            p.fact {
                @for (at, id) in fields.all("id").take(TICKED_MAX).enumerate() {
                    @if at > 0 { ", " } a href={ "/letters/" (id) } { (id) }
                }
                @if ids > TICKED_MAX { ", and " (count((ids - TICKED_MAX) as i64)) " more" }
            }
        }
    }
}

/// Why letters are left out, in words.
pub const fn excluded(exclusion: Exclusion) -> &'static str {
    match exclusion {
        Exclusion::BeingReplayed => "another replay has them",
        Exclusion::GateNever => "they failed permanently, or their input lacks a field (gate never)",
        Exclusion::GateReview => "a person has to ask for them (gate review)",
        Exclusion::PayloadGone => "no saved page is left",
        Exclusion::PayloadLost => "their page could not be kept",
        Exclusion::PayloadOnItsWay => "their page is on its way from another machine",
        Exclusion::PayloadCut => "only the beginning of their page was kept",
        Exclusion::ReplayedEnough => "they were replayed by themselves as often as may be",
        Exclusion::BreakerOpen => "their target is held",
        Exclusion::NotRecovered => "the try did not recover them",
    }
}
