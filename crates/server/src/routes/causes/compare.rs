//! `GET /causes/{id}/compare` and `GET /causes/{id}/differences`

use axum::Json;
use axum::extract::State;
use redrive::compare::{Comparing, Comparison, Differences};
use redrive::contract::{CauseView, DeadFilter, ListDead};
use redrive_core::causes::CauseId;
use redrive_core::dead::DeadLetter;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Named, Query};
use crate::error::ApiError;

/// The most letters of a cause that can be looked at one by one.
pub const SAMPLES_MAX: u32 = 100;

/// Which letter.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Which of its letters, from 1, the newest first; at most 100. Without it the newest whose page was kept.
    sample: Option<u32>,
}

/// The page of a letter beside the last one that worked.
pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<CauseId>,
    Query(asked): Query<Asked>,
) -> Result<Json<Comparison>, ApiError> {
    caller.check_payloads()?;
    let cause = cause_of(&app, &caller, id).await?;
    let samples = samples(&app, &cause).await?;
    let sample = asked.sample.map_or_else(|| first_with_page(&samples), |sample| sample.max(1) as usize);
    let letter = samples.get(sample - 1);
    let letter =
        letter.ok_or_else(|| ApiError::missing(format!("the cause has no letter number {sample} to look at")))?;
    Ok(Json(compared(&app, letter, true).await?))
}

/// What is different about those who died.
pub async fn differences(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<CauseId>,
) -> Result<Json<Differences>, ApiError> {
    let cause = cause_of(&app, &caller, id).await?;
    Ok(Json(app.redrive().differences(&cause).await?))
}

/// The letters of a cause that can be looked at, newest first.
pub async fn samples(app: &App, cause: &CauseView) -> Result<Vec<DeadLetter>, ApiError> {
    let filter = DeadFilter { cause: Some(cause.id.clone()), ..DeadFilter::default() };
    let list = ListDead { with_failures: true, ..ListDead::newest(filter, SAMPLES_MAX) };
    Ok(app.redrive().store().list_dead(list).await?.items)
}

/// Which of these letters is looked at first, from 1: the newest whose page was kept, if one was.
pub fn first_with_page(letters: &[DeadLetter]) -> usize {
    letters.iter().position(|letter| letter.saved_payload().is_some()).map_or(1, |at| at + 1)
}

/// Compares the page of a letter.
pub async fn compared(app: &App, letter: &DeadLetter, lines: bool) -> Result<Comparison, ApiError> {
    let setting = app.setting();
    let with = Comparing { setting: &setting, vault: app.vault() };
    Ok(app.redrive().compare(&with, letter, lines).await?)
}

async fn cause_of(app: &App, caller: &Caller, id: CauseId) -> Result<CauseView, ApiError> {
    let cause = app.redrive().store().get_cause(id, app.redrive().now()).await?.cause;
    caller.check(&cause.pipeline)?;
    Ok(cause)
}
