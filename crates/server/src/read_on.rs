//! Reads on what is left of a body that was refused, so that who sends it gets to read the answer: many clients send all of it first, and a
//! connection that is closed meanwhile is all that they hear of.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::runtime::Handle;

use crate::app::App;

/// The most that is read on, in bytes.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// Time for which a refused body is read on, unless bodies have less.
const WITHIN: Duration = Duration::from_secs(5);

/// Has the body of a request read on after its answer.
pub async fn read_on(State(app): State<App>, request: Request, next: Next) -> Response {
    // Who asks before sending has sent nothing.
    if request.body().is_end_stream() || request.headers().contains_key(header::EXPECT) {
        return next.run(request).await;
    }
    let within = WITHIN.min(app.options().patience.body);
    next.run(request.map(|body| Body::new(ReadOn { body: Some(body), within }))).await
}

/// A body that is read on when it is dropped before its end.
struct ReadOn {
    /// None after its end.
    body: Option<Body>,
    within: Duration,
}

impl HttpBody for ReadOn {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = self.body.as_mut() else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for ReadOn {
    fn drop(&mut self) {
        let left = self.body.take().filter(|body| !body.is_end_stream());
        if let (Some(body), Ok(runtime)) = (left, Handle::try_current()) {
            // Whatever was not read by then is cut off.
            runtime.spawn(tokio::time::timeout(self.within, discard(body)));
        }
    }
}

async fn discard(mut body: Body) {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > BYTES_MAX {
            return;
        }
    }
}
