//! `redrive replay list`.

use std::io;

use anyhow::Result;
use redrive::contract::{ListReplays, ReplayView};
use redrive_core::replays::throughput;
use redrive_core::time::Timestamp;

use super::super::filter;
use crate::args::PageArgs;
use crate::exit::Exit;
use crate::output::print::out;
use crate::output::table;
use crate::output::times::ago;
use crate::output::words;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: PageArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let fetch = async |limit, cursor| redrive.list_replays(ListReplays { cursor, ..ListReplays::newest(limit) }).await;
    let now = redrive.now();
    filter::print(&args, fetch, |replays| print(replays, now)).await
}

fn print(replays: &[ReplayView], now: Timestamp) -> io::Result<()> {
    if replays.is_empty() {
        return out!("no replays");
    }
    let row = |replay: &ReplayView| {
        let progress = &replay.progress;
        let left = progress.pending + progress.running;
        let numbers = [progress.total, left, progress.recovered, progress.failed];
        let mut row = vec![
            words::ending(replay.id),
            ago(replay.created_at, now),
            replay.state.to_string(),
            replay.mode.to_string(),
        ];
        row.extend(numbers.map(|number| number.to_string()));
        row.push(replay.per_minute(now).map_or("-".to_owned(), throughput));
        row.push(replay.oldest.map_or("-".to_owned(), |at| ago(at, now)));
        row.extend([replay.actor.clone(), replay.name.clone()]);
        row
    };
    let headings = [
        "replay",
        "?>made",
        "state",
        "?mode",
        "?>letters",
        ">left",
        ">recovered",
        ">died again",
        "?>speed",
        "?>oldest",
        "~by",
        "name",
    ];
    table::print_titled(&headings, &replays.iter().map(row).collect::<Vec<_>>())
}
