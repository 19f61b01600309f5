//! Pipelines: where they stand, pausing and resuming them.

pub(crate) mod list;
pub(crate) mod pause;

use redrive_core::tokens::Role;

use crate::route::Route;

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/pipelines", list::run, "List the pipelines, and where they stand").lists(),
        Route::get("/pipelines/{name}", list::show, "Show where a pipeline stands"),
        Route::get(
            "/pipelines/{name}/definition",
            list::explain,
            "Show what a pipeline effectively is, each value with where it came from",
        )
        .needs(Role::Operator)
        .lists(),
        Route::post("/pipelines/{name}/pause", pause::pause, "Begin nothing more of a pipeline until it is resumed")
            .takes::<pause::Asked>(),
        Route::post("/pipelines/{name}/resume", pause::resume, "Let a paused pipeline go on"),
    ]
}
