//! What a request holds until it is answered, or until its stream ends.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// The place of a request among those of its token, and the memory that is set aside for its body. Cheap to clone: all of it is given
/// back with the last clone.
#[derive(Clone, Debug, Default)]
pub struct Held(Arc<Mutex<Vec<OwnedSemaphorePermit>>>);

impl Held {
    /// Holds something more.
    pub fn keep(&self, permit: OwnedSemaphorePermit) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(permit);
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Held {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_default())
    }
}

/// Bytes are counted in pieces of so many.
const PIECE: u64 = 64 * 1024;

/// Memory for bodies.
pub struct Room {
    pieces: Arc<Semaphore>,
    /// Bodies up to this length take none.
    free: u64,
}

impl Room {
    /// Room for so many bytes; what has at most `free` takes none of it.
    pub fn new(bytes: u64, free: u64) -> Self {
        let pieces = usize::try_from(bytes / PIECE).unwrap_or(Semaphore::MAX_PERMITS);
        Self { pieces: Arc::new(Semaphore::new(pieces)), free }
    }

    /// Takes room for so many bytes.
    pub fn take(&self, bytes: u64) -> Result<OwnedSemaphorePermit, ApiError> {
        let pieces = if bytes <= self.free { 0 } else { u32::try_from(bytes.div_ceil(PIECE)).unwrap_or(u32::MAX) };
        let full = |_| ApiError::too_many("the server is busy with other large requests");
        Arc::clone(&self.pieces).try_acquire_many_owned(pieces).map_err(full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_are_in_nobody_elses_way() {
        let room = Room::new(4 * PIECE, PIECE);
        let large: Vec<_> = (0..2).map(|_| room.take(2 * PIECE).expect("room")).collect();
        assert!(room.take(PIECE + 1).is_err() && room.take(PIECE).is_ok());
        drop(large);
        assert!(room.take(4 * PIECE).is_ok() && room.take(5 * PIECE).is_err());
    }
}
