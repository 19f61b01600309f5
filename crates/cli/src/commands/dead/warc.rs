//! `redrive dead export --warc`: dead letters and their payloads as a web archive.

use anyhow::Result;

use super::super::filter;
use super::output::Output;
use super::requests;
use crate::args::ExportArgs;
use crate::exit::{Exit, usage};
use crate::output::print::say;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: ExportArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let vault = setting.vault_of(&redrive)?;
    if vault.is_none() && setting.server().is_none() {
        return Err(usage(setting.no_vault()));
    }
    let filter = filter::of_dead(args.filter, redrive.now())?;
    let output = Output::to(args.file);
    if output.is_terminal() {
        return Err(usage(
            "an archive has payloads as they came, and a terminal might obey them: give a file instead of -",
        ));
    }
    let archived = redrive.archive_dead(filter, vault.as_ref(), requests(setting), output.open()?).await;
    let archived = archived.map_err(|error| output.named(error))?;
    output.sync()?;
    say!("{} dead letters archived", archived.letters);
    if archived.missing > 0 {
        say!("{} payloads are no longer in the vault and are not in the archive", archived.missing);
    }
    Ok(Exit::Ok)
}
