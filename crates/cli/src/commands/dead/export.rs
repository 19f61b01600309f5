//! `redrive dead export`: dead letters with all their failures, as JSON Lines.

use anyhow::Result;

use super::super::filter;
use super::output::Output;
use crate::args::ExportArgs;
use crate::exit::Exit;
use crate::output::print::say;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: ExportArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let filter = filter::of_dead(args.filter, redrive.now())?;
    let output = Output::to(args.file);
    let exported = redrive.export_dead(filter, &mut output.open()?).await;
    let exported = exported.map_err(|error| output.named(error))?;
    output.sync()?;
    say!("{exported} dead letters exported");
    Ok(Exit::Ok)
}
