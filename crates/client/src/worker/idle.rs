//! When a lane has nothing left to do, and when it waits in vain: decided as by a worker beside the store, on what the server says.

use redrive::clock::{Clock, SystemClock};
use redrive::contract::ReplayView;
use redrive::replays::ReplayRef;
use redrive::status::Status;
use redrive::worker::Until;
use redrive::{Error, Waited};
use redrive_core::ids::{PipelineName, ReplayId};
use redrive_core::replays::ReplayState;
use redrive_core::standstill::Standstill;

use super::Operation;
use super::lane::Lane;
use super::lease;

impl Lane {
    /// Whether nothing is left to do. It is an error if it was waited for in vain.
    pub(super) async fn is_over(&mut self, until: &Until, open: u64) -> Result<bool, Error> {
        match self.shared.only {
            Some(Operation::Try(_)) => return Ok(open == 0),
            Some(Operation::Replay(id)) => return self.is_through(id).await,
            None => {}
        }
        if matches!(until, Until::Stopped) {
            return Ok(false);
        }
        let status = self.desk.status().await?;
        if until.may_end() && self.is_drained(&status).await? {
            return Ok(true);
        }
        match self.waited_in_vain(status, until) {
            Some(waited) if waited.paused.is_some() || !self.gave_up().await? => {
                Err(Error::WaitedInVain(Box::new(waited)))
            }
            _ => Ok(false),
        }
    }

    /// Has the server make letters of all jobs that wait for a target that stays away; says whether there were any.
    async fn gave_up(&self) -> Result<bool, Error> {
        let mut any = false;
        while self.shared.max_wait.is_some_and(|max_wait| !max_wait.is_zero()) {
            let letters = lease::give_up(&self.shared, self.pipeline.name()).await?;
            if letters.is_empty() {
                break;
            }
            any = true;
            self.shared.done.note_given_up(letters);
        }
        Ok(any)
    }

    /// Whether nothing of a replay is left to do here: it has ended, it rests, or what is left is of pipelines that others know.
    async fn is_through(&self, id: ReplayId) -> Result<bool, Error> {
        let ReplayView { state, .. } = self.desk.find_replay(ReplayRef::Id(id)).await?;
        if state.is_over() || matches!(state, ReplayState::Paused | ReplayState::Cancelling) {
            return Ok(true);
        }
        let left = self.desk.left_in_replay(id).await?;
        Ok(!left.is_empty() && !left.contains(self.pipeline.name()))
    }

    /// Whether no job of the pipeline is left, here or with any other worker, and none may come of others.
    async fn is_drained(&self, status: &Status) -> Result<bool, Error> {
        let left = |name: &PipelineName| status.pipelines.get(name).is_some_and(|ledger| ledger.open_by_itself() != 0);
        let feeds = |name: &PipelineName| left(name) && !self.shared.given_up().contains(name);
        if left(self.pipeline.name()) || self.feeders.iter().any(feeds) {
            return Ok(false);
        }
        if !self.shared.replays {
            return Ok(true);
        }
        for replay in &status.replays {
            let ours = replay.pipelines.contains(self.pipeline.name()) && self.pipeline.fits(&replay.pins);
            let goes_on = matches!(replay.state, ReplayState::Preparing | ReplayState::Running);
            if ours && goes_on && !self.is_through(replay.id).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What was waited for, if nothing has moved, or will move, for as long as is to be waited.
    fn waited_in_vain(&mut self, status: Status, until: &Until) -> Option<Waited> {
        let (max_wait, now) = (self.shared.max_wait?, SystemClock.now());
        if until.is_open() {
            // An input that is open and silent is no standstill.
            self.moved_at = now;
            return None;
        }
        let name = self.pipeline.name().clone();
        let ledger = status.pipelines.get(&name).copied().unwrap_or_default();
        let before = self.seen.replace(ledger);
        if before.is_none_or(|before| (before.accepted, before.done) != (ledger.accepted, ledger.done)) {
            self.moved_at = now;
        }
        let too_early = !until.may_end() && now.since(self.moved_at) < max_wait;
        if too_early || ledger.open_by_itself() == 0 {
            return None;
        }
        let mut targets = status.breakers;
        // What a replay sent waits for itself.
        targets.iter_mut().for_each(|breaker| breaker.held -= breaker.held_of_replays);
        targets.retain(|breaker| breaker.pipeline == name && breaker.held > 0);
        let queued = u64::try_from(ledger.open_by_itself()).unwrap_or(0);
        let held = targets.iter().map(|breaker| breaker.held).sum();
        let awaits_target = targets.iter().any(|view| view.breaker.awaits_recovery());
        let running = u64::try_from(ledger.leased).unwrap_or(0);
        let (next_due, paused) = (self.next_due, status.pauses.get(&name).cloned());
        let (settled_at, is_paused) = (self.moved_at, paused.is_some());
        let stands = Standstill { settled_at, running, held, awaits_target, next_due, paused: is_paused };
        // The last lease may have asked before this came: what it said of the next job is not to be believed.
        let is_in_vain = stands.is_in_vain(max_wait, now) && before == Some(ledger);
        is_in_vain.then_some(Waited { pipeline: name, queued, since: self.moved_at, next_due, targets, paused })
    }
}
