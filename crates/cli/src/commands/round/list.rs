//! `redrive round list`.

use anyhow::Result;
use redrive::contract::RoundView;
use redrive_core::time::Timestamp;

use crate::args::RoundListArgs;
use crate::exit::Exit;
use crate::output::print::{out, say};
use crate::output::times::ago;
use crate::output::typed::REDRIVE;
use crate::output::{json, table};
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: RoundListArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let mut rounds = redrive.rounds(args.pipeline.as_ref(), args.limit.saturating_add(1)).await?;
    let more = rounds.len() > args.limit as usize;
    rounds.truncate(args.limit as usize);
    if args.json {
        for round in &rounds {
            json::line(round)?;
        }
    } else if rounds.is_empty() {
        out!("no rounds: `{REDRIVE} run FILE --round NAME` begins one")?;
    } else {
        print(&rounds, redrive.now())?;
    }
    if more {
        say!("there are more: --limit shows them");
    }
    Ok(Exit::Ok)
}

fn print(rounds: &[RoundView], now: Timestamp) -> Result<()> {
    let row = |round: &RoundView| {
        let counts = [round.accepted, round.queued, round.leased, round.done, round.dead, round.discarded];
        let mut row = vec![round.round.to_string(), round.pipeline.to_string()];
        row.extend(counts.map(|count| count.to_string()));
        row.push(ago(round.begun_at, now));
        row
    };
    let rows: Vec<_> = rounds.iter().map(row).collect();
    let headings =
        ["~=round", "~=pipeline", ">tasks", ">queued", ">running", ">done", ">died", ">discarded", "?>begun"];
    Ok(table::print(&headings, &rows)?)
}
