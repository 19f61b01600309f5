//! A pooler between, which gives each transaction another connection.

use std::time::Duration;

use redrive_store::conformance::load::Load;
use redrive_store::conformance::script::{Shared, enqueue, job, listen, plain};
use redrive_store::contract::Topic;

use super::{open, times};
use crate::support::pooler::Pooler;
use crate::support::server::{address, schema, server};

/// Many do everything at once through a pooler that is restarted under them, others beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_lose_nothing_through_a_pooler() {
    let (mut pooler, schema) = (Pooler::start(server(), ""), schema());
    let through = pooler.address();
    let stores = vec![open(&through, &schema).await, open(&through, &schema).await, open(&address(), &schema).await];
    let mut load = Load::begin(stores).await;
    for _ in 0..times(3) {
        load.settle_more(30).await;
        pooler.restart();
    }
    load.settle_more(30).await;
    load.end().await;
}

/// What others write is noticed, though nothing can be listened to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_others_are_noticed_through_a_pooler() {
    // One that lets settings pass, and drops them.
    let (pooler, schema) = (Pooler::start(server(), "ignore_startup_parameters = options"), schema());
    let (there, here) = (open(&address(), &schema).await, open(&pooler.address(), &schema).await);
    let is_pooled = async |store: &Shared| store.health().await.expect("looked").server.expect("a server").is_pooled;
    assert_eq!((is_pooled(&there).await, is_pooled(&here).await), (false, true));
    let mut changes = listen(&here).await;
    for n in 1..=3 {
        enqueue(&there, vec![job(n, plain())]).await;
        let heard = tokio::time::timeout(Duration::from_secs(60), async {
            while !changes.next().await.expect("heard").is_about(Topic::Jobs) {}
        });
        heard.await.expect("in time");
    }
}
