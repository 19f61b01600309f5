//! Runs the conformance suite on a store with a layer that loses answers, so that calls are sent again.

use std::sync::Arc;

use async_trait::async_trait;
use redrive_store::conformance::Fixture;
use redrive_store::conformance::decorators::{Asked, Counting, Decorated, Faulty};
use redrive_store::conformance::script::{Shared, at, attach, enqueue, job, lease_all, plain};
use redrive_store::sqlite::SqliteStore;

struct LosesAnswers {
    inner: Shared,
    layer: Arc<Faulty>,
}

fn in_memory() -> Shared {
    Arc::new(SqliteStore::in_memory().expect("opened"))
}

fn loses_answers() -> LosesAnswers {
    LosesAnswers { inner: in_memory(), layer: Arc::default() }
}

#[async_trait]
impl Fixture for LosesAnswers {
    async fn handle(&self) -> Shared {
        Decorated::around(Arc::clone(&self.inner), &self.layer)
    }

    async fn other(&self) -> Shared {
        Decorated::around(in_memory(), &self.layer)
    }
}

redrive_store::conformance_tests!(loses_answers);

#[tokio::test]
async fn calls_and_their_rows_are_counted_by_verb() {
    let layer = Arc::<Counting>::default();
    let store = Decorated::around(in_memory(), &layer);
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain()), job(2, plain())]).await;
    lease_all(&store, 9, at(0)).await;
    assert_eq!(layer.asked("enqueue"), Asked { calls: 1, rows: 2, rows_max: 2 });
    assert_eq!((layer.asked("beat").calls, layer.asked("settle")), (1, Asked::default()));
    assert_eq!((layer.asked("lease").rows, layer.asked("lease").rows_max), (2, 2), "however often it was asked");
}
