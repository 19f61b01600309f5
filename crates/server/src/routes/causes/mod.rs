//! Causes: what fails, and what people say about it.

pub(crate) mod change;
pub(crate) mod list;
pub(crate) mod show;

use crate::route::Route;

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/causes", list::run, "List causes by impact").query::<list::Asked>().lists("CauseView"),
        Route::get("/causes/{id}", show::run, "Show a cause: why its letters belong together, samples, trend, notes")
            .gives_named("CauseDetail"),
        Route::post(
            "/causes/{id}/changes",
            change::run,
            "Assign, note, mute, unmute, resolve, reopen, merge or split a cause",
        )
        .takes::<change::Asked>()
        .gives_named("CauseDetail"),
    ]
}
