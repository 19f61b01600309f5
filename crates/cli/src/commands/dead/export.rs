//! `redrive dead export`: dead letters with all their failures, as JSON Lines.

use anyhow::{Context, Result};
use redrive::config::Setting;
use redrive_store::contract::ListDead;

use super::super::filter;
use super::output::Output;
use crate::args::ExportArgs;
use crate::exit::Exit;
use crate::output::json;
use crate::output::print::say;

const PAGE: u32 = 500;

pub async fn run(setting: &Setting, args: ExportArgs) -> Result<Exit> {
    let redrive = setting.redrive_existing().await?;
    let filter = filter::of_dead(args.filter, redrive.now())?;
    let output = Output::to(args.file);
    let mut out = output.open()?;
    let mut exported = 0;
    let letters = ListDead { filter, limit: PAGE, cursor: None, with_failures: true };
    filter::each_page(&redrive, letters, async |letters| {
        for letter in &letters {
            json::write(&mut out, letter).with_context(|| output.unwritten())?;
        }
        exported += letters.len();
        Ok(())
    })
    .await?;
    out.flush().with_context(|| output.unwritten())?;
    output.sync()?;
    say!("{exported} dead letters exported");
    Ok(Exit::Ok)
}
