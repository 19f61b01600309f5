//! Chores: what is to be done once in a while by one worker of all. Dead letters that are older than their pipeline keeps them
//! are discarded, with a record; breakers that have nothing more to say, old counts and old replays are forgotten; letters of
//! causes that were split are brought to where they belong; payloads that nothing refers to are removed; the store is tidied up.
//!
//! Each works in bounded steps and looks between them whether this worker still leads. What is led by different leaders is done side
//! by side: a vault that is slow to clear keeps nothing else from being done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redrive_core::actors::Actor;
use redrive_core::clock::WAIT;
use redrive_core::good::PIN_LASTS;
use redrive_core::leader::{RENEW_EVERY, is_due};
use redrive_core::time::Timestamp;
use redrive_store::contract::{
    ExpireDead, FoldCounts, ForgetRecords, ForgetReplays, Led, LookAtClock, LookedAtClock, NoteChore, ReleaseGood, Tidy,
};

use super::context::Context;
use super::{history, leader};
use crate::alerts::Watching;
use crate::engine::Redrive;
use crate::error::Error;
use crate::pipeline::Pipeline;
use crate::vault::Vault;

/// How often most are done.
const MINUTE: Duration = Duration::from_secs(60);

/// How often the vault is cleared, and how long what nothing refers to is spared.
const HOUR: Duration = Duration::from_secs(3_600);

/// At most so many letters go in one transaction.
const BATCH: u32 = 500;

/// At most so many counts are folded in one transaction.
const FOLDED: u32 = 20_000;

/// How long events are counted by the minute.
const MINUTES_KEPT: Duration = Duration::from_secs(6 * 3_600);

/// How long replays that ended, and what people did, are kept.
const HISTORY: Duration = redrive_core::history::KEPT;

/// What is done.
enum Work {
    /// Discards old dead letters of a pipeline.
    Expire(Pipeline),
    /// Forgets breakers of a pipeline that have nothing more to say.
    SweepBreakers(Pipeline),
    /// Removes payloads that nothing refers to.
    Collect(Vault),
    /// Brings letters that were filed by older rules of causes to where they belong.
    Resolve,
    /// Folds what was counted by the minute into hours, once it is old enough.
    Fold,
    /// Lets pipelines go on whose pause is over.
    EndPauses,
    /// Lets go of pages that worked which ended causes held on to.
    ReleaseGood,
    /// Has the store tidy up behind what is written often, and drops answers that are too long together.
    Tidy,
    /// Forgets old replays, and what people did long ago.
    Forget,
    /// Forgets receipts and counts of a pipeline that are over.
    EndHistory(Pipeline),
    /// Judges alerts.
    Judge,
}

/// One chore: by whom it is done, what, and how often.
struct Chore {
    /// Who leads this does it: there is one leader per pipeline and vault, since not every worker knows them all.
    led: String,
    name: &'static str,
    every: Duration,
    work: Work,
}

/// All chores of a worker with these pipelines.
fn chores(pipelines: &[Pipeline], watching: Option<&Watching>) -> Vec<Chore> {
    let of_store = |name, every, work| Chore { led: "store".to_owned(), name, every, work };
    let mut chores = vec![
        of_store("resolve", MINUTE, Work::Resolve),
        of_store("fold counts", MINUTE, Work::Fold),
        of_store("tidy", MINUTE, Work::Tidy),
        of_store("end pauses", MINUTE, Work::EndPauses),
        of_store("release pages", HOUR, Work::ReleaseGood),
        of_store("forget", HOUR, Work::Forget),
    ];
    if let Some(watching) = watching {
        // Not of the store: who leads that may have no thresholds, or those of other pipelines.
        let judged = watching.rules().judged.as_ref();
        let names = judged.into_iter().flatten().map(|name| format!(" {name}"));
        let led = names.fold(judged.map_or("alerts", |_| "alerts of").to_owned(), |led, name| led + &name);
        chores.push(Chore { led, name: "judge", every: MINUTE, work: Work::Judge });
    }
    for pipeline in pipelines {
        let of_pipeline = |name, work| Chore { led: format!("pipeline {}", pipeline.name), name, every: MINUTE, work };
        chores.push(of_pipeline("expire", Work::Expire(pipeline.clone())));
        chores.push(of_pipeline("sweep breakers", Work::SweepBreakers(pipeline.clone())));
        chores.push(of_pipeline("end history", Work::EndHistory(pipeline.clone())));
    }
    let vaults: BTreeMap<_, _> =
        pipelines.iter().filter_map(|p| p.vault.clone()).map(|v| (v.address().to_owned(), v)).collect();
    chores.extend(vaults.into_iter().map(|(address, vault)| {
        let (led, work) = (format!("vault {address}"), Work::Collect(vault));
        Chore { led, name: "collect", every: HOUR, work }
    }));
    chores
}

