//! `POST /letters/import`: letters of a file that is elsewhere, as they are written there.

use axum::Json;
use axum::extract::State;
use redrive::dead::{Foretold, ImportNote, Written, WrittenLetter};
use redrive_core::dead::foreign::{Field, Reading};
use redrive_core::ids::PipelineName;
use redrive_core::jobs::count_values;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, check_values};
use crate::error::ApiError;
use crate::shapes;

/// The most letters of one request.
const LETTERS_MAX: usize = 1_000;

/// Letters of a file.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ImportLetters)]
pub struct Asked {
    /// The letters: at most 1,000.
    #[schema(max_items = 1_000)]
    letters: Vec<Line>,
    /// The pipeline that letters of another program are for; without it only what was exported is taken.
    #[schema(value_type = Option<shapes::Name>)]
    pipeline: Option<PipelineName>,
    /// Where another program tells something, as `WHAT=FIELD`: `message=error` for example.
    #[serde(default)]
    fields: Vec<String>,
    /// Whether what looks secret stays in letters of another program that have no input of their own.
    #[serde(default)]
    keep_secrets: bool,
    /// Say what would come of it; nothing is taken in.
    #[serde(default)]
    dry_run: bool,
}

/// A letter as it is written: a text, or a value.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WrittenLetter)]
pub struct Line {
    /// The line on which it stands.
    line: u64,
    /// The line itself, which is to be JSON.
    text: Option<String>,
    /// The letter, where it is not a line of its own.
    #[schema(value_type = Option<Object>)]
    value: Option<Value>,
}

/// What became of letters, or would.
#[derive(Debug, Default, Serialize)]
pub struct Answer {
    /// How many are what, and the causes that they would have.
    #[serde(flatten)]
    foretold: Foretold,
    /// The lines that were not taken in, and why.
    notes: Vec<ImportNote>,
}

pub async fn run(State(app): State<App>, caller: Caller, Body(asked): Body<Asked>) -> Result<Json<Answer>, ApiError> {
    if asked.letters.len() > LETTERS_MAX {
        let why = format!("{} letters at once: at most {LETTERS_MAX}", asked.letters.len());
        return Err(ApiError::too_large(why).at("letters"));
    }
    let reading = match (asked.pipeline, asked.fields.is_empty() && !asked.keep_secrets) {
        (Some(pipeline), _) => {
            caller.check(&pipeline)?;
            app.admit_pipelines([&pipeline]).await?;
            let named = asked.fields.iter().enumerate().map(named).collect::<Result<_, _>>()?;
            Some(Reading { named, keep_secrets: asked.keep_secrets, ..app.setting().reading(pipeline) })
        }
        (None, true) => None,
        (None, false) => return Err(ApiError::invalid("pipeline", "letters of another program need a pipeline")),
    };
    let texts = || asked.letters.iter().filter_map(|line| line.text.as_deref());
    check_values(texts().map(|text| count_values(text.as_bytes())).sum(), texts().map(str::len).sum())?;
    let letters = asked.letters.into_iter().enumerate().map(written).collect::<Result<_, _>>()?;
    let (mut answer, by) = (Answer::default(), caller.actor());
    let (may, limits) = (|name: &PipelineName| caller.covers(name), app.setting().input_limits());
    let note = |note| answer.notes.push(note);
    answer.foretold = match asked.dry_run {
        true => app.redrive().foretell_brought(letters, (reading, limits), (may, caller.covers_all()), note).await?,
        false => {
            let may = (&by, may, caller.covers_all());
            let imported = app.redrive().import_brought(letters, (reading, limits), may, note).await?;
            Foretold { imported, ..Foretold::default() }
        }
    };
    Ok(Json(answer))
}

fn named((at, text): (usize, &String)) -> Result<(Field, String), ApiError> {
    let wrong = |why: String| ApiError::invalid(format!("fields[{at}]"), why);
    let (what, field) = text.split_once('=').ok_or_else(|| wrong(format!("{text:?} is not WHAT=FIELD")))?;
    Ok((what.parse().map_err(wrong)?, field.to_owned()))
}

fn written((at, line): (usize, Line)) -> Result<WrittenLetter, ApiError> {
    match (line.text, line.value) {
        (Some(text), None) => Ok((line.line, Ok(Written::Text(text)))),
        (None, Some(value)) => Ok((line.line, Ok(Written::Value(value)))),
        _ => Err(ApiError::invalid(format!("letters[{at}]"), "expected one of text and value")),
    }
}
