//! Working on a replay, or watching others do it, until it ends.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::Result;
use redrive::contract::{ListReplayLetters, ReplayView};
use redrive::replays::ReplayRef;
use redrive::worker::Until;
use redrive::{CancellationToken, Pipeline};
use redrive_client::Desk;
use redrive_core::ids::{PipelineName, ReplayId};
use redrive_core::replays::{LetterState, ReplayState};

use super::super::{signals, waiting};
use super::letters::Letters;
use super::show::awaited as awaited_by;
use crate::args::ReplayWorkArgs;
use crate::exit::Exit;
use crate::output::foreign::{cut, quoted};
use crate::output::paint::{BAD, GOOD, WAITING, paint};
use crate::output::print::say;
use crate::output::progress::Counter;
use crate::output::typed::REDRIVE;
use crate::setting::Setting;

/// How often the progress is read.
const EVERY: Duration = Duration::from_millis(100);

/// How often it is read if nothing happens in this process.
const SHOW_ANYWAY: Duration = Duration::from_secs(1);

/// Within this time a worker has taken up a changed configuration: before, it is not said that none has a version.
const TAKEN_UP_AFTER: Duration = Duration::from_secs(3);

/// Letters that failed again and are shown.
const FAILED_SHOWN: u32 = 5;

/// Works on a replay until it ends, pauses or is interrupted. Of a few letters it is said what becomes of each.
pub async fn drive(
    redrive: &Desk,
    pipelines: Vec<Pipeline>,
    (id, mut letters): (ReplayId, Option<Letters>),
    counter: Counter,
    args: &ReplayWorkArgs,
) -> Result<Exit> {
    let which = ReplayRef::Id(id);
    let worker = redrive.worker(pipelines).only_replay(id);
    let work_done = worker.work_done();
    let stop = CancellationToken::new();
    let said = counter.clone();
    let signalled = signals::watch(stop.clone(), worker.hurry(), move |line| said.say(line));
    let working = worker.run(Until::Drained, stop.clone());
    tokio::pin!(working);
    let (mut events, mut shown_at) = (redrive.events().listen(), Instant::now());
    let worked = loop {
        tokio::select! {
            worked = &mut working => break worked,
            () = tokio::time::sleep(EVERY) => {
                // Where nothing happens nothing is read, but for what other processes do.
                if events.skip() > 0 || shown_at.elapsed() >= SHOW_ANYWAY {
                    let replay = redrive.find_replay(which).await?;
                    show(&counter, &replay);
                    if let Some(letters) = &mut letters {
                        letters.look(redrive, &counter).await?;
                        letters.tell_why(redrive, &replay, &counter).await?;
                    }
                    shown_at = Instant::now();
                }
            }
        }
    };
    if let Some(letters) = &mut letters {
        letters.look(redrive, &counter).await?;
    }
    counter.finish();
    let words: Vec<_> = args.command.iter().map(|word| quoted(&word.to_string_lossy())).collect();
    let command = if words.is_empty() {
        String::new()
    } else {
        format!("{} -- {}", if args.pure { " --pure" } else { "" }, words.join(" "))
    };
    if let Err(error) = worked {
        say!("{} go on with: {REDRIVE} replay resume {id}{command}", paint(WAITING, "left:"));
        return Err(error.into());
    }
    let replay = redrive.find_replay(which).await?;
    if letters.is_none() || replay.progress.total > 1 || replay.state == ReplayState::Paused {
        summarise(redrive, &replay, (&command, letters.is_none())).await?;
    }
    waiting::show_handed_on(redrive, work_done.read().handed_on).await?;
    if signalled.is_cancelled() && replay.is_open() && replay.state != ReplayState::Paused {
        say!("{} {}; go on with: {REDRIVE} replay resume {id}{command}", paint(WAITING, "left:"), left(&replay));
        return Ok(Exit::Interrupted);
    }
    if replay.state == ReplayState::Running {
        let waits = names(&redrive.left_in_replay(id).await?);
        say!("{} {}; a worker that knows {waits} goes on", paint(WAITING, "left:"), left(&replay));
        return Ok(Exit::Waited);
    }
    Ok(exit(&replay))
}

fn names(pipelines: &BTreeSet<PipelineName>) -> String {
    let names: Vec<_> = pipelines.iter().map(|name| format!("pipeline {name}")).collect();
    names.join(" and ")
}

