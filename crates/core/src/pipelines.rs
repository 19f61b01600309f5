//! Pipelines that people pause: nothing of them is leased, by any worker of any process, until somebody resumes them. What runs
//! comes to its end, and what is enqueued waits.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::actors::Actor;
use crate::time::Timestamp;

/// Why a pipeline rests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Who paused it.
    pub by: Actor,
    /// Why, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Since when.
    pub since: Timestamp,
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "paused by {} since {}", self.by.name, self.since)?;
        match &self.why {
            Some(why) => write!(f, ": {why}"),
            None => Ok(()),
        }
    }
}

/// The pause of a pipeline after somebody asked for one. Who pauses what is paused has the last word on why; it rests since the
/// first.
pub fn paused(known: Option<&Pause>, by: &Actor, why: Option<String>, now: Timestamp) -> Pause {
    let since = known.map_or(now, |known| known.since);
    let why = why.or_else(|| known.and_then(|known| known.why.clone()));
    Pause { by: by.clone(), why, since }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::Via;

    #[test]
    fn who_pauses_again_has_the_last_word_but_not_the_first_hour() {
        let at = Timestamp::from_millis;
        let (ada, bob) = (Actor::new("ada", Via::Cli), Actor::new("bob", Via::Cli));
        let first = paused(None, &ada, Some("the shop moves".into()), at(1_000));
        assert_eq!(first.to_string(), "paused by ada since 1970-01-01T00:00:01.000Z: the shop moves");
        let again = paused(Some(&first), &bob, None, at(9_000));
        assert_eq!((again.by.name.as_str(), again.since, again.why), ("bob", at(1_000), first.why));
    }
}
