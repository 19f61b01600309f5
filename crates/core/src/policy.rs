//! Everything a pipeline decides by, with the defaults that hold where its user said nothing.

use std::time::Duration;

use crate::breakers::BreakerPolicy;
use crate::history;
use crate::proxies::ProxyPolicy;
use crate::replays::AutoReplay;
use crate::results::ResultPolicy;
use crate::retry::RetryPolicy;
use crate::rules::Rule;

/// The policy of one pipeline.
#[derive(Clone, Debug)]
pub struct Policy {
    /// When and how often to try again.
    pub retry: RetryPolicy,
    /// Crashes after which a job is quarantined as a poison pill.
    pub crashes_max: u32,
    /// The user's classification rules, above the built-in ones.
    pub rules: Vec<Rule>,
    /// When the jobs of a failing target wait.
    pub breaker: BreakerPolicy,
    /// The proxies that jobs may take; a pipeline fills in those of its handler.
    pub proxies: ProxyPolicy,
    /// Queued jobs above which an enqueue is refused.
    pub queued_max: Option<u64>,
    /// Dead letters at which an enqueue is refused.
    pub letters_max: Option<u64>,
    /// How long dead letters are kept; `None` keeps them for ever.
    pub retention: Option<Duration>,
    /// How long it is known what became of a job that is done or discarded, and what was counted; `None` means for ever.
    pub history: Option<Duration>,
    /// How results are kept in the store.
    pub results: ResultPolicy,
    /// Which dead letters are replayed by themselves, and when.
    pub auto_replays: Vec<AutoReplay>,
    /// How long a lease lasts unless it is extended.
    pub lease: Duration,
    /// How long one attempt may take, whatever its heartbeat says.
    pub deadline: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            retry: RetryPolicy::default(),
            crashes_max: 3,
            rules: Vec::new(),
            breaker: BreakerPolicy::default(),
            proxies: ProxyPolicy::default(),
            queued_max: None,
            letters_max: None,
            retention: Some(Duration::from_secs(14 * 86_400)),
            history: Some(history::KEPT),
            results: ResultPolicy::default(),
            auto_replays: Vec::new(),
            lease: Duration::from_secs(30),
            deadline: Duration::from_secs(300),
        }
    }
}

/// Limits at which an enqueue is refused. Jobs that fail become dead letters all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of queued jobs.
    pub queued_max: Option<u64>,
    /// Maximum number of dead letters.
    pub letters_max: Option<u64>,
}

/// Which limit refuses an enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// There is no room in the queue.
    Queued {
        /// Jobs queued now.
        queued: u64,
        /// Jobs that may be queued.
        max: u64,
    },
    /// There are too many dead letters.
    Letters {
        /// Dead letters now.
        letters: u64,
        /// Dead letters at which an enqueue is refused.
        max: u64,
    },
}

impl Bounds {
    /// Limits only the number of queued jobs.
    pub const fn of_queue(queued_max: Option<u64>) -> Self {
        Self { queued_max, letters_max: None }
    }

    /// Returns whether there is no limit.
    pub const fn is_empty(self) -> bool {
        self.queued_max.is_none() && self.letters_max.is_none()
    }

    /// Returns the limit that refuses `new` jobs, given the number of queued jobs and of dead letters.
    pub fn exceeded(self, new: u64, (queued, letters): (u64, u64)) -> Option<Exceeded> {
        if new == 0 {
            return None;
        }
        let letters = self.letters_max.filter(|max| letters >= *max).map(|max| Exceeded::Letters { letters, max });
        let is_full = |max: &u64| queued.saturating_add(new) > *max;
        letters.or_else(|| self.queued_max.filter(is_full).map(|max| Exceeded::Queued { queued, max }))
    }
}

impl Policy {
    /// The limits at which an enqueue is refused.
    pub const fn bounds(&self) -> Bounds {
        Bounds { queued_max: self.queued_max, letters_max: self.letters_max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_jobs_are_refused_once_there_are_as_many_letters_as_may_be() {
        let bounds = Bounds { queued_max: Some(10), letters_max: Some(3) };
        assert_eq!(bounds.exceeded(5, (5, 2)), None);
        assert_eq!(bounds.exceeded(1, (0, 3)), Some(Exceeded::Letters { letters: 3, max: 3 }));
        assert_eq!(bounds.exceeded(0, (99, 99)), None, "known jobs need no room");
        assert_eq!(bounds.exceeded(6, (5, 2)), Some(Exceeded::Queued { queued: 5, max: 10 }));
        assert_eq!(Bounds::default().exceeded(u64::MAX, (u64::MAX, u64::MAX)), None);
    }
}
