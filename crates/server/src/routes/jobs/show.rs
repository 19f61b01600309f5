//! `GET /jobs/{id}`

use axum::Json;
use axum::extract::State;
use redrive::contract::JobDetail;
use redrive_core::ids::JobRef;

use crate::access::Caller;
use crate::app::App;
use crate::asked::Named;
use crate::error::ApiError;

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Named(named): Named<JobRef>,
) -> Result<Json<JobDetail>, ApiError> {
    let id = app.redrive().find_job(&named).await?;
    let mut detail = app.redrive().job(id).await?;
    caller.check(&detail.job.pipeline)?;
    caller.strip(&mut detail.failures);
    Ok(Json(detail))
}
