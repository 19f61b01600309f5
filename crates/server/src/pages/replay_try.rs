//! Trying letters before they are replayed: the rules of the configuration, or a draft of them, run over the saved pages, and nothing is
//! settled. A try runs beside the page, which says how far it is; letters whose handlers are not known here are tried by workers that
//! live elsewhere.
//!
//! - `draft`: rules that are filled in here; `rules`: those that are in force; `progress`: how far a try is, and what came of it

pub mod draft;
mod progress;
mod rules;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::compare::Comparing;
use redrive::config::{Overrides, Setting, with_vault};
use redrive::contract::{Selection, TriedCount, TryView};
use redrive::replays::{AskedReplay, BegunTry, GoodCheck, NewTry, Tried, can_use_saved, outdated_try};
use redrive::{Error, Pipeline};
use redrive_core::dead::DeadLetter;
use redrive_core::ids::{PipelineName, ReplayId, TryId};
use redrive_core::jobs::Input;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;

use self::draft::{Asked, Draftable};
pub use self::rules::{InForce, in_force};
use super::acts::{asked, letters};
use super::fields::{Done, Fields, once};
use super::filter::LetterFilter;
use super::parts::{command, quoted};
use super::problem::Problem;
use super::replay_new::{self, Mistake, Plans};
use super::shell::number_of;
use super::visitor::Visitor;
use crate::app::App;
use crate::error::ApiError;
use crate::routes::letters::filter::Letters;
use crate::routes::tries::may_see;
use crate::trying::Place;

/// How long the page of who began a try is kept back for it: most are over by then, and the page comes with what came of it.
const BREATH: Duration = Duration::from_millis(150);

/// How long who stops a try waits until it has.
const STOPS_WITHIN: Duration = Duration::from_secs(3);

/// Which letters a form or an address is about, if who looks may see them.
pub async fn selection(app: &App, visitor: &Visitor, fields: &Fields) -> Result<Selection, Problem> {
    let letters: Letters = asked(letters(fields)?)?;
    Ok(letters.selection(app, &visitor.caller).await?)
}

/// Pipelines with their handlers, as the configuration has them; those that it does not have run elsewhere.
pub fn pipelines<'a>(app: &App, names: impl IntoIterator<Item = &'a PipelineName>) -> Result<Vec<Pipeline>, Problem> {
    let (setting, mut all) = (app.setting(), Vec::new());
    for name in names {
        let here = setting.config.pipeline.contains_key(name);
        all.extend(if here { made(app, &setting, [name])? } else { vec![app.pipeline(name)?] });
    }
    Ok(all)
}

/// Pipelines of a configuration, which may have a draft.
fn made<'a>(
    app: &App,
    setting: &Setting,
    names: impl IntoIterator<Item = &'a PipelineName>,
) -> Result<Vec<Pipeline>, Problem> {
    let made = |name: &PipelineName| -> Result<Pipeline, Problem> {
        let (pipeline, _) = setting.pipeline(name.clone(), &Overrides::default()).map_err(redrive::Error::from)?;
        Ok(with_vault(pipeline, app.vault()))
    };
    names.into_iter().map(made).collect()
}

/// The pipelines among these whose handlers are not known here.
pub fn elsewhere<'a>(app: &App, names: impl IntoIterator<Item = &'a PipelineName>) -> Vec<PipelineName> {
    let setting = app.setting();
    names.into_iter().filter(|name| !setting.config.pipeline.contains_key(*name)).cloned().collect()
}

/// Begins to try the letters of a form, and leads back to the page, which shows how far it is.
pub async fn run(State(app): State<App>, visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        // What a rule of their own finds is told, and be it by how it fails.
        if !draft::given(&fields).is_empty() {
            visitor.caller.check_payloads()?;
        }
        let selection = selection(&app, &visitor, &fields).await?;
        let plans = Plans::of(&app, &visitor, &fields, None).await?;
        let (by, force) = (visitor.caller.actor(), plans.only_by_force);
        let new = NewTry { by, selection, force, edits: Input::new() };
        let begun = match elsewhere(&app, plans.pipelines()).is_empty() {
            true => begin(&app, &fields, &plans, new).await,
            false => begin_elsewhere(&app, &plans, new).await,
        };
        if let Err(problem) = begun {
            return replay_new::again(&app, &visitor, &fields, problem).await;
        }
        Ok(Done::At(format!("/replays/new?{}#step-2", chosen(&fields))))
    })
    .await
}

