//! The suite's own count: every job is listed, state by state, and the ledger is compared with that. It does not ask the store
//! to audit itself.

use std::collections::{BTreeMap, BTreeSet};

use redrive_core::ids::{PipelineName, RoundName};
use redrive_core::ledger::{Forgotten, KeptResults, Ledger};
use redrive_core::state::JobState;

use super::Fixture;
use super::script::Shared;
use crate::contract::{JobFilter, ListJobs, ListReplays, ListResults, ListRounds};

const STATES: [JobState; 5] = [JobState::Queued, JobState::Leased, JobState::Done, JobState::Dead, JobState::Discarded];

/// Counts the jobs of a case's store and compares the ledger with that.
pub async fn recount(fixture: &impl Fixture) {
    assert_recounted(&fixture.handle().await).await;
}

/// Counts the jobs of a store, one by one, and compares the ledger with that.
pub async fn assert_recounted(store: &Shared) {
    let mut counted: BTreeMap<PipelineName, Ledger> = BTreeMap::new();
    let mut rounds: BTreeMap<(PipelineName, RoundName), Ledger> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for state in STATES {
        let filter = JobFilter { states: vec![state], ..JobFilter::default() };
        let mut page = ListJobs { filter, limit: 97, cursor: None };
        loop {
            let listed = store.list_jobs(page.clone()).await.expect("listed");
            for job in listed.items {
                assert!(seen.insert(job.id), "{} is in two states, or listed twice", job.id);
                assert_eq!(job.state, state);
                if let Some(round) = job.round {
                    let ledger = rounds.entry((job.pipeline.clone(), round)).or_default();
                    ledger.accepted += 1;
                    *ledger.count_mut(state) += 1;
                }
                let ledger = counted.entry(job.pipeline).or_default();
                ledger.accepted += 1;
                *ledger.count_mut(state) += 1;
                ledger.retrying += i64::from(state == JobState::Queued && (job.attempts > 0 || job.crashes > 0));
                ledger.recovered += i64::from(state == JobState::Done && job.replays > 0);
            }
            match listed.next {
                Some(next) => page.cursor = Some(next),
                None => break,
            }
        }
    }
    let mut replaying = 0;
    for (pipeline, ledger) in store.ledgers().await.expect("ledgers") {
        assert!(ledger.balances(), "{pipeline}: {ledger:?}");
        let mut found = counted.remove(&pipeline).unwrap_or_default();
        // What was forgotten cannot be listed.
        let Forgotten { done, recovered, discarded } = ledger.forgotten;
        found.accepted += done + discarded;
        found.done += done;
        found.recovered += recovered;
        found.discarded += discarded;
        replaying += ledger.replaying;
        let results = KeptResults { kept: count_results(store, &pipeline).await, ..ledger.results };
        let found = Ledger { replaying: ledger.replaying, forgotten: ledger.forgotten, results, ..found };
        assert_eq!(ledger, found, "{pipeline}: the ledger beside what is listed");
    }
    let all = ListReplays::newest(10_000);
    let replays = store.list_replays(all).await.expect("replays").items;
    let running: u64 = replays.iter().map(|replay| replay.progress.running).sum();
    assert_eq!(u64::try_from(replaying), Ok(running), "the ledgers beside the replays");
    assert!(counted.is_empty(), "jobs of pipelines without a ledger: {counted:?}");
    for round in
        store.list_rounds(ListRounds { pipeline: None, limit: u32::MAX, within: Vec::new() }).await.expect("rounds")
    {
        assert!(round.balances(), "{round:?}");
        let found = rounds.remove(&(round.pipeline.clone(), round.round.clone())).unwrap_or_default();
        assert_eq!(round.accepted - round.forgotten, found.accepted, "{round:?} beside what is listed");
        let open = [round.queued, round.leased, round.dead];
        assert_eq!(open, [found.queued, found.leased, found.dead], "{round:?} beside what is listed");
    }
    assert!(rounds.is_empty(), "jobs of rounds without a ledger: {rounds:?}");
}

/// Counts the results of a pipeline that are kept.
async fn count_results(store: &Shared, pipeline: &PipelineName) -> i64 {
    let (mut results, mut cursor) = (0, None);
    loop {
        let asked =
            ListResults { pipeline: pipeline.clone(), round: None, since: None, until: None, limit: 1_000, cursor };
        let page = store.list_results(asked).await.expect("listed");
        results += i64::try_from(page.items.len()).expect("few");
        cursor = page.next;
        if cursor.is_none() {
            return results;
        }
    }
}
