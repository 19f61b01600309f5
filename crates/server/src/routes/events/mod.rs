//! Events: hints that something has changed, for who looks at it. What it is is read anew.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::Stream;
use futures_util::stream::unfold;
use redrive::contract::{Change, Changes};
use redrive_core::time::Timestamp;

use crate::access::Caller;
use crate::app::App;
use crate::held::Held;
use crate::route::Route;

/// How often who hears nothing is told that the connection is there.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// The least time between two hints: what comes meanwhile is one.
const PAUSE: Duration = Duration::from_millis(100);

/// Its routes.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/events", follow, "Hints of what changed, by topic, as server-sent events; `all` means anything")
            .gives_bytes("text/event-stream"),
    ]
}

async fn follow(
    State(app): State<App>,
    caller: Caller,
    held: Held,
    headers: HeaderMap,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + Send> {
    // Nothing is kept of hints: who was here before may have missed any.
    let missed = headers.contains_key("last-event-id");
    let changes = app.redrive().store().changes();
    let hints = unfold(Following { app, caller, changes, missed, _held: held }, next);
    Sse::new(hints).keep_alive(KeepAlive::new().interval(ALIVE_EVERY))
}

/// Somebody who follows. They are asked for nothing: a hint is made when the one before was taken.
struct Following {
    app: App,
    caller: Caller,
    changes: Changes,
    missed: bool,
    /// Their place among the requests of their token.
    _held: Held,
}

async fn next(mut following: Following) -> Option<(Result<Event, Infallible>, Following)> {
    if std::mem::take(&mut following.missed) {
        let event = event("all", following.app.redrive().now());
        return Some((Ok(event), following));
    }
    let stopping = following.app.stopping().clone();
    let change = tokio::select! {
        () = stopping.cancelled() => return None,
        // A store that was taken away ends it: who comes again is told why.
        change = following.changes.next() => change.ok()?,
    };
    // Whose token was revoked, or expired, hears nothing more.
    if !following.caller.is_let_in(&following.app).await.is_ok_and(|let_in| let_in) {
        return None;
    }
    let text = match change == Change::ALL {
        true => "all".to_owned(),
        false => change.topics().map(|topic| topic.as_str()).collect::<Vec<_>>().join(","),
    };
    let event = event(&text, following.app.redrive().now());
    tokio::time::sleep(PAUSE).await;
    Some((Ok(event), following))
}

fn event(topics: &str, now: Timestamp) -> Event {
    Event::default().event("change").id(now.as_millis().to_string()).data(topics)
}
