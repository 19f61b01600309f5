//! The lines that are logged of what happens. What goes wrong is a warning; what changes for many jobs, and every attempt that
//! fails, is told to who wants to hear more; what happens with every job is for who looks for a mistake.

use tracing::{Level, debug, enabled, info, warn};

use super::{Event, Happening};

/// Whether anything of what happens with single jobs is logged.
pub(super) fn wants_jobs() -> bool {
    enabled!(Level::INFO)
}

/// Logs an event.
pub(super) fn line(event: &Event) {
    use Happening as H;
    match &event.what {
        H::StoreAway { place, why } => warn!(place, why, "waiting for the store; nothing is begun meanwhile"),
        H::StoreBack { place, secs } => warn!(place, "the store answers again, after {secs} s"),
        H::LeftUnsettled { jobs } => {
            warn!(jobs, "ended while the store does not answer: these tasks are done again when their leases are over");
        }
        H::PipelineHeld { pipeline, why, .. } => {
            warn!(%pipeline, why, "the pipeline cannot work and is held; it is tried again by itself");
        }
        H::PipelinePaused { pipeline, pause } => warn!(%pipeline, "the pipeline is {pause}"),
        H::PipelineResumed { pipeline } => warn!(%pipeline, "the pipeline goes on"),
        H::VaultAway { vault, why } => warn!(vault, error = why, "the vault is away; payloads wait in the spool"),
        H::PayloadLost { job, why } => warn!(%job, why, "the payload of an attempt is lost"),
        H::PipelinesUnusable { why } => {
            warn!(why, "the configuration changed and cannot be used; the one before stays")
        }
        H::SinkFailed { sink, why } => warn!(sink, why, "the sink could not be told of an alert; it is tried again"),
        H::AlertFired { key, summary } => info!(alert = key, "the alert fires: {summary}"),
        H::AlertOver { key, why } => info!(alert = key, "the alert is over: {why}"),
        H::PipelinesChanged => info!("the configuration changed and is taken up"),
        H::PipelineWentOn { pipeline } => info!(%pipeline, "the pipeline goes on"),
        H::VaultBack { vault } => info!(vault, "the vault is back"),
        H::BreakerOpened { pipeline, target, why, until } => {
            info!(%pipeline, target, why, %until, "the target fails: its tasks wait");
        }
        H::BreakerClosed { pipeline, target } => info!(%pipeline, target, "the target works again"),
        H::ReplayBegun { pipeline, letters, .. } => {
            info!(%pipeline, letters, "dead letters are replayed by themselves");
        }
        H::ReplayPaused { replay, why } => info!(%replay, why, "the replay paused itself"),
        H::ReplayFinished { replay } => info!(%replay, "the replay is done"),
        H::LeaseLost { job } => info!(%job, "the task is no longer this worker's"),
        H::SettledLate { pipeline, job } => info!(%pipeline, %job, "the task was settled too late and did not count"),
        H::ReplaySent { replay, letters, step } => debug!(%replay, letters, step, "the replay sent letters"),
        H::JobBegun { pipeline, job, attempt } => debug!(%pipeline, %job, attempt, "began"),
        H::JobDone { pipeline, job, attempts } => debug!(%pipeline, %job, attempts, "done"),
        H::JobRetried { pipeline, job, attempt, reason, code, message, due_at } => {
            info!(%pipeline, %job, attempt, %reason, code, %due_at, "attempt failed, to be tried again: {message}");
        }
        H::JobDied { pipeline, job, attempt, reason, code, message, gate } => {
            let reason = reason.map_or("none", |reason| reason.as_str());
            info!(%pipeline, %job, attempt, reason, code, %gate, "attempt failed, the task died: {message}");
        }
        H::JobDiscarded { pipeline, job, why } => info!(%pipeline, %job, why, "discarded"),
        H::JobReturned { pipeline, job } => debug!(%pipeline, %job, "returned"),
    }
}