const NONE_SAVED: &str = "none of these letters has a saved page to try";

async fn begin(app: &App, fields: &Fields, plans: &Plans, new: NewTry) -> Result<(), Problem> {
    let draft = draft::asked(app, fields, plans.pipelines())?;
    let setting = draft.as_ref().map_or_else(|| app.setting(), |draft| Arc::clone(&draft.setting));
    let pipelines = made(app, &setting, plans.pipelines())?;
    can_use_saved(&pipelines, false).map_err(Error::from)?;
    end_former(app, &new).await?;
    let room = app.trying().room()?;
    let drafted = draft.as_ref().map(|draft| draft.drafted.clone());
    let begun = app.redrive().begin_try(&pipelines, (new, drafted)).await?;
    let Some(id) = begun.id() else { return Err(ApiError::senseless("this store cannot be written").into()) };
    if begun.letters() == 0 {
        app.redrive().cancel_try(id).await?;
        return Err(ApiError::senseless(NONE_SAVED).into());
    }
    let place = room.enter(id, app.stopping());
    let only = plans.pipelines().next().filter(|_| plans.pipelines().count() == 1).cloned();
    let running = tokio::spawn(beside(app.clone(), begun, place, (draft, only)));
    // What goes wrong is kept with the try, and shown.
    let _ = tokio::time::timeout(BREATH, running).await;
    Ok(())
}

/// Runs a try while others do something else, and checks its rules against pages that worked: those of the draft, or of the only
/// pipeline that it is of.
async fn beside(app: App, begun: BegunTry, place: Place, (draft, only): (Option<Asked>, Option<PipelineName>)) {
    let setting = app.setting();
    let good = async {
        match (&draft, &only) {
            (Some(draft), _) => draft.check(&app).await,
            (None, Some(pipeline)) => {
                let with = Comparing { setting: &setting, vault: app.vault() };
                app.redrive().check_good_since(&with, pipeline).await
            }
            (None, None) => Ok(GoodCheck::default()),
        }
    };
    if let Err(error) = begun.run(&place.stop, |_, _| {}, good).await {
        tracing::warn!(%error, "a try was cut short");
    }
}

async fn begin_elsewhere(app: &App, plans: &Plans, new: NewTry) -> Result<(), Problem> {
    let pipelines = app.pipelines(plans.pipelines());
    can_use_saved(&pipelines, false).map_err(Error::from)?;
    end_former(app, &new).await?;
    match app.redrive().open_try_elsewhere(&pipelines, new, true).await?.id {
        Some(_) => Ok(()),
        None => Err(ApiError::senseless(NONE_SAVED).into()),
    }
}

/// Ends the try of these letters that is under way: who begins anew, and can, does not want it any more.
async fn end_former(app: &App, new: &NewTry) -> Result<(), Problem> {
    match app.redrive().newest_of(&new.selection, &Input::new()).await? {
        Some(former) => end(app, &former).await,
        None => Ok(()),
    }
}

/// Ends a try with what was tried by now.
async fn end(app: &App, kept: &TryView) -> Result<(), Problem> {
    if kept.finished_at.is_some() {
        return Ok(());
    }
    if app.trying().stop(kept.id) {
        let over = async {
            while app.trying().has(kept.id) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = tokio::time::timeout(STOPS_WITHIN, over).await;
    }
    // It may run on another server, or no longer run at all; of one that has ended it does nothing.
    Ok(app.redrive().cancel_try(kept.id).await?)
}

/// Stops a try, and leads back to the page with what was tried by then.
pub async fn stop(State(app): State<App>, visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        let id: TryId = fields
            .one("try")
            .and_then(|id| id.parse().ok())
            .ok_or_else(|| ApiError::invalid("try", "expected the try that is to stop"))?;
        let (kept, _) = app.redrive().try_by_id(id).await?;
        may_see(&visitor.caller, &kept)?;
        end(&app, &kept).await?;
        Ok(Done::At(format!("/replays/new?{}#step-2", chosen(&fields))))
    })
    .await
}

/// The choice of a form as the query of an address.
fn chosen(fields: &Fields) -> String {
    let mut query = form_urlencoded::Serializer::new(LetterFilter::of(fields).to_query());
    query.extend_pairs(fields.all("id").map(|id| ("id", id)));
    query.extend_pairs(draft::given(fields).iter().map(|(field, rule)| (format!("draft.{field}"), rule)));
    query.finish()
}

