//! What is different about those who died of a cause, compared with those who were done.

use std::collections::BTreeMap;

use redrive_core::alerts::Share;
use redrive_core::facets::{self, BASELINE_MIN, Baseline, Difference, FacetCount, Unknown, differences};
use redrive_store::contract::{CauseView, DoneIn};
use serde::{Deserialize, Serialize};

use crate::engine::Redrive;
use crate::error::Error;

/// The most hours in which others were done while tasks died.
const HOURS_MAX: usize = 500;

/// What is different about those who died of a cause.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Differences {
    /// How many died, as far as they were counted.
    pub failures: u64,
    /// How many were done, with whom they are compared.
    pub successes: u64,
    /// Who those are.
    pub baseline: Baseline,
    /// What is different, the widest gap first.
    pub found: Vec<Difference>,
    /// What was compared and is alike.
    pub alike: Vec<String>,
    /// What is counted of those who died, and not of those who were done: of each kind the most frequent value.
    #[serde(default)]
    pub uncompared: Vec<Uncompared>,
    /// Names what was not reported of all of them. Those without a value are in no share of it.
    #[serde(default)]
    pub unknown: Vec<Unknown>,
}

/// What many of those who died have, of which nothing is known of those who were done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Uncompared {
    /// What is counted.
    pub kind: String,
    /// The value.
    pub value: String,
    /// Of those who died, those with the value.
    pub failures: Share,
}

impl Redrive {
    /// What is different about those who died of a cause: compared with those who were done in the same hours, or, if those are too few,
    /// in the 24 hours before.
    pub async fn differences(&self, cause: &CauseView) -> Result<Differences, Error> {
        let mut died = self.store.cause_facets(cause.id.clone()).await?;
        let mut hours: Vec<i64> = self
            .store
            .cause_hours(vec![cause.id.clone()], cause.first_seen)
            .await?
            .iter()
            .filter(|hour| hour.count > hour.imported)
            .map(|hour| hour.hour.hour())
            .collect();
        hours.sort_unstable_by_key(|hour| std::cmp::Reverse(*hour));
        hours.truncate(HOURS_MAX);
        let done_in = async |hours: Vec<i64>| {
            let params = DoneIn { pipeline: cause.pipeline.clone(), hours };
            Ok::<_, Error>(self.store.done_facets(params).await?)
        };
        let (mut baseline, mut done) = (Baseline::SameHours, done_in(hours).await?);
        if counted(&done) < BASELINE_MIN {
            let first = cause.first_seen.hour();
            (baseline, done) = (Baseline::DayBefore, done_in((first - 24..first).collect()).await?);
        }
        let (failures, successes) = (counted(&died), counted(&done));
        let unknown = facets::unknown((&died, failures), (&done, successes));
        died.retain(FacetCount::is_known);
        done.retain(FacetCount::is_known);
        let found = differences(&died, &done);
        let uncompared = uncompared(&died, &done);
        let is_compared = |kind: &String| done.iter().any(|count| count.kind == *kind);
        let mut alike: Vec<String> = died.iter().map(|count| count.kind.clone()).filter(is_compared).collect();
        alike.dedup();
        alike.retain(|kind| !found.iter().any(|different| different.kind == *kind));
        Ok(Differences { failures, successes, baseline, found, alike, uncompared, unknown })
    }
}

/// The most frequent value of each kind that is counted of those who died only. A task that is done has no stage at which it failed.
fn uncompared(died: &[FacetCount], done: &[FacetCount]) -> Vec<Uncompared> {
    let mut found: BTreeMap<&str, (&FacetCount, u64)> = BTreeMap::new();
    for count in died.iter().filter(|count| !done.iter().any(|done| done.kind == count.kind)) {
        let (most, all) = found.entry(&count.kind).or_insert((count, 0));
        *all += count.count;
        if count.count > most.count {
            *most = count;
        }
    }
    let one = |(kind, (most, all)): (&str, (&FacetCount, u64))| Uncompared {
        kind: kind.to_owned(),
        value: most.value.clone(),
        failures: Share::new(most.count, all),
    };
    found.into_iter().map(one).collect()
}

/// How many were counted: each has a target, if only none.
fn counted(counts: &[FacetCount]) -> u64 {
    counts.iter().filter(|count| count.kind == facets::kinds::TARGET).map(|count| count.count).sum()
}
