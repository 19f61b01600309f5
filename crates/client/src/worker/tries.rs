//! Trying letters that a server has: their saved payloads come here, the handlers run here, and what they came to is told there.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use redrive::compare::Comparing;
use redrive::contract::{ListDead, Selection, TryView};
use redrive::replays::{NewTry, Tried, tries_of};
use redrive::worker::Until;
use redrive::{CancellationToken, Error, ErrorKind, Pipeline};
use redrive_core::ids::TryId;
use redrive_core::jobs::Input;
use redrive_core::replays::Exclusion;
use serde::Deserialize;
use serde_json::json;

use super::{Operation, RemoteWorker};
use crate::ask::LONG;
use crate::desk::Desk;
use crate::page::{Listed, all};
use crate::replays::runs;
use crate::server::Server;

/// How often it is told how far a try is.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// How often a worker looks for tries to take part in.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A try that was begun.
#[derive(Deserialize)]
struct Started {
    #[serde(default)]
    id: Option<TryId>,
    letters: u64,
    left_out: BTreeMap<Exclusion, u64>,
}

impl Desk {
    /// See [`redrive::Redrive::find_try`].
    pub async fn find_try(&self, of: Option<(&Selection, &Input)>) -> Result<Option<TryView>, Error> {
        match self {
            Self::Here(redrive) => redrive.find_try(of).await,
            Self::There(server) => {
                let mut ended: Vec<TryView> = all(server, &["tries"], Vec::new()).await?;
                ended.retain(|kept| kept.finished_at.is_some());
                for (kept, others) in tries_of(ended, of) {
                    let is_all = match others {
                        Some(died) => self.list_dead(ListDead::newest(died, 100)).await?.items.is_empty(),
                        None => true,
                    };
                    if is_all {
                        return Ok(Some(kept));
                    }
                }
                Ok(None)
            }
        }
    }

    /// See [`redrive::Redrive::try_replay`].
    pub async fn try_replay(
        &self,
        pipelines: &[Pipeline],
        new: NewTry,
        (stop, told): (&CancellationToken, impl Fn(u64, u64)),
        with: Option<Comparing<'_>>,
    ) -> Result<Tried, Error> {
        let server = match self {
            Self::Here(redrive) => return redrive.try_replay(pipelines, new, (stop, told), with).await,
            Self::There(server) => server,
        };
        let NewTry { selection, force, edits, .. } = new;
        let runs = runs(pipelines, !edits.is_empty());
        let asked = json!({ "letters": selection, "force": force, "set": edits, "runs": runs });
        let begun = server.post(&["tries"]).body(&asked)?.within(Some(LONG)).read().await;
        let Started { id, letters, left_out } = match begun {
            // No letter is like that: nothing is tried.
            Err(Error::Server { kind: ErrorKind::Missing, .. }) => return Ok(Tried::default()),
            begun => begun?,
        };
        let Some(id) = id else { return Ok(Tried { excluded: left_out, ..Tried::default() }) };
        work(server, (id, letters), pipelines, (stop, &told)).await?;
        let ended: TryView = server.post(&["tries", &id.to_string(), "cancel"]).within(Some(LONG)).read().await?;
        let unread = |error| Error::Internal(format!("the outcome of a try cannot be read: {error}"));
        let tried: Tried = serde_json::from_value(ended.outcome).map_err(unread)?;
        Ok(Tried { excluded: left_out, stopped: stop.is_cancelled(), ..tried })
    }
}

/// Takes part in tries that are for whoever works on these pipelines, until it is told to stop. Nothing that goes wrong with them keeps a
/// worker from its work.
pub(super) fn take_part(
    server: Server,
    pipelines: Vec<Pipeline>,
    stop: CancellationToken,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    // Boxed: a worker that takes part in a try runs another one, which does not.
    Box::pin(taking_part(server, pipelines, stop))
}

async fn taking_part(server: Server, pipelines: Vec<Pipeline>, stop: CancellationToken) {
    let able: Vec<Pipeline> = pipelines.into_iter().filter(|pipeline| pipeline.works_from_saved(false)).collect();
    while !able.is_empty() {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let Ok(tries) = server.get(&["tries"]).read::<Listed<TryView>>().await else { continue };
        for kept in &tries.items {
            let fitting = fitting(kept, &able);
            if fitting.is_empty() {
                continue;
            }
            if let Err(error) = work(&server, (kept.id, 0), &fitting, (&stop, &|_, _| {})).await {
                tracing::warn!(%error, "a try was given up");
            }
        }
    }
}

/// Those of these pipelines that letters of a try are of, as they are to be tried; none if it is not for whoever works on them.
fn fitting(kept: &TryView, pipelines: &[Pipeline]) -> Vec<Pipeline> {
    let known: Tried = serde_json::from_value(kept.outcome.clone()).unwrap_or_default();
    if kept.finished_at.is_some() || !known.for_workers {
        return Vec::new();
    }
    let fits = |pipeline: &&Pipeline| {
        let wanted = kept.tried_with.get(pipeline.name());
        wanted.is_some_and(|version| version.is_none() || version.as_ref() == pipeline.definition())
    };
    pipelines.iter().filter(fits).cloned().collect()
}

/// Tries letters until none is left, or until it is told to stop.
async fn work(
    server: &Server,
    (id, letters): (TryId, u64),
    pipelines: &[Pipeline],
    (stop, told): (&CancellationToken, &impl Fn(u64, u64)),
) -> Result<(), Error> {
    let worker = RemoteWorker::new(server.clone(), pipelines.to_vec());
    let worker = worker.with(|shared| shared.only = Some(Operation::Try(id)));
    let done = worker.shared.done.clone();
    let working = worker.run(Until::Drained, stop.clone());
    tokio::pin!(working);
    let tell = || {
        let done = done.read();
        told(done.done + done.died, letters);
    };
    loop {
        tokio::select! {
            worked = &mut working => {
                tell();
                return worked;
            }
            () = tokio::time::sleep(TELL_EVERY) => tell(),
        }
    }
}