/// The newest try of the letters that somebody looks at.
pub struct Newest {
    pub kept: TryView,
    /// What came of it, or how far it is.
    pub tried: Tried,
    /// Where its letters are, while it is under way.
    groups: Vec<TriedCount>,
    /// Pipelines with letters that wait for a worker, while none of those that lease letters is there.
    unattended: Vec<PipelineName>,
    /// Whether it runs in this process.
    is_here: bool,
    /// Whether it says nothing of what would come of these letters now: it is old, or a pipeline is defined otherwise.
    pub is_outdated: bool,
}

impl Newest {
    /// Whether it has not ended.
    pub const fn is_under_way(&self) -> bool {
        self.kept.finished_at.is_none()
    }

    /// How many letters it recovered, of those of which it can be told, if it has ended and is to be believed.
    pub fn recovered(&self) -> Option<(i64, i64)> {
        let Tried { tried, recovered, unknown, .. } = self.tried;
        let (good, all) = (recovered as i64, tried.saturating_sub(unknown) as i64);
        (!self.is_under_way() && !self.is_outdated && all > 0).then_some((good, all))
    }

    /// Whether it is one of rules that are in no file.
    pub const fn is_draft(&self) -> bool {
        self.tried.draft.is_some()
    }
}

/// The newest try of these letters, if there is one.
pub async fn newest(app: &App, visitor: &Visitor, fields: &Fields) -> Result<Option<Newest>, Problem> {
    let selection = selection(app, visitor, fields).await?;
    let newest = async || app.redrive().newest_of(&selection, &Input::new()).await;
    let Some(mut kept) = newest().await? else { return Ok(None) };
    let is_here = app.trying().has(kept.id);
    // The last verdict may have come before all of its letters were listed.
    // What a server of the version before tries itself says nothing of that.
    if kept.finished_at.is_none()
        && !is_here
        && kept.outcome.is_object()
        && app.redrive().end_try_if_over(kept.id).await?
    {
        kept = newest().await?.unwrap_or(kept);
    }
    let (tried, groups) = app.redrive().progress_of(&kept).await?;
    let defined = app.pipelines(kept.tried_with.keys());
    let is_outdated = outdated_try(&kept, &defined, app.redrive().now()).is_some();
    let unattended = unattended(app, &groups).await?;
    Ok(Some(Newest { kept, tried, groups, unattended, is_here, is_outdated }))
}

/// The pipelines with letters that wait, for which no worker that lives elsewhere is there.
async fn unattended(app: &App, groups: &[TriedCount]) -> Result<Vec<PipelineName>, Problem> {
    let waiting: BTreeSet<&PipelineName> =
        groups.iter().filter(|group| group.waiting > 0).filter_map(|group| group.pipeline.as_ref()).collect();
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    let (workers, now) = (app.redrive().store().list_workers().await?, app.redrive().now());
    let at_work = workers.iter().filter(|worker| worker.remote && worker.is_at_work(now));
    let runs: Vec<_> = at_work.flat_map(|worker| &worker.runs).collect();
    let is_idle = |name: &&PipelineName| !runs.iter().any(|runs| runs.pipeline == **name);
    Ok(waiting.into_iter().filter(is_idle).cloned().collect())
}

/// What the step shows besides what is filled in.
pub struct Step<'a> {
    /// The rules that can be drafted.
    pub draftable: &'a [Draftable],
    /// The newest try.
    pub newest: Option<&'a Newest>,
    /// The letter whose record is shown, if it is there and who looks may see it.
    pub example: Option<&'a DeadLetter>,
    /// Pipelines whose handlers are not known here.
    pub elsewhere: &'a [PipelineName],
    /// Whether all of them failed permanently: they are tried all the same.
    pub by_force: bool,
    /// The rules that are in force.
    pub rules: &'a [InForce],
    /// How many letters can be tried from their saved pages, if that is known; or why none can.
    pub pages: Result<Option<u64>, String>,
    /// What is wrong with what was filled in.
    pub mistake: Mistake<'a>,
    pub now: Timestamp,
}

