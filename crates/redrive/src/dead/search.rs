//! Looking through dead letters for a text, or for several things at once, for no longer than somebody waits: what was not looked at by then is gone on with.

use std::time::{Duration, Instant};

use redrive_core::dead::{DeadLetter, LetterSort};
use redrive_core::ids::PipelineName;
use redrive_core::jobs::json_bytes;
use redrive_store::StoreError;
use redrive_store::contract::{DeadFilter, PAGE_BYTES_MAX, SearchDead};

use crate::engine::Redrive;
use crate::error::Error;

/// Letters that are looked at at once: first so many, then as many as the time allows, within these bounds.
const FIRST: u32 = 500;
const LEAST: u32 = 200;
const MOST: u32 = 20_000;

/// What is looked for.
#[derive(Clone, Debug)]
pub struct SearchAsked {
    /// Which letters.
    pub filter: DeadFilter,
    /// Which are looked at first.
    pub sort: LetterSort,
    /// At most so many are found.
    pub limit: u32,
    /// Where to go on.
    pub cursor: Option<String>,
    /// Nothing further is looked at after this time.
    pub within: Duration,
}

/// What was found, and how far it was looked.
#[derive(Clone, Debug)]
pub struct FoundLetters {
    /// Letters that are like that, in that order.
    pub letters: Vec<DeadLetter>,
    /// How many were looked at, those before the cursor included.
    pub looked_at: u64,
    /// How many there are to look at, where that is known without counting.
    pub of: Option<u64>,
    /// Where to go on; nothing if all were looked at.
    pub next: Option<String>,
}

/// Where a search goes on: how many were looked at before, and the cursor of the store.
fn split(cursor: &str) -> Result<(u64, String), Error> {
    let read = cursor.split_once('.').and_then(|(looked_at, rest)| Some((looked_at.parse().ok()?, rest.to_owned())));
    read.ok_or_else(|| StoreError::InvalidCursor(cursor.to_owned()).into())
}

impl Redrive {
    /// Looks through dead letters for what a filter says, piece by piece, until as many are found as wanted or as fit on a page, all were looked at
    /// or the time is over.
    pub async fn search_letters(&self, asked: SearchAsked) -> Result<FoundLetters, Error> {
        let begun = Instant::now();
        let (mut looked_at, mut cursor) = match asked.cursor.as_deref().map(split).transpose()? {
            Some((looked_at, cursor)) => (looked_at, Some(cursor)),
            None => (0, None),
        };
        let (mut letters, mut bytes, mut look_at) = (Vec::new(), 0, FIRST);
        loop {
            let limit = asked.limit.saturating_sub(u32::try_from(letters.len()).unwrap_or(u32::MAX)).max(1);
            let (piece, filter, sort) = (Instant::now(), asked.filter.clone(), asked.sort);
            let found = self.store.search_dead(SearchDead { filter, sort, limit, look_at, cursor }).await?;
            bytes += found.letters.iter().map(json_bytes).sum::<u64>();
            letters.extend(found.letters);
            (looked_at, cursor) = (looked_at.saturating_add(found.looked_at), found.next);
            let left = asked.within.saturating_sub(begun.elapsed());
            if cursor.is_none() || letters.len() >= asked.limit as usize || bytes > PAGE_BYTES_MAX || left.is_zero() {
                break;
            }
            look_at = next_piece(look_at, piece.elapsed(), left);
        }
        self.locate(&mut letters);
        let next = cursor.map(|cursor| format!("{looked_at}.{cursor}"));
        Ok(FoundLetters { letters, looked_at, of: self.letters_to_look_at(&asked.filter).await?, next })
    }

    /// How many letters are looked at for a filter, where a counter knows that.
    async fn letters_to_look_at(&self, filter: &DeadFilter) -> Result<Option<u64>, Error> {
        let looked_at = filter.indexed();
        let rest = DeadFilter { pipeline: None, within: Vec::new(), ..looked_at.clone() };
        if let (Some(cause), true) = (&rest.cause, DeadFilter { cause: None, ..rest.clone() }.is_empty()) {
            return Ok(Some(self.store.get_cause(cause.clone(), self.now()).await?.cause.dead));
        }
        if !rest.is_empty() {
            return Ok(None);
        }
        let ledgers = self.store.ledgers().await?;
        let DeadFilter { pipeline, within, .. } = looked_at;
        let is_meant = |name: &PipelineName| {
            pipeline.as_ref().is_none_or(|wanted| wanted == name)
                && (within.is_empty() || within.iter().any(|pattern| pattern.covers(name)))
        };
        let counted = ledgers.iter().filter(|(name, _)| is_meant(name));
        Ok(Some(counted.map(|(_, ledger)| u64::try_from(ledger.dead).unwrap_or(0)).sum()))
    }
}

/// How many letters are looked at next, so that it takes half of the time that is left.
fn next_piece(letters: u32, taken: Duration, left: Duration) -> u32 {
    let fits = f64::from(letters) * left.as_secs_f64() / taken.as_secs_f64().max(1e-6) / 2.0;
    (fits as u32).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_fit_into_the_time_that_is_left() {
        let ms = Duration::from_millis;
        assert_eq!(next_piece(2_000, ms(10), ms(40)), 4_000);
        assert_eq!(next_piece(2_000, ms(100), ms(1)), LEAST);
        assert_eq!(next_piece(2_000, Duration::ZERO, ms(100)), MOST);
    }

    #[test]
    fn a_cursor_says_how_far_it_was_looked() {
        assert_eq!(split("120.5-7").expect("a cursor"), (120, "5-7".to_owned()));
        assert!(split("5-7").is_err() && split("x.5-7").is_err());
    }
}
