//! `GET /letters/{id}`

use axum::Json;
use axum::extract::State;
use redrive_core::dead::DeadLetter;
use redrive_core::ids::JobRef;

use crate::access::Caller;
use crate::app::App;
use crate::asked::Named;
use crate::error::ApiError;

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Named(named): Named<JobRef>,
) -> Result<Json<DeadLetter>, ApiError> {
    let id = app.redrive().find_job(&named).await?;
    let mut letter = app.redrive().dead_letter(id).await?;
    caller.check(&letter.pipeline)?;
    caller.strip_letter(&mut letter);
    Ok(Json(letter))
}
