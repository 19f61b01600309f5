//! Dead letters: looking at them, counting them, giving them up, carrying them elsewhere.

use std::collections::BTreeSet;
use std::io::Write;

use redrive::Error;
use redrive::contract::{DeadBy, DeadFilter, ListDead, Page, Selection};
use redrive::dead::{Archive, Archived, DeadError, Discarded, NotDead, Requests, Top, write_letter};
use redrive::vault::Vault;
use redrive_core::actors::Actor;
use redrive_core::dead::{DeadLetter, LetterSort};
use redrive_core::definitions::DefinitionVersion;
use redrive_core::ids::{JobId, PipelineName};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ask::LONG;
use crate::desk::Desk;
use crate::page::{fields, left, page};

/// Letters that are fetched at once where all are gone through.
const AT_ONCE: u32 = 500;

/// A piece of what letters have in common.
#[derive(Deserialize)]
struct TopPiece {
    #[serde(flatten)]
    top: Top,
    #[serde(default)]
    next: Option<String>,
}

/// What became of letters that were to be discarded.
#[derive(Deserialize)]
struct Gone {
    discarded: u64,
    missing: Vec<JobId>,
}

impl Desk {
    /// See [`redrive::Redrive::dead_letter`].
    pub async fn dead_letter(&self, id: JobId) -> Result<DeadLetter, Error> {
        match self {
            Self::Here(redrive) => redrive.dead_letter(id).await,
            Self::There(server) => server.get(&["letters", &id.to_string()]).read().await,
        }
    }

