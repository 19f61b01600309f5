//! Rounds: repetitions of the same tasks.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use redrive::contract::{ListRounds, RoundView};
use redrive_core::ids::{PipelineName, RoundName};
use redrive_core::tokens::Role;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Caller;
use crate::app::App;
use crate::asked::Body;
use crate::error::ApiError;
use crate::page::{List, Listed};
use crate::route::Route;
use crate::shapes;

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/rounds", list, "List rounds with their ledgers, those that began last first")
            .query::<Asked>()
            .lists("RoundView"),
        Route::post("/rounds", begin, "Begin the next round of a pipeline")
            .needs(Role::Worker)
            .takes::<Begin>()
            .gives::<Begun>()
            .with_status(201),
    ]
}

/// Which rounds.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Only of this pipeline.
    #[param(value_type = Option<shapes::Name>)]
    pipeline: Option<PipelineName>,
}

async fn list(State(app): State<App>, caller: Caller, list: List<Asked>) -> Result<Json<Listed<RoundView>>, ApiError> {
    caller.check_each(&list.asked.pipeline)?;
    let wanted = ListRounds { pipeline: list.asked.pipeline.clone(), limit: list.reach()?, within: caller.within() };
    Ok(Json(list.cut(app.redrive().store().list_rounds(wanted).await?)?))
}

/// The pipeline of which a round is to begin.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = BeginRound)]
pub struct Begin {
    /// The pipeline.
    #[schema(value_type = shapes::Name)]
    pipeline: PipelineName,
}

/// A round that has begun.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BegunRound)]
pub struct Begun {
    /// What it is called.
    #[schema(value_type = shapes::Name)]
    round: RoundName,
}

async fn begin(
    State(app): State<App>,
    caller: Caller,
    Body(asked): Body<Begin>,
) -> Result<(StatusCode, Json<Begun>), ApiError> {
    caller.check(&asked.pipeline)?;
    app.admit_pipelines([&asked.pipeline]).await?;
    let round = app.redrive().begin_round(&asked.pipeline, &caller.actor()).await?;
    Ok((StatusCode::CREATED, Json(Begun { round })))
}
