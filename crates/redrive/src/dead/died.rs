//! What died of a worker's jobs, by cause: a few groups with a number and an example, however many letters there are.

use std::collections::{HashMap, HashSet};

use redrive_core::causes::CauseId;
use redrive_core::counts::Event;
use redrive_core::dead::DeadLetter;
use redrive_core::failures::Reason;
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::time::Timestamp;
use redrive_store::contract::{CountEvents, DeadFilter, ListCauses, ListDead, Span};
use serde::{Deserialize, Serialize};

use crate::engine::Redrive;
use crate::error::Error;

/// Letters that are read at once, and in all.
const PAGE: u32 = 1_000;
const LETTERS_MAX: usize = 100_000;

/// What died, by cause.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Died {
    /// The causes, the worst first.
    pub causes: Vec<CauseDied>,
    /// Whether not all letters were looked at, because there are more than 100,000.
    pub is_cut: bool,
}

/// The letters of one cause.
#[derive(Clone, Debug, Serialize, Deserialize)]
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

/// Letters, by cause, as they are read page by page.
#[derive(Debug)]
pub struct Groups {
    /// Those that were not met yet.
    missing: HashSet<JobId>,
    causes: Vec<CauseDied>,
    places: HashMap<(Option<CauseId>, Reason), usize>,
    letters: usize,
}

impl Groups {
    /// Of these letters.
    pub fn of(letters: &[JobId]) -> Self {
        let missing = letters.iter().copied().collect();
        Self { missing, causes: Vec::new(), places: HashMap::new(), letters: 0 }
    }

    /// Adds a page of letters.
    pub fn add(&mut self, letters: Vec<DeadLetter>) {
        self.letters += letters.len();
        for letter in letters {
            if self.missing.remove(&letter.id) {
                self.add_one(letter);
            }
        }
    }

    fn add_one(&mut self, letter: DeadLetter) {
        let of = (letter.cause.clone(), letter.reason);
        if let Some(place) = self.places.get(&of) {
            self.causes[*place].count += 1;
            return;
        }
        self.places.insert(of, self.causes.len());
        let (cause, title, reason) = (letter.cause.clone(), title_of(&letter), letter.reason);
        self.causes.push(CauseDied { cause, title, reason, count: 1, example: letter });
    }

    /// Whether no more is to be read.
    pub fn is_enough(&self) -> bool {
        self.missing.is_empty() || self.letters >= LETTERS_MAX
    }

    /// What died, the worst first; `has_more` if not all was read.
    pub fn died(mut self, has_more: bool) -> Died {
        self.causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
        Died { causes: self.causes, is_cut: has_more && !self.missing.is_empty() }
    }
}

impl Redrive {
    /// Which of these letters, which died since a time, are dead now, by cause. Of a pipeline's letters since then, the newest 100,000
    /// are looked at.
    pub async fn died_of(&self, pipeline: &PipelineName, since: Timestamp, of: &[JobId]) -> Result<Died, Error> {
        let filter = DeadFilter { pipeline: Some(pipeline.clone()), since: Some(since), ..DeadFilter::default() };
        let mut params = ListDead::newest(filter, PAGE);
        let mut groups = Groups::of(of);
        loop {
            let page = self.store.list_dead(params.clone()).await?;
            groups.add(page.items);
            params.cursor = page.next;
            if params.cursor.is_none() || groups.is_enough() {
                let Died { causes, is_cut } = groups.died(params.cursor.is_some());
                return Ok(Died { causes: self.entitled(causes).await?, is_cut });
            }
        }
    }

    /// How many jobs of a pipeline died in the hours since a time, each once; letters that are discarded meanwhile count.
    pub async fn count_died(&self, pipeline: &PipelineName, since: Timestamp) -> Result<i64, Error> {
        let counts = self.store.counts(CountEvents::since(since, Span::Hour).of(pipeline.clone())).await?;
        let died = counts.iter().filter(|count| count.event == Event::Buried);
        Ok(died.map(|count| count.count).sum())
    }

    /// Groups with the titles of their causes, which have nothing in them that differs between letters.
    async fn entitled(&self, mut groups: Vec<CauseDied>) -> Result<Vec<CauseDied>, Error> {
        let several = groups.iter().filter(|group| group.count > 1);
        let ids: Vec<_> = several.filter_map(|group| group.cause.clone()).collect();
        if ids.is_empty() {
            return Ok(groups);
        }
        let params = ListCauses::these(ids, self.now());
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
