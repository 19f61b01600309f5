//! `redrive payload gc`: removes what nothing refers to.

use anyhow::Result;

use super::super::filter::actor;
use super::Kept;
use crate::args::PayloadGcArgs;
use crate::exit::Exit;
use crate::output::json;
use crate::output::print::out;
use crate::output::typed::REDRIVE;

pub async fn run(kept: &Kept, args: PayloadGcArgs) -> Result<Exit> {
    let report = kept.desk.clear_payloads(kept.vault.as_ref(), (args.grace, args.adopt), &actor()).await?;
    let collected = report.collected;
    if args.json {
        json::line(&report)?;
        return Ok(Exit::Ok);
    }
    out!("{} unused payloads removed, and {} strays", collected.unused, collected.strays)?;
    if collected.held {
        out!("a backup is being made, which keeps the others: run it again when that has ended")?;
    }
    if report.older_strays > 0 {
        out!(
            "{} files in the layout of older versions that no row of this store knows: left alone, they may be another store's",
            report.older_strays
        )?;
    }
    if collected.inherited > 0 {
        out!(
            "this store was copied: the payloads that it inherited are left alone, the original may need them; \
             `{REDRIVE} payload gc --adopt` says that there is no other"
        )?;
    }
    Ok(Exit::Ok)
}
