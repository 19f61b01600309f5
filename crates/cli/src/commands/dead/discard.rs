//! `redrive dead discard`: gives dead letters up, with a record.

use anyhow::{Result, bail};
use redrive::contract::Selection;

use super::super::filter;
use crate::args::DiscardArgs;
use crate::exit::Exit;
use crate::output::print::out;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: DiscardArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let filter = filter::of_dead(args.filter, redrive.now())?;
    if args.ids.is_empty() && !filter.is_empty() && !args.yes {
        let found = redrive.count_found(filter).await?;
        out!("{found} dead letters would be discarded: add --yes to do it")?;
        return Ok(Exit::Usage);
    }
    let selection = Selection { filter, ids: redrive.find_jobs(&args.ids).await? };
    let discarded = redrive.discard_dead(selection, &args.why, &filter::actor()).await?;
    out!("{} discarded", discarded.letters)?;
    match discarded.missing.first() {
        Some(id) => bail!("no dead letter {id}"),
        None => Ok(Exit::Ok),
    }
}