    /// A dead letter, if it is one.
    pub async fn get_dead(&self, id: JobId) -> Result<Option<DeadLetter>, Error> {
        match self.dead_letter(id).await {
            Ok(letter) => Ok(Some(letter)),
            Err(Error::Dead(DeadError::NotDead(_))) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// See [`redrive::Redrive::find_not_dead`].
    pub async fn find_not_dead(&self, ids: &[JobId]) -> Result<Option<NotDead>, Error> {
        for id in ids {
            match self.dead_letter(*id).await {
                Err(Error::Dead(DeadError::NotDead(not_dead))) => return Ok(Some(not_dead)),
                found => drop(found?),
            }
        }
        Ok(None)
    }

    /// All of these jobs that are no dead letters.
    pub(crate) async fn find_all_not_dead(&self, ids: &[JobId]) -> Result<Vec<NotDead>, Error> {
        let mut not_dead = Vec::new();
        for id in ids {
            not_dead.extend(self.find_not_dead(&[*id]).await?);
        }
        Ok(not_dead)
    }

    /// The versions of a pipeline that letters were last tried with.
    pub async fn tried_versions(
        &self,
        selection: &Selection,
        pipeline: &PipelineName,
    ) -> Result<Vec<Option<DefinitionVersion>>, Error> {
        let mut versions = BTreeSet::new();
        for id in &selection.ids {
            let letter = self.get_dead(*id).await?.filter(|letter| letter.pipeline == *pipeline);
            versions.extend(letter.map(|letter| letter.definition));
        }
        if selection.ids.is_empty() {
            let filter = DeadFilter { pipeline: Some(pipeline.clone()), ..selection.filter.clone() };
            let note = |letter: &DeadLetter| {
                versions.insert(letter.definition.clone());
                Ok(())
            };
            self.each_dead(&filter, false, note).await?;
        }
        Ok(versions.into_iter().collect())
    }

    /// See [`redrive::Redrive::archive_dead`]. A server has the payloads itself.
    pub async fn archive_dead(
        &self,
        filter: DeadFilter,
        vault: Option<&Vault>,
        requests: Requests<'_>,
        out: impl Write,
    ) -> Result<Archived, Error> {
        if let (Self::Here(redrive), Some(vault)) = (self, vault) {
            return redrive.archive_dead(filter, vault, requests, out).await;
        }
        let mut archive = Archive::begin(out, requests, self.now())?;
        let mut params = ListDead { with_failures: true, ..ListDead::newest(filter, AT_ONCE) };
        loop {
            let page = self.list_dead(params.clone()).await?;
            for letter in &page.items {
                // By the letter: who is let near some pipelines only may not name a hash.
                let name = letter.id.to_string();
                archive.add(letter, async |payload, into| self.has_copied((&name, payload), into).await).await?;
            }
            params.cursor = page.next;
            if params.cursor.is_none() {
                return archive.finish();
            }
        }
    }

    /// A page of dead letters.
    pub async fn list_dead(&self, params: ListDead) -> Result<Page<DeadLetter>, Error> {
        let server = match self {
            Self::Here(redrive) => return redrive.list_dead(params).await,
            Self::There(server) => server,
        };
        let ListDead { filter, sort, limit, cursor, with_failures } = params;
        let sort = Some(sort).filter(|sort| *sort != LetterSort::default());
        page(limit, cursor, async |limit, cursor| {
            let mut asked = filtered(&filter)?;
            asked.extend(fields(json!({ "limit": limit, "cursor": cursor, "sort": sort })));
            asked.extend(with_failures.then(|| ("failures".to_owned(), "true".to_owned())));
            server.get(&["letters"]).query(asked).read().await
        })
        .await
    }

    /// See [`redrive::Redrive::top_dead`].
    pub async fn top_dead(&self, filter: DeadFilter, by: DeadBy, limit: u32) -> Result<Top, Error> {
        let server = match self {
            Self::Here(redrive) => return redrive.top_dead(filter, by, limit).await,
            Self::There(server) => server,
        };
        let (mut lines, mut cursor) = (Vec::new(), None);
        loop {
            let left = left(limit, lines.len());
            let mut asked = filtered(&filter)?;
            asked.extend(fields(json!({ "by": by.to_string(), "limit": left, "cursor": cursor })));
            let TopPiece { top, next } = server.get(&["letters", "top"]).query(asked).read().await?;
            lines.extend(top.lines);
            cursor = next;
            if cursor.is_none() || lines.len() >= limit as usize {
                return Ok(Top { lines, others: top.others });
            }
        }
    }

    /// See [`redrive::Redrive::count_found`].
    pub async fn count_found(&self, filter: DeadFilter) -> Result<u64, Error> {
        match self {
            Self::Here(redrive) => redrive.count_found(filter).await,
            Self::There(_) => self.each_dead(&filter, false, |_| Ok(())).await,
        }
    }

    /// See [`redrive::Redrive::discard_dead`]. A server knows by itself who it is by.
    pub async fn discard_dead(&self, selection: Selection, why: &str, by: &Actor) -> Result<Discarded, Error> {
        match self {
            Self::Here(redrive) => redrive.discard_dead(selection, why, by).await,
            Self::There(server) => {
                let asked = json!({ "letters": selection, "why": why });
                let ask = server.post(&["letters", "discard"]).body(&asked)?.within(Some(LONG));
                let Gone { discarded, missing } = ask.read().await?;
                Ok(Discarded { letters: discarded, missing })
            }
        }
    }

    /// See [`redrive::Redrive::export_dead`].
    pub async fn export_dead(&self, filter: DeadFilter, out: &mut impl Write) -> Result<u64, Error> {
        if let Self::Here(redrive) = self {
            return redrive.export_dead(filter, out).await;
        }
        let exported = self.each_dead(&filter, true, |letter| {
            write_letter(out, letter).map_err(|error| DeadError::Unwritten(error).into())
        });
        let exported = exported.await?;
        out.flush().map_err(DeadError::Unwritten)?;
        Ok(exported)
    }

    /// Goes through all letters that a filter finds, and says how many they are.
    async fn each_dead(
        &self,
        filter: &DeadFilter,
        with_failures: bool,
        mut each: impl FnMut(&DeadLetter) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let (mut letters, mut cursor) = (0, None);
        loop {
            let params = ListDead { cursor, with_failures, ..ListDead::newest(filter.clone(), AT_ONCE) };
            let page = self.list_dead(params).await?;
            page.items.iter().try_for_each(&mut each)?;
            letters += page.items.len() as u64;
            cursor = page.next;
            if cursor.is_none() {
                return Ok(letters);
            }
        }
    }
}

/// A filter, after a question mark.
fn filtered(filter: &DeadFilter) -> Result<Vec<(String, String)>, Error> {
    Ok(fields(value(filter)?))
}

fn value(of: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(of).map_err(|error| Error::Internal(format!("no JSON: {error}")))
}
