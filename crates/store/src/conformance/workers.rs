//! What must hold of workers.

use redrive_core::holds::Hold;
use redrive_core::jobs::LeasedJob;
use redrive_core::workers::{LastBeat, Runs, TakesReplays};

use super::script::{Shared, at, attach, beat, enqueue, job, lease_one, pipeline, plain, worker};
use crate::contract::{Beat, FindLostLeases};

async fn lost_to(store: &Shared, silent: Vec<LastBeat>) -> Vec<(LeasedJob, bool)> {
    let params = FindLostLeases { pipelines: vec![pipeline()], silent, limit: 10, now: at(1) };
    let lost = store.lost_leases(params).await.expect("asked");
    lost.into_iter().map(|lost| (lost.job, lost.worker_gone)).collect()
}

/// Whoever is off the list has no leases: they are lost at once, however long they would have lasted.
pub async fn a_detached_workers_leases_are_lost(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain())]).await;
    let leased = lease_one(&store, at(0)).await;
    store.detach_worker(worker(1)).await.expect("detached");
    let lost = store
        .lost_leases(FindLostLeases { pipelines: vec![pipeline()], silent: Vec::new(), limit: 10, now: at(1) })
        .await
        .expect("asked");
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

/// Who was silent for too long has lost its leases, without blame, unless it sent another heartbeat.
pub async fn a_silent_workers_leases_are_lost(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain())]).await;
    let leased = lease_one(&store, at(0)).await;
    let silent = vec![LastBeat { worker: worker(1), seen_at: at(0) }];
    assert_eq!(lost_to(&store, Vec::new()).await, []);
    assert_eq!(lost_to(&store, silent.clone()).await, [(leased.clone(), false)]);
    store.forget_workers(silent.clone()).await.expect("asked");
    assert_eq!(store.list_workers().await.expect("listed").len(), 1, "it has leases still");
    assert_eq!(store.beat(beat(1, vec![leased.lease], at(1))).await.expect("beaten"), [leased.lease]);
    assert_eq!(lost_to(&store, silent.clone()).await, [], "it sent another heartbeat");
    attach(&store, 2).await;
    store.forget_workers(vec![LastBeat { worker: worker(2), seen_at: at(9) }]).await.expect("asked");
    assert_eq!(store.list_workers().await.expect("listed").len(), 2, "it sent another one than that");
    store.forget_workers(vec![LastBeat { worker: worker(2), seen_at: at(0) }]).await.expect("asked");
    assert_eq!(store.list_workers().await.expect("listed").len(), 1);
}

/// A worker that lives elsewhere is never taken for gone: only its leases run out.
pub async fn a_remote_worker_is_never_gone(store: Shared) {
    store.beat(Beat { remote: true, ..beat(1, Vec::new(), at(0)) }).await.expect("attached");
    enqueue(&store, vec![job(1, plain())]).await;
    lease_one(&store, at(0)).await;
    let listed = store.list_workers().await.expect("listed");
    assert!(listed[0].alive && listed[0].remote);
    assert_eq!(listed[0].unproven_beat(), None);
    assert_eq!(lost_to(&store, Vec::new()).await, []);
    let late = FindLostLeases { pipelines: vec![pipeline()], silent: Vec::new(), limit: 10, now: at(30) };
    assert_eq!(store.lost_leases(late).await.expect("asked").len(), 1);
}

/// The list says what each worker runs, as of its last heartbeat.
pub async fn what_workers_run_is_listed(store: Shared) {
    let runs = |names: &[&str]| -> Vec<Runs> {
        let runs = |name: &&str| Runs {
            pipeline: name.parse().expect("a name"),
            definition: None,
            waits_forever: false,
            replays: TakesReplays::default(),
        };
        names.iter().map(runs).collect()
    };
    store.beat(Beat { runs: runs(&["a"]), ..beat(1, Vec::new(), at(0)) }).await.expect("attached");
    store.beat(Beat { runs: runs(&["a", "b"]), ..beat(1, Vec::new(), at(5)) }).await.expect("beaten");
    let listed = store.list_workers().await.expect("listed");
    assert_eq!((listed.len(), &listed[0].runs), (1, &runs(&["a", "b"])));
    assert_eq!((listed[0].attached_at, listed[0].seen_at), (at(0), at(5)));
}
