//! `redrive replay list`.

use std::io;

use anyhow::Result;
use redrive::config::Setting;
use redrive::contract::{ListReplays, ReplayView};

use super::super::filter;
use crate::args::PageArgs;
use crate::exit::Exit;
use crate::output::print::out;
use crate::output::table;

pub async fn run(setting: &Setting, args: PageArgs) -> Result<Exit> {
    let redrive = setting.redrive_existing().await?;
    let fetch =
        async |limit, cursor| redrive.store().list_replays(ListReplays { open_only: false, limit, cursor }).await;
    filter::print(&args, fetch, print).await
}

fn print(replays: &[ReplayView]) -> io::Result<()> {
    if replays.is_empty() {
        return out!("no replays");
    }
    let row = |replay: &ReplayView| {
        let progress = &replay.progress;
        let numbers = [progress.total, progress.pending, progress.running, progress.recovered, progress.failed];
        let mut row = vec![
            replay.id.to_string(),
            table::second(replay.created_at),
            replay.state.to_string(),
            replay.mode.to_string(),
        ];
        row.extend(numbers.map(|number| number.to_string()));
        row.extend([replay.actor.clone(), replay.name.clone()]);
        row
    };
    let headings = [
        "id",
        "made at (UTC)",
        "state",
        "mode",
        ">letters",
        ">pending",
        ">running",
        ">recovered",
        ">failed",
        "by",
        "name",
    ];
    table::print(&headings, &replays.iter().map(row).collect::<Vec<_>>())
}
