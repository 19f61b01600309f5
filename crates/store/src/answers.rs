//! Encodes the time until which an unanswered request is held: in place of the answer, as bytes in the order of times.

use redrive_core::time::Timestamp;

/// A time as bytes. No bytes at all are before every time.
pub fn held(until: Timestamp) -> [u8; 8] {
    until.as_millis().max(0).to_be_bytes()
}
