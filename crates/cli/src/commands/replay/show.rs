//! `redrive replay show`: a replay, or its letters and what became of each.

use std::io;

use anyhow::Result;
use redrive::contract::{ListReplayLetters, ReplayLetter, ReplayView};
use redrive_core::definitions::Pins;
use redrive_core::replays::throughput;
use redrive_core::time::Timestamp;
use serde_json::json;

use super::super::filter;
use super::{drive, select};
use crate::args::ReplayShowArgs;
use crate::exit::Exit;
use crate::output::foreign::harmless;
use crate::output::json;
use crate::output::paint::{DIM, HEADING, paint};
use crate::output::print::out;
use crate::output::table;
use crate::output::times::ago;
use crate::output::typed::REDRIVE;
use crate::output::words;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: ReplayShowArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let replay = redrive.find_replay(args.id).await?;
    if args.letters {
        let fetch = async |limit, cursor| {
            let params = ListReplayLetters { id: replay.id, state: args.state, limit, cursor };
            redrive.list_replay_letters(params).await
        };
        let now = redrive.now();
        return filter::print(&args.page, fetch, |letters| print_letters(letters, now)).await;
    }
    let joined = redrive.joined_since(replay.id).await?;
    let awaited = redrive.awaited_by(&replay).await?;
    if args.page.json {
        let mut document = serde_json::to_value(&replay)?;
        document["joined_since"] = json!(joined);
        document["awaits"] = json!(awaited);
        document["per_minute"] = json!(replay.per_minute(redrive.now()));
        json::document(&document)?;
    } else {
        print(&replay, joined, &awaited, redrive.now())?;
    }
    Ok(Exit::Ok)
}

fn print(replay: &ReplayView, joined: u64, awaited: &Pins, now: Timestamp) -> Result<()> {
    let progress = &replay.progress;
    let why = replay.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    out!("{} {}  {}{}", paint(HEADING, "replay"), replay.id, replay.state, harmless(&why))?;
    let rate = replay.pacing.per_second.map(|rate| format!(", at most {rate}/s")).unwrap_or_default();
    let ramp: Vec<String> = replay.pacing.ramp.iter().map(ToString::to_string).collect();
    let limit = replay.pacing.refail_max * 100.0;
    let pace = match ramp.is_empty() {
        true => format!("all at once{rate}, pauses when more than {limit:.0} % fail again"),
        false => format!("{} then all{rate}, pauses when more than {limit:.0} % fail again", ramp.join(", ")),
    };
    let force = replay.force_why.as_ref().map(|why| format!("permanently failed ones too: {why}"));
    let edits = (!replay.edits.is_empty()).then(|| serde_json::to_string(&replay.edits)).transpose()?;
    for (name, value) in [
        ("name", Some(replay.name.clone())),
        ("by", Some(replay.actor.clone())),
        ("works", Some(works(replay))),
        ("chosen", Some(serde_json::to_string(&replay.selection)?)),
        ("changes", edits),
        ("forced", force),
        ("pace", Some(pace)),
        ("step", replay.is_open().then(|| drive::step(replay))),
        ("rules", (!replay.pins.is_empty()).then(|| versions(&replay.pins))),
        ("waits", (!awaited.is_empty()).then(|| format!("for a worker with version {}", versions(awaited)))),
        ("made", Some(replay.created_at.to_string())),
        ("speed", replay.per_minute(now).map(throughput)),
        ("oldest", replay.oldest.map(|at| format!("of its letters that are left, died {}", ago(at, now)))),
        ("ended", replay.finished_at.map(|at| at.to_string())),
    ] {
        if let Some(value) = value {
            out!("  {} {}", paint(DIM, format!("{name:<9}")), harmless(&value))?;
        }
    }
    out!("{}", paint(HEADING, "letters"))?;
    for (name, count) in [
        ("chosen", progress.total),
        ("pending", progress.pending),
        ("sent, not ended", progress.running),
        ("recovered", progress.recovered),
        ("failed again", progress.failed),
        ("for the same cause", progress.same_cause),
        ("not sent: discarded meanwhile, or --set does not fit (gone)", progress.gone),
        ("stayed dead (cancelled)", progress.cancelled()),
        ("joined since", joined),
    ] {
        if count > 0 || name == "chosen" || name == "recovered" {
            out!("  {count:>8}  {name}")?;
        }
    }
    for (exclusion, letters) in &replay.excluded {
        out!("  {letters:>8}  left out: {}", select::meaning(*exclusion))?;
    }
    Ok(())
}

/// Which workers are awaited, in words: what was said to them on the command line is part of their version.
pub fn awaited(awaited: &Pins) -> String {
    format!("version {}: none has it (`{REDRIVE} status` shows which they have)", versions(awaited))
}

/// Versions of pipelines, in words.
pub fn versions(pins: &Pins) -> String {
    let each: Vec<_> = pins.iter().map(|(name, version)| format!("{version} of {name}")).collect();
    each.join(", ")
}

/// What its letters are worked on from, in words.
fn works(replay: &ReplayView) -> String {
    match (replay.saved, replay.progress.total - replay.saved) {
        (_, 0) => "from saved payloads".to_owned(),
        (0, _) => "anew, from the network".to_owned(),
        (saved, anew) => format!("on {saved} from saved payloads, on {anew} anew"),
    }
}

fn print_letters(letters: &[ReplayLetter], now: Timestamp) -> io::Result<()> {
    if letters.is_empty() {
        return out!("no letters");
    }
    let cause =
        |cause: &Option<redrive_core::causes::CauseId>| cause.as_ref().map_or("-".to_owned(), ToString::to_string);
    let row = |letter: &ReplayLetter| {
        vec![
            words::job(letter.number, letter.id),
            letter.pipeline.to_string(),
            letter.state.to_string(),
            if letter.saved { "saved" } else { "anew" }.to_owned(),
            letter.ended_at.map_or("-".to_owned(), |at| ago(at, now)),
            cause(&letter.cause),
            cause(&letter.cause_after),
        ]
    };
    let rows: Vec<_> = letters.iter().map(row).collect();
    table::print(&[">no.", "~=pipeline", "state", "?from", ">ended", "cause", "cause then"], &rows)
}
