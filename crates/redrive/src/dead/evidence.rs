//! What a letter that is reported says of its payload: which of those that were uploaded before it is, or the bytes themselves.

use data_encoding::BASE64;
use redrive_core::dead::DeadLetter;
use redrive_core::jobs::Input;
use redrive_core::payloads::{Payload, PayloadHash, Response};
use redrive_core::secrets::Secrets;
use redrive_store::contract::Sha256;
use serde_json::Value;

/// A payload as a letter brings it.
pub(super) struct ReportedPayload {
    pub(super) bytes: Bytes,
    truncated: bool,
    total_bytes: Option<u64>,
    response: Response,
}

/// Where the bytes of a payload are.
pub(super) enum Bytes {
    /// They were uploaded before, under their hash.
    Uploaded(Sha256),
    /// Here.
    Inline(Vec<u8>),
}

impl ReportedPayload {
    /// Takes it out of a letter; says what is wrong with it.
    pub(super) fn take(object: &mut Input, secrets: &Secrets) -> Result<Option<Self>, String> {
        let mut said = match object.remove("payload") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Object(said)) => said,
            Some(_) => return Err("payload is no object".to_owned()),
        };
        let bytes = bytes_of(&mut said)?;
        let truncated = said.remove("truncated") == Some(Value::Bool(true));
        let total_bytes = said.remove("total_bytes").and_then(|bytes| bytes.as_u64());
        if let Some(Value::Object(headers)) = said.get("headers") {
            let pairs = headers.iter().map(|(name, value)| (name.clone(), text_of(value)));
            said["headers"] = pairs.map(|(name, value)| Value::from(vec![name, value])).collect();
        }
        let mut response: Response =
            serde_json::from_value(Value::Object(said)).map_err(|error| format!("payload: {error}"))?;
        secrets.mask_response(&mut response);
        Ok(Some(Self { bytes, truncated, total_bytes, response }))
    }

    /// Puts it into a letter, with the last of its failures.
    pub(super) fn attach(self, letter: &mut DeadLetter, (hash, size_bytes): (PayloadHash, u64)) {
        let Self { truncated, total_bytes, response, .. } = self;
        letter.payload = Some(hash);
        if let Some(last) = letter.failures.as_mut().and_then(|failures| failures.last_mut()) {
            last.payload = Some(Payload { hash, size_bytes, truncated, total_bytes, lost: None, response });
        }
    }
}

fn bytes_of(said: &mut Input) -> Result<Bytes, String> {
    match (said.remove("sha256"), said.remove("text"), said.remove("base64")) {
        // Both are 64 hexadecimal digits.
        (Some(Value::String(text)), None, None) => match text.parse::<PayloadHash>() {
            Ok(sha256) => Ok(Bytes::Uploaded(*sha256.as_bytes())),
            Err(_) => Err(format!("payload.sha256 is {text:?}: expected 64 hexadecimal digits")),
        },
        (None, Some(Value::String(text)), None) => Ok(Bytes::Inline(text.into_bytes())),
        (None, None, Some(Value::String(text))) => {
            let bytes = BASE64.decode(text.as_bytes()).map_err(|error| format!("payload.base64: {error}"))?;
            Ok(Bytes::Inline(bytes))
        }
        _ => Err("expected one of payload.sha256, payload.text and payload.base64, as text".to_owned()),
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
