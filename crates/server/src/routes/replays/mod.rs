//! Replays: bringing dead letters back after a fix.

pub(crate) mod change;
pub(crate) mod letters;
pub(crate) mod list;
pub(crate) mod start;

use crate::route::Route;

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/replays", list::run, "List replays, newest first").query::<list::Asked>().lists("ReplayView"),
        Route::get("/replays/{id}", list::show, "Show a replay, by its id, the end of it, or `last`")
            .gives_named("ReplayView"),
        Route::get(
            "/replays/{id}/waits",
            list::waits,
            "What an open replay waits for, and how many letters came since",
        )
        .gives_named("ReplayWaits"),
        Route::get("/replays/{id}/letters", letters::run, "List the letters of a replay, and what became of each")
            .query::<letters::Asked>()
            .lists("ReplayLetter"),
        Route::post("/replays/plan", start::plan, "Say what would be replayed, what not and why; nothing happens")
            .takes::<start::Asked>()
            .gives_named("ReplayPlan"),
        Route::post("/replays", start::run, "Send dead letters through their pipelines again, in growing steps")
            .takes::<start::Asked>()
            .gives_named("StartedReplay")
            .with_status(201)
            .or_status(200),
        Route::post("/replays/{id}/pause", change::pause, "Send nothing more of a replay until it is resumed")
            .gives_named("ReplayView"),
        Route::post("/replays/{id}/resume", change::resume, "Go on with a replay that is paused")
            .takes::<change::Resume>()
            .gives_named("ReplayView"),
        Route::post("/replays/{id}/rate", change::rate, "Go faster or slower with a replay from now on")
            .takes::<change::Rate>()
            .gives_named("ReplayView"),
        Route::post(
            "/replays/{id}/cancel",
            change::cancel,
            "Send nothing more of a replay, and take back what nobody began",
        )
        .gives_named("ReplayView"),
    ]
}
