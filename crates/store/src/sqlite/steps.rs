//! How much work something is for SQLite, for tests: steps of its machine, which are as many on a busy computer as on an idle one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;

/// So many steps are counted as one.
const GRAIN: i32 = 10;

/// What `work` gives, and how many tens of steps it took.
pub(super) fn counted<T>(conn: &mut Connection, work: impl FnOnce(&Connection) -> T) -> (T, u64) {
    let steps = Arc::new(AtomicU64::new(0));
    let count = {
        let steps = Arc::clone(&steps);
        move || {
            steps.fetch_add(1, Ordering::Relaxed);
            false
        }
    };
    conn.progress_handler(GRAIN, Some(count)).expect("watched");
    let done = work(conn);
    let taken = steps.load(Ordering::Relaxed);
    conn.progress_handler(0, None::<fn() -> bool>).expect("watched no more");
    (done, taken)
}
