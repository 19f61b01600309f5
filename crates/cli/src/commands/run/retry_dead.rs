//! `--retry-dead`: replays what died in earlier runs, after everything else.

use anyhow::Result;
use redrive::contract::Selection;
use redrive::replays::{AskedReplay, ReplayRef, StartedReplay};
use redrive::worker::Until;
use redrive_core::ids::JobId;
use redrive_core::replays::Progress;

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

impl std::ops::Add for Retried {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            letters: self.letters + other.letters,
            tried: self.tried + other.tried,
            recovered: self.recovered + other.recovered,
            own: self.own + other.own,
            left_out: self.left_out + other.left_out,
            is_open: self.is_open || other.is_open,
        }
    }
}

/// Replays letters, as many at once as can be asked for; nothing if there are none.
pub async fn retry(run: &Run<'_>, letters: &[JobId]) -> Result<Option<Retried>> {
    let mut all: Option<Retried> = None;
    for some in letters.chunks(run.redrive.letters_max()) {
        let retried = retry_some(run, some).await?;
        all = Some(all.unwrap_or_default() + retried);
    }
    Ok(all)
}

async fn retry_some(run: &Run<'_>, letters: &[JobId]) -> Result<Retried> {
    let selection = Selection { ids: letters.to_vec(), ..Selection::default() };
    let name = format!("{} of an earlier run", counted(letters.len() as i64, "letter", "letters"));
    let asked = AskedReplay { name: Some(name), ..AskedReplay::of(selection, actor()) };
    let StartedReplay { id, plan, .. } = run.redrive.ask_replay(asked, std::slice::from_ref(run.pipeline)).await?;
    let left_out = plan.excluded.values().sum();
    let Some(id) = id else { return Ok(Retried { left_out, ..Retried::default() }) };
    run.progress.say(&format!("replay {id}: {} that died before", plan.included));
    let worker = run.worker().only_replay(id);
    let (running, own) = (worker.running(), worker.work_done());
    run.shown(worker.run(Until::Drained, run.stop.clone()), running).await?;
    let replay = run.redrive.find_replay(ReplayRef::Id(id)).await?;
    let Progress { total: letters, recovered, failed, .. } = replay.progress;
    let (tried, own) = (recovered + failed, own.read().done);
    Ok(Retried { letters, tried, recovered, own, left_out, is_open: replay.is_open() })
}
