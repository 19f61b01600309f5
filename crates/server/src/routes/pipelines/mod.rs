//! Pipelines: where they stand, pausing, resuming and forgetting them.

pub(crate) mod forget;
pub(crate) mod list;
pub(crate) mod pause;

use redrive_core::tokens::Role;

use crate::route::Route;

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/pipelines", list::run, "List the pipelines, and where they stand").lists("PipelineView"),
        Route::get("/pipelines/{name}", list::show, "Show where a pipeline stands").gives_named("PipelineView"),
        Route::get(
            "/pipelines/{name}/definition",
            list::explain,
            "Show what a pipeline effectively is, each value with where it came from",
        )
        .needs(Role::Operator)
        .lists_all("Explained"),
        Route::post("/pipelines/{name}/pause", pause::pause, "Begin nothing more of a pipeline until it is resumed")
            .takes::<pause::Asked>()
            .gives_named("Pause"),
        Route::post("/pipelines/{name}/resume", pause::resume, "Let a paused pipeline go on")
            .takes::<pause::Resumed>()
            .gives_named("Pause"),
        Route::post("/pipelines/{name}/forget", forget::run, "Forget a pipeline that has nothing")
            .takes::<forget::Asked>()
            .gives_named("PipelineView"),
    ]
}
