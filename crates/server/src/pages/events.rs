//! `/events`: hints of what changed, for the pages that are open, at most one a second.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::Stream;
use futures_util::stream::unfold;
use redrive::contract::{Change, Changes};

use crate::app::App;

/// How often who hears nothing is told that the connection is there: half of what a page takes for silence.
const ALIVE_EVERY: Duration = Duration::from_secs(10);

/// The least time between two hints: what comes meanwhile is one.
const PAUSE: Duration = Duration::from_secs(1);

/// Tells what changed, by topic.
pub async fn follow(State(app): State<App>) -> Sse<impl Stream<Item = Result<Event, Infallible>> + Send> {
    let changes = app.redrive().store().changes();
    let hints = unfold((app, changes), next);
    // A comment would do for the connection, but a script hears of events only.
    Sse::new(hints).keep_alive(KeepAlive::new().interval(ALIVE_EVERY).event(Event::default().event("alive").data("")))
}

async fn next((app, mut changes): (App, Changes)) -> Option<(Result<Event, Infallible>, (App, Changes))> {
    let stopping = app.stopping().clone();
    let change = tokio::select! {
        () = stopping.cancelled() => return None,
        // A store that was taken away ends it: who comes again is told why.
        change = changes.next() => change.ok()?,
    };
    let topics = match change == Change::ALL {
        true => "all".to_owned(),
        false => change.topics().map(|topic| topic.as_str()).collect::<Vec<_>>().join(","),
    };
    tokio::select! {
        () = stopping.cancelled() => {}
        () = tokio::time::sleep(PAUSE) => {}
    }
    Some((Ok(Event::default().event("change").data(topics)), (app, changes)))
}
