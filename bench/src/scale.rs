//! A million dead letters in a thousand causes: how long each command takes, from a cold process to its last line.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use redrive::Redrive;
use redrive_store::contract::ListCauses;

use crate::command::binary;

/// What each command may take.
const LIMIT: Duration = Duration::from_millis(200);

/// How often each is run; the median counts.
const RUNS: usize = 5;

pub async fn measure(path: &Path, letters: u64) -> Result<()> {
    let redrive = Redrive::open(&format!("sqlite:{}", path.display())).await?;
    let params = ListCauses { with_empty: false, ..ListCauses::all(1_000_000, redrive.now()) };
    let causes = redrive.store().list_causes(params).await?;
    let cause = causes[causes.len() / 2].id.to_string();
    drop(redrive);
    println!();
    println!("| command, cold process to last line | dead letters | causes | ms | limit | share of the limit |");
    println!("|---|--:|--:|--:|--:|--:|");
    let commands = [
        "cause list".to_owned(),
        "cause list --limit 1000 --json".to_owned(),
        format!("cause show {cause}"),
        "dead list".to_owned(),
        format!("dead list --cause {cause}"),
        "dead list --pipeline pipeline-3".to_owned(),
        "dead list --reason timeout".to_owned(),
        "dead list --code ERROR_ABA".to_owned(),
        "dead list --target shop7.example".to_owned(),
        "dead list --proxy proxy-3".to_owned(),
        "dead list --gate never".to_owned(),
        "dead list --since 2h".to_owned(),
        "dead list --until 300h".to_owned(),
        "dead list --text products/77".to_owned(),
        "dead list --pipeline pipeline-3 --reason timeout --target shop3.example".to_owned(),
        "report".to_owned(),
        format!("replay plan --cause {cause}"),
        "replay plan --reason timeout".to_owned(),
        "replay plan --pipeline pipeline-3".to_owned(),
        "dead top --by reason".to_owned(),
        "dead top --by target".to_owned(),
        "dead top --by hour".to_owned(),
        "status".to_owned(),
    ];
    for command in commands {
        let taken = median(path, &command)?;
        let (ms, limit) = (taken.as_secs_f64() * 1e3, LIMIT.as_secs_f64() * 1e3);
        println!("| {command} | {letters} | {} | {ms:.0} | {limit:.0} | {:.2} |", causes.len(), ms / limit);
    }
    Ok(())
}

fn median(path: &Path, command: &str) -> Result<Duration> {
    let mut taken = Vec::new();
    for _ in 0..RUNS {
        let begun = Instant::now();
        let status = Command::new(binary()?)
            .args(command.split_whitespace())
            .env("REDRIVE_STORE", format!("sqlite:{}", path.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        ensure!(status.success(), "redrive {command} failed");
        taken.push(begun.elapsed());
    }
    taken.sort();
    Ok(taken[RUNS / 2])
}
