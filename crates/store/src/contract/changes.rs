//! Changes: hints that something was changed, by whatever process, so that nobody has to ask again and again.
//!
//! A hint may come late, twice, or for several changes at once; after trouble it may not come at all. Whoever waits for one
//! also looks by itself every few seconds.

use tokio::sync::watch;

use crate::error::{Result, StoreError};

/// Hints about changes.
pub trait ChangeStore {
    /// Listens from now on. The first hint comes at once and is about everything.
    fn changes(&self) -> Changes;
}

/// What a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Jobs moved: accepted, leased, settled, given up, or due at another time.
    Jobs,
    /// Leases that others than their holder ended: its jobs were cancelled.
    Leases,
    /// A target's breaker.
    Breakers,
    /// What people said about causes.
    Causes,
    /// Replays and their letters.
    Replays,
    /// Workers that came, went, or cannot work for now.
    Workers,
    /// Pipelines that were paused or resumed.
    Pipelines,
    /// Alerts that fire or are over, what people said about them, and who was told.
    Alerts,
}

impl Topic {
    /// Every topic.
    pub const ALL: [Self; 8] = [
        Self::Jobs,
        Self::Leases,
        Self::Breakers,
        Self::Causes,
        Self::Replays,
        Self::Workers,
        Self::Pipelines,
        Self::Alerts,
    ];

    /// As it is kept.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Leases => "leases",
            Self::Breakers => "breakers",
            Self::Causes => "causes",
            Self::Replays => "replays",
            Self::Workers => "workers",
            Self::Pipelines => "pipelines",
            Self::Alerts => "alerts",
        }
    }
}

/// The topics of one change, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change(u16);

impl Change {
    /// About everything.
    pub const ALL: Self = Self((1 << Topic::ALL.len()) - 1);

    /// Whether it is about a topic.
    pub const fn is_about(self, topic: Topic) -> bool {
        self.0 & (1 << topic as u16) != 0
    }

    /// Whether it is about any of some topics.
    pub fn is_about_any(self, topics: &[Topic]) -> bool {
        topics.iter().any(|topic| self.is_about(*topic))
    }

    /// Whether it is about nothing.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Adds a topic.
    pub const fn add(&mut self, topic: Topic) {
        self.0 |= 1 << topic as u16;
    }

    /// The topics that it is about.
    pub fn topics(self) -> impl Iterator<Item = Topic> {
        Topic::ALL.into_iter().filter(move |topic| self.is_about(*topic))
    }
}

impl From<Topic> for Change {
    fn from(topic: Topic) -> Self {
        Self(1 << topic as u16)
    }
}

/// How often each topic was rung, and what ended it.
#[derive(Clone, Debug, Default)]
struct Rung {
    counts: [u64; Topic::ALL.len()],
    failure: Option<StoreError>,
}

/// What a backend rings when something has changed. Any number of listeners hear it.
#[derive(Debug)]
pub struct Bell(watch::Sender<Rung>);

impl Default for Bell {
    fn default() -> Self {
        Self(watch::channel(Rung::default()).0)
    }
}

impl Bell {
    /// Tells all who listen of a change.
    pub fn ring(&self, change: Change) {
        self.0.send_if_modified(|rung| {
            for topic in change.topics() {
                rung.counts[topic as usize] += 1;
            }
            !change.is_none()
        });
    }

    /// Tells all who listen that the store cannot be used any more, or that it can again.
    pub fn fail(&self, failure: Option<StoreError>) {
        self.0.send_if_modified(|rung| {
            let news = rung.failure.is_some() != failure.is_some();
            rung.failure = failure;
            news
        });
    }

    /// Whether anybody listens.
    pub fn is_heard(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Begins to listen.
    pub fn listen(&self) -> Changes {
        let rung = self.0.subscribe();
        let heard = rung.borrow().counts;
        Changes { rung, heard, first: true }
    }
}

/// What a listener hears: a stream of changes, of which those that came meanwhile are one.
#[derive(Debug)]
pub struct Changes {
    rung: watch::Receiver<Rung>,
    heard: [u64; Topic::ALL.len()],
    first: bool,
}

impl Changes {
    /// Waits for the next change. It is an error if the store was taken away, or brought to a version that is not understood.
    pub async fn next(&mut self) -> Result<Change> {
        loop {
            let change = self.pending()?;
            if !change.is_none() {
                return Ok(change);
            }
            if self.rung.changed().await.is_err() {
                return Err(StoreError::Closed);
            }
        }
    }

    /// What has changed since the last hint; nothing if nothing has.
    pub fn pending(&mut self) -> Result<Change> {
        let rung = self.rung.borrow_and_update();
        if let Some(failure) = &rung.failure {
            return Err(failure.clone());
        }
        let mut change = if std::mem::take(&mut self.first) { Change::ALL } else { Change::default() };
        for topic in Topic::ALL {
            if rung.counts[topic as usize] != self.heard[topic as usize] {
                change.add(topic);
            }
        }
        self.heard = rung.counts;
        Ok(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_came_meanwhile_is_one_change() {
        let bell = Bell::default();
        assert!(!bell.is_heard());
        let mut changes = bell.listen();
        bell.ring(Topic::Jobs.into());
        assert_eq!(changes.next().await.expect("a change"), Change::ALL, "the first is about everything");
        bell.ring(Topic::Jobs.into());
        bell.ring(Topic::Jobs.into());
        bell.ring(Topic::Replays.into());
        let change = changes.next().await.expect("a change");
        assert_eq!(change.topics().collect::<Vec<_>>(), [Topic::Jobs, Topic::Replays]);
        assert!(changes.pending().expect("nothing wrong").is_none());
        assert!(bell.is_heard());
    }

    #[tokio::test]
    async fn who_listens_hears_that_the_store_was_taken_away() {
        let bell = Bell::default();
        let mut changes = bell.listen();
        changes.next().await.expect("the first");
        bell.fail(Some(StoreError::Gone { place: "a.db".into() }));
        assert!(matches!(changes.next().await, Err(StoreError::Gone { .. })));
        bell.fail(None);
        assert!(changes.pending().expect("it is back").is_none());
        drop(bell);
        assert!(matches!(changes.next().await, Err(StoreError::Closed)));
    }
}
