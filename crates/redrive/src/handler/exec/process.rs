//! One process per job.

use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use redrive_core::failures::{FailureReport, Reason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::answer::{self, Exit};
use super::child::{self, Pipes, Running};
use super::tail::Tail;
use super::{Command, OUTPUT_BYTES_MAX, job_line, memory};
use crate::handler::{HandlerError, Job, Success};

/// How long a child's pipes may stay open after it has ended, because something that it left behind holds them.
const LINGER: Duration = Duration::from_millis(250);

/// How a child ended.
enum End {
    Exited(io::Result<ExitStatus>),
    OutOfTime,
    OutOfMemory(u64),
    TooMuchOutput,
}

/// Runs a job in a process of its own, which may write its raw response to `payload`.
pub(super) async fn run(command: &Command, job: &Job, payload: &Path) -> Result<Success, HandlerError> {
    let (mut running, Pipes { stdin, stdout, stderr }) = child::start(command, job, Some(payload)).await?;
    let tail = Tail::default();
    let mut output = Vec::new();
    let end = {
        let streams = async {
            let all = tokio::try_join!(
                send(stdin, job_line(job, payload)),
                collect(stdout, &mut output),
                fill(&tail, stderr)
            );
            all.is_ok()
        };
        watch(&mut running, streams, command, job).await
    };
    drop(running);
    conclude(end, command, job, &output, &tail)
}

/// Waits for a child to end, and ends it if it takes too much. `streams` says whether its output fits.
async fn watch(running: &mut Running, streams: impl Future<Output = bool>, command: &Command, job: &Job) -> End {
    let memory = memory::exceeded(running.pid, Some(job), command.memory_bytes_max);
    let deadline = tokio::time::sleep(job.deadline);
    tokio::pin!(streams, memory, deadline);
    let mut open = true;
    let end = loop {
        tokio::select! {
            fits = &mut streams, if open => {
                open = false;
                if !fits {
                    break End::TooMuchOutput;
                }
            }
            status = running.wait() => break End::Exited(status),
            used = &mut memory => break End::OutOfMemory(used),
            () = &mut deadline => break End::OutOfTime,
        }
    };
    if !matches!(end, End::Exited(_)) {
        running.kill();
        let _ = running.wait().await;
    }
    // The group is gone and has let go of the pipes; who left it may hold one still, and is not waited for.
    if open && let Ok(false) = tokio::time::timeout(LINGER, &mut streams).await {
        return End::TooMuchOutput;
    }
    end
}

/// Output that does not fit.
struct TooMuch;

async fn send(mut stdin: ChildStdin, line: Vec<u8>) -> Result<(), TooMuch> {
    // A command need not read its input: a closed pipe is no error.
    let _ = stdin.write_all(&line).await;
    Ok(())
}

async fn fill(tail: &Tail, stderr: ChildStderr) -> Result<(), TooMuch> {
    tail.fill(stderr).await;
    Ok(())
}

async fn collect(mut stdout: ChildStdout, output: &mut Vec<u8>) -> Result<(), TooMuch> {
    let mut limited = (&mut stdout).take(OUTPUT_BYTES_MAX as u64 + 1);
    let _ = limited.read_to_end(output).await;
    if output.len() <= OUTPUT_BYTES_MAX { Ok(()) } else { Err(TooMuch) }
}

fn conclude(end: End, command: &Command, job: &Job, output: &[u8], tail: &Tail) -> Result<Success, HandlerError> {
    let stderr = tail.text();
    let with_stderr = |report: FailureReport| FailureReport { stderr: answer::non_empty(&stderr), ..report };
    match end {
        End::Exited(Ok(status)) => answer::of_process(Exit::of(status), output, &stderr, &command.secrets),
        End::Exited(Err(error)) => {
            Err(with_stderr(FailureReport::message(format!("the command could not be waited for: {error}"))).into())
        }
        End::OutOfTime => Err(with_stderr(answer::out_of_time(job)).into()),
        End::OutOfMemory(used) => Err(HandlerError::crashed(with_stderr(answer::out_of_memory(used, command)))),
        End::TooMuchOutput => {
            let message = format!("the command printed more than {OUTPUT_BYTES_MAX} bytes as its result");
            Err(with_stderr(FailureReport::new(Reason::HandlerError, message).with_code("output_too_large")).into())
        }
    }
}
