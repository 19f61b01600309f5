//! `redrive replay start` and `resume`: makes a replay, or finds one, and works on it until it ends.

use anyhow::{Result, bail};
use redrive::config::{ConfigError, KeptFor, Overrides};
use redrive::contract::ReplayView;
use redrive::replays::{AskedReplay, ReplayRef, StartedReplay, can_use_saved};
use redrive_client::Desk;
use redrive_core::definitions::Pins;
use redrive_core::ids::ReplayId;
use redrive_core::jobs::Input;
use redrive_core::replays::{HANDFUL, Pacing, ReplayMode, ReplayPlan};

use super::super::filter::actor;
use super::letters::Letters;
use super::select::Chosen;
use super::{drive, plan, select, show};
use crate::args::{DriveArgs, ResumeArgs, SelectArgs, StartArgs};
use crate::exit::{Exit, usage};
use crate::output::print::{out, say};
use crate::output::progress::Counter;
use crate::output::report::figures::counted;
use crate::output::typed::REDRIVE;
use crate::setting::Setting;

/// A replay that was asked for, in whatever words.
pub struct Asked {
    /// Which letters.
    pub select: SelectArgs,
    /// What it is called; by default by what was chosen.
    pub name: Option<String>,
    /// What they are worked on from, if that was said.
    pub mode: Option<ReplayMode>,
    /// Whether only what the newest try recovered is meant.
    pub recoverable: bool,
    /// How fast; if nothing was said, as a person has letters tried again.
    pub pacing: Option<Pacing>,
    /// Changes of their inputs.
    pub edits: Input,
    /// Set if letters that are named are retried one by one.
    pub by_name: bool,
    /// Who does the work, and where results go.
    pub drive: DriveArgs,
}

pub async fn run(setting: &Setting, args: StartArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let asked = Asked {
        select: args.select,
        name: args.name,
        mode: args.mode.wanted(),
        recoverable: args.recoverable,
        pacing: Some(Pacing { ramp: args.ramp.0, refail_max: args.refail_max, per_second: args.rate }),
        edits: select::edits(args.edits),
        by_name: false,
        drive: args.drive,
    };
    start(setting, &redrive, asked).await
}

/// Makes a replay and, unless it is left to others, works on it.
pub async fn start(setting: &Setting, redrive: &Desk, args: Asked) -> Result<Exit> {
    let chosen = select::selection(redrive, args.select).await?;
    if args.drive.detach && !args.drive.work.command.is_empty() {
        return Err(usage("--detach leaves the work to `redrive work`, which takes the command: leave it out here"));
    }
    let found = select::rough_plan(redrive, &chosen, &args.edits).await?;
    if !args.drive.detach {
        redrive.check_not_paused(found.pipelines.keys()).await?;
    }
    let counter = Counter::start("replayed");
    let results = Some((&counter, args.drive.out.clone()));
    let names = (found.pipelines.keys().cloned(), KeptFor::Letters(&chosen.selection));
    let pipelines = match select::pipelines(setting, redrive, names, &args.drive.work, results).await {
        // What is left to others is theirs to know: a server has its own.
        Err(_) if args.drive.detach && matches!(redrive, Desk::There(_)) => Vec::new(),
        known => known.map_err(|error| left_to_server(redrive, error))?,
    };
    let (unhurried, Chosen { selection, force_why }) = (args.pacing.is_some(), chosen);
    let Asked { name, mode, recoverable, pacing, edits, by_name, .. } = args;
    let of = AskedReplay::of(selection, actor());
    let asked = AskedReplay { name, mode, recoverable, force_why, pacing, edits, by_name, ..of };
    let StartedReplay { id, plan, mode, not_dead, all_taken } = redrive.ask_replay(asked, &pipelines).await?;
    let Some(id) = id else {
        if !not_dead.is_empty() {
            let lines: Vec<_> = not_dead.iter().map(ToString::to_string).collect();
            bail!("{}", lines.join("\n"));
        }
        plan::print(&plan, mode)?;
        return if plan.matched == 0 { bail!("no dead letters are like that") } else { Ok(Exit::Failed) };
    };
    let letters = (!unhurried && plan.included <= HANDFUL).then(|| Letters::of(id));
    tell(&plan, mode, letters.is_none().then_some(id))?;
    not_dead.iter().for_each(|not_dead| say!("left out: {not_dead}"));
    let exit_of = |exit: Exit| if exit == Exit::Ok && !all_taken { Exit::Failed } else { exit };
    if args.drive.detach {
        out!("`{REDRIVE} work` does it; follow it with: {REDRIVE} replay watch {id}")?;
        let replay = redrive.find_replay(ReplayRef::Id(id)).await?;
        return tell_awaited(redrive, &replay).await.map(exit_of);
    }
    drive::drive(redrive, pipelines, (id, letters), counter, &args.drive.work).await.map(exit_of)
}

