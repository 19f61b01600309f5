//! How long `run` and `work --drain` wait for targets, and what they say when that was in vain; and what is said of jobs that were
//! handed on and wait for somebody else.

use std::collections::BTreeMap;

use anyhow::Result;
use redrive::Waited;
use redrive::config::units::Wait;
use redrive_client::Desk;
use redrive_client::worker::AnyWorker;
use redrive_core::ids::PipelineName;
use redrive_core::settlements::TARGET_ON_HOLD;
use redrive_core::time::Timestamp;

use crate::output::foreign::cut;
use crate::output::paint::{BAD, WAITING, paint};
use crate::output::print::say;
use crate::output::table::line_width_of_stderr;
use crate::output::times::second;
use crate::output::typed::REDRIVE;

/// A worker that waits no longer than that while nothing moves.
pub fn at_most(worker: AnyWorker, max_wait: Wait) -> AnyWorker {
    match max_wait {
        Wait::AtMost(time) => worker.max_wait(time),
        Wait::Forever => worker.wait_forever(),
    }
}

/// Says who was waited for, why and since when.
pub fn show(waited: &Waited, now: Timestamp) {
    let idle = now.since(waited.since).as_secs();
    let next = waited.next_due.map(|due| format!(", the next is due at {}", second(due))).unwrap_or_default();
    say!("{} nothing moved for {idle} s{next}", paint(WAITING, "waited:"));
    if let Some(pause) = &waited.paused {
        let name = &waited.pipeline;
        say!("  pipeline {name} is {pause}");
        say!("      go on with: {REDRIVE} pipeline resume {name}");
    }
    for target in &waited.targets {
        let since = target.breaker.opened_at.unwrap_or(target.breaker.since);
        let why = target.breaker.explained().unwrap_or_else(|| "it failed too often".to_owned());
        say!("  {} tasks held since {}: {}", target.held, second(since), cut(&target.target, 30));
        say!("      {}", cut(&why, line_width_of_stderr().saturating_sub(6)));
    }
}

/// Says how many jobs became letters because their target stayed away.
pub fn show_given_up(jobs: u64) {
    let tasks = if jobs == 1 { "task" } else { "tasks" };
    say!("{} {jobs} {tasks} whose target stays away", paint(BAD, "given up:"));
    say!("  see them: {REDRIVE} dead list --code {TARGET_ON_HOLD}");
    say!("  run them again: {REDRIVE} retry --code {TARGET_ON_HOLD}");
}

/// Says how many jobs were handed on to which pipelines, and how to work on those that wait there.
pub async fn show_handed_on(redrive: &Desk, handed_on: BTreeMap<PipelineName, u64>) -> Result<()> {
    for (name, jobs) in handed_on {
        let waiting = redrive.ledger(&name).await?.open_by_itself();
        let how = match waiting {
            0 => String::new(),
            waiting => format!("; {waiting} wait there: {REDRIVE} work --drain --pipeline {name}"),
        };
        say!("{} {jobs} to pipeline {name}{how}", paint(WAITING, "handed on:"));
    }
    Ok(())
}
