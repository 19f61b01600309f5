//! Reading hostile pages beside all else: each on a thread of its own, few at once, and nobody waits for long.

use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

/// How long two pages may keep their reader busy.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many are read at once. A thread gives its place back when it ends, which may be after nobody waits for it any more.
static READERS: Semaphore = Semaphore::const_new(2);

/// Reads on a thread of its own, for so long at most; says why nothing came of it.
pub(super) async fn aside<T: Send + 'static>(
    read: impl FnOnce(&CancellationToken) -> T + Send + 'static,
) -> Result<T, String> {
    within(PATIENCE, read).await
}

async fn within<T: Send + 'static>(
    patience: Duration,
    read: impl FnOnce(&CancellationToken) -> T + Send + 'static,
) -> Result<T, String> {
    let turn = tokio::time::timeout(patience, READERS.acquire()).await;
    let Ok(Ok(turn)) = turn else { return Err("too many pages are being looked into: try again".to_owned()) };
    let stop = CancellationToken::new();
    let _stops_it = stop.clone().drop_guard();
    let (told, answer) = oneshot::channel();
    let run = move || {
        let _turn = turn;
        let _ = told.send(read(&stop));
    };
    std::thread::Builder::new().name("redrive-compare".into()).spawn(run).map_err(|error| error.to_string())?;
    match tokio::time::timeout(patience, answer).await {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(_)) => Err("the page could not be read".to_owned()),
        Err(_) => Err(format!("the page was not read within {} seconds", patience.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_is_still_busy_keeps_its_place() {
        let (ends, ended) = std::sync::mpsc::channel::<()>();
        let free = READERS.available_permits();
        let late = within(Duration::from_millis(20), move |_| ended.recv().ok());
        assert!(late.await.is_err_and(|why| why.contains("was not read within")), "nobody waits for longer");
        assert_eq!(READERS.available_permits(), free - 1, "its thread goes on");
        drop(ends);
        while READERS.available_permits() < free {
            std::thread::yield_now();
        }
    }
}
