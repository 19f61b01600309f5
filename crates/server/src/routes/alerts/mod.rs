//! Alerts, and the sinks that are told of them.

pub(crate) mod change;

use axum::Json;
use axum::extract::State;
use redrive::alerts::{AlertList, PastRule, Tested};
use redrive_core::alerts::{Alert, AlertStanding};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, Flag};
use crate::error::ApiError;
use crate::page::{List, Listed};
use crate::route::Route;

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/alerts", list, "List alerts that fire, and how sinks fare")
            .query::<Which>()
            .paged()
            .gives_named("AlertPage"),
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

/// Which alerts.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Which {
    /// Also alerts that are over.
    #[serde(default)]
    #[param(value_type = Option<bool>)]
    all: Flag,
    /// Only those that stand there: `firing` and not snoozed, `snoozed`, or `ended`.
    #[serde(default, deserialize_with = "standing")]
    #[param(value_type = Option<String>)]
    state: Option<AlertStanding>,
}

fn standing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<AlertStanding>, D::Error> {
    String::deserialize(deserializer)?.parse().map(Some).map_err(D::Error::custom)
}

/// A page of alerts, and all sinks.
#[derive(Debug, Serialize)]
pub struct Shown {
    #[serde(flatten)]
    listed: AlertList,
    /// Where the next page begins: `cursor` of the next request. Not there on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

async fn list(State(app): State<App>, caller: Caller, list: List<Which>) -> Result<Json<Shown>, ApiError> {
    let AlertList { mut alerts, mut sinks, mut unwatched } =
        app.redrive().list_alerts(&app.setting().watched_by_server()).await?;
    let (asked, now) = (&list.asked, app.redrive().now());
    alerts.retain(|view| view.is_meant(asked.all.0, asked.state, now));
    if !caller.covers_all() {
        alerts.retain(|view| view.alert.pipeline.as_ref().is_some_and(|name| caller.covers(name)));
        unwatched.retain(|name| caller.covers(name));
        sinks.clear();
    }
    let Listed { items: alerts, next } = list.cut(alerts)?;
    Ok(Json(Shown { listed: AlertList { alerts, sinks, unwatched }, next }))
}

async fn preview(State(app): State<App>, caller: Caller) -> Result<Json<Listed<Alert>>, ApiError> {
    caller.check_all(None)?;
    Ok(Json(Listed::whole(app.redrive().preview_alerts(&app.setting().watching()).await?)))
}

async fn past(State(app): State<App>, caller: Caller) -> Result<Json<Listed<PastRule>>, ApiError> {
    let watching = app.setting().watching();
    let unwatched = app.redrive().unwatched(&watching).await?;
    let mut rules = app.redrive().past_rules(&watching, &unwatched).await?;
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
