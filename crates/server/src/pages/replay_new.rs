//! `/replays/new`: choose, then start. What is started is what was looked at: letters that died since are left out, and who looked at
//! another number of letters than there are is asked again.
//!
//! - `obstacles`: what speaks against starting

mod obstacles;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::replays::AskedReplay;
use redrive_core::dead::DeadLetter;
use redrive_core::ids::ReplayId;
use redrive_core::replays::{Exclusion, Pacing, ReplayPlan};
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;
use serde_json::{Value, json};

use self::obstacles::Obstacle;
use super::acts::{asked, letters};
use super::confirm::entry_as;
use super::fields::{Done, Fields, carried, once, with_said};
use super::filter::LetterFilter;
use super::parts::{command_of_form, quoted};
use super::problem::Problem;
use super::replay_try::{self, Newest};
use super::shell::{self, Page, Place};
use super::visitor::Visitor;
use crate::app::App;
use crate::asked::Body;
use crate::error::ApiError;
use crate::look::figures::{count, percent};
use crate::routes::replays::start;

/// What would be sent, what not and why.
pub async fn plan_of(app: &App, visitor: &Visitor, letters: Value) -> Result<ReplayPlan, Problem> {
    let asked = Body(asked(json!({ "letters": letters }))?);
    let Json(plan) = start::plan(State(app.clone()), visitor.caller.clone(), asked).await?;
    Ok(plan)
}

/// What freezes a choice: which letters, until when, and how many there were.
pub fn frozen_fields(app: &App, query: &Fields, plan: &ReplayPlan) -> Result<Markup, Problem> {
    let filter = match query.all("id").next() {
        Some(_) => LetterFilter::default(),
        None => LetterFilter::of(query).frozen(app.redrive().now())?,
    };
    Ok(html! {
        (filter.carried())
        @for id in query.all("id") { input type="hidden" name="id" value=(id); }
        input type="hidden" name="matched" value=(plan.matched);
    })
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
    let newer = newer(app, visitor, fields, plan).await?;
    Ok(Some(html! {
        (count(seen as i64)) " when you looked"
        @if plan.matched < seen { ", " (count((seen - plan.matched) as i64)) " gone since" }
        @if plan.matched > seen { ", " (count((plan.matched - seen) as i64)) " died or failed again meanwhile" }
        @if newer > 0 { ", " (count(newer as i64)) " newer left out" }
        "."
    }))
}

/// Letters that died since a choice was frozen.
async fn newer(app: &App, visitor: &Visitor, fields: &Fields, plan: &ReplayPlan) -> Result<u64, Problem> {
    if fields.all("id").next().is_some() {
        return Ok(0);
    }
    let now = LetterFilter::of(fields).with("until", &app.redrive().now().to_string());
    let all = plan_of(app, visitor, now.to_json().into()).await?;
    Ok(all.matched.saturating_sub(plan.matched))
}

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let query = visitor.query();
    let plan = plan_of(&app, &visitor, letters(&query)).await?;
    shown(&app, &visitor, &query, &plan, None).await
}

async fn shown(
    app: &App,
    visitor: &Visitor,
    fields: &Fields,
    plan: &ReplayPlan,
    drift: Option<Markup>,
) -> Result<Response, Problem> {
    let newest = replay_try::newest(app, visitor, fields).await?;
    let example = example(app, visitor, newest.as_ref()).await?;
    let obstacles = obstacles::find(app, plan, newest.as_ref()).await?;
    let rules = replay_try::draft::draftable(app, plan.pipelines.keys());
    let (elsewhere, now) = (replay_try::elsewhere(app, plan.pipelines.keys()), app.redrive().now());
    let (newest, example, elsewhere) = (newest.as_ref(), example.as_ref(), elsewhere.as_slice());
    let step = replay_try::Step { rules: &rules, newest, example, elsewhere, saved: plan.saved, now };
    let body = html! {
        div.crumbs { span { a href="/replays" { "Replays" } " / new" } }
        div.head { h1 { "Replay " (count(plan.included as i64)) " dead letters" } (chosen_by(fields)) }
        @if let Some(drift) = &drift { p.headline.warn role="alert" { (drift) " Look again, then start." } }
        form.steps method="post" action="/replays/start" {
            (carried(visitor))
            (frozen_fields(app, fields, plan)?)
            // Who presses Enter in a field means the end of the page, not the first button on it.
            button.vh tabindex="-1" aria-hidden="true" disabled[plan.included == 0 || obstacles.iter().any(|obstacle| obstacle.forbids)] { "Start" }
            (choose(fields, plan))
            (replay_try::step(visitor, fields, &step))
            (begin(visitor, fields, plan, &obstacles, (newest, now)))
        }
    };
    shell::show(app, visitor, Page { place: Place::Replays, title: "New replay", pipeline: None, body }).await
}

