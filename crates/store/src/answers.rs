//! How both backends write until when a request is held that has no answer yet: in place of the answer, as bytes in the order of times.

use redrive_core::time::Timestamp;

/// A time as bytes. No bytes at all are before every time.
pub fn held(until: Timestamp) -> [u8; 8] {
    until.as_millis().max(0).to_be_bytes()
}
