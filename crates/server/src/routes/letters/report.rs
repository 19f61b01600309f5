//! `POST /letters`: failures from elsewhere.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use redrive::dead::{NotReported, Reported, Reporting};
use redrive_core::ids::PipelineName;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::asked::Body;
use crate::error::ApiError;
use crate::shapes;

/// The most letters of one request.
const LETTERS_MAX: usize = 10_000;

/// What a request is, for the document: one letter, or a list of them. A letter has at least `pipeline`, `input` and `message`; what
/// else a failure can have is optional, beside them or under `failure`.
pub fn schema() -> Value {
    let text = || json!({"type": "string"});
    let letter = json!({
        "type": "object",
        "required": ["pipeline", "input"],
        "properties": {
            "pipeline": shapes::name(), "input": {"type": "object"}, "message": text(), "failure": {"type": "object"},
            "id": text(), "key": text(), "target": text(), "code": text(), "error_type": text(), "stack": text(),
            "http_status": {"type": "integer"}, "proxy": text(), "attempts": {}, "died_at": text(),
            "payload": {"type": "object"}, "origin": {"type": "object"}, "lost": {"type": "array"},
        },
    });
    let several = json!({"type": "array", "items": letter, "maxItems": LETTERS_MAX});
    let within = json!({"type": "object", "required": ["letters"], "properties": {"letters": several}});
    json!({"anyOf": [letter, several, within]})
}

/// What became of each letter, in their order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReportedLetters)]
pub struct Answer {
    letters: Vec<Letter>,
}

/// What became of a letter.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReportedLetter)]
pub struct Letter {
    /// `new`, `known`, `again`, `payload_missing` (upload it first) or `refused`.
    result: &'static str,
    /// The letter, unless it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Why>,
}

/// Why a letter was refused.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RefusedLetter)]
pub struct Why {
    /// What it is, for programs.
    code: &'static str,
    /// What it is, for people.
    message: String,
    /// The field that is wrong, if one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'static str>,
}

pub async fn run(State(app): State<App>, caller: Caller, Body(asked): Body<Value>) -> Result<Json<Answer>, ApiError> {
    let letters = several(asked)?;
    if letters.len() > LETTERS_MAX {
        let why = format!("{} letters at once: at most {LETTERS_MAX}", letters.len());
        return Err(ApiError::too_large(why).at("letters"));
    }
    app.admit_pipelines(&named(&letters, &caller)).await?;
    let (setting, by) = (app.setting(), caller.actor());
    let reporting = Reporting {
        setting: &setting,
        vault: app.vault(),
        by: &by,
        may: |name: &PipelineName| caller.covers(name),
        is_limited: !caller.covers_all(),
    };
    let reported = app.redrive().report_letters(letters, &reporting).await?;
    Ok(Json(Answer { letters: reported.into_iter().map(told).collect() }))
}

/// The pipelines that letters are for, as far as the caller may report them.
fn named(letters: &[Value], caller: &Caller) -> BTreeSet<PipelineName> {
    let names = letters.iter().filter_map(|letter| letter.get("pipeline")?.as_str()?.parse().ok());
    names.filter(|name| caller.covers(name)).collect()
}

/// The letters of a body.
fn several(asked: Value) -> Result<Vec<Value>, ApiError> {
    match asked {
        Value::Array(letters) => Ok(letters),
        Value::Object(mut one) => match one.remove("letters") {
            Some(Value::Array(letters)) if one.is_empty() => Ok(letters),
            Some(_) => Err(ApiError::invalid("letters", "expected a list of letters and nothing besides")),
            None => Ok(vec![Value::Object(one)]),
        },
        _ => Err(ApiError::senseless("expected a letter, or a list of letters")),
    }
}

fn told(reported: Reported) -> Letter {
    let (result, id) = match reported {
        Reported::New(id) => ("new", id),
        Reported::Known(id) => ("known", id),
        Reported::Again(id) => ("again", id),
        Reported::PayloadMissing => return Letter { result: "payload_missing", id: None, why: None },
        Reported::Refused(why) => return Letter { result: "refused", id: None, why: Some(refusal(&why)) },
    };
    Letter { result, id: Some(id.to_string()), why: None }
}

fn refusal(why: &NotReported) -> Why {
    let (code, field) = match why {
        NotReported::Invalid { field, .. } => ("invalid", *field),
        NotReported::Forbidden(_) => ("foreign_pipeline", Some("pipeline")),
    };
    Why { code, message: why.to_string(), field }
}
