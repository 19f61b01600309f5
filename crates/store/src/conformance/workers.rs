//! What must hold of workers.

use super::script::{Shared, at, attach, enqueue, job, lease_one, pipeline, plain, worker};
use crate::contract::FindLostLeases;
use redrive_core::holds::Hold;

/// Whoever is off the list has no leases: they are lost at once, however long they would have lasted.
pub async fn a_detached_workers_leases_are_lost(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain())]).await;
    let leased = lease_one(&store, at(0)).await;
    store.detach_worker(worker(1)).await.expect("detached");
    let lost =
        store.lost_leases(FindLostLeases { pipelines: vec![pipeline()], limit: 10, now: at(1) }).await.expect("asked");
    assert_eq!(lost.len(), 1);
    assert!(lost[0].worker_gone);
    assert_eq!(lost[0].job, leased);
}

/// The list says who works and how much they hold.
pub async fn workers_are_listed(store: Shared) {
    attach(&store, 1).await;
    attach(&store, 2).await;
    enqueue(&store, vec![job(1, plain())]).await;
    lease_one(&store, at(0)).await;
    let listed = store.list_workers().await.expect("listed");
    let mut held: Vec<_> = listed.iter().map(|w| (w.id, w.leases)).collect();
    held.sort();
    assert_eq!(held, [(worker(1), 1), (worker(2), 0)]);
    store.detach_worker(worker(2)).await.expect("detached");
    assert_eq!(store.list_workers().await.expect("listed").len(), 1);
}

/// What a worker cannot work on is seen by others, and gone with it.
pub async fn holds_are_seen_and_gone_with_the_worker(store: Shared) {
    attach(&store, 1).await;
    let hold = Hold::new(pipeline(), "no command".into(), at(0));
    store.note_holds(worker(1), vec![hold.clone()]).await.expect("noted");
    assert_eq!(store.list_workers().await.expect("listed")[0].holds, [hold]);
    store.note_holds(worker(1), Vec::new()).await.expect("noted");
    assert_eq!(store.list_workers().await.expect("listed")[0].holds, []);
    store.detach_worker(worker(1)).await.expect("detached");
    store.note_holds(worker(1), Vec::new()).await.expect("nothing to note it on");
}
