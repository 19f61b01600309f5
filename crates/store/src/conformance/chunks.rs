//! What must hold at the borders of bounded verbs: one less than the limit, the limit, one more.

use redrive_core::actors::Actor;
use redrive_core::failures::Reason;

use super::script::{Shared, ada, at, attach, bury, enqueue, job, lease_all, pipeline, plain, settle};
use crate::contract::{
    CancelJobs, DeadFilter, DiscardDead, ExpireDead, FindLostLeases, IDS_MAX, JobFilter, ListActivity, ListDead,
    ListJobs,
};
use crate::error::StoreError;
use redrive_core::settlements::Outcome;

/// The limit of every call here.
const LIMIT: u32 = 4;

/// Each list and each bounded step takes at most its limit, says whether there is more, and none is left out or taken twice.
pub async fn every_bounded_verb_stops_at_its_limit(store: Shared) {
    attach(&store, 1).await;
    for (round, there) in (LIMIT - 1..=LIMIT + 1).enumerate() {
        let base = 100 * (round as u128 + 1);
        let now = at(1_000 * (round as i64 + 1));
        let id = |n: u32| job(base + u128::from(n), plain()).id;
        enqueue(&store, (0..there).map(|n| job(base + u128::from(n), plain())).collect()).await;

        assert_eq!(list_jobs(&store, there).await, pages(there));
        let leased = lease_all(&store, LIMIT, now).await.jobs;
        assert_eq!(leased.len(), there.min(LIMIT) as usize, "of {there} jobs");
        let lost =
            FindLostLeases { pipelines: vec![pipeline()], silent: Vec::new(), limit: LIMIT - 1, now: at(900_000) };
        assert_eq!(store.lost_leases(lost).await.expect("asked").len(), (LIMIT - 1) as usize);
        for job in &leased {
            settle(&store, job, Outcome::Returned, now).await;
        }
        let ids: Vec<_> = (0..there).map(id).collect();
        let cancel = CancelJobs { ids, by: ada(), why: "x".into(), now };
        assert_eq!(store.cancel_jobs(cancel).await.expect("cancelled").len(), there as usize);

        for n in 0..there {
            bury(&store, job(base + 50 + u128::from(n), plain()), Reason::SchemaValidation, "no", now).await;
        }
        assert_eq!(list_dead(&store).await, pages(there));
        let (mut expired, mut steps) = (0, 0);
        loop {
            let before = now + std::time::Duration::from_secs(1);
            let expire = ExpireDead { pipeline: pipeline(), before, limit: LIMIT, led: None, now };
            let gone = store.expire_dead(expire).await.expect("expired");
            assert!(gone <= u64::from(LIMIT));
            (expired, steps) = (expired + gone, steps + 1);
            if gone < u64::from(LIMIT) {
                break;
            }
        }
        assert_eq!((expired, steps), (u64::from(there), 1 + there / LIMIT), "of {there} letters");
    }
    let too_many: Vec<_> = (0..=IDS_MAX as u128).map(|n| job(9_000 + n, plain()).id).collect();
    let cancel = CancelJobs { ids: too_many.clone(), by: ada(), why: "x".into(), now: at(1) };
    assert!(matches!(store.cancel_jobs(cancel).await, Err(StoreError::TooBroad { .. })));
    let discard = DiscardDead { ids: too_many, by: ada(), why: "x".into(), now: at(1) };
    assert!(matches!(store.discard_dead(discard).await, Err(StoreError::TooBroad { .. })));
    let page = store.list_activity(ListActivity { limit: 3, ..ListActivity::default() }).await.expect("listed");
    assert_eq!((page.items.len(), page.next), (3, None), "as many as there are: no more");
    assert!(page.items.iter().all(|activity| activity.by != Actor::redrive()));
}

/// The sizes of the pages in which so many come.
fn pages(there: u32) -> Vec<usize> {
    let mut pages = vec![LIMIT as usize; (there / LIMIT) as usize];
    pages.extend(Some((there % LIMIT) as usize).filter(|rest| *rest > 0));
    pages
}

async fn list_jobs(store: &Shared, there: u32) -> Vec<usize> {
    let states = vec![redrive_core::state::JobState::Queued];
    let filter = JobFilter { states, ..JobFilter::default() };
    let (mut sizes, mut seen) = (Vec::new(), std::collections::BTreeSet::new());
    let mut params = ListJobs { filter, limit: LIMIT, cursor: None };
    loop {
        let page = store.list_jobs(params.clone()).await.expect("listed");
        sizes.push(page.items.len());
        seen.extend(page.items.iter().map(|job| job.id));
        params.cursor = page.next;
        if params.cursor.is_none() {
            assert_eq!(seen.len(), there as usize, "none twice, none left out");
            return sizes;
        }
    }
}

async fn list_dead(store: &Shared) -> Vec<usize> {
    let mut params = ListDead::newest(DeadFilter::default(), LIMIT);
    let mut sizes = Vec::new();
    loop {
        let page = store.list_dead(params.clone()).await.expect("listed");
        sizes.push(page.items.len());
        params.cursor = page.next;
        if params.cursor.is_none() {
            return sizes;
        }
    }
}
