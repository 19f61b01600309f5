//! Giving dead letters up, with a record, in steps that keep nobody waiting.

use redrive_core::actors::Actor;
use redrive_core::ids::JobId;
use redrive_store::contract::{DeadFilter, DiscardDead, ListDead, Selection};

use super::check;
use crate::engine::Redrive;
use crate::error::Error;

/// Letters that are discarded in one transaction.
const STEP: u32 = 500;

/// What became of letters that were to be discarded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discarded {
    /// Letters that were discarded.
    pub letters: u64,
    /// Jobs that were named and are no dead letters.
    pub missing: Vec<JobId>,
}

impl Redrive {
    /// Discards dead letters: those that are named, or those that a filter finds. To mean nothing in particular is refused.
    pub async fn discard_dead(&self, selection: Selection, why: &str, by: &Actor) -> Result<Discarded, Error> {
        check(&selection)?;
        let mut discarded = Discarded::default();
        for ids in selection.ids.chunks(STEP as usize) {
            let gone = self.discard_step(ids.to_vec(), why, by).await?;
            discarded.letters += gone.len() as u64;
            discarded.missing.extend(ids.iter().filter(|id| !gone.contains(id)));
        }
        if selection.ids.is_empty() {
            let mut params = pages(selection.filter);
            loop {
                let page = self.store.list_dead(params.clone()).await?;
                let ids: Vec<_> = page.items.iter().map(|letter| letter.id).collect();
                if !ids.is_empty() {
                    discarded.letters += self.discard_step(ids, why, by).await?.len() as u64;
                }
                match page.next {
                    Some(_) => params.cursor = page.next,
                    None => break,
                }
            }
        }
        Ok(discarded)
    }

    /// How many letters a filter finds.
    pub async fn count_found(&self, filter: DeadFilter) -> Result<u64, Error> {
        let mut found = 0;
        self.each_dead(pages(filter), async |letters| {
            found += letters.len() as u64;
            Ok::<_, Error>(())
        })
        .await?;
        Ok(found)
    }

    async fn discard_step(&self, ids: Vec<JobId>, why: &str, by: &Actor) -> Result<Vec<JobId>, Error> {
        let params = DiscardDead { ids, by: by.clone(), why: why.to_owned(), now: self.now() };
        Ok(self.store.discard_dead(params).await?)
    }
}

fn pages(filter: DeadFilter) -> ListDead {
    ListDead::newest(filter, STEP)
}
