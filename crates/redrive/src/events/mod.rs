//! One stream of what happens in this process: progress, logs and whatever else listens read the same events.
//!
//! Nobody who works waits for who listens: events are hints. A listener that is slow misses some and is told how many; what
//! must be exact is read from the store. Without a listener an event costs nothing but its line in the log, if that is wanted.
//!
//! - `happening`: what can happen
//! - `log`: the lines that are logged of it

mod happening;
mod log;

use std::sync::Arc;

use redrive_core::ids::WorkerId;
use redrive_core::time::Timestamp;
use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

pub use self::happening::Happening;

/// Events that a listener may be behind before it misses some.
const BEHIND_MAX: usize = 4_096;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// In which worker, if it was in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    /// What.
    #[serde(flatten)]
    pub what: Happening,
}

/// What a listener hears.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// An event.
    Event(Arc<Event>),
    /// So many events were missed, because it was too slow for them.
    Missed(u64),
}

/// The stream. Cheap to clone: all clones are one stream.
#[derive(Clone, Debug)]
pub struct Events(broadcast::Sender<Arc<Event>>);

impl Default for Events {
    fn default() -> Self {
        Self(broadcast::Sender::new(BEHIND_MAX))
    }
}

impl Events {
    /// Listens to everything that happens from now on.
    pub fn listen(&self) -> Listener {
        Listener(self.0.subscribe())
    }

    /// Tells what happened, here or where somebody works for a server. Never waits.
    pub fn tell(&self, at: Timestamp, worker: Option<WorkerId>, what: Happening) {
        let event = Event { at, worker, what };
        log::line(&event);
        // Nobody listens: nobody is told.
        let _ = self.0.send(Arc::new(event));
    }

    /// The same for what happens with every job: it is made only if somebody wants it.
    pub(crate) fn tell_often(&self, at: Timestamp, worker: Option<WorkerId>, what: impl FnOnce() -> Happening) {
        if self.wants_jobs() {
            self.tell(at, worker, what());
        }
    }

    /// Whether anybody wants to hear of every job.
    pub(crate) fn wants_jobs(&self) -> bool {
        self.0.receiver_count() > 0 || log::wants_jobs()
    }
}

/// Who listens.
#[derive(Debug)]
pub struct Listener(broadcast::Receiver<Arc<Event>>);

impl Listener {
    /// The next event; nothing once nobody is left who could tell any.
    pub async fn next(&mut self) -> Option<Heard> {
        match self.0.recv().await {
            Ok(event) => Some(Heard::Event(event)),
            Err(RecvError::Lagged(missed)) => Some(Heard::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }

    /// Passes over what was told and not heard yet, and says how many events that were.
    pub fn skip(&mut self) -> u64 {
        let mut events = 0;
        loop {
            match self.0.try_recv() {
                Ok(_) => events += 1,
                Err(TryRecvError::Lagged(missed)) => events += missed,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return events,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(events: &Events) {
        events.tell(Timestamp::from_millis(0), None, Happening::VaultBack { vault: "v".into() });
    }

    #[tokio::test]
    async fn a_slow_listener_misses_events_and_is_told_how_many() {
        let events = Events::default();
        back(&events);
        let (mut slow, mut other) = (events.listen(), events.listen());
        for _ in 0..BEHIND_MAX + 3 {
            back(&events);
        }
        assert_eq!(slow.next().await, Some(Heard::Missed(3)), "and what came before it listened is not missed");
        assert!(matches!(slow.next().await, Some(Heard::Event(_))));
        assert_eq!(other.skip(), BEHIND_MAX as u64 + 3);
        assert_eq!(other.skip(), 0);
        drop(events);
        assert_eq!(other.next().await, None);
    }

    #[test]
    fn what_happens_often_is_not_made_for_nobody() {
        let events = Events::default();
        events.tell_often(Timestamp::from_millis(0), None, || panic!("nobody listens"));
        let mut listener = events.listen();
        events.tell_often(Timestamp::from_millis(0), None, || Happening::VaultBack { vault: "v".into() });
        assert_eq!(listener.skip(), 1);
    }

    #[test]
    fn an_event_is_one_flat_object() {
        let what = Happening::VaultBack { vault: "s3://b".into() };
        let event = Event { at: Timestamp::from_millis(0), worker: None, what };
        let expected = serde_json::json!({"at": Timestamp::from_millis(0), "event": "vault_back", "vault": "s3://b"});
        assert_eq!(serde_json::to_value(event).expect("JSON"), expected);
    }
}
