//! `redrive run` with a command that does nothing, beside `xargs -P` with the same command.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::row;

const JOBS: usize = 4_000;
const AT_ONCE: usize = 2;
const ROUNDS: usize = 3;

pub fn measure(store: &Path, dead_letters: u64) -> Result<()> {
    let redrive = binary()?;
    let folder = store.parent().context("the store is in a folder")?;
    let (mut ours, mut theirs) = (Duration::MAX, Duration::MAX);
    for turn in 0..ROUNDS {
        let tasks = folder.join(format!("tasks-{dead_letters}-{turn}.txt"));
        let lines: String = (0..JOBS).map(|n| format!("{dead_letters}-{turn}-{n}\n")).collect();
        std::fs::write(&tasks, lines)?;
        theirs = theirs.min(xargs(&tasks)?);
        ours = ours.min(run(&redrive, &tasks, store)?);
    }
    let rate = |time: Duration| JOBS as f64 / time.as_secs_f64();
    row("run (xargs -P)", AT_ONCE, dead_letters, rate(ours), rate(theirs));
    Ok(())
}

/// The release build of `redrive`, beside this program.
pub fn binary() -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("redrive");
    ensure!(path.exists(), "{} is missing: run `cargo build --release` first", path.display());
    Ok(path)
}

fn timed(command: &mut Command) -> Result<Duration> {
    let begun = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(begun.elapsed())
}

fn xargs(tasks: &Path) -> Result<Duration> {
    let at_once = AT_ONCE.to_string();
    timed(Command::new("xargs").args(["-P", &at_once, "-n", "1", "true"]).stdin(File::open(tasks)?))
}

fn run(redrive: &Path, tasks: &Path, store: &Path) -> Result<Duration> {
    let (at_once, store) = (AT_ONCE.to_string(), format!("sqlite:{}", store.display()));
    timed(Command::new(redrive).arg("run").arg(tasks).args(["--store", &store, "-j", &at_once, "--", "true"]))
}