/// The step of the page.
pub fn step(visitor: &Visitor, fields: &Fields, step: &Step<'_>) -> Markup {
    let Step { draftable, newest, rules, pages, now, .. } = step;
    let lacks = visitor.lacks(Role::Operator);
    let is_under_way = newest.is_some_and(Newest::is_under_way);
    let is_draft = !draft::given(fields).is_empty();
    // What was tried before says nothing of a draft that cannot be read.
    let newest = newest.filter(|_| !step.mistake.is_some_and(|(field, _)| field.starts_with("draft.")));
    let why_not = match pages {
        Err(why) => Some(format!("They cannot be tried: {why}.")),
        Ok(Some(0)) => Some("None of them has a saved page.".to_owned()),
        Ok(_) => None,
    };
    html! {
        section.step aria-labelledby="step-2" {
            div.step-name { h2 id="step-2" { b { "2" } "Try" } p.fact { "What would recover; nothing is settled" } }
            div {
                @for rules in *rules { (rules.shown(*now)) }
                (with_what(visitor, fields, step))
                p.actions {
                    button.primary[is_draft] formaction="/replays/try" formnovalidate data-key="t" disabled[lacks.is_some() || why_not.is_some()] title=[lacks.as_deref()] {
                        @if is_under_way { "Begin again" } @else if newest.is_some() { "Try again" }
                        @else {
                            "Try "
                            @match pages {
                                Ok(Some(pages)) => (number_of(usize::try_from(*pages).unwrap_or(usize::MAX), "saved page", "saved pages")),
                                _ => "their saved pages",
                            }
                        }
                    }
                    @if let Some(why) = &why_not { span.fact { (why) } }
                    @if let Some(lacks) = &lacks { span.fact { (lacks) } }
                }
                @if let Some(newest) = newest { (result(visitor, fields, (newest, step.example), *now)) }
                @let forced = if step.by_force { " --force --why 'only a try'" } else { "" };
                (command(visitor, &format!("redrive replay try{}{forced}", flags(fields, *now))))
                @if !draftable.is_empty() { p.fact { "The command tries the rules of redrive.toml, never a draft." } }
            }
        }
    }
}

/// By what letters are tried: the rules of the file, a draft of them, or whatever workers elsewhere have.
fn with_what(visitor: &Visitor, fields: &Fields, step: &Step<'_>) -> Markup {
    let Step { draftable, elsewhere, rules, mistake, .. } = step;
    let names = |names: &[PipelineName]| names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    html! {
        @if !elsewhere.is_empty() {
            p.fact {
                "How tasks of " (names(elsewhere))
                " are done is not known here. Workers that live elsewhere try them, from the saved pages: those that "
                code { "redrive work" } " runs with " code { "REDRIVE_SERVER" } " do so by themselves, others lease with "
                code { "op" } "."
            }
            @if !rules.is_empty() {
                p.fact {
                    "They try all of these letters then. To try others here, at once: "
                    @for (at, rules) in rules.iter().enumerate() {
                        @if at > 0 { ", " }
                        a href={ "/replays/new?" (LetterFilter::of(fields).with("pipeline", rules.name()).to_query()) } { (rules.name()) " alone" }
                    }
                    "."
                }
            }
        } @else if draftable.is_empty() || visitor.caller.check_payloads().is_err() {
            p.fact {
                "The rules of redrive.toml, as they are now, run over the saved pages."
                @if !draftable.is_empty() { " A draft of others needs a token that may read payloads." }
            }
        } @else { (draft::table(fields, draftable, *mistake)) }
    }
}

/// What came of the newest try, or how far it is: it is brought up to date while that runs.
pub fn result(
    visitor: &Visitor,
    fields: &Fields,
    (newest, example): (&Newest, Option<&DeadLetter>),
    now: Timestamp,
) -> Markup {
    // Without a place on the page, to which a browser would only go: it is to be fetched anew.
    progress::part(visitor, newest, example, (&format!("/replays/new?{}", chosen(fields)), now))
}

fn flags(fields: &Fields, now: Timestamp) -> String {
    let ids: String = fields.all("id").map(|id| format!(" {}", quoted(id))).collect();
    let filter = LetterFilter::of(fields);
    if ids.is_empty() { filter.frozen(now).unwrap_or(filter).flags() } else { ids }
}

/// Starts a replay of what the newest try of these letters recovered, and of nothing else.
pub async fn start<'a>(
    app: &App,
    names: impl Iterator<Item = &'a PipelineName>,
    asked: AskedReplay,
) -> Result<Option<ReplayId>, Problem> {
    let pipelines = pipelines(app, names)?;
    Ok(app.redrive().ask_replay(AskedReplay { recoverable: true, ..asked }, &pipelines).await?.id)
}
