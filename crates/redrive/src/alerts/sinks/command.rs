//! A command that reads the text on its standard input. Nothing of an alert is in its arguments. When its time is over, it is
//! killed with all that it started.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redrive_core::alerts::Notice;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr};

use crate::handler::exec::Command;

/// What is read of what it says went wrong.
const STDERR_BYTES_MAX: usize = 2_048;

/// How long is waited for that after it has ended.
const LAST_WORDS: Duration = Duration::from_millis(200);

pub(super) struct CommandSink(Command);

impl CommandSink {
    pub(super) fn new(words: &[String], folder: Option<PathBuf>) -> Result<Self, String> {
        let [program, args @ ..] = words else { return Err("it has no command".to_owned()) };
        let mut command = Command::new(program, args.iter().map(Into::into));
        command.folder = folder;
        command.check().map(|()| Self(command))
    }

    pub(super) async fn send(&self, notice: &Notice, link: Option<&str>) -> Result<(), String> {
        let mut process = tokio::process::Command::new(&self.0.program);
        process
            .args(&self.0.args)
            .env("REDRIVE_ALERT_KIND", notice.kind.as_str())
            .env("REDRIVE_ALERT_DEDUP_KEY", &notice.dedup_key)
            .env("REDRIVE_ALERT_NUMBER", notice.number.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(link) = link {
            process.env("REDRIVE_ALERT_URL", link);
        }
        if let Some(folder) = &self.0.folder {
            process.current_dir(folder);
        }
        let child = process.spawn().map_err(|error| format!("it cannot be started: {error}"))?;
        Group::of(child).tell(&notice.text(link)).await
    }
}

/// A child and all that it started. Dropping it ends them, unless the child ended well: a program that sends mail may leave that to
/// another in the background.
struct Group {
    child: Child,
    pid: Option<Pid>,
}

impl Group {
    fn of(child: Child) -> Self {
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self { child, pid }
    }

    async fn tell(mut self, text: &str) -> Result<(), String> {
        let words = self.child.stderr.take().map(LastWords::hear);
        if let Some(mut stdin) = self.child.stdin.take() {
            // Who does not want to read it all need not: the exit code counts.
            let _ = stdin.write_all(text.as_bytes()).await;
        }
        let status = self.child.wait().await.map_err(|error| format!("it was lost: {error}"))?;
        if status.success() {
            self.pid = None;
            return Ok(());
        }
        self.end();
        let said = match words {
            Some(words) => words.said().await,
            None => String::new(),
        };
        let said = said.trim();
        Err(if said.is_empty() { format!("{status}") } else { format!("{status}: {said}") })
    }
}

impl Group {
    /// Ends all that are left, once: the id may be another's after that.
    fn end(&mut self) {
        if let Some(pid) = self.pid.take() {
            // It fails if nobody is left, which is what is wanted.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// The beginning of what a command says on standard error, while all of it is read.
struct LastWords {
    heard: Arc<Mutex<Vec<u8>>>,
    reading: tokio::task::JoinHandle<()>,
}

impl LastWords {
    fn hear(mut stderr: ChildStderr) -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&heard);
        let reading = tokio::spawn(async move {
            let mut piece = [0; 1_024];
            while let Ok(read @ 1..) = stderr.read(&mut piece).await {
                let mut kept = keep.lock().unwrap_or_else(PoisonError::into_inner);
                let room = STDERR_BYTES_MAX.saturating_sub(kept.len());
                kept.extend_from_slice(&piece[..read.min(room)]);
            }
        });
        Self { heard, reading }
    }

    async fn said(mut self) -> String {
        let _ = tokio::time::timeout(LAST_WORDS, &mut self.reading).await;
        String::from_utf8_lossy(&self.heard.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl Drop for LastWords {
    fn drop(&mut self) {
        self.reading.abort();
    }
}
