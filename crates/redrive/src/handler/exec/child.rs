//! Starting a child as the leader of its own process group, and making sure that the group ends.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::Command;
use super::orphans::{JOB_VARIABLE, WORKER_VARIABLE};
use crate::handler::{HandlerError, Job};

/// How often a process is tried to be started while the system is short of something.
const SPAWN_TRIES: u32 = 50;

/// A child that runs. Dropping it kills its whole process group.
#[derive(Debug)]
pub(in crate::handler) struct Running {
    pub(in crate::handler) child: Child,
    pub(in crate::handler) pid: u32,
    /// Its id may be another's by now.
    reaped: bool,
}

/// The ends of a child's pipes that are ours.
pub(in crate::handler) struct Pipes {
    pub(in crate::handler) stdin: ChildStdin,
    pub(in crate::handler) stdout: ChildStdout,
    pub(in crate::handler) stderr: ChildStderr,
}

/// Starts a command. Where it has only one job, its environment tells of it, and of the file for its payload.
pub(in crate::handler) async fn start(
    command: &Command,
    job: &Job,
    payload: Option<&Path>,
) -> Result<(Running, Pipes), HandlerError> {
    let mut process = prepare(command, job, payload);
    let mut child = spawn(&mut process).await.map_err(|error| {
        HandlerError::Unavailable(format!("{} cannot be started: {error}", command.program.display()))
    })?;
    let piped = "the stream was asked to be a pipe";
    let pipes = Pipes {
        stdin: child.stdin.take().expect(piped),
        stdout: child.stdout.take().expect(piped),
        stderr: child.stderr.take().expect(piped),
    };
    let pid = child.id().expect("a child that was not waited for has an id");
    Ok((Running { child, pid, reaped: false }, pipes))
}

/// Starts a process; waits a little where the system is only short of something.
async fn spawn(process: &mut tokio::process::Command) -> io::Result<Child> {
    let mut tries = 0;
    loop {
        let error = match process.spawn() {
            Ok(child) => return Ok(child),
            Err(error) => error,
        };
        let passing = matches!(
            error.raw_os_error().map(Errno::from_raw_os_error),
            Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE | Errno::TXTBSY)
        );
        if !passing || tries >= SPAWN_TRIES {
            return Err(error);
        }
        tries += 1;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn prepare(command: &Command, job: &Job, payload: Option<&Path>) -> tokio::process::Command {
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
    if let Some(payload) = payload {
        process.env("REDRIVE_PAYLOAD", payload);
        if let Some(file) = job.saved.as_ref().and_then(|saved| saved.file.as_ref()) {
            process.env("REDRIVE_SAVED", file);
        }
        // Under the name by which programs that trace look for it.
        process.envs(job.traceparent.as_ref().map(|trace| ("TRACEPARENT", trace)));
        process.env(JOB_VARIABLE, job.id.to_string()).env("REDRIVE_ATTEMPT", job.attempt.to_string());
    }
    if let Some(folder) = &command.folder {
        process.current_dir(folder);
    }
    process
}

impl Running {
    /// Waits for the child to end, and ends all that are left in its group.
    pub(in crate::handler) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.kill();
        self.reaped = true;
        status
    }

    /// Kills the child and all that are in its group.
    pub(in crate::handler) fn kill(&self) {
        if let Some(group) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) {
            // It fails if nobody is left, which is what is wanted.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
        }
    }
}
