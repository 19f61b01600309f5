//! `redrive replay try`: what would recover, without settling anything.

use anyhow::{Result, bail};
use redrive::CancellationToken;
use redrive::compare::Comparing;
use redrive::config::KeptFor;
use redrive::replays::{GoodCheck, NewTry, ReplayError, Tried, can_use_saved, describe};
use redrive_client::Desk;
use redrive_core::jobs::Input;

use super::super::filter::actor;
use super::super::signals;
use super::select::{self, Chosen};
use crate::args::{ReplayWorkArgs, TryArgs};
use crate::exit::Exit;
use crate::output::foreign::harmless;
use crate::output::json;
use crate::output::paint::{BAD, DIM, GOOD, paint};
use crate::output::print::{out, say};
use crate::output::progress::Counter;
use crate::output::table;
use crate::output::words;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: TryArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let chosen = select::selection(&redrive, args.select).await?;
    if args.show {
        return show(&redrive, &chosen, &select::edits(args.edits), args.json).await;
    }
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
    redrive: &Desk,
    chosen: &Chosen,
    edits: Input,
    args: &ReplayWorkArgs,
) -> Result<Tried> {
    let force = chosen.force_why.is_some();
    let plan = select::rough_plan(redrive, chosen, &edits).await?;
    let names = (plan.pipelines.keys().cloned(), KeptFor::Letters(&chosen.selection));
    let pipelines = select::pipelines(setting, redrive, names, args, None).await?;
    can_use_saved(&pipelines, !edits.is_empty())?;
    let stop = CancellationToken::new();
    let counter = Counter::start("tried");
    let said = counter.clone();
    signals::watch(stop.clone(), CancellationToken::new(), move |_| {
        said.say("stopping: what was tried so far is shown")
    });
    let told = |tried, of| counter.show(tried, of);
    let new = NewTry { by: actor(), selection: chosen.selection.clone(), force, edits };
    let vault = setting.vault_of(redrive)?;
    // A command that was typed goes by no rules of the file.
    let with = args.command.is_empty().then(|| Comparing { setting, vault: vault.as_ref() });
    let tried = redrive.try_replay(&pipelines, new, (&stop, told), with).await;
    counter.finish();
    Ok(tried?)
}

/// Shows the newest try, of these letters if any were named.
async fn show(redrive: &Desk, chosen: &Chosen, edits: &Input, as_json: bool) -> Result<Exit> {
    let of = (!chosen.selection.is_empty()).then_some((&chosen.selection, edits));
    let kept = redrive.find_try(of).await?.ok_or(ReplayError::NoTry)?;
    if as_json {
        json::document(&kept)?;
        return Ok(Exit::Ok);
    }
    let count = |field: &str| kept.outcome[field].as_u64().unwrap_or_default();
    out!("{} of {} would recover", count("recovered"), count("tried"))?;
    out!("tried at {} by {}, with {}", kept.created_at, harmless(&kept.actor), harmless(&describe(&kept.selection)))?;
    Ok(Exit::Ok)
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
                words::ending(remaining.example),
                remaining.message.clone(),
            ]
        };
        let rows: Vec<_> = tried.remaining.iter().map(row).collect();
        table::print_titled(&[">letters", "cause", "reason", "for example", "message"], &rows)?;
    }
    for (exclusion, letters) in &tried.excluded {
        out!("{letters} not tried: {}", select::meaning(*exclusion))?;
    }
    if let Some(GoodCheck { same, of, fields }) = &tried.good {
        let style = if same == of { GOOD } else { BAD };
        let pages = if *of == 1 { "page that worked still gives" } else { "pages that worked still give" };
        let differ = if same == of { String::new() } else { format!("; not {}", harmless(&fields.join(", "))) };
        out!("{} of {of} {pages} the same record{differ}", paint(style, same))?;
    }
    let kept = "nothing was settled; for 24 hours `replay start --recoverable` with the same choice replays what would recover";
    let said = if tried.id.is_some() && tried.recovered > 0 { kept } else { "nothing was settled" };
    out!("{}", paint(DIM, said))?;
    Ok(())
}
