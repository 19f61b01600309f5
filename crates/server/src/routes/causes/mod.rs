//! Causes: what fails, and what people say about it.

pub(crate) mod change;
pub(crate) mod compare;
pub(crate) mod list;
pub(crate) mod show;

use crate::route::Route;

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/causes", list::run, "List causes by impact")
            .query::<list::Asked>()
            .paged()
            .gives_named("CausePage"),
        Route::get("/causes/{id}", show::run, "Show a cause: why its letters belong together, samples, trend, notes")
            .gives_named("CauseDetail"),
        Route::get(
            "/causes/{id}/compare",
            compare::run,
            "Compare the page of one of its letters with the last one that worked: fields, misses, what differs",
        )
        .query::<compare::Asked>()
        .gives_named("Comparison"),
        Route::get(
            "/causes/{id}/differences",
            compare::differences,
            "What is different about those who died of it, with the numbers of both sides",
        )
        .gives_named("Differences"),
        Route::post(
            "/causes/{id}/changes",
            change::run,
            "Assign, note, mute, unmute, resolve, reopen, merge or split a cause",
        )
        .takes::<change::Asked>()
        .gives_named("CauseDetail"),
    ]
}
