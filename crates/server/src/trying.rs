//! Tries that run in this process, beside the pages of those who asked for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive::CancellationToken;
use redrive_core::ids::TryId;

use crate::error::ApiError;

/// Tries that run here at once, at most: each reads pages as fast as it can.
const AT_ONCE: usize = 4;

/// How often it is looked whether all of them have ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The tries that run here. Cheap to clone.
#[derive(Clone, Default)]
pub struct Trying(Arc<Mutex<Tries>>);

#[derive(Default)]
struct Tries {
    running: HashMap<TryId, CancellationToken>,
    /// Places of those that are about to begin.
    kept_free: usize,
}

/// Room for a try that is about to begin; free again when this is dropped.
pub struct Room(Trying);

/// A place among them; it is free again when this is dropped.
pub struct Place {
    trying: Trying,
    id: TryId,
    /// Cancelled when somebody wants it to stop.
    pub stop: CancellationToken,
}

impl Trying {
    fn all(&self) -> MutexGuard<'_, Tries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps room for who wants to begin one; refuses it while there are enough.
    pub fn room(&self) -> Result<Room, ApiError> {
        let mut all = self.all();
        if all.running.len() + all.kept_free >= AT_ONCE {
            return Err(ApiError::too_many(format!("{AT_ONCE} tries are under way here already: stop one, or wait")));
        }
        all.kept_free += 1;
        Ok(Room(self.clone()))
    }

    /// Whether one runs here.
    pub fn has(&self, id: TryId) -> bool {
        self.all().running.contains_key(&id)
    }

    /// Waits until none runs here any more.
    pub async fn all_ended(&self) {
        while !self.all().running.is_empty() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Has one stop; says whether it ran here.
    pub fn stop(&self, id: TryId) -> bool {
        let found = self.all().running.get(&id).cloned();
        found.inspect(CancellationToken::cancel).is_some()
    }
}

impl Room {
    /// Begins one there. It stops with `stop`, and when it is told to.
    pub fn enter(self, id: TryId, stop: &CancellationToken) -> Place {
        let (trying, stop) = (self.0.clone(), stop.child_token());
        trying.all().running.insert(id, stop.clone());
        Place { trying, id, stop }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.0.all().kept_free -= 1;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.trying.all().running.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_core::time::Timestamp;

    #[test]
    fn a_try_has_a_place_until_it_is_over() {
        let (trying, stop) = (Trying::default(), CancellationToken::new());
        let id = |n| TryId::new(Timestamp::from_millis(0), n);
        let rooms: Vec<_> = (0..AT_ONCE).map(|_| trying.room().expect("room")).collect();
        assert!(trying.room().is_err(), "also before any of them runs");
        let places: Vec<_> = rooms.into_iter().zip(0..).map(|(room, n)| room.enter(id(n), &stop)).collect();
        assert!(trying.room().is_err() && trying.has(id(1)) && !trying.has(id(9)));
        assert!(trying.stop(id(1)) && places[1].stop.is_cancelled() && !places[2].stop.is_cancelled());
        drop(places);
        assert!(trying.room().is_ok() && !trying.stop(id(1)));
    }
}
