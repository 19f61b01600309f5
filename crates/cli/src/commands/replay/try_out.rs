//! `redrive replay try`: what would recover, without settling anything.

use anyhow::{Result, bail};
use redrive::config::Setting;
use redrive::replays::{Tried, can_use_saved};
use redrive::{CancellationToken, Redrive};
use redrive_core::jobs::Input;

use super::super::signals;
use super::select::{self, Chosen};
use crate::args::{ReplayWorkArgs, TryArgs};
use crate::exit::Exit;
use crate::output::json;
use crate::output::paint::{BAD, DIM, GOOD, paint};
use crate::output::print::{out, say};
use crate::output::progress::Counter;
use crate::output::table;

pub async fn run(setting: &Setting, args: TryArgs) -> Result<Exit> {
    let redrive = setting.redrive_existing().await?;
    let chosen = select::selection(args.select, redrive.now())?;
    let tried = try_out(setting, &redrive, &chosen, select::edits(args.edits), &args.work).await?;
    if tried.tried == 0 && !tried.stopped {
        for (exclusion, letters) in &tried.excluded {
            say!("{letters} not tried: {}", select::meaning(*exclusion));
        }
        match redrive.find_not_dead(&chosen.selection.ids).await? {
            Some(not_dead) => bail!("{not_dead}"),
            None => bail!("none of the letters has a saved payload to try"),
        }
    }
    if args.json {
        json::document(&tried)?;
    } else {
        print(&tried)?;
    }
    Ok(match (tried.stopped, tried.remaining.is_empty()) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Ok,
        (false, false) => Exit::Dead,
    })
}

/// Tries letters and shows how far it is.
pub async fn try_out(
    setting: &Setting,
    redrive: &Redrive,
    chosen: &Chosen,
    edits: Input,
    args: &ReplayWorkArgs,
) -> Result<Tried> {
    let force = chosen.force_why.is_some();
    let plan = select::rough_plan(redrive, chosen).await?;
    let pipelines = select::pipelines(setting, redrive, plan.pipelines.keys().cloned(), args, None)?;
    can_use_saved(&pipelines, !edits.is_empty())?;
    let stop = CancellationToken::new();
    let counter = Counter::start("tried");
    let said = counter.clone();
    signals::watch(stop.clone(), CancellationToken::new(), move |_| {
        said.say("stopping: what was tried so far is shown")
    });
    let told = |tried, of| counter.show(tried, of);
    let tried = redrive.try_replay(&pipelines, (chosen.selection.clone(), force), &edits, &stop, told).await;
    counter.finish();
    Ok(tried?)
}

/// Prints what would recover and what would remain.
pub fn print(tried: &Tried) -> Result<()> {
    let style = if tried.recovered > 0 { GOOD } else { BAD };
    out!("{} of {} would recover", paint(style, tried.recovered), tried.tried)?;
    let failing = tried.tried - tried.recovered;
    if failing > 0 {
        out!("{} would still fail:", paint(BAD, failing))?;
        let row = |remaining: &redrive::replays::Remaining| {
            let cause = remaining.cause.as_ref().map_or_else(|| "new".to_owned(), ToString::to_string);
            vec![
                remaining.letters.to_string(),
                cause,
                remaining.reason.to_string(),
                remaining.example.to_string(),
                remaining.message.clone(),
            ]
        };
        let rows: Vec<_> = tried.remaining.iter().map(row).collect();
        table::print(&[">letters", "cause", "reason", "for example", "message"], &rows)?;
    }
    for (exclusion, letters) in &tried.excluded {
        out!("{letters} not tried: {}", select::meaning(*exclusion))?;
    }
    out!("{}", paint(DIM, "nothing was settled"))?;
    Ok(())
}
