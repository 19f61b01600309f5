//! The next step of a replay. What it is is decided by `core::replays::next` on the replay as it was read; the store writes it only
//! if the replay is still so. Any number of processes take steps of one replay.

use std::collections::BTreeSet;

use redrive_core::actors::Actor;
use redrive_core::causes::Print;
use redrive_core::ids::PipelineName;
use redrive_core::jobs::Origin;
use redrive_core::replays::{
    Advance, CHOSEN_AT_ONCE_MAX, NextReplay, ReplayState, Sent, Step, StepChange, next, outgoing, sent, withdrawn,
};
use redrive_core::retry::RetryPolicy;
use redrive_core::time::Timestamp;
use redrive_store::Result as StoreResult;
use redrive_store::contract::{
    ListPending, ListSent, PendingLetter, ReleaseLetters, ReplayView, SendLetter, SendLetters, SentLetter, SetReplay,
    WithdrawLetter, WithdrawLetters,
};

use super::prepare::choose;
use crate::engine::Redrive;
use crate::error::Error;
use crate::events::Happening;
use crate::pipeline::Pipeline;

/// The pipelines that a driver knows: it sends their letters, and takes them back.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) pipelines: &'a [Pipeline],
    /// Whether letters of others are taken back too, as the default policy has it.
    pub(crate) alone: bool,
}

/// What a step came to.
pub(crate) enum Stepped {
    /// Something was done, here or by another driver: there may be a next step. Says what is to be told of it.
    On(Option<Happening>),
    /// There is nothing to do, until something changes or until then.
    Wait(Option<Timestamp>),
}

impl Redrive {
    /// Takes the steps of a replay that there are to take, for who works on these pipelines and cannot do so itself; says when there may
    /// be others.
    pub async fn advance_replay(
        &self,
        mut replay: ReplayView,
        pipelines: &[Pipeline],
    ) -> Result<Option<Timestamp>, Error> {
        let known = Known { pipelines, alone: false };
        loop {
            match step(self, known, &replay).await? {
                Stepped::Wait(until) => return Ok(until),
                Stepped::On(told) => {
                    told.into_iter().for_each(|what| self.events.tell(self.now(), None, what));
                    let Some(next) = self.store.get_replay(replay.id).await? else { return Ok(None) };
                    replay = next;
                }
            }
        }
    }
}

/// Takes the next step of a replay, if there is one.
pub(crate) async fn step(redrive: &Redrive, known: Known<'_>, replay: &ReplayView) -> StoreResult<Stepped> {
    let now = redrive.now();
    if !replay.is_open() {
        return Ok(Stepped::Wait(None));
    }
    let advance = next(replay.state, &replay.pacing, &replay.progress, now);
    tracing::debug!(replay = %replay.id, ?advance, "replay");
    match advance {
        Advance::Wait(until) => return Ok(Stepped::Wait(until)),
        Advance::Choose => choose(redrive.store.as_ref(), replay, now).await?,
        Advance::Send { letters, step } => return send(redrive, known, replay, (letters, step), now).await,
        Advance::Pause(why) => {
            let next = NextReplay::paused_itself(why.clone(), &replay.progress);
            return set(redrive, replay, next, Happening::ReplayPaused { replay: replay.id, why }, now).await;
        }
        Advance::Release => {
            let params = ReleaseLetters { id: replay.id, limit: CHOSEN_AT_ONCE_MAX, now };
            redrive.store.release_letters(params).await?;
        }
        Advance::Withdraw => return withdraw(redrive, known, replay, now).await,
        Advance::Finish => return finish(redrive, replay, now).await,
    }
    Ok(Stepped::On(None))
}

async fn send(
    redrive: &Redrive,
    known: Known<'_>,
    replay: &ReplayView,
    (letters, step): (u32, Step),
    now: Timestamp,
) -> StoreResult<Stepped> {
    let fits = |pipeline: &Pipeline, name: &PipelineName| pipeline.name == *name && pipeline.fits(&replay.pins);
    let mine = |name: &&PipelineName| known.pipelines.iter().any(|pipeline| fits(pipeline, name));
    let pipelines: BTreeSet<_> = replay.pipelines.iter().filter(mine).cloned().collect();
    let limit = letters.min(CHOSEN_AT_ONCE_MAX);
    let pending = redrive.store.list_pending(ListPending { id: replay.id, pipelines, limit }).await?;
    if pending.is_empty() {
        // What is left belongs to pipelines that others know, or have in the version that it is planned with.
        return Ok(Stepped::Wait(None));
    }
    let (to, free_at) = sent(&replay.pacing, &replay.progress, step, pending.len() as u64, now);
    let mut params = SendLetters {
        id: replay.id,
        was: replay.version,
        letters: Vec::with_capacity(pending.len()),
        gone: Vec::new(),
        step: StepChange { from: replay.progress.step, to },
        free_at,
        now,
    };
    for letter in pending {
        let job = letter.job;
        match ready(letter, replay) {
            Some(letter) => params.letters.push(letter),
            None => params.gone.push(job),
        }
    }
    let letters = u32::try_from(params.letters.len()).unwrap_or(u32::MAX);
    let heard = redrive.store.send_letters(params).await?;
    let told = Happening::ReplaySent { replay: replay.id, letters, step: step.number };
    Ok(Stepped::On(heard.then_some(told)))
}

