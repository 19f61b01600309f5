//! Telling sinks what was posted for them: each by itself, so that a slow one holds up nobody, and one notice after the other.

use std::time::Duration;

use redrive_core::alerts::notices::{WAIT_MAX, is_given_up, wait_after};
use redrive_store::contract::{SettleNotice, TakeNotice, TakenNotice, Told};
use tokio_util::sync::CancellationToken;

use super::Watching;
use super::sinks::Sink;
use crate::engine::Redrive;
use crate::error::Error;
use crate::events::Happening;

/// How long beyond its time-out a notice stays with who took it.
const TAKEN_BEYOND: Duration = Duration::from_secs(20);

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
            () = ending.late.cancelled() => Err("it had not answered when the worker ended".to_owned()),
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
    let believed_until = now + WAIT_MAX * 2;
    Ok(redrive.store.take_notice(TakeNotice { sink: sink.name().to_owned(), until, believed_until, now }).await?)
}

async fn settle(redrive: &Redrive, sink: &Sink, taken: &TakenNotice, said: Result<(), String>) -> Result<(), Error> {
    let now = redrive.now();
    let outcome = match said {
        Ok(()) => Told::Yes,
        Err(error) => {
            if taken.failures == 0 {
                let (name, why) = (sink.name().to_owned(), error.clone());
                redrive.events.tell(now, None, Happening::SinkFailed { sink: name, why });
            }
            let next_try = now + wait_after(taken.failures.saturating_add(1));
            Told::No { error, next_try, give_up: is_given_up(taken.posted_at, now) }
        }
    };
    redrive.store.settle_notice(SettleNotice { id: taken.id, tries: taken.tries, outcome, now }).await?;
    Ok(())
}