/// The letter whose record a try shows, if it is there and who looks may see what is on pages.
async fn example(app: &App, visitor: &Visitor, newest: Option<&Newest>) -> Result<Option<DeadLetter>, Problem> {
    let record = newest.and_then(|newest| newest.tried.record.as_ref());
    match record.filter(|_| visitor.caller.check_payloads().is_ok()) {
        Some(record) => Ok(app.redrive().store().get_dead(record.letter).await?),
        None => Ok(None),
    }
}

fn chosen_by(fields: &Fields) -> Markup {
    let filter = LetterFilter::of(fields);
    let ids = fields.all("id").count();
    html! {
        ul.facts {
            @if ids > 0 { li { (ids) " letters that were ticked" } }
            @else { @for name in filter.names() { li { (name) " " bdi { (filter.get(name).unwrap_or_default()) } } } }
        }
    }
}

fn choose(fields: &Fields, plan: &ReplayPlan) -> Markup {
    let filter = LetterFilter::of(fields);
    html! {
        section.step aria-labelledby="step-1" {
            div.step-name { h2 id="step-1" { b { "1" } "Choose" } p.fact { "What goes, and what not" } }
            div {
                table.chosen role="table" {
                    tbody role="rowgroup" {
                        tr role="row" {
                            th role="rowheader" scope="row" {
                                @if filter.is_empty() {
                                    "Letters"
                                } @else {
                                    a href={ "/letters?" (filter.to_query()) } { "Letters that match" }
                                }
                            }
                            td.num role="cell" { (count(plan.matched as i64)) }
                        }
                        @for (exclusion, letters) in &plan.excluded {
                            tr role="row" {
                                th role="rowheader" scope="row" { span.muted { "left out: " (excluded(*exclusion)) } }
                                td.num role="cell" { (count(*letters as i64)) }
                            }
                        }
                        tr.total role="row" {
                            th role="rowheader" scope="row" { "Sent" }
                            td.num role="cell" { (count(plan.included as i64)) }
                        }
                    }
                }
                p.fact { (count(plan.saved as i64)) " from saved pages, " (count(plan.anew as i64)) " anew"
                    @for (name, letters) in &plan.pipelines { ", " (name) " " (count(*letters as i64)) } }
            }
        }
    }
}

