//! The conformance suite on stores with a layer around them: one that loses answers, so that calls are sent again, and one that
//! counts calls.

use std::sync::Arc;

use async_trait::async_trait;
use redrive_store::conformance::Fixture;
use redrive_store::conformance::decorators::{Asked, Counting, Decorated, Faulty, Layer};
use redrive_store::conformance::script::{Shared, at, attach, enqueue, job, lease_all, plain};
use redrive_store::sqlite::SqliteStore;

struct Around<L> {
    inner: Shared,
    layer: Arc<L>,
}

fn in_memory() -> Shared {
    Arc::new(SqliteStore::in_memory().expect("opened"))
}

#[async_trait]
impl<L: Layer> Fixture for Around<L> {
    async fn handle(&self) -> Shared {
        Decorated::around(Arc::clone(&self.inner), &self.layer)
    }

    async fn other(&self) -> Shared {
        Decorated::around(in_memory(), &self.layer)
    }
}

mod faulty {
    use super::*;

    fn fresh() -> Around<Faulty> {
        Around { inner: in_memory(), layer: Arc::default() }
    }

    redrive_store::conformance_tests!(fresh);
}

mod counting {
    use super::*;

    fn fresh() -> Around<Counting> {
        Around { inner: in_memory(), layer: Arc::default() }
    }

    redrive_store::conformance_tests!(fresh);
}

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
