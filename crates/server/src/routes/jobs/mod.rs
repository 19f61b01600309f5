//! Jobs, in whatever state they are.

mod cancel;
mod enqueue;
mod known;
mod list;
mod show;

use redrive_core::tokens::Role;

use crate::route::Route;

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/jobs", list::run, "List jobs, newest first").query::<list::Asked>().lists("JobView"),
        Route::get("/jobs/{id}", show::run, "Show a job, by number, id or the end of an id, with its history")
            .gives_named("JobDetail"),
        Route::post("/jobs", enqueue::run, "Enqueue jobs of a pipeline; one whose key is known is not accepted again")
            .needs(Role::Worker)
            .takes::<enqueue::Asked>()
            .gives::<enqueue::Answer>()
            .with_status(201),
        Route::post("/jobs/known", known::run, "Say which jobs have keys; nothing is changed by asking")
            .needs(Role::Worker)
            .takes::<known::Asked>()
            .gives::<known::Answer>()
            .answered_anew(),
        Route::post("/jobs/cancel", cancel::run, "Discard jobs that are queued or leased")
            .needs(Role::Admin)
            .takes::<cancel::Asked>()
            .gives::<cancel::Answer>(),
    ]
}
