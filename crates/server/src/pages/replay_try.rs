//! Trying letters before they are replayed: the rules of the configuration, or a draft of them, run over the saved pages, and nothing is
//! settled.

pub mod draft;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::config::{Overrides, Setting, with_vault};
use redrive::contract::{Selection, TryView};
use redrive::replays::{AskedReplay, NewTry, can_use_saved};
use redrive::{CancellationToken, Pipeline};
use redrive_core::ids::{PipelineName, ReplayId};
use redrive_core::jobs::Input;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;
use serde_json::Value;

use self::draft::Draftable;
use super::acts::{asked, letters};
use super::fields::{Done, Fields, once};
use super::filter::LetterFilter;
use super::parts::{Glyph, ago, column, column_num, columns, command, quoted, state, text};
use super::problem::Problem;
use super::visitor::Visitor;
use crate::app::App;
use crate::error::ApiError;
use crate::look::figures::{count, part_of};
use crate::look::tone::Tone;
use crate::routes::letters::filter::Letters;

/// How long a try may take while somebody waits for its page; what was tried by then is shown.
const PATIENCE: Duration = Duration::from_secs(20);

/// Causes of what would still fail that are named.
const LEFTOVERS: usize = 8;

/// Which letters a form or an address is about, if who looks may see them.
pub async fn selection(app: &App, visitor: &Visitor, fields: &Fields) -> Result<Selection, Problem> {
    let letters: Letters = asked(letters(fields))?;
    Ok(letters.selection(app, &visitor.caller).await?)
}

/// Pipelines with their handlers, as the configuration has them.
pub fn pipelines<'a>(app: &App, names: impl IntoIterator<Item = &'a PipelineName>) -> Result<Vec<Pipeline>, Problem> {
    made(app, &app.setting(), names)
}

/// The same of a configuration, which may have a draft.
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

/// Tries the letters of a form, and leads back to the page with what came of it.
pub async fn run(State(app): State<App>, visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        let selection = selection(&app, &visitor, &fields).await?;
        let plan = super::replay_new::plan_of(&app, &visitor, letters(&fields)).await?;
        let draft = draft::asked(&app, &fields, plan.pipelines.keys()).await?;
        let setting = draft.as_ref().map_or_else(|| app.setting(), |(setting, _)| Arc::clone(setting));
        let pipelines = made(&app, &setting, plan.pipelines.keys())?;
        can_use_saved(&pipelines, false).map_err(redrive::Error::from)?;
        let draft = draft.map(|(_, draft)| draft);
        let stop = CancellationToken::new();
        let new = NewTry { by: visitor.caller.actor(), selection, force: false, edits: Input::new() };
        let (enough, waited) = (stop.clone(), tokio::time::sleep(PATIENCE));
        let watch = tokio::spawn(async move {
            waited.await;
            enough.cancel();
        });
        let tried = app.redrive().try_draft(&pipelines, (new, draft), &stop, |_, _| {}).await;
        watch.abort();
        if tried?.tried == 0 {
            return Err(ApiError::senseless("none of these letters has a saved page to try").into());
        }
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

/// The newest try of these letters, if there is one.
pub async fn newest(app: &App, visitor: &Visitor, fields: &Fields) -> Result<Option<TryView>, Problem> {
    let selection = selection(app, visitor, fields).await?;
    Ok(app.redrive().find_try(Some((&selection, &Input::new()))).await?)
}

/// How many letters a try recovered, of those that it tried.
pub fn recovered(tried: &TryView) -> (i64, i64) {
    let number = |name: &str| tried.outcome.get(name).and_then(Value::as_i64).unwrap_or(0);
    (number("recovered"), number("tried"))
}

/// The step of the page.
pub fn step(
    visitor: &Visitor,
    fields: &Fields,
    (rules, tried): (&[Draftable], Option<&TryView>),
    saved: u64,
    now: Timestamp,
) -> Markup {
    let lacks = visitor.lacks(Role::Operator);
    html! {
        section.step aria-labelledby="step-2" {
            div.step-name { h2 id="step-2" { b { "2" } "Try" } p.fact { "What would recover; nothing is settled" } }
            div {
                @if rules.is_empty() {
                    p.fact { "The rules of redrive.toml, as they are now, run over the saved pages." }
                } @else { (draft::table(fields, rules)) }
                p.actions {
                    button formaction="/replays/try" formnovalidate data-key="t" disabled[lacks.is_some() || saved == 0] title=[lacks.as_deref()] {
                        @if tried.is_some() { "Try again" } @else { "Try " (count(saved as i64)) " saved pages" }
                    }
                    @if saved == 0 { span.fact { "None of them has a saved page." } }
                }
                @if let Some(tried) = tried { (outcome(tried, now)) (draft::outcome(tried)) }
                (command(&format!("redrive replay try{}", flags(fields))))
            }
        }
    }
}

fn flags(fields: &Fields) -> String {
    let ids: String = fields.all("id").map(|id| format!(" {}", quoted(id))).collect();
    if ids.is_empty() { LetterFilter::of(fields).flags() } else { ids }
}

/// What came of a try.
fn outcome(tried: &TryView, now: Timestamp) -> Markup {
    let (good, all) = recovered(tried);
    let tone = if good == all {
        Tone::Good
    } else if good > 0 {
        Tone::Warn
    } else {
        Tone::Bad
    };
    let left: Vec<&Value> = tried.outcome["remaining"].as_array().into_iter().flatten().collect();
    let word = |one: &Value, name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    html! {
        div.result {
            p class={ "headline " (tone.class()) } {
                b { (part_of(good, all)) " would recover" } ", tried " (ago(tried.created_at, now)) "."
                @if tried.outcome["stopped"] == true { span.fact { "It was stopped before all were tried." } }
            }
            @if !left.is_empty() {
                table.left role="table" {
                    (columns(&[column("Would still fail"), column_num("Letters")]))
                    tbody role="rowgroup" {
                        @for one in left.iter().take(LEFTOVERS) {
                            tr role="row" {
                                th role="rowheader" scope="row" {
                                    (state(&word(one, "reason"), Glyph::Cross, Tone::Bad)) " " (text(&word(one, "title")))
                                    span.fact { a href={ "/letters/" (word(one, "example")) } { "an example" } }
                                }
                                td.num role="cell" { (count(one["letters"].as_i64().unwrap_or(0))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Starts a replay of what the newest try of these letters recovered, and of nothing else.
pub async fn start(
    app: &App,
    visitor: &Visitor,
    fields: &Fields,
    asked: AskedReplay,
) -> Result<Option<ReplayId>, Problem> {
    let plan = super::replay_new::plan_of(app, visitor, letters(fields)).await?;
    let pipelines = pipelines(app, plan.pipelines.keys())?;
    Ok(app.redrive().ask_replay(AskedReplay { recoverable: true, ..asked }, &pipelines).await?.id)
}
