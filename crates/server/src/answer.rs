//! Entity tags: who asks for what has not changed is told so.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;

/// The header in which every answer says which version of redrive gave it: who asks knows whether they understand each other.
const VERSION: HeaderName = HeaderName::from_static("redrive-version");

/// Not kept anywhere without asking whether it is still so.
pub const ASK_AGAIN: HeaderValue = HeaderValue::from_static("private, no-cache");

/// Says in an answer which version of redrive gave it.
pub async fn name_version(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().insert(VERSION, HeaderValue::from_static(env!("CARGO_PKG_VERSION")));
    response
}

/// Puts a tag on what is read as JSON, and answers shortly to who has it already.
pub async fn tag(request: Request, next: Next) -> Response {
    let (is_read, had) = (request.method() == Method::GET, request.headers().get(header::IF_NONE_MATCH).cloned());
    let response = next.run(request).await;
    if !is_read || response.status() != StatusCode::OK || !is_json(&response) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // It was made in memory: there is nothing to wait for, and no more than there was.
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the answer was lost").into_response();
    };
    let tag = tag_of(&bytes);
    let has_it = had.as_ref().is_some_and(|had| is_named(had, &tag));
    if let Ok(value) = HeaderValue::from_str(&tag) {
        parts.headers.insert(header::ETAG, value);
    }
    parts.headers.insert(header::CACHE_CONTROL, ASK_AGAIN);
    if has_it {
        parts.status = StatusCode::NOT_MODIFIED;
        parts.headers.remove(header::CONTENT_TYPE);
        parts.headers.remove(header::CONTENT_LENGTH);
        return Response::from_parts(parts, Body::empty());
    }
    Response::from_parts(parts, Body::from(bytes))
}

fn is_json(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
}

fn tag_of(bytes: &[u8]) -> String {
    format!("\"{}\"", &blake3::hash(bytes).to_hex()[..24])
}

/// Whether an `If-None-Match` names a tag.
pub fn is_named(header: &HeaderValue, tag: &str) -> bool {
    let tags = header.to_str().unwrap_or_default().split(',').map(str::trim);
    tags.map(|tag| tag.strip_prefix("W/").unwrap_or(tag)).any(|named| named == "*" || named == tag)
}