/// A letter as it is sent; nothing if it is no longer there, or the changes do not fit its input.
fn ready(letter: PendingLetter, replay: &ReplayView) -> Option<SendLetter> {
    let PendingLetter { job, saved, dead } = letter;
    let dead = dead?;
    let out =
        outgoing((&dead.input, dead.target.as_deref()), (dead.crashes, dead.suspect), &replay.edits, replay.mode)?;
    let (input, target, goes_on, suspect) = (out.input, out.target, out.goes_on, out.suspect);
    // What was changed over the network came over it.
    let touched = input.is_some() && replay.wish.over_network;
    let origin = touched.then(|| Origin::touched(dead.origin));
    Some(SendLetter { job, input, target, saved, goes_on, suspect, origin })
}

async fn withdraw(redrive: &Redrive, known: Known<'_>, replay: &ReplayView, now: Timestamp) -> StoreResult<Stepped> {
    // Letters of others must not stand before its own.
    let mine = || known.pipelines.iter().map(|pipeline| pipeline.name.clone()).collect();
    let pipelines = (!known.alone).then(mine);
    let waiting = redrive.store.list_sent(ListSent { id: replay.id, pipelines, limit: CHOSEN_AT_ONCE_MAX }).await?;
    let rules = redrive.store.cause_rules().await?;
    let decide = |sent: SentLetter| {
        let knows = known.pipelines.iter().find(|pipeline| pipeline.name == sent.pipeline);
        let attempts_max = match knows {
            Some(pipeline) => pipeline.policy.retry.attempts_total_max,
            None if known.alone => RetryPolicy::DEFAULT_ATTEMPTS_TOTAL_MAX,
            None => return None,
        };
        let SentLetter { tally, begun, in_worker, gate, .. } = sent;
        let (verdict, failure) = (sent.verdict.as_deref(), sent.failure.as_ref());
        let withdrawn = withdrawn(Sent { tally, begun, in_worker, gate, verdict, failure }, attempts_max);
        let print = failure.map(|failure| Print::of(&sent.pipeline, sent.target.as_deref(), failure, &rules));
        Some(WithdrawLetter { sent, withdrawn, print })
    };
    let letters: Vec<_> = waiting.into_iter().filter_map(decide).collect();
    if letters.is_empty() {
        return Ok(Stepped::Wait(None));
    }
    redrive.store.withdraw_letters(WithdrawLetters { id: replay.id, letters, now }).await?;
    Ok(Stepped::On(None))
}

/// Ends a replay. A cause whose letters were replayed successfully, and that has none left, is over, if somebody meant it to be.
async fn finish(redrive: &Redrive, replay: &ReplayView, now: Timestamp) -> StoreResult<Stepped> {
    let cancelled = replay.state == ReplayState::Cancelling;
    if !cancelled && !replay.automatic {
        // Before the end, so that a kill in between does not leave them open.
        match redrive.resolve_recovered(replay).await {
            Err(Error::Store(error)) => return Err(error),
            Err(error) => tracing::warn!(%error, replay = %replay.id, "a cause that recovered could not be resolved"),
            Ok(()) => {}
        }
    }
    let state = if cancelled { ReplayState::Cancelled } else { ReplayState::Done };
    let why = replay.why.clone().filter(|_| cancelled);
    let told = Happening::ReplayFinished { replay: replay.id };
    set(redrive, replay, NextReplay::of(state, why, &replay.progress), told, now).await
}

async fn set(
    redrive: &Redrive,
    replay: &ReplayView,
    next: NextReplay,
    told: Happening,
    now: Timestamp,
) -> StoreResult<Stepped> {
    let (id, was) = (replay.id, replay.version);
    let set = SetReplay { id, was, next, excluded: None, by: Actor::redrive(), now };
    let heard = redrive.store.set_replay(set).await?;
    Ok(Stepped::On(heard.then_some(told)))
}
