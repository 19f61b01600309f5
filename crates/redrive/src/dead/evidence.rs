//! What a letter that is reported says of its payload, which was uploaded before.

use redrive_core::dead::foreign::ForeignLetter;
use redrive_core::jobs::Input;
use redrive_core::payloads::{Payload, PayloadHash, Response};
use redrive_core::secrets::Secrets;
use redrive_store::contract::{Sha256, Upload};
use serde_json::Value;

/// A payload as a letter names it.
pub(super) struct NamedPayload {
    pub(super) sha256: Sha256,
    truncated: bool,
    total_bytes: Option<u64>,
    response: Response,
}

impl NamedPayload {
    /// Takes it out of a letter; says what is wrong with it.
    pub(super) fn take(object: &mut Input) -> Result<Option<Self>, String> {
        let mut named = match object.remove("payload") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Object(named)) => named,
            Some(_) => return Err("payload is no object".to_owned()),
        };
        let sha256 = match named.remove("sha256") {
            // Both are 64 hexadecimal digits.
            Some(Value::String(text)) => text.parse::<PayloadHash>().map_err(|_| wrong(&text))?,
            _ => return Err("payload has no sha256".to_owned()),
        };
        let truncated = named.remove("truncated") == Some(Value::Bool(true));
        let total_bytes = named.remove("total_bytes").and_then(|bytes| bytes.as_u64());
        if let Some(Value::Object(headers)) = named.get("headers") {
            let pairs = headers.iter().map(|(name, value)| (name.clone(), text_of(value)));
            named["headers"] = pairs.map(|(name, value)| Value::from(vec![name, value])).collect();
        }
        let response = serde_json::from_value(Value::Object(named)).map_err(|error| format!("payload: {error}"))?;
        Ok(Some(Self { sha256: *sha256.as_bytes(), truncated, total_bytes, response }))
    }

    /// Puts it into a letter, with the last of its failures.
    pub(super) fn attach(mut self, letter: &mut ForeignLetter, upload: Upload, secrets: &Secrets) {
        secrets.mask_response(&mut self.response);
        let (hash, size_bytes) = (upload.hash, upload.size_bytes);
        let Self { truncated, total_bytes, response, .. } = self;
        letter.letter.payload = Some(hash);
        if let Some(last) = letter.letter.failures.as_mut().and_then(|failures| failures.last_mut()) {
            last.payload = Some(Payload { hash, size_bytes, truncated, total_bytes, lost: None, response });
        }
    }
}

fn wrong(text: &str) -> String {
    format!("payload.sha256 is {text:?}: expected 64 hexadecimal digits")
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