/// Follows a replay that others work on.
pub async fn watch(setting: &Setting, which: ReplayRef) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let id = redrive.find_replay(which).await?.id;
    let counter = Counter::start("replayed");
    let (mut said, begun) = (false, Instant::now());
    loop {
        let replay = redrive.find_replay(ReplayRef::Id(id)).await?;
        show(&counter, &replay);
        if !said && replay.is_open() {
            let unattended = redrive.unattended(&replay).await?;
            let awaited = redrive.awaited_by(&replay).await?;
            if !unattended.is_empty() {
                let what = names(&unattended);
                counter
                    .say(&format!("nobody works on {what}: `{REDRIVE} work` or `{REDRIVE} replay resume {id}` does"));
            } else if !awaited.is_empty() && begun.elapsed() >= TAKEN_UP_AFTER {
                let rules = format!("`{REDRIVE} replay resume {id}` goes on with the rules that hold now");
                counter.say(&format!("it waits for a worker with {}; {rules}", awaited_by(&awaited)));
            }
            said = !unattended.is_empty() || (!awaited.is_empty() && begun.elapsed() >= TAKEN_UP_AFTER);
        }
        if !replay.is_open() || replay.state == ReplayState::Paused {
            counter.finish();
            summarise(&redrive, &replay, ("", true)).await?;
            return Ok(exit(&replay));
        }
        tokio::time::sleep(EVERY).await;
    }
}

fn left(replay: &ReplayView) -> u64 {
    replay.progress.pending + replay.progress.running
}

fn exit(replay: &ReplayView) -> Exit {
    match replay.state {
        ReplayState::Paused => Exit::Paused,
        _ if replay.progress.failed > 0 => Exit::Dead,
        // Not all was tried that was to be.
        ReplayState::Cancelling | ReplayState::Cancelled => Exit::Failed,
        _ if replay.progress.gone > 0 => Exit::Failed,
        _ => Exit::Ok,
    }
}

fn show(counter: &Counter, replay: &ReplayView) {
    let progress = &replay.progress;
    counter.show(progress.recovered + progress.failed + progress.gone, progress.total);
    counter.note(format!("recovered {}  failed again {}  step {}", progress.recovered, progress.failed, step(replay)));
}

/// The step of the ramp, in words.
pub fn step(replay: &ReplayView) -> String {
    let (number, steps) = (replay.progress.step.number, replay.pacing.ramp.len());
    match usize::try_from(number) {
        Ok(number) if number < steps => format!("{} of {}", number + 1, steps + 1),
        _ => format!("{} of {}, all that is left", steps + 1, steps + 1),
    }
}

/// Says how a replay went; `with_failed` shows letters that failed again.
async fn summarise(redrive: &Desk, replay: &ReplayView, (command, with_failed): (&str, bool)) -> Result<()> {
    let progress = &replay.progress;
    say!("{} {} of {}", paint(GOOD, "recovered:"), progress.recovered, progress.total);
    if progress.failed > 0 {
        say!(
            "{} {}, {} of them for the same cause as before",
            paint(BAD, "failed again:"),
            progress.failed,
            progress.same_cause
        );
        if with_failed {
            show_failed(redrive, replay.id).await?;
        }
    }
    if progress.gone > 0 {
        say!("not sent, because discarded meanwhile or --set does not fit: {}", progress.gone);
    }
    match replay.state {
        ReplayState::Paused => {
            let why = replay.why.as_deref().unwrap_or("by hand");
            say!("{} {why}; {} letters wait", paint(WAITING, "paused:"), left(replay));
            say!("go on with: {REDRIVE} replay resume {}{command}", replay.id);
            say!("or give up: {REDRIVE} replay cancel {}", replay.id);
        }
        ReplayState::Cancelling | ReplayState::Cancelled => {
            say!("cancelled {}", replay.why.as_deref().unwrap_or_default())
        }
        ReplayState::Preparing | ReplayState::Running | ReplayState::Done => {}
    }
    Ok(())
}

async fn show_failed(redrive: &Desk, id: ReplayId) -> Result<()> {
    let params = ListReplayLetters { id, state: Some(LetterState::Failed), limit: FAILED_SHOWN, cursor: None };
    let page = redrive.list_replay_letters(params).await?;
    for failed in &page.items {
        let Some(letter) = redrive.get_dead(failed.id).await? else { continue };
        let verdict = letter.verdict.as_ref().map(|verdict| format!("  ({verdict})")).unwrap_or_default();
        let name = letter.number.map_or_else(|| letter.id.to_string(), |number| number.to_string());
        say!("  {name}  {}: {}{verdict}", letter.reason, cut(&letter.message, 100));
    }
    if page.next.is_some() {
        say!("  …  all of them: {REDRIVE} replay show {id} --letters --state failed");
    }
    Ok(())
}
