//! Alerts, and the sinks that are told of them.

pub(crate) mod change;

use axum::Json;
use axum::extract::State;
use redrive::alerts::{AlertList, PastRule, Tested};
use redrive_core::alerts::Alert;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::asked::Body;
use crate::error::ApiError;
use crate::page::Listed;
use crate::route::Route;

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/alerts", list, "List alerts, those that fire first, and how sinks fare").gives_named("AlertList"),
        Route::get(
            "/alerts/preview",
            preview,
            "What would fire if it were judged now; nothing is written, nobody is told",
        )
        .lists_all("Alert"),
        Route::get(
            "/alerts/past",
            past,
            "How often the rules about shares would have fired in the last seven days, had they been what they are",
        )
        .lists_all("PastRule"),
        Route::post("/alerts/changes", change::run, "Acknowledge, snooze, wake or assign alerts")
            .takes::<change::Asked>()
            .lists_all("AlertView"),
        Route::post("/alerts/check", check, "Judge all conditions now, and tell sinks").gives_named("AlertList"),
        Route::post("/alerts/test", test, "Tell sinks that nothing is wrong, to see whether that arrives")
            .takes::<Asked>()
            .lists_all("Tested"),
    ]
}

async fn list(State(app): State<App>, caller: Caller) -> Result<Json<AlertList>, ApiError> {
    let watching = app.setting().watching();
    let mut listed = app.redrive().list_alerts(&watching).await?;
    if !caller.covers_all() {
        listed.alerts.retain(|view| view.alert.pipeline.as_ref().is_some_and(|name| caller.covers(name)));
        listed.sinks.clear();
    }
    Ok(Json(listed))
}

async fn preview(State(app): State<App>, caller: Caller) -> Result<Json<Listed<Alert>>, ApiError> {
    caller.check_all(None)?;
    Ok(Json(Listed::whole(app.redrive().preview_alerts(&app.setting().watching()).await?)))
}

async fn past(State(app): State<App>, caller: Caller) -> Result<Json<Listed<PastRule>>, ApiError> {
    let mut rules = app.redrive().past_rules(&app.setting().watching()).await?;
    rules.retain(|rule| caller.covers(&rule.pipeline));
    Ok(Json(Listed::whole(rules)))
}

/// Which sinks.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TestSinks)]
pub struct Asked {
    /// By name; all if left out.
    #[serde(default)]
    sinks: Vec<String>,
}

async fn check(State(app): State<App>, caller: Caller) -> Result<Json<AlertList>, ApiError> {
    caller.check_all(None)?;
    Ok(Json(app.redrive().check_alerts(&app.setting().watching()).await?))
}

async fn test(
    State(app): State<App>,
    caller: Caller,
    Body(asked): Body<Asked>,
) -> Result<Json<Listed<Tested>>, ApiError> {
    caller.check_all(None)?;
    Ok(Json(Listed::whole(app.redrive().test_sinks(&app.setting().watching(), &asked.sinks).await?)))
}
