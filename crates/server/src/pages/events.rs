//! `/events`: hints of what changed, for the pages that are open, at most one a second.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::Stream;
use futures_util::stream::unfold;
use redrive::contract::{Change, Changes};
use tokio::time::Instant;

use super::visitor::Visitor;
use crate::app::App;
use crate::held::Held;

/// The least time between two hints: what comes meanwhile is one.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a first change is waited with: what belongs to it often comes within that.
const BREATH: Duration = Duration::from_millis(100);

/// Tells what changed, by topic. Who hears nothing is told that the connection is there, three times in what a page takes for
/// silence.
pub async fn follow(
    State(app): State<App>,
    visitor: Visitor,
    held: Held,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + Send> {
    let alive_every = app.options().silence / 3;
    let changes = app.redrive().store().changes();
    let hints = unfold(Following { app, visitor, changes, free_at: Instant::now(), _held: held }, next);
    // A comment would do for the connection, but a script hears of events only, and of those that have data.
    let alive = Event::default().event("alive").data("yes");
    Sse::new(hints).keep_alive(KeepAlive::new().interval(alive_every).event(alive))
}

/// A page that is open.
struct Following {
    app: App,
    visitor: Visitor,
    changes: Changes,
    /// When it may be told again.
    free_at: Instant,
    /// Its place among the requests of its token.
    _held: Held,
}

async fn next(mut following: Following) -> Option<(Result<Event, Infallible>, Following)> {
    let stopping = following.app.stopping().clone();
    let change = tokio::select! {
        () = stopping.cancelled() => return None,
        // A store that was taken away ends it: who comes again is told why.
        change = following.changes.next() => change.ok()?,
    };
    // Who signed out meanwhile, or whose token is no longer good, hears nothing more.
    if !following.visitor.is_let_in(&following.app).await {
        return None;
    }
    let topics = match change == Change::ALL {
        true => "all".to_owned(),
        false => change.topics().map(|topic| topic.as_str()).collect::<Vec<_>>().join(","),
    };
    tokio::select! {
        () = stopping.cancelled() => {}
        () = tokio::time::sleep_until(following.free_at.max(Instant::now() + BREATH)) => {}
    }
    following.free_at = Instant::now() + PAUSE;
    Some((Ok(Event::default().event("change").data(topics)), following))
}
