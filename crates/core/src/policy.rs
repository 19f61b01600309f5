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
            retention: Some(Duration::from_secs(14 * 86_400)),
            history: Some(history::KEPT),
            results: ResultPolicy::default(),
            auto_replays: Vec::new(),
            lease: Duration::from_secs(30),
            deadline: Duration::from_secs(300),
        }
    }
}
