//! `redrive status --watch`: on a terminal the page is drawn anew, also when its size changes; elsewhere it is printed again below.

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::Result;
use redrive::CancellationToken;
use redrive::status::Status;
use redrive_client::Desk;
use redrive_client::status::Hints;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::super::signals;
use super::print;
use crate::exit::Exit;
use crate::output::json;
use crate::output::page;
use crate::output::print::out;
use crate::output::times::second;

/// The shortest time between two pages: a worker changes the store many times a second.
const REST: Duration = Duration::from_millis(500);

/// When to look although nobody said that anything changed: times go by.
const LOOK_ANYWAY: Duration = Duration::from_secs(5);

pub async fn run(redrive: &Desk, as_json: bool) -> Result<Exit> {
    let stop = CancellationToken::new();
    signals::watch(stop.clone(), stop.clone(), |_| {});
    let mut changes = redrive.changes();
    let mut resized = signal(SignalKind::window_change())?;
    let (mut shown, on_screen) = (None, io::stdout().is_terminal());
    // Who leaves it open wants to see when the store is back.
    let _waiting = redrive.keep_waiting();
    loop {
        let status = tokio::select! {
            status = redrive.status() => status?,
            () = stop.cancelled() => return Ok(Exit::Ok),
        };
        let essence = essence(&status);
        let is_news = shown.as_ref() != Some(&essence);
        match (as_json, on_screen) {
            (true, _) if is_news => json::line(&status)?,
            (false, true) => {
                page::begin();
                out!("{} UTC  (Ctrl-C ends)\n", second(redrive.now()))?;
                let printed = print(redrive, &status).await;
                page::draw(shown.is_none())?;
                printed?;
            }
            (false, false) if is_news => {
                out!("{}{}", if shown.is_some() { "\n" } else { "" }, second(redrive.now()))?;
                print(redrive, &status).await?;
            }
            _ => {}
        }
        shown = Some(essence);
        tokio::select! {
            () = stop.cancelled() => {
                if on_screen && !as_json {
                    // What comes next is not to stand beside `^C`.
                    out!("")?;
                }
                return Ok(Exit::Ok);
            }
            _ = resized.recv() => {}
            changed = wait(&mut changes) => changed?,
        }
    }
}

/// What makes a page another one: not that workers still show that they live.
fn essence(status: &Status) -> Value {
    let Status { pipelines, replays, breakers, retrying, pauses, alerts, workers, .. } = status;
    let workers: Vec<_> = workers.iter().map(|status| (status.worker.id, status.process)).collect();
    json!([pipelines, replays, breakers, retrying, pauses, alerts, workers])
}

/// Waits until something changed, or may have.
async fn wait(changes: &mut Hints) -> Result<(), redrive::Error> {
    tokio::time::sleep(REST).await;
    match tokio::time::timeout(LOOK_ANYWAY, changes.next()).await {
        Ok(changed) => changed,
        Err(_) => Ok(()),
    }
}
