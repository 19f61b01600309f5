//! What came of a form and stands nowhere else, such as the secret of a new token: kept in memory for a moment by the key of the
//! form, so that who sends it twice, or whose browser did, is shown the same again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use maud::Markup;

/// How long it is kept.
const KEPT_FOR: Duration = Duration::from_secs(120);

/// What was shown a moment ago.
#[derive(Debug, Default)]
pub struct Shown(Mutex<HashMap<String, (Instant, Markup)>>);

impl Shown {
    /// Keeps what came of a form.
    pub fn keep(&self, key: String, what: Markup) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (at, _)| at.elapsed() < KEPT_FOR);
        all.insert(key, (Instant::now(), what));
    }

    /// What came of a form, if that was a moment ago.
    pub fn find(&self, key: &str) -> Option<Markup> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(key).filter(|(at, _)| at.elapsed() < KEPT_FOR).map(|(_, what)| what.clone())
    }
}
