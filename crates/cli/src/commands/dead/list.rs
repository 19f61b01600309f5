//! `redrive dead list`.

use std::io;

use anyhow::Result;
use redrive::contract::ListDead;
use redrive_core::dead::DeadLetter;
use redrive_core::time::Timestamp;

use super::super::filter;
use crate::args::DeadListArgs;
use crate::exit::Exit;
use crate::output::print::out;
use crate::output::table;
use crate::output::times::ago;
use crate::output::words;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: DeadListArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let filter = filter::of_dead(args.filter, redrive.now())?;
    let fetch = async |limit, cursor| {
        let params = ListDead { sort: args.sort, cursor, ..ListDead::newest(filter.clone(), limit) };
        redrive.list_dead(params).await
    };
    let now = redrive.now();
    filter::print(&args.page, fetch, |letters| print(letters, now)).await
}

fn print(letters: &[DeadLetter], now: Timestamp) -> io::Result<()> {
    if letters.is_empty() {
        return out!("no dead letters");
    }
    let row = |letter: &DeadLetter| {
        let tries = match letter.crashes {
            0 => letter.attempts.to_string(),
            crashes => format!("{}+{crashes}", letter.attempts),
        };
        vec![
            words::job(letter.number, letter.id),
            letter.pipeline.to_string(),
            ago(letter.died_at, now),
            letter.reason.to_string(),
            letter.code.clone().unwrap_or_else(|| "-".to_owned()),
            tries,
            letter.gate.to_string(),
            letter.target.clone().unwrap_or_else(|| "-".to_owned()),
            letter.message.clone(),
        ]
    };
    let headings = [">no.", "~=pipeline", ">died", "~reason", "~code", ">tries", "gate", "~=target", "message"];
    table::print_titled(&headings, &letters.iter().map(row).collect::<Vec<_>>())
}
