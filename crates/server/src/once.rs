//! `Idempotency-Key`: a request that is sent again with its key is answered as the first time, and not done again.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use redrive::answers::KeyedRequest;
use redrive::contract::KeptAnswer;

use crate::access::Caller;
use crate::app::App;
use crate::asked::whole;
use crate::error::ApiError;
use crate::held::Held;

/// The header with the key.
pub const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Says that an answer is the one that was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The longest key, in bytes.
const KEY_BYTES_MAX: usize = 255;

/// Answers a request that was answered before as it was then.
pub async fn once(State(app): State<App>, caller: Caller, request: Request, next: Next) -> Response {
    let key = match key_of(&request) {
        Ok(Some(key)) => key,
        Ok(None) => return next.run(request).await,
        Err(error) => return error.into_response(),
    };
    match answered(&app, caller.name(), &key, request, next).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    }
}

fn key_of(request: &Request) -> Result<Option<String>, ApiError> {
    let Some(key) = request.headers().get(KEY) else { return Ok(None) };
    match key.to_str().ok().filter(|key| (1..=KEY_BYTES_MAX).contains(&key.len())) {
        Some(key) => Ok(Some(key.to_owned())),
        None => Err(ApiError::invalid(KEY.as_str(), format!("expected 1 to {KEY_BYTES_MAX} visible characters"))),
    }
}

async fn answered(app: &App, who: &str, key: &str, request: Request, next: Next) -> Result<Response, ApiError> {
    let (mut parts, body) = request.into_parts();
    let (body, room) = whole(app, &parts.headers, body).await?;
    // It is unpacked, and as long as it is.
    parts.headers.remove(header::CONTENT_ENCODING);
    parts.headers.remove(header::CONTENT_LENGTH);
    let mut hasher = blake3::Hasher::new();
    hasher.update(parts.uri.to_string().as_bytes()).update(b"\n").update(&body);
    let asked = hasher.finalize().to_hex().to_string();
    let (app, who, key) = (app.clone(), who.to_owned(), key.to_owned());
    let held = parts.extensions.get().cloned().unwrap_or_default();
    // A client that disconnects does not cancel the request: its response is recorded for when the client sends it again.
    uncancelled(held, async move {
        let _turn = app.alone(&who, &key).await;
        let keyed = match app.redrive().begin_request(&who, &key, &asked).await? {
            KeyedRequest::Answered(kept) => return again(kept, &asked),
            KeyedRequest::Open(keyed) => keyed,
        };
        // Who reads it again takes the same room.
        drop(room);
        let answering = async {
            let (parts, body) = next.run(Request::from_parts(parts, Body::from(body))).await.into_parts();
            // It was made in memory: there is no more of it than there was.
            let body: Bytes = to_bytes(body, usize::MAX)
                .await
                .map_err(|_| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the answer was lost"))?;
            // What failed, or is to come again later, may be done yet.
            let (status, kept) = (parts.status.as_u16(), body.to_vec());
            let answer = parts.status.is_success().then_some(KeptAnswer { request: asked, status, body: kept });
            Ok((Response::from_parts(parts, Body::from(body)), answer))
        };
        keyed.run(answering).await
    })
    .await?
}

/// Runs `work` in a task that a disconnect does not cancel. The task keeps what the request holds until it ends.
pub async fn uncancelled<T: Send + 'static>(
    held: Held,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, ApiError> {
    let running = tokio::spawn(async move {
        let _held = held;
        work.await
    });
    running.await.map_err(|error| redrive::Error::Internal(error.to_string()).into())
}

fn again(kept: KeptAnswer, asked: &str) -> Result<Response, ApiError> {
    if kept.request != asked {
        let why = "this key came with another request before: a new request needs a new key";
        return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "key_reused", why).at(KEY.as_str()));
    }
    if kept.body.is_empty() {
        let why =
            "this was done when it came first, and the answer is no longer kept: a token's answers take at most 64 MiB";
        return Err(ApiError::new(StatusCode::CONFLICT, "answer_dropped", why).at(KEY.as_str()));
    }
    let status = StatusCode::from_u16(kept.status).unwrap_or(StatusCode::OK);
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok((status, [kind, (REPLAYED, HeaderValue::from_static("true"))], kept.body).into_response())
}