/// Why letters are left out, in words.
pub const fn excluded(exclusion: Exclusion) -> &'static str {
    match exclusion {
        Exclusion::BeingReplayed => "another replay has them",
        Exclusion::GateNever => "they failed permanently (gate never)",
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

fn begin(
    visitor: &Visitor,
    fields: &Fields,
    plan: &ReplayPlan,
    obstacles: &[Obstacle],
    (newest, now): (Option<&Newest>, Timestamp),
) -> Markup {
    let is_vain = is_vain(newest);
    let passed = newest.and_then(Newest::recovered).filter(|(good, all)| *good > 0 && good < all);
    // No more can go than there are by now.
    let passed = passed.map(|(good, all)| (good.min(plan.included as i64), all));
    let forbids = obstacles.iter().find(|obstacle| obstacle.forbids);
    let usual = Pacing::default();
    let ramp = usual.ramp.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let given = |name: &str, usual: &str| fields.one(name).unwrap_or(usual).to_owned();
    let lacks = visitor.lacks(Role::Operator);
    let from = fields.one("from").unwrap_or("suited").to_owned();
    html! {
        section.step aria-labelledby="step-3" {
            div.step-name { h2 id="step-3" { b { "3" } "Start" } p.fact { "In growing steps; it stops by itself" } }
            div.entries {
                (entry_as("name", "Name", &given("name", ""), false, Some("--name")))
                @if let Some((good, all)) = passed {
                    fieldset.entry {
                        legend { "Which" }
                        label.choice {
                            input type="radio" name="only" value="passed" checked data-flag="--recoverable" data-bare="";
                            span { "Only the " (count(good)) " that passed the try, from their saved pages" }
                        }
                        label.choice {
                            input type="radio" name="only" value="";
                            span { "All " (count(plan.included as i64)) span.fact { (count(all - good)) " would fail again" } }
                        }
                    }
                }
                fieldset.entry {
                    legend { "From" }
                    @for (value, label, fact) in [
                        ("suited", "What suits each", format!("{} from saved pages, {} anew", count(plan.saved as i64), count(plan.anew as i64))),
                        ("saved", "All from saved pages", "no request is sent; those without a page are left out".to_owned()),
                        ("refetch", "All anew", format!("{} tasks ask their targets again", count(plan.included as i64))),
                    ] {
                        label.choice {
                            input type="radio" name="from" value=(value) checked[from == value] data-flag={ "--" (value) } data-bare=[(value != "suited").then_some("")];
                            span { (label) span.fact { (fact) } }
                        }
                    }
                }
                div.row-of {
                    (entry_as("ramp", "Steps, before all the rest", &given("ramp", &ramp), false, Some("--ramp")))
                    (entry_as("refail_max", "Pause above this share of failures, and two", &given("refail_max", &percent(usual.refail_max)), false, Some("--refail-max")))
                    (entry_as("rate", "At most: 20/s, 100/m; empty means no limit", &given("rate", ""), false, Some("--rate")))
                }
                @if plan.excluded.contains_key(&Exclusion::GateNever) {
                    (entry_as("why", "Also send those that failed permanently, because", &given("why", ""), false, Some("--force --why")))
                }
                @for obstacle in obstacles { (obstacle.shown(fields)) }
                @if is_vain {
                    label.choice {
                        input type="checkbox" name="anyway" value="yes" required;
                        span {
                            "Send all " (count(plan.included as i64)) " though none passed the try"
                            span.fact { "None of those that were tried would recover by these rules." }
                        }
                    }
                }
                p.actions.page-actions {
                    button.primary[!is_vain] disabled[lacks.is_some() || plan.included == 0 || forbids.is_some()] title=[lacks.as_deref().or(forbids.map(|obstacle| obstacle.why.as_str()))] {
                        @if let Some((good, _)) = passed { span.of-passed { "Replay " (count(good)) " letters" } }
                        span.of-all[passed.is_some()] { "Replay " (count(plan.included as i64)) " letters" }
                    }
                    @if let Some(lacks) = &lacks { span.fact { (lacks) } }
                    @if plan.included == 0 { span.fact { "No letter can be sent." } }
                }
                (command_of_form(&line(fields, now), if passed.is_some() { " --recoverable" } else { "" }))
            }
        }
    }
}

/// Whether a try says that nothing would recover: what is sent all the same has to be meant.
fn is_vain(newest: Option<&Newest>) -> bool {
    newest.and_then(Newest::recovered).is_some_and(|(good, _)| good == 0)
}

/// What somebody would type to start the same.
fn line(fields: &Fields, now: Timestamp) -> String {
    let ids: String = fields.all("id").map(|id| format!(" {}", quoted(id))).collect();
    let filter = LetterFilter::of(fields);
    // The same letters: not those that die from now on.
    let flags = if ids.is_empty() { filter.frozen(now).unwrap_or(filter).flags() } else { String::new() };
    format!("redrive replay start{ids}{flags} --detach")
}

/// Starts a replay.
pub async fn start(State(app): State<App>, visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        let plan = plan_of(&app, &visitor, letters(&fields)).await?;
        if let Some(drift) = drifted(&app, &visitor, &fields, &plan).await? {
            return Ok(Done::Asks(shown(&app, &visitor, &fields, &plan, Some(drift)).await?));
        }
        let newest = replay_try::newest(&app, &visitor, &fields).await?;
        if is_vain(newest.as_ref()) && fields.one("anyway") != Some("yes") {
            let why = html! { "None of these letters passed the try. Say that all are meant, if they are." };
            return Ok(Done::Asks(shown(&app, &visitor, &fields, &plan, Some(why)).await?));
        }
        let obstacles = obstacles::find(&app, &plan, newest.as_ref()).await?;
        if let Some(obstacle) = obstacles.iter().find(|obstacle| obstacle.stops(&fields)) {
            let why = html! { (obstacle.why) };
            return Ok(Done::Asks(shown(&app, &visitor, &fields, &plan, Some(why)).await?));
        }
        if fields.one("only") == Some("passed") && newest.as_ref().and_then(Newest::recovered).is_none() {
            let why = html! { "What passed the try cannot be told any more: the rules changed, or it is too old." };
            return Ok(Done::Asks(shown(&app, &visitor, &fields, &plan, Some(why)).await?));
        }
        let is_otherwise = fields.one("from") == Some("refetch") || fields.one("why").is_some();
        if fields.one("only") == Some("passed") && is_otherwise {
            let why = html! { "What passed the try goes from saved pages, as it was tried. For anything else say that all are meant." };
            return Ok(Done::Asks(shown(&app, &visitor, &fields, &plan, Some(why)).await?));
        }
        let id = match fields.one("only") {
            Some("passed") => passed(&app, &visitor, &fields).await?,
            _ => {
                let asked = Body(asked(wanted(&fields)?)?);
                let (_, Json(started)) = start::run(State(app.clone()), visitor.caller.clone(), asked).await?;
                started.id()
            }
        };
        let newer = newer(&app, &visitor, &fields, &plan).await?;
        let newer = if newer > 0 { newer.to_string() } else { String::new() };
        match id {
            Some(id) => Ok(Done::At(with_said(&format!("/replays/{id}"), &[("newer", &newer)]))),
            None => Err(ApiError::senseless("none of these letters can be sent").into()),
        }
    })
    .await
}

