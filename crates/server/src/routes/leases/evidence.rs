//! A payload that comes with a settlement: its bytes, or which of those that were uploaded before it is.

use axum::http::StatusCode;
use data_encoding::BASE64;
use redrive::leases::{BroughtBytes, BroughtPayload};
use redrive::vault::Capture;
use redrive_core::payloads::{PayloadHash, Response};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::error::ApiError;

/// A raw response, or any bytes: as text, in Base64, or uploaded before under their SHA-256.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Its bytes, as text.
    text: Option<String>,
    /// Its bytes, in Base64.
    base64: Option<String>,
    /// The SHA-256 under which it was uploaded (`PUT /payloads/{sha256}`).
    #[schema(value_type = Option<String>)]
    sha256: Option<PayloadHash>,
    /// The HTTP status that it came with.
    status: Option<u16>,
    /// The headers that it came with. Secrets are masked.
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// Where it came from.
    url: Option<String>,
    /// How long it is said to be, if only the beginning is sent.
    total_bytes: Option<u64>,
}

impl Evidence {
    /// The payload; nothing if it is to have been uploaded and is not there.
    pub async fn brought(
        self,
        app: &App,
        caller: &Caller,
        wrong: &(dyn Fn(&str) -> ApiError + Send + Sync),
    ) -> Result<Option<BroughtPayload>, ApiError> {
        let bytes = match (self.text, self.base64, self.sha256) {
            (Some(text), None, None) => captured(text.as_bytes())?,
            (None, Some(text), None) => {
                captured(&BASE64.decode(text.as_bytes()).map_err(|error| wrong(&error.to_string()))?)?
            }
            (None, None, Some(sha256)) => {
                let (who, may) = (caller.name(), |name: &_| caller.covers(name));
                let Some(upload) = app.redrive().find_upload(who, *sha256.as_bytes(), may).await? else {
                    return Ok(None);
                };
                BroughtBytes::Uploaded { hash: upload.hash, size_bytes: upload.size_bytes }
            }
            _ => return Err(wrong("expected one of text, base64 and sha256")),
        };
        let response = Response { status: self.status, headers: self.headers, url: self.url, elapsed_ms: None };
        Ok(Some(BroughtPayload { bytes, response, total_bytes: self.total_bytes }))
    }
}

/// Bytes that came in a body, which has an end.
fn captured(bytes: &[u8]) -> Result<BroughtBytes, ApiError> {
    let written = Capture::begin(u64::MAX).and_then(|mut capture| capture.write(bytes).map(|()| capture));
    written.map(|capture| BroughtBytes::Here(Box::new(capture))).map_err(|error| {
        tracing::warn!(%error, "a payload cannot be kept");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "payload_unkept", "the payload cannot be kept for now")
    })
}
