//! `--retry-dead`: replays what died in earlier runs, after everything else.

use anyhow::Result;
use redrive::contract::Selection;
use redrive::replays::{self, NewReplay, ReplayRef};
use redrive::worker::Until;
use redrive_core::ids::JobId;
use redrive_core::jobs::Input;
use redrive_core::replays::{Pacing, Progress};

use super::super::filter::actor;
use super::work::Run;
use crate::output::report::figures::counted;

/// What became of letters that were replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retried {
    pub letters: u64,
    /// Letters that came to an end, one way or the other.
    pub tried: u64,
    pub recovered: u64,
    /// Of the recovered: those that this process worked on.
    pub own: u64,
    /// Letters that may not be replayed, or that another replay has.
    pub left_out: u64,
    /// Whether it paused itself, or was stopped.
    pub is_open: bool,
}

/// Replays letters; nothing if there are none.
pub async fn retry(run: &Run<'_>, letters: &[JobId]) -> Result<Option<Retried>> {
    if letters.is_empty() {
        return Ok(None);
    }
    let pipelines = [run.pipeline.clone()];
    let new = NewReplay {
        name: format!("{} of an earlier run", counted(letters.len() as i64, "letter", "letters")),
        by: actor(),
        selection: Selection { ids: letters.to_vec(), ..Selection::default() },
        wish: replays::wish(&pipelines, None, false, false)?,
        force_why: None,
        pacing: Pacing::of_retry(letters.len() as u64),
        edits: Input::default(),
        pins: replays::pins(&pipelines),
    };
    let (started, plan) = run.redrive.start_replay(new).await?;
    let left_out = plan.excluded.values().sum();
    let Some(id) = started else { return Ok(Some(Retried { left_out, ..Retried::default() })) };
    run.progress.say(&format!("replay {id}: {} that died before", plan.included));
    let worker = run.worker().only_replay(id);
    let (running, own) = (worker.running(), worker.work_done());
    run.shown(worker.run(Until::Drained, run.stop.clone()), running).await?;
    let replay = run.redrive.find_replay(ReplayRef::Id(id)).await?;
    let Progress { total: letters, recovered, failed, .. } = replay.progress;
    let (tried, own) = (recovered + failed, own.read().done);
    Ok(Some(Retried { letters, tried, recovered, own, left_out, is_open: replay.is_open() }))
}
