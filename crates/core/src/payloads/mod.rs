//! Payloads: raw responses, or any bytes, that are kept as evidence. This module names and describes them; the bytes live
//! in the vault, at a [`PayloadPlace`].

mod place;
mod reads;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::time::Timestamp;

pub use self::place::{HostMark, InvalidPlace, PayloadPlace, StoreId};
pub use self::reads::PayloadReads;

/// The BLAKE3 hash of a payload's bytes: its address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PayloadHash([u8; 32]);

impl PayloadHash {
    /// The hash that these bytes are.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The hash as bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for PayloadHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PayloadHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PayloadHash {
    type Err = InvalidHash;

    fn from_str(text: &str) -> Result<Self, InvalidHash> {
        let invalid = || InvalidHash(text.to_owned());
        if text.len() != 64 || !text.is_ascii() {
            return Err(invalid());
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| invalid())?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for PayloadHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PayloadHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// A text that is not the hash of a payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a payload: expected 64 hexadecimal digits")]
pub struct InvalidHash(String);

/// Why the bytes of a payload cannot be read from the vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnreadableWhy {
    /// The vault does not have them.
    Missing,
    /// They are not those that were kept.
    Damaged,
}

impl UnreadableWhy {
    /// The name in JSON and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Damaged => "damaged",
        }
    }
}

/// Result of the last read of a payload, if it did not find the bytes that were kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// `missing` or `damaged`.
    pub why: UnreadableWhy,
    /// When a read first found that.
    pub since: Timestamp,
}

/// A payload that was kept, with what is known of the response it came in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// Its address.
    pub hash: PayloadHash,
    /// Bytes that were kept.
    pub size_bytes: u64,
    /// Whether only its beginning was kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// How long it is, or said to be, where that is more than was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// Why its bytes could not be kept, if they could not: nothing refers to it, and nothing can be worked from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// The response it came in.
    #[serde(flatten)]
    pub response: Response,
}

impl Payload {
    /// A payload of which nothing but its address and length is known.
    pub fn bare(hash: PayloadHash, size_bytes: u64) -> Self {
        Self { hash, size_bytes, truncated: false, total_bytes: None, lost: None, response: Response::default() }
    }
}

/// What came with a payload. Secrets are masked before they get here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Response {
    /// The HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The headers, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The address it came from, after redirects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// How long it took to come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_ms: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_survive_text() {
        let hash = PayloadHash::from_bytes(std::array::from_fn(|n| n as u8 * 7));
        assert_eq!(hash.to_string().parse(), Ok(hash));
        for bad in ["", "ab", &"x".repeat(64), &"é".repeat(32)] {
            assert!(bad.parse::<PayloadHash>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_payload_survives_json() {
        let payload = Payload {
            hash: PayloadHash::from_bytes([7; 32]),
            size_bytes: 10,
            truncated: true,
            total_bytes: Some(5_000_000_000),
            lost: Some("collected too soon".into()),
            response: Response { status: Some(200), headers: vec![("a".into(), "b".into())], ..Response::default() },
        };
        let text = serde_json::to_string(&payload).expect("JSON");
        assert_eq!(serde_json::from_str::<Payload>(&text).ok(), Some(payload));
        assert!(text.contains("\"status\":200"), "{text}");
    }
}