pub(super) async fn run(context: Arc<Context>, pipelines: Vec<Pipeline>) {
    let mut by_led: BTreeMap<String, Vec<Chore>> = BTreeMap::new();
    for chore in chores(&pipelines, context.redrive.alerts.watching().as_deref()) {
        by_led.entry(chore.led.clone()).or_default().push(chore);
    }
    let names: Vec<_> = by_led.keys().cloned().collect();
    // At once, so that a short run does its share.
    leader::ask(&context, &names).await;
    let all = join_all(by_led.values().map(|chores| do_all(&context, chores)));
    tokio::join!(leader::run(Arc::clone(&context), names), all);
}

/// Does the chores that one leader has, one after the other, as each is due.
async fn do_all(context: &Context, chores: &[Chore]) {
    // When each was last begun, by whomever: nobody asks for it before its time.
    let mut begun_at: Vec<Option<Timestamp>> = vec![None; chores.len()];
    loop {
        for (chore, begun_at) in chores.iter().zip(&mut begun_at) {
            if begun_at.is_some_and(|begun_at| !is_due(Some(begun_at), chore.every, context.now())) {
                continue;
            }
            match (Shift { context, chore }).begin().await {
                Ok(begun) => *begun_at = begun,
                Err(error) => {
                    tracing::warn!(%error, led = %chore.led, chore = chore.name, "a chore could not be done");
                }
            }
        }
        context.redrive.clock.sleep(RENEW_EVERY).await;
    }
}

/// A chore being done.
struct Shift<'a> {
    context: &'a Context,
    chore: &'a Chore,
}

impl Shift<'_> {
    /// Whether it is still for this worker to go on.
    fn goes_on(&self) -> bool {
        let leads = self.context.leads.term(&self.chore.led, self.context.now()).is_some();
        leads && !self.context.stop.is_cancelled()
    }

    /// The right to go on, for the store to check: another may have come to lead while this worker slept.
    fn led(&self) -> Option<Led> {
        let name = self.chore.led.clone();
        // A term that is over is none that anybody has.
        let term = self.context.leads.term(&name, self.context.now()).unwrap_or_default();
        Some(Led { name, term })
    }

    /// Does the chore if this worker leads and it is due; says when it was last begun, if this worker leads.
    async fn begin(&self) -> Result<Option<Timestamp>, Error> {
        let (now, Chore { led, name, every, .. }) = (self.context.now(), self.chore);
        // Whoever makes way, or ends, leaves it to who comes: what is noted counts as done.
        let Some(term) = self.context.leads.term(led, now).filter(|_| self.goes_on()) else { return Ok(None) };
        let store = &self.context.redrive.store;
        let begun = store.list_chores(led.clone()).await?;
        let was = begun.iter().find(|begun| begun.name == *name).map(|begun| begun.last_run);
        let due = is_due(was, *every, now);
        if !due && was.is_some() {
            return Ok(was);
        }
        let note = NoteChore { led: led.clone(), term, name: (*name).to_owned(), was, now };
        if !store.note_chore(note).await? {
            return Ok(None);
        }
        if due {
            self.work().await?;
        }
        Ok(Some(now))
    }

    /// Takes steps while there are more, and this worker is to go on.
    async fn step_by_step<E: Into<Error>, F>(&self, step: impl Fn() -> F) -> Result<(), Error>
    where
        F: Future<Output = Result<bool, E>>,
    {
        while self.goes_on() && step().await.map_err(Into::into)? {}
        Ok(())
    }

    async fn work(&self) -> Result<(), Error> {
        let redrive = &self.context.redrive;
        let Redrive { store, breakers, .. } = redrive;
        match &self.chore.work {
            Work::Expire(pipeline) => self.expire(pipeline).await,
            Work::SweepBreakers(pipeline) => {
                let (policy, now) = (&pipeline.policy.breaker, self.context.now());
                Ok(breakers.sweep(&**store, &pipeline.name, policy, now, || self.goes_on()).await?)
            }
            Work::Collect(vault) => {
                let collected = vault.collect_while(HOUR, &Actor::redrive(), || self.goes_on()).await?;
                tracing::debug!(?collected, "vault cleared");
                Ok(())
            }
            Work::Resolve => self.step_by_step(|| redrive.resolve_letters()).await,
            Work::Fold => {
                let before = self.context.now() - MINUTES_KEPT;
                let params = || FoldCounts { before, limit: BATCH, led: self.led() };
                self.step_by_step(|| store.fold_counts(params())).await
            }
            Work::EndPauses => redrive.end_pauses().await,
            Work::ReleaseGood => {
                let Some(by) = expires_by(self.context).await else { return Ok(()) };
                let params = || ReleaseGood { led: self.led(), before: by - PIN_LASTS, limit: BATCH };
                self.step_by_step(|| store.release_good(params())).await
            }
            Work::Tidy => {
                self.step_by_step(|| redrive.shorten_answers()).await?;
                self.step_by_step(|| self.tidy()).await
            }
            Work::EndHistory(pipeline) => {
                let Some(by) = expires_by(self.context).await else { return Ok(()) };
                self.step_by_step(|| history::forget(redrive, pipeline, by, self.led())).await
            }
            Work::Judge => match redrive.alerts.watching() {
                Some(watching) => redrive.judge_alerts(&watching).await,
                None => Ok(()),
            },
            Work::Forget => {
                self.step_by_step(|| redrive.forget_some_tries()).await?;
                self.step_by_step(|| redrive.forget_alerts()).await?;
                let Some(before) = expires_by(self.context).await.map(|by| by - HISTORY) else { return Ok(()) };
                let records = || ForgetRecords { before, limit: BATCH, led: self.led() };
                self.step_by_step(|| store.forget_records(records())).await?;
                let replays = || ForgetReplays { before, limit: BATCH, led: self.led() };
                self.step_by_step(|| store.forget_replays(replays())).await
            }
        }
    }

    /// Says whether there is more.
    async fn tidy(&self) -> Result<bool, Error> {
        let tidied = self.context.redrive.store.tidy(Tidy { limit: FOLDED, led: self.led() }).await?;
        for table in &tidied.cleared {
            tracing::debug!(table, "dead rows cleared away");
        }
        for refused in &tidied.refused {
            tracing::warn!(refused, "the store could not be tidied up");
        }
        Ok(tidied.more)
    }

    async fn expire(&self, pipeline: &Pipeline) -> Result<(), Error> {
        let (Some(kept), Some(by)) = (pipeline.policy.retention, expires_by(self.context).await) else { return Ok(()) };
        let step = || async move {
            let (name, now) = (pipeline.name.clone(), self.context.now());
            let params = ExpireDead { pipeline: name, before: by - kept, limit: BATCH, led: self.led(), now };
            let expired = self.context.redrive.store.expire_dead(params).await?;
            if expired > 0 {
                tracing::info!(pipeline = %pipeline.name, expired, "dead letters discarded by retention");
            }
            Ok::<_, Error>(expired >= u64::from(BATCH))
        };
        self.step_by_step(step).await
    }
}

