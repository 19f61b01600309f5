//! Payloads: the raw responses that were kept.

pub(crate) mod bytes;
pub(crate) mod list;
pub(crate) mod upload;

use crate::route::Route;

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/payloads", list::run, "List payloads, by hash").query::<list::Asked>().lists("PayloadView"),
        Route::get("/payloads/{id}", list::show, "Show what came with a payload: of a job, or by its hash")
            .gives_named("Payload"),
        Route::get("/payloads/{id}/bytes", bytes::run, "The exact bytes of a payload, as they were received")
            .gives_bytes("application/octet-stream"),
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
