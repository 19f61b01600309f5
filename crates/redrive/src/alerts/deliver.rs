//! Telling sinks what was posted for them: each by itself, so that a slow one holds up nobody, and one notice after the other.

use std::time::Duration;

use redrive_core::alerts::notices::{ASKED_MAX, is_given_up, wait_after};
use redrive_store::contract::{SettleNotice, TakeNotice, TakenNotice, Told};
use tokio_util::sync::CancellationToken;

use super::Watching;
use super::sinks::{Refusal, Sink};
use crate::engine::Redrive;
use crate::error::Error;
use crate::events::Happening;

/// How long beyond its time-out a notice stays with who took it.
const TAKEN_BEYOND: Duration = Duration::from_secs(20);

/// How often, and after which wait, it is tried to write that a notice was told: within the time for which it was taken, so that it
/// is not told twice because a store was busy.
const WRITTEN_TRIES: u32 = 8;
const WRITTEN_AGAIN: Duration = Duration::from_secs(2);

/// When telling is to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending {
    /// No further notice is taken.
    pub(crate) enough: CancellationToken,
    /// Nobody is waited for any longer: the sink that has not answered failed.
    pub(crate) late: CancellationToken,
}

/// Tells every sink of the local file what waits for it, until nothing does, the sink fails or it is to end.
pub(super) async fn deliver(redrive: &Redrive, watching: &Watching, ending: &Ending) -> Result<(), Error> {
    let waited_for = waited_for(redrive, watching).await?;
    let told = waited_for.iter().map(|sink| tell_all(redrive, sink, ending));
    futures_util::future::join_all(told).await.into_iter().collect()
}

/// The sinks of the local file that something waits for.
pub(super) async fn waited_for(redrive: &Redrive, watching: &Watching) -> Result<Vec<Sink>, Error> {
    let waiting = redrive.store.list_sinks().await?;
    let has_any = |sink: &&Sink| waiting.iter().any(|view| view.name == sink.name() && view.waiting > 0);
    Ok(watching.sinks().iter().filter(has_any).cloned().collect())
}

/// Tells a sink what waits for it.
pub(super) async fn tell_all(redrive: &Redrive, sink: &Sink, ending: &Ending) -> Result<(), Error> {
    while !ending.enough.is_cancelled()
        && let Some(taken) = take(redrive, sink).await?
    {
        let said = tokio::select! {
            biased;
            said = sink.send(&taken.notice) => said,
            () = ending.late.cancelled() => Err("it had not answered when the worker ended".to_owned().into()),
        };
        let is_told = said.is_ok();
        settle(redrive, sink, &taken, said).await?;
        if !is_told {
            break;
        }
    }
    Ok(())
}

async fn take(redrive: &Redrive, sink: &Sink) -> Result<Option<TakenNotice>, Error> {
    let now = redrive.now();
    let until = now + sink.timeout() + TAKEN_BEYOND;
    let believed_until = now + ASKED_MAX * 2;
    Ok(redrive.store.take_notice(TakeNotice { sink: sink.name().to_owned(), until, believed_until, now }).await?)
}

async fn settle(redrive: &Redrive, sink: &Sink, taken: &TakenNotice, said: Result<(), Refusal>) -> Result<(), Error> {
    let now = redrive.now();
    let outcome = match said {
        Ok(()) => Told::Yes,
        Err(Refusal { why: error, retry_after }) => {
            if taken.failures == 0 {
                let (name, why) = (sink.name().to_owned(), error.clone());
                redrive.events.tell(now, None, Happening::SinkFailed { sink: name, why });
            }
            let next_try = now + wait_after(taken.failures.saturating_add(1), retry_after);
            Told::No { error, next_try, give_up: is_given_up(taken.posted_at, now) }
        }
    };
    let settled = SettleNotice { id: taken.id, tries: taken.tries, outcome, now };
    for _ in 1..WRITTEN_TRIES {
        match redrive.store.settle_notice(settled.clone()).await {
            Err(error) if settled.outcome == Told::Yes => {
                tracing::warn!(%error, sink = sink.name(), "it could not be noted that a sink was told");
                tokio::time::sleep(WRITTEN_AGAIN).await;
            }
            settled => return Ok(settled.map(drop)?),
        }
    }
    Ok(redrive.store.settle_notice(settled).await.map(drop)?)
}
