//! Payloads: the raw responses that were kept.

pub(crate) mod bytes;
mod keep;
pub(crate) mod list;
pub(crate) mod upload;

use redrive_core::tokens::Role;

use crate::route::Route;

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/payloads", list::run, "List payloads, by hash").query::<list::Asked>().lists("PayloadView"),
        Route::get("/payloads/{id}", list::show, "Show what came with a payload: of a job, or by its hash")
            .gives_named("Payload"),
        Route::get("/payloads/{id}/bytes", bytes::run, "The exact bytes of a payload, as they were received")
            .gives_bytes("application/octet-stream"),
        Route::post("/payloads/verify", keep::verify, "Read payloads back, and say whether they are whole")
            .takes::<keep::Asked>()
            .gives_named("VerifiedPayloads")
            .answered_anew(),
        Route::post("/payloads/gc", keep::gc, "Remove what nothing refers to from the vault")
            .needs(Role::Admin)
            .takes::<keep::Clear>()
            .gives_named("Cleared"),
        Route::put(
            "/payloads/{id}",
            upload::run,
            "Upload the bytes of a payload, under their SHA-256, before its letter",
        )
        .gives::<upload::Answer>()
        .with_status(201)
        .or_status(200),
        Route::head(
            "/payloads/{id}",
            upload::is_known,
            "Whether a payload with this SHA-256 is known to the pipelines of this token",
        )
        .gives_nothing(),
    ]
}
