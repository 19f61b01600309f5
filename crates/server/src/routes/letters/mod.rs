//! Dead letters: looking at them, taking in those of other programs, giving them up.

pub(crate) mod discard;
pub mod filter;
mod import;
pub(crate) mod list;
pub(crate) mod report;
pub(crate) mod show;
pub(crate) mod top;

use redrive_core::tokens::Role;

use crate::route::Route;

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/letters", list::run, "List dead letters")
            .query::<filter::Filter>()
            .query::<list::With>()
            .lists("DeadLetter"),
        Route::get("/letters/top", top::run, "Count dead letters by what they have in common")
            .query::<top::By>()
            .query::<filter::Filter>()
            .paged()
            .gives_named("TopLetters"),
        Route::get("/letters/{id}", show::run, "Show a dead letter with all its failures").gives_named("DeadLetter"),
        Route::post("/letters", report::run, "Report failures from elsewhere: one letter, or a list of them")
            .needs(Role::Worker)
            .takes_schema(report::schema())
            .gives::<report::Answer>(),
        Route::post(
            "/letters/import",
            import::run,
            "Take in letters of a file: exported ones, or those of another program",
        )
        .takes::<import::Asked>()
        .gives_named("ImportedLetters"),
        Route::post("/letters/discard", discard::run, "Give dead letters up, with a record")
            .needs(Role::Admin)
            .takes::<discard::Asked>()
            .gives::<discard::Answer>(),
    ]
}
