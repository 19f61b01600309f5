//! Starting a child as the leader of its own process group, and making sure that the group ends.

use std::io;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::Command;
use super::orphans::WORKER_VARIABLE;
use crate::handler::{HandlerError, Job};

/// A child that runs. Dropping it kills its whole process group.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) child: Child,
    pub(super) pid: u32,
}

/// The ends of a child's pipes that are ours.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// Starts a command. `one_job` is told to it by its environment, where it has only one.
pub(super) fn start(command: &Command, job: &Job, one_job: bool) -> Result<(Running, Pipes), HandlerError> {
    let mut process = tokio::process::Command::new(&command.program);
    process
        .args(&command.args)
        .envs(command.env.iter().map(|(name, value)| (name, value)))
        .env(WORKER_VARIABLE, job.worker.to_string())
        .env("REDRIVE_PIPELINE", job.pipeline.as_str())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if one_job {
        process.env("REDRIVE_JOB", job.id.to_string()).env("REDRIVE_ATTEMPT", job.attempt.to_string());
    }
    if let Some(folder) = &command.folder {
        process.current_dir(folder);
    }
    let unavailable = |error: io::Error| {
        HandlerError::Unavailable(format!("{} cannot be started: {error}", command.program.display()))
    };
    let mut child = process.spawn().map_err(unavailable)?;
    let pid = child.id().ok_or_else(|| unavailable(io::Error::other("it has no process id")))?;
    let piped = "the stream was asked to be a pipe";
    let pipes = Pipes {
        stdin: child.stdin.take().expect(piped),
        stdout: child.stdout.take().expect(piped),
        stderr: child.stderr.take().expect(piped),
    };
    Ok((Running { child, pid }, pipes))
}

impl Running {
    /// Kills the child and all that are in its group.
    pub(super) fn kill(&self) {
        if let Some(group) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) {
            // It fails if nobody is left, which is what is wanted.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}
