//! `redrive cause show`: why these letters belong together, what they look like, what was said.

use anyhow::Result;
use redrive::compare::Differences;
use redrive::contract::CauseDetail;
use redrive_core::alerts::Share;
use redrive_core::time::Timestamp;

use crate::args::CauseShowArgs;
use crate::exit::Exit;
use crate::output::bars::spark;
use crate::output::foreign::{cut, harmless, width_of};
use crate::output::json;
use crate::output::paint::{BAD, DIM, HEADING, paint};
use crate::output::print::out;
use crate::output::report::different::{against, label, nothing, of_failures_only, of_whom, points, unknown};
use crate::output::report::figures::{count, counted, percent};
use crate::output::table;
use crate::output::times::ago;
use crate::output::typed::REDRIVE;
use crate::setting::Setting;

/// Differences that are shown.
const DIFFERENT_SHOWN: usize = 8;

pub async fn run(setting: &Setting, args: CauseShowArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let now = redrive.now();
    let detail = redrive.get_cause(args.id).await?;
    match args.json {
        true => json::document(&detail)?,
        false => print(&detail, &redrive.differences(&detail.cause).await?, now)?,
    }
    Ok(Exit::Ok)
}

fn print(detail: &CauseDetail, different: &Differences, now: Timestamp) -> Result<()> {
    let cause = &detail.cause;
    out!("{} {}  {}", paint(HEADING, "cause"), cause.id, paint(BAD, cause.state))?;
    out!("{}", table::wrapped(&harmless(&cause.title), "  "))?;
    let owner = cause.owner.clone().unwrap_or_else(|| "nobody".to_owned());
    let targets = match cause.targets_count {
        0 => "-".to_owned(),
        n if n as usize > cause.targets.len() => {
            format!("{} and {} more", cause.targets.join(", "), n as usize - cause.targets.len())
        }
        _ => cause.targets.join(", "),
    };
    let seen = format!(
        "first {} ({}), last {} ({})",
        cause.first_seen,
        ago(cause.first_seen, now),
        cause.last_seen,
        ago(cause.last_seen, now)
    );
    for (name, value) in [
        ("pipeline", cause.pipeline.to_string()),
        ("reason", cause.reason.to_string()),
        (
            "letters",
            format!(
                "{} dead, {} recovered, {} discarded; it killed {}{}",
                cause.dead,
                cause.recovered,
                cause.discarded,
                counted(i64::try_from(cause.total).unwrap_or(i64::MAX), "task", "tasks"),
                if cause.refailed > 0 { format!(", and {} failed again", cause.refailed) } else { String::new() }
            ),
        ),
        ("trend", format!("{}  (24 hours, the last is now)", spark(&cause.trend.0))),
        ("seen", seen),
        ("where", targets),
        ("owner", owner),
    ] {
        out!("  {} {}", paint(DIM, format!("{name:<9}")), table::beside(&harmless(&value), 12))?;
    }
    print_different(different)?;
    print_keys(detail)?;
    print_samples(detail)?;
    print_notes(detail)?;
    if cause.dead > 0 {
        out!("{}", paint(HEADING, "what now"))?;
        // A try works from saved pages.
        if cause.saved > 0 {
            out!(
                "  {REDRIVE} replay try --cause {:<14}{}",
                cause.id.as_str(),
                paint(DIM, "would they recover? nothing happens")
            )?;
        }
        out!("  {REDRIVE} replay start --cause {:<12}{}", cause.id.as_str(), paint(DIM, "bring them back"))?;
    }
    Ok(())
}

/// What sets those who died apart, as the page of the cause says it.
fn print_different(different: &Differences) -> Result<()> {
    out!("{}", paint(HEADING, "what is different"))?;
    out!("  {}", paint(DIM, table::beside(&against(different), 2)))?;
    let share = |share: Share, of: &str| {
        let (part, whole) = (count(share.part as i64), count(share.whole as i64));
        format!("{} of {of} ({part} of {whole})", percent(share.value()))
    };
    for one in different.found.iter().take(DIFFERENT_SHOWN) {
        let value = if one.value.is_empty() { "empty" } else { &one.value };
        out!("  {} {}", paint(DIM, label(&one.kind)), cut(value, 64))?;
        let failures = share(one.failures, &of_whom(one.failures, different.failures, "failures"));
        let successes = share(one.successes, &of_whom(one.successes, different.successes, "successes"));
        let apart = format!("{failures}, {successes}, apart at least {}", points(one.gap));
        out!("    {}", table::beside(&apart, 4))?;
    }
    if different.found.len() > DIFFERENT_SHOWN {
        out!("  {}", paint(DIM, format!("{DIFFERENT_SHOWN} of {} are shown", different.found.len())))?;
    }
    if different.found.is_empty() {
        out!("  {}", table::beside(&nothing(different), 2))?;
    }
    for said in [of_failures_only(different), unknown(different)].iter().flatten() {
        out!("  {}", table::beside(&harmless(said), 2))?;
    }
    Ok(())
}

fn print_keys(detail: &CauseDetail) -> Result<()> {
    out!("{}", paint(HEADING, "why these belong together"))?;
    for key in &detail.keys {
        out!("  {} {}", key.key, paint(DIM, format!("{} dead, {} ever", key.dead, key.total)))?;
        for part in &key.parts {
            let room = part.name.chars().count().max(10) + 5;
            out!("    {} {}", paint(DIM, format!("{:<10}", part.name)), table::beside(&harmless(&part.value), room))?;
        }
    }
    Ok(())
}

fn print_samples(detail: &CauseDetail) -> Result<()> {
    if detail.samples.is_empty() {
        return Ok(());
    }
    out!("{}", paint(HEADING, "for example"))?;
    let room = |most: usize| table::terminal_width().map_or(most, |width| most.min(width));
    for letter in &detail.samples {
        let name = letter.number.map_or_else(|| letter.id.to_string(), |number| number.to_string());
        out!("  {name}  {}", cut(&letter.message, room(144).saturating_sub(width_of(&name) + 4)))?;
        let payload = if letter.payload.is_some() { format!("  {REDRIVE} payload show {name}") } else { String::new() };
        let input = serde_json::to_string(&letter.input)?;
        let beside = width_of(&payload) + 4;
        out!("    {}{}", cut(&input, room(120 + beside).saturating_sub(beside)), paint(DIM, payload))?;
    }
    Ok(())
}

fn print_notes(detail: &CauseDetail) -> Result<()> {
    if !detail.notes.is_empty() {
        out!("{}", paint(HEADING, "notes"))?;
    }
    for note in &detail.notes {
        let who = format!("{} {}", note.at, cut(&note.by.name, 40));
        out!("  {} {}", paint(DIM, &who), table::beside(&harmless(&note.text), width_of(&who) + 3))?;
    }
    if !detail.alike.is_empty() {
        out!("{}", paint(HEADING, "looks like"))?;
    }
    for alike in &detail.alike {
        let percent = (alike.similarity * 100.0).round();
        let head = format!("  {} {percent:.0} %  ", alike.id);
        let room = table::terminal_width().map_or(110, |width| width.saturating_sub(width_of(&head)));
        out!("{head}{}", cut(&alike.title, room))?;
        out!("    {}", paint(DIM, format!("if they are one: {REDRIVE} cause merge {} {}", alike.id, detail.cause.id)))?;
    }
    Ok(())
}
