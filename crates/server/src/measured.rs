//! What is measured of requests, and the line that is logged of each: neither takes anything of what stands after the question mark, of
//! headers or of bodies, and nobody who is answered waits for the log.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use redrive::times::{Durations, Times};
use tracing::{Level, enabled, info};

use crate::app::App;
use crate::guard::client;

/// Lines of the log that wait to be written, at most.
const LINES_MAX: usize = 4_096;

/// A kind of request: its route, its method, and the class of its answer's status.
pub type Kind = (String, &'static str, &'static str);

/// What is measured of requests in this process.
#[derive(Default)]
pub struct Measured {
    times: Times<Kind>,
    in_flight: AtomicUsize,
    log_lost: AtomicU64,
    log: Option<SyncSender<Line>>,
}

/// A request that was answered.
struct Line {
    who: Option<String>,
    client: Option<IpAddr>,
    method: Method,
    path: String,
    status: u16,
    took: Duration,
}

/// Who asked, where that is known: told by the layer that lets them in.
#[derive(Clone, Debug)]
pub struct Who(pub String);

impl Measured {
    /// With a log of requests, where anybody wants one.
    pub fn logging() -> Self {
        if !enabled!(target: "redrive::access", Level::INFO) {
            return Self::default();
        }
        let (log, lines) = sync_channel::<Line>(LINES_MAX);
        // Writing may take as long as it likes: it has a thread of its own.
        let writer = std::thread::Builder::new().name("access-log".to_owned());
        let started = writer.spawn(move || lines.into_iter().for_each(|line| line.write()));
        Self { log: started.is_ok().then_some(log), ..Self::default() }
    }

    /// How long requests took, by kind.
    pub fn times(&self) -> BTreeMap<Kind, Durations> {
        self.times.read()
    }

    /// Requests that are under way.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Lines of the log that were left out.
    pub fn log_lost(&self) -> u64 {
        self.log_lost.load(Ordering::Relaxed)
    }

    fn note(&self, line: Line, route: Option<String>) {
        let class = match line.status {
            100..200 => "1xx",
            200..300 => "2xx",
            300..400 => "3xx",
            400..500 => "4xx",
            _ => "5xx",
        };
        // What nobody offers has no series of its own, whatever it is called.
        let route = route.unwrap_or_else(|| "none".to_owned());
        self.times.note((route, named(&line.method), class), line.took, class == "5xx");
        if self.log.as_ref().is_some_and(|log| log.try_send(line).is_err()) {
            self.log_lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Line {
    fn write(self) {
        let Self { who, client, method, path, status, took } = self;
        let (client, millis) =
            (client.map(tracing::field::display), u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        info!(target: "redrive::access", who, client, %method, path, status, millis, "answered");
    }
}

const fn named(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// A request under way.
struct UnderWay<'a>(&'a AtomicUsize);

impl<'a> UnderWay<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Measures a request, whatever becomes of it.
pub async fn measure(State(app): State<App>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let route = request.extensions().get::<MatchedPath>().map(|route| route.as_str().to_owned());
    let client = client(app.options(), &request);
    let measured = app.measured();
    let _under_way = UnderWay::begin(&measured.in_flight);
    let mut response = next.run(request).await;
    let who = response.extensions_mut().remove::<Who>().map(|Who(name)| name);
    let status = response.status().as_u16();
    measured.note(Line { who, client, method, path, status, took: begun.elapsed() }, route);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_offers_has_one_series() {
        let measured = Measured::default();
        for path in ["/a", "/b", "/c"] {
            let method = Method::from_bytes(path.trim_start_matches('/').to_uppercase().as_bytes()).expect("a method");
            let line = Line { who: None, client: None, method, path: path.into(), status: 404, took: Duration::ZERO };
            measured.note(line, None);
        }
        let times = measured.times();
        assert_eq!(times.keys().collect::<Vec<_>>(), [&("none".to_owned(), "other", "4xx")]);
    }
}
