//! When a lane has nothing left to do, and when it waits in vain.

use std::time::Duration;

use redrive_core::ids::PipelineName;
use redrive_core::replays::ReplayState;
use redrive_core::standstill::Standstill;
use redrive_core::time::Timestamp;
use redrive_store::contract::{Lane, ReplayView};

use super::{Fetcher, Supply};
use crate::error::{Error, Waited};
use crate::worker::{Until, overdue};

impl Fetcher {
    /// Whether this lane has jobs, or has not looked for them yet.
    pub(super) fn is_busy(&self) -> bool {
        let has_jobs = !self.local.is_empty() || !self.running.is_empty() || self.settler.outstanding() > 0;
        has_jobs || matches!(self.supply, Supply::Ready)
    }

    /// What was waited for, if nothing has moved, or will move, for as long as is to be waited; also while the pipeline is
    /// held, since what waits for a target cannot show whether the pipeline works. While jobs are still on their way, they
    /// may be waiting for room in the queue: then only what has passed counts.
    pub(super) async fn waited_in_vain(&mut self, until: &Until) -> Result<Option<Waited>, Error> {
        if self.settler.take_requeued() {
            self.stir();
        }
        let (Some(max_wait), Supply::Dry(next_due), Lane::Queue) = (self.patience.max_wait, self.supply, self.lane)
        else {
            return Ok(None);
        };
        let now = self.context.now();
        if until.is_open() {
            // An input that is open and silent is no standstill, and what waits for a target is waited for as long as it is.
            self.moved_at = now;
            return Ok(None);
        }
        if self.settler.take_moved() {
            self.moved_at = now;
        }
        let too_early = |since: Timestamp| !until.may_end() && now.since(since) < max_wait;
        if self.is_busy() || too_early(self.moved_at) {
            return Ok(None);
        }
        let ledger = self.context.redrive.ledger(&self.pipeline.name).await?;
        let before = self.seen.replace(ledger);
        if before.is_none_or(|before| (before.accepted, before.done) != (ledger.accepted, ledger.done)) {
            self.moved_at = now;
        }
        if too_early(self.moved_at) || ledger.open_by_itself() == 0 {
            return Ok(None);
        }
        let mut targets = self.context.redrive.store.list_breakers().await?;
        // What a replay sent waits for itself.
        targets.iter_mut().for_each(|breaker| breaker.held -= breaker.held_of_replays);
        targets.retain(|breaker| breaker.pipeline == self.pipeline.name && breaker.held > 0);
        let queued = u64::try_from(ledger.open_by_itself()).unwrap_or(0);
        let held = targets.iter().map(|breaker| breaker.held).sum();
        let awaits_target = targets.iter().any(|view| view.breaker.awaits_recovery());
        let running = u64::try_from(ledger.leased).unwrap_or(0);
        let (settled_at, paused) = (self.moved_at, self.paused.is_some());
        let stands = Standstill { settled_at, running, held, awaits_target, next_due, paused };
        if !stands.is_in_vain(max_wait, now) {
            return Ok(None);
        }
        if before != Some(ledger) {
            // The last lease may have asked before this came: what it said of the next job is not to be believed.
            self.stir();
            return Ok(None);
        }
        if !max_wait.is_zero() && self.paused.is_none() && self.gave_up().await {
            return Ok(None);
        }
        let (pipeline, since) = (self.pipeline.name.clone(), self.moved_at);
        Ok(Some(Waited { pipeline, queued, since, next_due, targets, paused: self.paused.clone() }))
    }

    /// Makes letters of all jobs that wait for a target that stays away, unless another worker goes on with them. Returns whether there
    /// were any.
    async fn gave_up(&mut self) -> bool {
        let (redrive, id) = (&self.context.redrive, self.context.id);
        if !redrive.is_last_on(&self.pipeline.name, id).await.unwrap_or(false) {
            return false;
        }
        let (lane, ever) = ((&self.pipeline, self.lane), Timestamp::from_millis(0));
        let gave_up = self.pipeline.policy.breaker.hold_max.is_some()
            && overdue::give_up(&self.context, lane, Duration::ZERO, ever).await;
        if gave_up {
            self.stir();
        }
        gave_up
    }

    /// Whether no job of the pipeline is left, here or with any other worker.
    pub(super) async fn is_drained(&self) -> Result<bool, Error> {
        if self.is_busy() {
            return Ok(false);
        }
        match self.lane {
            Lane::Queue if self.replayed.as_ref().is_some_and(|replayed| !replayed.is_cancelled()) => Ok(false),
            Lane::Queue => {
                let ledgers = self.context.redrive.store.ledgers().await?;
                let left = |name: &PipelineName| ledgers.get(name).is_some_and(|ledger| ledger.open_by_itself() != 0);
                // Who may hand on to it has to have come to its end too, unless that is not to be expected.
                let feeds = |name: &PipelineName| left(name) && !self.context.has_given_up(name);
                Ok(!left(&self.pipeline.name) && !self.feeders.iter().any(feeds))
            }
            Lane::Replay(id) => {
                let store = &self.context.redrive.store;
                let fits =
                    |replay: &ReplayView| replay.state == ReplayState::Running && self.pipeline.fits(&replay.pins);
                let Some(replay) = store.get_replay(id).await?.filter(fits) else { return Ok(true) };
                // The rest may belong to pipelines that others know.
                Ok(replay.pipelines.len() > 1 && !store.left_in_replay(id).await?.contains(&self.pipeline.name))
            }
        }
    }
}
