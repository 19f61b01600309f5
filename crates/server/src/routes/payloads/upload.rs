//! `PUT /payloads/{sha256}` and `HEAD /payloads/{sha256}`

use std::fmt::Write;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use futures_util::StreamExt;
use redrive::contract::{Sha256, Upload};
use redrive::vault::Capture;
use redrive_core::failures::with_sources;
use redrive_core::payloads::{PayloadHash, Response};
use serde::Serialize;
use sha2::{Digest, Sha256 as Hasher};
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::asked::Named;
use crate::error::ApiError;

/// The longest payload, in bytes.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// After how long a payload that cannot be kept may be sent again.
const UNKEPT: Duration = Duration::from_secs(30);

/// A payload that is there.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UploadedPayload)]
pub struct Answer {
    /// The hash by which it was brought.
    sha256: String,
    /// The hash by which the vault knows it.
    hash: String,
    /// Its length.
    size_bytes: u64,
}

pub async fn is_known(
    State(app): State<App>,
    caller: Caller,
    Named(sha256): Named<PayloadHash>,
) -> Result<StatusCode, ApiError> {
    match find(&app, &caller, *sha256.as_bytes()).await? {
        Some(_) => Ok(StatusCode::OK),
        None => Err(ApiError::missing(format!("no payload {sha256} is known to this token"))),
    }
}

async fn find(app: &App, caller: &Caller, sha256: Sha256) -> Result<Option<Upload>, ApiError> {
    Ok(app.redrive().find_upload(caller.name(), sha256, |name| caller.covers(name)).await?)
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Named(sha256): Named<PayloadHash>,
    body: Body,
) -> Result<(StatusCode, Json<Answer>), ApiError> {
    // Both are 64 hexadecimal digits.
    let wanted: Sha256 = *sha256.as_bytes();
    let known = find(&app, &caller, wanted).await?.is_some();
    let vault = app.vault().ok_or_else(|| ApiError::missing("this store has no vault"))?;
    let (capture, found) = take(body, app.options().patience.more).await?;
    if found != wanted {
        let why = format!("the bytes have the SHA-256 {}", hexadecimal(&found));
        return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "wrong_hash", why).at("id"));
    }
    let payload = vault.save(capture, Response::default(), None).await.map_err(redrive::Error::from)?;
    app.redrive().note_upload(caller.name(), wanted, payload.hash).await?;
    let status = if known { StatusCode::OK } else { StatusCode::CREATED };
    let (hash, size_bytes) = (payload.hash.to_string(), payload.size_bytes);
    Ok((status, Json(Answer { sha256: hexadecimal(&wanted), hash, size_bytes })))
}

/// Takes the bytes in as they come, and says what their hash is.
async fn take(body: Body, within: Duration) -> Result<(Capture, Sha256), ApiError> {
    let unkept = |error: std::io::Error| {
        tracing::warn!(error = %with_sources(&error), "a payload cannot be kept");
        ApiError::unavailable("payload_unkept", "the payload cannot be kept for now", UNKEPT)
    };
    let mut capture = Capture::begin(BYTES_MAX).map_err(unkept)?;
    let (mut hasher, mut stream) = (Hasher::new(), body.into_data_stream());
    let slow = || ApiError::too_slow("the bytes did not arrive in time");
    while let Some(chunk) = tokio::time::timeout(within, stream.next()).await.map_err(|_| slow())? {
        let chunk = chunk.map_err(|_| ApiError::senseless("the bytes ended too soon"))?;
        hasher.update(&chunk);
        capture.write(&chunk).map_err(unkept)?;
        if capture.is_full() {
            return Err(ApiError::too_large(format!("a payload has at most {BYTES_MAX} bytes: send its beginning")));
        }
    }
    let mut hash = Sha256::default();
    hash.copy_from_slice(&hasher.finalize());
    Ok((capture, hash))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
