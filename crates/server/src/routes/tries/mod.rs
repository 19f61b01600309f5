//! Tries: what letters would come to, found out by workers elsewhere from their saved payloads. Nothing is settled.

mod cancel;
mod list;
mod start;

use redrive_core::tokens::Role;

pub use self::list::may_see;

use crate::route::Route;

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/tries", list::run, "List the tries of the last 24 hours, newest first").lists("TryView"),
        Route::get("/tries/{id}", list::show, "Show a try: how far it is, and what would still fail")
            .gives_named("TryDetail"),
        Route::get(
            "/tries/{id}/letters",
            list::letters,
            "List the letters of a try that have a verdict, and what they came to",
        )
        .lists("TriedLetter"),
        Route::post(
            "/tries",
            start::run,
            "Have letters tried by who leases them, from their saved payloads; nothing is settled",
        )
        .needs(Role::Worker)
        .takes::<start::Asked>()
        .gives_named("StartedTry")
        .with_status(201)
        .or_status(200),
        Route::post("/tries/{id}/cancel", cancel::run, "End a try with the letters that have a verdict by now")
            .needs(Role::Worker)
            .gives_named("TryDetail")
            .answered_anew(),
    ]
}
