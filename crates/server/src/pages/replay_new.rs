//! `/replays/new`: choose, try, then start. What is started is what was looked at: letters that died since are left out, and who looked at
//! something else than would be done is asked again.
//!
//! - `choice`: the first step, and how it is frozen; `plans`: the ways in which letters can be sent, each with its numbers
//! - `begin`: the last step; `requests`: what is asked of whom; `obstacles`: what speaks against starting

mod begin;
mod choice;
mod obstacles;
mod plans;
mod requests;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use redrive::replays::AskedReplay;
use redrive_core::dead::DeadLetter;
use redrive_core::ids::ReplayId;
use redrive_core::replays::ReplayPlan;
use serde_json::{Value, json};

pub use self::begin::{Mistake, said};
pub use self::choice::{drifted, excluded, frozen_fields};
use self::obstacles::Obstacle;
pub use self::plans::Plans;
use self::plans::Way;
use self::requests::Requests;
use super::about;
use super::acts::asked;
use super::fields::{Done, Fields, carried, once, with_said};
use super::problem::Problem;
use super::replay_try::{self, InForce, Newest};
use super::shell::{self, Page, Place, number_of};
use super::visitor::Visitor;
use crate::app::App;
use crate::asked::Body;
use crate::error::ApiError;
use crate::routes::replays::start;

/// What would be sent, what not and why.
pub async fn plan_of(app: &App, visitor: &Visitor, letters: Value) -> Result<ReplayPlan, Problem> {
    let asked = Body(asked(json!({ "letters": letters }))?);
    let Json(plan) = start::plan(State(app.clone()), visitor.caller.clone(), asked).await?;
    Ok(plan)
}

/// All that is known of a choice.
pub struct Looked {
    newest: Option<Newest>,
    plans: Plans,
    obstacles: Vec<Obstacle>,
    /// The rules that are in force, of the pipelines that are known here.
    rules: Vec<InForce>,
    requests: Option<Requests>,
}

impl Looked {
    async fn at(app: &App, visitor: &Visitor, fields: &Fields) -> Result<Self, Problem> {
        let newest = replay_try::newest(app, visitor, fields).await?;
        let plans = Plans::of(app, visitor, fields, newest.as_ref()).await?;
        let rules = replay_try::in_force(app, plans.pipelines()).await?;
        let obstacles = obstacles::find(app, fields, plans.base(), newest.as_ref()).await?;
        let requests = Requests::of(app, visitor, fields, &plans).await?;
        Ok(Self { newest, plans, obstacles, rules, requests })
    }
}

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let query = visitor.query();
    // A script that follows a try asks each second: nothing is planned for it.
    if !visitor.wants("plan") {
        return live(&app, &visitor, &query).await;
    }
    let looked = Looked::at(&app, &visitor, &query).await?;
    shown(&app, &visitor, &query, (&looked, None), None).await
}

/// What changes on the page while a try is under way.
async fn live(app: &App, visitor: &Visitor, query: &Fields) -> Result<Response, Problem> {
    let newest = replay_try::newest(app, visitor, query).await?;
    let example = example(app, visitor, newest.as_ref()).await?;
    let body = html! {
        @if let Some(newest) = &newest {
            (replay_try::result(visitor, query, (newest, example.as_ref()), app.redrive().now()))
        }
    };
    shell::show(app, visitor, Page { place: Place::Replays, title: "New replay", pipeline: None, body }).await
}

async fn shown(
    app: &App,
    visitor: &Visitor,
    fields: &Fields,
    (looked, drift): (&Looked, Option<Markup>),
    mistake: Mistake<'_>,
) -> Result<Response, Problem> {
    let Looked { newest, plans, obstacles, rules, .. } = looked;
    let example = example(app, visitor, newest.as_ref()).await?;
    let draftable = replay_try::draft::draftable(app, plans.pipelines());
    let (elsewhere, now) = (replay_try::elsewhere(app, plans.pipelines()), app.redrive().now());
    let step = replay_try::Step {
        draftable: &draftable,
        newest: newest.as_ref(),
        example: example.as_ref(),
        elsewhere: &elsewhere,
        by_force: plans.only_by_force,
        rules,
        pages: match &plans.unusable {
            Some(why) => Err(why.clone()),
            None => Ok(plans.get(Way::Saved).map(|plan| plan.included)),
        },
        mistake,
        now,
    };
    let about = about::of_letters(app, fields).await?;
    let is_barred = plans.base().included == 0 || obstacles.iter().any(|obstacle| obstacle.forbids);
    let body = html! {
        div.crumbs { span { a href="/replays" { "Replays" } " / new" } }
        div.head {
            h1 { "Replay " (number_of(usize::try_from(plans.base().included).unwrap_or(usize::MAX), "dead letter", "dead letters")) }
            (choice::chosen_by(fields))
            ul.facts #about { (about) }
        }
        @if let Some(drift) = &drift { p.headline.warn role="alert" { (drift) @if mistake.is_none() { " Look again, then start." } } }
        form.steps method="post" action="/replays/start" {
            (carried(visitor))
            (choice::frozen_choice(app, fields)?)
            input type="hidden" name="seen" value=(plans.seen());
            // Who presses Enter in a field means the end of the page, not the first button on it.
            button.vh tabindex="-1" aria-hidden="true" disabled[is_barred] { "Start" }
            (choice::step(fields, plans))
            (replay_try::step(visitor, fields, &step))
            (begin::step(visitor, fields, looked, (mistake, now)))
        }
    };
    shell::show(app, visitor, Page { place: Place::Replays, title: "New replay", pipeline: None, body }).await
}

