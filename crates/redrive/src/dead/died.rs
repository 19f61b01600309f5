//! What died of a worker's jobs, by cause: a few groups with a number and an example, however many letters there are.

use std::collections::{HashMap, HashSet};

use redrive_core::causes::CauseId;
use redrive_core::counts::Event;
use redrive_core::dead::DeadLetter;
use redrive_core::failures::Reason;
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::time::Timestamp;
use redrive_store::contract::{CountEvents, DeadFilter, ListCauses, ListDead, Span};
use serde::Serialize;

use crate::engine::Redrive;
use crate::error::Error;

/// Letters that are read at once, and in all.
const PAGE: u32 = 1_000;
const LETTERS_MAX: usize = 100_000;

/// What died, by cause.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Died {
    /// The causes, the worst first.
    pub causes: Vec<CauseDied>,
    /// Whether not all letters were looked at, because there are more than 100,000.
    pub is_cut: bool,
}

/// The letters of one cause.
#[derive(Clone, Debug, Serialize)]
pub struct CauseDied {
    /// The cause.
    pub cause: Option<CauseId>,
    /// What it is called.
    pub title: String,
    /// Why its letters died.
    pub reason: Reason,
    /// How many of them.
    pub count: u64,
    /// The newest of them.
    pub example: DeadLetter,
}

impl Redrive {
    /// Which of these letters, which died since a time, are dead now, by cause. Of a pipeline's letters since then, the newest 100,000
    /// are looked at.
    pub async fn died_of(&self, pipeline: &PipelineName, since: Timestamp, of: &[JobId]) -> Result<Died, Error> {
        let mut missing: HashSet<_> = of.iter().copied().collect();
        let filter = DeadFilter { pipeline: Some(pipeline.clone()), since: Some(since), ..DeadFilter::default() };
        let mut params = ListDead { filter, limit: PAGE, cursor: None, with_failures: false };
        let (mut causes, mut places): (Vec<CauseDied>, HashMap<_, usize>) = Default::default();
        let mut letters = 0;
        loop {
            let page = self.store.list_dead(params.clone()).await?;
            letters += page.items.len();
            for letter in page.items.into_iter().filter(|letter| missing.remove(&letter.id)) {
                let of = (letter.cause.clone(), letter.reason);
                match places.get(&of) {
                    Some(place) => causes[*place].count += 1,
                    None => {
                        places.insert(of, causes.len());
                        causes.push(CauseDied {
                            cause: letter.cause.clone(),
                            title: title_of(&letter),
                            reason: letter.reason,
                            count: 1,
                            example: letter,
                        });
                    }
                }
            }
            match page.next {
                Some(next) if letters < LETTERS_MAX && !missing.is_empty() => params.cursor = Some(next),
                next => {
                    causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
                    let is_cut = next.is_some() && !missing.is_empty();
                    return Ok(Died { causes: self.entitled(causes).await?, is_cut });
                }
            }
        }
    }

    /// How many jobs of a pipeline died in the hours since a time, each once; letters that are discarded meanwhile count.
    pub async fn count_died(&self, pipeline: &PipelineName, since: Timestamp) -> Result<i64, Error> {
        let counts = self.store.counts(CountEvents { since, by: Span::Hour }).await?;
        let died = counts.iter().filter(|count| count.pipeline == *pipeline && count.event == Event::Buried);
        Ok(died.map(|count| count.count).sum())
    }

    /// Groups with the titles of their causes, which have nothing in them that differs between letters.
    async fn entitled(&self, mut groups: Vec<CauseDied>) -> Result<Vec<CauseDied>, Error> {
        let several = groups.iter().filter(|group| group.count > 1);
        let ids: Vec<_> = several.filter_map(|group| group.cause.clone()).collect();
        if ids.is_empty() {
            return Ok(groups);
        }
        let (limit, now) = (u32::try_from(ids.len()).unwrap_or(u32::MAX), self.now());
        let params = ListCauses { ids, pipeline: None, states: Vec::new(), owner: None, with_empty: true, limit, now };
        for view in self.store.list_causes(params).await? {
            for group in groups.iter_mut().filter(|group| group.cause.as_ref() == Some(&view.id)) {
                group.title.clone_from(&view.title);
            }
        }
        Ok(groups)
    }
}

/// What a letter says, with its code where the message does not.
fn title_of(letter: &DeadLetter) -> String {
    match &letter.code {
        Some(code) if !letter.message.starts_with(code.as_str()) => format!("{code}: {}", letter.message),
        _ => letter.message.clone(),
    }
}
