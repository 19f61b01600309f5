//! What must hold of hints about changes.

use std::time::Duration;

use redrive_core::failures::Reason;
use redrive_core::holds::Hold;

use super::script::{
    Shared, at, attach, bury, enqueue, job, lease_all, lease_one, ledger, listen, pipeline, plain, settle, timeout,
    worker,
};
use crate::contract::{Change, Changes, Topic};

/// The topics of the hints that come until one is about `topic`.
async fn hear(changes: &mut Changes, topic: Topic) -> Vec<Topic> {
    let mut heard = Vec::new();
    loop {
        let change = tokio::time::timeout(Duration::from_secs(60), changes.next()).await;
        let change: Change = change.expect("a hint in time").expect("a hint");
        heard.extend(change.topics());
        if change.is_about(topic) {
            return heard;
        }
    }
}

/// Who waits for jobs hears of jobs, who waits for workers of workers.
pub async fn who_listens_hears_what_it_is_about(store: Shared) {
    attach(&store, 1).await;
    let mut changes = listen(&store).await;
    enqueue(&store, vec![job(1, plain())]).await;
    assert_eq!(hear(&mut changes, Topic::Jobs).await, [Topic::Jobs]);
    let leased = lease_one(&store, at(0)).await;
    assert_eq!(hear(&mut changes, Topic::Jobs).await, [Topic::Jobs]);
    settle(&store, &leased, timeout(), at(1)).await;
    assert_eq!(hear(&mut changes, Topic::Jobs).await, [Topic::Jobs], "its breaker is closed and stays so");
    let hold = Hold::new(pipeline(), "no command".into(), at(0));
    store.note_holds(worker(1), vec![hold]).await.expect("noted");
    assert_eq!(hear(&mut changes, Topic::Workers).await, [Topic::Workers]);
}

/// Looking, and asking for what is not there, wakes nobody.
pub async fn looking_is_no_change(store: Shared) {
    attach(&store, 1).await;
    bury(&store, job(1, plain()), Reason::Blocked, "no", at(0)).await;
    let mut changes = listen(&store).await;
    ledger(&store).await;
    lease_all(&store, 10, at(0)).await;
    store.list_workers().await.expect("listed");
    store.audit().await.expect("audited");
    assert!(changes.pending().expect("listened").is_none());
}
