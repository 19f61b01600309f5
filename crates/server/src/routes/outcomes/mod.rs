//! Outcomes: what programs that run their jobs themselves count of them, so that rates have their denominators.

use axum::Json;
use axum::extract::State;
use redrive::Error;
use redrive_core::outcomes::OutcomeCount;
use redrive_core::tokens::Role;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::asked::Body;
use crate::error::ApiError;
use crate::route::Route;

/// The most counts of one request.
const COUNTS_MAX: usize = 1_000;

/// The longest name of a client, in bytes.
const CLIENT_BYTES_MAX: usize = 100;

/// Its routes.
pub fn routes() -> Vec<Route> {
    let summary = "Count jobs that a program ran itself: the same client and number again are not counted again";
    vec![Route::post("/outcomes", run, summary).needs(Role::Worker).takes::<Asked>().gives::<Answer>()]
}

/// What was counted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CountOutcomes)]
pub struct Asked {
    /// Who counted: a name that no other process has at the same time.
    client: String,
    /// Which of its counts these are.
    seq: u32,
    /// The counts, at most 1,000: each with `pipeline`, and `target`, `proxy`, `hour` (a time within it), `done`, `failed` (attempts
    /// that were made again), `fields` (`{"price": {"found": 38, "missing": 2}}`), `version`, `tracked` where there are such.
    #[schema(value_type = Vec<Object>)]
    counts: Vec<OutcomeCount>,
}

/// What became of the counts.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CountedOutcomes)]
pub struct Answer {
    /// `new`, or `known` if they came before.
    result: &'static str,
}

async fn run(State(app): State<App>, caller: Caller, Body(asked): Body<Asked>) -> Result<Json<Answer>, ApiError> {
    let Asked { client, seq, counts } = asked;
    if client.is_empty() || client.len() > CLIENT_BYTES_MAX {
        return Err(ApiError::invalid("client", format!("expected 1 to {CLIENT_BYTES_MAX} bytes")));
    }
    if counts.len() > COUNTS_MAX {
        return Err(ApiError::too_large(format!("{} counts at once: at most {COUNTS_MAX}", counts.len())).at("counts"));
    }
    caller.check_each(counts.iter().map(|count| &count.pipeline))?;
    app.admit_pipelines(counts.iter().map(|count| &count.pipeline)).await?;
    // Clients of different tokens that are called alike are different clients.
    let client = format!("{}/{client}", caller.name());
    match app.redrive().count_outcomes(&client, seq, counts).await {
        Ok(is_new) => Ok(Json(Answer { result: if is_new { "new" } else { "known" } })),
        Err(Error::Outcome(error)) => {
            let field = format!("counts[{}].{}", error.at, error.wrong.field);
            Err(ApiError::invalid(field, error.wrong.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}
