//! `GET /payloads/{id}/bytes`

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use redrive::vault::VaultError;
use redrive_core::failures::with_sources;
use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream};
use tokio_util::io::ReaderStream;

use super::list::find;
use crate::access::Caller;
use crate::answer::{ASK_AGAIN, is_named};
use crate::app::App;
use crate::asked::Named;
use crate::error::ApiError;

/// What is read ahead of who takes it, in bytes.
const AHEAD_BYTES: usize = 64 * 1024;

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    asked: HeaderMap,
    Named(id): Named<String>,
) -> Result<Response, ApiError> {
    let payload = find(&app, &caller, &id).await?;
    // Bytes are what their hash says, for good; which are those of a job may change.
    let tag = format!("\"{}\"", payload.hash);
    let value = HeaderValue::from_str(&tag).expect("a hash is made of hexadecimal digits");
    let tagged = [(header::ETAG, value), (header::CACHE_CONTROL, ASK_AGAIN)];
    if asked.get(header::IF_NONE_MATCH).is_some_and(|had| is_named(had, &tag)) {
        return Ok((StatusCode::NOT_MODIFIED, tagged).into_response());
    }
    let vault = app.vault().ok_or_else(|| ApiError::missing("this store has no vault"))?.clone();
    let (out, mut into): (DuplexStream, DuplexStream) = tokio::io::duplex(AHEAD_BYTES);
    let (hash, address) = (payload.hash, vault.address().to_owned());
    let copying = tokio::spawn(async move {
        let copied = vault.copy(hash, &mut into).await;
        // Whoever reads sees that it ends too soon: its length was told.
        if let Err(error) = &copied {
            tracing::warn!(error = %with_sources(error), payload = %hash, "a payload could not be sent whole");
        }
        copied
    });
    // Whether there is anything to send is known with its first bytes.
    let mut out = BufReader::new(out);
    let patience = app.options().patience.vault;
    let failed = match tokio::time::timeout(patience, out.fill_buf()).await {
        Ok(Ok([])) => copying.await.ok().and_then(Result::err),
        Ok(_) => None,
        Err(_) => {
            copying.abort();
            Some(VaultError::NoAnswer { address, patience })
        }
    };
    match failed {
        None => {}
        Some(error @ (VaultError::Missing(_) | VaultError::Damaged(_) | VaultError::OnItsWay { .. })) => {
            return Err(ApiError::missing(error.to_string()));
        }
        Some(other) => return Err(redrive::Error::from(other).into()),
    }
    // Payload bytes are hostile: a browser is to save them, never to show them as a page of this server.
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (header::CONTENT_LENGTH, HeaderValue::from(payload.size_bytes)),
        (HeaderName::from_static("x-redrive-truncated"), HeaderValue::from_static(truncated(payload.truncated))),
    ];
    Ok((tagged, headers, Body::from_stream(ReaderStream::new(out))).into_response())
}

const fn truncated(yes: bool) -> &'static str {
    if yes { "true" } else { "false" }
}