/// The page with what is wrong with a form that was sent, where somebody can mend that; all else stays as it was filled in.
pub async fn again(app: &App, visitor: &Visitor, fields: &Fields, problem: Problem) -> Result<Done, Problem> {
    if !problem.is_mistake() {
        return Err(problem);
    }
    let looked = Looked::at(app, visitor, fields).await?;
    let (field, why) = (problem.field().unwrap_or_default().to_owned(), problem.message().to_owned());
    let words = html! { bdi { (why) } "." };
    let mut page = shown(app, visitor, fields, (&looked, Some(words)), Some((&field, &why))).await?;
    *page.status_mut() = StatusCode::BAD_REQUEST;
    Ok(Done::Asks(page))
}

/// The letter whose record a try shows, if it is there and who looks may see what is on pages.
async fn example(app: &App, visitor: &Visitor, newest: Option<&Newest>) -> Result<Option<DeadLetter>, Problem> {
    let record = newest.and_then(|newest| newest.tried.record.as_ref());
    match record.filter(|_| visitor.caller.check_payloads().is_ok()) {
        Some(record) => Ok(app.redrive().store().get_dead(record.letter).await?),
        None => Ok(None),
    }
}

/// Starts a replay.
pub async fn start(State(app): State<App>, visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        let looked = Looked::at(&app, &visitor, &fields).await?;
        if let Some(why) = objection(&app, &visitor, &fields, &looked).await? {
            return Ok(Done::Asks(shown(&app, &visitor, &fields, (&looked, Some(why)), None).await?));
        }
        let id = match begun(&app, &visitor, &fields, &looked.plans).await {
            Err(problem) => return again(&app, &visitor, &fields, problem).await,
            Ok(id) => id,
        };
        let newer = choice::newer(&app, &visitor, &fields, looked.plans.base()).await?;
        let newer = if newer > 0 { newer.to_string() } else { String::new() };
        match id {
            Some(id) => Ok(Done::At(with_said(&format!("/replays/{id}"), &[("newer", &newer)]))),
            None => Err(ApiError::senseless("none of these letters can be sent").into()),
        }
    })
    .await
}

/// What has to be asked before what a form asks for is done, in words.
async fn objection(app: &App, visitor: &Visitor, fields: &Fields, looked: &Looked) -> Result<Option<Markup>, Problem> {
    let newest = looked.newest.as_ref();
    if let Some((plan, drift)) = looked.plans.drift(fields) {
        let newer = choice::newer(app, visitor, fields, plan).await?;
        return Ok(Some(choice::words(&drift, newer)));
    }
    let only_passed = fields.one("only") == Some("passed");
    let is_told = newest.and_then(Newest::recovered).is_some();
    if only_passed && !is_told && !newest.is_some_and(|newest| newest.is_draft() || newest.is_under_way()) {
        let why = "What passed the try cannot be told any more: the rules changed, or it is too old.";
        return Ok(Some(html! { (why) }));
    }
    if begin::is_vain(newest) && fields.one("anyway") != Some("yes") {
        return Ok(Some(html! { "None of these letters passed the try. Say that all are meant, if they are." }));
    }
    if let Some(obstacle) = looked.obstacles.iter().find(|obstacle| obstacle.stops(fields)) {
        return Ok(Some(html! { (obstacle.why) }));
    }
    let is_forced = fields.one("why").is_some();
    if only_passed && (fields.one("from") == Some("refetch") || (is_forced && !looked.plans.only_by_force)) {
        let why =
            "What passed the try goes from saved pages, as it was tried. For anything else say that all are meant.";
        return Ok(Some(html! { (why) }));
    }
    if looked.plans.only_by_force && !is_forced {
        return Ok(Some(html! { "These letters failed permanently: say why they are sent all the same." }));
    }
    Ok(None)
}

/// Starts what a form asks for.
async fn begun(app: &App, visitor: &Visitor, fields: &Fields, plans: &Plans) -> Result<Option<ReplayId>, Problem> {
    if fields.one("only") == Some("passed") {
        return passed(app, visitor, fields, plans).await;
    }
    let asked = Body(asked(begin::wanted(fields)?)?);
    let (_, Json(started)) = start::run(State(app.clone()), visitor.caller.clone(), asked).await?;
    Ok(started.id())
}

/// Starts a replay of what passed the try, at the pace that was asked for.
async fn passed(app: &App, visitor: &Visitor, fields: &Fields, plans: &Plans) -> Result<Option<ReplayId>, Problem> {
    let selection = replay_try::selection(app, visitor, fields).await?;
    let asked: start::Asked = asked(begin::wanted(fields)?)?;
    let asked = AskedReplay {
        name: fields.one("name").map(str::to_owned),
        pacing: Some(asked.pacing()?),
        force_why: fields.one("why").map(str::to_owned),
        ..AskedReplay::of(selection, visitor.caller.actor())
    };
    replay_try::start(app, plans.pipelines(), asked).await
}
