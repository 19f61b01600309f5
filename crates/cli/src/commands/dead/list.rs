//! `redrive dead list`.

use std::io;

use anyhow::Result;
use redrive::config::Setting;
use redrive::contract::ListDead;
use redrive_core::dead::DeadLetter;

use super::super::filter;
use crate::args::DeadListArgs;
use crate::exit::Exit;
use crate::output::foreign::cut;
use crate::output::print::out;
use crate::output::table;

pub async fn run(setting: &Setting, args: DeadListArgs) -> Result<Exit> {
    let redrive = setting.redrive_existing().await?;
    let filter = filter::of_dead(args.filter, redrive.now())?;
    let fetch = async |limit, cursor| {
        let params = ListDead { filter: filter.clone(), limit, cursor, with_failures: false };
        redrive.store().list_dead(params).await
    };
    filter::print(&args.page, fetch, print).await
}

fn print(letters: &[DeadLetter]) -> io::Result<()> {
    if letters.is_empty() {
        return out!("no dead letters");
    }
    let row = |letter: &DeadLetter| {
        let tries = match letter.crashes {
            0 => letter.attempts.to_string(),
            crashes => format!("{}+{crashes}", letter.attempts),
        };
        vec![
            letter.id.to_string(),
            letter.pipeline.to_string(),
            table::second(letter.died_at),
            letter.reason.to_string(),
            cut(letter.code.as_deref().unwrap_or("-"), 24),
            tries,
            letter.gate.to_string(),
            cut(letter.target.as_deref().unwrap_or("-"), 28),
            letter.message.clone(),
        ]
    };
    let headings = ["id", "pipeline", "died at (UTC)", "reason", "code", ">tries", "gate", "target", "message"];
    table::print(&headings, &letters.iter().map(row).collect::<Vec<_>>())
}
