//! `redrive dead discard`: gives dead letters up, with a record.

use anyhow::{Result, bail};
use redrive::Redrive;
use redrive::config::Setting;
use redrive_core::ids::JobId;
use redrive_store::contract::{DeadFilter, DiscardDead, ListDead};

use super::super::filter;
use crate::args::DiscardArgs;
use crate::exit::{Exit, usage};
use crate::output::print::out;

/// Letters that are discarded in one transaction.
const BATCH: u32 = 500;

pub async fn run(setting: &Setting, args: DiscardArgs) -> Result<Exit> {
    let redrive = setting.redrive_existing().await?;
    let filter = filter::of_dead(args.filter, redrive.now())?;
    match (args.ids.is_empty(), filter.is_empty()) {
        (true, true) => Err(usage("say which dead letters: by their ids, or with filters such as --reason")),
        (false, false) => Err(usage("give ids or filters, not both")),
        (false, true) => discard_ids(&redrive, args.ids, args.why).await,
        (true, false) if args.yes => discard_found(&redrive, filter, args.why).await,
        (true, false) => {
            let found = count(&redrive, filter).await?;
            out!("{found} dead letters would be discarded: add --yes to do it")?;
            Ok(Exit::Usage)
        }
    }
}

async fn discard(redrive: &Redrive, ids: Vec<JobId>, why: &str) -> Result<Vec<JobId>> {
    let params = DiscardDead { ids, by: filter::actor(), why: why.to_owned(), now: redrive.now() };
    Ok(redrive.store().discard_dead(params).await?)
}

async fn discard_ids(redrive: &Redrive, ids: Vec<JobId>, why: String) -> Result<Exit> {
    let discarded = discard(redrive, ids.clone(), &why).await?;
    out!("{} discarded", discarded.len())?;
    match ids.iter().find(|id| !discarded.contains(id)) {
        Some(id) => bail!("no dead letter {id}"),
        None => Ok(Exit::Ok),
    }
}

async fn discard_found(redrive: &Redrive, filter: DeadFilter, why: String) -> Result<Exit> {
    let mut discarded = 0;
    filter::each_page(redrive, pages(filter), async |letters| {
        discarded += discard(redrive, letters.iter().map(|letter| letter.id).collect(), &why).await?.len();
        Ok(())
    })
    .await?;
    out!("{discarded} discarded")?;
    Ok(Exit::Ok)
}

async fn count(redrive: &Redrive, filter: DeadFilter) -> Result<usize> {
    let mut found = 0;
    filter::each_page(redrive, pages(filter), async |letters| {
        found += letters.len();
        Ok(())
    })
    .await?;
    Ok(found)
}

fn pages(filter: DeadFilter) -> ListDead {
    ListDead { filter, limit: BATCH, cursor: None, with_failures: false }
}