/// Says what was begun, unless it is a handful that is spoken of one by one, and what was left out. What comes of the letters may
/// be on its way to standard output.
fn tell(plan: &ReplayPlan, mode: ReplayMode, id: Option<ReplayId>) -> Result<()> {
    if let Some(id) = id {
        let letters = counted(i64::try_from(plan.included).unwrap_or(i64::MAX), "letter", "letters");
        out!("replay {id}: {letters}, {}", plan::from_what(plan, mode))?;
    }
    for (exclusion, letters) in &plan.excluded {
        match id {
            Some(_) => out!("  {letters} left out: {}", select::meaning(*exclusion))?,
            None => say!("{letters} left out: {}", select::meaning(*exclusion)),
        }
    }
    Ok(())
}

pub async fn resume(setting: &Setting, args: ResumeArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let found = redrive.find_resumable(args.id).await?;
    let names = found.pipelines.iter().cloned();
    if args.drive.detach {
        // Whoever leaves the work to others need not be able to do it.
        let known = names.filter_map(|name| setting.pipeline(name, &Overrides::default()).ok());
        let known: Vec<_> = known.map(|(pipeline, _)| pipeline).collect();
        let (replay, before) = redrive.resume_replay(&found, &actor(), &known).await?;
        tell_pins(&replay, &before)?;
        out!("replay {} goes on: `{REDRIVE} work` does it", replay.id)?;
        return tell_awaited(&redrive, &replay).await;
    }
    let counter = Counter::start("replayed");
    let (mut pipelines, mut unknown) = (Vec::new(), None);
    for name in &found.pipelines {
        let results = Some((&counter, args.drive.out.clone()));
        let name = (std::iter::once(name.clone()), KeptFor::Pinned(&found.pins));
        match select::pipelines(setting, &redrive, name, &args.drive.work, results).await {
            Ok(known) => pipelines.extend(known),
            Err(why) => unknown = unknown.or(Some(why)),
        }
    }
    // Whoever knows one of its pipelines can work on a replay; the rest is left to others.
    if let (true, Some(why)) = (pipelines.is_empty(), unknown) {
        return Err(left_to_server(&redrive, why));
    }
    if found.mode == ReplayMode::Saved {
        can_use_saved(&pipelines, !found.edits.is_empty())?;
    }
    let (replay, before) = redrive.resume_replay(&found, &actor(), &pipelines).await?;
    tell_pins(&replay, &before)?;
    let id = replay.id;
    drive::drive(&redrive, pipelines, (id, None), counter, &args.drive.work).await
}

/// Why there is nothing to work on letters with here; the way out is a server's workers, if there is a server.
fn left_to_server(redrive: &Desk, error: anyhow::Error) -> anyhow::Error {
    match (redrive, error.downcast_ref::<ConfigError>()) {
        (Desk::There(_), Some(ConfigError::NoCommand { pipeline, .. })) => usage(format!(
            "pipeline {pipeline} has no command here: give one after --, or define it in redrive.toml of this folder; `redrive replay start --detach` leaves the letters to workers of the server"
        )),
        _ => error,
    }
}

/// Says who is waited for, if nobody who is there may work on a replay.
async fn tell_awaited(redrive: &Desk, replay: &ReplayView) -> Result<Exit> {
    let awaited = redrive.awaited_by(replay).await?;
    if !awaited.is_empty() {
        out!("it waits for a worker with {}", show::awaited(&awaited))?;
    }
    Ok(Exit::Ok)
}

/// Says which pipelines a replay is worked on with in another version than before.
fn tell_pins(replay: &ReplayView, before: &Pins) -> Result<()> {
    for (name, version) in before {
        let now = replay.pins.get(name).map_or_else(|| "any".to_owned(), ToString::to_string);
        out!("pipeline {name} changed: it was planned with version {version}, and goes on with {now}")?;
    }
    Ok(())
}
