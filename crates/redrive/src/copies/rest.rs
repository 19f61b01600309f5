//! Bringing a store to rest: nobody works on it, nothing is leased, and nothing can be written to it until the copy ends.

use std::time::Duration;

use redrive_core::copies::CopyNote;
use redrive_core::crashes::{LostLease, judge};
use redrive_core::ids::{PipelineName, WorkerId};
use redrive_core::policy::Policy;
use redrive_core::settlements::{Ending, Settlement};
use redrive_core::time::Timestamp;
use redrive_core::workers::{LastBeat, SILENT_AFTER, Silences};
use redrive_store::contract::{FindLostLeases, SettleJobs, WorkerView};

use super::{CopyError, CopyProgress, Side};
use crate::Redrive;
use crate::error::Error;

/// How often workers of which nothing is proven are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Leases that are given back at once.
const BATCH: u32 = 500;

/// A time at which every lease has run out.
const AFTER_ALL: Timestamp = Timestamp::from_millis(i64::MAX / 2);

impl Side {
    /// Takes back what is leased and marks the store; says how many leases there were. Refused while anybody works.
    pub(super) async fn bring_to_rest(
        &self,
        note: CopyNote,
        shown: &mut (impl FnMut(CopyProgress) + Send),
    ) -> Result<u64, Error> {
        self.refuse_workers(shown).await?;
        let given_back = self.redrive.give_back_leases().await?;
        let id = note.id;
        self.redrive.store.begin_copy_from(note).await?;
        // Whoever began in between has no lease, and gets none any more.
        let began = self.at_work(&[]).await?;
        if !began.is_empty() {
            let by = redrive_core::actors::Actor::new("redrive", redrive_core::actors::Via::Automatic);
            self.release(id, &by).await?;
            return Err(self.worked_on(&began));
        }
        Ok(given_back)
    }

    /// Refuses to go on while anybody works. A worker of which nothing but its heartbeats is known is watched until it has been silent
    /// for long enough, or sends another.
    pub(super) async fn refuse_workers(&self, shown: &mut (impl FnMut(CopyProgress) + Send)) -> Result<(), Error> {
        let (mut silences, mut silent, mut watched) = (Silences::default(), Vec::new(), Duration::ZERO);
        let mut first: Option<Vec<LastBeat>> = None;
        loop {
            let at_work = self.at_work(&silent).await?;
            let unproven: Vec<LastBeat> = at_work.iter().filter_map(WorkerView::unproven_beat).collect();
            if at_work.is_empty() {
                return Ok(());
            }
            let lives = |beat: &LastBeat| first.as_ref().is_some_and(|first| !first.contains(beat));
            if unproven.len() < at_work.len() || unproven.iter().any(lives) || watched > SILENT_AFTER * 2 {
                return Err(self.worked_on(&at_work));
            }
            if first.is_none() {
                shown(CopyProgress::Watching(at_work.iter().map(name).collect()));
            }
            first.get_or_insert_with(|| unproven.clone());
            silent.extend(silences.look(unproven, LOOK_EVERY).into_iter().map(|beat| beat.worker));
            self.redrive.clock.sleep(LOOK_EVERY).await;
            watched += LOOK_EVERY;
        }
    }

    fn worked_on(&self, workers: &[WorkerView]) -> Error {
        CopyError::AtWork { place: self.place.clone(), workers: workers.iter().map(name).collect() }.into()
    }

    /// The workers that are to be reckoned with, but for those that were silent.
    async fn at_work(&self, silent: &[WorkerId]) -> Result<Vec<WorkerView>, Error> {
        let now = self.redrive.now();
        let all = self.redrive.store.list_workers().await?;
        Ok(all.into_iter().filter(|worker| worker.is_at_work(now) && !silent.contains(&worker.id)).collect())
    }
}

impl Redrive {
    /// Gives every lease back: the attempts under way count as ended, and nobody is to blame.
    pub(crate) async fn give_back_leases(&self) -> Result<u64, Error> {
        let store = &self.store;
        let pipelines: Vec<PipelineName> = store.ledgers().await?.into_keys().collect();
        let worker = WorkerId::new(self.now(), self.chance.bits());
        let mut given_back = 0;
        loop {
            let params =
                FindLostLeases { pipelines: pipelines.clone(), silent: Vec::new(), limit: BATCH, now: AFTER_ALL };
            let lost = store.lost_leases(params).await?;
            if lost.is_empty() {
                return Ok(given_back);
            }
            given_back += lost.len() as u64;
            let (rules, now) = (self.known_rules().await, self.now());
            let ending = Ending { at: now, duration: None, worker: None, chance: 0.0 };
            let settle = |lost: &LostLease| {
                let blameless = LostLease { worker_gone: false, ..lost.clone() };
                Settlement::new(&lost.job, judge(&Policy::default(), &blameless, ending), &rules)
            };
            let settlements = lost.iter().map(settle).collect();
            let params = SettleJobs { settlements, worker, breakers: Vec::new(), keep_late: false, now };
            store.settle(params).await?;
        }
    }
}

/// A worker in words: where it is, and what it works on.
fn name(worker: &WorkerView) -> String {
    let pipelines: Vec<_> = worker.runs.iter().map(|runs| runs.pipeline.as_str()).collect();
    let of = if pipelines.is_empty() { String::new() } else { format!(" ({})", pipelines.join(", ")) };
    format!("process {} on {}{of}", worker.pid, worker.host)
}
