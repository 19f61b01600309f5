//! What a question is about: of which causes and pipelines, and how many letters. Nobody answers for others than they mean.

use std::collections::BTreeMap;

use maud::{Markup, html};
use redrive::contract::{CauseView, DeadBy, ReplayView};
use redrive_core::causes::CauseId;
use redrive_core::dead::DeadLetter;
use redrive_core::ids::{JobRef, PipelineName};
use serde_json::Value;

use super::acts::asked;
use super::fields::Fields;
use super::filter::LetterFilter;
use super::letters::number_of;
use super::parts::name;
use super::problem::Problem;
use crate::app::App;
use crate::error::ApiError;
use crate::look::figures::counted;
use crate::look::foreign::cut;
use crate::routes::letters::filter::Filter;

/// The most causes, and the most pipelines, that are named.
const NAMED: usize = 3;

/// The most letters that are looked at one by one to name their causes.
const LOOKED_AT: usize = 50;

/// Letters by what they have in common, those of most letters first, and whether there are more.
type Groups = (Vec<(String, i64)>, bool);

fn letters(many: i64) -> String {
    counted(many, "letter", "letters")
}

/// A cause, its pipeline and its dead letters.
pub fn of_cause(cause: &CauseView) -> Markup {
    html! {
        li { "cause " a href={ "/causes/" (cause.id) } { code { (cause.id) } } " “" bdi { (cut(&cause.title, 120)) } "”" }
        li { "pipeline " (cause.pipeline) }
        li { (counted(i64::try_from(cause.dead).unwrap_or(i64::MAX), "dead letter", "dead letters")) }
    }
}

/// A letter, its cause and its pipeline.
pub async fn of_letter(app: &App, letter: &DeadLetter) -> Result<Markup, Problem> {
    let title = match &letter.cause {
        Some(cause) => Some((cause, title(app, cause).await?)),
        None => None,
    };
    Ok(html! {
        li { "letter " (number_of(letter)) }
        @if let Some((cause, title)) = title { li { "cause " a href={ "/causes/" (cause) } { code { (cause) } } " “" bdi { (title) } "”" } }
        li { "pipeline " (letter.pipeline) }
    })
}

/// A replay, its pipelines and its letters.
pub fn of_replay(replay: &ReplayView) -> Markup {
    html! {
        li { "replay " (name(&replay.name)) }
        @if let Some(cause) = &replay.selection.filter.cause { li { "cause " a href={ "/causes/" (cause) } { code { (cause) } } } }
        li { (pipelines(&replay.pipelines)) }
        li { (letters(i64::try_from(replay.progress.total).unwrap_or(i64::MAX))) }
    }
}

fn pipelines<'a>(names: impl IntoIterator<Item = &'a PipelineName>) -> String {
    let names: Vec<&str> = names.into_iter().map(PipelineName::as_str).collect();
    format!("{} {}", if names.len() == 1 { "pipeline" } else { "pipelines" }, names.join(", "))
}

/// The letters that a form or an address is about: their causes and pipelines, each with how many they have.
pub async fn of_letters(app: &App, fields: &Fields) -> Result<Markup, Problem> {
    let ids: Vec<&str> = fields.all("id").collect();
    let (causes, pipelines) = match ids.is_empty() {
        true => by_filter(app, fields).await?,
        false => by_id(app, &ids).await?,
    };
    let mut titles = Vec::new();
    for (id, letters) in causes.0 {
        // A letter that is not filed yet has none.
        let Ok(cause) = id.parse::<CauseId>() else { continue };
        let title = title(app, &cause).await?;
        titles.push((cause, title, letters));
    }
    Ok(html! {
        @for (cause, title, many) in &titles {
            li { "cause " a href={ "/causes/" (cause) } { code { (cause) } } " “" bdi { (title) } "”: " (letters(*many)) }
        }
        @if causes.1 { li { "other causes" } }
        @for (pipeline, many) in &pipelines.0 { li { "pipeline " (pipeline) ": " (letters(*many)) } }
        @if pipelines.1 { li { "other pipelines" } }
    })
}

async fn title(app: &App, cause: &CauseId) -> Result<String, Problem> {
    let found = app.redrive().store().get_cause(cause.clone(), app.redrive().now()).await?;
    Ok(cut(&found.cause.title, 120))
}

async fn by_filter(app: &App, fields: &Fields) -> Result<(Groups, Groups), Problem> {
    let filter = asked::<Filter>(Value::Object(LetterFilter::of(fields).to_json()))?.dead(app)?;
    let groups = async |by| -> Result<Groups, Problem> {
        let top = app.redrive().top_dead(filter.clone(), by, NAMED as u32).await?;
        let lines = top.lines.into_iter().map(|line| (line.value.unwrap_or_default(), line.dead));
        Ok((lines.collect(), top.others > 0))
    };
    Ok((groups(DeadBy::Cause).await?, groups(DeadBy::Pipeline).await?))
}

async fn by_id(app: &App, ids: &[&str]) -> Result<(Groups, Groups), Problem> {
    let (mut causes, mut pipelines) = (BTreeMap::new(), BTreeMap::new());
    for id in ids.iter().take(LOOKED_AT) {
        let named: JobRef =
            id.parse().map_err(|why: redrive_core::ids::InvalidName| ApiError::invalid("id", why.to_string()))?;
        let found = app.redrive().store().get_dead(app.redrive().find_job(&named).await?).await?;
        let Some(letter) = found else { continue };
        *causes.entry(letter.cause.map(|id| id.to_string()).unwrap_or_default()).or_default() += 1;
        *pipelines.entry(letter.pipeline.to_string()).or_default() += 1;
    }
    let more = ids.len() > LOOKED_AT;
    let groups = |counted: BTreeMap<String, i64>| {
        let mut groups: Vec<_> = counted.into_iter().collect();
        groups.sort_by_key(|(_, letters)| std::cmp::Reverse(*letters));
        let more = more || groups.len() > NAMED;
        groups.truncate(NAMED);
        (groups, more)
    };
    Ok((groups(causes), groups(pipelines)))
}
