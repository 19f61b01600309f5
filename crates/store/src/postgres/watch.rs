//! Noticing that a connection has gone silent: its peer vanished, or something on the way takes what is sent and forwards nothing.
//!
//! The network's own means notice a machine that is gone; they do not notice a proxy that still answers for one. So who waits for
//! long looks from another connection whether the server is at work on what was asked. A statement may take as long as it needs.

use std::pin::pin;
use std::time::{Duration, Instant};

use super::connect::Target;
use super::fault::Fault;

/// After so long without an answer it is looked whether the server is at work, again and again.
const LOOK_AFTER: Duration = Duration::from_secs(10);

/// A look may take so long.
const LOOK_MAX: Duration = Duration::from_secs(10);

/// If no look can tell, it is waited for so long.
const UNTOLD_MAX: Duration = Duration::from_secs(60);

/// Looks after one connection.
pub(super) struct Watch {
    target: Target,
    /// Under which name the server knows the connection.
    name: String,
    is_pooled: bool,
}

/// What a look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// The server works on what was asked.
    AtWork,
    /// The server is not reached, or has nothing to do: what was asked or answered is lost.
    Lost,
    /// It cannot be told.
    Untold,
}

impl Watch {
    pub(super) const fn new(target: Target, name: String, is_pooled: bool) -> Self {
        Self { target, name, is_pooled }
    }

    /// Connects to its server again.
    pub(super) const fn target(&self) -> &Target {
        &self.target
    }

    /// Waits for an answer; nothing if none will come.
    pub(super) async fn answer<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        let mut answer = pin!(answer);
        let mut told = Instant::now();
        loop {
            if let Ok(answer) = tokio::time::timeout(LOOK_AFTER, &mut answer).await {
                return Some(answer);
            }
            let found = tokio::select! {
                biased;
                answer = &mut answer => return Some(answer),
                found = self.look() => found,
            };
            match found {
                Found::AtWork => told = Instant::now(),
                Found::Untold if told.elapsed() < UNTOLD_MAX => {}
                Found::Lost | Found::Untold => {
                    tracing::warn!(place = self.target.place, "a connection has gone silent; another is made");
                    return None;
                }
            }
        }
    }

    async fn look(&self) -> Found {
        match tokio::time::timeout(LOOK_MAX, self.ask()).await {
            Ok(Ok(found)) => found,
            // Who refuses a connection is there.
            Ok(Err(fault)) if fault.is_said() => Found::Untold,
            Ok(Err(_)) => Found::Lost,
            // A pooler lets wait those for whom it has no connection.
            Err(_) if self.is_pooled => Found::Untold,
            Err(_) => Found::Lost,
        }
    }

    async fn ask(&self) -> Result<Found, Fault> {
        let sql = format!(
            "SELECT CASE WHEN state = 'active' AND wait_event_type IS DISTINCT FROM 'Client' THEN 'at work'
                         WHEN state LIKE 'idle%' AND clock_timestamp() - state_change > interval '5 s' THEN state END
             FROM pg_stat_activity WHERE application_name LIKE '{}%'",
            self.name
        );
        let seen = self.target.ask_apart(&sql).await?;
        let is = |state: &str| seen.iter().any(|seen| seen.as_deref() == Some(state));
        // A pooler leaves the name of who used a connection last on it.
        let is_idle = is("idle in transaction") || is("idle in transaction (aborted)") || is("idle") && !self.is_pooled;
        // A server knows every connection that it has. Of several servers another may have been asked, and of a pooler's any.
        let is_gone = seen.is_empty() && !self.is_pooled && self.target.is_one_server();
        Ok(match is("at work") {
            true => Found::AtWork,
            false if is_idle || is_gone => Found::Lost,
            false => Found::Untold,
        })
    }
}