/// Starts a replay of what passed the try, at the pace that was asked for.
async fn passed(app: &App, visitor: &Visitor, fields: &Fields) -> Result<Option<ReplayId>, Problem> {
    let selection = replay_try::selection(app, visitor, fields).await?;
    let asked: start::Asked = asked(wanted(fields)?)?;
    let asked = AskedReplay {
        name: fields.one("name").map(str::to_owned),
        pacing: Some(asked.pacing()?),
        ..AskedReplay::of(selection, visitor.caller.actor())
    };
    replay_try::start(app, visitor, fields, asked).await
}

/// What is asked of the API.
fn wanted(fields: &Fields) -> Result<Value, Problem> {
    let mut wanted = json!({ "letters": letters(fields) });
    for name in ["name", "from", "rate"] {
        if let Some(value) = fields.one(name) {
            wanted[name] = value.into();
        }
    }
    if let Some(share) = fields.one("refail_max") {
        wanted["refail_max"] = share.replace(' ', "").into();
    }
    if let Some(ramp) = fields.one("ramp") {
        let steps = ramp.split([',', ' ']).filter(|step| !step.is_empty());
        let wrong = |_| Problem::from(ApiError::invalid("ramp", "expected numbers of letters, as in 1, 5, 20"));
        wanted["ramp"] = steps.map(|step| step.parse::<u32>().map_err(wrong)).collect::<Result<Vec<_>, _>>()?.into();
    }
    if let Some(why) = fields.one("why") {
        wanted["force"] = true.into();
        wanted["why"] = why.into();
    }
    Ok(wanted)
}