/// The time by which things expire: not that of a clock that has just jumped. Nothing if it could not be asked.
pub(super) async fn expires_by(context: &Context) -> Option<Timestamp> {
    let redrive = &context.redrive;
    let look = LookAtClock { now: context.now(), uptime: redrive.clock.uptime() };
    match redrive.store.look_at_clock(look).await {
        Ok(looked) => {
            heed_jump(&looked);
            Some(looked.seen.expires_by())
        }
        Err(error) => {
            tracing::warn!(%error, "the clock could not be checked, so nothing is discarded for its age");
            None
        }
    }
}

/// Tells of a clock that went ahead since it was last looked at.
pub(super) fn heed_jump(looked: &LookedAtClock) {
    if let Some(by) = looked.jumped {
        let hours = WAIT.as_secs() / 3_600;
        tracing::warn!(
            ?by,
            "the clock went ahead by more than a day since it was last looked at: it may have been wrong, so \
             nothing that became old by that is discarded for {hours} hours"
        );
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::ids::WorkerId;
    use serde_json::json;

    use super::*;
    use crate::handler::Job;

    #[tokio::test]
    #[cfg_attr(not(feature = "s3"), ignore = "needs the feature s3")]
    async fn what_is_led_has_no_credentials_in_its_name() {
        let redrive = Redrive::open("memory:").await.expect("opened");
        let address = "s3://the-id:pl4nted-s3cret@bucket/prefix?token=pl4nted-s3cret";
        let vault = Vault::open_with(address, &redrive, []).expect("a vault");
        let pipeline = Pipeline::new("p", |_: Job| async { Ok(json!(1)) }).expect("a pipeline").vault(vault.clone());
        let led: Vec<_> = chores(&[pipeline], None).into_iter().map(|chore| chore.led).collect();
        assert!(led.iter().any(|led| led.starts_with("vault s3://***@bucket/prefix")), "{led:?}");
        assert!(!format!("{led:?} {vault:?}").contains("pl4nted"));
    }

    /// What is noted counts as done: who makes way notes nothing.
    #[tokio::test]
    async fn who_makes_way_begins_no_chore() {
        let redrive = Redrive::open("memory:").await.expect("opened");
        let pipelines = vec![Pipeline::new("p", |_: Job| async { Ok(json!(1)) }).expect("a pipeline")];
        let context = Context::new(redrive.clone(), WorkerId::new(redrive.now(), 1), &pipelines);
        let chore = chores(&pipelines, None).into_iter().find(|chore| chore.name == "expire").expect("there is one");
        leader::ask(&context, std::slice::from_ref(&chore.led)).await;
        let begun = async || Shift { context: &context, chore: &chore }.begin().await.expect("answered").is_some();
        context.stop.cancel();
        assert!(!begun().await);
        assert!(redrive.store.list_chores(chore.led.clone()).await.expect("listed").is_empty());
        let next = context.successor(context.id, &pipelines);
        leader::ask(&next, std::slice::from_ref(&chore.led)).await;
        assert!(Shift { context: &next, chore: &chore }.begin().await.expect("answered").is_some());
    }
}
